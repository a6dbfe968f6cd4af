//! Paths out of forward records: what was seen is what is simulated.
//!
//! Per upstream, the round-trip times of exchanges with one copy are replayed at the moments they were measured;
//! copies are lost at the share that was lost then, half of it on each way. Requests come as often as they did,
//! in the same mix. Origins without an upstream of their own are a path each, by their address.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead};
use std::time::Duration;

use coapway_records::{Forward, Line, NoRecord, Records};

use crate::law::{Law, Measured};
use crate::scenario::{ClientLaw, Mix, Pace, PathLaw, Scenario, WayLaw};
use crate::table::decimals;

/// So many samples of an upstream are kept; of more, every second one.
const MOST_SAMPLES: usize = 1 << 22;
/// So many clients are told apart.
const MOST_CLIENTS: usize = 1000;
/// So many origins are told apart.
const MOST_ORIGINS: usize = 1000;
/// The upstream of origins without one of their own.
const DEFAULT: &str = "default";
/// So many of those origins are a path each; what goes to others is one.
const MOST_PATHS: usize = 16;
/// A copy that was sent less than this share of the fastest round trip before an answer has not brought it.
const CAUSAL: f64 = 0.9;

/// What records say.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// One per upstream, by name.
    pub(crate) scenarios: Vec<Scenario>,
    /// Lines that were read, and those of them that are no records.
    pub(crate) lines: u64,
    pub(crate) bad: u64,
    /// The first of these, its number, and what is wrong with it.
    pub(crate) first_bad: Option<(u64, NoRecord)>,
    /// Upstreams of which no round-trip time is known.
    pub(crate) without_samples: Vec<String>,
    /// Forwards that nobody took, by ICMP or by Reset.
    pub(crate) rejected: u64,
}

/// Reads records; of one upstream if that is named.
///
/// Errors: they cannot be read. Lines that are no records are counted.
pub(crate) fn read(records: &mut dyn BufRead, only: Option<&str>) -> io::Result<Replay> {
    let mut replay = Replay::default();
    let mut upstreams: BTreeMap<String, Seen> = BTreeMap::new();
    let mut paths = HashSet::new();
    let mut records = Records::new(records);
    while let Some(line) = records.next_line()? {
        replay.lines += 1;
        match line {
            Ok(Line::Forward(forward)) => {
                let asked_for = only.is_none_or(|only| forward.upstream == only);
                // Of what never left nobody knows the path.
                let left = forward.upstream != DEFAULT || forward.origin.is_some();
                if asked_for && left {
                    replay.rejected += u64::from(forward.is_rejected());
                    upstreams.entry(path_of(&forward, &mut paths).to_owned()).or_default().add(&forward);
                }
            }
            Ok(Line::Refused(_)) => {}
            Err(no_record) => {
                replay.bad += 1;
                replay.first_bad.get_or_insert((records.number(), no_record));
            }
        }
    }
    for (name, seen) in upstreams {
        match seen.scenario(&name) {
            Some(scenario) => replay.scenarios.push(scenario),
            None => replay.without_samples.push(name),
        }
    }
    Ok(replay)
}

/// What the path is called that a forward took.
fn path_of<'f>(forward: &'f Forward<'_>, paths: &mut HashSet<String>) -> &'f str {
    match forward.origin.as_deref().filter(|_| forward.upstream == DEFAULT) {
        Some(origin) if paths.contains(origin) => origin,
        Some(origin) if paths.len() < MOST_PATHS => {
            paths.insert(origin.to_owned());
            origin
        }
        Some(_) | None => &forward.upstream,
    }
}

/// What was seen of one upstream.
#[derive(Debug, Default)]
struct Seen {
    /// When, µs, and how long it took, seconds.
    samples: Vec<(i64, f64)>,
    every: u64,
    exact: u64,
    fastest: Option<f64>,
    /// Exchanges with more than one copy: when each left, ms, and when an Acknowledgement came.
    copies: u64,
    lost: u64,
    forwards: u64,
    posts: u64,
    nons: u64,
    payload: u64,
    clients: HashSet<String>,
    origins: HashSet<String>,
    since: Option<i64>,
    until: i64,
}

