//! What is known of one measured run.

use crate::load::Outcome;

/// One proxy under one load.
pub(crate) struct Run {
    /// Counted from 0.
    pub(crate) repetition: u8,
    /// The proxy.
    pub(crate) proxy: String,
    /// Clients of the load.
    pub(crate) clients: u16,
    /// What the clients saw.
    pub(crate) outcome: Outcome,
    /// CPU time of the proxy in the measured window, in µs per right answer.
    pub(crate) cpu: f64,
    /// Cores that neither proxy nor load nor origin used, on average.
    pub(crate) foreign: f64,
    /// Cores that the hypervisor took away, on average.
    pub(crate) stolen: f64,
}

impl Run {
    /// One line of progress.
    pub(crate) fn printed(&self) -> String {
        let Outcome { answered, seconds, p50, p99, retransmissions, wrong, unanswered, complaint, .. } =
            &self.outcome;
        let rate = *answered as f64 / seconds;
        let mut line = format!(
            "#{} {:>10} {:>5} clients: {rate:>7.0}/s, {:>6.2} µs CPU, P50 {p50:.0} µs, P99 {p99:.0} µs, \
             {retransmissions} repeated, {wrong} wrong, {unanswered} unanswered, {:.2} foreign cores",
            self.repetition + 1,
            self.proxy,
            self.clients,
            self.cpu,
            self.foreign
        );
        if let Some(complaint) = complaint {
            line += &format!("\n    first fault: {complaint}");
        }
        line
    }
}
