//! Requests that wait for their turn towards one origin, served round robin over clients.

use std::collections::VecDeque;

use ahash::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::address::Site;

/// A queue that is full looks at this many lanes for one to make room.
const LOOKED_AT: usize = 32;
/// The last eighth is for those who have less than an eighth of all.
const SHARE: usize = 8;

/// A bounded queue with one lane per client, by the numbers of clients.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lanes: HashMap<u64, VecDeque<T>, RandomState>,
    /// Clients with a lane that is not empty, the next one first.
    turns: VecDeque<u64>,
    /// How much each site has in it.
    sites: HashMap<Site, usize, RandomState>,
    waiting: usize,
}

impl<T> FairQueue<T> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        let sites = HashMap::with_hasher(hasher.clone());
        Self { lanes: HashMap::with_hasher(hasher), turns: VecDeque::new(), sites, waiting: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many leave before the next item of a client, as long as clients take turns.
    pub(crate) fn before(&self, client: u64) -> usize {
        let own = self.lanes.get(&client).map_or(0, VecDeque::len);
        self.waiting.min((own + 1) * self.turns.len())
    }

    pub(crate) fn push(&mut self, client: u64, item: T) {
        let lane = self.lanes.entry(client).or_default();
        if lane.is_empty() {
            self.turns.push_back(client);
        }
        lane.push_back(item);
        self.came(client);
    }

    /// Whether the site of a client has to leave what is left to others: the last eighth of `most` is for those who
    /// have less than an eighth.
    pub(crate) fn is_used_up(&self, client: u64, most: usize) -> bool {
        let share = (most / SHARE).max(1);
        let is_scarce = self.waiting >= most || share > 1 && self.waiting >= most - share;
        is_scarce && self.sites.get(&Site::of(client)).is_some_and(|held| *held >= share)
    }

    fn came(&mut self, client: u64) {
        self.waiting += 1;
        *self.sites.entry(Site::of(client)).or_default() += 1;
    }

    fn went(&mut self, client: u64) {
        self.waiting -= 1;
        if let Entry::Occupied(mut held) = self.sites.entry(Site::of(client)) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    /// Takes the next item whose turn it is and that `may_leave`; others keep their places.
    pub(crate) fn pop(&mut self, may_leave: impl FnMut(&T) -> bool) -> Option<(u64, T)> {
        self.pop_among(usize::MAX, may_leave)
    }

    /// The same among so many clients. When none of their items may leave, the next ones have their turn.
    pub(crate) fn pop_among(
        &mut self,
        most: usize,
        mut may_leave: impl FnMut(&T) -> bool,
    ) -> Option<(u64, T)> {
        for passed in 0..self.turns.len().min(most) {
            let client = *self.turns.get(passed)?;
            let lane = self.lanes.get_mut(&client)?;
            if !may_leave(lane.front()?) {
                continue;
            }
            let item = lane.pop_front()?;
            self.turns.remove(passed);
            if lane.is_empty() {
                self.lanes.remove(&client);
            } else {
                self.turns.push_back(client);
            }
            self.went(client);
            return Some((client, item));
        }
        if most < self.turns.len() {
            self.turns.rotate_left(most);
        }
        None
    }

    /// The first item of each client.
    pub(crate) fn first_of_each(&self) -> impl Iterator<Item = &T> {
        self.turns.iter().filter_map(|client| self.lanes.get(client)?.front())
    }

    /// Puts an item back to where [`FairQueue::pop`] took it from.
    pub(crate) fn put_back(&mut self, client: u64, item: T) {
        let lane = self.lanes.entry(client).or_default();
        if !lane.is_empty() {
            self.turns.retain(|other| *other != client);
        }
        self.turns.push_front(client);
        lane.push_front(item);
        self.came(client);
    }

    /// Takes out the newest item of the client that has most among some, when that are at least two
    /// more than `client` has: a full queue makes room for those who use little of it.
    pub(crate) fn shed_for(&mut self, client: u64) -> Option<T> {
        let own = self.lanes.get(&client).map_or(0, VecDeque::len);
        // Those at the end had their turn last and still have more, or have just begun.
        let some = self.turns.iter().rev().take(LOOKED_AT);
        let longest = *some.max_by_key(|other| self.lanes.get(*other).map_or(0, VecDeque::len))?;
        let lane = self.lanes.get_mut(&longest).filter(|lane| lane.len() >= own + 2)?;
        let item = lane.pop_back();
        self.went(longest);
        item
    }

    /// Takes out the first item of a client that `matches`.
    pub(crate) fn remove(&mut self, client: u64, matches: impl Fn(&T) -> bool) -> Option<T> {
        let lane = self.lanes.get_mut(&client)?;
        let place = lane.iter().position(matches)?;
        let item = lane.remove(place)?;
        if lane.is_empty() {
            self.lanes.remove(&client);
            self.turns.retain(|other| *other != client);
        }
        self.went(client);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        for item in 0..3 {
            queue.push(1, item);
        }
        queue.push(2, 10);
        queue.push(3, 20);
        assert_eq!(queue.len(), 5);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).map(|(_, item)| item).collect();
        assert_eq!(order, [0, 10, 20, 1, 2]);
        assert!(queue.is_empty() && queue.lanes.is_empty());
    }

    #[test]
    fn what_is_taken_out_leaves_no_lane_behind() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        queue.push(1, 1);
        queue.push(2, 2);
        assert_eq!(queue.remove(1, |item| *item == 1), Some(1));
        assert_eq!(queue.remove(1, |item| *item == 1), None);
        assert_eq!(queue.pop(|_| true), Some((2, 2)));
        assert_eq!(queue.pop(|_| true), None);
    }

    #[test]
    fn what_may_not_leave_is_passed_by_and_keeps_its_turn() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        for (client, item) in [(1, 1), (1, 2), (2, 10), (3, 20)] {
            queue.push(client, item);
        }
        assert_eq!(queue.pop(|item| *item >= 10), Some((2, 10)));
        assert_eq!(queue.pop(|item| *item == 2), None, "it is behind another of its client");
        assert_eq!(queue.pop(|_| true), Some((1, 1)));
        queue.put_back(1, 1);
        assert_eq!(queue.pop(|_| true), Some((1, 1)));
        assert_eq!(queue.pop(|_| true), Some((3, 20)));
        assert_eq!(queue.pop(|_| true), Some((1, 2)));
        assert!(queue.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn the_last_eighth_is_for_sites_that_have_little() {
        let client = |endpoint: u64, site: u64| endpoint << 32 | site;
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        for endpoint in 0..56 {
            assert!(!queue.is_used_up(client(endpoint, 1), 64), "{endpoint}");
            queue.push(client(endpoint, 1), endpoint);
        }
        assert!(queue.is_used_up(client(99, 1), 64) && !queue.is_used_up(client(99, 2), 64));
        queue.push(client(99, 2), 99);
        queue.remove(client(0, 1), |_| true);
        queue.pop(|_| true);
        assert!(!queue.is_used_up(client(99, 1), 64), "there is room again");
        while queue.pop(|_| true).is_some() {}
        assert!(queue.sites.is_empty() && queue.is_empty());
        // In a small one nothing is kept free.
        queue.push(client(1, 1), 1);
        assert!(!queue.is_used_up(client(2, 1), 2));
        queue.push(client(2, 1), 2);
        assert!(queue.is_used_up(client(3, 1), 2) && !queue.is_used_up(client(3, 2), 2));
    }

    #[test]
    fn many_that_may_not_leave_do_not_hide_one_that_may() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        (0..10).for_each(|client| queue.push(client, client));
        let mut looked = 0;
        let mut pop = |queue: &mut FairQueue<u64>| {
            queue.pop_among(4, |item| {
                looked += 1;
                *item == 9
            })
        };
        assert_eq!([pop(&mut queue), pop(&mut queue), pop(&mut queue)], [None, None, Some((9, 9))]);
        assert_eq!(looked, 10);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).map(|(_, item)| item).collect();
        assert_eq!(order, [8, 0, 1, 2, 3, 4, 5, 6, 7], "in turn");
    }

    #[test]
    fn who_uses_most_of_a_full_queue_gives_way() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        for (client, item) in [(1, 1), (1, 2), (1, 3), (2, 10)] {
            queue.push(client, item);
        }
        assert_eq!(queue.shed_for(3), Some(3), "the newest of the busiest");
        assert_eq!(queue.shed_for(2), None, "one more is no reason");
        assert_eq!((queue.len(), queue.shed_for(1)), (3, None));
    }
}
