//! All checks in a row. The tests come last, so that the output ends with what the test runner says.

use std::process::Command;
use std::{env, fmt};

use anyhow::{Context as _, Result};

use crate::saying::tell;
use crate::workspace::Workspace;
use crate::{fuzz, package, report};

/// One thing that CI does.
#[derive(Clone, Copy)]
enum Step {
    Format,
    Clippy,
    Layers,
    Licences,
    Shape,
    Requirements,
    Docs,
    Fuzz,
    DocTests,
    Package,
    Tests,
}

const STEPS: [Step; 11] = [
    Step::Format,
    Step::Clippy,
    Step::Layers,
    Step::Licences,
    Step::Shape,
    Step::Requirements,
    Step::Docs,
    Step::Fuzz,
    Step::DocTests,
    Step::Package,
    Step::Tests,
];

/// How long each decoder is fuzzed.
const FUZZ_SECONDS: u64 = 30;

/// Runs the steps up to the first that fails; true when all passed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    for (place, step) in STEPS.into_iter().enumerate() {
        tell!("==> {} of {}: {step}", place + 1, STEPS.len());
        if !step.passes(workspace)? {
            tell!("==> failed: {step}");
            return Ok(false);
        }
    }
    Ok(true)
}

impl Step {
    fn passes(self, workspace: &Workspace) -> Result<bool> {
        match self {
            Self::Format => {
                Ok(cargo(workspace, &["fmt", "--all", "--check"], &[])? && fuzz::is_formatted(workspace)?)
            }
            Self::Clippy => cargo(
                workspace,
                &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
                &[],
            ),
            Self::Layers => Ok(report("error", &workspace.layer_findings()?)),
            Self::Licences => Ok(report("error", &workspace.licence_findings()?)),
            Self::Shape => {
                report("warning", &workspace.line_findings()?);
                Ok(report("error", &workspace.circle_findings()?))
            }
            Self::Requirements => Ok(report("error", &workspace.requirement_findings()?)),
            Self::Docs => cargo(
                workspace,
                &["doc", "--no-deps", "--workspace", "--locked"],
                &[("RUSTDOCFLAGS", "-D warnings")],
            ),
            Self::Fuzz => fuzz_decoders(workspace),
            Self::DocTests => cargo(workspace, &["test", "--workspace", "--locked", "--doc"], &[]),
            Self::Package => try_package(workspace),
            // Not `--all-targets`: the closing line is to be one of tests that ran.
            Self::Tests => {
                cargo(workspace, &["test", "--workspace", "--locked", "--lib", "--bins", "--tests"], &[])
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => "format",
            Self::Clippy => "clippy",
            Self::Layers => "layers, arrows only go down",
            Self::Licences => "licences and sources",
            Self::Shape => "shape, no circles; long files are only named",
            Self::Requirements => "requirements and the tests that show them",
            Self::Docs => "docs",
            Self::Fuzz => "fuzzing of the decoders",
            Self::DocTests => "examples in docs",
            Self::Package => "the package, installed, run and removed",
            Self::Tests => "tests",
        })
    }
}

/// All targets are looked over; the decoders, which are quickly built, also run for a while.
fn fuzz_decoders(workspace: &Workspace) -> Result<bool> {
    if !fuzz::is_installed() && env::var_os("COAPWAY_REQUIRE_PEERS").is_none() {
        tell!("skipped: cargo-fuzz is not installed");
        return Ok(true);
    }
    Ok(fuzz::lint(workspace)? && fuzz::run(workspace, &fuzz::decoders(), fuzz::Task::Search(FUZZ_SECONDS))?)
}

/// In the smallest Debian, or where there is none to be had, in an empty folder.
fn try_package(workspace: &Workspace) -> Result<bool> {
    if let Some(obstacle) = package::obstacle()
        && env::var_os("COAPWAY_REQUIRE_PEERS").is_none()
    {
        tell!("skipped: {obstacle}");
        return Ok(true);
    }
    package::check(workspace, true, &["--or-empty".to_owned()])
}

fn cargo(workspace: &Workspace, arguments: &[&str], environment: &[(&str, &str)]) -> Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(workspace.root())
        .status()
        .with_context(|| format!("cannot run cargo {}", arguments.join(" ")))?;
    Ok(status.success())
}
