//! NSTART: how many exchanges with one origin may be outstanding (RFC 7252 §4.7).
//!
//! A loss alone does not shrink the window, or random loss would close it: it is cut only when the
//! path gives further reason to believe in congestion. What a path loses whatever the window is is found out by
//! a small one: where that does not help, the window is given back. A queue that grows without losing anything
//! is seen by the round-trip times: what waits there would better wait with us, where clients take turns.

use std::time::Duration;

use coapway_time::Instant;

use crate::parameters::Nstart;

/// Exact samples needed before the window has its floor.
const FLOOR_SAMPLES: u64 = 8;
const FLOOR: f64 = 4.0;

/// So many copies in a row without anything from the origin are silence; fewer are chance, since what is lost
/// takes a place for longer than what is not.
const SILENCE: u32 = 4;
/// On a path that loses much, as many as are lost in a row no more often than this.
const CHANCE: f64 = 0.001;

/// A window up to here fills no buffer.
const SMALL: f64 = 2.0 * FLOOR;
/// So many first copies with it say what the path loses by itself, and if no more than so many times as many of
/// them are enough, a larger one was not to blame.
const ENOUGH: u32 = 32;
const BETTER: f64 = 1.25;
/// With a larger one those of two windows are counted, which is no more than this.
const MOST: u32 = 256;

/// The typical round-trip time moves by one of so many parts of itself towards each sample, and of as many as
/// the window has places.
const PARTS: f64 = 16.0;
/// Round trips so many times as long are swollen, where they do not scatter: a full buffer of one bandwidth-delay
/// product makes it two.
const SWOLLEN: f64 = 1.75;
/// A queue on the way may make the round trip longer by so much, in microseconds, whatever it was before.
const QUEUE: f64 = 200_000.0;
/// What is left of the window, once a round trip, while the queue on the way is longer.
const RELIEF: f64 = 0.75;
/// Of so many round trips at the floor, so many that became shorter by less than this say that it is the path
/// itself.
const TRIED: u32 = 16;
const LONG: u32 = TRIED / 4;
const SHORTER: f64 = 1.5;

/// What becomes of first copies.
#[derive(Clone, Copy, Debug)]
struct FirstCopies {
    /// So many were acknowledged or ran out of time, of those that are counted now, and so many ran out …
    seen: u32,
    in_vain: u32,
    /// … of so many that will be.
    enough: u32,
    /// Whether they left since the window became small.
    by_small: bool,
    /// The share that was enough: of those counted last, and usually with a small window; 1 before it is known.
    share: f64,
    usual: f64,
    /// Whether the last count, and the last two, say that fewer than half as many are enough as usually.
    was_lossy: bool,
    is_lossy: bool,
}

