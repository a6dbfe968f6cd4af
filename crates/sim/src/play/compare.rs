//! Whether a datagram of the proxy is the one a line speaks of.

use std::net::SocketAddr;

use coapway_message::{Code, Datagram, MessageType};

use super::Arrival;
use super::compose::value_bytes;
use super::memory::{Memory, Utterance};
use crate::notation::{hex, hex_spaced, option};
use crate::script::{Expected, Given, Payload, RawPart, Spoken, What};

/// Errors: the first difference, in words.
pub(super) fn compare(
    memory: &Memory<'_>,
    expected: &Expected,
    arrival: &Arrival,
    address: impl Fn(usize) -> SocketAddr,
) -> Result<(), String> {
    let peer = expected.peer;
    let named = expected.message.regarding.as_deref().map(|name| memory.called(name)).transpose()?;
    match &expected.message.content {
        What::Repeat => {
            let last = named.or_else(|| memory.last_heard(peer)).ok_or("the proxy has sent nothing yet")?;
            if last.bytes != arrival.bytes {
                return Err(format!("the bytes, which were {}", hex_spaced(&last.bytes)));
            }
            if last.other != arrival.from {
                return Err(format!("the source, which was {}", last.other));
            }
            Ok(())
        }
        What::Raw(parts) => {
            let anchor = named.or_else(|| memory.request_sent(peer)).or_else(|| memory.last_sent(peer));
            compare_raw(parts, anchor, &arrival.bytes)
        }
        What::Spoken(spoken) => {
            let anchor = named.or_else(|| anchor(memory, peer, spoken));
            compare_spoken(memory, spoken, anchor, &arrival.bytes, address)
        }
    }
}

/// The message of the peer that this one belongs to.
fn anchor<'m>(memory: &'m Memory<'_>, peer: usize, spoken: &Spoken) -> Option<&'m Utterance> {
    match (spoken.message_type, spoken.code) {
        (MessageType::Acknowledgement | MessageType::Reset, Code::EMPTY) => memory.confirmable_sent(peer),
        (_, code) if code.is_request() || code == Code::EMPTY => None,
        _ => memory.request_sent(peer),
    }
}

fn compare_raw(parts: &[RawPart], anchor: Option<&Utterance>, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    let differs = |rest: &[u8]| format!("byte {} of {}", bytes.len() - rest.len(), hex_spaced(bytes));
    for part in parts {
        let given = match part {
            RawPart::Rest => return Ok(()),
            RawPart::AnyByte => {
                let (_, behind) = rest.split_first().ok_or_else(|| differs(rest))?;
                rest = behind;
                continue;
            }
            RawPart::Byte(byte) => vec![*byte],
            RawPart::MessageId => anchor.map_or(Vec::new(), |anchor| anchor.message_id().to_vec()),
            RawPart::Token => anchor.map_or(Vec::new(), |anchor| anchor.token().to_vec()),
        };
        rest = rest.strip_prefix(&given[..]).ok_or_else(|| differs(rest))?;
    }
    if rest.is_empty() { Ok(()) } else { Err(differs(rest)) }
}

fn compare_spoken(
    memory: &Memory<'_>,
    spoken: &Spoken,
    anchor: Option<&Utterance>,
    bytes: &[u8],
    address: impl Fn(usize) -> SocketAddr,
) -> Result<(), String> {
    let datagram = Datagram::parse(bytes).map_err(|_| "it is no message".to_owned())?;
    if datagram.message_type != spoken.message_type || datagram.content.code != spoken.code {
        return Err("type or code".to_owned());
    }
    let answers = matches!(spoken.message_type, MessageType::Acknowledgement | MessageType::Reset);
    let no_other = |what: &str| format!("there is no message whose {what} it could differ from");
    let message_id = match &spoken.message_id {
        Some(Given::Is(id)) => Some(*id),
        Some(Given::Wrong) => {
            let anchor = anchor.ok_or_else(|| no_other("Message ID"))?;
            if u16::from_be_bytes(anchor.message_id()) == datagram.message_id {
                return Err("the Message ID, expected another".to_owned());
            }
            None
        }
        None => anchor.filter(|_| answers).map(|anchor| u16::from_be_bytes(anchor.message_id())),
    };
    if message_id.is_some_and(|id| id != datagram.message_id) {
        return Err(format!("the Message ID, expected {}", message_id.unwrap_or_default()));
    }
    let token = match &spoken.token {
        Some(Given::Is(token)) => Some(&token[..]),
        Some(Given::Wrong) => {
            if anchor.ok_or_else(|| no_other("token"))?.token() == datagram.token {
                return Err("the token, expected another".to_owned());
            }
            None
        }
        None => anchor.filter(|_| spoken.code != Code::EMPTY).map(Utterance::token),
    };
    if token.is_some_and(|token| token != datagram.token) {
        return Err(format!("the token, expected {}", hex(token.unwrap_or_default())));
    }
    compare_options(memory, spoken, &datagram, address)?;
    match &spoken.payload {
        Payload::Exactly(payload) if payload != datagram.content.payload => Err("the payload".to_owned()),
        Payload::Begins(start) if !datagram.content.payload.starts_with(start) => {
            Err("the payload".to_owned())
        }
        Payload::Exactly(_) | Payload::Begins(_) => Ok(()),
    }
}

fn compare_options(
    memory: &Memory<'_>,
    spoken: &Spoken,
    datagram: &Datagram<'_>,
    address: impl Fn(usize) -> SocketAddr,
) -> Result<(), String> {
    let mut seen: Vec<_> = datagram.content.options.iter().collect();
    for (number, value) in &spoken.options {
        let value = value_bytes(memory, value, &address)?;
        let place = seen.iter().position(|&(other, bytes)| other == *number && bytes == value);
        let place = place.ok_or_else(|| format!("{} is missing", option(*number, &value)))?;
        let in_order = !seen[..place].iter().any(|(other, _)| other == number);
        if !in_order {
            return Err(format!("the order of {number}"));
        }
        seen.remove(place);
    }
    match seen.first() {
        Some(&(number, value)) if !spoken.more_options => {
            Err(format!("{} was not expected", option(number, value)))
        }
        _ => Ok(()),
    }
}
