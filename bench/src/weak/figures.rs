//! What a run over one link came to, measured or simulated.

use std::time::Duration;

use anyhow::{Context as _, Result};
use coapway_lab::{
    ClientLaw, Estimate, Law, METRICS, OriginLaw, Pace, PathLaw, Policy, Scenario, Study, WayLaw,
};

use super::plan::Plan;
use crate::hostile::good::Tally;

/// What is compared, by the names that the simulator has for it.
pub(super) const MEASURES: [&str; 4] = ["mean", "p95", "answered", "transmissions"];
/// Places of those that are to hold.
pub(super) const MEAN: usize = 0;
pub(super) const P95: usize = 1;

/// One run over one link, in the order of [`MEASURES`]: seconds, seconds, a share, copies per request.
pub(super) type Figures = [f64; MEASURES.len()];

/// One measure over all runs.
pub(super) fn over(runs: &[Figures], measure: usize) -> Estimate {
    Estimate::of(runs.iter().map(|run| run[measure]))
}

/// What was measured over one link.
pub(super) fn measured(tally: &mut Tally, copies: u64) -> Figures {
    let sent = tally.sent as f64;
    let p95 = if tally.latencies.len() == 0 { f64::NAN } else { tally.latencies.quantile(0.95) };
    [tally.latencies.mean() / 1e6, p95 / 1e6, tally.right as f64 / sent, copies as f64 / sent]
}

/// The same scenario in the simulator.
pub(super) struct Prediction {
    /// The very runs that were measured: the same requests, and the same fate of each copy.
    pub(super) same: Vec<Figures>,
    /// Runs by other chance.
    pub(super) others: Vec<Figures>,
}

/// What is predicted.
pub(super) struct Question {
    pub(super) seed: u64,
    pub(super) rate: f64,
    pub(super) length: Duration,
    /// There and back.
    pub(super) round_trip: Duration,
    /// Shares that are lost in each direction.
    pub(super) losses: Vec<f64>,
    /// Runs by other chance.
    pub(super) others: u32,
    pub(super) threads: usize,
}

impl Question {
    /// The prediction for each loss.
    pub(super) fn ask(&self, plan: &Plan, policy: Policy) -> Result<Vec<Prediction>> {
        let measured = plan.chances.len();
        let study = Study {
            policies: vec![policy],
            cells: self.losses.iter().map(|&loss| self.scenario(plan, loss)).collect(),
            runs: measured as u32 + self.others,
            seed: self.seed,
            threads: self.threads,
        };
        let places = MEASURES.map(|key| METRICS.iter().position(|metric| metric.key == key));
        let figures =
            |run: &[f64; METRICS.len()]| places.map(|place| place.map_or(f64::NAN, |place| run[place]));
        let cells = study.run(&|_| ());
        let predictions = cells.iter().map(|policies| {
            let summary = policies.first().context("nothing was simulated")?;
            let (same, others) = summary.runs.split_at_checked(measured).context("runs are missing")?;
            Ok(Prediction {
                same: same.iter().map(figures).collect(),
                others: others.iter().map(figures).collect(),
            })
        });
        predictions.collect()
    }

    fn scenario(&self, plan: &Plan, loss: f64) -> Scenario {
        let usual = Scenario::default();
        let way = |way: WayLaw| WayLaw { loss, ..way };
        Scenario {
            name: "weak".into(),
            duration: self.length,
            clients: ClientLaw { count: plan.clients.into(), pace: Pace::Rate(self.rate), ..usual.clients },
            path: PathLaw {
                rtt: Law::Constant(self.round_trip.as_secs_f64()),
                up: way(usual.path.up.clone()),
                down: way(usual.path.down.clone()),
                ..usual.path
            },
            origin: OriginLaw { payload: 16, ..usual.origin },
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_asks_what_is_planned() {
        let length = Duration::from_secs(60);
        let plan = Plan::new(11, 3, 4, 6.0, length);
        let question = Question {
            seed: 11,
            rate: 6.0,
            length,
            round_trip: Duration::from_millis(100),
            losses: vec![0.0, 0.1],
            others: 2,
            threads: 1,
        };
        let policy = Policy::parse(coapway_lab::DEFAULT, &[]).expect("the default");
        let predictions = question.ask(&plan, policy).expect("a prediction");
        let [lossless, lossy] = &predictions[..] else { panic!("one for each loss") };
        assert_eq!((lossless.same.len(), lossless.others.len()), (3, 2));
        for run in lossless.same.iter().chain(&lossless.others) {
            let [mean, p95, answered, copies] = *run;
            // A few wait for the first answer, before the window opens.
            assert!((0.1..0.105).contains(&mean) && (p95 - 0.1).abs() < 1e-6, "{run:?}");
            assert_eq!((answered, copies), (1.0, 1.0));
        }
        // The first copy of a request is lost where its fate says so, whatever the simulator does with it.
        let lost = |origin: usize| {
            let chance = plan.chances[origin];
            let own = plan.requests.iter().filter(|it| usize::from(it.origin) == origin);
            let loses = own.filter(|it| {
                let errand =
                    coapway_lab::Errand::Copy { client: it.client.into(), number: it.number, copy: 0 };
                [coapway_lab::Direction::Up, coapway_lab::Direction::Down]
                    .into_iter()
                    .any(|to| chance.loses(errand, to, 0.1))
            });
            loses.count() as f64
        };
        for (origin, run) in lossy.same.iter().enumerate() {
            let asked = plan.requests.iter().filter(|it| usize::from(it.origin) == origin).count() as f64;
            let copies = run[3] * asked;
            assert!((copies - copies.round()).abs() < 1e-6, "as many requests as planned: {run:?}");
            assert!(copies.round() >= asked + lost(origin), "{run:?}");
            assert!(run[MEAN] > 0.1 && run[P95] > 0.1, "{run:?}");
        }
    }
}
