//! Everything that was measured, as JSON.

use serde_json::{Map, Value, json};

use crate::figures::{METRICS, Unit};
use crate::scenario::{Pace, Scenario};
use crate::statistics::Estimate;
use crate::study::{Study, Summary};

/// All of a study.
pub(crate) fn report(study: &Study, results: &[Vec<Summary>]) -> Value {
    let policies = study.policies.iter();
    let policies = policies.map(|policy| json!({ "name": policy.name, "settings": policy.settings }));
    let metrics = METRICS
        .iter()
        .map(|metric| json!({ "key": metric.key, "title": metric.title, "unit": unit(metric.unit) }));
    let cells = study.cells.iter().zip(results).map(|(scenario, summaries)| cell(study, scenario, summaries));
    json!({
        "seed": study.seed,
        "runs": study.runs,
        "policies": policies.collect::<Vec<_>>(),
        "metrics": metrics.collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
    })
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "s",
        Unit::Share => "share",
        Unit::Number | Unit::Count => "",
    }
}

fn cell(study: &Study, scenario: &Scenario, summaries: &[Summary]) -> Value {
    let clients = &scenario.clients;
    let mix = clients.mix;
    let (rate, think) = match clients.pace {
        Pace::Rate(rate) => (Some(rate), None),
        Pace::Think(think) => (None, Some(think)),
    };
    let results = study.policies.iter().zip(summaries).enumerate();
    let results = results.map(|(place, (policy, summary))| result(place, &policy.name, summary));
    json!({
        "scenario": scenario.name,
        "about": scenario.about,
        "duration_s": scenario.duration.as_secs_f64(),
        "clients": clients.count,
        "rate": rate,
        "think_s": think,
        "mix": { "get": (1.0 - mix.post - mix.non).max(0.0), "post": mix.post, "non": mix.non },
        "results": results.collect::<Vec<_>>(),
    })
}

fn result(place: usize, policy: &str, summary: &Summary) -> Value {
    let estimates = |estimates: &[Estimate]| -> Map<String, Value> {
        let all = METRICS.iter().zip(estimates);
        all.map(|(metric, estimate)| (metric.key.to_owned(), json!(estimate))).collect()
    };
    let run = |run: &[f64; METRICS.len()]| -> Map<String, Value> {
        METRICS.iter().zip(run).map(|(metric, value)| (metric.key.to_owned(), json!(value))).collect()
    };
    let differences = (place > 0).then(|| estimates(&summary.differences));
    json!({
        "policy": policy,
        "metrics": estimates(&summary.estimates),
        "differences_from_first": differences,
        "runs": summary.runs.iter().map(run).collect::<Vec<_>>(),
        "answered": summary.latencies.count(),
        "latency_steps": summary.latencies.steps(),
        "retries": summary.retries,
        "runs_cut_short": summary.cut_short,
        "timeline": summary.timeline,
    })
}
