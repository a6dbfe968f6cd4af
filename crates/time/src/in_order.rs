//! Named deadlines that come in order: a queue.
//!
//! Where every deadline is the same time away, nothing need be sorted, and what is over before its
//! deadline is left where it is until it comes to the front.

use std::collections::VecDeque;

use crate::Instant;

/// Deadlines that were given in order, for names that may be over before.
#[derive(Debug)]
pub struct InOrder<K> {
    queue: VecDeque<(Instant, K)>,
}

impl<K> Default for InOrder<K> {
    fn default() -> Self {
        Self { queue: VecDeque::new() }
    }
}

impl<K> InOrder<K> {
    /// Takes a deadline, rounded up as [`Timers`](crate::Timers) do.
    ///
    /// Errors: it is before one that was taken; nothing changed.
    #[inline]
    pub fn push(&mut self, deadline: Instant, key: K) -> Result<(), K> {
        let deadline = crate::timers::rounded(deadline);
        if self.queue.back().is_some_and(|(last, _)| deadline < *last) {
            return Err(key);
        }
        self.queue.push_back((deadline, key));
        Ok(())
    }

    /// Forgets one that is over if it is the first, and then others as long as they are.
    #[inline]
    pub fn forget(&mut self, key: &K, is_over: impl Fn(&K) -> bool)
    where
        K: PartialEq,
    {
        if self.queue.front().is_some_and(|(_, first)| first == key) {
            self.queue.pop_front();
            self.forget_while(is_over);
        }
    }

    /// Forgets the first ones as long as they are over.
    #[inline]
    pub fn forget_while(&mut self, is_over: impl Fn(&K) -> bool) {
        while self.queue.front().is_some_and(|(_, key)| is_over(key)) {
            self.queue.pop_front();
        }
    }

    /// When to call [`InOrder::expire`] next.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queue.front().map(|(deadline, _)| *deadline)
    }

    /// Takes one name whose deadline has passed at `now`; it may be over.
    pub fn expire(&mut self, now: Instant) -> Option<K> {
        if self.next_deadline()? > now {
            return None;
        }
        self.queue.pop_front().map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn hands_names_out_in_order_and_refuses_what_is_not() {
        let mut deadlines = InOrder::default();
        assert_eq!(deadlines.push(at(5_000), 1), Ok(()));
        assert_eq!(deadlines.push(at(9_000), 2), Ok(()));
        assert_eq!(deadlines.push(at(1_000), 3), Err(3));
        assert_eq!(deadlines.next_deadline(), Some(at(5_120)));
        assert_eq!((deadlines.expire(at(5_119)), deadlines.expire(at(5_120))), (None, Some(1)));
        assert_eq!(deadlines.expire(at(9_215)), None);
        assert_eq!((deadlines.expire(at(9_216)), deadlines.next_deadline()), (Some(2), None));
    }

    #[test]
    fn what_is_over_is_forgotten_from_the_front() {
        let mut deadlines = InOrder::default();
        for key in 0..10 {
            assert_eq!(deadlines.push(at(key * 10_000), key), Ok(()));
        }
        deadlines.forget_while(|&key| key < 4 || key == 7);
        deadlines.forget(&5, |_| true);
        deadlines.forget(&4, |&key| key < 7);
        assert_eq!(deadlines.expire(at(1_000_000)), Some(7));
    }
}
