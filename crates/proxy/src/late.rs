//! Records of answered requests whose last copies may still be acknowledged.
//!
//! What comes after the answer tells loss from lateness: a copy that nobody had acknowledged by then was lost,
//! or its Acknowledgement is on its way. So such a record is held for a while, and says how many came (`late`).
//! All others are told at once.

use std::collections::VecDeque;
use std::time::Duration;

use ahash::RandomState;
use coapway_endpoint::Peer;
use coapway_message::Failure;
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::apart::{Key, LEAST_WATCH};
use crate::cause::Cause;
use crate::record::{Exchanges, Record};

/// So many are held at a time; of further ones it is not known what came late.
const MOST: usize = 1024;
/// None is held for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// Records that are held, oldest first.
#[derive(Debug)]
pub(crate) struct Late {
    held: VecDeque<Option<Held>>,
    /// The number of the first of them.
    first: u64,
    /// By the messages whose Acknowledgements are awaited.
    by_message: HashMap<Key, u64, RandomState>,
    /// When each ends, oldest first; one that ends sooner than one before it ends with that.
    until: VecDeque<Instant>,
}

#[derive(Debug)]
struct Held {
    record: Box<Record>,
    /// Acknowledgements that are still missing.
    missing: u32,
}

impl Late {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            held: VecDeque::new(),
            first: 0,
            by_message: HashMap::with_hasher(hasher),
            until: VecDeque::new(),
        }
    }

    /// Holds a record whose answer left now, if something is still to come and there is room; else gives it
    /// back.
    pub(crate) fn hold(&mut self, mut record: Box<Record>, now: Instant) -> Option<Box<Record>> {
        let (missing, wait) = missing(&record);
        if missing == 0 {
            record.late = Some(0);
            return Some(record);
        }
        if self.held.len() >= MOST {
            return Some(record);
        }
        record.late = Some(0);
        let number = self.first + self.held.len() as u64;
        for key in keys(&record) {
            self.by_message.insert(key, number);
        }
        let until = now + wait.clamp(LEAST_WATCH, LONGEST);
        self.until.push_back(self.until.back().map_or(until, |&before| until.max(before)));
        self.held.push_back(Some(Held { record, missing }));
        None
    }

    /// A message was acknowledged that is over. Gives back the record that has waited for it, when nothing is
    /// missing any more.
    pub(crate) fn acknowledged(&mut self, peer: Peer, message_id: u16) -> Option<Box<Record>> {
        let number = *self.by_message.get(&Key { peer, message_id })?;
        let place = self.held.get_mut(usize::try_from(number - self.first).ok()?)?;
        let held = place.as_mut()?;
        held.record.late = held.record.late.map(|late| late + 1);
        held.missing -= 1;
        if held.missing > 0 {
            return None;
        }
        let record = place.take().map(|held| held.record);
        if let Some(record) = &record {
            self.forget(record, number);
        }
        record
    }

    /// When [`Late::expire`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.until.front().copied()
    }

    /// The next record whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Box<Record>> {
        while self.until.front().is_some_and(|&until| until <= now) {
            if let Some(record) = self.next() {
                return Some(record);
            }
        }
        None
    }

    /// The next record although its time is not over: what comes late is not known.
    pub(crate) fn give_up(&mut self) -> Option<Box<Record>> {
        while !self.held.is_empty() {
            if let Some(mut record) = self.next() {
                record.late = None;
                return Some(record);
            }
        }
        None
    }

    fn next(&mut self) -> Option<Box<Record>> {
        self.until.pop_front();
        let held = self.held.pop_front()?;
        let number = self.first;
        self.first += 1;
        let record = held?.record;
        self.forget(&record, number);
        Some(record)
    }

    fn forget(&mut self, record: &Record, number: u64) {
        for key in keys(record) {
            if self.by_message.get(&key) == Some(&number) {
                self.by_message.remove(&key);
            }
        }
    }
}

/// Acknowledgements that may still come, and how long the last copy's is waited for.
fn missing(record: &Record) -> (u32, Duration) {
    let Exchanges::Any(traces) = &record.exchanges else { return (0, Duration::ZERO) };
    if matches!(record.cause, Cause::Failed(Failure::Unreachable | Failure::Reset)) {
        return (0, Duration::ZERO);
    }
    let confirmable = traces.iter().filter(|trace| trace.confirmable);
    confirmable.fold((0, Duration::ZERO), |(missing, wait), trace| {
        let last = trace.copies.last().map_or(Duration::ZERO, |copy| copy.timeout());
        (missing + (trace.copies.len() as u32).saturating_sub(trace.acks), wait.max(last))
    })
}

/// The messages in which copies left.
fn keys(record: &Record) -> impl Iterator<Item = Key> {
    let traces = match &record.exchanges {
        Exchanges::Any(traces) => &traces[..],
        Exchanges::None | Exchanges::Plain(_) => &[],
    };
    traces.iter().filter(|trace| trace.confirmable).flat_map(|trace| {
        trace.copies.iter().map(|copy| Key { peer: trace.peer, message_id: copy.message_id })
    })
}

#[cfg(test)]
mod tests;
