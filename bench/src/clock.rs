//! The only place of the bench that reads the clock.

use std::time::Instant;

/// The present instant.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures real time; everything else gets it from here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
