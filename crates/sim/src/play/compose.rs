//! From a line to bytes: what is left out follows from what was said before.

use std::net::SocketAddr;

use coapway_message::{Code, Content, MessageType, OptionsWriter, datagram};

use super::memory::{Memory, Utterance};
use crate::script::{Given, Message, Payload, RawPart, Role, Spoken, Value, What};

/// Where a peer's message goes, and its bytes.
pub(super) fn compose(
    memory: &mut Memory<'_>,
    peer: usize,
    message: &Message,
    listener: SocketAddr,
    address: impl Fn(usize) -> SocketAddr,
) -> Result<(SocketAddr, Vec<u8>), String> {
    if message.content == What::Repeat {
        let sent = match &message.regarding {
            Some(name) => memory.called(name)?,
            None => memory.last_sent(peer).ok_or("nothing was sent that could be repeated")?,
        };
        return Ok((sent.other, sent.bytes.clone()));
    }
    let anchor = match (&message.regarding, &message.content) {
        (Some(name), _) => Some(memory.called(name)?.clone()),
        (None, What::Spoken(spoken)) => anchor(memory, peer, spoken).cloned(),
        (None, What::Raw(_)) => memory.request_heard(peer).or_else(|| memory.last_heard(peer)).cloned(),
        (None, What::Repeat) => None,
    };
    let to = match (memory.script().peers[peer].role, &anchor) {
        (Role::Client, _) => listener,
        (Role::Origin, Some(anchor)) => anchor.other,
        (Role::Origin, None) => {
            memory.last_heard(peer).ok_or("the proxy has not spoken to this peer yet")?.other
        }
    };
    let bytes = match &message.content {
        What::Raw(parts) => raw(parts, anchor.as_ref())?,
        What::Spoken(spoken) => spoken_bytes(memory, spoken, anchor.as_ref(), address)?,
        What::Repeat => Vec::new(),
    };
    Ok((to, bytes))
}

/// The message of the proxy that this one belongs to.
fn anchor<'m>(memory: &'m Memory<'_>, peer: usize, spoken: &Spoken) -> Option<&'m Utterance> {
    match (spoken.message_type, spoken.code) {
        (MessageType::Acknowledgement | MessageType::Reset, Code::EMPTY) => memory.confirmable_heard(peer),
        (_, code) if code.is_request() || code == Code::EMPTY => None,
        _ => memory.request_heard(peer),
    }
}

fn raw(parts: &[RawPart], anchor: Option<&Utterance>) -> Result<Vec<u8>, String> {
    let missing = "there is no message to take the Message ID or token from";
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            RawPart::Byte(byte) => bytes.push(*byte),
            RawPart::MessageId => bytes.extend(anchor.ok_or(missing)?.message_id()),
            RawPart::Token => bytes.extend_from_slice(anchor.ok_or(missing)?.token()),
            RawPart::AnyByte | RawPart::Rest => return Err("?? and .. cannot be sent".to_owned()),
        }
    }
    Ok(bytes)
}

fn spoken_bytes(
    memory: &mut Memory<'_>,
    spoken: &Spoken,
    anchor: Option<&Utterance>,
    address: impl Fn(usize) -> SocketAddr,
) -> Result<Vec<u8>, String> {
    let answers = matches!(spoken.message_type, MessageType::Acknowledgement | MessageType::Reset);
    let right = anchor.filter(|_| answers).map(|anchor| u16::from_be_bytes(anchor.message_id()));
    let message_id = match (&spoken.message_id, right) {
        (Some(Given::Is(id)), _) => *id,
        (Some(Given::Wrong), Some(right)) => right ^ 1,
        (None, Some(right)) => right,
        (Some(Given::Wrong), None) => return Err("there is no right Message ID to differ from".to_owned()),
        (None, None) if answers => return Err("there is nothing to acknowledge or reject".to_owned()),
        (None, None) => memory.next_message_id(),
    };
    let token = match (&spoken.token, anchor) {
        (Some(Given::Is(token)), _) => token.clone(),
        (Some(Given::Wrong), Some(anchor)) => anchor.token().iter().map(|byte| byte ^ 1).collect(),
        (Some(Given::Wrong), None) => return Err("there is no right token to differ from".to_owned()),
        (None, Some(anchor)) if spoken.code != Code::EMPTY => anchor.token().to_vec(),
        (None, _) if spoken.code.is_request() => message_id.to_be_bytes().to_vec(),
        (None, _) if spoken.code == Code::EMPTY => Vec::new(),
        (None, _) => return Err("there is no request that this could answer".to_owned()),
    };
    let mut buffer = Vec::new();
    let mut options = OptionsWriter::new(&mut buffer);
    for (number, value) in &spoken.options {
        options.push(*number, &value_bytes(memory, value, &address)?);
    }
    let payload = match &spoken.payload {
        Payload::Exactly(bytes) => bytes,
        Payload::Begins(_) => return Err("a payload that only begins cannot be sent".to_owned()),
    };
    let content = Content { code: spoken.code, options: options.finish(), payload };
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, spoken.message_type, message_id, &token, &content);
    Ok(bytes)
}

/// The bytes of an option value, with addresses in the place of names.
pub(super) fn value_bytes(
    memory: &Memory<'_>,
    value: &Value,
    address: impl Fn(usize) -> SocketAddr,
) -> Result<Vec<u8>, String> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.clone()),
        Value::Text(text) => {
            let mut text = text.clone();
            for (place, peer) in memory.script().peers.iter().enumerate() {
                text = text.replace(&format!("<{}>", peer.name), &address(place).to_string());
            }
            if text.contains('<') {
                return Err(format!("nobody is called as in {text}"));
            }
            Ok(text.into_bytes())
        }
    }
}
