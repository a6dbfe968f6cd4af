//! What forward records say of the path to each origin, and which parameters fit it.
//!
//! ```text
//! records ─▶ coapway-records ─▶ tally ─▶ observed    one per upstream, of fixed size
//!                                         │ fit, neighbours
//!                                         ▼
//!                              estimate: loss, round-trip times, bursts, each with its interval
//!                                         │                    └▶ or: how much more is needed
//!                                         ▼
//!   policy: candidates ─▶ search ◀─▶ predictor: the proxy in virtual time on that path
//!                            ▼
//!                         report: text for people, JSON for programs, TOML to paste
//! ```

mod advice;
mod blocks;
mod command;
mod estimate;
mod fit;
mod histogram;
mod interval;
mod json;
mod neighbours;
mod numbers;
mod observed;
mod path;
mod policy;
mod predictor;
mod rehearsal;
mod report;
mod search;
mod tally;
mod trial;

pub use command::{Arguments, run};
pub use interval::Interval;
pub use neighbours::Bursts;
pub use path::{Distribution, Path};
pub use policy::{Policy, Setting};
pub use predictor::{Predictor, Run};
pub use rehearsal::Rehearsal;
