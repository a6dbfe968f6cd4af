//! What the system tells of a process: its memory, and the datagrams it came too late for.

use std::collections::HashSet;
use std::fs;

use anyhow::{Context as _, Result};

/// Memory of a process in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) now: u64,
    /// The most so far.
    pub(crate) peak: u64,
}

impl Memory {
    /// As `/proc` tells it.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the proxy is gone")?;
        Self::parse(&status).context("no memory in /proc/PID/status")
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        Some(Self { now: field("VmRSS:")?, peak: field("VmHWM:")? })
    }
}

/// Datagrams that found a UDP socket of the process full, over all sockets it has now.
pub(crate) fn lost_at_sockets(pid: u32) -> Result<u64> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).context("the proxy is gone")? {
        let target = fs::read_link(entry?.path()).unwrap_or_default();
        if let Some(inode) = target.to_str().and_then(|target| target.strip_prefix("socket:[")) {
            inodes.insert(inode.trim_end_matches(']').to_owned());
        }
    }
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    Ok(tables.iter().map(|table| drops(table, &inodes)).sum())
}

fn drops(table: &str, inodes: &HashSet<String>) -> u64 {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_ours = fields.get(9).is_some_and(|inode| inodes.contains(*inode));
            if is_ours { fields.last()?.parse::<u64>().ok() } else { None }
        })
        .sum()
}

/// The memory bound in MiB that `coapway check` prints: the number after `at most` in a line that speaks
/// of memory, whatever its unit.
pub(crate) fn bound_in(check: &str) -> Option<f64> {
    let line = check.lines().find(|line| line.contains("memory") && line.contains("at most"))?;
    let rest = line.split("at most").nth(1)?.trim_start();
    let end = rest.find(|symbol: char| !symbol.is_ascii_digit() && !".,_ ".contains(symbol))?;
    let (number, unit) = rest.split_at(end);
    let number: f64 = number.replace([',', '_', ' '], "").parse().ok()?;
    let unit = unit.split(|symbol: char| !symbol.is_ascii_alphabetic()).next()?;
    let mebibytes = match unit {
        "KiB" | "kB" => number / 1024.0,
        "MiB" | "MB" => number,
        "GiB" | "GB" => number * 1024.0,
        _ => return None,
    };
    Some(mebibytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_memory_and_peak() {
        let status = "Name:\tcoapway\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(Memory::parse(status), Some(Memory { now: 10_240, peak: 20_480 }));
        assert_eq!(Memory::parse("Name:\tcoapway\n"), None);
    }

    #[test]
    fn counts_the_drops_of_its_own_sockets() {
        let table = "sl local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode ref pointer drops\n\
            1: 0100007F:801E 00000000:0000 07 00000000:00000680 00:00000000 00000000 0 0 11 2 00000000fac7010f 5\n\
            2: 0100007F:801F 00000000:0000 07 00000000:00000680 00:00000000 00000000 0 0 12 2 00000000fac7010f 70\n";
        assert_eq!(drops(table, &HashSet::from(["11".to_owned(), "13".to_owned()])), 5);
    }

    #[test]
    fn finds_the_printed_bound() {
        for (text, expected) in [
            ("configuration ok\nmemory: at most 640 MiB (dedup 256 MiB)\n", Some(640.0)),
            ("the memory of strangers is at most 1.5 GiB", Some(1536.0)),
            ("memory at most 2,048 MiB, of which", Some(2048.0)),
            ("memory at most 512MiB", Some(512.0)),
            ("configuration ok\n", None),
            ("dedup.memory = 256MiB  # default\n", None),
        ] {
            assert_eq!(bound_in(text), expected, "{text}");
        }
    }
}
