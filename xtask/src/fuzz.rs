//! `cargo xtask fuzz`: builds the targets in `fuzz/` with a sanitizer and runs each for a while.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};

use crate::saying::{self, tell};
use crate::workspace::Workspace;

/// A target in `fuzz/targets`.
struct Target {
    name: &'static str,
    /// The longest input that is tried.
    longest: u32,
    /// Whether it looks at the codec alone, which is quickly built.
    is_decoder: bool,
}

const TARGETS: [Target; 8] = [
    Target { name: "datagram", longest: 600, is_decoder: true },
    Target { name: "token", longest: 16, is_decoder: true },
    Target { name: "options", longest: 400, is_decoder: true },
    Target { name: "uri", longest: 1200, is_decoder: true },
    Target { name: "hop", longest: 512, is_decoder: false },
    Target { name: "proxy", longest: 512, is_decoder: false },
    Target { name: "config", longest: 2048, is_decoder: false },
    Target { name: "hosts", longest: 1024, is_decoder: false },
];

/// How to get cargo-fuzz; `.ci/run` does.
const INSTALL: &str = "cargo install --locked cargo-fuzz";

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'t> {
    /// Look for new inputs, for so many seconds a target.
    Search(u64),
    /// Run one input.
    Replay(&'t Path),
}

/// The names of the targets that look at the codec alone.
pub(crate) fn decoders() -> Vec<String> {
    TARGETS.iter().filter(|target| target.is_decoder).map(|target| target.name.to_owned()).collect()
}

/// Whether cargo-fuzz is there.
pub(crate) fn is_installed() -> bool {
    cargo().args(["fuzz", "--version"]).output().is_ok_and(|output| output.status.success())
}

/// Does `task` with the targets of these names, all if there are none; true when nothing was found.
pub(crate) fn run(workspace: &Workspace, names: &[String], task: Task<'_>) -> Result<bool> {
    let targets = select(names)?;
    ensure!(
        matches!(task, Task::Search(_)) || targets.len() == 1,
        "an input belongs to one target; name it before --replay"
    );
    ensure!(is_installed(), "cargo-fuzz is missing: {INSTALL}");
    let fuzz = Fuzz::new(workspace, targets.iter().all(|target| target.is_decoder));
    fuzz.build(&targets)?;
    let mut is_clean = true;
    for target in targets {
        tell!("==> fuzz {}", target.name);
        is_clean &= match task {
            Task::Search(seconds) => fuzz.search(target, seconds)?,
            Task::Replay(input) => fuzz.replay(target, input)?,
        };
    }
    Ok(is_clean)
}

/// Whether the targets, which are no members of the workspace, are formatted.
pub(crate) fn is_formatted(workspace: &Workspace) -> Result<bool> {
    let manifest = Fuzz::new(workspace, false).folder.join("Cargo.toml");
    succeeds(cargo().args(["fmt", "--check", "--manifest-path"]).arg(&manifest))
}

/// Lints of the targets.
pub(crate) fn lint(workspace: &Workspace) -> Result<bool> {
    let fuzz = Fuzz::new(workspace, false);
    let mut clippy = cargo();
    clippy.args(["clippy", "--locked", "--manifest-path"]).arg(fuzz.folder.join("Cargo.toml"));
    clippy.arg("--target-dir").arg(&fuzz.build).args(["--", "-D", "warnings"]);
    succeeds(&mut clippy)
}

fn select(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name: &String| TARGETS.iter().find(|target| target.name == name);
    names
        .iter()
        .map(|name| {
            find(name).with_context(|| {
                let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
                format!("no target {name}; there are {}", known.join(", "))
            })
        })
        .collect()
}

/// Where everything is.
struct Fuzz {
    /// The package, with the kept corpora; nothing is written there.
    folder: PathBuf,
    /// What is built.
    build: PathBuf,
    /// What is found: corpora that grow, and inputs that failed.
    finds: PathBuf,
    only_decoders: bool,
}

impl Fuzz {
    fn new(workspace: &Workspace, only_decoders: bool) -> Self {
        let target = workspace.target();
        Self {
            folder: workspace.root().join("fuzz"),
            build: target.join("fuzz"),
            finds: target.join("fuzz-finds"),
            only_decoders,
        }
    }

