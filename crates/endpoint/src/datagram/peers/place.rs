//! What is kept of a peer.

use super::word::Word;
use crate::peer::Peer;

#[derive(Debug)]
pub(super) struct Place {
    pub(super) word: Word,
    /// What refers to it, messages that are remembered left out.
    pub(super) users: u32,
    /// Messages of it that are remembered.
    pub(super) remembered: u32,
    /// Of these, those that are never forgotten before their lifetime.
    pub(super) kept: u32,
    /// Where its Message IDs are.
    pub(super) space: u32,
}

pub(super) const NONE: u32 = u32::MAX;
/// `users` of a place that is free.
pub(super) const FREE: u32 = u32::MAX;

impl Default for Place {
    fn default() -> Self {
        Self { word: Word(0), users: FREE, remembered: 0, kept: 0, space: NONE }
    }
}

impl Place {
    #[inline]
    pub(super) const fn is_unused(&self) -> bool {
        self.users == 0 && self.remembered == 0
    }

    /// What it costs: itself, its own in the table, and its address where that is not in it.
    #[inline]
    pub(super) const fn bytes(&self) -> usize {
        match self.word.wide_place() {
            None => PEER_BYTES,
            Some(_) => PEER_BYTES + size_of::<(Peer, u64)>(),
        }
    }
}

/// What a peer costs that is a word.
pub(in crate::datagram) const PEER_BYTES: usize = size_of::<Place>() + 8;
