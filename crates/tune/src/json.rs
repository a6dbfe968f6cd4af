//! The same for programs.

use coapway_records::METHODS;
use serde_json::{Map, Value, json};

use crate::advice::{Advice, Known, MEASURES, Verdict};
use crate::interval::Interval;

use crate::policy::{Policy, Setting};
use crate::predictor::Runs;
use crate::report::toml;
use crate::search::Judged;
use crate::tally::Tally;

/// All that was found.
pub(crate) fn of(tally: &Tally, advice: &[Advice<'_>]) -> Value {
    let bad = tally.bad.iter().map(|(bad, (number, example))| {
        let first = json!({ "file": example.file, "line": example.line, "why": example.why });
        (bad.name().to_owned(), json!({ "count": number, "first": first }))
    });
    json!({
        "forwards": tally.forwards,
        "lines": tally.lines,
        "bytes": tally.bytes,
        "refused": tally.refused,
        "recorded": tally.recorded(),
        "left_out": tally.beyond,
        "bad_lines": bad.collect::<Map<_, _>>(),
        "upstreams": advice.iter().map(upstream).collect::<Vec<_>>(),
    })
}

fn interval(interval: &Interval) -> Value {
    json!({ "value": interval.value, "low": interval.low, "high": interval.high })
}

fn upstream(advice: &Advice<'_>) -> Value {
    let observed = advice.observed;
    let methods = METHODS.iter().copied().chain(["others"]).zip(observed.methods);
    let methods: Map<_, _> = methods.map(|(name, number)| (name.to_owned(), number.into())).collect();
    let causes = observed.causes.iter().map(|(cause, number)| (cause.told().to_owned(), json!(number)));
    let codes = observed
        .codes
        .iter()
        .map(|(code, number)| (format!("{}.{:02}", code >> 5, code & 31), json!(number)));
    let mut value = json!({
        "name": advice.name,
        "forwards": observed.forwards,
        "exchanges": observed.trials,
        "requests_per_second": advice.load,
        "origins": observed.origins,
        "methods": methods,
        "non_confirmable": observed.non_confirmable,
        "outcomes": causes.collect::<Map<_, _>>(),
        "codes": codes.collect::<Map<_, _>>(),
        "outcome_unknown": observed.outcome_unknown,
        "mean_ms": observed.latency.mean(),
        "p95_ms": observed.latency.quantile(0.95),
        "copies": 1.0 + observed.retries_per_request(),
        "retries": observed.retries,
    });
    let more = match &advice.verdict {
        Verdict::TooLittle(need) => json!({ "verdict": "too-little", "needed": need.need }),
        Verdict::Known(known) => self::known(known, advice.name),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn known(known: &Known, name: &str) -> Value {
    let Known { estimate, in_force, found, prediction } = known;
    let proposed = prediction.proposed.as_ref().filter(|_| prediction.holds);
    let verdict = match (proposed, &prediction.proposed) {
        (Some(_), _) => "proposed",
        (None, Some(_)) => "does-not-hold",
        (None, None) => "nothing-better",
    };
    let worse = prediction.worse.iter().map(|one| {
        let values = json!({ "in_force": one.in_force, "proposed": one.proposed });
        json!({ "scenario": one.scenario, "measure": one.measure.key, "values": values })
    });
    let unstable = found.unstable.iter();
    let unstable = unstable.map(|(policy, useful)| json!({ "settings": settings(policy), "useful": useful }));
    json!({
        "verdict": verdict,
        "path": {
            "loss": interval(&estimate.loss),
            "loss_each_way": interval(&estimate.loss_each_way),
            "loss_there": estimate.ways.as_ref().map(|(there, _)| interval(there)),
            "loss_back": estimate.ways.as_ref().map(|(_, back)| interval(back)),
            "loss_of_further_copies": estimate.loss_again.as_ref().map(interval),
            "median_ms": interval(&estimate.median),
            "p95_ms": interval(&estimate.p95),
            "p99_ms": interval(&estimate.p99),
            "bursts": estimate.bursts.map(|bursts| {
                json!({ "good_s": bursts.good, "bad_s": bursts.bad, "loss": bursts.loss })
            }),
            "spurious": interval(&estimate.spurious),
        },
        "in_force": {
            "known": in_force.is_given,
            "read": listed(in_force.read()),
            "predicted": judged(&prediction.in_force),
        },
        "proposal": prediction.proposed.as_ref().map(|proposed| json!({
            "settings": settings(&proposed.policy),
            "predicted": judged(proposed),
            "cost": prediction.objective,
            "cost_in_search": found.objective,
            "worse": worse.collect::<Vec<_>>(),
        })),
        "rejected": unstable.collect::<Vec<_>>(),
        "toml": proposed.map(|proposed| toml(in_force, &proposed.policy, name, prediction.once.is_some())),
    })
}

fn settings(policy: &Policy) -> Value {
    listed(&policy.settings)
}

fn listed(settings: &[Setting]) -> Value {
    settings.iter().map(|one| (one.key.to_owned(), one.value.clone().into())).collect::<Map<_, _>>().into()
}

fn judged(judged: &Judged) -> Value {
    let told = |runs: &Runs| {
        let measures = MEASURES.iter();
        Value::Object(measures.map(|one| (one.key.to_owned(), interval(&runs.of(one.of)))).collect())
    };
    judged.runs.first().map_or(Value::Null, told)
}
