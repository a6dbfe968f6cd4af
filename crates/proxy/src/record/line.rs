//! A record as one line of JSON, as docs/record.md describes it.
//!
//! This is the largest part of what a record costs. It is therefore written in few pieces, each with
//! all the text that stands between two values.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{AnswerKind, Copy};
use coapway_message::{Evidence, Method};
use coapway_time::Instant;

use super::Record;
use super::cursor::Cursor;
use super::timestamps::Timestamp;
use crate::cause::Cause;

/// What a line tells beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'o> {
    /// The wall clock at receipt.
    pub timestamp: &'o Timestamp,
    /// The address behind the record's `listener`.
    pub listener: Option<SocketAddr>,
    /// Our port towards the origin.
    pub local_port: Option<u16>,
}

/// Above what is written of fields whose length is bounded, outside `attempts`.
const FIXED: usize = 1024;
/// Above what is written of one attempt.
const ATTEMPT: usize = 192;

impl Record {
    /// No line of this record takes more room, in bytes.
    pub fn longest_line(&self) -> usize {
        let copies = self.traces.iter().map(|trace| trace.copies.len()).sum::<usize>();
        let tokens = self.client_token.as_bytes().len() + self.upstream_token().len();
        // Of a string, a byte takes six; of a token, two.
        FIXED + ATTEMPT * copies + 6 * (self.upstream.len() + self.path.len()) + 2 * tokens
    }

    /// Writes the record as one line of JSON to the beginning of `bytes` and returns the line's length.
    ///
    /// Shape:  `bytes` are [`Record::longest_line`] or more; those behind the line mean nothing.
    /// Errors: `None` when they are fewer.
    pub fn write_line(&self, bytes: &mut [u8], outside: &Outside<'_>) -> Option<usize> {
        let room = bytes.len();
        let mut line = Cursor::new(bytes);
        self.write_client(&mut line, outside)?;
        self.write_request(&mut line, outside)?;
        self.write_attempts(&mut line)?;
        self.write_origin(&mut line)?;
        self.write_answer(&mut line)?;
        Some(room - line.left())
    }

    #[inline(always)]
    fn write_client(&self, line: &mut Cursor<'_>, outside: &Outside<'_>) -> Option<()> {
        line.constant(b"{\"ts\":\"")?;
        line.constant(outside.timestamp)?;
        line.constant(b"\",\"event\":\"forward\",\"id\":")?;
        line.number(self.id)?;
        line.constant(b",\"client\":\"")?;
        line.address(self.client)?;
        match outside.listener {
            Some(listener) => {
                line.constant(b"\",\"listener\":\"")?;
                line.address(listener)?;
                line.constant(b"\",\"upstream\":\"")?;
            }
            None => line.constant(b"\",\"listener\":null,\"upstream\":\"")?,
        }
        line.text(self.upstream.as_bytes())
    }

    #[inline(always)]
    fn write_request(&self, line: &mut Cursor<'_>, outside: &Outside<'_>) -> Option<()> {
        match self.origin() {
            Some(origin) => {
                line.constant(b"\",\"origin\":\"")?;
                line.address(origin)?;
                line.constant(b"\",\"local_port\":")?;
            }
            None => line.constant(b"\",\"origin\":null,\"local_port\":")?,
        }
        match outside.local_port {
            Some(port) => line.number(port.into())?,
            None => line.constant(b"null")?,
        }
        match Method::from_code(self.method) {
            Some(Method::Get) => line.constant(b",\"method\":\"GET\",\"path\":\"")?,
            method => {
                line.constant(b",\"method\":\"")?;
                line.text(method.map_or("", Method::name).as_bytes())?;
                line.constant(b"\",\"path\":\"")?;
            }
        }
        line.text(&self.path)?;
        line.constant(match self.confirmable {
            true => b"\",\"type\":\"con\",\"client_token\":\"",
            false => b"\",\"type\":\"non\",\"client_token\":\"",
        })?;
        line.hex(self.client_token.as_bytes())?;
        line.constant(b"\",\"upstream_token\":\"")?;
        line.hex(self.upstream_token())?;
        line.constant(b"\",\"client_mid\":")?;
        line.number(self.client_message_id.into())
    }

