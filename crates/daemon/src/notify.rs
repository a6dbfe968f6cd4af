//! What the service manager is told (sd_notify(3)); without one nothing happens.

use std::time::Duration;

use coapway_time::Instant;
use sd_notify::NotifyState;

use crate::log::ONCE_A_MINUTE;

/// Serving, as `status` says.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Settings are read again; [`ready`] follows, whatever comes of it.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the monotonic clock cannot be read"),
    }
}

/// Stopping, which may take so long.
pub(crate) fn stopping(within: Duration, status: &str) {
    let within = u32::try_from(within.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(within), NotifyState::Status(status)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(target: ONCE_A_MINUTE, %error, "the service manager cannot be told");
    }
}

/// Tells the service manager that the worker turns, where it wants to know.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Half of what the service manager waits.
    every: Option<Duration>,
    due: Instant,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self::every(sd_notify::watchdog_enabled().map(|limit| limit / 2))
    }

    fn every(every: Option<Duration>) -> Self {
        Self { every: every.filter(|every| !every.is_zero()), due: Instant::ZERO }
    }

    /// Called on every turn; says when the next one is to be at the latest.
    pub(crate) fn ping(&mut self, now: Instant) -> Option<Instant> {
        let every = self.every?;
        if self.due <= now {
            self.due = now + every;
            tell(&[NotifyState::Watchdog]);
        }
        Some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_has_the_worker_turn_at_half_its_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut watchdog = Watchdog::every(Some(Duration::from_millis(500)));
        assert_eq!(watchdog.ping(at(0)), Some(at(500)));
        assert_eq!(watchdog.ping(at(499)), Some(at(500)));
        assert_eq!(watchdog.ping(at(700)), Some(at(1200)), "late once");
        assert_eq!(Watchdog::every(None).ping(at(700)), None, "nobody asked");
    }
}
