//! Events and forward records, for whoever listens.

use std::collections::{BTreeSet, VecDeque};

use coapway_endpoint::Trace;
use coapway_message::{Content, Evidence, ExchangeId};
use coapway_time::Instant;

use crate::alert::Alert;
use crate::cause::Cause;
use crate::event::Event;
use crate::record::Record;
use crate::refusals::Sums;

/// What is listened to. What nobody listens to costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Every event but records.
    pub events: bool,
    /// A record per forward.
    pub records: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Journal {
    listening: Listening,
    events: VecDeque<Event>,
    /// Records of requests that are not answered yet, by request slot.
    drafts: Vec<Option<Box<Record>>>,
    next_record: u64,
    /// Answers without a record.
    refusals: Sums,
    /// Slots of requests that were under way when recording began.
    unrecorded: BTreeSet<u32>,
}

impl Journal {
    pub(crate) fn new(listening: Listening) -> Self {
        Self { listening, ..Self::default() }
    }

    /// Something else is listened to from now on; `under_way` are the requests that are not answered.
    /// Of those there will be no records where recording begins now or ends.
    pub(crate) fn listen(
        &mut self,
        listening: Listening,
        under_way: impl Iterator<Item = ExchangeId>,
        now: Instant,
    ) {
        let before = std::mem::replace(&mut self.listening, listening);
        if before.records == listening.records {
            return;
        }
        self.tell_refusals(now);
        self.drafts.clear();
        self.unrecorded = under_way.filter(|_| listening.records).map(|request| request.slot).collect();
    }

    pub(crate) const fn records(&self) -> bool {
        self.listening.records
    }

    pub(crate) fn event(&mut self, event: impl FnOnce() -> Event) {
        if self.listening.events {
            self.events.push_back(event());
        }
    }

    /// Rare enough to be told whoever listens.
    pub(crate) fn alert(&mut self, alert: Alert) {
        self.events.push_back(Event::Alert(alert));
    }

    pub(crate) fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.refusals.due()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.refusals.due().is_some_and(|due| due <= now) {
            self.events.extend(self.refusals.take(now).map(Event::Refused));
        }
    }

    /// Tells of refusals although their period is not over.
    pub(crate) fn tell_refusals(&mut self, now: Instant) {
        let over = self.refusals.due().unwrap_or(now);
        self.events.extend(self.refusals.take(over).map(Event::Refused));
    }

    pub(crate) fn draft(&mut self, request: ExchangeId, record: impl FnOnce() -> Record) {
        if !self.listening.records {
            return;
        }
        let slot = request.slot as usize;
        if self.drafts.len() <= slot {
            self.drafts.resize_with(slot + 1, || None);
        }
        let mut record = Box::new(record());
        record.id = self.next_record;
        self.next_record += 1;
        self.drafts[slot] = Some(record);
    }

    /// Adds to the record of a request that is not answered yet.
    pub(crate) fn note(&mut self, request: ExchangeId, add: impl FnOnce(&mut Record)) {
        if let Some(Some(record)) = self.drafts.get_mut(request.slot as usize) {
            add(record);
        }
    }

    pub(crate) fn trace(&mut self, request: ExchangeId, trace: Trace) {
        self.note(request, |record| {
            record.origin = Some(trace.peer.remote);
            record.local_port = Some(trace.peer.local.socket.0);
            record.traces.push(trace);
        });
    }

    pub(crate) fn answered(
        &mut self,
        request: ExchangeId,
        content: &Content<'_>,
        cause: Cause,
        evidence: Option<Evidence>,
        now: Instant,
    ) {
        let code = content.code;
        self.event(|| Event::Answered { request, code, cause, evidence });
        let draft = self.drafts.get_mut(request.slot as usize).and_then(Option::take);
        let Some(mut record) = draft else {
            if !self.unrecorded.remove(&request.slot) && self.listening.records {
                self.refusals.add(code, cause, now);
            }
            return;
        };
        (record.code, record.cause, record.evidence, record.answered) = (code, cause, evidence, now);
        record.bytes_out = size(content);
        self.events.push_back(Event::Forwarded(record));
    }
}

/// Bytes of options and payload.
pub(crate) fn size(content: &Content<'_>) -> u32 {
    (content.options.as_encoded().len() + content.payload.len()) as u32
}
