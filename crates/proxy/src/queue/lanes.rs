//! What waits of one site, in a lane for each client.

use std::collections::{BTreeMap, VecDeque};

use super::{Look, Waiting};

/// The number of the turn after all others.
pub(super) fn end_of<V>(turns: &BTreeMap<i64, V>) -> i64 {
    turns.last_key_value().map_or(0, |(turn, _)| turn + 1)
}

/// Of the one before all others.
pub(super) fn start_of<V>(turns: &BTreeMap<i64, V>) -> i64 {
    turns.first_key_value().map_or(0, |(turn, _)| turn - 1)
}

#[derive(Debug)]
struct Lane<T> {
    client: u64,
    items: VecDeque<T>,
}

/// The lanes of one site; none is empty.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    /// When it is the site's turn.
    pub(super) turn: i64,
    /// The client whose turn it is first.
    lanes: BTreeMap<i64, Lane<T>>,
    waiting: usize,
    patient: usize,
}

impl<T: Waiting> Lanes<T> {
    pub(super) const fn new(turn: i64) -> Self {
        Self { turn, lanes: BTreeMap::new(), waiting: 0, patient: 0 }
    }

    /// In all lanes.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many of them are patient.
    pub(super) const fn patient(&self) -> usize {
        self.patient
    }

    fn came(&mut self, item: &T) {
        self.waiting += 1;
        self.patient += usize::from(item.is_patient());
    }

    fn went(&mut self, item: &T) {
        self.waiting -= 1;
        self.patient -= usize::from(item.is_patient());
    }

    /// How many lanes.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn len_of(&self, lane: i64) -> usize {
        self.lanes.get(&lane).map_or(0, |lane| lane.items.len())
    }

    /// A client gets a lane.
    pub(super) fn add(&mut self, client: u64, item: T) -> i64 {
        self.came(&item);
        let turn = end_of(&self.lanes);
        self.lanes.insert(turn, Lane { client, items: VecDeque::from([item]) });
        turn
    }

    pub(super) fn push(&mut self, lane: i64, item: T) {
        self.came(&item);
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.items.push_back(item);
        }
    }

    /// To the front of a lane, which comes first, or of a new one.
    pub(super) fn put_back(&mut self, lane: Option<i64>, client: u64, item: T) -> i64 {
        self.came(&item);
        let known = lane.and_then(|lane| self.lanes.remove(&lane));
        let mut lane = known.unwrap_or_else(|| Lane { client, items: VecDeque::new() });
        lane.items.push_front(item);
        let turn = start_of(&self.lanes);
        self.lanes.insert(turn, lane);
        turn
    }

    /// The lane whose first item leaves, among so many; how many were passed by, and whether others were not
    /// looked at though they might leave.
    pub(super) fn find(&self, most: usize, look: &mut impl FnMut(&T) -> Look) -> (Option<i64>, usize, bool) {
        for (passed, (turn, lane)) in self.lanes.iter().enumerate() {
            if passed == most {
                return (None, passed, true);
            }
            match lane.items.front().map(&mut *look) {
                Some(Look::Leaves) => return (Some(*turn), passed, false),
                Some(Look::SiteStays) => return (None, passed + 1, false),
                Some(Look::Stays) | None => {}
            }
        }
        (None, self.lanes.len(), false)
    }

    /// So many have their turn last; says where the lanes of their clients are now.
    pub(super) fn rotate(&mut self, passed: usize) -> Vec<(u64, i64)> {
        let mut moved = Vec::with_capacity(passed);
        for _ in 0..passed {
            let Some((_, lane)) = self.lanes.pop_first() else { break };
            let turn = end_of(&self.lanes);
            moved.push((lane.client, turn));
            self.lanes.insert(turn, lane);
        }
        moved
    }

    /// Takes the first item of a lane, which has its turn last now: says where it is, if there is more in it.
    pub(super) fn take(&mut self, lane: i64) -> Option<(u64, T, Option<i64>)> {
        let mut lane = self.lanes.remove(&lane)?;
        let item = lane.items.pop_front()?;
        self.went(&item);
        let client = lane.client;
        let next = (!lane.items.is_empty()).then(|| {
            let turn = end_of(&self.lanes);
            self.lanes.insert(turn, lane);
            turn
        });
        Some((client, item, next))
    }

    /// Takes out an item, the last one where there are fewer; says whether the lane is gone.
    pub(super) fn take_out(&mut self, lane: i64, place: usize) -> Option<(u64, T, bool)> {
        let known = self.lanes.get_mut(&lane)?;
        let item = known.items.remove(place.min(known.items.len().checked_sub(1)?))?;
        let (client, is_empty) = (known.client, known.items.is_empty());
        if is_empty {
            self.lanes.remove(&lane);
        }
        self.went(&item);
        Some((client, item, is_empty))
    }

    pub(super) fn position(&self, lane: i64, matches: impl Fn(&T) -> bool) -> Option<usize> {
        self.lanes.get(&lane)?.items.iter().position(matches)
    }

    /// The longest of the last lanes.
    pub(super) fn longest(&self, among: usize) -> Option<i64> {
        let some = self.lanes.iter().rev().take(among);
        some.max_by_key(|(_, lane)| lane.items.len()).map(|(turn, _)| *turn)
    }

    pub(super) fn firsts(&self) -> impl Iterator<Item = &T> {
        self.lanes.values().filter_map(|lane| lane.items.front())
    }
}
