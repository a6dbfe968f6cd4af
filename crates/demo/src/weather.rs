//! What the weak link is like, from moment to moment: a short tour first, then steady loss with bursts
//! and an outage now and then. Whoever watches may change it.

use std::time::Duration;

use coapway_sim::network::{Link, stream};
use coapway_time::Instant;

/// The tour: what is lost each way, and until when, in milliseconds.
const TOUR: [(f64, u64); 4] = [(0.0, 5_500), (0.25, 10_500), (1.0, 18_000), (0.1, 23_000)];
/// What is lost each way when the tour is over.
const USUAL: f64 = 0.1;
/// What is lost in a burst, at least.
const BURST: f64 = 0.6;
const STEP: f64 = 0.05;
const MOST: f64 = 0.6;
/// How long an outage lasts that somebody asks for: longer than `max_wait`, so that its end is seen.
const OUTAGE: Duration = Duration::from_millis(7_500);

/// What the link is like at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sky {
    /// The share of datagrams that is lost, each way.
    pub(crate) loss: f64,
    /// Whether that is a burst.
    pub(crate) burst: bool,
    /// Whether nothing passes.
    pub(crate) outage: bool,
}

impl Sky {
    /// One direction of the link.
    pub(crate) const fn link(&self) -> Link {
        Link {
            delay: Duration::from_millis(40),
            jitter: Duration::from_millis(30),
            loss: if self.outage { 1.0 } else { self.loss },
            duplication: 0.0,
            reordering: 0.0,
        }
    }
}

/// The weather.
#[derive(Debug)]
pub(crate) struct Weather {
    random: fastrand::Rng,
    now: Instant,
    /// The part of the tour, while it lasts.
    tour: Option<usize>,
    loss: f64,
    burst_until: Option<Instant>,
    next_burst: Instant,
    outage_until: Option<Instant>,
    next_outage: Instant,
}

impl Weather {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(stream(seed, &["weather"])),
            now: Instant::ZERO,
            tour: Some(0),
            loss: USUAL,
            burst_until: None,
            next_burst: Instant::ZERO,
            outage_until: None,
            next_outage: Instant::ZERO,
        }
    }

    pub(crate) fn sky(&self) -> Sky {
        if let Some((loss, _)) = self.tour.and_then(|part| TOUR.get(part)) {
            return Sky { loss: *loss, burst: false, outage: *loss == 1.0 };
        }
        let burst = self.burst_until.is_some();
        let loss = if burst { self.loss.max(BURST) } else { self.loss };
        Sky { loss, burst, outage: self.outage_until.is_some() }
    }

    /// Whether it still shows what there is to see.
    pub(crate) const fn is_on_tour(&self) -> bool {
        self.tour.is_some()
    }

    /// When it changes next by itself.
    pub(crate) fn next(&self) -> Instant {
        if let Some((_, until)) = self.tour.and_then(|part| TOUR.get(part)) {
            return Instant::from_micros(until * 1000);
        }
        self.burst_until.unwrap_or(self.next_burst).min(self.outage_until.unwrap_or(self.next_outage))
    }

    /// It is `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while self.next() <= now {
            match self.tour {
                Some(part) if part + 1 < TOUR.len() => self.tour = Some(part + 1),
                Some(_) => self.end_tour(),
                None => self.turn(),
            }
        }
    }

    /// More is lost, or less.
    pub(crate) fn change_loss(&mut self, more: bool) {
        if self.is_on_tour() {
            let shown = self.sky();
            self.end_tour();
            self.loss = if shown.outage { USUAL } else { shown.loss };
        }
        let loss = if more { self.loss + STEP } else { self.loss - STEP };
        // In whole steps, so that many changes leave no crumbs.
        self.loss = ((loss / STEP).round() * STEP).clamp(0.0, MOST);
    }

    /// Nothing passes for a while, or it ends.
    pub(crate) fn toggle_outage(&mut self) {
        let outage = self.sky().outage;
        self.end_tour();
        self.outage_until = (!outage).then(|| self.now + OUTAGE);
    }

    /// How much is lost each way, bursts and outages aside.
    pub(crate) fn usual_loss(&self) -> f64 {
        if self.is_on_tour() { self.sky().loss } else { self.loss }
    }

    fn end_tour(&mut self) {
        if self.tour.take().is_some() {
            self.next_burst = self.now + self.between(6, 14);
            self.next_outage = self.now + self.between(55, 90);
        }
    }

    fn turn(&mut self) {
        if self.burst_until.unwrap_or(self.next_burst) <= self.now {
            self.burst_until = match self.burst_until {
                Some(_) => None,
                None => Some(self.now + self.between(1, 3)),
            };
            self.next_burst = self.now + self.between(8, 24);
        }
        if self.outage_until.unwrap_or(self.next_outage) <= self.now {
            self.outage_until = match self.outage_until {
                Some(_) => None,
                None => Some(self.now + OUTAGE),
            };
            self.next_outage = self.now + self.between(55, 90);
        }
    }

    /// So many seconds, drawn evenly.
    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(least * 1000..most * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_tour_goes_from_calm_over_loss_and_outage_to_recovery() {
        let mut weather = Weather::new(1);
        let mut seen = |seconds| {
            weather.handle_timeout(at(seconds));
            let sky = weather.sky();
            (sky.loss, sky.outage)
        };
        assert_eq!(seen(1.0), (0.0, false));
        assert_eq!(seen(6.0), (0.25, false));
        assert_eq!(seen(11.0), (1.0, true));
        assert_eq!(seen(18.5), (0.1, false));
        assert_eq!(seen(23.5), (USUAL, false));
        assert!(!weather.is_on_tour());
    }

    #[test]
    fn bursts_and_outages_come_and_go_by_themselves() {
        let mut weather = Weather::new(1);
        let (mut bursts, mut outages, mut changes) = (0, 0, 0);
        while weather.next() < at(600.0) {
            let before = weather.sky();
            weather.handle_timeout(weather.next());
            let sky = weather.sky();
            bursts += u32::from(sky.burst && !before.burst);
            outages += u32::from(sky.outage && !before.outage);
            changes += 1;
        }
        assert!((25..60).contains(&bursts) && (6..12).contains(&outages), "{bursts} {outages}");
        assert!(changes < 200, "{changes}");
    }

    #[test]
    fn whoever_changes_it_ends_the_tour() {
        let mut weather = Weather::new(1);
        weather.handle_timeout(at(6.0));
        weather.change_loss(true);
        assert!(!weather.is_on_tour());
        let sky = weather.sky();
        assert_eq!(((sky.loss * 100.0).round(), sky.burst, sky.outage), (30.0, false, false));
        (0..20).for_each(|_| weather.change_loss(false));
        assert_eq!(weather.usual_loss(), 0.0);
        (0..50).for_each(|_| weather.change_loss(true));
        assert_eq!(weather.usual_loss(), MOST);
    }

    #[test]
    fn an_outage_ends_by_itself_or_when_asked_to() {
        let mut weather = Weather::new(1);
        weather.toggle_outage();
        assert!(weather.sky().outage);
        weather.toggle_outage();
        assert!(!weather.sky().outage);
        weather.toggle_outage();
        weather.handle_timeout(at(7.5));
        assert!(!weather.sky().outage);
    }
}
