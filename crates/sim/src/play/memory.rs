//! What was said so far in a play: lines refer to it without spelling it out.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Code, Datagram, MessageType};

use crate::script::Script;

/// A datagram that a peer sent or got.
#[derive(Clone, Debug)]
pub(super) struct Utterance {
    /// The proxy's address on this hop.
    pub(super) other: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

impl Utterance {
    pub(super) fn message_id(&self) -> [u8; 2] {
        match self.bytes[..] {
            [_, _, high, low, ..] => [high, low],
            _ => [0, 0],
        }
    }

    pub(super) fn token(&self) -> &[u8] {
        Datagram::parse(&self.bytes).map_or(&[], |datagram| datagram.token)
    }

    fn is_request(&self) -> bool {
        matches!(self.bytes[..], [_, code, ..] if Code(code).is_request())
    }

    fn is_confirmable(&self) -> bool {
        matches!(self.bytes[..], [first, ..] if first >> 4 & 3 == MessageType::Confirmable as u8)
    }
}

#[derive(Debug, Default)]
struct Spoken {
    sent: Vec<Utterance>,
    heard: Vec<Utterance>,
}

/// By peer.
#[derive(Debug)]
pub(super) struct Memory<'s> {
    script: &'s Script,
    spoken: Vec<Spoken>,
    called: BTreeMap<Box<str>, Utterance>,
    next: u16,
}

impl<'s> Memory<'s> {
    pub(super) fn new(script: &'s Script) -> Self {
        let spoken = script.peers.iter().map(|_| Spoken::default()).collect();
        Self { script, spoken, called: BTreeMap::new(), next: 0x7000 }
    }

    pub(super) const fn script(&self) -> &'s Script {
        self.script
    }

    pub(super) fn sent(&mut self, peer: usize, other: SocketAddr, bytes: Vec<u8>, called: Option<&str>) {
        let utterance = Utterance { other, bytes };
        self.call(called, &utterance);
        self.spoken[peer].sent.push(utterance);
    }

    pub(super) fn heard(&mut self, peer: usize, other: SocketAddr, bytes: Vec<u8>, called: Option<&str>) {
        let utterance = Utterance { other, bytes };
        self.call(called, &utterance);
        self.spoken[peer].heard.push(utterance);
    }

    fn call(&mut self, called: Option<&str>, utterance: &Utterance) {
        if let Some(name) = called {
            self.called.insert(name.into(), utterance.clone());
        }
    }

    /// A Message ID that no line gave.
    pub(super) const fn next_message_id(&mut self) -> u16 {
        self.next += 1;
        self.next
    }

    pub(super) fn called(&self, name: &str) -> Result<&Utterance, String> {
        self.called.get(name).ok_or_else(|| format!("no message above is called {name}"))
    }

    pub(super) fn last_sent(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].sent.last()
    }

    pub(super) fn last_heard(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].heard.last()
    }

    /// What an answer of this peer answers.
    pub(super) fn request_heard(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].heard.iter().rfind(|utterance| utterance.is_request())
    }

    /// What an Acknowledgement or Reset of this peer is for.
    pub(super) fn confirmable_heard(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].heard.iter().rfind(|utterance| utterance.is_confirmable())
    }

    /// What an answer to this peer answers.
    pub(super) fn request_sent(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].sent.iter().rfind(|utterance| utterance.is_request())
    }

    /// What an Acknowledgement or Reset to this peer is for.
    pub(super) fn confirmable_sent(&self, peer: usize) -> Option<&Utterance> {
        self.spoken[peer].sent.iter().rfind(|utterance| utterance.is_confirmable())
    }
}
