//! The clock of the tests.

use std::time::Instant;

/// The time.
#[expect(clippy::disallowed_methods, reason = "foreign processes and real sockets run by the real clock")]
pub fn now() -> Instant {
    Instant::now()
}
