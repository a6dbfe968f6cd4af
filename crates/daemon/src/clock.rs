//! The only `now()` of the product.

use std::time::{Duration, SystemTime};

use coapway_time::Instant;

/// The program starts at this instant: what it is told of earlier ones has a place before.
const START: Duration = Duration::from_secs(3600);

/// Microseconds since an hour before the program started, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: std::time::Instant,
    started_at: SystemTime,
}

impl Clock {
    /// Starts.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes from")]
    pub(crate) fn start() -> Self {
        Self { started: std::time::Instant::now(), started_at: SystemTime::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + START + self.started.elapsed()
    }

    /// The wall clock at [`Instant::ZERO`]; what it does after the start does not concern us.
    pub(crate) fn zero(&self) -> SystemTime {
        self.started_at.checked_sub(START).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The wall clock now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes from")]
    pub(crate) fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The instant in the runtime's terms.
    pub(crate) fn in_runtime(&self, instant: Instant) -> tokio::time::Instant {
        // A year is as good as never, and does not overflow.
        let offset = instant.since(Instant::ZERO + START).min(Duration::from_secs(365 * 86_400));
        tokio::time::Instant::from_std(self.started + offset)
    }
}
