//! The good requests: what was asked, what came back, what is to be repeated.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::coap::{self, ACK, CHANGED, CON, CONTENT, EMPTY, Message, PAYLOAD_MARKER, POST, RST};
use crate::hostile::requests::write_path;
use crate::statistics::Latencies;

/// ACK_TIMEOUT and MAX_RETRANSMIT of RFC 7252 §4.8.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RETRANSMIT: u8 = 4;
/// How long a client waits for a separate response.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of the requests that were issued in one phase.
#[derive(Default)]
pub(crate) struct Tally {
    /// Issued.
    pub(crate) sent: u64,
    /// Answered once, and rightly.
    pub(crate) right: u64,
    /// Of which after the client had repeated them.
    pub(crate) repeated: u64,
    /// Copies beside the first.
    pub(crate) copies: u64,
    /// Without an answer.
    pub(crate) unanswered: u64,
    /// Of which were acknowledged.
    pub(crate) forsaken: u64,
    /// Wrong answers, second answers, and answers to nothing, in words.
    pub(crate) faults: BTreeMap<String, u64>,
    /// From the first copy to the answer.
    pub(crate) latencies: Latencies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting {
        repeat_at: Instant,
        timeout: Duration,
    },
    Acknowledged {
        until: Instant,
    },
    /// By a message of this type and Message ID.
    Answered(u8, u16),
    /// Wrongly, or not at all.
    Over,
}

struct Request {
    client: u16,
    phase: usize,
    message_id: u16,
    sent: Instant,
    copies: u8,
    state: State,
}

/// What is asked for.
pub(crate) enum Asked {
    /// Half are GET by Proxy-Uri from this origin, half POST by a reverse route.
    Mixed(SocketAddr),
    /// All are GET by Proxy-Uri, those of each phase from an origin of its own.
    ByPhase(Vec<SocketAddr>),
}

/// All requests of a run.
pub(crate) struct Requests {
    asked: Asked,
    mark: u32,
    /// How many each client has made.
    made: Vec<u16>,
    requests: Vec<Request>,
    open: Vec<u32>,
    tallies: Vec<Tally>,
}

impl Requests {
    /// None so far. `mark` tells this run's requests from another's.
    pub(crate) fn new(asked: Asked, mark: u32, clients: u16, phases: usize) -> Self {
        let tallies = std::iter::repeat_with(Tally::default).take(phases).collect();
        let made = vec![0; clients.into()];
        Self { asked, mark, made, requests: Vec::new(), open: Vec::new(), tallies }
    }

    /// A new request of the client whose turn it is: its number and the client; send it with [`Self::write`].
    pub(super) fn issue(&mut self, phase: usize, now: Instant) -> (u32, u16) {
        let client = (self.requests.len() % self.made.len()) as u16;
        (self.issue_by(client, phase, now), client)
    }

    /// A new request of a client: its number, which counts up from 0; send it with [`Self::write`].
    pub(crate) fn issue_by(&mut self, client: u16, phase: usize, now: Instant) -> u32 {
        let sequence = self.requests.len() as u32;
        // Each client counts its own up, from a start of its own.
        let made = &mut self.made[usize::from(client)];
        let message_id = (self.mark as u16).wrapping_add(client.wrapping_mul(977)).wrapping_add(*made);
        *made = made.wrapping_add(1);
        let timeout = ACK_TIMEOUT + Duration::from_millis(u64::from(sequence.wrapping_mul(7919) % 1000));
        let state = State::Waiting { repeat_at: now + timeout, timeout };
        self.requests.push(Request { client, phase, message_id, sent: now, copies: 0, state });
        self.open.push(sequence);
        self.tally(phase).sent += 1;
        sequence
    }

    /// The datagram of a request: a GET by Proxy-Uri, or a POST by a reverse route.
    pub(crate) fn write(&self, sequence: u32, out: &mut Vec<u8>) {
        let Some(request) = self.requests.get(sequence as usize) else { return };
        let (token, name) = (sequence.to_be_bytes(), self.name(sequence));
        if self.is_post(sequence) {
            out.clear();
            coap::write_head(out, CON, POST, request.message_id, &token);
            write_path(out, &[b"good", name.as_bytes()]);
            out.push(PAYLOAD_MARKER);
            out.extend(b"22.5");
        } else {
            let origin = match &self.asked {
                Asked::Mixed(origin) => Some(origin),
                Asked::ByPhase(origins) => origins.get(request.phase),
            };
            let Some(origin) = origin else { return };
            let uri = format!("coap://{origin}/bench/{name}");
            coap::write_get(out, request.message_id, token, uri.as_bytes());
        }
    }

