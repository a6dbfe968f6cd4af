//! Reading what callgrind wrote.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Instructions of one run: all, and by function.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Profile {
    /// All of user code.
    pub(crate) total: u64,
    /// The functions' own ones, without their callees'.
    pub(crate) functions: HashMap<String, u64>,
}

impl Profile {
    /// Reads a profile by way of callgrind_annotate.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let output = Command::new("callgrind_annotate")
            .args(["--threshold=100", "--auto=no", "--show-percs=no"])
            .arg(file)
            .output()
            .context("cannot run callgrind_annotate")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "callgrind_annotate failed: {errors}");
        Self::parse(&String::from_utf8_lossy(&output.stdout)).context("callgrind_annotate names no total")
    }

    /// The table of functions; `None` without a line of totals.
    fn parse(text: &str) -> Option<Self> {
        let mut total = None;
        let mut functions = HashMap::new();
        for line in text.lines() {
            let Some((count, rest)) = counted(line) else { continue };
            if rest.starts_with("PROGRAM TOTALS") {
                total = Some(count);
            } else {
                *functions.entry(function(rest)).or_insert(0) += count;
            }
        }
        Some(Self { total: total?, functions })
    }

    /// What this run did more than `shorter`, per request: all, and the functions that did most of it.
    pub(crate) fn per_request(&self, shorter: &Self, requests: u64) -> (f64, Vec<(String, f64)>) {
        let each = |longer: u64, shorter: u64| (longer as f64 - shorter as f64) / requests as f64;
        let before = |name| shorter.functions.get(name).copied().unwrap_or(0);
        let mut functions: Vec<(String, f64)> =
            self.functions.iter().map(|(name, count)| (name.clone(), each(*count, before(name)))).collect();
        functions.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        (each(self.total, shorter.total), functions)
    }
}

/// `1,234  rest` as number and rest.
fn counted(line: &str) -> Option<(u64, &str)> {
    let (count, rest) = line.trim_start().split_once(' ')?;
    let count = count.replace(',', "").parse().ok()?;
    Some((count, rest.trim_start()))
}

/// The function's name, without source file, object file and the hash that each build changes.
fn function(entry: &str) -> String {
    let entry = entry.rsplit_once(" [").map_or(entry, |(name, _object)| name);
    // `file:name`, and names have colons too, but only in pairs.
    let bytes = entry.as_bytes();
    let is_single = |at: usize| {
        bytes.get(at) == Some(&b':')
            && bytes.get(at + 1) != Some(&b':')
            && (at == 0 || bytes.get(at - 1) != Some(&b':'))
    };
    let name = (0..bytes.len()).find(|at| is_single(*at)).and_then(|at| entry.get(at + 1..)).unwrap_or(entry);
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
--------------------------------------------------------------------------------
Profile data file 'callgrind.out.1' (creator: callgrind-3.19.0)
--------------------------------------------------------------------------------
Events recorded:  Ir
Thresholds:       100
Ir
--------------------------------------------------------------------------------
12,000  PROGRAM TOTALS

Ir     file:function
--------------------------------------------------------------------------------
7,000  crates/relay/src/relay.rs:coapway_relay::relay::Relay::admit::h0123456789abcdef [/x/coapway]
3,000  crates/relay/src/relay.rs:<coapway_relay::Fetch as core::fmt::Debug>::fmt'2 [/x/coapway]
1,500  ???:memcpy [/usr/lib/libc.so.6]
  500  other.rs:coapway_relay::relay::Relay::admit::h0123456789abcdef [/x/coapway]
";

    #[test]
    fn reads_the_table_of_functions() {
        let profile = Profile::parse(TEXT).expect("a total");
        assert_eq!(profile.total, 12_000);
        assert_eq!(profile.functions.get("coapway_relay::relay::Relay::admit"), Some(&7500));
        assert_eq!(profile.functions.get("<coapway_relay::Fetch as core::fmt::Debug>::fmt'2"), Some(&3000));
        assert_eq!(profile.functions.get("memcpy"), Some(&1500));
        assert_eq!(profile.functions.len(), 3);
    }

    #[test]
    fn needs_a_total() {
        assert_eq!(Profile::parse("7,000  a.rs:b [c]"), None);
    }

    #[test]
    fn subtracts_what_both_runs_did() {
        let profile = |total, parse, start| Profile {
            total,
            functions: HashMap::from([("parse".to_owned(), parse), ("start".to_owned(), start)]),
        };
        let (all, functions) = profile(9000, 6000, 3000).per_request(&profile(5000, 2000, 3000), 10);
        assert_eq!(all, 400.0);
        assert_eq!(functions, [("parse".to_owned(), 400.0), ("start".to_owned(), 0.0)]);
    }
}
