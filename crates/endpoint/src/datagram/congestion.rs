//! NSTART: how many exchanges with one origin may be outstanding (RFC 7252 §4.7).
//!
//! A loss alone does not shrink the window, or random loss would close it: it is cut only when the
//! path gives further reason to believe in congestion. A queue that grows without losing anything is seen by
//! the round-trip times: what waits there would better wait with us, where clients take turns.

use std::time::Duration;

use coapway_time::Instant;

use crate::parameters::Nstart;

/// Exact samples needed before the window has its floor.
const FLOOR_SAMPLES: u64 = 8;
const FLOOR: f64 = 4.0;

/// So many copies in a row without anything from the origin are silence; fewer are chance, since what is lost
/// takes a place for longer than what is not.
const SILENCE: u32 = 4;

/// The typical round-trip time moves by this share of itself towards each sample.
const STEP: f64 = 1.0 / 16.0;
/// A queue on the way may make the round trip longer by so much, in microseconds, whatever it was before.
const QUEUE: f64 = 200_000.0;
/// What is left of the window, once a round trip, while the queue on the way is longer.
const RELIEF: f64 = 0.75;

/// The window of outstanding exchanges towards one origin.
#[derive(Clone, Debug)]
pub struct Window {
    nstart: Nstart,
    size: f64,
    outstanding: u32,
    was_cut: bool,
    last_cut: Option<Instant>,
    last_arrival: Option<Instant>,
    /// Copies that went without Acknowledgement since then.
    unheard: u32,
    /// The last exchanges, newest in the lowest bit: one for each that needed a second copy.
    needed_copies: u128,
    /// The median of the last round-trip times, in microseconds; 0 before the first.
    typical: f64,
    /// What it was while the window was small.
    unloaded: f64,
}

impl Window {
    /// An empty window.
    pub const fn new(nstart: Nstart) -> Self {
        Self {
            nstart,
            size: 1.0,
            outstanding: 0,
            was_cut: false,
            last_cut: None,
            last_arrival: None,
            unheard: 0,
            needed_copies: 0,
            typical: 0.0,
            unloaded: 0.0,
        }
    }

    /// Takes over a changed setting.
    pub const fn set_nstart(&mut self, nstart: Nstart) {
        self.nstart = nstart;
    }

    /// How many exchanges may be outstanding now.
    pub fn size(&self) -> u32 {
        match self.nstart {
            Nstart::Auto { max } => (self.size as u32).clamp(1, max.max(1)),
            Nstart::Fixed(size) => size.max(1),
        }
    }

    /// How many are.
    pub const fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Whether one more may start.
    pub fn is_open(&self) -> bool {
        self.outstanding < self.size()
    }

    /// An exchange starts.
    pub const fn start(&mut self) {
        self.outstanding += 1;
    }

