//! What the parameters come to: copies that fit, requests a second, POSTs without an answer.

use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_proxy::UpstreamParameters;

/// How many retransmissions leave before time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// However long the first wait is drawn.
    pub(crate) surely: u32,
    /// When it is drawn as short as can be.
    pub(crate) at_best: u32,
}

/// How many retransmissions leave before `max_wait`: number k leaves between T·(2ᵏ − 1) and
/// T·F·(2ᵏ − 1) after the first copy.
///
/// Source: R-USR-04; RFC 7252 §4.2.
pub(crate) fn fit(transmission: &TransmissionParameters, max_wait: Duration) -> Fit {
    let fitting = |factor: f64| {
        let at = |k: u32| latest(transmission, k).div_f64(transmission.ack_random_factor).mul_f64(factor);
        (1..=transmission.max_retransmit).take_while(|&k| at(k) < max_wait).count() as u32
    };
    Fit { surely: fitting(transmission.ack_random_factor), at_best: fitting(1.0) }
}

/// When retransmission `k` leaves at the earliest and at the latest.
pub(crate) fn retransmission(transmission: &TransmissionParameters, k: u32) -> (Duration, Duration) {
    let latest = latest(transmission, k);
    (latest.div_f64(transmission.ack_random_factor), latest)
}

fn latest(transmission: &TransmissionParameters, k: u32) -> Duration {
    TransmissionParameters { max_retransmit: k, ..*transmission }.max_transmit_span()
}

/// How many retransmissions leave within `span`, which is what a peer that knows nothing of our
/// parameters relies on.
///
/// Source: R-PAR-06; RFC 7252 §4.8.1.
pub(crate) fn held(transmission: &TransmissionParameters, span: Duration) -> u32 {
    let fits = |k: &u32| latest(transmission, *k) <= span;
    (1..=transmission.max_retransmit).take_while(fits).count() as u32
}

/// The first retransmission that may come too late for `max_wait`: its number, and when it leaves at the
/// earliest and at the latest.
pub(crate) fn too_late(
    transmission: &TransmissionParameters,
    max_wait: Duration,
) -> Option<(u32, Duration, Duration)> {
    let number = fit(transmission, max_wait).surely + 1;
    let (earliest, latest) = retransmission(transmission, number);
    (number <= transmission.max_retransmit).then_some((number, rounded(earliest), rounded(latest)))
}

/// A duration to the millisecond.
pub(crate) fn rounded(duration: Duration) -> Duration {
    Duration::from_millis((duration.as_secs_f64() * 1000.0).round() as u64)
}

/// Copies of a request that leave in time, the first included, when the origin is known to recognise
/// duplicates or the request may be executed twice.
pub(crate) fn copies(parameters: &UpstreamParameters) -> u32 {
    1 + fit(&parameters.transmission, parameters.max_wait).surely
}

/// Copies of a POST or PATCH that leave in time, the first included.
pub(crate) fn posts(parameters: &UpstreamParameters) -> u32 {
    copies(parameters).min(1 + parameters.max_retransmit(false))
}

/// Losses each way that prices are told for.
const LOSSES: [f64; 3] = [0.10, 0.15, 0.25];
/// The same for people.
pub(crate) const LOSSES_SHOWN: &str = "10 / 15 / 25";

/// The share of exchanges without an answer at [`LOSSES`], in percent.
pub(crate) fn prices(copies: u32) -> String {
    LOSSES.map(|loss| percent(unanswered(copies, loss))).join(" / ")
}

/// The share of exchanges without an answer when each datagram is lost with this probability.
pub(crate) fn unanswered(copies: u32, loss: f64) -> f64 {
    let through = (1.0 - loss) * (1.0 - loss);
    (1.0 - through).powi(copies as i32)
}

/// A share in percent with two significant digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 12.0) } else { 0.0 };
    format!("{percent:.*}", digits as usize)
}

/// How long a Message ID towards an origin rests: what it relies on is at least the protocol's own.
pub(crate) fn message_id_lifetime(parameters: &UpstreamParameters) -> Duration {
    parameters.transmission.exchange_lifetime().max(TransmissionParameters::default().exchange_lifetime())
}

/// Requests a second that one source port carries.
pub(crate) fn requests_per_port(parameters: &UpstreamParameters) -> u64 {
    (65536.0 / message_id_lifetime(parameters).as_secs_f64()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transmission(ack_timeout: u64, ack_random_factor: f64, max_retransmit: u32) -> TransmissionParameters {
        TransmissionParameters {
            ack_timeout: Duration::from_millis(ack_timeout),
            ack_random_factor,
            retry_jitter: 0.1,
            max_retransmit,
        }
    }

    #[test]
    fn counts_the_copies_that_fit() {
        let protocol = transmission(2000, 1.5, 4);
        let seconds = Duration::from_secs;
        assert_eq!(fit(&protocol, seconds(30)), Fit { surely: 3, at_best: 3 });
        assert_eq!(fit(&protocol, seconds(31)), Fit { surely: 3, at_best: 4 });
        assert_eq!(fit(&protocol, seconds(45)), Fit { surely: 3, at_best: 4 });
        assert_eq!(fit(&protocol, seconds(46)), Fit { surely: 4, at_best: 4 });
        assert_eq!(fit(&transmission(2000, 1.5, 0), seconds(30)), Fit { surely: 0, at_best: 0 });
        assert_eq!(retransmission(&protocol, 4), (seconds(30), seconds(45)));
    }

    #[test]
    fn holds_to_a_span() {
        let span = TransmissionParameters::default().max_transmit_span();
        assert_eq!(held(&transmission(2000, 1.5, 4), span), 4);
        assert_eq!(held(&transmission(2000, 1.5, 6), span), 4);
        assert_eq!(held(&transmission(60_000, 1.5, 4), span), 0);
    }

    #[test]
    fn a_post_is_priced_by_the_copies_that_leave_in_time() {
        let parameters = UpstreamParameters::default();
        assert_eq!((posts(&parameters), copies(&parameters)), (2, 4));
        assert_eq!(prices(posts(&parameters)), "3.6 / 7.7 / 19");
        assert_eq!(prices(copies(&parameters)), "0.13 / 0.59 / 3.7");
        let cured = UpstreamParameters { deduplicates: true, ..parameters };
        assert_eq!(posts(&cured), 4);
        let hasty = UpstreamParameters { max_wait: Duration::from_secs(1), ..parameters };
        assert_eq!((posts(&hasty), copies(&hasty)), (1, 1));
        let late = too_late(&parameters.transmission, parameters.max_wait);
        assert_eq!(late, Some((4, Duration::from_secs(30), Duration::from_secs(45))));
    }

    #[test]
    fn prices_a_post() {
        let price = |copies| [0.10, 0.15, 0.25].map(|loss| percent(unanswered(copies, loss)));
        assert_eq!(price(2), ["3.6", "7.7", "19"]);
        assert_eq!(price(1), ["19", "28", "44"]);
        assert_eq!(price(5), ["0.025", "0.16", "1.6"]);
    }
}
