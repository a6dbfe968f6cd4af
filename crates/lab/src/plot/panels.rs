//! The four panels of a cell.

use super::axes::{Axes, Scale, percent, time};
use super::picture::{Anchor, GREY, LETTER, Mark, Picture, colour};
use crate::figures::MOST_RETRIES;
use crate::scenario::Scenario;
use crate::statistics::Estimate;
use crate::study::{Study, Summary};
use crate::table::described;

const WIDTH: f64 = 1240.0;
const PANEL: (f64, f64) = (WIDTH / 2.0, 330.0);
const HEAD: f64 = 84.0;
const ROW: f64 = HEAD + 2.0 * PANEL.1 + 20.0;

/// All cells, one below the other.
pub(super) fn picture(study: &Study, results: &[Vec<Summary>]) -> Picture {
    let mut picture = Picture { width: WIDTH, height: ROW * results.len() as f64, marks: Vec::new() };
    for (place, (scenario, summaries)) in study.cells.iter().zip(results).enumerate() {
        let top = place as f64 * ROW;
        head(&mut picture, top, study, scenario);
        let at = |column: f64, row: f64| (column * PANEL.0, top + HEAD + row * PANEL.1);
        latencies(&mut picture, at(0.0, 0.0), summaries);
        retries(&mut picture, at(1.0, 0.0), summaries);
        timeouts(&mut picture, at(0.0, 1.0), scenario, summaries);
        costs(&mut picture, at(1.0, 1.0), study, summaries);
    }
    picture
}

fn head(picture: &mut Picture, top: f64, study: &Study, scenario: &Scenario) {
    picture.title((20.0, top + 24.0), scenario.title());
    picture.text((20.0, top + 44.0), described(study, scenario), Anchor::Start);
    let mut x = 20.0;
    for (place, policy) in study.policies.iter().enumerate() {
        let y = top + 66.0;
        picture.line(vec![(x, y - 4.0), (x + 24.0, y - 4.0)], colour(place), 4.0);
        picture.text((x + 30.0, y), &*policy.name, Anchor::Start);
        x += 30.0 + (policy.name.chars().count() as f64 + 3.0) * LETTER.0;
    }
}

/// The share of all requests that is answered within a time.
fn latencies(picture: &mut Picture, at: (f64, f64), summaries: &[Summary]) {
    let steps: Vec<_> = summaries.iter().map(|summary| summary.latencies.steps()).collect();
    let times = || steps.iter().flatten().map(|(seconds, _)| *seconds);
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let x = Scale::logarithmic("time from request to answer (logarithmic)", least, most, time);
    let ticks = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0].map(|share| (share, format!("{share:.0}"))).to_vec();
    let y = Scale::marked("answered, % of all requests", 0.0, 100.0, ticks);
    let axes = Axes::draw(
        picture,
        at,
        PANEL,
        "How soon requests are answered: higher and further left is better",
        x,
        y,
    );
    for (place, (summary, steps)) in summaries.iter().zip(&steps).enumerate() {
        let asked: f64 = summary.runs.iter().map(|run| run[0]).sum();
        let points = steps.iter().map(|(seconds, below)| (*seconds, *below as f64 / asked * 100.0));
        axes.line(picture, points, colour(place));
    }
    if most == 0.0 {
        axes.nothing(picture, "nothing was answered");
    }
}

/// How many copies requests took.
fn retries(picture: &mut Picture, at: (f64, f64), summaries: &[Summary]) {
    let shares: Vec<Vec<f64>> = summaries
        .iter()
        .map(|summary| {
            let all = summary.retries.iter().sum::<u64>().max(1) as f64;
            summary.retries.iter().map(|count| *count as f64 / all).collect()
        })
        .collect();
    let most = shares.iter().filter_map(|shares| shares.iter().rposition(|share| *share > 0.0)).max();
    let columns = most.unwrap_or(0).max(3) + 1;
    let last = |place: usize| if place == MOST_RETRIES { format!("{place}+") } else { place.to_string() };
    let ticks = (0..columns).map(|place| (place as f64, last(place))).collect();
    let x = Scale::marked("copies after the first", -0.5, columns as f64 - 0.5, ticks);
    let least = shares.iter().flatten().copied().filter(|share| *share > 0.0).fold(0.01, f64::min);
    let y = Scale::logarithmic("% of requests (logarithmic)", least * 0.999, 1.0, percent);
    let axes =
        Axes::draw(picture, at, PANEL, "How many further copies they took: further left is better", x, y);
    let step = axes.at(1.0, 1.0).0 - axes.at(0.0, 1.0).0;
    let width = step * 0.8 / summaries.len() as f64;
    for (policy, shares) in shares.iter().enumerate() {
        for (place, share) in shares.iter().enumerate().take(columns).filter(|(_, share)| **share > 0.0) {
            let shift = step * -0.4 + policy as f64 * width;
            axes.column(picture, (place as f64, *share), shift, width * 0.9, colour(policy));
        }
    }
}

