//! The message layer over datagrams (RFC 7252 §4).

pub mod congestion;
pub mod endpoint;
pub mod outbox;
pub mod retransmission;
pub mod round_trip;

mod acknowledgement;
mod duplicates;
mod message_id;
mod pending;
mod requests;
mod slots;
