//! When: instants and named deadlines, without a clock.
//!
//! ```text
//! worker or world ── now: Instant ──▶ state machine ── Timers<Deadline> ──▶ poll_timeout()
//! ```
//!
//! [`Instant`] counts microseconds since the program (or the virtual world) started and has no
//! `now()`: whoever drives a state machine says what time it is. [`Timers`] keeps the deadlines of
//! one state machine and hands out their names, earliest first; [`InOrder`] does so where they come in
//! order.

mod in_order;
mod instant;
mod timers;

pub use in_order::InOrder;
pub use instant::Instant;
pub use timers::{TimerId, Timers};
