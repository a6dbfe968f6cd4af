//! The two tables, for people.

use std::fmt::Write as _;
use std::time::Duration;

use crate::bottleneck::{self, Cell};
use crate::loss::{self, Row};
use crate::policy::Policy;

/// The clients of the table of the bottleneck: below its capacity and far above.
pub const CLIENTS: [usize; 5] = [50, 100, 200, 400, 800];

/// After this the bottleneck is as it stays.
pub const SETTLED: Duration = Duration::from_secs(3000);
/// Until then it is watched.
pub const WATCHED: Duration = Duration::from_secs(5000);

/// Random loss: a row for each policy.
pub fn of_loss(loss: f64, seed: u64, exchanges: u64) -> String {
    let mut text = format!(
        "{:<32} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>8} {:>8}\n",
        "policy", "mean s", "P50", "P95", "P99", "copies", "pings", "spurious", "failed"
    );
    for policy in Policy::all() {
        let Row { policy, mean, p50, p95, p99, copies, pings, spurious, failed, .. } =
            loss::row(policy, loss, seed, exchanges);
        let [mean, p50, p95, p99] = [mean, p50, p95, p99].map(|time| time.as_secs_f64());
        writeln!(
            text,
            "{policy:<32} {mean:8.3} {p50:8.3} {p95:8.3} {p99:8.3} {copies:7.3} {pings:6.3} {spurious:8.4} \
             {failed:8.5}"
        )
        .expect("a String takes everything");
    }
    text
}

/// The bottleneck: useful work for each policy and each number of clients.
pub fn of_bottleneck(seed: u64) -> String {
    let mut text = format!("{:<32}", "useful work with so many clients");
    CLIENTS.iter().for_each(|clients| write!(text, " {clients:>7}").expect("a String takes everything"));
    text.push('\n');
    for policy in Policy::all() {
        write!(text, "{:<32}", policy.name).expect("a String takes everything");
        for clients in CLIENTS {
            let steady = bottleneck::steady(policy, Cell::of(clients), seed, SETTLED, WATCHED);
            write!(text, " {:7.3}", steady.goodput).expect("a String takes everything");
        }
        text.push('\n');
    }
    text
}
