//! The wall clock, which paces what is shown.

use std::time::{Duration, Instant};

/// Never show more than this much in one step: after a pause of the process the demo does not race.
const LONGEST: Duration = Duration::from_millis(250);

/// How much time passed between looks at it.
#[derive(Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the demo is shown in real time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How much passed since the last look.
    pub(crate) fn lap(&mut self) -> Duration {
        let lap = self.0.elapsed();
        self.0 += lap;
        lap.min(LONGEST)
    }
}
