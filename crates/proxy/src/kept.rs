//! What was learned of origins, as plain data that outlives a proxy.
//!
//! Message IDs and tokens are not in it: a new life begins them at random.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_relay::UpstreamId;
use coapway_time::Instant;

use crate::proxy::Proxy;

/// What was learned of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The name of the upstream whose settings hold.
    pub upstream: Box<str>,
    /// The origin.
    pub origin: SocketAddr,
    /// Exchanges that could be outstanding at a time.
    pub window: u32,
    /// Whether it was ever heard.
    pub heard: bool,
    /// Exact round-trip times, oldest first, and how long ago each was seen.
    pub round_trips: Vec<(Duration, Duration)>,
}

impl Proxy {
    /// What was learned of each origin of which a round-trip time still counts.
    pub fn export_learned(&self, now: Instant) -> impl Iterator<Item = Kept> {
        let upstreams = &self.relay.parameters().upstreams;
        self.upstreams.origins.iter().filter(|(_, origin)| !origin.round_trip.is_empty()).filter_map(
            move |(_, origin)| {
                Some(Kept {
                    upstream: upstreams.get(origin.upstream.0 as usize)?.name.clone(),
                    origin: origin.address,
                    window: origin.window.size(),
                    heard: origin.permits.probing.was_heard(),
                    round_trips: origin
                        .round_trip
                        .samples()
                        .map(|(at, time)| (now.since(at), time))
                        .collect(),
                })
            },
        )
    }

    /// Takes over what an earlier life has learned: round-trip times as if they had been seen here, and
    /// half of the window. What has its own experience by now is left alone. Returns of how many origins
    /// something was taken over.
    ///
    /// Shape: unknown upstreams are passed by, as is what finds no room; round-trip times that are older
    ///        than [`coapway_endpoint::RtoParameters::SAMPLE_AGE`], or in the wrong order, do not count.
    pub fn import_learned(&mut self, kept: impl IntoIterator<Item = Kept>, now: Instant) -> usize {
        kept.into_iter().filter(|kept| self.import(kept, now)).count()
    }

    fn import(&mut self, kept: &Kept, now: Instant) -> bool {
        let known = &self.relay.parameters().upstreams;
        let Some(number) = known.iter().position(|upstream| upstream.name == kept.upstream) else {
            return false;
        };
        let counts = |age: Duration| age < coapway_endpoint::RtoParameters::SAMPLE_AGE;
        if !kept.round_trips.last().is_some_and(|&(age, _)| counts(age)) {
            return false;
        }
        let upstream = UpstreamId(u32::try_from(number).unwrap_or(u32::MAX));
        let parameters = *self.upstreams.parameters(upstream);
        let origins = &mut self.upstreams.origins;
        let found = origins.find_or_add(kept.origin, upstream, None, &parameters, now);
        let Some(origin) = found.ok().and_then(|index| origins.get_mut(index)) else { return false };
        if !origin.round_trip.is_empty() || origin.window.outstanding() > 0 {
            return false;
        }
        let mut oldest = Duration::MAX;
        for &(age, time) in kept.round_trips.iter().filter(|&&(age, _)| counts(age)) {
            oldest = oldest.min(age);
            origin.round_trip.sample(time, now - oldest);
            origin.window.saw(time, now - oldest);
        }
        origin.window.resume(kept.window);
        if kept.heard {
            origin.permits.probing.heard();
        }
        true
    }
}