    /// A datagram came to a client; returns the Message ID it has to acknowledge.
    pub(crate) fn take(&mut self, client: u16, datagram: &[u8], phase: usize, now: Instant) -> Option<u16> {
        let Some(message) = Message::parse(datagram) else {
            self.fault(phase, "no CoAP message".into());
            return None;
        };
        let acknowledge = (message.kind == CON).then_some(message.message_id);
        if message.code == EMPTY {
            self.take_empty(client, &message, phase, now);
            return acknowledge;
        }
        let sequence = message.token.try_into().ok().map(u32::from_be_bytes);
        let known = sequence.and_then(|sequence| {
            let request = self.requests.get_mut(sequence as usize)?;
            (request.client == client).then_some((sequence, request))
        });
        let Some((sequence, request)) = known else {
            self.fault(phase, format!("{} to no request", coap::printed(message.code)));
            return acknowledge;
        };
        let (phase, latency, repeated) = (request.phase, now - request.sent, request.copies > 0);
        let fits = message.kind != ACK || message.message_id == request.message_id;
        let before = request.state;
        if let State::Answered(kind, message_id) = before {
            // The same answer again is the reply to a repeat, or the copy of a separate response.
            if (kind, message_id) != (message.kind, message.message_id) {
                self.fault(phase, "a second answer".into());
            }
            return acknowledge;
        }
        if before == State::Over {
            return acknowledge;
        }
        let code = if self.is_post(sequence) { CHANGED } else { CONTENT };
        let is_right = fits && message.code == code && message.payload == self.name(sequence).as_bytes();
        let state = if is_right { State::Answered(message.kind, message.message_id) } else { State::Over };
        if let Some(request) = self.requests.get_mut(sequence as usize) {
            request.state = state;
        }
        if is_right {
            let tally = self.tally(phase);
            tally.right += 1;
            tally.repeated += u64::from(repeated);
            tally.latencies.push(latency);
        } else {
            let text = String::from_utf8_lossy(message.payload).chars().take(40).collect::<String>();
            self.fault(phase, format!("{} {text:?}", coap::printed(message.code)));
        }
        acknowledge
    }

    fn take_empty(&mut self, client: u16, message: &Message<'_>, phase: usize, now: Instant) {
        // A client's Message IDs count up, and few of its requests are open.
        let requests = &mut self.requests;
        let found = self.open.iter().rev().find(|&&sequence| {
            let request = requests.get(sequence as usize);
            request.is_some_and(|it| it.client == client && it.message_id == message.message_id)
        });
        let request = found.and_then(|&sequence| requests.get_mut(sequence as usize));
        match (message.kind, request) {
            (ACK, Some(request)) if matches!(request.state, State::Waiting { .. }) => {
                request.state = State::Acknowledged { until: now + PATIENCE };
            }
            (RST, Some(request)) if !matches!(request.state, State::Answered(..)) => {
                let phase = request.phase;
                request.state = State::Over;
                self.fault(phase, "a Reset".into());
            }
            (ACK, _) => {}
            _ => self.fault(phase, "an Empty message to no request".into()),
        }
    }

    /// The requests that are to be sent again now; those whose time is over are given up.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(u32, u16)> {
        let mut due = Vec::new();
        let (requests, tallies) = (&mut self.requests, &mut self.tallies);
        self.open.retain(|&sequence| {
            let Some(request) = requests.get_mut(sequence as usize) else { return false };
            let Some(tally) = tallies.get_mut(request.phase) else { return false };
            let is_over = match request.state {
                State::Answered(..) | State::Over => return false,
                State::Acknowledged { until } => {
                    tally.forsaken += u64::from(until <= now);
                    until <= now
                }
                State::Waiting { repeat_at, timeout } => {
                    if repeat_at <= now && request.copies < MAX_RETRANSMIT {
                        request.copies += 1;
                        let timeout = timeout * 2;
                        request.state = State::Waiting { repeat_at: now + timeout, timeout };
                        due.push((sequence, request.client));
                        tally.copies += 1;
                        return true;
                    }
                    repeat_at <= now
                }
            };
            if is_over {
                request.state = State::Over;
                tally.unanswered += 1;
            }
            !is_over
        });
        due
    }

    /// Waits for nothing any more.
    pub(super) fn give_up(&mut self) {
        for sequence in std::mem::take(&mut self.open) {
            let Some(request) = self.requests.get_mut(sequence as usize) else { continue };
            let is_acknowledged = match request.state {
                State::Answered(..) | State::Over => continue,
                State::Acknowledged { .. } => true,
                State::Waiting { .. } => false,
            };
            request.state = State::Over;
            let phase = request.phase;
            let tally = self.tally(phase);
            tally.unanswered += 1;
            tally.forsaken += u64::from(is_acknowledged);
        }
    }

    /// Whether every request is answered or given up, as of the last [`Self::due`].
    pub(crate) fn all_over(&self) -> bool {
        self.open.is_empty()
    }

    /// What came of them, by phase.
    pub(crate) fn into_tallies(self) -> Vec<Tally> {
        self.tallies
    }

    fn fault(&mut self, phase: usize, words: String) {
        *self.tally(phase).faults.entry(words).or_insert(0) += 1;
    }

    fn tally(&mut self, phase: usize) -> &mut Tally {
        let last = self.tallies.len() - 1;
        &mut self.tallies[phase.min(last)]
    }

    /// Half of them, and of those of each client.
    const fn is_post(&self, sequence: u32) -> bool {
        matches!(self.asked, Asked::Mixed(_)) && sequence.wrapping_mul(0x9e37_79b9) >> 31 == 1
    }

    /// 16 bytes that no other request of this or an earlier run has.
    fn name(&self, sequence: u32) -> String {
        format!("{:08x}{sequence:08x}", self.mark)
    }
}

/// The number of the request that has this name.
pub(crate) fn sequence_of(name: &[u8]) -> Option<u32> {
    let (_, digits) = name.split_at_checked(8)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
