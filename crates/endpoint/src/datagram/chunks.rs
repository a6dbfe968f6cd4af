//! A list that grows without moving what is in it.

use std::ops::{Index, IndexMut};

const CHUNK: usize = 128;

/// Places by number, made in chunks: 100 000 take no more memory than 100 000, and none is copied.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Box<[T; CHUNK]>>,
    /// Places that were handed out.
    end: u32,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), end: 0 }
    }
}

impl<T> Chunks<T> {
    /// Places that were handed out.
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.end
    }

    /// `None` for a number beyond all chunks. What was not handed out yet is blank.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        Some(&chunk[number as usize % CHUNK])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(number as usize / CHUNK)?;
        Some(&mut chunk[number as usize % CHUNK])
    }

    /// All that were handed out, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).take(self.end as usize)
    }
}

impl<T: Default> Chunks<T> {
    /// Hands out one more place, which is blank.
    #[inline]
    pub(super) fn add(&mut self) -> u32 {
        let number = self.end;
        if number as usize / CHUNK == self.chunks.len() {
            self.add_chunk();
        }
        self.end += 1;
        number
    }

    #[cold]
    fn add_chunk(&mut self) {
        self.chunks.push(Box::new(std::array::from_fn(|_| T::default())));
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_where_they_are() {
        let mut chunks = Chunks::<u32>::default();
        assert!(chunks.get(0).is_none() && chunks.len() == 0);
        let first = chunks.add();
        let address: *const u32 = &chunks[first];
        for number in 1..1000 {
            assert_eq!(chunks.add(), number);
            chunks[number] = number;
        }
        assert!(std::ptr::eq(address, &chunks[first]));
        assert!(chunks.iter().copied().eq(0..1000));
        assert_eq!((chunks.get(999), chunks.get(1000), chunks.get(1024)), (Some(&999), Some(&0), None));
        *chunks.get_mut(7).expect("there") = 70;
        assert_eq!(chunks[7], 70);
    }
}
