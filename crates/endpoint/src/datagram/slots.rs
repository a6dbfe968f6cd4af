//! A slab whose places count how often they were used, so that an old name is told from a new one.

use coapway_message::ExchangeId;

#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
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
            Some(&slot) => ExchangeId { slot, generation: self.places[slot as usize].0 },
            None => ExchangeId { slot: self.places.len() as u32, generation: 0 },
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> ExchangeId {
        let id = self.next_id();
        match self.free.pop() {
            Some(slot) => self.places[slot as usize].1 = Some(value),
            None => self.places.push((0, Some(value))),
        }
        id
    }

    pub(super) fn get(&self, id: ExchangeId) -> Option<&T> {
        match self.places.get(id.slot as usize) {
            Some((generation, value)) if *generation == id.generation => value.as_ref(),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut T> {
        match self.places.get_mut(id.slot as usize) {
            Some((generation, value)) if *generation == id.generation => value.as_mut(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<T> {
        let (generation, value) = self.places.get_mut(id.slot as usize)?;
        if *generation != id.generation || value.is_none() {
            return None;
        }
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        // Last, so that it is moved once.
        value.take()
    }

    /// What is in the places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, value)| value.as_ref())
    }

    /// The names of what is in the places.
    pub(super) fn ids(&self) -> impl Iterator<Item = ExchangeId> {
        (0..).zip(&self.places).filter_map(|(slot, (generation, value))| {
            value.as_ref().map(|_| ExchangeId { slot, generation: *generation })
        })
    }

    /// Whether `id` was given out once and is over.
    pub(super) fn is_over(&self, id: ExchangeId) -> bool {
        self.places.get(id.slot as usize).is_some_and(|&(generation, _)| id.generation < generation)
    }
}
