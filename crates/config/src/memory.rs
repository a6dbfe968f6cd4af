//! The most memory that strangers can make the process use (R-ATK-04).
//!
//! Every table that grows with what comes in over the network has a limit; here they are added up, each
//! as full as it may be and each datagram as long as it may be. What one entry costs was measured, where
//! tables have just doubled; `tests/memory.rs` and `tests/sizes.rs` measure it again.

use std::fmt;

use coapway_endpoint::EndpointParameters;
use coapway_proxy::{Parameters, PostGuard, TokenPolicy, UpstreamParameters};

/// The longest datagram that is taken, and what a relayed one may be longer: another token, options
/// that are written anew.
const DATAGRAM: u64 = 2048 + 128;
/// A request under way: what the endpoint towards clients and the relay keep, timers, its place in a
/// queue.
const REQUEST: u64 = 704;
/// Each exchange with an origin for it, its datagram left out.
const ATTEMPT: u64 = 640;
/// Further addresses of its origin's name.
const ADDRESSES: u64 = 1088;
/// The record of it, with a path in which each byte is percent-encoded.
const RECORD: u64 = 512 + 3 * 2048;
/// An origin without its round-trip times, and what one of those costs.
const ORIGIN: u64 = 1024;
const SAMPLE: u64 = 32;
/// The Message IDs towards one peer.
const MESSAGE_IDS: u64 = 896;
/// A name: itself several times, and its addresses.
const NAME: u64 = 2560;
/// The rate of one client.
const CLIENT: u64 = 96;
/// What an origin said about when to come back.
const HINT: u64 = 640;
/// Separate responses that wait for their turn.
const RESPONSES: u64 = 4096;
const RESPONSE: u64 = DATAGRAM + 512;
/// Tokens of clients in use or resting.
const TOKENS: u64 = 1 << 18;
const TOKEN: u64 = 320;
/// Block-wise transfers with a source port of their own.
const TRANSFERS: u64 = 1 << 16;
const TRANSFER: u64 = 256;
/// Fingerprints of requests, and answers to them in bytes.
const FINGERPRINTS: u64 = 1 << 16;
const FINGERPRINT: u64 = 416;
const FINGERPRINTED: u64 = 16 << 20;
/// A socket's batch.
const SOCKET: u64 = 64 * (DATAGRAM + 256);
/// What blocked sockets hold back; the room for it doubles as it grows.
const HELD_BACK: u64 = 2 * 4096 * DATAGRAM;
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
    /// `limits.clients`, unless any rate is allowed.
    pub(crate) clients: u64,
    /// `limits.hints`.
    pub(crate) hints: u64,
    /// `dedup.memory`, bytes.
    pub(crate) remembered: u64,
    /// The largest `rto.window`.
    pub(crate) samples: u64,
    /// Listeners, and sockets towards origins in both families.
    pub(crate) sockets: u64,
    /// The largest `retry.max_attempts`.
    pub(crate) attempts: u64,
    /// Whether some origin sees tokens of clients.
    pub(crate) preserves_tokens: bool,
    /// Whether equal requests to some origin are found.
    pub(crate) fingerprints: bool,
    /// Whether forwards are recorded.
    pub(crate) records: bool,
}

