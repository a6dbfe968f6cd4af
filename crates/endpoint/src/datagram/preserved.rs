//! Tokens of the caller's in requests of ours.
//!
//! They are asked before our own, by (peer, token). After its exchange a token rests for
//! EXCHANGE_LIFETIME, counted from the deadline the exchange had: a late response must not answer
//! another request. Bounded; when it is full no token is free.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use coapway_message::{ExchangeId, Token};
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::parameters::TransmissionParameters;
use crate::peer::Peer;

/// Shorter ones are too easily guessed or used again, longer ones not understood everywhere.
const LENGTHS: RangeInclusive<usize> = 4..=8;
/// In use and resting together.
const MOST: usize = 1 << 18;

type Key = (Peer, Token);

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

    pub(super) fn find(&self, peer: &Peer, token: &[u8]) -> Option<Preserved> {
        if self.uses.is_empty() || !LENGTHS.contains(&token.len()) {
            return None;
        }
        let found = self.uses.get(&(*peer, Token::new(token)))?;
        Some(found.live.map_or(Preserved::Resting, Preserved::Live))
    }

    pub(super) fn is_free(&self, peer: &Peer, token: &[u8], now: Instant) -> bool {
        LENGTHS.contains(&token.len())
            && match self.uses.get(&(*peer, Token::new(token))) {
                Some(known) => known.live.is_none() && known.rests_until <= now,
                None => self.uses.len() < MOST,
            }
    }

    /// Gives a free token to an exchange that ends at `deadline` at the latest.
    pub(super) fn take(
        &mut self,
        peer: Peer,
        token: &Token,
        exchange: ExchangeId,
        deadline: Instant,
        now: Instant,
    ) {
        self.sweep(now);
        let rests_until = deadline + self.rest;
        let key = (peer, token.clone());
        self.rests.push_back((rests_until, key.clone()));
        self.uses.insert(key, Use { live: Some(exchange), rests_until });
    }

    /// The exchange under this token is over.
    pub(super) fn end(&mut self, peer: Peer, token: &Token) {
        if let Some(ended) = self.uses.get_mut(&(peer, token.clone())) {
            ended.live = None;
        }
    }

    /// Frees what has rested, a few at a time.
    fn sweep(&mut self, now: Instant) {
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
                Some(_) => drop(self.uses.remove(&key)),
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
    use crate::peer::{Local, SocketId};

    const EXCHANGE: ExchangeId = ExchangeId { slot: 1, generation: 0 };

    fn peer(port: u16) -> Peer {
        Peer { local: Local { socket: SocketId(0), address: None }, remote: ([127, 0, 0, 1], port).into() }
    }

    fn tokens() -> PreservedTokens {
        PreservedTokens::new(ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_rests_after_use_and_is_free_towards_others() {
        let mut tokens = tokens();
        let token = Token::new(b"abcd");
        assert!(tokens.is_free(&peer(1), b"abcd", at(0)));
        tokens.take(peer(1), &token, EXCHANGE, at(30), at(0));
        assert_eq!(tokens.find(&peer(1), b"abcd"), Some(Preserved::Live(EXCHANGE)));
        assert_eq!(tokens.find(&peer(2), b"abcd"), None);
        assert!(!tokens.is_free(&peer(1), b"abcd", at(0)) && tokens.is_free(&peer(2), b"abcd", at(0)));
        tokens.end(peer(1), &token);
        assert_eq!(tokens.find(&peer(1), b"abcd"), Some(Preserved::Resting));
        assert!(!tokens.is_free(&peer(1), b"abcd", at(276)) && tokens.is_free(&peer(1), b"abcd", at(277)));
        tokens.take(peer(1), &token, EXCHANGE, at(307), at(277));
        assert_eq!(tokens.find(&peer(1), b"abcd"), Some(Preserved::Live(EXCHANGE)));
        tokens.check_invariants(1);
    }

    #[test]
    fn only_4_to_8_bytes_are_preserved() {
        for length in 0..20 {
            let free = tokens().is_free(&peer(1), &vec![7; length], at(0));
            assert_eq!(free, (4..=8).contains(&length), "{length} bytes");
        }
    }

    #[test]
    fn it_is_bounded_and_gives_everything_back() {
        let mut tokens = tokens();
        for number in 0..MOST as u32 {
            let token = Token::new(&number.to_be_bytes());
            tokens.take(peer(1), &token, EXCHANGE, at(30), at(0));
            tokens.end(peer(1), &token);
        }
        assert!(!tokens.is_free(&peer(2), b"abcd", at(0)), "it is full");
        for number in 0..MOST as u32 {
            tokens.take(peer(2), &Token::new(&(number % 1000).to_be_bytes()), EXCHANGE, at(330), at(300));
        }
        assert_eq!(tokens.len(), 1000);
        assert!(tokens.is_free(&peer(2), b"abcd", at(300)));
    }
}
