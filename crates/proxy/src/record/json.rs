//! The pieces of a line.
//!
//! Most records are of a forward with one copy and a piggybacked response; those have their own way,
//! on which much is known to be what it mostly is.

use std::time::Duration;

use coapway_endpoint::{AnswerKind, Copy, Trace};
use coapway_message::{Code, Method};
use coapway_time::Instant;

use super::Record;
use super::exchanges::{Exchanges, Few, Plain};
use super::legs::{self, Addresses, Legs, Way};
use super::line::Line;
use super::part::{Part, ROOM};
use super::timestamps::Timestamp;
use crate::cause::Cause;

/// Above what is written of one attempt.
const ATTEMPT: usize = 192;

/// What the attempts say together.
#[derive(Default)]
struct Sums<'r> {
    last: Option<&'r Copy>,
    copies: u64,
    first_ack: Option<(Instant, Option<u16>)>,
    acks: u64,
    answer: Option<AnswerKind>,
}

impl Record {
    /// Enough for a line of this record, in bytes.
    pub(super) fn room(&self, upstream: &str) -> usize {
        let copies = self.exchanges.copies();
        let traces = self.exchanges.traces();
        let token = traces.last().map_or(0, |trace| trace.token.as_bytes().len());
        let tokens = self.client_token.as_bytes().len() + token;
        // All parts with theirs; a byte of a name takes six at the most, one of a token two.
        4 * ROOM
            + legs::ROOM
            + ATTEMPT * copies
            + 6 * upstream.len()
            + self.path.as_bytes().len()
            + 2 * tokens
    }

    pub(super) fn write(
        &self,
        timestamp: &Timestamp,
        legs: &mut Legs,
        upstream: &str,
        addresses: Addresses<'_>,
        bytes: &mut [u8],
    ) -> Option<usize> {
        let room = bytes.len();
        let mut line = Line::new(bytes);
        let way = Way { listener: self.listener, upstream, origin: self.exchanges.last() };
        self.write_ends(&mut line, timestamp, legs, &way, addresses)?;
        line.plain(self.path.as_bytes())?;
        match (Few::new(self.client_token.as_bytes()), self.plain()) {
            (Some(client), Some(plain)) => {
                let mut part = line.part()?;
                self.write_type(&mut part);
                part.hex(client);
                part.constant(b"\",\"upstream_token\":\"");
                part.hex(plain.token);
                self.write_message_id(&mut part);
                self.write_plain(&mut part, plain);
                let length = part.length();
                line.advance(length)?;
            }
            _ => self.write_any(&mut line)?,
        }
        Some(room - line.left())
    }

    /// Who asked whom.
    #[inline(always)]
    fn write_ends(
        &self,
        line: &mut Line<'_>,
        timestamp: &Timestamp,
        legs: &mut Legs,
        way: &Way<'_>,
        addresses: Addresses<'_>,
    ) -> Option<()> {
        let mut part = line.part()?;
        part.constant(b"{\"ts\":\"");
        part.constant(timestamp);
        part.constant(b"\",\"event\":\"forward\",\"id\":");
        part.number(self.id);
        part.constant(b",\"client\":\"");
        part.address(&self.client);
        match legs.text(way, addresses) {
            Some((text, length)) => {
                part.long_beginning(text, length);
                self.write_method(&mut part);
                let length = part.length();
                line.advance(length)
            }
            None => {
                let length = part.length();
                line.advance(length)?;
                legs::write(line, way, addresses)?;
                let mut part = line.part()?;
                self.write_method(&mut part);
                let length = part.length();
                line.advance(length)
            }
        }
    }

    #[inline(always)]
    fn write_method(&self, part: &mut Part<'_>) {
        if self.method == Code::GET {
            part.constant(b",\"method\":\"GET\",\"path\":\"");
        } else {
            part.constant(b",\"method\":\"");
            part.word(Method::from_code(self.method).map_or("", Method::name));
            part.constant(b"\",\"path\":\"");
        }
    }

