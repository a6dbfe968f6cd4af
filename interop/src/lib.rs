//! Other CoAP stacks on loopback against coapway.
//!
//! ```text
//! libcoap ┐                          ┌ libcoap
//! aiocoap ├─ client ─ coapway ─ origin ┤ aiocoap
//! raw     ┘                          └ raw
//! ```
//! [`stack::Client`] and [`stack::Origin`] are the foreign stacks behind one pair of verbs; [`raw`] speaks
//! single datagrams, well formed or not, and notes when each came; [`coapway::Proxy`] is the process under
//! test. [`peers`] finds what is installed: without a peer a test says so and returns, and with
//! `COAPWAY_REQUIRE_PEERS=1` it fails.
//!
//! Everything that is started is ended when its value is dropped, and nothing else is.

pub mod aiocoap;
pub mod clock;
pub mod coapway;
pub mod datagram;
pub mod exchange;
pub mod libcoap;
pub mod load;
pub mod peers;
pub mod process;
pub mod raw;
pub mod stack;
