//! Which of two notifications is the newer one.

use std::time::Duration;

use coapway_time::Instant;

/// After this time any notification is newer: the numbers may have come round.
const COME_ROUND: Duration = Duration::from_secs(128);
/// Half of the 24-bit numbers.
const HALF: u32 = 1 << 23;

/// The newest notification so far: its number, and when it came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order(Option<(u32, Instant)>);

impl Order {
    /// Whether a notification is newer than all before; then it is the newest from now on.
    ///
    /// Source: RFC 7641 §3.4.
    pub(super) fn is_newer(&mut self, v2: u32, now: Instant) -> bool {
        let newer = self.0.is_none_or(|(v1, received)| {
            v1 < v2 && v2 - v1 < HALF || v1 > v2 && v1 - v2 > HALF || now > received + COME_ROUND
        });
        if newer {
            self.0 = Some((v2, now));
        }
        newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_what_is_newer_until_they_may_have_come_round() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for (first, second, after, newer) in [
            (5, 6, 0, true),
            (5, 5, 0, false),
            (6, 5, 0, false),
            (0, HALF - 1, 0, true),
            (0, HALF, 0, false),
            ((1 << 24) - 1, 0, 0, true),
            (HALF, 0, 0, false),
            (6, 5, 128, false),
            (6, 5, 129, true),
            (5, 5, 129, true),
        ] {
            let mut order = Order::default();
            assert!(order.is_newer(first, at(0)));
            assert_eq!(order.is_newer(second, at(after)), newer, "{first}, then {second} after {after} s");
        }
    }

    #[test]
    fn an_older_one_does_not_become_the_newest() {
        let mut order = Order::default();
        assert!(order.is_newer(7, Instant::ZERO));
        assert!(!order.is_newer(3, Instant::ZERO));
        assert!(!order.is_newer(6, Instant::ZERO));
    }
}
