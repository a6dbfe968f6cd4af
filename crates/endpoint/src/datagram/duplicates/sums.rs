//! How many bytes are in use.

use super::entry::{Entry, Reply};
use super::replies::Replies;

/// Bytes that are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) bytes: usize,
    /// Of these, what belongs to entries that are never forgotten before their lifetime. They get
    /// seven eighths at most, so that others are still remembered for a while.
    pub(super) kept: usize,
}

impl Sums {
    #[inline]
    pub(super) fn add(&mut self, bytes: usize, is_kept: bool) {
        self.bytes += bytes;
        self.kept += if is_kept { bytes } else { 0 };
    }

    #[inline]
    pub(super) fn subtract(&mut self, bytes: usize, is_kept: bool) {
        self.bytes -= bytes;
        self.kept -= if is_kept { bytes } else { 0 };
    }
}

/// Puts another reply into an entry and keeps count of the bytes.
#[inline]
pub(super) fn exchange_reply(
    entry: &mut Entry,
    replies: &mut [Replies; 2],
    sums: &mut Sums,
    reply: Option<Reply>,
) -> Option<Reply> {
    let before = std::mem::replace(&mut entry.reply, reply);
    let is_kept = entry.class.is_kept();
    sums.add(reply.map_or(0, Reply::stored), is_kept);
    if let Some(Reply::Datagram(extent)) = before {
        sums.subtract(extent.len(), is_kept);
        replies[entry.class.memory()].release(extent);
    }
    before
}
