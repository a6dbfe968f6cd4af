//! The page of results: the shipped policy against others in every scenario, out of `coapway simulate`.

mod holds;
mod losses;
mod page;
mod report;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::saying::tell;
use crate::workspace::Workspace;
use report::Report;

/// How long it may take.
#[derive(Args, Clone, Copy)]
pub(crate) struct Results {
    /// Runs of each policy under its scenario's own load.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Runs of each policy under each other load.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    loaded_runs: u32,
}

const PAGE: &str = "docs/results.md";
/// What the shipped policy is compared with, where there is such a thing.
const RIVALS: [&str; 4] = ["fixed", "p95", "cocoa", "rfc6298"];
/// Requests a second.
const LOADS: &str = "1,5,20,100";
/// Carry one message in many seconds: no load but their own means anything there.
const SELDOM: &str = "lora-";
/// Differ from another scenario in nothing but their own load.
const SAME_PATH: [&str; 9] = [
    "nat-rebind-60",
    "nat-rebind-180",
    "overload-100",
    "overload-120",
    "bufferbloat-50",
    "bufferbloat-100",
    "bufferbloat-200",
    "bufferbloat-800",
    "bufferbloat-1600",
];

/// Simulates and writes the page; true when it could.
pub(crate) fn run(workspace: &Workspace, results: Results) -> Result<bool> {
    let program = build(workspace)?;
    let known = simulate(&program, &["--list", "--json"])?;
    let names = |key: &str, inside: Option<&str>| -> Vec<String> {
        let all = known[key].as_array().into_iter().flatten();
        let name = |value: &Value| inside.map_or(value, |inside| &value[inside]).as_str().map(str::to_owned);
        all.filter_map(name).collect()
    };
    let scenarios = names("scenarios", Some("name"));
    let there = names("policies", None);
    let rivals = RIVALS.into_iter().filter(|rival| there.iter().any(|name| name == rival));
    let policies: Vec<_> = std::iter::once("default").chain(rivals).collect();
    let has_loads = |name: &&str| !name.starts_with(SELDOM) && !SAME_PATH.contains(name);
    let loaded: Vec<_> = scenarios.iter().map(String::as_str).filter(has_loads).collect();
    let (runs, loaded_runs) = (results.runs.to_string(), results.loaded_runs.to_string());
    let study = |scenarios: &[&str], more: &[&str]| -> Result<Report> {
        let policies = policies.iter().flat_map(|policy| ["--policy", policy]);
        let all: Vec<_> = scenarios.iter().copied().chain(policies).chain(more.iter().copied()).collect();
        Report::new(&simulate(&program, &[&all[..], &["--json"]].concat())?)
    };
    let own = study(&["all"], &["--runs", &runs])?;
    let loads =
        study(&loaded, &["--runs", &loaded_runs, "--duration", "10min", "--load", LOADS, "--mix", "1,0,0"])?;
    let mixed = study(
        &loaded,
        &["--runs", &loaded_runs, "--duration", "10min", "--load", "20", "--mix", "70,20,10"],
    )?;
    let must =
        holds::studies(|line| Report::new(&simulate(&program, &[line, &["--json", "--quiet"]].concat())?))?;
    let path = workspace.root().join(PAGE);
    fs::write(&path, page::page(&own, &loads, &mixed, &must))
        .with_context(|| format!("cannot write {PAGE}"))?;
    tell!("{PAGE} is written");
    Ok(true)
}

/// Builds the program and says where it is.
fn build(workspace: &Workspace) -> Result<OsString> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "coapway-daemon",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(workspace.root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(built.status.success(), "coapway does not build");
    let messages = String::from_utf8_lossy(&built.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(OsString::from)
    });
    executable.context("cargo does not say where coapway is")
}

fn simulate(program: &OsString, arguments: &[&str]) -> Result<Value> {
    tell!("coapway simulate {}", arguments.join(" "));
    let run = Command::new(program)
        .arg("simulate")
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run coapway")?;
    ensure!(run.status.success(), "coapway simulate failed");
    serde_json::from_slice(&run.stdout).context("coapway simulate wrote no JSON")
}
