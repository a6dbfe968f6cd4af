//! `coapway simulate`: policies compared on named paths, in virtual time.
//!
//! ```text
//! scenarios/*.toml ─┐                        ┌──────────── World: one run ────────────┐
//! --replay RECORDS ─┼─▶ Scenario ─▶ Study ──▶│ Clients ─▶ Proxy ─▶ Post: Path ─▶ Origin │─▶ Figures ─┐
//! --policy, --set ──┴─▶ Policy ───┘ threads  │        ◀──       ◀──  Queue      ◀──     │            │
//!                                            └────────────────────────────────────────┘            ▼
//!                          standard output ◀── table, report (JSON), plot (SVG, PNG) ◀── Estimate over runs
//! ```
//!
//! The proxy is the shipped one, driven by the same three calls as in the daemon. Everything else is as lean as
//! it can be: nobody watches over it, so that a million exchanges are a matter of seconds. (The simulator that
//! proves the proxy right is `coapway-sim`.)
//!
//! `--model` has `coapway-model`'s timers alone beside the same through this world.
//!
//! Chance is drawn by address (`dice.rs`): what becomes of the third copy of the hundredth request of a client
//! follows from the seed and these numbers, whatever else is sent. All policies therefore meet the same path,
//! and their differences are told run by run.

mod arguments;
mod chance;
mod clients;
mod command;
mod dice;
mod exchange;
mod figures;
mod law;
mod model;
mod origin;
mod path;
mod plot;
mod policy;
mod post;
mod progress;
mod queue;
mod replay;
mod report;
mod scenario;
mod statistics;
mod study;
mod table;
mod work;
mod world;

pub use arguments::Arguments;
pub use chance::{Chance, Direction, Errand};
pub use command::run;
pub use figures::{Better, METRICS, Metric, Unit, metric};
pub use law::{Law, Measured};
pub use policy::{DEFAULT, NoPolicy, Policy};
pub use scenario::{
    BurstLaw, ClientLaw, CrossLaw, Mix, NatLaw, OriginLaw, Outage, Pace, PathLaw, Phase, RadioLaw, Scenario,
    Wake, WayLaw, WhenFull, find, named, source,
};
pub use statistics::Estimate;
pub use study::{Study, Summary};
