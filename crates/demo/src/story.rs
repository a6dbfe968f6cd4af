//! One line that says what happens and why it matters.

use std::time::Duration;

use coapway_message::Evidence;
use coapway_proxy::{Cause, Event};
use coapway_time::Instant;

use crate::command::Command;
use crate::devices::DEVICES;
use crate::figures::Summary;
use crate::forwards::Forward;
use crate::place::{Place, Told};
use crate::policy::Policy;
use crate::weather::Sky;
use crate::words::{percent, time, time_or_dash, whole_percent};

mod tips;

/// How long a line stays before the next one that can wait, at speed 1.
const STAYS: Duration = Duration::from_millis(2_400);
/// How long until there is something else to say although nothing happened.
const IDLE: Duration = Duration::from_secs(8);
/// Retries are told of no more often than this.
const RETRIES: Duration = Duration::from_secs(20);
/// And bursts no more often than this.
const BURSTS: Duration = Duration::from_secs(60);
/// More lines than this wait for nobody.
const MOST: usize = 32;

/// What a line is about, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Calm,
    Good,
    Care,
    Bad,
}

/// What happens, and why it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) what: String,
    pub(crate) why: String,
}

impl Line {
    fn new(tone: Tone, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { tone, what: what.into(), why: why.into() }
    }
}

/// What can be told of.
#[derive(Debug)]
pub(crate) struct Scene<'d> {
    pub(crate) now: Instant,
    pub(crate) sky: Sky,
    pub(crate) usual_loss: f64,
    pub(crate) tour: bool,
    pub(crate) places: &'d [Place],
    pub(crate) shown: Policy,
}

impl Scene<'_> {
    fn place(&self) -> &Place {
        &self.places[self.shown.index()]
    }

    fn summary(&self, policy: Policy) -> Summary {
        self.places[policy.index()].summary()
    }
}

/// Tells the story.
#[derive(Debug)]
pub(crate) struct Story {
    line: Line,
    since: Instant,
    next: Option<Line>,
    told: Vec<(Instant, Line)>,
    speed: f64,
    learned: bool,
    /// When a retry was last told of.
    retried: Option<Instant>,
    /// When a burst was last told of.
    burst: Option<Instant>,
    /// When the latest outage began, and when it ended.
    outage: (Instant, Instant),
    /// Whether a 5.04 of it was told of.
    timed_out: bool,
    /// Whether requests that wait for their turn were told of.
    waiting: bool,
    /// Whether the first answer after an outage is awaited.
    recovering: bool,
    compared: bool,
    tip: usize,
}

impl Default for Story {
    fn default() -> Self {
        let line = Line::new(
            Tone::Calm,
            "Four devices ask one origin through coapway. The link is calm.",
            "Watch the line in the chart come down to the dots: the timeout is learned, not guessed.",
        );
        Self {
            told: vec![(Instant::ZERO, line.clone())],
            line,
            since: Instant::ZERO,
            next: None,
            speed: 1.0,
            learned: false,
            retried: None,
            burst: None,
            outage: (Instant::ZERO, Instant::ZERO),
            timed_out: false,
            waiting: false,
            recovering: false,
            compared: false,
            tip: 0,
        }
    }
}

