//! How long requests of a client lived until it had given them up.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use coapway_message::{ExchangeId, Failure};
use coapway_time::Instant;
use hashbrown::HashMap;

/// Clients of which something is known, and responses on their way; the oldest are forgotten.
const MOST: usize = 4096;
/// What is remembered of one client.
const SAMPLES: usize = 32;
/// With fewer nothing is concluded.
const ENOUGH: usize = 8;
/// The share of given-up requests that lived no longer than the patience.
const QUANTILE: f64 = 0.1;
/// No client gives up before its first wait for an Acknowledgement is over (RFC 7252 §4.8.1).
const SHORTEST: Duration = Duration::from_secs(1);
/// How long a sample counts.
const AGE: Duration = Duration::from_secs(15 * 60);

/// A separate response on its way.
#[derive(Clone, Copy, Debug)]
struct Separate {
    client: IpAddr,
    received: Instant,
    /// Whether the client was taken to have given up.
    given_up: bool,
}

/// What requests of clients lived.
#[derive(Debug)]
pub(crate) struct Lives {
    clients: HashMap<IpAddr, VecDeque<(Instant, Duration)>, ahash::RandomState>,
    order: VecDeque<IpAddr>,
    separate: HashMap<ExchangeId, Separate, ahash::RandomState>,
    separate_order: VecDeque<ExchangeId>,
}

impl Lives {
    pub(crate) fn new(hasher: ahash::RandomState) -> Self {
        Self {
            clients: HashMap::with_hasher(hasher.clone()),
            order: VecDeque::new(),
            separate: HashMap::with_hasher(hasher),
            separate_order: VecDeque::new(),
        }
    }

    /// A request of a client was given up `lived` after its receipt, at the latest.
    pub(crate) fn ended(&mut self, client: IpAddr, lived: Duration, now: Instant) {
        let samples = self.clients.entry(client).or_default();
        if samples.is_empty() {
            self.order.push_back(client);
        }
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back((now, lived));
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.clients.remove(&oldest);
        }
    }

    /// How long a client waits, once enough is known: most of its requests that were given up lived longer.
    pub(crate) fn patience(&mut self, client: IpAddr, now: Instant) -> Option<Duration> {
        let samples = self.clients.get(&client)?;
        let mut lived: Vec<_> =
            samples.iter().filter(|(at, _)| *at + AGE >= now).map(|&(_, lived)| lived).collect();
        if lived.len() < ENOUGH {
            return None;
        }
        lived.sort_unstable();
        let rank = (lived.len() as f64 * QUANTILE).ceil() as usize;
        lived.get(rank.max(1) - 1).map(|&lived| lived.max(SHORTEST))
    }

    /// A request will have a separate response.
    pub(crate) fn separate(&mut self, request: ExchangeId, client: IpAddr, received: Instant) {
        let separate = Separate { client, received, given_up: false };
        if self.separate.insert(request, separate).is_none() {
            self.separate_order.push_back(request);
        }
        while self.separate_order.len() > MOST {
            let oldest = self.separate_order.pop_front();
            oldest.and_then(|oldest| self.separate.remove(&oldest));
        }
    }

    /// A request is answered whose client was taken to have given up.
    pub(crate) fn answered(&mut self, request: ExchangeId) {
        if let Some(separate) = self.separate.get_mut(&request) {
            separate.given_up = true;
        }
    }

    /// Its separate response has ended. A Reset says that the client had given up before; an
    /// Acknowledgement that it is more patient than was thought, and then all of that is forgotten.
    pub(crate) fn delivered(&mut self, request: ExchangeId, outcome: Result<(), Failure>, now: Instant) {
        let Some(separate) = self.separate.remove(&request) else { return };
        if self.separate_order.front() == Some(&request) {
            self.separate_order.pop_front();
        }
        match outcome {
            Err(Failure::Reset) => self.ended(separate.client, now.since(separate.received), now),
            Ok(()) if separate.given_up => {
                if let Some(samples) = self.clients.get_mut(&separate.client) {
                    samples.clear();
                }
                self.clients.remove(&separate.client);
                self.order.retain(|client| *client != separate.client);
            }
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn lives() -> Lives {
        Lives::new(ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn request(slot: u32) -> ExchangeId {
        ExchangeId { slot, generation: 0 }
    }

    #[test]
    fn eight_requests_given_up_tell_a_patience_for_a_quarter_of_an_hour() {
        let mut lives = lives();
        for seconds in 10..17 {
            lives.ended(CLIENT, Duration::from_secs(seconds), at(0));
        }
        assert_eq!(lives.patience(CLIENT, at(0)), None);
        lives.ended(CLIENT, Duration::from_secs(9), at(0));
        assert_eq!(lives.patience(CLIENT, at(900)), Some(Duration::from_secs(9)));
        assert_eq!(lives.patience(CLIENT, at(901)), None);
        assert_eq!(lives.patience([10, 0, 0, 1].into(), at(0)), None, "another client");
    }

    #[test]
    fn one_in_ten_may_be_shorter_and_none_is_shorter_than_a_first_wait() {
        let mut lives = lives();
        for lived in 1..=20 {
            lives.ended(CLIENT, Duration::from_secs(lived), at(0));
        }
        assert_eq!(lives.patience(CLIENT, at(0)), Some(Duration::from_secs(2)));
        for _ in 0..32 {
            lives.ended(CLIENT, Duration::from_millis(5), at(0));
        }
        assert_eq!(lives.patience(CLIENT, at(0)), Some(SHORTEST));
    }

    #[test]
    fn a_reset_ends_a_life_and_an_acknowledgement_after_all_ends_the_conclusion() {
        let mut lives = lives();
        for slot in 0..8 {
            lives.separate(request(slot), CLIENT, at(0));
            lives.delivered(request(slot), Err(Failure::Reset), at(5));
        }
        assert_eq!(lives.patience(CLIENT, at(5)), Some(Duration::from_secs(5)));
        lives.separate(request(8), CLIENT, at(10));
        lives.delivered(request(8), Ok(()), at(12));
        assert!(lives.patience(CLIENT, at(12)).is_some(), "it was in time");
        lives.separate(request(9), CLIENT, at(20));
        lives.answered(request(9));
        lives.delivered(request(9), Ok(()), at(30));
        assert_eq!(lives.patience(CLIENT, at(30)), None);
        assert!(lives.order.is_empty() && lives.separate.is_empty() && lives.separate_order.is_empty());
    }

    #[test]
    fn tables_are_bounded() {
        let mut lives = lives();
        for number in 0..10_000u32 {
            let client = IpAddr::from(number.to_be_bytes());
            lives.ended(client, SHORTEST, at(0));
            lives.separate(request(number), client, at(0));
        }
        assert_eq!((lives.clients.len(), lives.order.len()), (MOST, MOST));
        assert_eq!((lives.separate.len(), lives.separate_order.len()), (MOST, MOST));
    }
}
