//! All that can be told but forward records: one enum for log, metrics, dashboard and checks.

use std::fmt;
use std::net::SocketAddr;

use coapway_message::{Code, Evidence, ExchangeId, Failure};

use crate::alert::Alert;
use crate::cause::Cause;
use crate::refusals::Refusals;

/// Something happened. `request` names the client's request throughout.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A request came that was not seen before.
    Received {
        /// The request.
        request: ExchangeId,
        /// Who asked.
        client: SocketAddr,
        /// The method.
        code: Code,
        /// Whether it is Confirmable.
        confirmable: bool,
    },
    /// A request came again.
    Repeated {
        /// The request, while it is not answered.
        request: Option<ExchangeId>,
    },
    /// The first copy of a request left for an origin.
    Sent {
        /// The request.
        request: ExchangeId,
        /// The origin.
        origin: SocketAddr,
    },
    /// The wait for the origin's Acknowledgement ran out.
    Retransmitted {
        /// The request.
        request: ExchangeId,
        /// Copies that left so far.
        copies: u32,
    },
    /// The origin acknowledged without a response.
    Acknowledged {
        /// The request.
        request: ExchangeId,
    },
    /// The client got an empty Acknowledgement.
    EmptyAckSent {
        /// The request.
        request: ExchangeId,
    },
    /// The request has its final answer.
    Answered {
        /// The request.
        request: ExchangeId,
        /// The response code.
        code: Code,
        /// Where the answer comes from.
        cause: Cause,
        /// What is known about execution, when a forward failed.
        evidence: Option<Evidence>,
    },
    /// A separate response reached the client, or did not.
    Delivered {
        /// The request.
        request: ExchangeId,
        /// Why not.
        outcome: Result<(), Failure>,
    },
    /// Something an operator should know of.
    Alert(Alert),
    /// Answers without a forward, one kind of them in one second; only when records are asked for.
    Refused(Refusals),
}

impl fmt::Display for Event {
    /// One line without times, addresses and tokens: what two runs of one script have in common.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Received { request, code, confirmable, .. } => {
                write!(f, "{request} received {code} {}", if *confirmable { "CON" } else { "NON" })
            }
            Self::Repeated { request: Some(request) } => write!(f, "{request} repeated"),
            Self::Repeated { request: None } => f.write_str("an answered request repeated"),
            Self::Sent { request, .. } => write!(f, "{request} sent"),
            Self::Retransmitted { request, copies } => write!(f, "{request} retransmitted, {copies} copies"),
            Self::Acknowledged { request } => write!(f, "{request} acknowledged by the origin"),
            Self::EmptyAckSent { request } => write!(f, "{request} acknowledged early"),
            Self::Answered { request, code, cause, evidence } => {
                write!(f, "{request} answered {code} {}", cause.name())?;
                evidence.map_or(Ok(()), |evidence| write!(f, " {}", evidence.name()))
            }
            Self::Delivered { request, outcome: Ok(()) } => write!(f, "{request} delivered"),
            Self::Delivered { request, outcome: Err(failure) } => {
                write!(f, "{request} undelivered {}", failure.name())
            }
            Self::Alert(alert) => write!(f, "alert: {}", alert.name()),
            Self::Refused(Refusals { code, cause, count, .. }) => {
                write!(f, "answered {count} times {code} {}", cause.name())
            }
        }
    }
}
