//! Datagrams that are kept for repeats: written one behind the other into chunks, each of which is given
//! back when nothing in it is needed any more.
//!
//! What is written first is forgotten first, as far as origins answer in turn, so that chunks empty as
//! they were filled. Nothing is allocated per datagram.

use std::collections::VecDeque;

/// A datagram that is longer has a chunk of its own.
const CHUNK: usize = 1 << 15;

/// Where a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::datagram) struct Extent {
    /// Counts chunks from the first there ever was.
    chunk: u32,
    offset: u16,
    length: u16,
}

impl Extent {
    pub(in crate::datagram) const fn len(self) -> usize {
        self.length as usize
    }
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Datagrams that are still needed.
    needed: u32,
}

#[derive(Debug, Default)]
pub(super) struct Replies {
    chunks: VecDeque<Chunk>,
    /// The number of the first of them.
    first: u32,
    /// An empty one, for the next.
    spare: Vec<u8>,
}

impl Replies {
    /// `None` for what is longer than any datagram.
    pub(super) fn push(&mut self, datagram: &[u8]) -> Option<Extent> {
        let length = u16::try_from(datagram.len()).ok()?;
        let has_room = |chunk: &Chunk| {
            let room = chunk.bytes.capacity() - chunk.bytes.len();
            room >= datagram.len() && chunk.bytes.len() <= CHUNK
        };
        if !self.chunks.back().is_some_and(has_room) {
            self.begin_chunk(datagram.len());
        }
        let chunk = self.first.wrapping_add(self.chunks.len() as u32 - 1);
        let Chunk { bytes, needed } = self.chunks.back_mut().expect("begun above");
        let offset = bytes.len() as u16;
        bytes.extend_from_slice(datagram);
        *needed += 1;
        Some(Extent { chunk, offset, length })
    }

    fn begin_chunk(&mut self, least: usize) {
        if let Some(last) = self.chunks.back_mut()
            && last.needed == 0
        {
            last.bytes = Vec::new();
        }
        self.drop_empty();
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.reserve_exact(least.max(CHUNK));
        self.chunks.push_back(Chunk { bytes, needed: 0 });
    }

    pub(super) fn get(&self, extent: Extent) -> Option<&[u8]> {
        let place = extent.chunk.wrapping_sub(self.first) as usize;
        self.chunks.get(place)?.bytes.get(extent.offset as usize..)?.get(..extent.len())
    }

    /// A datagram is needed no more.
    pub(super) fn release(&mut self, extent: Extent) {
        let place = extent.chunk.wrapping_sub(self.first) as usize;
        let is_last = place + 1 == self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(place) else { return };
        chunk.needed -= 1;
        if chunk.needed > 0 {
            return;
        }
        if is_last {
            chunk.bytes.clear();
            return;
        }
        let mut bytes = std::mem::take(&mut chunk.bytes);
        if bytes.capacity() <= CHUNK {
            bytes.clear();
            self.spare = bytes;
        }
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        while self.chunks.front().is_some_and(|chunk| chunk.needed == 0 && chunk.bytes.capacity() == 0) {
            self.chunks.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_stay_what_they_were_and_chunks_are_given_back() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut replies = Replies::default();
        let mut kept: VecDeque<(Extent, Vec<u8>)> = VecDeque::new();
        for round in 0..20_000_u32 {
            let length = if round % 1000 == 0 { CHUNK + 1 } else { random.usize(4..300) };
            let datagram = vec![round as u8; length];
            kept.push_back((replies.push(&datagram).expect("short"), datagram));
            let most = if round < 10_000 { 2000 } else { 100 };
            while kept.len() > most {
                // Nearly in order.
                let place = random.usize(..50.min(kept.len()));
                let (extent, _) = kept.remove(place).expect("there");
                replies.release(extent);
            }
            let (extent, datagram) = &kept[random.usize(..kept.len())];
            assert_eq!(replies.get(*extent), Some(&datagram[..]));
        }
        let needed: usize = kept.iter().map(|(_, datagram)| datagram.len()).sum();
        let held: usize = replies.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum();
        assert!(held <= needed + 4 * CHUNK, "{held} for {needed}");
        for (extent, _) in kept {
            replies.release(extent);
        }
        assert!(replies.chunks.len() <= 1, "{}", replies.chunks.len());
    }
    #[test]
    fn what_is_longer_than_any_datagram_is_not_stored() {
        let mut replies = Replies::default();
        assert_eq!(replies.push(&[0; 65_536]), None);
        let extent = replies.push(&[7; 65_535]).expect("it fits");
        assert_eq!((extent.len(), replies.get(extent)), (65_535, Some(&[7; 65_535][..])));
    }
}