impl Seen {
    fn add(&mut self, forward: &Forward<'_>) {
        let at = forward.received;
        self.forwards += 1;
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
        self.until = self.until.max(at);
        if forward.confirmable && forward.is_once() {
            self.posts += 1;
            self.payload += u64::from(forward.bytes);
        }
        self.nons += u64::from(!forward.confirmable);
        keep(&mut self.clients, &forward.client, MOST_CLIENTS);
        if let Some(origin) = forward.origin.as_deref() {
            keep(&mut self.origins, origin, MOST_ORIGINS);
        }
        if forward.is_rejected() {
            return;
        }
        let copies = forward.copies.iter().filter(|copy| copy.wait > 0.0);
        let sent: Vec<f64> = copies.map(|copy| copy.at).collect();
        match (&sent[..], forward.first_ack) {
            ([], _) => {}
            ([sent], Some(ack)) => {
                let took = ((ack - sent) / 1e3).max(1e-6);
                self.fastest = Some(self.fastest.map_or(took, |fastest| fastest.min(took)));
                self.sample(at + (sent * 1e3) as i64, took);
                self.copies += 1;
            }
            (sent, Some(ack)) => {
                // The last copy that can have brought the Acknowledgement; those before it were lost.
                let fastest = self.fastest.unwrap_or(0.0) * 1e3 * CAUSAL;
                let lost = sent.iter().rposition(|at| ack - at >= fastest).unwrap_or(0);
                self.copies += lost as u64 + 1;
                self.lost += lost as u64;
            }
            (sent, None) => {
                self.copies += sent.len() as u64;
                self.lost += sent.len() as u64;
            }
        }
    }

    fn sample(&mut self, at: i64, took: f64) {
        self.every = self.every.max(1);
        if self.exact.is_multiple_of(self.every) {
            self.samples.push((at, took));
        }
        self.exact += 1;
        if self.samples.len() >= MOST_SAMPLES {
            let mut place = 0_u64;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// The share that is lost on each way, were both alike.
    fn loss(&self) -> f64 {
        let both = self.lost as f64 / self.copies.max(1) as f64;
        1.0 - libm::sqrt(1.0 - both.min(1.0))
    }

    fn scenario(mut self, name: &str) -> Option<Scenario> {
        let since = self.since?;
        self.samples.sort_unstable_by_key(|(at, _)| *at);
        let seconds = |at: i64| (at - since).max(0) as f64 / 1e6;
        let mut samples: Vec<(f64, f64)> =
            self.samples.iter().map(|(at, took)| (seconds(*at), *took)).collect();
        samples.first_mut()?.0 = 0.0;
        let all = self.forwards as f64;
        // As if the records ended one mean distance after the last one.
        let period = (seconds(self.until) * (1.0 + 1.0 / all)).max(1.0);
        let loss = self.loss();
        let rtt = Law::Measured(Measured { samples: samples.into(), period });
        let mixed = match self.origins.len() {
            0 | 1 => String::new(),
            MOST_ORIGINS => format!(" to {MOST_ORIGINS} or more origins taken as one"),
            several => format!(" to {several} origins taken as one"),
        };
        let about = format!(
            "{} forwards{mixed} in records: half of the answers within {} s, {:.2} % lost on each way",
            self.forwards,
            decimals(rtt.typical()),
            loss * 100.0
        );
        let usual = Scenario::default();
        let payload = (self.payload / self.posts.max(1)).min(1024) as usize;
        let way = WayLaw { loss, ..PathLaw::default().up };
        Some(Scenario {
            name: name.to_owned(),
            about,
            duration: Duration::from_secs_f64(period.max(10.0)),
            clients: ClientLaw {
                count: self.clients.len().max(1) as u32,
                pace: Pace::Rate(all / period),
                mix: Mix { post: self.posts as f64 / all, non: self.nons as f64 / all },
                payload,
                ..usual.clients
            },
            path: PathLaw { rtt, up: way.clone(), down: way, ..PathLaw::default() },
            ..usual
        })
    }
}

/// Adds a text to those that are told apart, as long as there are not the most.
fn keep(texts: &mut HashSet<String>, text: &str, most: usize) {
    if texts.len() < most && !texts.contains(text) {
        texts.insert(text.to_owned());
    }
}

#[cfg(test)]
pub(crate) mod tests;
