//! What is proposed, what it would do, and what is to be pasted.

use std::fmt::Write as _;

use coapway_endpoint::Nstart;
use coapway_proxy::UpstreamParameters;

use crate::advice::{Known, MEASURES, Prediction, Worse};
use crate::numbers::{count, percent, predicted, value};
use crate::policy::{InForce, Policy, learns, written};

/// All that follows from a path that is known.
pub(super) fn tell(text: &mut String, known: &Known, name: &str) {
    let Known { in_force, found, prediction, .. } = known;
    if !found.unstable.is_empty() {
        let _ = writeln!(
            text,
            "\n  Cheaper, but rejected: behind a link with a large buffer they would fill it with duplicates"
        );
        for (policy, useful) in &found.unstable {
            let settings: Vec<_> =
                policy.settings.iter().map(|one| format!("{} = {}", one.key, one.value)).collect();
            let _ =
                writeln!(text, "    {}: only {} of replies of use", settings.join(", "), percent(*useful));
        }
    }
    match (&prediction.proposed, prediction.holds) {
        (Some(proposed), true) => {
            let _ = writeln!(text, "\n  Proposed, out of {} that were tried", found.tried);
            settings(text, &in_force.policy, &proposed.policy);
            outlook(text, prediction);
            worse(text, prediction);
            once(text, prediction);
            paste(text, known, &proposed.policy, name);
        }
        (Some(_), false) => {
            let _ = writeln!(
                text,
                "\n  Nothing to propose\n    What looked better on one half of the records was not on the other:"
            );
            outlook(text, prediction);
            once(text, prediction);
        }
        (None, _) => {
            let _ = writeln!(
                text,
                "\n  Nothing to propose\n    None of {} others is better by 3 % where it does worst. What is in force:",
                found.tried
            );
            outlook(text, prediction);
            once(text, prediction);
        }
    }
}

fn once(text: &mut String, prediction: &Prediction) {
    if let Some((without, with)) = &prediction.once {
        let _ = writeln!(
            text,
            "\n  POST and PATCH\n    {} end with an unknown outcome; {} would if the origin is known to recognise duplicates\n    \
             (RFC 7252 §4.5) and `deduplicates = true` says so. Records cannot tell whether it does.",
            percent(without.value),
            percent(with.value)
        );
    }
}

fn settings(text: &mut String, before: &Policy, after: &Policy) {
    let _ = writeln!(text, "    {:32}{:>16}{:>16}", "", "in force", "proposed");
    for setting in &after.settings {
        let _ = writeln!(
            text,
            "    {:32}{:>16}{:>16}",
            setting.key,
            shown(setting.key, &before.parameters),
            setting.value
        );
    }
}

/// The value of a key, as a file writes it.
fn shown(key: &str, parameters: &UpstreamParameters) -> String {
    let UpstreamParameters { transmission, rto, .. } = parameters;
    match key {
        "ack_timeout" => written(transmission.ack_timeout),
        "max_retransmit" => transmission.max_retransmit.to_string(),
        "max_wait" => written(parameters.max_wait),
        "max_retransmit_non_idempotent" => parameters.max_retransmit_non_idempotent.to_string(),
        "nstart" => match parameters.nstart {
            Nstart::Auto { .. } => "\"auto\"".to_owned(),
            Nstart::Fixed(most) => most.to_string(),
        },
        "deduplicates" => parameters.deduplicates.to_string(),
        "rto.estimator" => format!("{:?}", rto.estimator.name()),
        "rto.quantile" => format!("{:?}", rto.quantile),
        "rto.factor" => format!("{:?}", rto.factor),
        "rto.spurious_budget" => format!("{:?}", rto.spurious_budget),
        "rto.floor" => written(rto.floor),
        _ => "-".to_owned(),
    }
}

