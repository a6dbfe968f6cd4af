//! Tokens of the caller's in requests of ours.
//!
//! They are asked before our own, by (peer, token). After its exchange a token rests for
//! EXCHANGE_LIFETIME, counted from the deadline the exchange had: a late response must not answer
//! another request. Bounded; when it is full no token is free.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use coapway_message::ExchangeId;
use coapway_time::Instant;
use hashbrown::HashMap;

use super::peers::{PeerNumber, Peers};
use crate::parameters::TransmissionParameters;

/// Shorter ones are too easily guessed or used again, longer ones not understood everywhere.
const LENGTHS: RangeInclusive<usize> = 4..=8;
/// In use and resting together.
const MOST: usize = 1 << 18;

/// A token towards a peer; each use refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    token: u64,
    length: u8,
    peer: PeerNumber,
}

impl Key {
    /// `None` for a token that is not preserved.
    fn new(peer: PeerNumber, token: &[u8]) -> Option<Self> {
        let length = LENGTHS.contains(&token.len()).then_some(token.len() as u8)?;
        Some(Self { token: token.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), length, peer })
    }
}

#[derive(Clone, Copy, Debug)]
struct Use {
    /// The exchange, until it is over.
    live: Option<ExchangeId>,
    rests_until: Instant,
}

/// What a token of the caller's stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preserved {
    /// A request under way.
    Live(ExchangeId),
    /// A request that is over.
    Resting,
}

#[derive(Debug)]
pub(super) struct PreservedTokens {
    uses: HashMap<Key, Use, ahash::RandomState>,
    /// When to look at a use again, earliest first as far as deadlines are alike.
    rests: VecDeque<(Instant, Key)>,
    rest: Duration,
}

