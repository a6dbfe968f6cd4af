//! Records as lines of JSON, as docs/record.md describes them.

use std::net::SocketAddr;

use coapway_time::Instant;

use super::Record;
use super::legs::Legs;
use super::timestamps::{Timestamp, Timestamps};

/// What a line tells beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'o> {
    /// The address behind the record's `listener`.
    pub listener: Option<SocketAddr>,
    /// The upstream's name.
    pub upstream: &'o str,
    /// Our port towards the origin.
    pub local_port: Option<u16>,
}

/// Writes records as lines, and keeps what the next ones may have in common with them.
#[derive(Debug)]
pub struct Lines {
    timestamps: Timestamps,
    legs: Legs,
}

impl Lines {
    /// Instants begin `start` µs after 1970.
    pub fn new(start: u64) -> Self {
        Self { timestamps: Timestamps::new(start), legs: Legs::new() }
    }

    /// An instant as the calendar has it.
    pub fn timestamp(&mut self, instant: Instant) -> &Timestamp {
        self.timestamps.at(instant)
    }

    /// Writes `record` as one line to the beginning of `bytes` and returns the line's length.
    ///
    /// Shape:  bytes behind the line mean nothing afterwards.
    /// Errors: `None` when there is too little room; [`Lines::room`] is enough.
    pub fn write(&mut self, record: &Record, outside: &Outside<'_>, bytes: &mut [u8]) -> Option<usize> {
        record.write(self.timestamps.at(record.received), &mut self.legs, outside, bytes)
    }

    /// So many bytes are enough for the line of this record.
    pub fn room(record: &Record, outside: &Outside<'_>) -> usize {
        record.room(outside.upstream)
    }
}
