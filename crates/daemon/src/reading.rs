//! Settings that are read again while the worker goes on: a large file takes tenths of a second.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use coapway_config::{Config, ConfigError, ConfigErrors};
use tokio::sync::oneshot;

use crate::arguments::Settings;
use crate::{loading, rehearsal};

/// What came of it: settings that are right by themselves and what this host has against them, or all that
/// is wrong with them.
pub(crate) type Outcome = Result<(Config, Vec<ConfigError>), ConfigErrors>;

/// Whether settings are being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    outcome: Option<oneshot::Receiver<Outcome>>,
    /// Whether that was asked for once more meanwhile: what was changed since may not have been read.
    again: bool,
}

impl Reading {
    /// Begins, or remembers to begin again. Reads on a thread of its own.
    pub(crate) fn begin(&mut self, settings: &Settings) {
        if self.outcome.is_some() {
            self.again = true;
            return;
        }
        let (sender, outcome) = oneshot::channel();
        self.outcome = Some(outcome);
        let aside = settings.clone();
        let thread = std::thread::Builder::new().name("settings".into());
        if thread.spawn(move || drop(sender.send(read(&aside)))).is_err() {
            // There is none: then everybody waits.
            let (sender, outcome) = oneshot::channel();
            self.outcome = Some(outcome);
            let _ = sender.send(read(settings));
        }
    }

    /// Waits for the outcome; says as well whether to begin again.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Outcome, bool)> {
        let Some(outcome) = &mut self.outcome else { return Poll::Pending };
        let outcome = ready!(Pin::new(outcome).poll(cx));
        self.outcome = None;
        // The thread always sends one.
        let outcome = outcome.unwrap_or_else(|_| Err(ConfigErrors::new(Vec::new())));
        Poll::Ready((outcome, std::mem::take(&mut self.again)))
    }
}

fn read(settings: &Settings) -> Outcome {
    let config = loading::load_again(settings)?;
    let errors = rehearsal::beforehand(&config);
    Ok((config, errors))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn settings(set: &str) -> Settings {
        Settings { set: vec![set.to_owned()], ..Settings::default() }
    }

    async fn outcome(reading: &mut Reading) -> (Outcome, bool) {
        poll_fn(|cx| reading.poll(cx)).await
    }

    #[tokio::test]
    async fn settings_are_read_aside_and_all_that_is_wrong_is_told() {
        let mut reading = Reading::default();
        reading.begin(&settings("upstream.max_wait=20s"));
        let (read, again) = outcome(&mut reading).await;
        assert!(read.is_ok_and(|(_, errors)| errors.is_empty()) && !again);
        reading.begin(&settings("upstream.max_wait=never"));
        let (read, _) = outcome(&mut reading).await;
        assert!(read.is_err());
    }

    #[tokio::test]
    async fn who_asks_meanwhile_has_them_read_again() {
        let mut reading = Reading::default();
        (0..3).for_each(|_| reading.begin(&settings("upstream.max_wait=20s")));
        let (_, again) = outcome(&mut reading).await;
        assert!(again);
        reading.begin(&settings("upstream.max_wait=20s"));
        assert!(matches!(outcome(&mut reading).await, (Ok(_), false)));
    }
}