    /// An exchange no longer counts: acknowledged, answered, failed, or a NON's timeout is over.
    pub fn end(&mut self) {
        debug_assert!(self.outstanding > 0, "each exchange ends once");
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Begins anew with one exchange at a time, as for an origin that nothing is known of.
    pub const fn restart(&mut self) {
        (self.size, self.was_cut) = (1.0, false);
    }

    /// Begins with what was learned in another life, which may no longer hold: half of that window, from
    /// where it grows slowly.
    pub fn resume(&mut self, size: u32) {
        (self.size, self.was_cut) = (f64::from(size / 2).max(1.0), true);
    }

    /// When anything came from the origin last.
    pub const fn last_arrival(&self) -> Option<Instant> {
        self.last_arrival
    }

    /// Anything came from the origin.
    pub const fn arrived(&mut self, now: Instant) {
        (self.last_arrival, self.unheard) = (Some(now), 0);
    }

    /// A Confirmable exchange was acknowledged after `copies` copies; `exact_samples` were seen so
    /// far, and `waiting` says whether the queue is not empty.
    pub fn acknowledged(&mut self, copies: u32, exact_samples: u64, waiting: bool) {
        self.needed_copies = self.needed_copies << 1 | u128::from(copies > 1);
        let Nstart::Auto { max } = self.nstart else { return };
        if exact_samples >= FLOOR_SAMPLES {
            self.size = self.size.max(FLOOR);
        }
        if copies == 1 && waiting && !self.is_swollen() {
            self.size += if self.was_cut { 1.0 / self.size } else { 1.0 };
        }
        self.size = self.size.min(f64::from(max.max(1)));
    }

    /// An exact round-trip time was seen.
    ///
    /// State:   a running median, which single slow answers hardly move, now and when it was measured with
    ///          a window at its floor.
    /// Formula: while the first is more than twice the second and 200 ms longer, the window does not grow,
    ///          and once a round trip it is cut by a quarter, down to its floor.
    /// Known failure: an origin that slows down for reasons of its own is relieved as well. At the floor
    ///          the new time is taken for the usual one.
    pub fn saw(&mut self, round_trip: Duration, now: Instant) {
        let sample = round_trip.as_micros() as f64;
        if self.typical == 0.0 {
            self.typical = sample;
        } else if sample > self.typical {
            self.typical *= 1.0 + STEP;
        } else {
            self.typical *= 1.0 - STEP;
        }
        if self.size <= FLOOR || self.unloaded == 0.0 || self.typical * 2.0 < self.unloaded {
            self.unloaded = self.typical;
        }
        let is_auto = matches!(self.nstart, Nstart::Auto { .. });
        let pause = Duration::from_micros(self.typical as u64);
        if self.is_swollen()
            && self.size > FLOOR
            && is_auto
            && self.last_cut.is_none_or(|cut| now.since(cut) >= pause)
        {
            self.size = (self.size * RELIEF).max(FLOOR);
            (self.was_cut, self.last_cut) = (true, Some(now));
        }
    }

    /// Whether round trips are longer than they were, as by a queue on the way.
    fn is_swollen(&self) -> bool {
        self.typical - self.unloaded > self.unloaded.max(QUEUE)
    }

    /// The wait for an Acknowledgement of a copy sent at `sent` ran out.
    pub fn timed_out(&mut self, loss: &Loss, now: Instant) {
        if matches!(self.nstart, Nstart::Fixed(_)) {
            return;
        }
        // What leaves at the moment of an arrival leaves because of it, or after it was read.
        self.unheard = self.unheard.saturating_add(1);
        let silent = self.unheard >= SILENCE && self.last_arrival.is_none_or(|arrival| arrival <= loss.sent);
        // Of fewer, chance makes it most now and then although each way loses but 15 %.
        let considered = (2.0 * self.size).clamp(64.0, 128.0) as u32;
        let mask = u128::MAX >> (128 - considered);
        let mostly_lost = (self.needed_copies & mask).count_ones() * 2 > considered;
        let recently = self.last_cut.is_some_and(|cut| now.since(cut) < loss.timeout);
        let floor = if loss.exact_samples >= FLOOR_SAMPLES { FLOOR } else { 1.0 };
        // A loss before anything was learned says nothing about how far the window may grow.
        if (silent || mostly_lost || self.is_swollen()) && !recently && self.size > floor {
            self.size = (self.size / 2.0).max(floor);
            self.was_cut = true;
            self.last_cut = Some(now);
        }
    }
}

/// What is known about the path when a copy went without Acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When the copy left.
    pub sent: Instant,
    /// The timeout that ran out.
    pub timeout: Duration,
    /// Exact samples so far.
    pub exact_samples: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: Nstart = Nstart::Auto { max: 1024 };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn loss(sent: u64) -> Loss {
        Loss { sent: at(sent), timeout: Duration::from_secs(2), exact_samples: 100 }
    }

    fn grown(to: u32) -> Window {
        let mut window = Window::new(AUTO);
        while window.size() < to {
            window.acknowledged(1, 100, true);
        }
        window
    }