impl PreservedTokens {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        let rest = TransmissionParameters::default().exchange_lifetime();
        Self { uses: HashMap::with_hasher(hasher), rests: VecDeque::new(), rest }
    }

    /// Tokens in use or resting.
    pub(super) fn len(&self) -> usize {
        self.uses.len()
    }

    #[inline]
    pub(super) fn find(&self, peer: PeerNumber, token: &[u8]) -> Option<Preserved> {
        if self.uses.is_empty() {
            return None;
        }
        let found = self.uses.get(&Key::new(peer, token)?)?;
        Some(found.live.map_or(Preserved::Resting, Preserved::Live))
    }

    /// Whether a token may be used towards a peer, of whom nothing may be known.
    pub(super) fn is_free(&self, peer: Option<PeerNumber>, token: &[u8], now: Instant) -> bool {
        let known = peer.and_then(|peer| self.uses.get(&Key::new(peer, token)?));
        LENGTHS.contains(&token.len())
            && match known {
                Some(known) => known.live.is_none() && known.rests_until <= now,
                None => self.uses.len() < MOST,
            }
    }

    /// Gives a free token to an exchange that ends at `deadline` at the latest.
    pub(super) fn take(
        &mut self,
        peers: &mut Peers,
        peer: PeerNumber,
        token: &[u8],
        exchange: ExchangeId,
        deadline: Instant,
        now: Instant,
    ) {
        self.sweep(peers, now);
        let Some(key) = Key::new(peer, token) else { return };
        let rests_until = deadline + self.rest;
        self.rests.push_back((rests_until, key));
        if self.uses.insert(key, Use { live: Some(exchange), rests_until }).is_none() {
            peers.hold(peer);
        }
    }

    /// The exchange under this token is over.
    pub(super) fn end(&mut self, peer: PeerNumber, token: &[u8]) {
        if let Some(ended) = Key::new(peer, token).and_then(|key| self.uses.get_mut(&key)) {
            ended.live = None;
        }
    }

    /// The peers of all uses.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerNumber> {
        self.uses.keys().map(|key| key.peer)
    }

    /// Frees what has rested, a few at a time.
    fn sweep(&mut self, peers: &mut Peers, now: Instant) {
        for _ in 0..4 {
            let Some(&(at, _)) = self.rests.front() else { return };
            if at > now {
                return;
            }
            let Some((at, key)) = self.rests.pop_front() else { return };
            match self.uses.get(&key) {
                // Given out again since; a later entry stands for it.
                Some(known) if known.rests_until != at => {}
                Some(Use { live: Some(_), .. }) => {
                    let rests_until = now + self.rest;
                    if let Some(known) = self.uses.get_mut(&key) {
                        known.rests_until = rests_until;
                    }
                    self.rests.push_back((rests_until, key));
                }
                Some(_) => {
                    self.uses.remove(&key);
                    peers.release(key.peer);
                }
                None => {}
            }
        }
    }

    /// How many stand for a request under way.
    pub(super) fn check_invariants(&self, live: usize) {
        assert!(self.rests.len() >= self.uses.len(), "each use is looked at again");
        assert_eq!(self.uses.values().filter(|known| known.live.is_some()).count(), live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{Local, Peer};

    const EXCHANGE: ExchangeId = ExchangeId { slot: 1, generation: 0 };

    fn tokens() -> (PreservedTokens, Peers, [PeerNumber; 2]) {
        let hasher = || ahash::RandomState::with_seeds(1, 2, 3, 4);
        let mut peers = Peers::new(hasher());
        let numbers = [1, 2].map(|port| {
            let peer = Peer { local: Local::default(), remote: ([127, 0, 0, 1], port).into() };
            let sender = peers.sender(&peer);
            peers.add(&sender)
        });
        (PreservedTokens::new(hasher()), peers, numbers)
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_rests_after_use_and_is_free_towards_others() {
        let (mut tokens, mut peers, [first, second]) = tokens();
        assert!(tokens.is_free(Some(first), b"abcd", at(0)));
        tokens.take(&mut peers, first, b"abcd", EXCHANGE, at(30), at(0));
        assert_eq!(tokens.find(first, b"abcd"), Some(Preserved::Live(EXCHANGE)));
        assert_eq!(tokens.find(second, b"abcd"), None);
        assert!(!tokens.is_free(Some(first), b"abcd", at(0)) && tokens.is_free(Some(second), b"abcd", at(0)));
        assert!(tokens.is_free(None, b"abcd", at(0)), "nothing is known of a third");
        tokens.end(first, b"abcd");
        assert_eq!(tokens.find(first, b"abcd"), Some(Preserved::Resting));
        assert!(
            !tokens.is_free(Some(first), b"abcd", at(276)) && tokens.is_free(Some(first), b"abcd", at(277))
        );
        tokens.take(&mut peers, first, b"abcd", EXCHANGE, at(307), at(277));
        assert_eq!(tokens.find(first, b"abcd"), Some(Preserved::Live(EXCHANGE)));
        assert_eq!(tokens.find(first, b"\0abcd"), None, "it is another with a zero before it");
        tokens.check_invariants(1);
        assert!(tokens.peers().eq([first]));
    }

    #[test]
    fn only_4_to_8_bytes_are_preserved() {
        let (tokens, _, [peer, _]) = tokens();
        for length in 0..20 {
            let free = tokens.is_free(Some(peer), &vec![7; length], at(0));
            assert_eq!(free, (4..=8).contains(&length), "{length} bytes");
        }
    }

    #[test]
    fn it_is_bounded_and_gives_everything_back() {
        let (mut tokens, mut peers, [first, second]) = tokens();
        for number in 0..MOST as u32 {
            let token = number.to_be_bytes();
            tokens.take(&mut peers, first, &token, EXCHANGE, at(30), at(0));
            tokens.end(first, &token);
        }
        assert!(!tokens.is_free(Some(second), b"abcd", at(0)), "it is full");
        for number in 0..MOST as u32 {
            let token = (number % 1000).to_be_bytes();
            tokens.take(&mut peers, second, &token, EXCHANGE, at(330), at(300));
        }
        assert_eq!(tokens.len(), 1000);
        assert!(tokens.is_free(Some(second), b"abcd", at(300)));
        peers.check_invariants(tokens.peers(), std::iter::empty());
    }
}
