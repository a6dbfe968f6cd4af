//! Foreign clients and origins behind one pair of verbs.

use crate::aiocoap::{AiocoapClient, AiocoapOrigin};
use crate::exchange::{Answer, Request};
use crate::libcoap::{self, LibcoapOrigin};
use crate::peers::Peer;

/// Whose implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// libcoap's example programs.
    Libcoap,
    /// aiocoap, driven by the scripts in `peers/`.
    Aiocoap,
}

impl Stack {
    /// The peer that its client needs.
    pub fn client(self) -> Peer {
        match self {
            Self::Libcoap => Peer::LibcoapClient,
            Self::Aiocoap => Peer::Aiocoap,
        }
    }

    /// The peer that its origin needs.
    pub fn origin(self) -> Peer {
        match self {
            Self::Libcoap => Peer::LibcoapServer,
            Self::Aiocoap => Peer::Aiocoap,
        }
    }
}

/// A client of either stack.
pub enum Client {
    /// One process per request.
    Libcoap,
    /// One process for all.
    Aiocoap(AiocoapClient),
}

impl Client {
    /// Starts a client; its peer must be present.
    pub fn start(stack: Stack) -> Self {
        match stack {
            Stack::Libcoap => Self::Libcoap,
            Stack::Aiocoap => Self::Aiocoap(AiocoapClient::start()),
        }
    }

    /// Sends a request and waits for its answer. `Err` tells what the client said instead.
    pub fn request(&self, request: &Request) -> Result<Answer, String> {
        match self {
            Self::Libcoap => libcoap::request(request).and_then(|exchange| exchange.answer()),
            Self::Aiocoap(client) => client.request(request),
        }
    }
}

/// An origin of either stack, on both loopback addresses.
pub enum Origin {
    /// libcoap's example server.
    Libcoap(LibcoapOrigin),
    /// `peers/origin.py`.
    Aiocoap(AiocoapOrigin),
}

impl Origin {
    /// Starts an origin; its peer must be present.
    pub fn start(stack: Stack) -> Self {
        match stack {
            Stack::Libcoap => Self::Libcoap(LibcoapOrigin::start()),
            Stack::Aiocoap => Self::Aiocoap(AiocoapOrigin::start()),
        }
    }

    /// Its port, the same on both addresses.
    pub fn port(&self) -> u16 {
        match self {
            Self::Libcoap(origin) => origin.port(),
            Self::Aiocoap(origin) => origin.port(),
        }
    }
}
