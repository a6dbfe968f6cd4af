//! The most memory that strangers can make the process use (R-ATK-04).
//!
//! Every table that grows with what comes in over the network has a limit; here they are added up, each
//! as full as it may be and each datagram as long as it may be. What one entry costs was measured, and
//! `tests/memory.rs` measures it again.

use std::fmt;

use coapway_endpoint::EndpointParameters;
use coapway_proxy::Parameters;

/// The longest datagram that is taken, and what a relayed one may be longer: another token, options
/// that are written anew.
const DATAGRAM: u64 = 2048 + 128;
/// A request under way without its datagrams: what both endpoints and the relay keep, timers, its
/// place in a queue.
const REQUEST: u64 = 1280;
/// Further addresses of its origin's name.
const ADDRESSES: u64 = 1088;
/// Its datagrams: one for retransmission, one for another address or another attempt.
const DATAGRAMS: u64 = 2;
/// The record of it, with a path in which each byte is percent-encoded.
const RECORD: u64 = 1024 + 3 * 2048;
/// An origin without its round-trip times, and what one of those costs.
const ORIGIN: u64 = 1024;
const SAMPLE: u64 = 32;
/// The Message IDs towards one peer.
const MESSAGE_IDS: u64 = 896;
/// A name: itself several times, and its addresses.
const NAME: u64 = 2560;
/// The rate of one client, for so many clients.
const CLIENT_RATE: u64 = 96;
const CLIENT_RATES: u64 = 1 << 16;
/// What an origin said about when to come again.
const HINT: u64 = 640;
const HINTS: u64 = 4096;
/// A socket's batch.
const SOCKET: u64 = 64 * (DATAGRAM + 256);
/// What blocked sockets hold back; the room for it doubles as it grows.
const HELD_BACK: u64 = 2 * 8192 * DATAGRAM;
/// Lines of records on their way to the file.
const RECORD_LINES: u64 = 5 << 20;
/// The program itself, its threads, its timers, what is read at once.
const BASE: u64 = 24 << 20;

/// What the bound depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// `limits.fetches`.
    pub(crate) fetches: u64,
    /// `limits.origins`.
    pub(crate) origins: u64,
    /// `limits.names`.
    pub(crate) names: u64,
    /// `dedup.memory`, bytes.
    pub(crate) remembered: u64,
    /// The largest `rto.window`.
    pub(crate) samples: u64,
    /// Listeners, and sockets towards origins in both families.
    pub(crate) sockets: u64,
    /// Whether clients are told apart by rate.
    pub(crate) client_rate: bool,
    /// Whether forwards are recorded.
    pub(crate) records: bool,
}

impl Limits {
    pub(crate) fn new(parameters: &Parameters, listeners: usize, records: bool) -> Self {
        let of_upstreams = |value: fn(&coapway_proxy::UpstreamParameters) -> u64| {
            parameters.upstreams.iter().map(value).max().unwrap_or(0)
        };
        Self {
            fetches: parameters.limits.fetches as u64,
            origins: parameters.limits.origins as u64,
            names: parameters.limits.names as u64,
            remembered: parameters.downstream.duplicates.memory as u64,
            samples: of_upstreams(|upstream| upstream.rto.window as u64),
            sockets: listeners as u64 + 2 * of_upstreams(|upstream| upstream.source_ports.into()),
            client_rate: parameters.relay.client_rate > 0,
            records,
        }
    }
}

/// What one kind of thing takes at the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
    /// What it is made of, for people.
    pub(crate) what: String,
}

/// What all of it takes at the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) parts: Vec<Part>,
}

impl Bound {
    /// Adds up what there may be.
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut parts = Vec::new();
        let mut add = |name, bytes, what| parts.push(Part { name, bytes, what });
        let peers = EndpointParameters::MOST_PEERS as u64;

        // An eighth is what the allocator takes for many small replies.
        let remembered = limits.remembered + limits.remembered / 8 + (1 << 20);
        add("remembered", remembered, "dedup.memory and an eighth for the allocator".to_owned());

        let record = if limits.records { RECORD } else { 0 };
        let request = REQUEST + ADDRESSES + DATAGRAMS * DATAGRAM + record;
        add(
            "requests",
            limits.fetches * request,
            format!("limits.fetches of {request} bytes, {DATAGRAMS} datagrams of {DATAGRAM} in each"),
        );

        let origin = ORIGIN + SAMPLE * limits.samples.next_power_of_two() + MESSAGE_IDS;
        let origins = limits.origins * origin;
        add("origins", origins, format!("limits.origins of {origin} bytes, rto.window samples in each"));

        add("names", limits.names * NAME, format!("limits.names of {NAME} bytes"));

        let rates = if limits.client_rate { CLIENT_RATES * CLIENT_RATE } else { 0 };
        add(
            "clients",
            rates + peers * MESSAGE_IDS + HINTS * HINT,
            format!("Message IDs of {peers} clients, rates of {CLIENT_RATES}, {HINTS} hints of origins"),
        );

        add(
            "sockets",
            limits.sockets * SOCKET + HELD_BACK,
            format!("{} sockets, and what they hold back; buffers of the system not counted", limits.sockets),
        );

        let lines = if limits.records { RECORD_LINES } else { 0 };
        add("records", lines, "lines on their way to record.file".to_owned());
        add("base", BASE, "the program itself".to_owned());
        Self { parts }
    }

    /// All parts together, in bytes.
    pub(crate) fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.total()))
    }
}

/// Bytes in whole MiB, rounded up.
pub(crate) fn show(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Limits = Limits {
        fetches: 0,
        origins: 0,
        names: 0,
        remembered: 0,
        samples: 50,
        sockets: 0,
        client_rate: false,
        records: false,
    };

    fn part(limits: Limits, name: &str) -> u64 {
        let bound = Bound::new(&limits);
        bound.parts.iter().find(|part| part.name == name).map(|part| part.bytes).expect("a part")
    }

    #[test]
    fn each_limit_counts_with_what_one_more_costs() {
        let grows = |more: Limits| Bound::new(&more).total() - Bound::new(&NONE).total();
        assert_eq!(grows(Limits { fetches: 1, ..NONE }), 1280 + 1088 + 2 * 2176);
        assert_eq!(grows(Limits { origins: 1, ..NONE }), 1024 + 64 * 32 + 896);
        assert_eq!(grows(Limits { origins: 1, samples: 1000, ..NONE }), 1024 + 1024 * 32 + 896);
        assert_eq!(grows(Limits { names: 1, ..NONE }), 2560);
        assert_eq!(grows(Limits { remembered: 800, ..NONE }), 900);
        assert_eq!(grows(Limits { sockets: 1, ..NONE }), 64 * (2176 + 256));
        assert_eq!(grows(Limits { client_rate: true, ..NONE }), 65536 * 96);
        assert_eq!(grows(Limits { records: true, ..NONE }), 5 << 20);
    }

    #[test]
    fn a_record_counts_with_the_request_it_is_about() {
        let one = Limits { fetches: 1, ..NONE };
        let recorded = Limits { records: true, ..one };
        assert_eq!(part(recorded, "requests") - part(one, "requests"), 1024 + 3 * 2048);
    }

    #[test]
    fn is_shown_in_whole_mebibytes_never_too_few() {
        assert_eq!([0, 1, 1 << 20, (1 << 20) + 1].map(show), ["0MiB", "1MiB", "1MiB", "2MiB"]);
    }
}
