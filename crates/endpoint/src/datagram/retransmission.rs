//! When the copies of one message leave (RFC 7252 §4.2).

use std::time::Duration;

use coapway_time::Instant;

use crate::parameters::{TransmissionParameters, power, powers_below, scaled};

/// When the copies of one Confirmable message may leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The shortest first wait: ACK_TIMEOUT, or what was learned instead of it.
    pub timeout: Duration,
    /// The longest first wait as a multiple of the shortest: ACK_RANDOM_FACTOR.
    pub random_factor: f64,
    /// Further lengthening of each wait, up to this share of it.
    pub jitter: f64,
    /// MAX_RETRANSMIT.
    pub max_retransmit: u32,
    /// Each wait is this many times the one before: 2.
    pub back_off: f32,
    /// No copy leaves later than this after the first.
    pub span: Duration,
    /// The last copy leaves at this offset at the earliest; zero for plain doubling.
    pub stretch: Duration,
    /// Whether that is also the latest: a copy that doubling would have leave later leaves then.
    pub ends_at_stretch: bool,
    /// Whether each copy of a request has a Message ID of its own, so that its Acknowledgement says which one
    /// it answers. Its receiver takes each for a message of its own: only for what may be executed again.
    pub fresh_ids: bool,
    /// No copy leaves after this.
    pub last_copy_before: Instant,
    /// Until when a response is waited for; then the exchange fails with `TimedOut`.
    pub deadline: Instant,
    /// How long the Message ID stays taken.
    pub lifetime: Duration,
}

impl Schedule {
    /// Plain doubling with these parameters from `now` on, given up at MAX_TRANSMIT_WAIT.
    pub fn new(parameters: &TransmissionParameters, now: Instant) -> Self {
        let deadline = now + parameters.max_transmit_wait();
        Self {
            timeout: parameters.ack_timeout,
            random_factor: parameters.ack_random_factor,
            jitter: parameters.retry_jitter,
            max_retransmit: parameters.max_retransmit,
            back_off: 2.0,
            span: parameters.max_transmit_span(),
            stretch: Duration::ZERO,
            ends_at_stretch: false,
            fresh_ids: false,
            last_copy_before: deadline,
            deadline,
            lifetime: parameters.exchange_lifetime(),
        }
    }

    /// A separate response: copies spread over `max_wait`, the last at four fifths of it. Clients
    /// remember it for the protocol's own span, so that none leaves later than that.
    pub(super) fn of_response(parameters: &TransmissionParameters, max_wait: Duration, now: Instant) -> Self {
        let relied_on = TransmissionParameters::default().max_transmit_span();
        let span = parameters.max_transmit_span().max(max_wait.min(relied_on));
        Self {
            span,
            stretch: scaled(max_wait, 0.8).min(scaled(span, 1.0 / (1.0 + parameters.retry_jitter))),
            deadline: now + max_wait,
            last_copy_before: now + max_wait,
            lifetime: parameters.exchange_lifetime() + max_wait,
            ..Self::new(parameters, now)
        }
    }

    /// Draws the first wait: from `timeout` to `timeout` · F / (1 + j), so that with all further
    /// jitter the last copy still leaves within MAX_TRANSMIT_SPAN. j is at most F − 1.
    pub fn first_wait(&self, random: &mut fastrand::Rng) -> Duration {
        let jitter = self.jitter.min(self.random_factor - 1.0).max(0.0);
        let spread = (self.random_factor / (1.0 + jitter) - 1.0).max(0.0);
        scaled(self.timeout, 1.0 + spread * random.f64())
    }

    /// The wait after copy `copies` (1 for the first), where the first wait was drawn as `first`.
    pub fn wait(&self, first: Duration, copies: u32, random: &mut fastrand::Rng) -> Duration {
        let plain = self.offset(first, copies).saturating_sub(self.offset(first, copies - 1));
        if copies == 1 {
            return plain;
        }
        let jitter = self.jitter.min(self.random_factor - 1.0).max(0.0);
        scaled(plain, 1.0 + jitter * random.f64())
    }

    /// The time from `now` to where a schedule ends that is not to end later, if retransmission `k` of a
    /// message that left at `began` and first waited for `first` has room before it.
    pub(super) fn rest(&self, began: Instant, first: Duration, k: u32, now: Instant) -> Option<Duration> {
        let has_room = self.ends_at_stretch && self.offset(first, k) <= self.stretch;
        has_room.then(|| (began + self.stretch).since(now))
    }

    /// No copy leaves later than this after the first: the span, or where a stretched schedule ends.
    pub(super) fn latest_offset(&self) -> Duration {
        if self.ends_at_stretch { self.span } else { self.span.max(scaled(self.stretch, 1.0 + self.jitter)) }
    }

