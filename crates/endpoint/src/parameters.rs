//! Transmission parameters and the times derived from them (RFC 7252 §4.8).

use std::time::Duration;

/// MAX_LATENCY (RFC 7252 §4.8.2).
pub const MAX_LATENCY: Duration = Duration::from_secs(100);

/// `duration` times `factor`, to the nanosecond. Each exchange asks for a dozen: this takes a fifth of
/// what [`Duration::mul_f64`] does, and does not panic.
pub(crate) fn scaled(duration: Duration, factor: f64) -> Duration {
    let nanos = duration.as_secs() as f64 * 1e9 + f64::from(duration.subsec_nanos());
    Duration::from_nanos((nanos * factor + 0.5) as u64)
}

/// 1 + b + b² + … up to bⁿ⁻¹; from n = 30 on it grows no more.
pub(crate) fn powers_below(base: f32, n: u32) -> f64 {
    if base == 2.0 {
        return power_of_two_less_one(n);
    }
    let base = f64::from(base);
    (0..n.min(30)).fold(0.0, |sum, _| sum * base + 1.0)
}

/// bⁿ; from n = 30 on it grows no more.
pub(crate) fn power(base: f32, n: u32) -> f64 {
    (0..n.min(30)).fold(1.0, |power, _| power * f64::from(base))
}

/// In whole microseconds, as instants count.
#[inline]
pub(crate) const fn micros(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros() as u64)
}

/// 2ⁿ − 1; from n = 30 on it grows no more.
pub(crate) fn power_of_two_less_one(n: u32) -> f64 {
    f64::from((1u32 << n.min(30)) - 1)
}

/// How Confirmable messages of one direction are retransmitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransmissionParameters {
    /// ACK_TIMEOUT.
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR, at least 1.
    pub ack_random_factor: f64,
    /// Further random lengthening of each wait, as a share of it: 0.1 is up to 10 %.
    pub retry_jitter: f64,
    /// MAX_RETRANSMIT.
    pub max_retransmit: u32,
}

impl Default for TransmissionParameters {
    /// The protocol's own: 2 s, 1.5, 4, without further jitter.
    fn default() -> Self {
        Self {
            ack_timeout: Duration::from_secs(2),
            ack_random_factor: 1.5,
            retry_jitter: 0.0,
            max_retransmit: 4,
        }
    }
}

impl TransmissionParameters {
    /// ACK_TIMEOUT · (2^n − 1) · ACK_RANDOM_FACTOR.
    fn doublings(&self, n: u32) -> Duration {
        scaled(self.ack_timeout, power_of_two_less_one(n) * self.ack_random_factor)
    }

    /// MAX_TRANSMIT_SPAN: from the first copy to the last.
    pub fn max_transmit_span(&self) -> Duration {
        self.doublings(self.max_retransmit)
    }

    /// MAX_TRANSMIT_WAIT: from the first copy until the sender gives up.
    pub fn max_transmit_wait(&self) -> Duration {
        self.doublings(self.max_retransmit + 1)
    }

    /// PROCESSING_DELAY: within which a receiver acknowledges.
    pub const fn processing_delay(&self) -> Duration {
        self.ack_timeout
    }

    /// MAX_RTT.
    pub fn max_rtt(&self) -> Duration {
        2 * MAX_LATENCY + self.processing_delay()
    }

    /// EXCHANGE_LIFETIME: how long a Message ID of a Confirmable message stays taken; at least
    /// MAX_TRANSMIT_WAIT, which is longer when the last waiting period reaches MAX_LATENCY.
    pub fn exchange_lifetime(&self) -> Duration {
        (self.max_transmit_span() + self.max_rtt()).max(self.max_transmit_wait())
    }

    /// NON_LIFETIME: how long a Message ID of a Non-confirmable message stays taken.
    pub fn non_lifetime(&self) -> Duration {
        self.max_transmit_span() + MAX_LATENCY
    }
}

/// How a timeout is learned from round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// ACK_TIMEOUT, always.
    Fixed,
    /// A high quantile of the last exact samples times a factor.
    P95,
    /// The quantile of the last exact samples that a given share of further ones exceeds.
    Budget,
    /// Smoothed mean and deviation (RFC 6298).
    Rfc6298,
    /// The same as Linux has it.
    Linux,
    /// CoCoA, with a strong and a weak estimate (draft-ietf-core-cocoa-03).
    Cocoa,
    /// CoCoA without the weak one.
    CocoaStrong,
    /// The last peak, which decays slowly.
    PeakHopper,
    /// The probe timeout of QUIC (RFC 9002).
    Pto,
}

impl Estimator {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::Fixed,
        Self::P95,
        Self::Budget,
        Self::Rfc6298,
        Self::Linux,
        Self::Cocoa,
        Self::CocoaStrong,
        Self::PeakHopper,
        Self::Pto,
    ];

    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::P95 => "p95",
            Self::Budget => "budget",
            Self::Rfc6298 => "rfc6298",
            Self::Linux => "linux",
            Self::Cocoa => "cocoa",
            Self::CocoaStrong => "cocoa_strong",
            Self::PeakHopper => "peakhopper",
            Self::Pto => "pto",
        }
    }
}