    #[inline(always)]
    fn write_type(&self, part: &mut Part<'_>) {
        part.constant(match self.confirmable {
            true => b"\",\"type\":\"con\",\"client_token\":\"",
            false => b"\",\"type\":\"non\",\"client_token\":\"",
        });
    }

    #[inline(always)]
    fn write_message_id(&self, part: &mut Part<'_>) {
        part.constant(b"\",\"client_mid\":");
        part.short(self.client_message_id);
    }

    /// The exchange of a forward for which [`Record::write_plain`] is right.
    #[inline(always)]
    fn plain(&self) -> Option<&Plain> {
        let Exchanges::Plain(plain) = &self.exchanges else { return None };
        let is_plain = plain.answered == self.answered
            && self.late == Some(0)
            && self.early_ack.is_none()
            && self.queued.is_zero()
            && self.cause == Cause::Origin
            && self.evidence.is_none();
        is_plain.then_some(plain)
    }

    #[inline(always)]
    fn write_plain(&self, part: &mut Part<'_>, plain: &Plain) {
        part.constant(b",\"attempts\":[{\"mid\":");
        part.short(plain.message_id);
        part.constant(b",\"kind\":\"first\",\"at_ms\":0.000,\"took_ms\":");
        let start = part.length();
        part.millis(self.micros(self.answered));
        // Also the time of the Acknowledgement, and of everything.
        let (took, length) = part.since(start);
        part.constant(b",\"rto_ms\":");
        part.millis(micros(plain.timeout));
        part.constant(b"}],\"retries\":0,\"first_ack_ms\":");
        part.beginning(&took, length);
        part.constant(b",\"first_ack_mid\":");
        part.short(plain.message_id);
        part.constant(b",\"acks\":1,\"late\":0,\"answer_kind\":\"piggybacked\",\"window\":");
        part.number(self.window.into());
        part.constant(b",\"early_ack_ms\":null,\"queue_ms\":0.000,\"cache\":\"bypass\",\"code\":\"");
        part.code(self.code.class(), self.code.detail());
        part.constant(b"\",\"cause\":\"ok\",\"evidence\":null,\"total_ms\":");
        part.beginning(&took, length);
        self.write_sizes(part);
    }

    /// All behind the path, whatever happened.
    #[inline(never)]
    fn write_any(&self, line: &mut Line<'_>) -> Option<()> {
        let traces = self.exchanges.traces();
        let mut part = line.part()?;
        self.write_type(&mut part);
        let length = part.length();
        line.advance(length)?;
        line.hex(self.client_token.as_bytes())?;
        line.plain(b"\",\"upstream_token\":\"")?;
        line.hex(traces.last().map_or(&[], |trace| trace.token.as_bytes()))?;
        let mut part = line.part()?;
        self.write_message_id(&mut part);
        part.constant(b",\"attempts\":[");
        let length = part.length();
        line.advance(length)?;
        let sums = self.write_attempts(line, &traces)?;
        let mut part = line.part()?;
        self.write_answer(&mut part, &sums);
        let length = part.length();
        line.advance(length)
    }

    /// The attempts, the last one without its end.
    fn write_attempts<'t>(&self, line: &mut Line<'_>, traces: &'t [Trace]) -> Option<Sums<'t>> {
        let mut sums = Sums::default();
        for trace in traces {
            sums.first_ack = sums.first_ack.or(trace.first_ack.map(|at| (at, trace.first_ack_id)));
            sums.acks += u64::from(trace.acks);
            sums.answer = trace.answer;
            let mut is_first = true;
            for copy in &trace.copies {
                let mut part = line.part()?;
                if let Some(before) = sums.last {
                    write_end(&mut part, before, copy.sent);
                    part.constant(b",");
                }
                part.constant(b"{\"mid\":");
                part.short(copy.message_id);
                match (sums.last, is_first) {
                    (None, _) => part.constant(b",\"kind\":\"first\",\"at_ms\":"),
                    (_, true) => part.constant(b",\"kind\":\"reissue\",\"at_ms\":"),
                    (_, false) => part.constant(b",\"kind\":\"retransmission\",\"at_ms\":"),
                }
                part.millis(self.micros(copy.sent));
                let length = part.length();
                line.advance(length)?;
                (sums.last, is_first) = (Some(copy), false);
                sums.copies += 1;
            }
        }
        Some(sums)
    }

