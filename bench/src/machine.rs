//! The machine that measures: what it is, and who else uses it.

use std::fs;
use std::io;
use std::thread::available_parallelism;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{clock, sys};

/// Clock ticks a second in `/proc/stat`; fixed by the kernel's interface.
const TICKS: f64 = 100.0;

/// What the reader of a result must know of the machine.
pub(crate) struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
}

/// CPU time of the whole machine in seconds, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Busy {
    /// Spent by anybody here.
    pub(crate) used: f64,
    /// Taken by the hypervisor for others.
    pub(crate) stolen: f64,
}

impl Machine {
    /// Looks around; call it before the process is pinned to a core.
    pub(crate) fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or_else(|| "unknown processor".into(), |(_, name)| name.trim().to_owned());
        Self {
            cores: available_parallelism().map_or(1, usize::from),
            processor,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }

    /// Cores that this process may use.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// One line.
    pub(crate) fn printed(&self) -> String {
        format!("{} cores, {}, Linux {}", self.cores, self.processor, self.kernel)
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        json!({ "cores": self.cores, "processor": self.processor, "kernel": self.kernel })
    }
}

impl Busy {
    /// As the kernel counts now.
    pub(crate) fn now() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// Waits until the whole machine uses less than so many cores for half a second, at most for a while.
    pub(crate) fn settle(cores: f64, longest: Duration) -> io::Result<()> {
        const LOOK: Duration = Duration::from_millis(500);
        let mut pause = sys::Poller::new(1)?;
        let end = clock::now() + longest;
        while clock::now() < end {
            let before = Self::now();
            pause.wait(LOOK)?;
            if (Self::now().used - before.used) / LOOK.as_secs_f64() < cores {
                break;
            }
        }
        Ok(())
    }

    fn parse(text: &str) -> Self {
        let fields: Vec<f64> = text
            .lines()
            .find_map(|line| line.strip_prefix("cpu "))
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal
        let sum = |places: &[usize]| places.iter().filter_map(|place| fields.get(*place)).sum::<f64>();
        Self { used: sum(&[0, 1, 2, 5, 6]) / TICKS, stolen: sum(&[7]) / TICKS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_line_of_all_cores() {
        let text = "cpu  100 20 300 9999 77 5 6 40 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(Busy::parse(text), Busy { used: 4.31, stolen: 0.4 });
        assert_eq!(Busy::parse(""), Busy::default());
    }
}