    /// Which retransmission is the last one, and whether there is no room for all. Then the first that
    /// would leave after the end leaves there, unless its wait were shorter than the one before it.
    fn last(&self, plain: &impl Fn(u32) -> Duration) -> (u32, bool) {
        let most = self.max_retransmit;
        if !self.ends_at_stretch || plain(most) <= self.stretch {
            return (most, false);
        }
        let inside = (1..most).rev().find(|&k| plain(k) < self.stretch).unwrap_or(0);
        // The wait before it may have been lengthened, and so may all before that.
        let grows =
            inside > 0 && scaled(plain(inside) * 2 - plain(inside - 1), 1.0 + self.jitter) <= self.stretch;
        (inside + u32::from(grows), true)
    }

    /// When retransmission `k` leaves without jitter: T₀·(1 + b + … bᵏ⁻¹), which is T₀·(2ᵏ − 1) for
    /// doubling, the last one not before `stretch` and the one before it halfway on a logarithmic scale.
    fn offset(&self, first: Duration, k: u32) -> Duration {
        let plain = |k: u32| scaled(first, powers_below(self.back_off, k));
        if self.stretch.is_zero() || self.max_retransmit < 2 || k < 2 {
            return plain(k);
        }
        let (last, is_cut) = self.last(&plain);
        if last < 2 || k + 1 < last || is_cut && k < last {
            return plain(k);
        }
        let end = if self.ends_at_stretch { self.stretch } else { plain(last).max(self.stretch) };
        if k == last {
            return end;
        }
        if k > last {
            return end + (end - self.offset(first, last - 1)).max(scaled(first, power(self.back_off, last)));
        }
        let before = plain(k - 1);
        plain(k).max(Duration::from_secs_f64((before.as_secs_f64() * end.as_secs_f64()).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(max_retransmit: u32, stretch: u64) -> Schedule {
        let parameters = TransmissionParameters { retry_jitter: 0.1, max_retransmit, ..Default::default() };
        let stretch = Duration::from_secs(stretch);
        Schedule { stretch, ..Schedule::new(&parameters, Instant::ZERO) }
    }

    #[test]
    fn waits_double_with_jitter_and_stay_inside_the_span() {
        let mut random = fastrand::Rng::with_seed(7);
        let schedule = schedule(4, 0);
        for _ in 0..1000 {
            let first = schedule.first_wait(&mut random);
            let waits: Vec<_> = (1..=4).map(|k| schedule.wait(first, k, &mut random)).collect();
            for (k, wait) in waits.iter().enumerate() {
                let plain = first * (1 << k);
                assert!(*wait >= plain && *wait <= plain.mul_f64(1.100_001), "{waits:?}");
            }
            assert!(first >= Duration::from_secs(2));
            assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(45));
        }
    }

    #[test]
    fn jitter_stays_inside_a_random_factor_that_is_smaller() {
        let mut random = fastrand::Rng::with_seed(7);
        let schedule = Schedule { random_factor: 1.05, ..schedule(4, 0) };
        let first = schedule.timeout;
        for _ in 0..1000 {
            assert_eq!(schedule.first_wait(&mut random), first, "nothing is left of it for the first wait");
            let third = schedule.wait(first, 3, &mut random);
            assert!((first * 4..=first.mul_f64(4.200_001)).contains(&third), "{third:?}");
        }
    }

    #[test]
    fn jitter_is_at_most_what_the_random_factor_leaves() {
        // A factor of 1.05 and a jitter of 0.1: nothing is left for the first wait, 0.05 for the others.
        let mut random = fastrand::Rng::with_seed(7);
        let schedule = Schedule { random_factor: 1.05, ..schedule(4, 0) };
        for _ in 0..200 {
            let first = schedule.first_wait(&mut random);
            assert_eq!(first, Duration::from_secs(2));
            let second = schedule.wait(first, 2, &mut random);
            assert!((4.0..=4.2001).contains(&second.as_secs_f64()), "{second:?}");
        }
    }

    #[test]
    fn waits_grow_by_the_factor_of_the_schedule() {
        let mut random = fastrand::Rng::with_seed(7);
        for (back_off, expected) in [(1.5, [1.0, 1.5, 2.25, 3.375]), (3.0, [1.0, 3.0, 9.0, 27.0])] {
            let schedule = Schedule { back_off, jitter: 0.0, ..schedule(4, 0) };
            let waits = [1, 2, 3, 4].map(|k| schedule.wait(Duration::from_secs(1), k, &mut random));
            assert_eq!(waits.map(|wait| wait.as_secs_f64()), expected);
            let stretched = Schedule { stretch: Duration::from_secs(40), ..schedule };
            let gaps = [1, 2, 3, 4, 5].map(|k| stretched.wait(Duration::from_secs(1), k, &mut random));
            assert!(gaps.is_sorted() && gaps[..4].iter().sum::<Duration>() >= stretched.stretch, "{gaps:?}");
        }
    }

    #[test]
    fn without_jitter_the_first_wait_covers_the_whole_range() {
        let mut random = fastrand::Rng::with_seed(7);
        let schedule = Schedule { jitter: 0.0, ..schedule(4, 0) };
        let draws: Vec<_> = (0..500).map(|_| schedule.first_wait(&mut random).as_secs_f64()).collect();
        assert!(draws.iter().all(|draw| (2.0..=3.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw > 2.95) && draws.iter().any(|draw| *draw < 2.05));
    }

    #[test]
    fn a_stretched_schedule_ends_late_and_never_shrinks() {
        let first = Duration::from_secs(1);
        for max_retransmit in 2..=6 {
            let schedule = schedule(max_retransmit, 30);
            let offsets: Vec<_> = (0..=max_retransmit).map(|k| schedule.offset(first, k)).collect();
            assert!(offsets[max_retransmit as usize] >= Duration::from_secs(30), "{offsets:?}");
            assert_eq!(offsets[1], first);
            let gaps: Vec<_> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.is_sorted(), "{gaps:?}");
        }
        assert_eq!(schedule(1, 30).offset(first, 1), first);
    }

    #[test]
    fn the_last_two_copies_are_moved_and_what_follows_keeps_its_distance() {
        for (max_retransmit, stretch, offsets) in [
            (4, 0, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]),
            (1, 30, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]),
            (2, 30, [0.0, 1.0, 30.0, 59.0, 59.0, 59.0]),
            (3, 30, [0.0, 1.0, 5.477, 30.0, 54.523, 54.523]),
            (4, 30, [0.0, 1.0, 3.0, 9.487, 30.0, 50.513]),
            (4, 16, [0.0, 1.0, 3.0, 7.0, 16.0, 32.0]),
            (4, 10, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]),
        ] {
            let schedule = schedule(max_retransmit, stretch);
            for (k, offset) in (0..).zip(offsets) {
                let difference = schedule.offset(Duration::from_secs(1), k).as_secs_f64() - offset;
                assert!(difference.abs() < 0.001, "{k} of {max_retransmit} over {stretch} s: {difference}");
            }
        }
    }

    #[test]
    fn what_has_no_room_leaves_at_the_end_unless_its_wait_would_shrink() {
        for (max_retransmit, first, offsets) in [
            (5, 0.25, &[0.0, 0.25, 0.75, 1.75, 7.094, 28.75][..]),
            (5, 0.9, &[0.0, 0.9, 2.7, 6.3, 13.5, 28.75]),
            (5, 2.0, &[0.0, 2.0, 6.0, 14.0, 28.75]),
            (5, 5.0, &[0.0, 5.0, 15.0, 28.75]),
            (5, 5.5, &[0.0, 5.5, 28.75]),
            (5, 8.0, &[0.0, 8.0, 28.75]),
            (1, 2.0, &[0.0, 2.0]),
            (5, 29.0, &[0.0, 29.0]),
        ] {
            let stretch = Duration::from_millis(28_750);
            let schedule = Schedule { stretch, ends_at_stretch: true, ..schedule(max_retransmit, 0) };
            for (k, offset) in (0..).zip(offsets) {
                let difference = schedule.offset(Duration::from_secs_f64(first), k).as_secs_f64() - offset;
                assert!(difference.abs() < 0.001, "{k} of {max_retransmit} after {first} s: {difference}");
            }
        }
    }

    #[test]
    fn a_response_is_offered_for_max_wait_and_no_longer_than_its_client_remembers() {
        let parameters = TransmissionParameters {
            ack_timeout: Duration::from_secs(1),
            ack_random_factor: 1.2,
            retry_jitter: 0.1,
            max_retransmit: 2,
        };
        let now = Instant::ZERO + Duration::from_secs(5);
        for (max_wait, span, stretch) in [(1, 3.6, 0.8), (10, 10.0, 8.0), (60, 45.0, 40.909)] {
            let max_wait = Duration::from_secs(max_wait);
            let schedule = Schedule::of_response(&parameters, max_wait, now);
            assert_eq!(schedule.span.as_secs_f64(), span);
            assert!((schedule.stretch.as_secs_f64() - stretch).abs() < 0.001, "{:?}", schedule.stretch);
            assert_eq!((schedule.deadline, schedule.last_copy_before), (now + max_wait, now + max_wait));
            assert_eq!(schedule.lifetime, Duration::from_millis(204_600) + max_wait);
        }
        let late = Schedule { span: Duration::from_secs(20), ..schedule(4, 30) };
        assert_eq!(late.latest_offset(), Duration::from_secs(33), "jitter counts");
        assert_eq!(schedule(4, 30).latest_offset(), Duration::from_secs(45));
    }
}
