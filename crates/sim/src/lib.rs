//! The virtual world in which the product is proven: the same proxy, a virtual clock, a bad network.
//!
//! ```text
//!              storm: one seed ──┐                      ┌── scenario: one file, a message diagram
//!  clients, origins, links, moods│                      │settings, and a script of raw peers
//!                                ▼                      ▼
//!   Client ─┐            ┌───────────────── World ──────────────────┐
//!   Origin ─┼─ Actor ◀──▶│ queue ◀─▶ Network (loss, order, ICMP)    │──▶ Journal: log, diagram, events
//!   Puppet ─┘            │   └──▶ Proxy: handle_input, poll_output  │──▶ Checks: what must always hold
//!                        └──────────────────────────────────────────┘
//! ```
//!
//! [`world::World`] is the twin of the daemon's worker: it drives the proxy by the same calls and
//! knows nothing else of it. Everything in it comes from one seed, and one seed gives one
//! [`journal::Journal`], byte for byte.
//!
//! - [`storm`] makes a world out of a number: `coapway-sim run --seed 7` replays it.
//! - [`scenario`] reads files: `coapway-sim scenario scenarios/piggybacked.scenario` shows its diagram.
//! - [`play`] plays a [`script::Script`] on a [`play::Stage`]: the virtual world is one, real sockets
//!   around a real daemon are another.
//! - [`soak`] runs for long: `cargo xtask soak`.
//! - [`checks`] watches all of them from outside.
//!
//! A seed that violates something becomes a scenario, and the scenario stays.

pub mod actor;
pub mod checks;
pub mod client;
pub mod journal;
pub mod network;
pub mod notation;
pub mod origin;
pub mod play;
pub mod scenario;
pub mod script;
pub mod soak;
pub mod sockets;
pub mod storm;
pub mod world;
