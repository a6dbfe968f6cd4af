//! What is proposed, on the path that the records came from and by chance that nothing was chosen by.

use std::collections::BTreeSet;
use std::sync::Mutex;

use coapway_endpoint::{Estimator, Nstart};
use coapway_proxy::UpstreamParameters;

use super::*;
use crate::predictor::Predictor;
use crate::rehearsal::Rehearsal;
use crate::rehearsal::tests::{path, records};
use crate::search::{Draw, Effort};
use crate::tally::Tally;

const FEW: Effort = Effort { search: (150, 2), told: (300, 4), threads: 2, seed: 1 };
/// Far from all that records are made with and policies are chosen by.
const FRESH: Draw = Draw { requests: 500, first_seed: 7_000_000, seeds: 8 };

fn fixed() -> UpstreamParameters {
    let mut fixed = UpstreamParameters::default();
    fixed.rto.estimator = Estimator::Fixed;
    fixed
}

/// What is known of the one upstream in 10 000 records of this path, made with these parameters.
fn known(path: &Path, in_force: &UpstreamParameters, search: &Search<'_>) -> Known {
    let (text, _) = records(path, in_force, 10_000, 1);
    let mut tally = Tally::default();
    tally.read("records", text.as_bytes(), &mut |_| ()).expect("text is read");
    tally.finish();
    let (name, observed) = tally.upstreams.iter().next().expect("an upstream");
    let advice = Advice::new(name, observed, tally.recorded(), None, search).expect("no configuration");
    let Verdict::Known(known) = advice.verdict else { panic!("10 000 are enough") };
    *known
}

fn search<'s>(predictor: &'s dyn Predictor) -> Search<'s> {
    Search { predictor, effort: FEW, progress: &|_, _| () }
}

/// What a proposal costs on the path itself as a share of what is in force does: over all scenarios, and the
/// difference as recorded in ms a request, both by fresh chance.
fn out_of_sample(path: &Path, known: &Known, proposal: &Policy) -> (f64, Interval) {
    let scenarios = scenarios(path);
    let policies = [known.in_force.policy.clone(), proposal.clone()];
    let judged = search(&Rehearsal).judge(&scenarios, &policies, FRESH);
    let prices = Prices::new(path, &known.in_force.policy);
    let more = judged[1].runs[0].more_than(&judged[0].runs[0], |run| prices.cost(run));
    (objective(&scenarios, &judged[1].runs, &judged[0].runs, &prices), more)
}

#[test]
fn a_proposal_is_better_on_the_path_itself_by_chance_it_was_not_chosen_by() {
    let slow = |loss| Path { round_trip: path(0.0).round_trip.scaled(10.0), load: 1.0, ..path(loss) };
    for (what, path, in_force, is_better) in [
        ("10 % lost, a fixed timeout", path(0.1), fixed(), true),
        ("2 % lost, a fixed timeout", path(0.02), fixed(), true),
        ("ten times slower, 5 % lost, as shipped", slow(0.05), UpstreamParameters::default(), false),
    ] {
        let known = known(&path, &in_force, &search(&Rehearsal));
        let Prediction { ref proposed, holds, objective: told, .. } = known.prediction;
        assert_eq!(holds, is_better, "{what}: {told}");
        // Where nothing is proposed, what is in force stays.
        let stays = &known.in_force.policy;
        let proposal = proposed.as_ref().filter(|_| holds).map_or(stays, |proposed| &proposed.policy);
        let (cost, more) = out_of_sample(&path, &known, proposal);
        if holds {
            assert!(cost < 0.9 && more.is_below(0.0), "{what}: {cost}, {more:?}");
            assert!((cost / told - 1.0).abs() < 0.2, "{what}: {cost} of what was in force, told was {told}");
        } else {
            assert!((cost - 1.0).abs() < 1e-9 && more.value == 0.0, "{what}: {cost}, {more:?}");
        }
    }
}

/// Notes by which chance how many requests are tried.
#[derive(Default)]
struct Noting(Mutex<BTreeSet<(usize, u64)>>);

impl Predictor for Noting {
    fn run(&self, _: &Path, policy: &Policy, requests: usize, seed: u64) -> Run {
        self.0.lock().expect("nobody failed").insert((requests, seed));
        let mean = if crate::policy::learns(policy) { 50.0 } else { 100.0 };
        Run { mean: mean + seed as f64 * 1e-3, answered: 1.0, copies: 1.0, ..Run::default() }
    }

    fn useful_share(&self, _: &Policy, _: usize, _: u64) -> f64 {
        1.0
    }
}

#[test]
fn what_is_told_is_simulated_by_chance_that_the_choice_has_not_seen() {
    let noting = Noting::default();
    let known = known(&path(0.1), &fixed(), &search(&noting));
    assert!(known.prediction.holds && known.prediction.proposed.is_some());
    let seen = noting.0.into_inner().expect("nobody failed");
    let of = |wanted: usize| -> BTreeSet<u64> {
        seen.iter().filter(|(requests, _)| *requests == wanted).map(|(_, seed)| *seed).collect()
    };
    let (chosen, told) = (of(FEW.search.0), of(FEW.told.0));
    assert_eq!((chosen.len(), told.len()), (2, 4), "{seen:?}");
    assert!(chosen.is_disjoint(&told), "{seen:?}");
}

#[test]
fn where_more_is_asked_than_one_at_a_time_can_serve_the_queue_is_predicted_and_a_window_proposed() {
    let crowded = Path { load: 8.0, ..path(0.05) };
    let one = UpstreamParameters { nstart: Nstart::Fixed(1), ..UpstreamParameters::default() };
    let (text, seen) = records(&crowded, &one, 10_000, 1);
    let mut tally = Tally::default();
    tally.read("records", text.as_bytes(), &mut |_| ()).expect("text is read");
    tally.finish();
    let (name, observed) = tally.upstreams.iter().next().expect("an upstream");
    let file = "[[upstreams]]\nname = \"origin\"\nuri = \"coap://10.2.0.1\"\nnstart = 1\n";
    let effort = Effort { told: (1000, 4), ..FEW };
    let search = Search { effort, ..search(&Rehearsal) };
    let file = Some((std::path::Path::new("coapway.toml"), file));
    let advice = Advice::new(name, observed, tally.recorded(), file, &search).expect("it is right");
    let Verdict::Known(known) = advice.verdict else { panic!("10 000 are enough") };
    let predicted = known.prediction.in_force.runs[0].of(|run| run.mean).value;
    assert!(
        (predicted / seen.mean - 1.0).abs() < 0.15,
        "{predicted} ms, and {} ms in the records",
        seen.mean
    );
    let answered = known.prediction.in_force.runs[0].of(|run| run.answered).value;
    assert!((answered - seen.answered).abs() < 0.05, "{answered}, and {} in the records", seen.answered);
    let proposed = known.found.policy.expect("something is better").settings;
    assert!(proposed.contains(&set("nstart", "\"auto\"")), "{proposed:?}");
}