/// What a wait that ran out means for the exchanges to come, until there is an exact sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// As the estimator has it: `RanOut` for `Fixed` and `P95`, `Never` for CoCoA, `InForce` for all others.
    Auto,
    /// Nothing, as in RFC 7252.
    Never,
    /// Their timeout is twice the one in force.
    InForce,
    /// Their timeout is twice the wait that ran out, with what chance added to it: from one lossy exchange to
    /// the next that adds up.
    RanOut,
}

/// Parameters of a learned timeout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtoParameters {
    /// Which estimator.
    pub estimator: Estimator,
    /// How many samples count.
    pub window: usize,
    /// Which quantile of them, nearest rank; for `P95`.
    pub quantile: f64,
    /// What the quantile is multiplied with; for `P95`.
    pub factor: f64,
    /// The largest first timeout of `P95`; never below the quantile itself.
    pub cap: Duration,
    /// The share of exchanges that may be sent again needlessly; for `Budget`.
    pub spurious_budget: f64,
    /// What the learned timeout is multiplied with; for `Budget`.
    pub margin: f64,
    /// What a wait that ran out means for the exchanges to come.
    pub carry: Carry,
    /// The smallest first timeout.
    pub floor: Duration,
}

impl RtoParameters {
    /// A sample older than this no longer counts (R-USR-20).
    pub const SAMPLE_AGE: Duration = Duration::from_secs(15 * 60);
}

impl Default for RtoParameters {
    fn default() -> Self {
        Self {
            estimator: Estimator::Budget,
            window: 60,
            quantile: 0.95,
            factor: 2.5,
            cap: Duration::from_secs(10),
            spurious_budget: 0.05,
            margin: 1.1,
            carry: Carry::Auto,
            floor: Duration::from_millis(200),
        }
    }
}

/// How many exchanges with one origin may be outstanding (RFC 7252 §4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nstart {
    /// Learned, from 1 to `max`.
    Auto {
        /// The largest window.
        max: u32,
    },
    /// Always this many.
    Fixed(u32),
}

/// The memory for recent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicatesParameters {
    /// How many bytes it may take.
    pub memory: usize,
}

impl Default for DuplicatesParameters {
    fn default() -> Self {
        Self { memory: 256 << 20 }
    }
}

/// What an endpoint needs to know as a server; a client gives its schedule with each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointParameters {
    /// For separate responses.
    pub transmission: TransmissionParameters,
    /// How long one separate response is offered to the client.
    pub max_wait: Duration,
    /// After how long an unanswered Confirmable request gets an empty Acknowledgement.
    pub early_ack_after: Duration,
    /// NSTART: separate responses that one peer has not acknowledged, at a time.
    pub nstart: Nstart,
    /// The memory for recent messages.
    pub duplicates: DuplicatesParameters,
    /// The peers' own parameters; their lifetimes rule how long their messages are remembered.
    pub peer: TransmissionParameters,
}

impl EndpointParameters {
    /// Message IDs are kept for this many peers; beyond them, new ones get none until old ones are
    /// forgotten. Enough for 500 new ones each second of EXCHANGE_LIFETIME.
    pub const MOST_PEERS: usize = 1 << 17;
}

impl Default for EndpointParameters {
    fn default() -> Self {
        let transmission = TransmissionParameters::default();
        Self {
            transmission,
            max_wait: transmission.max_transmit_wait(),
            early_ack_after: Duration::from_millis(500),
            nstart: Nstart::Auto { max: 1024 },
            duplicates: DuplicatesParameters::default(),
            peer: TransmissionParameters::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(duration: Duration) -> f64 {
        duration.as_secs_f64()
    }

    fn derived(ack_timeout: f64, ack_random_factor: f64, max_retransmit: u32) -> [f64; 5] {
        let parameters = TransmissionParameters {
            ack_timeout: Duration::from_secs_f64(ack_timeout),
            ack_random_factor,
            retry_jitter: 0.0,
            max_retransmit,
        };
        [
            parameters.max_transmit_span(),
            parameters.max_transmit_wait(),
            parameters.max_rtt(),
            parameters.exchange_lifetime(),
            parameters.non_lifetime(),
        ]
        .map(|time| (seconds(time) * 1000.0).round() / 1000.0)
    }

    #[test]
    fn derives_the_times_of_the_rfc() {
        assert_eq!(derived(2.0, 1.5, 4), [45.0, 93.0, 202.0, 247.0, 145.0]);
        assert_eq!(derived(1.0, 1.2, 2), [3.6, 8.4, 201.0, 204.6, 103.6]);
    }

    #[test]
    fn scales_as_exactly_as_the_standard_library() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let duration = Duration::from_nanos(random.u64(..1_000_000_000_000));
            let factor = random.f64() * 100.0;
            let difference = scaled(duration, factor).abs_diff(duration.mul_f64(factor));
            // 2⁻⁵² of up to 10⁵ s is 22 ns.
            assert!(difference <= Duration::from_nanos(32), "{duration:?} · {factor}: {difference:?}");
        }
        assert_eq!(scaled(Duration::from_secs(2), 1.5), Duration::from_secs(3));
        assert_eq!(scaled(Duration::MAX, 2.0), Duration::from_nanos(u64::MAX));
        assert_eq!(scaled(Duration::from_secs(1), -1.0), Duration::ZERO);
    }

    #[test]
    fn an_exchange_outlives_its_own_retransmission() {
        assert!(derived(2.0, 1.5, 7)[3] >= 765.0);
    }
}
