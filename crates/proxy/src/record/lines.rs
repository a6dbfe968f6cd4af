//! Records as lines of JSON, as docs/record.md describes them.

use std::net::SocketAddr;

use coapway_endpoint::SocketId;
use coapway_time::Instant;

use super::Record;
use super::legs::Legs;
use super::timestamps::{Timestamp, Timestamps};

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
    /// Shape:  `upstream` is the name of the record's upstream; `addresses` knows the addresses of
    ///         sockets, each of which stays what it is. Bytes behind the line mean nothing afterwards.
    /// Errors: `None` when there is too little room; [`Lines::room`] is enough.
    pub fn write(
        &mut self,
        record: &Record,
        upstream: &str,
        addresses: &dyn Fn(SocketId) -> Option<SocketAddr>,
        bytes: &mut [u8],
    ) -> Option<usize> {
        record.write(self.timestamps.at(record.received), &mut self.legs, upstream, addresses, bytes)
    }

    /// So many bytes are enough for the line of this record.
    pub fn room(record: &Record, upstream: &str) -> usize {
        record.room(upstream)
    }
}