    fn build(&self, targets: &[&Target]) -> Result<()> {
        // cargo-fuzz cannot be told to keep to the lock file, so it is checked before.
        let mut fetch = cargo();
        fetch.args(["fetch", "--locked", "--manifest-path"]).arg(self.folder.join("Cargo.toml"));
        ensure!(succeeds(&mut fetch)?, "fuzz/Cargo.lock is not up to date: cd fuzz && cargo update -w");
        let mut build = self.cargo_fuzz("build");
        if let [only] = targets {
            build.arg(only.name);
        }
        ensure!(succeeds(&mut build)?, "the targets cannot be built");
        Ok(())
    }

    fn search(&self, target: &Target, seconds: u64) -> Result<bool> {
        let corpus = self.finds.join("corpus").join(target.name);
        let failed = self.finds.join("failed").join(target.name);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        fs::create_dir_all(&failed).with_context(|| format!("cannot make {}", failed.display()))?;
        let before = files(&failed)?;
        let mut search = self.cargo_fuzz("run");
        // The first folder takes what is found.
        search.arg(target.name).arg(&corpus).arg(self.folder.join("corpus").join(target.name)).arg("--");
        search.arg(format!("-artifact_prefix={}/", failed.display()));
        search.arg(format!("-max_total_time={seconds}"));
        search.arg(format!("-max_len={}", target.longest));
        search.args(["-timeout=10", "-verbosity=0", "-print_final_stats=1"]);
        let dictionary = self.folder.join("dictionaries").join(target.name).with_extension("dict");
        if dictionary.exists() {
            search.arg(format!("-dict={}", dictionary.display()));
        }
        // It is talkative; without a finding only its numbers matter.
        let output = search.output().with_context(|| format!("cannot run {search:?}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            tell!("{}", statistics(&text));
            return Ok(true);
        }
        saying::watcher(text);
        for input in files(&failed)?.difference(&before) {
            tell!("==> replay with: cargo xtask fuzz {} --replay {}", target.name, input.display());
        }
        Ok(false)
    }

    fn replay(&self, target: &Target, input: &Path) -> Result<bool> {
        if !input.is_file() {
            bail!("no file {}", input.display());
        }
        succeeds(self.cargo_fuzz("run").arg(target.name).arg(input))
    }

    /// `cargo fuzz` with the flags that choose the build.
    fn cargo_fuzz(&self, verb: &str) -> Command {
        let mut command = cargo();
        // Sanitizers come with the stable compiler, behind the flag of an unstable one.
        command.env("RUSTC_BOOTSTRAP", "1").args(["fuzz", verb]);
        command.arg("--fuzz-dir").arg(&self.folder).arg("--target-dir").arg(&self.build);
        if self.only_decoders {
            command.arg("--no-default-features");
        }
        command
    }
}

/// What libFuzzer counted, in one line.
fn statistics(text: &str) -> String {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        line.map_or("?", |rest| rest.trim_start_matches(':').trim())
    };
    format!(
        "{} inputs, {} a second, {} of them worth keeping, {} MiB",
        number("number_of_executed_units"),
        number("average_exec_per_sec"),
        number("new_units_added"),
        number("peak_rss_mb")
    )
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() {
        assert_eq!(select(&[]).map(|targets| targets.len()).unwrap(), TARGETS.len());
        let names = ["uri".to_owned(), "hop".to_owned()];
        let chosen: Vec<_> = select(&names).unwrap().iter().map(|target| target.name).collect();
        assert_eq!(chosen, ["uri", "hop"]);
        assert!(select(&["url".to_owned()]).is_err());
        assert_eq!(decoders(), ["datagram", "token", "options", "uri"]);
    }

    #[test]
    fn says_in_one_line_what_was_counted() {
        let text = "Done\nstat::number_of_executed_units: 89722\nstat::average_exec_per_sec:     14953\n\
                    stat::new_units_added:          808\nstat::peak_rss_mb:              157\n";
        assert_eq!(statistics(text), "89722 inputs, 14953 a second, 808 of them worth keeping, 157 MiB");
        assert!(statistics("").starts_with("? inputs"));
    }

    #[test]
    fn every_target_has_its_source_and_a_corpus_of_small_files() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("fuzz");
        let mut total = 0;
        for target in TARGETS {
            assert!(fuzz.join("targets").join(target.name).with_extension("rs").is_file(), "{}", target.name);
            let seeds = files(&fuzz.join("corpus").join(target.name)).unwrap();
            assert!((1..=48).contains(&seeds.len()), "{}: {} seeds", target.name, seeds.len());
            for seed in seeds {
                let length = seed.metadata().unwrap().len();
                assert!(length <= u64::from(target.longest), "{} is never tried", seed.display());
                total += length;
            }
        }
        assert!(total < 300_000, "{total} bytes of seeds");
    }
}
