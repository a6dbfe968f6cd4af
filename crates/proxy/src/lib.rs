//! The switchboard: endpoints and relay behind one input and one output.
//!
//! ```text
//!                     ┌──────────────────────── Proxy ────────────────────────┐
//! Input::Datagram ──▶ │ downstream endpoint ─ Request ─▶ relay ─ Plan ─▶ upstreams │ ──▶ Output::Transmit
//! Input::Resolved ──▶ │        ▲                                      │           │ ──▶ Output::LookUp
//! Input::Wake     ──▶ │        └──── respond ◀── relay ◀── Response ──┘           │ ──▶ Output::Event
//!                     └────────────────────────────────────────────────────────┘ ──▶ Output::Wait
//! ```
//!
//! [`Proxy::handle_input`] is the only way in and [`Proxy::poll_output`] the only way out; the worker
//! of the daemon and the virtual world of the simulator drive the very same three calls.

mod address;
mod alternatives;
mod answers;
mod apart;
mod arrival;
mod backlog;
mod budget;
mod clients;
mod dormant;
mod drafts;
mod drain;
mod guards;
mod journal;
mod lookups;
mod loops;
mod order;
mod origin;
mod origins;
mod outcomes;
mod patience;
mod permits;
mod pings;
mod places;
mod probing;
mod queue;
mod reconfigure;
mod requests;
mod responses;
mod schedule;
mod sending;
mod shares;
mod shift;
mod silence;
mod telling;
mod transfers;
mod upstreams;

pub mod alert;
pub mod cause;
pub mod event;
pub mod input;
pub mod kept;
mod late;
pub mod learned;
pub mod output;
pub mod parameters;
pub mod proxy;
pub mod record;
pub mod records;
pub mod refusals;
pub mod sampling;

pub use alert::{Alert, Whose};
pub use cause::Cause;
pub use event::Event;
pub use input::{Input, SocketRole};
pub use journal::Listening;
pub use kept::Kept;
pub use learned::Learned;
pub use lookups::MOST_LOOK_UPS;
pub use output::Output;
pub use parameters::{
    CopyIds, CopySchedule, Limits, Parameters, Patience, PostGuard, Probe, RetransmitParameters,
    RetryParameters, TokenPolicy, UpstreamParameters,
};
pub use proxy::{Occupancy, Proxy};
pub use record::{Exchanges, Lines, Path, Record};
pub use records::Records;
pub use refusals::Refusals;
pub use sampling::Sampling;
