//! How much of what may be under way is one client's.

use ahash::RandomState;
use coapway_message::ExchangeId;
use hashbrown::HashMap;

use crate::address::Site;

/// The last eighth is for those who hold less than an eighth of all.
const SHARE: usize = 8;

/// Each site is counted in two places.
const PLACES: usize = 1 << 10;

/// Requests and separate responses under way, by site, so that nobody who asks for what is never answered, or
/// acknowledges nothing, holds all of them.
///
/// State: counts in two tables, at places that a keyed hash says. A site may share one of its places with
///        another, which makes that count too high, so the lower one is believed; one in a million shares both.
#[derive(Debug)]
pub(crate) struct Shares {
    counts: Box<[[u32; PLACES]; 2]>,
    /// Of all sites together.
    all: usize,
    /// Whose separate responses are under way.
    responses: HashMap<ExchangeId, Site, RandomState>,
}

impl Shares {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { counts: Box::new([[0; PLACES]; 2]), all: 0, responses: HashMap::with_hasher(hasher) }
    }

    pub(crate) fn take(&mut self, site: Site) {
        self.all += 1;
        self.places(site).into_iter().flatten().for_each(|count| *count = count.saturating_add(1));
    }

    pub(crate) fn give(&mut self, site: Site) {
        self.all = self.all.saturating_sub(1);
        self.places(site).into_iter().flatten().for_each(|count| *count = count.saturating_sub(1));
    }

    /// A request was answered, and its separate response is under way.
    pub(crate) fn take_for_response(&mut self, request: ExchangeId, site: Site) {
        if self.responses.insert(request, site).is_none() {
            self.take(site);
        }
    }

    /// A separate response is delivered or given up.
    pub(crate) fn delivered(&mut self, request: ExchangeId) {
        if let Some(site) = self.responses.remove(&request) {
            self.give(site);
        }
    }

    /// Panics when other requests and responses are counted than there are.
    pub(crate) fn check_invariants(&self, requests: usize, outstanding: usize) {
        let responses = self.responses.len();
        assert!(responses <= outstanding, "{responses} of {outstanding} responses");
        assert_eq!(self.all, requests + responses, "what is under way");
    }

    /// Whether a site has to leave what is left to others: of `most`, so many are under way.
    pub(crate) fn is_used_up(&mut self, site: Site, under_way: usize, most: usize) -> bool {
        let share = most / SHARE;
        under_way >= most - share && self.held(site) >= share
    }

    fn held(&mut self, site: Site) -> usize {
        self.places(site).into_iter().flatten().map(|count| *count as usize).min().unwrap_or(0)
    }

    fn places(&mut self, site: Site) -> [Option<&mut u32>; 2] {
        let [one, other] = &mut *self.counts;
        let number = site.number() as usize;
        [one.get_mut(number % PLACES), other.get_mut(number / PLACES % PLACES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u64) -> Site {
        Site::of(number)
    }

    #[test]
    fn the_last_eighth_is_for_others() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let (one, other) = (site(1), site(2));
        (0..56).for_each(|_| shares.take(one));
        assert!(!shares.is_used_up(one, 55, 64), "there is room");
        assert!(shares.is_used_up(one, 56, 64));
        assert!(!shares.is_used_up(other, 63, 64));
        (0..7).for_each(|_| shares.take(other));
        assert!(!shares.is_used_up(other, 63, 64));
        shares.take(other);
        assert!(shares.is_used_up(other, 63, 64), "others, too, hold an eighth at most of what is scarce");
        (0..49).for_each(|_| shares.give(one));
        assert!(!shares.is_used_up(one, 63, 64));
    }

    #[test]
    fn a_separate_response_counts_until_it_is_delivered() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let requests = [1, 2].map(|slot| ExchangeId { slot, generation: 0 });
        requests.into_iter().for_each(|request| shares.take_for_response(request, site(1)));
        assert!(shares.is_used_up(site(1), 15, 16));
        shares.check_invariants(0, 2);
        shares.delivered(requests[0]);
        shares.delivered(requests[0]);
        assert!(!shares.is_used_up(site(1), 15, 16));
        shares.check_invariants(0, 1);
    }

    #[test]
    fn who_shares_one_place_with_a_greedy_one_is_not_taken_for_it() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let greedy = site(5 + 7 * PLACES as u64);
        (0..1000).for_each(|_| shares.take(greedy));
        for other in [site(5), site(7 * PLACES as u64), site(6 + 8 * PLACES as u64)] {
            assert!(!shares.is_used_up(other, 1000, 1024));
        }
        assert!(shares.is_used_up(greedy, 1000, 1024));
    }
}