/// A window that was made small because round trips had become long.
#[derive(Clone, Copy, Debug)]
struct Relief {
    /// What it was, and how long they typically took.
    size: f64,
    was_cut: bool,
    typical: f64,
    /// So many were seen since it is small, and so many were about as long.
    seen: u32,
    long: u32,
}

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
    first_copies: FirstCopies,
    /// What it was, and the share of first copies that were enough, before a small one was tried; until it is
    /// known whether that helps.
    suspected: Option<(f64, f64)>,
    /// The median of the last round-trip times, in microseconds; 0 before the first.
    typical: f64,
    /// Three in four were faster than this.
    slow: f64,
    /// The median while the window was small.
    unloaded: f64,
    relief: Option<Relief>,
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
            first_copies: FirstCopies {
                seen: 0,
                in_vain: 0,
                enough: 2 * ENOUGH,
                by_small: false,
                share: 1.0,
                usual: 1.0,
                was_lossy: false,
                is_lossy: false,
            },
            suspected: None,
            typical: 0.0,
            slow: 0.0,
            unloaded: 0.0,
            relief: None,
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
        (self.suspected, self.relief) = (None, None);
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
        if copies == 1 {
            self.sent_once(false);
        }
        let Nstart::Auto { max } = self.nstart else { return };
        if exact_samples >= FLOOR_SAMPLES {
            self.size = self.size.max(FLOOR);
        }
        let size = self.size;
        // At first a loss says no more than how the path is.
        let is_beginning = exact_samples < FLOOR_SAMPLES && size < FLOOR && !self.was_cut;
        if (copies == 1 || is_beginning) && waiting && !self.is_swollen() {
            self.size += if self.was_cut { 1.0 / self.size } else { 1.0 };
        }
        let is_tried = self.relief.is_some() && size <= FLOOR;
        if is_tried || self.suspected.is_some() && self.first_copies.by_small {
            self.size = self.size.min(size);
        }
        self.size = self.size.min(f64::from(max.max(1)));
    }

    /// A first copy was acknowledged, or ran out of time.
    fn sent_once(&mut self, in_vain: bool) {
        let first_copies = &mut self.first_copies;
        if first_copies.by_small && f64::from(self.outstanding) > SMALL {
            // Those that left before are on their way.
            return;
        }
        first_copies.in_vain += u32::from(in_vain);
        first_copies.seen += 1;
        if first_copies.seen >= first_copies.enough {
            self.judge();
        }
    }

    /// Enough were counted.
    ///
    /// State:   what share of first copies was enough, with a small window as well.
    /// Formula: the window is lossy when that share is less than half of what it is with a small one, twice
    ///          in a row: what is lost at one moment is gone, and no window would have saved it. A small window
    ///          is tried then. Where more first copies are enough with it, half of the large one is left, else
    ///          all of it.
    /// Known failure: a queue that is full before the window is larger than 8 looks like loss by chance.
    #[cold]
    fn judge(&mut self) {
        let FirstCopies { seen, in_vain, by_small, usual, was_lossy, .. } = self.first_copies;
        let share = 1.0 - f64::from(in_vain) / f64::from(seen);
        let is_lossy = share * 2.0 < usual && self.size > SMALL;
        if by_small && self.size <= SMALL {
            self.first_copies.usual = share;
            if let Some((size, before)) = self.suspected.take() {
                let is_better = share > before * BETTER;
                self.size = if is_better { (size / 2.0).max(self.size) } else { size };
            }
        } else if usual < 1.0 {
            // It cannot be much less than what a larger window has.
            self.first_copies.usual = usual.max(share / BETTER);
        }
        self.first_copies.share = share;
        self.first_copies.is_lossy = is_lossy && was_lossy;
        self.first_copies.was_lossy = is_lossy;
        self.count_anew(false);
    }

    /// Counts first copies from now on; `by_small` says whether the window has just become small.
    fn count_anew(&mut self, by_small: bool) {
        let enough = if by_small { ENOUGH } else { ((2.0 * self.size) as u32).clamp(2 * ENOUGH, MOST) };
        self.first_copies = FirstCopies { seen: 0, in_vain: 0, enough, by_small, ..self.first_copies };
    }

    /// So many copies in a row are not lost by chance, or however much is lost.
    fn silence(&self) -> u32 {
        let lost = 1.0 - self.first_copies.share;
        let (mut copies, mut chance) = (0, 1.0);
        while chance > CHANCE && copies < ENOUGH {
            (copies, chance) = (copies + 1, chance * lost);
        }
        copies.max(SILENCE)
    }

    /// An exact round-trip time was seen.
    ///
    /// State:   a running median, which single slow answers hardly move, now and when it was measured with
    ///          a window at its floor.
    /// Formula: while the first is 200 ms longer than the second and 1.75 q times as long, where q is how many
    ///          times as long as the median the upper quartile is, the window does not grow, and once a round
    ///          trip it is cut by a quarter, down to its floor. If round trips are as long there, it was not
    ///          to blame: it is what it was, and they are the usual ones.
    /// Known failure: an origin that slows down for reasons of its own is relieved for a while as well.
    pub fn saw(&mut self, round_trip: Duration, now: Instant) {
        let sample = round_trip.as_micros() as f64;
        let parts = self.parts();
        if self.typical == 0.0 {
            (self.typical, self.slow) = (sample, sample);
        }
        let step = self.typical / parts;
        self.typical += if sample > self.typical { step } else { -step };
        // Three in four are faster.
        let step = self.slow / parts * 0.5;
        self.slow += if sample > self.slow { 3.0 * step } else { -step };
        // That they are longer by themselves is for a relief to say, once it was seen how short they are.
        let is_unloaded =
            self.size <= FLOOR && self.relief.is_none() && (!self.was_cut || self.typical < self.unloaded);
        if is_unloaded || self.unloaded == 0.0 || self.typical * 2.0 < self.unloaded {
            self.unloaded = self.typical;
        }
        if self.relief.is_some() {
            self.watch_relief(sample);
        }
        if self.is_swollen() && matches!(self.nstart, Nstart::Auto { .. }) {
            self.relieve(now);
        }
    }

    /// Round trips are long: less may be under way, if that was not said just now.
    #[cold]
    fn relieve(&mut self, now: Instant) {
        let pause = Duration::from_micros(self.typical as u64);
        if self.size <= FLOOR || self.last_cut.is_some_and(|cut| now.since(cut) < pause) {
            return;
        }
        let (size, was_cut, typical) = (self.size, self.was_cut, self.typical);
        self.relief.get_or_insert(Relief { size, was_cut, typical, seen: 0, long: 0 });
        self.size = (self.size * RELIEF).max(FLOOR);
        (self.was_cut, self.last_cut, self.suspected) = (true, Some(now), None);
    }

    /// A round trip since the window is smaller.
    #[cold]
    fn watch_relief(&mut self, sample: f64) {
        let Some(relief) = &mut self.relief else { return };
        if self.size > FLOOR {
            if self.size >= relief.size {
                self.relief = None;
            }
            return;
        }
        if f64::from(self.outstanding) > FLOOR {
            // Those that left before are on their way.
            return;
        }
        relief.seen += 1;
        relief.long += u32::from(sample * SHORTER > relief.typical);
        if relief.seen >= TRIED {
            self.unloaded = self.typical;
            if relief.long >= LONG {
                (self.size, self.was_cut) = (relief.size, relief.was_cut);
                self.unloaded = self.typical.max(relief.typical);
            }
            self.relief = None;
        }
    }

    /// The typical round trip moves by one of so many parts of itself.
    fn parts(&self) -> f64 {
        match &self.relief {
            Some(relief) if relief.seen > 0 => f64::from(1 + relief.seen),
            _ => self.size.max(PARTS),
        }
    }

    /// Whether round trips are longer than they were, as by a queue on the way, and than they scatter.
    fn is_swollen(&self) -> bool {
        self.typical - self.unloaded > QUEUE
            && self.typical * self.typical > self.unloaded * self.slow.max(self.typical) * SWOLLEN
    }

    /// The wait for an Acknowledgement of a copy sent at `sent` ran out.
    pub fn timed_out(&mut self, loss: &Loss, now: Instant) {
        if matches!(self.nstart, Nstart::Fixed(_)) {
            return;
        }
        if loss.is_first {
            self.sent_once(true);
        }
        // What leaves at the moment of an arrival leaves because of it, or after it was read.
        self.unheard = self.unheard.saturating_add(1);
        let silent = self.unheard >= SILENCE
            && self.last_arrival.is_none_or(|arrival| arrival <= loss.sent)
            && self.unheard >= self.silence();
        let mostly_lost = self.first_copies.is_lossy;
        let recently = self.last_cut.is_some_and(|cut| now.since(cut) < loss.timeout);
        let floor = if loss.exact_samples >= FLOOR_SAMPLES { FLOOR } else { 1.0 };
        // A loss before anything was learned says nothing about how far the window may grow.
        let has_other_reason = silent || self.is_swollen();
        if (mostly_lost || has_other_reason) && !recently && self.size > floor {
            let before = self.size;
            let is_tried = mostly_lost && !has_other_reason;
            self.suspected = is_tried.then_some((before, self.first_copies.share));
            self.relief = self.relief.filter(|_| !silent);
            self.size = if is_tried { SMALL } else { (before / 2.0).max(floor) };
            self.was_cut = true;
            self.last_cut = Some(now);
            (self.first_copies.was_lossy, self.first_copies.is_lossy) = (false, false);
            self.count_anew(before > SMALL && self.size <= SMALL);
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
    /// Whether it was the exchange's first copy.
    pub is_first: bool,
    /// Exact samples so far.
    pub exact_samples: u64,
}

#[cfg(test)]
mod tests;