/// Which timeout was in force, and which would have done.
fn timeouts(picture: &mut Picture, at: (f64, f64), scenario: &Scenario, summaries: &[Summary]) {
    let samples =
        || summaries.iter().flat_map(|summary| &summary.timeline.samples).map(|sample| sample.timeout);
    let first = summaries.first().map(|summary| &summary.timeline.round_trips[..]).unwrap_or_default();
    let values = || samples().chain(first.iter().map(|(_, seconds)| *seconds)).filter(|value| *value > 0.0);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let seconds = scenario.duration.as_secs_f64();
    let (unit, name) = match seconds {
        _ if seconds > 4.0 * 3600.0 => (3600.0, "time, hours"),
        _ if seconds > 180.0 => (60.0, "time, minutes"),
        _ => (1.0, "time, seconds"),
    };
    let x = Scale::linear(name, 0.0, seconds / unit);
    let y = Scale::logarithmic("seconds (logarithmic)", least, most, time);
    let title = "First timeout (lines) and what answers took (dots), first run";
    let axes = Axes::draw(picture, at, PANEL, title, x, y);
    for (moment, seconds) in first {
        let at = axes.at(moment / unit, *seconds);
        picture.marks.push(Mark::Dot { at, radius: 1.5, colour: GREY });
    }
    for (place, summary) in summaries.iter().enumerate() {
        let points = summary.timeline.samples.iter().map(|sample| (sample.at / unit, sample.timeout));
        axes.line(picture, points, colour(place));
    }
}

/// What a shorter latency costs in copies.
fn costs(picture: &mut Picture, at: (f64, f64), study: &Study, summaries: &[Summary]) {
    let estimate = |summary: &Summary, key| {
        crate::figures::metric(key).and_then(|place| summary.estimates.get(place).copied())
    };
    let points: Vec<(usize, Estimate, Estimate)> = summaries
        .iter()
        .enumerate()
        .filter_map(|(place, summary)| {
            Some((place, estimate(summary, "transmissions")?, estimate(summary, "mean")?))
        })
        .filter(|(_, copies, mean)| copies.mean.is_finite() && mean.mean.is_finite())
        .collect();
    let reach = |estimate: Estimate, sign: f64| {
        estimate.mean + sign * if estimate.within.is_nan() { 0.0 } else { estimate.within }
    };
    let most = |of: &dyn Fn(&(usize, Estimate, Estimate)) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let least = points.iter().map(|(_, copies, _)| reach(*copies, -1.0)).fold(f64::INFINITY, f64::min);
    let widest = most(&|(_, copies, _)| reach(*copies, 1.0));
    let room = ((widest - least) * 0.15).max(0.01);
    let x = Scale::linear("copies per request", (least - room).max(0.0), widest + room);
    let y = Scale::linear("mean latency, seconds", 0.0, most(&|(_, _, mean)| reach(*mean, 1.0)) * 1.1);
    let title = "What speed costs: lower left is better, dashed joins the best";
    let axes = Axes::draw(picture, at, PANEL, title, x, y);
    let mut best: Vec<_> = points
        .iter()
        .filter(|(_, copies, mean)| {
            !points.iter().any(|(_, other, latency)| {
                other.mean <= copies.mean
                    && latency.mean <= mean.mean
                    && (other.mean, latency.mean) != (copies.mean, mean.mean)
            })
        })
        .map(|(_, copies, mean)| (copies.mean, mean.mean))
        .collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    if best.len() > 1 {
        let points = best.into_iter().map(|(x, y)| axes.at(x, y)).collect();
        picture.marks.push(Mark::Line { points, colour: GREY, width: 1.0, dashed: true });
    }
    for (place, copies, mean) in points {
        let bars = [
            [(reach(copies, -1.0), mean.mean), (reach(copies, 1.0), mean.mean)],
            [(copies.mean, reach(mean, -1.0)), (copies.mean, reach(mean, 1.0))],
        ];
        for bar in bars {
            axes.line(picture, bar.into_iter(), colour(place));
        }
        let (x, y) = axes.at(copies.mean, mean.mean);
        picture.marks.push(Mark::Dot { at: (x, y), radius: 5.0, colour: colour(place) });
        let anchor = if x > at.0 + PANEL.0 * 0.7 { Anchor::End } else { Anchor::Start };
        let shift = if anchor == Anchor::End { -9.0 } else { 9.0 };
        let name = study.policies.get(place).map(|policy| policy.name.clone()).unwrap_or_default();
        picture.text((x + shift, y - 7.0), name, anchor);
    }
}
