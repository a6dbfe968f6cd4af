//! What a run costs this process: the only place of the simulator that reads a real clock.

use std::time::Instant;

use super::{Report, seconds};

/// Runs something and adds wall time and peak memory to its report.
#[expect(clippy::disallowed_methods, reason = "how long a run takes is what is asked for here")]
pub fn measured(run: impl FnOnce() -> Report) -> Report {
    let start = Instant::now();
    let mut report = run();
    report.row("wall time", seconds(start.elapsed()));
    if let Some(peak) = peak_memory() {
        report.row("peak memory of the process (VmHWM)", format!("{peak} MiB"));
    }
    report
}

/// In MiB, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024)
}
