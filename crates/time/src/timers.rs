//! Named deadlines, earliest first: a hierarchical timing wheel over a slab.
//!
//! A tick is 1 024 µs; nine levels of 64 slots reach as far as [`Instant`] does. A deadline is
//! rounded up to its tick, so a timer never fires early and at most 1.1 ms late. Insert and cancel
//! take constant time; a deadline is touched once per level on its way down.

use std::num::NonZeroU32;

use crate::Instant;

const TICK_SHIFT: u32 = 10;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 9;
const NIL: u32 = u32::MAX;
/// Marks a node that waits in the due list rather than in a slot.
const DUE: u8 = u8::MAX;
/// Marks a node whose timer fired or was cancelled.
const FREE: u8 = u8::MAX - 1;

/// Names one running timer; worth nothing once it fired or was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    index: u32,
    generation: NonZeroU32,
}

#[derive(Debug)]
struct Node<K> {
    place: Place,
    key: K,
    generation: NonZeroU32,
    previous: u32,
    next: u32,
}

/// A tick and the level at which its node waits, in one word: there may be many nodes.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

impl Place {
    #[inline]
    const fn new(tick: u64, level: u8) -> Self {
        Self(tick << 8 | level as u64)
    }

    #[inline]
    const fn tick(self) -> u64 {
        self.0 >> 8
    }

    #[inline]
    const fn level(self) -> u8 {
        self.0 as u8
    }

    /// The slot of a tick at a level.
    #[inline]
    const fn slot(tick: u64, level: usize) -> usize {
        (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS
    }
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NIL, last: NIL };

/// The deadlines of one state machine; `K` says what each is for.
#[derive(Debug)]
pub struct Timers<K> {
    nodes: Vec<Node<K>>,
    free: u32,
    running: usize,
    elapsed: u64,
    occupied: [u64; LEVELS],
    slots: Box<[[List; SLOTS]; LEVELS]>,
    due: List,
}

impl<K: Copy> Default for Timers<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy> Timers<K> {
    /// No timer runs.
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
            running: 0,
            elapsed: 0,
            occupied: [0; LEVELS],
            slots: Box::new([[EMPTY; SLOTS]; LEVELS]),
            due: EMPTY,
        }
    }

    /// How many timers run.
    pub fn len(&self) -> usize {
        self.running
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.running == 0
    }

    /// Starts a timer; one whose deadline has passed is due at once.
    pub fn insert(&mut self, deadline: Instant, key: K) -> TimerId {
        let (index, generation) = self.allocate(key);
        self.file(index, tick(deadline));
        self.running += 1;
        TimerId { index, generation }
    }

    /// Stops a timer and returns its name; `None` when it fired or was cancelled before.
    pub fn cancel(&mut self, id: TimerId) -> Option<K> {
        let node = self.nodes.get(id.index as usize)?;
        if node.generation != id.generation || node.place.level() == FREE {
            return None;
        }
        self.unlink(id.index);
        Some(self.release(id.index))
    }

    /// When to call [`Timers::expire`] next; never later than the earliest deadline's tick. It may
    /// lie earlier: then nothing expires and the wheel turns one level.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.due.first != NIL {
            return Some(Instant::from_micros(self.elapsed << TICK_SHIFT));
        }
        self.next_slot().map(|(_, _, tick)| Instant::from_micros(tick.saturating_mul(1 << TICK_SHIFT)))
    }

    /// Takes one timer whose deadline has passed at `now`, earliest tick first.
    pub fn expire(&mut self, now: Instant) -> Option<K> {
        if self.due.first == NIL {
            self.advance(now.as_micros() >> TICK_SHIFT);
        }
        let index = self.due.first;
        if index == NIL {
            return None;
        }
        self.unlink(index);
        Some(self.release(index))
    }

    fn advance(&mut self, now: u64) {
        while self.due.first == NIL {
            let Some((level, slot, tick)) = self.next_slot() else { break };
            if tick > now {
                break;
            }
            self.elapsed = self.elapsed.max(tick);
            let mut index = self.slots[level][slot].first;
            self.slots[level][slot] = EMPTY;
            self.occupied[level] &= !(1 << slot);
            while index != NIL {
                let Node { next, place, .. } = self.nodes[index as usize];
                self.file(index, place.tick());
                index = next;
            }
        }
        if self.due.first == NIL {
            self.elapsed = self.elapsed.max(now);
        }
    }

    /// The first occupied slot of the lowest occupied level, and the tick at which it starts.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let shift = SLOT_BITS * level as u32;
        let above = self.elapsed >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
        Some((level, slot, above | (slot as u64) << shift))
    }

    /// Puts a node where its tick belongs. Its level is that of the highest slot digit in which its
    /// tick differs from now, so all nodes of a level lie ahead and a lower level is always earlier.
    fn file(&mut self, index: u32, tick: u64) {
        let (level, list) = if tick <= self.elapsed {
            (DUE, &mut self.due)
        } else {
            let level = ((63 - (tick ^ self.elapsed).leading_zeros()) / SLOT_BITS) as usize;
            let slot = Place::slot(tick, level);
            self.occupied[level] |= 1 << slot;
            (level as u8, &mut self.slots[level][slot])
        };
        let last = std::mem::replace(&mut list.last, index);
        match last {
            NIL => list.first = index,
            last => self.nodes[last as usize].next = index,
        }
        let node = &mut self.nodes[index as usize];
        (node.place, node.previous, node.next) = (Place::new(tick, level), last, NIL);
    }

    fn unlink(&mut self, index: u32) {
        let Node { previous, next, place, .. } = self.nodes[index as usize];
        let level = usize::from(place.level());
        let list = match place.level() {
            DUE => &mut self.due,
            _ => &mut self.slots[level][Place::slot(place.tick(), level)],
        };
        match previous {
            NIL => list.first = next,
            _ => self.nodes[previous as usize].next = next,
        }
        match next {
            NIL => list.last = previous,
            _ => self.nodes[next as usize].previous = previous,
        }
        if place.level() != DUE && list.first == NIL {
            self.occupied[level] &= !(1 << Place::slot(place.tick(), level));
        }
    }

    fn allocate(&mut self, key: K) -> (u32, NonZeroU32) {
        if self.free == NIL {
            let index = u32::try_from(self.nodes.len()).expect("fewer than 2^32 timers fit into memory");
            let generation = NonZeroU32::MIN;
            self.nodes.push(Node { place: Place::new(0, FREE), key, generation, previous: NIL, next: NIL });
            return (index, generation);
        }
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.key = key;
        (index, node.generation)
    }

    fn release(&mut self, index: u32) -> K {
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        node.place = Place::new(0, FREE);
        node.next = self.free;
        self.free = index;
        self.running -= 1;
        node.key
    }
}

/// The tick a deadline is due at.
#[inline]
fn tick(deadline: Instant) -> u64 {
    deadline.as_micros().div_ceil(1 << TICK_SHIFT).min(u64::MAX >> TICK_SHIFT)
}

/// When that is.
#[inline]
pub(crate) fn rounded(deadline: Instant) -> Instant {
    Instant::from_micros(tick(deadline) << TICK_SHIFT)
}

#[cfg(test)]
mod tests;
