//! How messages cross one hop: the message layer and the request/response matching of CoAP over
//! datagrams, as one state machine without socket, clock or thread.
//!
//! ```text
//!            handle_datagram ─┐                    ┌─▶ Received::{Request, Response}   (borrowed)
//! socket ──▶ handle_unreachable ├─▶ Endpoint ──────┼─▶ poll_event: acknowledged, failed, delivered …
//! clock  ──▶ handle_timeout ──┘  ▲                 └─▶ poll_transmit ──▶ socket
//!                                └── send_request, respond, cancel ── whoever is above
//! ```
//!
//! An [`Endpoint`] plays both roles. As a server it recognises duplicates, opens an acknowledgement
//! window for each Confirmable request and answers piggybacked, separately, Non-confirmable or not at
//! all; separate responses wait for their turn (NSTART), and an unverified address gets no more than
//! its share. As a client it picks Message IDs and tokens, retransmits with back-off and matches
//! responses. It does not know what a proxy is. Source: RFC 7252 §4, §5.2, §5.3.

pub mod datagram;
pub mod event;
pub mod matching;
pub mod parameters;
pub mod peer;
pub mod trace;

pub use datagram::congestion::Window;
pub use datagram::course::Course;
pub use datagram::endpoint::Endpoint;
pub use datagram::outbox::Transmit;
pub use datagram::retransmission::Schedule;
pub use datagram::round_trip::{RoundTrip, Timing};
pub use datagram::seed::Seed;
pub use event::{Counters, Event, Gate, Received, Refused};
pub use parameters::{
    Carry, DuplicatesParameters, EndpointParameters, Estimator, Nstart, RtoParameters, TransmissionParameters,
};
pub use peer::{Local, Peer, SocketId, hash_address};
pub use trace::{AnswerKind, Copy, Trace};
