//! The only `now()` of the product.

use std::time::{Duration, SystemTime};

use coapway_time::Instant;

/// Microseconds since the program started, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: std::time::Instant,
    started_at: SystemTime,
}

impl Clock {
    /// Starts at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes from")]
    pub(crate) fn start() -> Self {
        Self { started: std::time::Instant::now(), started_at: SystemTime::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// The wall clock at the start; what it does later does not concern us.
    pub(crate) const fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// The instant in the runtime's terms.
    pub(crate) fn in_runtime(&self, instant: Instant) -> tokio::time::Instant {
        // A year is as good as never, and does not overflow.
        let offset = instant.since(Instant::ZERO).min(Duration::from_secs(365 * 86_400));
        tokio::time::Instant::from_std(self.started + offset)
    }
}
