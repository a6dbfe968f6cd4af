//! At most 100 lines a minute for one cause, so that no stranger fills a disk.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coapway_time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::{ONCE_A_MINUTE, OPERATOR};
use crate::clock::Clock;

const MINUTE: Duration = Duration::from_secs(60);
/// With the line that says how many were left out, 100.
const LINES: u32 = 99;

/// The target of lines about lines, which are not counted.
pub(super) const ABOUT_LIMIT: &str = "limit";

/// Counts the lines of each cause: of each place in the program that makes one.
#[derive(Debug)]
pub(super) struct Limit {
    clock: Clock,
    causes: Mutex<BTreeMap<(&'static str, &'static str), Cause>>,
    /// Whether a cause has lines to tell of, so that asking costs nothing.
    some_left_out: AtomicBool,
}

#[derive(Debug)]
struct Cause {
    /// When its minute began.
    since: Instant,
    lines: u32,
    left_out: u64,
    /// The words of the first line that was left out.
    words: String,
    level: Level,
}

/// Lines of one cause that were left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) cause: String,
    pub(super) lines: u64,
    pub(super) level: Level,
}

impl Limit {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, causes: Mutex::default(), some_left_out: AtomicBool::new(false) }
    }

    pub(super) fn has_left_out(&self) -> bool {
        self.some_left_out.load(Ordering::Relaxed)
    }

    /// What was left out in minutes that are over, or in `all`.
    pub(super) fn take_left_out(&self, all: bool) -> Vec<LeftOut> {
        if !self.has_left_out() {
            return Vec::new();
        }
        let now = self.clock.now();
        let mut causes = self.causes();
        let mut over = Vec::new();
        let mut waiting = false;
        for cause in causes.values_mut().filter(|cause| cause.left_out > 0) {
            if all || cause.since + MINUTE <= now {
                let lines = std::mem::take(&mut cause.left_out);
                over.push(LeftOut { cause: std::mem::take(&mut cause.words), lines, level: cause.level });
            } else {
                waiting = true;
            }
        }
        self.some_left_out.store(waiting, Ordering::Relaxed);
        over
    }

    fn causes(&self) -> MutexGuard<'_, BTreeMap<(&'static str, &'static str), Cause>> {
        self.causes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(
        &self,
        place: (&'static str, &'static str),
        level: Level,
        most: u32,
        words: impl FnOnce() -> String,
        now: Instant,
    ) -> bool {
        let mut causes = self.causes();
        let cause = causes.entry(place).or_insert_with(|| Cause {
            since: now,
            lines: 0,
            left_out: 0,
            words: String::new(),
            level,
        });
        // What was left out is told before a new minute begins, or the count would be of two.
        if cause.since + MINUTE <= now && cause.left_out == 0 {
            (cause.since, cause.lines) = (now, 0);
        }
        if cause.lines < most {
            cause.lines += 1;
            return true;
        }
        if cause.left_out == 0 {
            cause.words = words();
            self.some_left_out.store(true, Ordering::Relaxed);
        }
        cause.left_out += 1;
        false
    }
}

impl<S: Subscriber> Layer<S> for &'static Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let most = match metadata.target() {
            ABOUT_LIMIT | OPERATOR => return true,
            ONCE_A_MINUTE => 1,
            _ => LINES,
        };
        let words = || {
            let mut words = Words::default();
            event.record(&mut words);
            words.0
        };
        // Its name holds the file and the line.
        let place = (metadata.target(), metadata.name());
        self.admits(place, *metadata.level(), most, words, self.clock.now())
    }
}

/// The message of an event.
#[derive(Default)]
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = coapway_config::escaped(format_args!("{value:?}")).to_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: (&str, &str) = ("coapway", "event here");

    fn at(seconds: u64) -> Instant {
        // As the clock has it, which starts an hour after zero.
        Instant::ZERO + Duration::from_secs(3600 + seconds)
    }

    fn admitted(limit: &Limit, place: (&'static str, &'static str), most: u32, second: u64) -> bool {
        limit.admits(place, Level::WARN, most, || format!("words {second}"), at(second))
    }

    #[test]
    fn a_flood_is_a_hundred_lines_with_the_one_that_says_how_many_are_missing() {
        let limit = Limit::new(Clock::start());
        let told = (0..10_000).filter(|_| admitted(&limit, HERE, LINES, 7)).count();
        assert_eq!(told, 99);
        assert!(admitted(&limit, ("coapway", "event elsewhere"), LINES, 7), "each cause by itself");
        assert_eq!(limit.take_left_out(false), [], "its minute is not over");
        let left_out = limit.take_left_out(true);
        let expected = LeftOut { cause: "words 7".to_owned(), lines: 9901, level: Level::WARN };
        assert_eq!(left_out, [expected]);
        assert!(!limit.has_left_out());
    }

    #[test]
    fn a_new_minute_has_lines_again_once_the_last_is_told() {
        let limit = Limit::new(Clock::start());
        (0..200).for_each(|_| _ = admitted(&limit, HERE, LINES, 0));
        assert!(!admitted(&limit, HERE, LINES, 61), "nobody has told yet what was left out");
        assert_eq!(limit.take_left_out(true)[0].lines, 102);
        assert_eq!((0..200).filter(|_| admitted(&limit, HERE, LINES, 62)).count(), 99);
    }

    #[test]
    fn some_lines_come_once_a_minute() {
        let limit = Limit::new(Clock::start());
        let told: Vec<_> = (0..120).filter(|&second| admitted(&limit, HERE, 1, second)).collect();
        assert_eq!(told, [0]);
        assert_eq!(limit.take_left_out(true)[0].lines, 119);
        assert!(admitted(&limit, HERE, 1, 120));
    }
}
