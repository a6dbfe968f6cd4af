//! A slab whose places count how often they were used, so that an old name is told from a new one.

use coapway_message::ExchangeId;

/// Values stay in their places when they are removed, until the next one comes: they are not moved.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    in_use: bool,
    value: T,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The name the next [`Slots::insert`] gives out.
    pub(super) fn next_id(&self) -> ExchangeId {
        match self.free.last() {
            Some(&slot) => ExchangeId { slot, generation: self.places[slot as usize].generation },
            None => ExchangeId { slot: self.places.len() as u32, generation: 0 },
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> ExchangeId {
        let id = self.next_id();
        match self.free.pop() {
            Some(slot) => {
                let place = &mut self.places[slot as usize];
                place.in_use = true;
                place.value = value;
            }
            None => self.places.push(Place { generation: 0, in_use: true, value }),
        }
        id
    }

    #[inline]
    pub(super) fn get(&self, id: ExchangeId) -> Option<&T> {
        let place = self.places.get(id.slot as usize)?;
        (place.generation == id.generation && place.in_use).then_some(&place.value)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut T> {
        let place = self.places.get_mut(id.slot as usize)?;
        (place.generation == id.generation && place.in_use).then_some(&mut place.value)
    }

    /// Ends a name; what it stood for can still be read here.
    #[inline]
    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<&mut T> {
        let place = self.places.get_mut(id.slot as usize)?;
        if place.generation != id.generation || !place.in_use {
            return None;
        }
        place.generation = place.generation.wrapping_add(1);
        place.in_use = false;
        self.free.push(id.slot);
        Some(&mut place.value)
    }

    /// What a name stood for that was removed, while its place is not used again.
    pub(super) fn removed(&self, id: ExchangeId) -> Option<&T> {
        let place = self.places.get(id.slot as usize)?;
        (place.generation == id.generation.wrapping_add(1) && !place.in_use).then_some(&place.value)
    }

    /// What is in the places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter(|place| place.in_use).map(|place| &place.value)
    }

    /// The names of what is in the places.
    pub(super) fn ids(&self) -> impl Iterator<Item = ExchangeId> {
        let in_use = (0..).zip(&self.places).filter(|(_, place)| place.in_use);
        in_use.map(|(slot, place)| ExchangeId { slot, generation: place.generation })
    }

    /// Whether `id` was given out once and is over.
    pub(super) fn is_over(&self, id: ExchangeId) -> bool {
        self.places.get(id.slot as usize).is_some_and(|place| id.generation < place.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_live_then_over_and_its_value_readable_until_the_next() {
        let mut slots = Slots::new();
        let (first, second) = (slots.insert('a'), slots.insert('b'));
        assert_eq!(slots.ids().collect::<Vec<_>>(), [first, second]);
        assert!(!slots.is_over(first) && slots.removed(first).is_none());
        assert_eq!(slots.remove(first), Some(&mut 'a'));
        assert_eq!(slots.remove(first), None);
        assert_eq!((slots.get(first), slots.len()), (None, 1));
        assert!(slots.is_over(first) && slots.removed(first) == Some(&'a'));
        assert_eq!(slots.ids().collect::<Vec<_>>(), [second]);
        assert_eq!(slots.next_id(), ExchangeId { generation: first.generation + 1, ..first });
        let third = slots.insert('c');
        assert_eq!((third.slot, slots.get(third)), (first.slot, Some(&'c')));
        assert!(slots.removed(first).is_none() && slots.is_over(first) && !slots.is_over(third));
        assert!(!slots.is_over(ExchangeId { slot: 9, generation: 0 }), "never given out");
    }
}
