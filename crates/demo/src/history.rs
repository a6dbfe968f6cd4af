//! Round-trip times and the timeout, as far back as the chart shows them.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_proxy::{Learned, Record};
use coapway_time::Instant;

/// As long as the chart is wide.
pub(crate) const SPAN: Duration = Duration::from_secs(30);

/// What was measured when.
pub(crate) type Series = VecDeque<(Instant, Duration)>;

/// What was measured and learned.
#[derive(Debug, Default)]
pub(crate) struct History {
    round_trips: Series,
    timeouts: Series,
    latest: Option<Learned>,
}

impl History {
    pub(crate) fn recorded(&mut self, at: Instant, record: &Record) {
        let traces = record.exchanges.traces();
        let exact = traces.iter().filter(|trace| trace.confirmable);
        let exact = exact.filter_map(|trace| trace.exact_round_trip());
        self.round_trips.extend(exact.map(|round_trip| (at, round_trip)));
    }

    pub(crate) fn sample(&mut self, learned: Option<Learned>, now: Instant) {
        if let Some(learned) = learned {
            self.timeouts.push_back((now, learned.timeout));
        }
        self.latest = learned;
        for series in [&mut self.round_trips, &mut self.timeouts] {
            while series.pop_front_if(|&mut (at, _)| at + SPAN < now).is_some() {}
        }
    }

    /// Exact round-trip times.
    pub(crate) const fn round_trips(&self) -> &Series {
        &self.round_trips
    }

    /// The first timeout an exchange would have had.
    pub(crate) const fn timeouts(&self) -> &Series {
        &self.timeouts
    }

    /// The median of the newest round-trip times.
    pub(crate) fn usual_round_trip(&self) -> Option<Duration> {
        let mut newest: Vec<_> =
            self.round_trips.iter().rev().take(20).map(|&(_, round_trip)| round_trip).collect();
        newest.sort_unstable();
        newest.get(newest.len() / 2).copied()
    }
}