    /// An attempt lasts until the next copy or until the answer.
    #[inline(always)]
    fn write_attempts(&self, line: &mut Cursor<'_>) -> Option<()> {
        line.constant(b",\"attempts\":[")?;
        let mut before: Option<&Copy> = None;
        for trace in &self.traces {
            for (place, copy) in trace.copies.iter().enumerate() {
                match before {
                    None => line.constant(b"{\"mid\":")?,
                    Some(before) => {
                        write_wait(line, before, copy.sent)?;
                        line.constant(b"},{\"mid\":")?;
                    }
                }
                line.number(trace.message_id.into())?;
                match (before, place) {
                    (None, _) => line.constant(b",\"kind\":\"first\",\"at_ms\":")?,
                    (_, 0) => line.constant(b",\"kind\":\"reissue\",\"at_ms\":")?,
                    _ => line.constant(b",\"kind\":\"retransmission\",\"at_ms\":")?,
                }
                line.millis(self.micros(copy.sent))?;
                before = Some(copy);
            }
        }
        match before {
            Some(last) => {
                write_wait(line, last, self.answered)?;
                line.constant(b"}],\"retries\":")
            }
            None => line.constant(b"],\"retries\":"),
        }
    }

    #[inline(always)]
    fn write_origin(&self, line: &mut Cursor<'_>) -> Option<()> {
        line.number(self.retries() as u64)?;
        line.constant(b",\"first_ack_ms\":")?;
        self.write_moment(line, self.traces.iter().find_map(|trace| trace.first_ack))?;
        line.constant(b",\"acks\":")?;
        line.number(self.traces.iter().map(|trace| u64::from(trace.acks)).sum())?;
        match self.traces.last().and_then(|trace| trace.answer) {
            Some(AnswerKind::Piggybacked) => {
                line.constant(b",\"answer_kind\":\"piggybacked\",\"window\":")?;
            }
            Some(kind) => {
                line.constant(b",\"answer_kind\":\"")?;
                line.text(kind.name().as_bytes())?;
                line.constant(b"\",\"window\":")?;
            }
            None => line.constant(b",\"answer_kind\":null,\"window\":")?,
        }
        line.number(self.window.into())
    }

    #[inline(always)]
    fn write_answer(&self, line: &mut Cursor<'_>) -> Option<()> {
        line.constant(b",\"early_ack_ms\":")?;
        self.write_moment(line, self.early_ack)?;
        line.constant(b",\"queue_ms\":")?;
        line.millis(micros(self.queued))?;
        line.constant(b",\"cache\":\"bypass\",\"code\":\"")?;
        line.code(self.code.class(), self.code.detail())?;
        match (self.cause, self.evidence) {
            (Cause::Origin, None) => {
                line.constant(b"\",\"cause\":\"ok\",\"evidence\":null,\"total_ms\":")?;
            }
            (cause, evidence) => {
                line.constant(b"\",\"cause\":\"")?;
                line.text(cause.name().as_bytes())?;
                match evidence.map(Evidence::name) {
                    Some(evidence) => {
                        line.constant(b"\",\"evidence\":\"")?;
                        line.text(evidence.as_bytes())?;
                        line.constant(b"\",\"total_ms\":")?;
                    }
                    None => line.constant(b"\",\"evidence\":null,\"total_ms\":")?,
                }
            }
        }
        line.millis(self.micros(self.answered))?;
        line.constant(b",\"bytes_in\":")?;
        line.number(self.bytes_in.into())?;
        line.constant(b",\"bytes_out\":")?;
        line.number(self.bytes_out.into())?;
        line.constant(b"}\n")
    }

    #[inline(always)]
    fn write_moment(&self, line: &mut Cursor<'_>, moment: Option<Instant>) -> Option<()> {
        match moment {
            Some(at) => line.millis(self.micros(at)),
            None => line.constant(b"null"),
        }
    }

    /// From receipt until then.
    const fn micros(&self, at: Instant) -> u64 {
        at.as_micros().saturating_sub(self.received.as_micros())
    }

    fn upstream_token(&self) -> &[u8] {
        self.traces.last().map_or(&[], |trace| trace.token.as_bytes())
    }
}

/// How an attempt goes on behind the time of its copy.
#[inline(always)]
fn write_wait(line: &mut Cursor<'_>, copy: &Copy, until: Instant) -> Option<()> {
    line.constant(b",\"took_ms\":")?;
    line.millis(until.as_micros().saturating_sub(copy.sent.as_micros()))?;
    line.constant(b",\"rto_ms\":")?;
    line.millis(micros(copy.timeout))
}

const fn micros(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros() as u64)
}
