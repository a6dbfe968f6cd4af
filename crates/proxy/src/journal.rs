//! Events and forward records, for whoever listens.

use std::collections::VecDeque;

use ahash::RandomState;
use coapway_endpoint::{Course, Peer};
use coapway_message::{Content, Evidence, ExchangeId};
use coapway_time::Instant;

use crate::alert::Alert;
use crate::cause::Cause;
use crate::drafts::{Drafts, Place};
use crate::event::Event;
use crate::late::Late;
use crate::record::{Exchanges, Record};
use crate::refusals::Sums;
use crate::sampling::Sampling;

/// What is listened to. What nobody listens to costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Every event.
    pub events: bool,
    /// Records of a share of forwards, and sums of answers without a forward.
    pub records: Option<Sampling>,
    /// Whether a record is held while its copies may still be acknowledged, so that it says how many were
    /// (`late`). Else each is told at its answer.
    pub late: bool,
}

#[derive(Debug)]
pub(crate) struct Journal {
    listening: Listening,
    events: VecDeque<Event>,
    drafts: Drafts,
    late: Late,
    next_record: u64,
    /// Answers without a record.
    refusals: Sums,
}

impl Journal {
    pub(crate) fn new(listening: Listening, hasher: RandomState) -> Self {
        Self {
            listening,
            events: VecDeque::new(),
            drafts: Drafts::default(),
            late: Late::new(hasher),
            next_record: 0,
            refusals: Sums::default(),
        }
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
        if before.records.is_some() == listening.records.is_some() {
            return;
        }
        self.tell_all(now);
        self.drafts.forget();
        if listening.records.is_some() {
            under_way.for_each(|request| self.drafts.leave_out(request));
        }
    }

    /// Whether somebody listens to events.
    pub(crate) const fn tells_events(&self) -> bool {
        self.listening.events
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

    pub(crate) fn has_records(&mut self) -> bool {
        self.drafts.has_complete()
    }

    pub(crate) fn records(&mut self) -> &[Box<Record>] {
        self.drafts.tell()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.refusals.due(), self.late.poll_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.refusals.due().is_some_and(|due| due <= now) {
            self.events.extend(self.refusals.take(now).map(Event::Refused));
        }
        while let Some(record) = self.late.expire(now) {
            self.drafts.complete(record);
        }
    }

    /// A message of ours was acknowledged that had been before, or that is over.
    pub(crate) fn acknowledged_again(&mut self, peer: Peer, message_id: u16) {
        if let Some(record) = self.late.acknowledged(peer, message_id) {
            self.drafts.complete(record);
        }
    }

    /// Tells of refusals although their period is not over, and of records that are held.
    pub(crate) fn tell_all(&mut self, now: Instant) {
        while let Some(record) = self.late.give_up() {
            self.drafts.complete(record);
        }
        let over = self.refusals.due().unwrap_or(now);
        self.events.extend(self.refusals.take(over).map(Event::Refused));
    }

    /// Begins the record of a request. One that is not kept is not begun.
    pub(crate) fn draft(&mut self, request: ExchangeId, describe: impl FnOnce(&mut Record)) {
        let Some(sampling) = self.listening.records else { return };
        let id = self.next_record;
        self.next_record += 1;
        if !sampling.keeps(id) {
            self.drafts.leave_out(request);
            return;
        }
        self.drafts.begin(request, |record| {
            describe(record);
            record.id = id;
        });
    }

    /// Adds to the record of a request that is not answered yet.
    pub(crate) fn note(&mut self, request: ExchangeId, add: impl FnOnce(&mut Record)) {
        if let Some(record) = self.drafts.get_mut(request) {
            add(record);
        }
    }

    pub(crate) fn trace(&mut self, request: ExchangeId, course: &Course<'_>) {
        self.drafts.add_trace(request, course);
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
        match self.drafts.take(request) {
            Place::Empty if self.listening.records.is_some() => self.refusals.add(code, cause, now),
            Place::Empty | Place::LeftOut => {}
            Place::Record(mut record) => {
                (record.code, record.cause, record.evidence, record.answered) = (code, cause, evidence, now);
                record.bytes_out = size(content);
                self.complete(record, now);
            }
        }
    }

    #[inline]
    fn complete(&mut self, mut record: Box<Record>, now: Instant) {
        if !matches!(record.exchanges, Exchanges::Any(_)) {
            record.late = Some(0);
            self.drafts.complete(record);
        } else if !self.listening.late {
            self.drafts.complete(record);
        } else if let Some(record) = self.late.hold(record, now) {
            self.drafts.complete(record);
        }
    }
}

/// Bytes of options and payload.
pub(crate) fn size(content: &Content<'_>) -> u32 {
    (content.options.as_encoded().len() + content.payload.len()) as u32
}
