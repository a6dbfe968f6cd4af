//! Records while they are made, and until they are read. Their memory is used again and again.

use std::collections::VecDeque;

use coapway_endpoint::Trace;
use coapway_message::ExchangeId;

use crate::record::Record;

/// A path that took more bytes gives its memory back.
const LONGEST_KEPT: usize = 256;

/// Records move from place to complete to spare, each in the memory it was given first.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// By request slot.
    places: Vec<Place>,
    /// Not read yet, oldest first.
    complete: VecDeque<Box<Record>>,
    /// Being read.
    told: Option<Box<Record>>,
    #[expect(clippy::vec_box, reason = "records move from list to list")]
    spare: Vec<Box<Record>>,
    /// Memory for the exchanges of a record, which mostly are known only when it is complete.
    spare_traces: Vec<Vec<Trace>>,
}

/// What there is of a request that is not answered yet.
#[derive(Debug, Default)]
pub(crate) enum Place {
    /// Nothing: it is not forwarded.
    #[default]
    Empty,
    /// A record that is not kept.
    LeftOut,
    /// A record.
    Record(Box<Record>),
}

impl Drafts {
    fn put(&mut self, request: ExchangeId, what: Place) {
        let slot = request.slot as usize;
        if self.places.len() <= slot {
            self.places.resize_with(slot + 1, Place::default);
        }
        self.places[slot] = what;
    }

    /// The record of this request is not kept.
    pub(crate) fn leave_out(&mut self, request: ExchangeId) {
        self.put(request, Place::LeftOut);
    }

    /// Begins the record of this request. The one to describe it in may be an old one, without its
    /// exchanges.
    pub(crate) fn begin(&mut self, request: ExchangeId, describe: impl FnOnce(&mut Record)) {
        let mut record = self.spare.pop().unwrap_or_else(|| Box::new(Record::blank()));
        describe(&mut record);
        self.put(request, Place::Record(record));
    }

    /// The record of this request.
    pub(crate) fn get_mut(&mut self, request: ExchangeId) -> Option<&mut Record> {
        match self.places.get_mut(request.slot as usize)? {
            Place::Record(record) => Some(record),
            Place::Empty | Place::LeftOut => None,
        }
    }

    pub(crate) fn add_trace(&mut self, request: ExchangeId, trace: Trace) {
        let Some(Place::Record(record)) = self.places.get_mut(request.slot as usize) else { return };
        if record.traces.capacity() == 0 {
            record.traces = self.spare_traces.pop().unwrap_or_default();
        }
        record.traces.push(trace);
    }

    /// Takes out what there is of a request.
    pub(crate) fn take(&mut self, request: ExchangeId) -> Place {
        self.places.get_mut(request.slot as usize).map_or(Place::Empty, std::mem::take)
    }

    /// A record that says all it has to say.
    pub(crate) fn complete(&mut self, record: Box<Record>) {
        self.complete.push_back(record);
    }

    /// Moves on to the next complete record; says whether there is one.
    pub(crate) fn next_complete(&mut self) -> bool {
        if let Some(told) = self.told.take() {
            self.put_away(told);
        }
        self.told = self.complete.pop_front();
        self.told.is_some()
    }

    /// The complete record moved on to last.
    pub(crate) fn told(&self) -> Option<&Record> {
        self.told.as_deref()
    }

    fn put_away(&mut self, mut record: Box<Record>) {
        record.traces.clear();
        if record.traces.capacity() > 0 {
            self.spare_traces.push(std::mem::take(&mut record.traces));
        }
        if record.path.capacity() > LONGEST_KEPT {
            record.path = Vec::new();
        }
        self.spare.push(record);
    }
}
