//! What forward records say of the path to each origin, and which parameters fit it.
//!
//! ```text
//! records ─▶ lines ─▶ line ─▶ tally ─▶ observed     one per upstream, of fixed size
//!                                         │ fit, neighbours
//!                                         ▼
//!                              estimate: loss, round-trip times, bursts, each with its interval
//!                                         │                    └▶ or: how much more is needed
//!                                         ▼
//!   policy: candidates ─▶ search ◀─▶ predictor: the proxy in virtual time on that path
//!                            ▼
//!                         report: text for people, JSON for programs, TOML to paste
//! ```

mod fit;
mod histogram;
mod line;
mod lines;
mod neighbours;
mod observed;
mod tally;
mod trial;