impl Limits {
    pub(crate) fn new(parameters: &Parameters, listeners: usize, records: bool) -> Self {
        let upstreams = &parameters.upstreams;
        let largest = |value: fn(&UpstreamParameters) -> u64| upstreams.iter().map(value).max().unwrap_or(0);
        let limits = parameters.limits;
        Self {
            fetches: limits.fetches as u64,
            origins: limits.origins as u64,
            names: limits.names as u64,
            clients: if parameters.relay.client_rate == 0 { 0 } else { limits.clients as u64 },
            hints: limits.hints as u64,
            remembered: parameters.downstream.duplicates.memory as u64,
            samples: largest(|upstream| upstream.rto.window as u64),
            sockets: listeners as u64 + 2 * largest(|upstream| upstream.source_ports.into()),
            attempts: largest(|upstream| upstream.retry.max_attempts.into()),
            preserves_tokens: upstreams.iter().any(|upstream| upstream.token == TokenPolicy::Preserve),
            fingerprints: upstreams.iter().any(|upstream| upstream.post_guard == PostGuard::Fingerprint),
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
    /// The key it grows with; `None` where no key limits it.
    pub(crate) key: Option<&'static str>,
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
        let mut add = |name, bytes, what, key| parts.push(Part { name, bytes, what, key });
        let peers = EndpointParameters::MOST_PEERS as u64;

        // An eighth is what the allocator takes for many small replies.
        let remembered = limits.remembered + limits.remembered / 8 + (1 << 20);
        add(
            "remembered",
            remembered,
            "dedup.memory and an eighth for the allocator".to_owned(),
            Some("dedup.memory"),
        );

        let record = if limits.records { RECORD } else { 0 };
        let request = REQUEST + ADDRESSES + DATAGRAM + limits.attempts * (ATTEMPT + DATAGRAM) + record;
        let what = format!(
            "limits.fetches of {request} bytes: a datagram of {DATAGRAM} for another address and one for each of \
             retry.max_attempts"
        );
        add("requests", limits.fetches * request, what, Some("limits.fetches"));
        add(
            "responses",
            RESPONSES * RESPONSE,
            format!("{RESPONSES} separate responses that wait in line"),
            None,
        );

        let origin = ORIGIN + SAMPLE * limits.samples.next_power_of_two() + MESSAGE_IDS;
        let origins = limits.origins * origin;
        add(
            "origins",
            origins,
            format!("limits.origins of {origin} bytes, rto.window samples in each"),
            Some("limits.origins"),
        );

        add("names", limits.names * NAME, format!("limits.names of {NAME} bytes"), Some("limits.names"));

        add(
            "clients",
            limits.clients * CLIENT + peers * MESSAGE_IDS,
            format!("rates of limits.clients, Message IDs towards {peers}"),
            Some("limits.clients"),
        );
        add(
            "transfers",
            TRANSFERS * TRANSFER,
            format!("{TRANSFERS} block-wise transfers of {TRANSFER} bytes"),
            None,
        );
        add("hints", limits.hints * HINT, format!("limits.hints of {HINT} bytes"), Some("limits.hints"));

        let tokens = if limits.preserves_tokens { TOKENS * TOKEN } else { 0 };
        add("tokens", tokens, format!("with token = \"preserve\", {TOKENS} tokens in use or resting"), None);

        let fingerprints = if limits.fingerprints { FINGERPRINTS * FINGERPRINT + FINGERPRINTED } else { 0 };
        let what = format!("with post_guard = \"fingerprint\", {FINGERPRINTS} requests and their answers");
        add("fingerprints", fingerprints, what, None);

        add(
            "sockets",
            limits.sockets * SOCKET + HELD_BACK,
            format!("{} sockets, and what they hold back; buffers of the system not counted", limits.sockets),
            Some("upstream.source_ports"),
        );

        let lines = if limits.records { RECORD_LINES } else { 0 };
        add("records", lines, "lines on their way to record.file".to_owned(), None);
        add("base", BASE, "the program itself".to_owned(), None);
        Self { parts }
    }

    /// All parts together, in bytes.
    pub(crate) fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The keys whose parts are the largest: as many as the bound would fit into so many bytes without.
    pub(crate) fn beyond(&self, bytes: u64) -> Vec<&'static str> {
        let mut parts: Vec<_> = self.parts.iter().filter_map(|part| Some((part.bytes, part.key?))).collect();
        parts.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut left = self.total();
        let is_needed = |(part, _): &(u64, &str)| {
            let is_needed = left > bytes;
            left -= part;
            is_needed
        };
        parts.into_iter().take_while(is_needed).map(|(_, key)| key).collect()
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
        clients: 0,
        hints: 0,
        samples: 50,
        sockets: 0,
        attempts: 2,
        preserves_tokens: false,
        fingerprints: false,
        records: false,
    };

    fn part(limits: Limits, name: &str) -> u64 {
        let bound = Bound::new(&limits);
        bound.parts.iter().find(|part| part.name == name).map(|part| part.bytes).expect("a part")
    }

    #[test]
    fn each_limit_counts_with_what_one_more_costs() {
        let grows = |more: Limits| Bound::new(&more).total() - Bound::new(&NONE).total();
        assert_eq!(grows(Limits { fetches: 1, ..NONE }), 704 + 1088 + 2176 + 2 * (640 + 2176));
        assert_eq!(grows(Limits { fetches: 1, attempts: 1, ..NONE }), 704 + 1088 + 2176 + 640 + 2176);
        assert_eq!(grows(Limits { origins: 1, ..NONE }), 1024 + 64 * 32 + 896);
        assert_eq!(grows(Limits { origins: 1, samples: 1000, ..NONE }), 1024 + 1024 * 32 + 896);
        assert_eq!(grows(Limits { names: 1, ..NONE }), 2560);
        assert_eq!(grows(Limits { remembered: 800, ..NONE }), 900);
        assert_eq!(grows(Limits { sockets: 1, ..NONE }), 64 * (2176 + 256));
        assert_eq!(grows(Limits { clients: 1, ..NONE }), 96);
        assert_eq!(grows(Limits { hints: 1, ..NONE }), 640);
        assert_eq!(grows(Limits { preserves_tokens: true, ..NONE }), (1 << 18) * 320);
        assert_eq!(grows(Limits { fingerprints: true, ..NONE }), (1 << 16) * 416 + (16 << 20));
        assert_eq!(grows(Limits { records: true, ..NONE }), 5 << 20);
    }

    #[test]
    fn a_record_counts_with_the_request_it_is_about() {
        let one = Limits { fetches: 1, ..NONE };
        let recorded = Limits { records: true, ..one };
        assert_eq!(part(recorded, "requests") - part(one, "requests"), 512 + 3 * 2048);
    }

    #[test]
    fn is_shown_in_whole_mebibytes_never_too_few() {
        assert_eq!([0, 1, 1 << 20, (1 << 20) + 1].map(show), ["0MiB", "1MiB", "1MiB", "2MiB"]);
    }
}
