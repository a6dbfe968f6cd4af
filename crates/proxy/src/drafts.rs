//! Records while they are made, and until they are read. Their memory is used again and again.

use coapway_endpoint::Course;
use coapway_message::ExchangeId;

use crate::record::Record;

/// Records move from place to complete to spare, each in the memory it was given first.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// By request slot.
    places: Vec<Place>,
    /// Answered, oldest first.
    #[expect(clippy::vec_box, reason = "records move from list to list")]
    complete: Vec<Box<Record>>,
    /// Whether those were handed out.
    are_told: bool,
    #[expect(clippy::vec_box, reason = "records move from list to list")]
    spare: Vec<Box<Record>>,
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
        match self.places.get_mut(slot) {
            Some(place) => *place = what,
            None => {
                self.places.resize_with(slot, Place::default);
                self.places.push(what);
            }
        }
    }

    /// The record of this request is not kept.
    pub(crate) fn leave_out(&mut self, request: ExchangeId) {
        self.put(request, Place::LeftOut);
    }

    /// Begins the record of this request. `describe` gets one that is blank but for what every
    /// request and answer has of its own.
    pub(crate) fn begin(&mut self, request: ExchangeId, describe: impl FnOnce(&mut Record)) {
        let mut record = self.spare.pop().unwrap_or_else(|| Box::new(Record::blank()));
        describe(&mut record);
        self.put(request, Place::Record(record));
    }

    /// Gives up the records of requests that are not answered.
    pub(crate) fn forget(&mut self) {
        self.places.clear();
    }

    /// The record of this request.
    pub(crate) fn get_mut(&mut self, request: ExchangeId) -> Option<&mut Record> {
        match self.places.get_mut(request.slot as usize)? {
            Place::Record(record) => Some(record),
            Place::Empty | Place::LeftOut => None,
        }
    }

    /// Adds how an exchange went.
    pub(crate) fn add_trace(&mut self, request: ExchangeId, course: &Course<'_>) {
        let Some(Place::Record(record)) = self.places.get_mut(request.slot as usize) else { return };
        record.exchanges.add(course, record.received);
    }

    /// Takes out what there is of a request.
    pub(crate) fn take(&mut self, request: ExchangeId) -> Place {
        self.places.get_mut(request.slot as usize).map_or(Place::Empty, std::mem::take)
    }

    /// A record that says all it has to say.
    pub(crate) fn complete(&mut self, record: Box<Record>) {
        self.put_told_away();
        self.complete.push(record);
    }

    /// Takes back what was handed out; says whether there is more.
    pub(crate) fn has_complete(&mut self) -> bool {
        self.put_told_away();
        !self.complete.is_empty()
    }

    /// Hands out the complete records, oldest first.
    pub(crate) fn tell(&mut self) -> &[Box<Record>] {
        self.are_told = true;
        &self.complete
    }

    /// Gives up what was handed out, but for the memory that others need as well.
    fn put_told_away(&mut self) {
        if std::mem::take(&mut self.are_told) {
            self.complete.iter_mut().for_each(|record| record.clear());
            self.spare.append(&mut self.complete);
        }
    }
}
