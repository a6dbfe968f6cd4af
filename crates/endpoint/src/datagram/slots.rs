//! A slab whose places count how often they were used, so that an old name is told from a new one.

use coapway_message::ExchangeId;

use super::chunks::Chunks;

/// Values stay in their places when they end, until the next one comes: they are not moved.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Chunks<T>,
    free: Vec<u32>,
}

/// How often a place was used before, and whether it is in use: kept by what is in it, among its
/// smallest fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use(u32);

impl Use {
    const LIVE: u32 = 1;

    #[inline]
    const fn generation(self) -> u32 {
        self.0 >> 1
    }

    #[inline]
    const fn is_live(self) -> bool {
        self.0 & Self::LIVE != 0
    }

    #[inline]
    const fn is_of(self, id: ExchangeId) -> bool {
        self.is_live() && self.generation() == id.generation
    }

    /// Whether the place is free, and that was its name before.
    #[inline]
    const fn was_of(self, id: ExchangeId) -> bool {
        !self.is_live() && self.0.wrapping_sub(2) >> 1 == id.generation
    }

    /// The place is free from now on; its next name is another.
    const fn end(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}

/// What can be in a place; a blank one was never used.
pub(super) trait Slot: Default {
    fn place(&self) -> Use;
    fn place_mut(&mut self) -> &mut Use;
}

impl<T: Slot> Slots<T> {
    pub(super) fn new() -> Self {
        Self { places: Chunks::default(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() as usize - self.free.len()
    }

    /// The name the next [`Slots::claim`] gives out.
    pub(super) fn next_id(&self) -> ExchangeId {
        match self.free.last() {
            Some(&slot) => self.id(slot),
            None => ExchangeId { slot: self.places.len(), generation: 0 },
        }
    }

    /// The name of what is in a place, or of what comes next there.
    #[inline]
    pub(super) fn id(&self, slot: u32) -> ExchangeId {
        ExchangeId { slot, generation: self.places[slot].place().generation() }
    }

    /// Takes a place and gives it a name; in it is still what ended last, or nothing.
    #[inline]
    pub(super) fn claim(&mut self) -> (ExchangeId, &mut T) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.places.add(),
        };
        let value = &mut self.places[slot];
        let place = value.place_mut();
        place.0 |= Use::LIVE;
        let generation = place.generation();
        (ExchangeId { slot, generation }, value)
    }

    #[inline]
    pub(super) fn get(&self, id: ExchangeId) -> Option<&T> {
        self.places.get(id.slot).filter(|value| value.place().is_of(id))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut T> {
        self.places.get_mut(id.slot).filter(|value| value.place().is_of(id))
    }

    /// What is in a place, if it is in use.
    #[inline]
    pub(super) fn live(&self, slot: u32) -> Option<&T> {
        self.places.get(slot).filter(|value| value.place().is_live())
    }

    /// What is in a place that is known to be in use.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &T {
        &self.places[slot]
    }

    /// Ends the name of what is in a place that is in use; it can still be read there.
    #[inline]
    pub(super) fn end(&mut self, slot: u32) {
        self.places[slot].place_mut().end();
        self.free.push(slot);
    }

    /// What a name stood for that has ended, while its place is not used again.
    #[inline]
    pub(super) fn removed(&self, id: ExchangeId) -> Option<&T> {
        self.places.get(id.slot).filter(|value| value.place().was_of(id))
    }

    /// What is in the places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter(|value| value.place().is_live())
    }

    /// The places in use.
    pub(super) fn in_use(&self) -> impl Iterator<Item = u32> {
        (0..self.places.len()).filter(|&slot| self.live(slot).is_some())
    }

    /// Whether `id` was given out once and is over.
    pub(super) fn is_over(&self, id: ExchangeId) -> bool {
        self.places.get(id.slot).is_some_and(|value| id.generation < value.place().generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Letter(char, Use);

    impl Slot for Letter {
        fn place(&self) -> Use {
            self.1
        }

        fn place_mut(&mut self) -> &mut Use {
            &mut self.1
        }
    }

    fn insert(slots: &mut Slots<Letter>, letter: char) -> ExchangeId {
        let (id, value) = slots.claim();
        value.0 = letter;
        id
    }

    #[test]
    fn a_name_is_live_then_over_and_its_value_readable_until_the_next() {
        let mut slots = Slots::<Letter>::new();
        let letter = |value: Option<&Letter>| value.map(|letter| letter.0);
        let (first, second) = (insert(&mut slots, 'a'), insert(&mut slots, 'b'));
        assert_eq!(slots.iter().map(|letter| letter.0).collect::<String>(), "ab");
        assert!(!slots.is_over(first) && slots.removed(first).is_none());
        slots.end(first.slot);
        assert!(slots.get_mut(first).is_none());
        assert_eq!((letter(slots.get(first)), slots.len()), (None, 1));
        assert!(slots.is_over(first) && letter(slots.removed(first)) == Some('a'));
        assert_eq!(slots.iter().map(|letter| letter.0).collect::<String>(), "b");
        assert_eq!(slots.next_id(), ExchangeId { generation: first.generation + 1, ..first });
        let third = insert(&mut slots, 'c');
        assert_eq!((third.slot, letter(slots.get(third))), (first.slot, Some('c')));
        assert!(slots.removed(first).is_none() && slots.is_over(first) && !slots.is_over(third));
        assert!(!slots.is_over(ExchangeId { slot: 9, generation: 0 }), "never given out");
        assert_eq!(slots.next_id(), ExchangeId { slot: 2, generation: 0 });
        assert_eq!((slots.id(second.slot), slots.at(second.slot).0), (second, 'b'));
        assert_eq!((letter(slots.live(second.slot)), letter(slots.live(9))), (Some('b'), None));
        slots.end(second.slot);
        assert!(slots.live(second.slot).is_none() && slots.is_over(second));
    }

    #[test]
    fn what_was_never_given_out_is_nothing() {
        let mut slots = Slots::<Letter>::new();
        let first = insert(&mut slots, 'a');
        let far = u32::MAX ^ (u32::MAX >> 1);
        for id in [
            ExchangeId { slot: 1, generation: 0 },
            ExchangeId { generation: 1, ..first },
            ExchangeId { generation: far, ..first },
        ] {
            assert!(slots.get(id).is_none() && slots.removed(id).is_none());
        }
        slots.end(first.slot);
        assert!(slots.removed(ExchangeId { generation: far, ..first }).is_none());
    }
}
