//! The JSON of `coapway simulate`, as far as the page needs it.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// All cells of a study.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) policies: Vec<String>,
    pub(super) seed: u64,
    pub(super) runs: u64,
    pub(super) cells: Vec<Cell>,
}

/// One scenario under one load.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) scenario: String,
    pub(super) about: String,
    /// Requests a second, where they come at a rate.
    pub(super) rate: Option<f64>,
    results: Vec<Value>,
}

/// A mean over runs and how far it may be off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) within: f64,
}

impl Report {
    pub(super) fn new(report: &Value) -> Result<Self> {
        let policies = report["policies"].as_array().context("no policies")?;
        let cells = report["cells"].as_array().context("no cells")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cell = |cell: &Value| {
            Some(Cell {
                scenario: text(&cell["scenario"]),
                about: text(&cell["about"]),
                rate: cell["rate"].as_f64(),
                results: cell["results"].as_array()?.clone(),
            })
        };
        Ok(Self {
            policies: policies.iter().map(|policy| text(&policy["name"])).collect(),
            seed: report["seed"].as_u64().context("no seed")?,
            runs: report["runs"].as_u64().context("no runs")?,
            cells: cells.iter().filter_map(cell).collect(),
        })
    }
}

impl Cell {
    /// What a policy, by its place, came to; nothing where nothing was measured.
    pub(super) fn metric(&self, policy: usize, key: &str) -> Option<Estimate> {
        estimate(&self.results.get(policy)?["metrics"][key])
    }

    /// What it came to in each run in which it was measured.
    pub(super) fn runs(&self, policy: usize, key: &str) -> Vec<f64> {
        let runs = self.results.get(policy).and_then(|result| result["runs"].as_array());
        runs.into_iter().flatten().filter_map(|run| run[key].as_f64()).collect()
    }

    /// How much more that is than what the first policy came to, run by run.
    pub(super) fn difference(&self, policy: usize, key: &str) -> Option<Estimate> {
        estimate(&self.results.get(policy)?["differences_from_first"][key])
    }
}

fn estimate(value: &Value) -> Option<Estimate> {
    let mean = value["mean"].as_f64()?;
    Some(Estimate { mean, within: value["within"].as_f64().unwrap_or(f64::INFINITY) })
}
