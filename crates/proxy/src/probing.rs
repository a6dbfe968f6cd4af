//! PROBING_RATE towards one origin (RFC 7252 §4.7).

use std::time::Duration;

use coapway_time::Instant;

/// Keeps what is no Confirmable request within PROBING_RATE while the origin is silent.
///
/// State:  what left since the origin was last heard, and until when that is paid for.
/// Source: RFC 7252 §4.7; R-CCN-03.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probing {
    /// When the first datagram left that nothing has followed from the origin.
    unanswered_from: Option<Instant>,
    free_from: Instant,
    was_heard: bool,
}

impl Probing {
    /// Whether a datagram may leave at `now`.
    ///
    /// An origin that was heard before counts as silent only after `grace`, its timeout, so that
    /// requests can follow each other without waiting for each response.
    /// Errors: when to try again.
    pub(crate) fn check(&self, rate: Option<f64>, grace: Duration, now: Instant) -> Result<(), Instant> {
        let Some(unanswered_from) = self.unanswered_from.filter(|_| rate.is_some()) else { return Ok(()) };
        let is_known_silent = !self.was_heard || now >= unanswered_from + grace;
        if is_known_silent && now < self.free_from { Err(self.free_from) } else { Ok(()) }
    }

    /// A datagram of `bytes` left.
    pub(crate) fn sent(&mut self, rate: Option<f64>, bytes: u32, now: Instant) {
        let Some(rate) = rate else { return };
        if self.unanswered_from.is_none() {
            self.unanswered_from = Some(now);
            self.free_from = now;
        }
        self.free_from = self.free_from.max(now) + Duration::from_secs_f64(f64::from(bytes) / rate);
    }

    /// A datagram was refused on its way: nothing of ours is there to weigh on the origin.
    pub(crate) const fn refused(&mut self) {
        self.unanswered_from = None;
    }

    /// Whether anything ever came from the origin.
    pub(crate) const fn was_heard(&self) -> bool {
        self.was_heard
    }

    /// Anything came from the origin.
    pub(crate) const fn heard(&mut self) {
        self.unanswered_from = None;
        self.was_heard = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<f64> = Some(1.0);
    const GRACE: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_silent_origin_gets_a_byte_a_second_beyond_the_first_message() {
        let mut probing = Probing::default();
        let mut bytes = 0;
        for second in 0..600 {
            if probing.check(RATE, GRACE, at(second)).is_ok() {
                probing.sent(RATE, 60, at(second));
                bytes += 60;
            }
        }
        assert_eq!(bytes, 600, "one message a minute");
    }

    #[test]
    fn what_is_heard_frees_the_way() {
        let mut probing = Probing::default();
        probing.sent(RATE, 60, at(0));
        assert_eq!(probing.check(RATE, GRACE, at(1)), Err(at(60)));
        probing.heard();
        assert_eq!(probing.check(RATE, GRACE, at(1)), Ok(()));
    }

    #[test]
    fn an_origin_heard_before_has_its_timeout_to_answer_and_then_pays_for_all() {
        let mut probing = Probing::default();
        probing.heard();
        for _ in 0..10 {
            assert_eq!(probing.check(RATE, GRACE, at(0)), Ok(()));
            probing.sent(RATE, 60, at(0));
        }
        assert_eq!(probing.check(RATE, GRACE, at(2)), Err(at(600)));
        assert_eq!(probing.check(None, GRACE, at(2)), Ok(()), "the rate is lifted");
    }
}
