//! How soon an origin responds, for early Acknowledgements.

use std::time::Duration;

/// So many responses count.
const WINDOW: usize = 16;
/// Fewer say nothing.
const LEAST: u32 = 4;

/// The last times from a request's first copy to its response, queue time left out.
///
/// A request whose response cannot be back before the empty Acknowledgement is due may as well be
/// acknowledged at once: that keeps its client from sending it again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseTimes {
    /// In milliseconds.
    last: [u32; WINDOW],
    /// The least of those seen.
    least: u32,
    seen: u32,
}

impl ResponseTimes {
    pub(crate) fn saw(&mut self, time: Duration) {
        let place = self.seen as usize % WINDOW;
        let time = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.last[place], time);
        if self.seen == 0 || time <= self.least {
            self.least = time;
        } else if before == self.least && self.seen as usize >= WINDOW {
            self.least = self.last.iter().copied().min().unwrap_or(time);
        }
        // Past the window the count only has to stay past it.
        self.seen = if self.seen == u32::MAX { WINDOW as u32 } else { self.seen + 1 };
    }

    /// The fastest of the last responses; `None` while too little is known.
    pub(crate) fn fastest(&self) -> Option<Duration> {
        (self.seen >= LEAST).then(|| Duration::from_millis(self.least.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_last_sixteen_counts() {
        let mut times = ResponseTimes::default();
        (0..3).for_each(|_| times.saw(Duration::from_secs(1)));
        assert_eq!(times.fastest(), None, "three say nothing");
        times.saw(Duration::from_millis(20));
        assert_eq!(times.fastest(), Some(Duration::from_millis(20)));
        (0..16).for_each(|_| times.saw(Duration::from_secs(3)));
        assert_eq!(times.fastest(), Some(Duration::from_secs(3)), "the fast one is forgotten");
    }
}
