//! The demo in lines of text: one a second, and what is worth a word in between.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use coapway_time::Instant;

use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::demo::Demo;
use crate::policy::Policy;
use crate::signals::Signals;
use crate::words::{clock, percent, time_or_dash, whole_percent};

/// Between two looks at clock and signals.
const PAUSE: Duration = Duration::from_millis(50);
/// The policies are compared this often.
const COMPARED: u64 = 20;

/// Runs until a signal or the time ends it, or nobody reads any more.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let signals = Signals::listen(|| {})?;
    let mut demo = Demo::new(arguments.seed);
    let mut lines = Lines { out: io::stdout().lock(), next: Instant::ZERO };
    lines.begin(&demo)?;
    let mut wall = Clock::start();
    let mut paced = Instant::ZERO;
    while !signals.say_stop() {
        let end = arguments.duration.map(|duration| Instant::ZERO + duration);
        let until = end.map_or(paced, |end| end.min(paced));
        lines.write_until(&mut demo, until)?;
        if end.is_some_and(|end| demo.now() >= end) {
            break;
        }
        thread::park_timeout(PAUSE);
        paced += wall.lap().mul_f64(arguments.speed);
    }
    lines.end(&demo)
}

struct Lines<W> {
    out: W,
    /// When the next line is due.
    next: Instant,
}

impl<W: Write> Lines<W> {
    fn begin(&mut self, demo: &Demo) -> io::Result<()> {
        writeln!(
            self.out,
            "coapway demo, seed {}: 4 devices, coapway, a weak link, one origin",
            demo.seed()
        )?;
        writeln!(
            self.out,
            "time  loss each way  answered (no proxy)  silent (no proxy)  copies  RTT  timeout  window"
        )
    }

    fn write_until(&mut self, demo: &mut Demo, until: Instant) -> io::Result<()> {
        while demo.now() < until || self.next <= until {
            demo.run_until(self.next.min(until));
            for (at, line) in demo.take_lines() {
                writeln!(self.out, "{:>5} » {} {}", clock(at.since(Instant::ZERO)), line.what, line.why)?;
            }
            if demo.now() < self.next {
                break;
            }
            writeln!(self.out, "{}", now(demo))?;
            self.next += Duration::from_secs(1);
            if demo.elapsed().as_secs().is_multiple_of(COMPARED) && demo.elapsed() > Duration::ZERO {
                self.out.write_all(compared(demo).as_bytes())?;
            }
        }
        self.out.flush()
    }

    fn end(&mut self, demo: &Demo) -> io::Result<()> {
        self.out.write_all(compared(demo).as_bytes())?;
        self.out.flush()
    }
}

fn now(demo: &Demo) -> String {
    let sky = demo.sky();
    let loss = if sky.outage { "outage".to_owned() } else { whole_percent(sky.loss) };
    let (bare, shown) = (summary(demo, Policy::Bare), summary(demo, demo.shown()));
    let learned = demo.place().learned();
    let round_trip = demo.place().history().usual_round_trip();
    format!(
        "{:>5}   {loss:>6}  answered {:>6} ({:>6})  silent {:>4} ({:>6})  copies {:.2}  RTT {:>6}  timeout {:>6}  window {}",
        clock(demo.elapsed()),
        percent(shown.share_answered()),
        percent(bare.share_answered()),
        percent(shown.share_silent()),
        percent(bare.share_silent()),
        shown.copies.unwrap_or(1.0),
        time_or_dash(round_trip),
        time_or_dash(learned.map(|learned| learned.timeout)),
        learned.map_or(1, |learned| learned.window),
    )
}

fn summary(demo: &Demo, policy: Policy) -> crate::figures::Summary {
    demo.summaries()
        .into_iter()
        .find(|(which, _)| *which == policy)
        .map(|(_, summary)| summary)
        .unwrap_or_default()
}

/// The price of each policy.
fn compared(demo: &Demo) -> String {
    let mut text = String::from(
        "      policy              answered  silent    mean     P95  copies  POST unanswered  POST twice\n",
    );
    for (policy, summary) in demo.summaries() {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "      {:<18}  {:>8}  {:>6}  {:>6}  {:>6}  {:>6}  {:>15}  {:>10}",
            policy.name(),
            percent(summary.share_answered()),
            percent(summary.share_silent()),
            time_or_dash(summary.mean),
            time_or_dash(summary.p95),
            summary.copies.map_or("–".to_owned(), |copies| format!("{copies:.2}")),
            percent(summary.share_posts_unanswered()),
            percent(summary.share_posts_twice()),
        );
    }
    text
}