fn outlook(text: &mut String, prediction: &Prediction) {
    let runs = prediction.in_force.runs.first().map_or(0, |runs| runs.0.len());
    let _ = writeln!(
        text,
        "\n  What to expect, simulated on the other half of the path: {runs} times {} requests",
        count(prediction.requests as u64)
    );
    let proposed = prediction.proposed.as_ref().and_then(|proposed| proposed.runs.first());
    let Some(base) = prediction.in_force.runs.first() else { return };
    let _ = writeln!(
        text,
        "    {:28}{:>24}{:>24}",
        "",
        "in force",
        if proposed.is_some() { "proposed" } else { "" }
    );
    for measure in &MEASURES {
        let told =
            proposed.map_or(String::new(), |proposed| predicted(&proposed.of(measure.of), measure.unit));
        let before = predicted(&base.of(measure.of), measure.unit);
        let _ = writeln!(text, "    {:28}{before:>24}{told:>24}", measure.name);
    }
    if proposed.is_some() {
        let _ = writeln!(
            text,
            "    {:28}{:>24}{:>23.1} %",
            "cost, over all scenarios",
            "100 %",
            100.0 * prediction.objective
        );
    }
}

fn worse(text: &mut String, prediction: &Prediction) {
    if prediction.worse.is_empty() {
        let _ = writeln!(
            text,
            "\n  Nowhere worse: as recorded, all copies late together, twice the loss or load, three times\n  \
                          slower, or outages of 10 s"
        );
        return;
    }
    let _ = writeln!(text, "\n  Where it would be worse");
    for measure in &MEASURES {
        let all: Vec<_> = prediction.worse.iter().filter(|one| one.measure.key == measure.key).collect();
        let off = |one: &Worse| (one.proposed - one.in_force).abs();
        let Some(most) = all.iter().max_by(|one, other| off(one).total_cmp(&off(other))) else { continue };
        let change = format!(
            "{} instead of {}",
            value(most.proposed, measure.unit),
            value(most.in_force, measure.unit)
        );
        let scenarios = prediction.in_force.runs.len();
        let _ = writeln!(
            text,
            "    {:28}in {} of {scenarios} scenarios; most if {}: {change}",
            measure.name,
            all.len(),
            most.scenario
        );
    }
}

fn paste(text: &mut String, known: &Known, policy: &Policy, name: &str) {
    let _ = writeln!(text, "\n  To paste into the configuration file\n");
    text.push_str(&toml(&known.in_force, policy, name, known.prediction.once.is_some()));
}

/// The table of an upstream with what is proposed.
pub(crate) fn toml(in_force: &InForce, policy: &Policy, name: &str, once: bool) -> String {
    let mut text = if in_force.is_general() {
        "[upstream]\n".to_owned()
    } else {
        format!("[[upstreams]]\nname = \"{name}\"\nuri = \"{}\"\n", in_force.uri)
    };
    for setting in in_force.read().iter().filter(|read| policy.settings.iter().all(|one| one.key != read.key))
    {
        let _ = writeln!(text, "{} = {}   # as it is", setting.key, setting.value);
    }
    for setting in &policy.settings {
        let _ = writeln!(text, "{} = {}", setting.key, setting.value);
    }
    if once && learns(policy) {
        text.push_str("# deduplicates = true   # if the origin recognises duplicates\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fit;
    use crate::histogram::{BINS, bin};
    use crate::policy::{Setting, estimators, refinements, set};

    /// A path on which all round trips take so long, in milliseconds.
    fn path(millis: f64) -> Fit {
        let mut times = vec![0.0; BINS];
        times[bin(millis)] = 1.0;
        let (exchanges, again, arrivals) = (1000.0, 100.0, 1000.0);
        Fit { times, loss: 0.1, loss_again: None, doubt: 0.0, exchanges, again, arrivals, spurious: 0.0 }
    }

    #[test]
    fn of_every_key_that_is_proposed_the_value_in_force_is_told() {
        let parameters = UpstreamParameters { nstart: Nstart::Fixed(3), ..UpstreamParameters::default() };
        let refined = [20.0, 2000.0].map(|millis| refinements(&path(millis), &parameters));
        let read =
            ["rto.estimator", "ack_timeout", "max_wait", "max_retransmit", "max_retransmit_non_idempotent"];
        let tried = estimators().into_iter().chain(refined.into_iter().flatten()).flatten();
        let tried: Vec<Setting> = tried.chain(read.map(|key| set(key, ""))).collect();
        for key in ["nstart", "rto.floor", "rto.spurious_budget", "max_wait"] {
            assert!(tried.iter().any(|setting| setting.key == key), "{key}");
        }
        for setting in &tried {
            assert_ne!(shown(setting.key, &parameters), "-", "{setting:?}");
        }
        assert_eq!(shown("rto.spurious_budget", &parameters), "0.05");
    }
}
