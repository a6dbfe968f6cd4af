//! Requests that wait for their turn towards one origin, served round robin over clients.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ahash::RandomState;
use hashbrown::HashMap;

/// A bounded queue with one lane per client.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lanes: HashMap<SocketAddr, VecDeque<T>, RandomState>,
    /// Clients with a lane that is not empty, the next one first.
    turns: VecDeque<SocketAddr>,
    waiting: usize,
}

impl<T> FairQueue<T> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { lanes: HashMap::with_hasher(hasher), turns: VecDeque::new(), waiting: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub(crate) fn push(&mut self, client: SocketAddr, item: T) {
        let lane = self.lanes.entry(client).or_default();
        if lane.is_empty() {
            self.turns.push_back(client);
        }
        lane.push_back(item);
        self.waiting += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(SocketAddr, T)> {
        let client = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&client)?;
        let item = lane.pop_front()?;
        self.waiting -= 1;
        if lane.is_empty() {
            self.lanes.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some((client, item))
    }

    /// Takes out the first item of a client that `matches`.
    pub(crate) fn remove(&mut self, client: &SocketAddr, matches: impl Fn(&T) -> bool) -> Option<T> {
        let lane = self.lanes.get_mut(client)?;
        let place = lane.iter().position(matches)?;
        let item = lane.remove(place)?;
        self.waiting -= 1;
        if lane.is_empty() {
            self.lanes.remove(client);
            self.turns.retain(|other| other != client);
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn clients_take_turns() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        for item in 0..3 {
            queue.push(client(1), item);
        }
        queue.push(client(2), 10);
        queue.push(client(3), 20);
        assert_eq!(queue.len(), 5);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!(order, [0, 10, 20, 1, 2]);
        assert!(queue.is_empty() && queue.lanes.is_empty());
    }

    #[test]
    fn what_is_taken_out_leaves_no_lane_behind() {
        let mut queue = FairQueue::new(RandomState::with_seeds(1, 2, 3, 4));
        queue.push(client(1), 1);
        queue.push(client(2), 2);
        assert_eq!(queue.remove(&client(1), |item| *item == 1), Some(1));
        assert_eq!(queue.remove(&client(1), |item| *item == 1), None);
        assert_eq!(queue.pop(), Some((client(2), 2)));
        assert_eq!(queue.pop(), None);
    }
}