    #[test]
    fn starts_with_one_and_grows_only_while_requests_wait() {
        let mut window = Window::new(AUTO);
        assert_eq!(window.size(), 1);
        window.acknowledged(1, 1, false);
        assert_eq!(window.size(), 1);
        window.acknowledged(1, 2, true);
        assert_eq!(window.size(), 2);
        window.acknowledged(1, 8, false);
        assert_eq!(window.size(), 4);
        assert_eq!(grown(1024).size(), 1024);
    }

    /// So many copies in a row were lost and nothing was heard meanwhile, the last at `second`.
    fn silent(window: &mut Window, copies: u32, second: u64) {
        window.arrived(at(9));
        (0..copies).for_each(|_| window.timed_out(&loss(10), at(second)));
    }

    #[test]
    fn three_copies_in_a_row_are_chance_and_four_are_silence() {
        for (copies, size) in [(3, 64), (4, 32), (40, 32)] {
            let mut window = grown(64);
            silent(&mut window, copies, 12);
            assert_eq!(window.size(), size, "{copies} copies");
        }
        let mut window = grown(64);
        silent(&mut window, 3, 12);
        silent(&mut window, 3, 14);
        assert_eq!(window.size(), 64, "something was heard in between");
    }

    #[test]
    fn random_loss_does_not_close_it() {
        let mut window = grown(64);
        window.arrived(at(11));
        window.timed_out(&loss(10), at(12));
        assert_eq!(window.size(), 64);
    }

    #[test]
    fn silence_halves_it_once_a_timeout_and_down_to_the_floor() {
        let mut window = grown(64);
        silent(&mut window, 4, 12);
        window.timed_out(&loss(10), at(13));
        assert_eq!(window.size(), 32);
        for second in 0..40 {
            window.timed_out(&loss(20 + second), at(20 + second));
        }
        assert_eq!(window.size(), 4);
        window.arrived(at(70));
        window.acknowledged(1, 200, true);
        assert!(window.size() < 6, "after a cut it grows by one a round trip");
    }

    #[test]
    fn a_loss_while_a_queue_stands_halves_it() {
        let mut window = Window::new(AUTO);
        round_trips(&mut window, 0, 60, 100);
        (0..50).for_each(|_| window.saw(Duration::from_secs(2), at(100)));
        assert_eq!(window.size(), 48, "the queue itself cuts it once a round trip");
        window.arrived(at(111));
        window.timed_out(&loss(110), at(112));
        assert_eq!(window.size(), 24);
    }

    #[test]
    fn round_trips_that_scatter_and_random_loss_leave_it_alone() {
        let mut window = grown(64);
        let mut random = fastrand::Rng::with_seed(1);
        for second in 0..5000 {
            // From a third of the usual to three times as long, and three in ten are lost.
            window.saw(Duration::from_millis(100).mul_f64(9_f64.powf(random.f64() - 0.5)), at(second));
            window.arrived(at(second));
            let is_lost = random.f64() < 0.3;
            if is_lost {
                window.timed_out(&loss(second), at(second + 1));
            }
            window.acknowledged(1 + u32::from(is_lost), 100, true);
        }
        assert_eq!(window.size(), 1024);
    }

    #[test]
    fn mostly_lost_exchanges_halve_it() {
        let mut window = grown(10);
        for _ in 0..33 {
            window.acknowledged(2, 100, true);
        }
        window.arrived(at(11));
        window.timed_out(&loss(10), at(12));
        assert_eq!(window.size(), 5);
    }

    /// A window of 40, whose last 80 exchanges count: so many of them needed copies, and all before did.
    fn after_losses(lost: usize) -> Window {
        let mut window = grown(40);
        for copies in
            [2; 48].into_iter().chain([2; 80].into_iter().take(lost)).chain([1; 80].into_iter().skip(lost))
        {
            window.acknowledged(copies, 100, false);
        }
        window.arrived(at(11));
        window.timed_out(&loss(10), at(12));
        window
    }