    fn write_answer(&self, part: &mut Part<'_>, sums: &Sums<'_>) {
        if let Some(last) = sums.last {
            write_end(part, last, self.answered);
        }
        part.constant(b"],\"retries\":");
        part.number(sums.copies.saturating_sub(1));
        part.constant(b",\"first_ack_ms\":");
        self.write_moment(part, sums.first_ack.map(|(at, _)| at));
        part.constant(b",\"first_ack_mid\":");
        match sums.first_ack.and_then(|(_, message_id)| message_id) {
            Some(message_id) => part.short(message_id),
            None => part.constant(b"null"),
        }
        part.constant(b",\"acks\":");
        part.number(sums.acks);
        match self.late {
            Some(late) => {
                part.constant(b",\"late\":");
                part.number(late.into());
            }
            None => part.constant(b",\"late\":null"),
        }
        match sums.answer {
            Some(AnswerKind::Piggybacked) => {
                part.constant(b",\"answer_kind\":\"piggybacked\",\"window\":");
            }
            Some(kind) => {
                part.constant(b",\"answer_kind\":\"");
                part.word(kind.name());
                part.constant(b"\",\"window\":");
            }
            None => part.constant(b",\"answer_kind\":null,\"window\":"),
        }
        part.number(self.window.into());
        part.constant(b",\"early_ack_ms\":");
        self.write_moment(part, self.early_ack);
        part.constant(b",\"queue_ms\":");
        part.millis(micros(self.queued));
        part.constant(b",\"cache\":\"bypass\",\"code\":\"");
        part.code(self.code.class(), self.code.detail());
        match (self.cause, self.evidence) {
            (Cause::Origin, None) => part.constant(b"\",\"cause\":\"ok\",\"evidence\":null,\"total_ms\":"),
            (cause, evidence) => {
                part.constant(b"\",\"cause\":\"");
                part.word(cause.name());
                match evidence {
                    Some(evidence) => {
                        part.constant(b"\",\"evidence\":\"");
                        part.word(evidence.name());
                        part.constant(b"\",\"total_ms\":");
                    }
                    None => part.constant(b"\",\"evidence\":null,\"total_ms\":"),
                }
            }
        }
        part.millis(self.micros(self.answered));
        self.write_sizes(part);
    }

    #[inline(always)]
    fn write_sizes(&self, part: &mut Part<'_>) {
        part.constant(b",\"bytes_in\":");
        part.number(self.bytes_in.into());
        part.constant(b",\"bytes_out\":");
        part.number(self.bytes_out.into());
        part.constant(b"}\n");
    }

    fn write_moment(&self, part: &mut Part<'_>, moment: Option<Instant>) {
        match moment {
            Some(at) => part.millis(self.micros(at)),
            None => part.constant(b"null"),
        }
    }

    /// From receipt until then.
    const fn micros(&self, at: Instant) -> u64 {
        at.as_micros().saturating_sub(self.received.as_micros())
    }
}

/// The end of an attempt, which lasts until the next copy or until the answer.
fn write_end(part: &mut Part<'_>, copy: &Copy, until: Instant) {
    part.constant(b",\"took_ms\":");
    part.millis(until.as_micros().saturating_sub(copy.sent.as_micros()));
    part.constant(b",\"rto_ms\":");
    part.millis(micros(copy.timeout()));
    part.constant(b"}");
}

/// Durations here are shorter than half a million years.
const fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
