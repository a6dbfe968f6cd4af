//! The message layer over datagrams (RFC 7252 §4).

pub mod congestion;
pub mod course;
pub mod endpoint;
pub mod outbox;
pub mod retransmission;
pub mod round_trip;
pub mod seed;

mod account;
mod acknowledgement;
mod by_message_id;
mod chunks;
mod duplicates;
mod invariants;
mod launch;
mod message;
mod message_id;
mod peers;
mod pending;
mod preserved;
mod requests;
mod responses;
mod slots;
mod turns;
mod under_way;
