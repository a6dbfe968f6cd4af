//! Timeouts alone: the estimators and schedules of the product without the proxy around them, so that they
//! can be held against formulas.
//!
//! ```text
//! Policy ──▶ Client: exchanges one after the other ──▶ Engine ──▶ Path: Lossy | Fifo
//!              │ RoundTrip, Schedule (coapway-endpoint)   │
//!              └ or Fasor, Foreign                        └─▶ Tally: latencies, copies, conservation, a hash
//! ```
//!
//! All limits are lifted: no `max_wait`, no MAX_TRANSMIT_SPAN, no window, no queue in front of the path.
//!
//! - [`formulas`]: what RFC 7252 comes to under random loss, in closed form.
//! - [`loss`]: one client, one exchange after the other, over a path that loses at random.
//! - [`bottleneck`]: many clients behind one queue that never drops, where needless copies feed on
//!   themselves.
//! - [`queueing`], [`burst`]: a queue and a bursty channel, which have formulas of their own.
//! - [`tables`]: the tables of random loss and of the bottleneck, for people.

pub mod bottleneck;
pub mod burst;
mod client;
mod engine;
pub mod fasor;
pub mod fifo;
pub mod foreign;
pub mod formulas;
pub mod loss;
pub mod policy;
pub mod queueing;
mod random;
pub mod tables;
mod tally;

pub use policy::{Ping, Policy, Telling, Timer};
pub use tally::Tally;
