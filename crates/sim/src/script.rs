//! A conversation to be played: which peer sends which bytes when, and what the proxy must say to it.
//!
//! A script knows neither the virtual world nor real sockets; whoever plays it brings a
//! [`Stage`](crate::play::Stage). Its only notion of time is a [`Duration`] since the step before.

use std::time::Duration;

use coapway_message::{Code, MessageType, OptionNumber};

/// Peers of the proxy and what happens between them, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Who takes part; steps name them by their place here.
    pub peers: Vec<Peer>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// Somebody the proxy speaks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Box<str>,
    /// On which side of the proxy it is.
    pub role: Role,
}

/// On which side of the proxy somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Speaks to the proxy's listener. Names that begin with `client`.
    Client,
    /// Has an address that requests can be sent to. All other names.
    Origin,
}

impl Role {
    /// The role that a name implies.
    pub fn of(name: &str) -> Self {
        if name.starts_with("client") { Self::Client } else { Self::Origin }
    }
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it is written.
    pub line: usize,
    /// As it is written.
    pub text: Box<str>,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub act: Act,
}

/// When a step happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Counted from the step before.
    After(Window),
    /// Counted from the beginning of the play.
    At(Window),
}

/// From when until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// No sooner.
    pub from: Duration,
    /// No later, but for the stage's tolerance.
    pub until: Duration,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A peer sends these, at the beginning of the window.
    Send {
        /// Who.
        peer: usize,
        /// What, one after the other.
        messages: Vec<Message>,
    },
    /// The proxy sends exactly these, in any order, within the window.
    Expect(Vec<Expected>),
    /// Nobody gets anything for so long.
    Nothing(Duration),
    /// Nobody listens at the peer's address any more, or again.
    Listen {
        /// Whose.
        peer: usize,
        /// Whether somebody does.
        listens: bool,
    },
    /// A NAT gives the peer another address: what is sent to the old one does not reach it any more.
    Move {
        /// Whose.
        peer: usize,
    },
    /// The proxy's process stands still for so long.
    Stall(Duration),
}

/// What the proxy must send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// To whom.
    pub peer: usize,
    /// What.
    pub message: Message,
}

/// A message, to be composed or to be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub content: What,
    /// The name later lines know it by.
    pub called: Option<Box<str>>,
    /// Which message it belongs to, if not to the latest that fits.
    pub regarding: Option<Box<str>>,
    /// Whether it is sent to a multicast group that the proxy has joined.
    pub to_group: bool,
    /// Whether it is lost on its way: one that a peer sends never leaves; one that the proxy sends is
    /// seen by the reader and not by the peer.
    pub lost: bool,
}

/// The content of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The same bytes as the last time.
    Repeat,
    /// Byte by byte.
    Raw(Vec<RawPart>),
    /// In words.
    Spoken(Spoken),
}

/// A part of a message that is written byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawPart {
    /// This byte.
    Byte(u8),
    /// Any byte; cannot be sent.
    AnyByte,
    /// Whatever follows; cannot be sent.
    Rest,
    /// The two bytes of the Message ID it belongs to.
    MessageId,
    /// The token it belongs to.
    Token,
}

/// A message in words. What is left out follows from the message it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Its type.
    pub message_type: MessageType,
    /// Its code.
    pub code: Code,
    /// Its Message ID.
    pub message_id: Option<Given<u16>>,
    /// Its token.
    pub token: Option<Given<Vec<u8>>>,
    /// Its options, in ascending order.
    pub options: Vec<(OptionNumber, Value)>,
    /// Whether there may be further options.
    pub more_options: bool,
    /// Its payload.
    pub payload: Payload,
}

/// A value that is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<T> {
    /// This.
    Is(T),
    /// Another than the right one.
    Wrong,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// These bytes.
    Bytes(Vec<u8>),
    /// This text, in which `<NAME>` stands for the address and port of a peer.
    Text(String),
}

/// A payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// These bytes; none at all means no payload.
    Exactly(Vec<u8>),
    /// Bytes that begin with these.
    Begins(Vec<u8>),
}