    #[test]
    fn twice_the_window_of_exchanges_says_whether_most_were_lost() {
        assert_eq!(after_losses(40).size(), 40, "half is not most");
        assert_eq!(after_losses(41).size(), 20);
        let mut clean = grown(64);
        for _ in 0..128 {
            clean.acknowledged(1, 100, false);
        }
        clean.arrived(at(11));
        clean.timed_out(&loss(10), at(12));
        assert_eq!(clean.size(), 64, "an exchange of one copy lost none");
    }

    #[test]
    fn a_timeout_after_a_cut_it_may_be_cut_again() {
        let mut window = grown(64);
        silent(&mut window, 3, 11);
        for (second, size) in [(12, 32), (13, 32), (14, 16)] {
            window.timed_out(&loss(10), at(second));
            assert_eq!(window.size(), size, "at {second} s");
        }
    }

    /// So many round trips of `millis`, one a second, while requests wait; returns the smallest window.
    fn round_trips(window: &mut Window, from: u64, count: u64, millis: u64) -> u32 {
        let sizes = (from..from + count).map(|second| {
            window.saw(Duration::from_millis(millis), at(second));
            window.acknowledged(1, 100, true);
            window.size()
        });
        sizes.min().unwrap_or(0)
    }

    #[test]
    fn a_standing_queue_stops_its_growth_and_brings_it_down() {
        let mut window = Window::new(AUTO);
        round_trips(&mut window, 0, 60, 100);
        assert_eq!(window.size(), 64);
        assert_eq!(round_trips(&mut window, 100, 100, 2000), 4);
        round_trips(&mut window, 300, 100, 2000);
        assert!(window.size() > 10, "what lasts is the path, and no queue of ours");
    }

    #[test]
    fn neither_single_slow_answers_nor_short_queues_count() {
        let mut window = grown(64);
        for exchange in 1..1000 {
            let millis = if exchange % 10 == 0 { 4000 } else { 20 };
            window.saw(Duration::from_millis(millis), at(exchange));
        }
        assert_eq!(window.size(), 64);
        for exchange in 0..1000 {
            window.saw(Duration::from_millis(200), at(exchange));
        }
        assert_eq!(window.size(), 64, "ten times as long, and 180 ms");
    }

    #[test]
    fn a_loss_at_the_floor_does_not_slow_the_growth() {
        let mut window = Window::new(AUTO);
        (0..4).for_each(|_| window.timed_out(&Loss { exact_samples: 0, ..loss(0) }, at(2)));
        for exchange in 0..20 {
            window.acknowledged(1, exchange, true);
        }
        assert_eq!(window.size(), 21);
    }

    #[test]
    fn a_copy_that_left_at_the_moment_of_the_last_arrival_was_not_heard_of() {
        let mut window = grown(64);
        window.arrived(at(10));
        (0..4).for_each(|_| window.timed_out(&loss(10), at(12)));
        assert_eq!(window.size(), 32);
    }

    #[test]
    fn it_begins_anew_with_one_and_resumes_with_half() {
        let mut window = grown(64);
        window.restart();
        assert_eq!(window.size(), 1);
        window.resume(64);
        assert_eq!(window.size(), 32);
        window.resume(1);
        assert_eq!(window.size(), 1);
    }

    #[test]
    fn a_changed_setting_holds_at_once() {
        let mut window = grown(64);
        for (nstart, size) in [(Nstart::Fixed(3), 3), (Nstart::Auto { max: 10 }, 10), (AUTO, 64)] {
            window.set_nstart(nstart);
            assert_eq!(window.size(), size);
        }
    }

    #[test]
    fn a_number_fixes_it() {
        let mut window = Window::new(Nstart::Fixed(3));
        window.acknowledged(1, 100, true);
        window.timed_out(&loss(0), at(9));
        assert_eq!(window.size(), 3);
        for _ in 0..3 {
            assert!(window.is_open());
            window.start();
        }
        assert!(!window.is_open());
        window.end();
        assert!(window.is_open());
    }
}