impl Story {
    pub(crate) const fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) fn take_lines(&mut self) -> Vec<(Instant, Line)> {
        std::mem::take(&mut self.told)
    }

    pub(crate) const fn set_speed(&mut self, speed: f64) {
        self.speed = speed;
    }

    /// What the proxy told and how requests ended in the world that is shown.
    pub(crate) fn told(&mut self, told: &[(Instant, Told)], scene: &Scene<'_>) {
        for (at, told) in told {
            let Told::Event(Event::Answered { request, cause, evidence, .. }) = told else { continue };
            let Some(forward) = scene.place().forwards().get(*request) else { continue };
            match cause {
                Cause::Origin => self.answered(forward, *at, scene),
                Cause::Failed(_) => self.failed(forward, *evidence, *at, scene),
                Cause::Refused
                | Cause::Local
                | Cause::Held
                | Cause::Dormant
                | Cause::ClientGone
                | Cause::Joined
                | Cause::Withheld => {}
            }
        }
    }

    fn answered(&mut self, forward: &Forward, at: Instant, scene: &Scene<'_>) {
        let asked = DEVICES[forward.device].asks();
        if self.recovering {
            self.recovering = false;
            let timeout = time_or_dash(scene.place().learned().map(|learned| learned.timeout));
            let copies = forward.copies.len();
            let what = match copies {
                0 | 1 => format!("First answer after the outage: {asked}. The timeout is back at {timeout}."),
                _ => format!("First answer after the outage: copy {copies} of {asked} came through."),
            };
            let why =
                "What was scheduled goes on by itself; a back-off ends with the first exact round trip.";
            self.can_wait(Line::new(Tone::Good, what, why), at);
        } else if let [first, second, ..] = forward.copies[..]
            && self.retried.is_none_or(|retried| at.since(retried) > self.scaled(RETRIES))
            && forward.received >= self.outage.1
            && !scene.sky.outage
        {
            let (waited, took) = (time(second.since(first)), time(forward.took(at)));
            let why = match DEVICES[forward.device].method.is_idempotent() {
                true => {
                    "The device saw one answer, a little late. Without a second copy it would have heard nothing."
                }
                false => {
                    "A POST waits at least 2 s: an origin might execute each copy, so there are two at most."
                }
            };
            let what = format!("{asked}: no answer, so copy 2 left after {waited}; answered in {took}.");
            let line = Line::new(Tone::Good, what, why);
            if self.retried.is_none() {
                self.at_once(line, at);
            } else {
                self.can_wait(line, at);
            }
            self.retried = Some(at);
        }
    }

    fn failed(&mut self, forward: &Forward, evidence: Option<Evidence>, at: Instant, scene: &Scene<'_>) {
        let is_of_this_outage = scene.sky.outage && forward.received >= self.outage.0;
        let Some(end) = forward.end.filter(|_| is_of_this_outage && !self.timed_out) else { return };
        self.timed_out = true;
        let asked = DEVICES[forward.device].asks();
        let took = time(forward.took(at));
        let evidence = evidence.map_or("", Evidence::name);
        let silent = scene.summary(Policy::Bare).silent;
        let line = Line::new(
            Tone::Bad,
            format!("{asked}: {} after {took}, {evidence}. Never silence.", end.code),
            format!(
                "The device knows where it stands. Bare devices were left without a word {silent} times so far."
            ),
        );
        self.at_once(line, at);
    }

    /// The weather changed.
    pub(crate) fn turned(&mut self, before: Sky, scene: &Scene<'_>) {
        let Sky { loss, burst, outage } = scene.sky;
        let now = scene.now;
        if outage && !before.outage {
            (self.timed_out, self.waiting, self.recovering) = (false, false, false);
            self.outage.0 = now;
            let line = Line::new(
                Tone::Bad,
                "Outage: nothing passes, in either direction.",
                "Within 500 ms each device has an empty Acknowledgement: it is heard, and need not repeat itself.",
            );
            self.at_once(line, now);
        } else if before.outage && !outage {
            self.recovering = true;
            self.outage.1 = now;
            let held = time_or_dash(scene.place().learned().map(|learned| learned.timeout));
            let line = Line::new(
                Tone::Care,
                format!("The link is back, with {} lost each way.", whole_percent(loss)),
                format!("Timeouts had backed off to {held}; copies that are still due come through now."),
            );
            self.at_once(line, now);
        } else if burst
            && !before.burst
            && self.burst.is_none_or(|burst| now.since(burst) > self.scaled(BURSTS))
        {
            self.burst = Some(now);
            let line = Line::new(
                Tone::Care,
                format!("A burst: {} lost each way for a moment.", whole_percent(loss)),
                "A loss alone does not shrink the window: on a weak link that would shut it.",
            );
            self.can_wait(line, now);
        } else if scene.tour && loss > before.loss {
            let again = 1.0 - (1.0 - loss) * (1.0 - loss);
            let line = Line::new(
                Tone::Care,
                format!("The link begins to lose {} each way.", whole_percent(loss)),
                format!("{} of all exchanges need a further copy now.", whole_percent(again)),
            );
            self.at_once(line, now);
        }
    }

    /// Whoever watches did something.
    pub(crate) fn asked(&mut self, command: Command, (slow, forgetful): (bool, bool), scene: &Scene<'_>) {
        let line = match command {
            Command::MoreLoss | Command::LessLoss => tips::loss(scene),
            Command::SlowOrigin => tips::slow(slow),
            Command::ForgetfulOrigin => tips::forgetful(forgetful),
            Command::Estimator | Command::Deduplicates | Command::Show(_) => tips::shown(scene),
            Command::Reset => Line::new(Tone::Calm, "Counted anew from here.", "What was learned stays."),
            // The weather tells of it.
            Command::Outage => return,
        };
        self.at_once(line, scene.now);
    }

    /// Time passes.
    pub(crate) fn tick(&mut self, scene: &Scene<'_>) {
        let Scene { now, .. } = *scene;
        let age = now.since(self.since);
        if age < self.scaled(STAYS) {
            return;
        }
        self.learns(scene);
        self.waits(scene);
        if let Some(line) = self.next.take() {
            self.at_once(line, now);
        } else if (age >= self.scaled(IDLE) && !scene.sky.outage) || (!scene.tour && !self.compared) {
            let line = tips::tip(self.tip, scene);
            self.tip += 1;
            self.compared = true;
            self.at_once(line, now);
        }
    }

    /// An origin that is silent gets no more than its window.
    fn waits(&mut self, scene: &Scene<'_>) {
        let Some(learned) = scene.place().learned().filter(|learned| learned.queued > 0) else { return };
        if self.waiting || !scene.sky.outage {
            return;
        }
        self.waiting = true;
        let line = Line::new(
            Tone::Care,
            format!(
                "{} exchanges are outstanding, {} requests wait for their turn.",
                learned.outstanding, learned.queued
            ),
            "An origin that is silent is not flooded (NSTART). What never left is answered not-sent: harmless.",
        );
        self.at_once(line, scene.now);
    }

    fn learns(&mut self, scene: &Scene<'_>) {
        let Some(learned) = scene.place().learned().filter(|_| !self.learned) else { return };
        let Some(usual) = scene.place().history().usual_round_trip() else { return };
        if learned.samples < 6 || learned.timeout > Duration::from_secs(1) {
            return;
        }
        self.learned = true;
        let times = Duration::from_secs(2).as_secs_f64() / learned.timeout.as_secs_f64();
        let (timeout, samples) = (time(learned.timeout), learned.samples);
        let line = Line::new(
            Tone::Good,
            format!("Timeout learned: {timeout}, from {samples} round trips of about {}.", time(usual)),
            format!("A loss is noticed {times:.0} times sooner than with the fixed 2 s of RFC 7252."),
        );
        self.at_once(line, scene.now);
    }

    fn can_wait(&mut self, line: Line, now: Instant) {
        if now.since(self.since) >= self.scaled(STAYS) {
            self.at_once(line, now);
        } else {
            self.next = Some(line);
        }
    }

    fn at_once(&mut self, line: Line, now: Instant) {
        if self.told.len() < MOST {
            self.told.push((now, line.clone()));
        }
        (self.line, self.since, self.next) = (line, now, None);
    }

    fn scaled(&self, duration: Duration) -> Duration {
        duration.mul_f64(self.speed.max(1.0))
    }
}

/// A share as a number of percent, or a dash.
fn share(of: Option<f64>) -> String {
    percent(of)
}
