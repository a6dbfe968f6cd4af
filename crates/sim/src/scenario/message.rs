//! The notation of messages: `CON GET /t max-age=60 "22.5" MID=10 token=a1`, `raw 40 01 …`.

use coapway_message::options::minimal_uint;
use coapway_message::{Code, MessageType, Method, OptionNumber};

use super::line::{Word, hexadecimal};
use crate::notation::{Format, format_of};
use crate::script::{Given, Message, Payload, RawPart, Spoken, Value, What};

/// A message and, where it says so, whom it goes to.
pub(super) fn message(words: &[Word]) -> Result<(Message, Option<String>), String> {
    let mut message =
        Message { content: What::Repeat, called: None, regarding: None, lost: false, to_group: false };
    let mut to = None;
    let mut content = Vec::new();
    for word in words {
        match (word.plain(), word.plain().and_then(|plain| plain.split_once('='))) {
            (Some("lost"), _) => message.lost = true,
            (_, Some(("to", name))) => to = Some(name.to_owned()),
            (_, Some(("as", name))) => message.called = Some(name.into()),
            (_, Some(("for", name))) => message.regarding = Some(name.into()),
            _ => content.push(word),
        }
    }
    message.content = match content.split_first() {
        None => What::Repeat,
        Some((first, rest)) if first.is("raw") => What::Raw(raw(rest)?),
        Some((first, rest)) => What::Spoken(spoken(first, rest)?),
    };
    Ok((message, to))
}

fn raw(words: &[&Word]) -> Result<Vec<RawPart>, String> {
    let mut parts = Vec::new();
    for word in words {
        match (word.plain(), &word.quoted) {
            (_, Some(text)) => parts.extend(text.bytes().map(RawPart::Byte)),
            (Some(".."), None) => parts.push(RawPart::Rest),
            (Some("??"), None) => parts.push(RawPart::AnyByte),
            (Some("<mid>"), None) => parts.push(RawPart::MessageId),
            (Some("<token>"), None) => parts.push(RawPart::Token),
            (plain, None) => {
                parts.extend(hexadecimal(plain.unwrap_or_default())?.into_iter().map(RawPart::Byte))
            }
        }
    }
    Ok(parts)
}

fn spoken(first: &Word, rest: &[&Word]) -> Result<Spoken, String> {
    let message_type = match first.plain() {
        Some("CON") => MessageType::Confirmable,
        Some("NON") => MessageType::NonConfirmable,
        Some("ACK") => MessageType::Acknowledgement,
        Some("RST") => MessageType::Reset,
        _ => return Err("a message begins with CON, NON, ACK, RST or raw".to_owned()),
    };
    let mut spoken = Spoken {
        message_type,
        code: Code::EMPTY,
        message_id: None,
        token: None,
        options: Vec::new(),
        more_options: false,
        payload: Payload::Exactly(Vec::new()),
    };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word.is("option") {
            let definition = words.next().and_then(|word| word.plain()).unwrap_or_default();
            let (number, value) = definition.split_once('=').ok_or("option NUMBER=HEX")?;
            let number = number.parse().map_err(|_| format!("{number} is no option number"))?;
            spoken.options.push((OptionNumber(number), Value::Bytes(hexadecimal(value)?)));
        } else {
            part(&mut spoken, word)?;
        }
    }
    spoken.options.sort_by_key(|(number, _)| *number);
    Ok(spoken)
}

fn part(spoken: &mut Spoken, word: &Word) -> Result<(), String> {
    match (&word.bare[..], &word.quoted) {
        ("", Some(text)) => {
            let bytes = text.clone().into_bytes();
            spoken.payload = match &word.behind[..] {
                "" => Payload::Exactly(bytes),
                "..." => Payload::Begins(bytes),
                behind => return Err(format!("{behind} behind a payload")),
            };
        }
        ("...", None) => spoken.more_options = true,
        (path, None) if path.starts_with('/') => path_options(path, &mut spoken.options),
        (bare, quoted) => match bare.split_once('=') {
            Some((name, value)) => setting(spoken, name, quoted.as_deref().unwrap_or(value))?,
            None => match OptionNumber::from_name(bare) {
                Some(number) => spoken.options.push((number, Value::Bytes(Vec::new()))),
                None => spoken.code = code(bare)?,
            },
        },
    }
    Ok(())
}

fn setting(spoken: &mut Spoken, name: &str, value: &str) -> Result<(), String> {
    match name {
        "MID" => {
            spoken.message_id = Some(match (value, value.strip_prefix("0x")) {
                ("wrong" | "other", _) => Given::Wrong,
                (_, Some(digits)) => {
                    Given::Is(u16::from_str_radix(digits, 16).map_err(|error| error.to_string())?)
                }
                (_, None) => Given::Is(value.parse().map_err(|_| format!("{value} is no Message ID"))?),
            });
        }
        "token" => {
            spoken.token = Some(match value {
                "wrong" | "other" => Given::Wrong,
                _ => Given::Is(hexadecimal(value)?),
            });
        }
        "payload" => spoken.payload = Payload::Exactly(hexadecimal(value)?),
        _ => {
            let number = OptionNumber::from_name(name).ok_or_else(|| format!("{name} is no option"))?;
            let value = match format_of(number) {
                Format::Text => Value::Text(value.to_owned()),
                Format::Hex => Value::Bytes(hexadecimal(value)?),
                Format::Block => Value::Bytes(minimal_uint(block(value)?, &mut [0; 4]).to_vec()),
                Format::Uint => {
                    let value = value.parse().map_err(|_| format!("{name} is a number"))?;
                    Value::Bytes(minimal_uint(value, &mut [0; 4]).to_vec())
                }
            };
            spoken.options.push((number, value));
        }
    }
    Ok(())
}

/// `2/1/64`: number, whether more follow, size of a block.
fn block(text: &str) -> Result<u32, String> {
    let parts: Vec<u32> = text.split('/').map(str::parse).collect::<Result<_, _>>().unwrap_or_default();
    match parts[..] {
        [number, more @ 0..=1, size @ 16..=2048] if size.is_power_of_two() && number < 1 << 20 => {
            Ok(number << 4 | more << 3 | (size.trailing_zeros() - 4))
        }
        _ => Err(format!("{text} is no block: NUMBER/MORE/SIZE, as in 2/1/64")),
    }
}

/// `GET`, `2.05`.
fn code(text: &str) -> Result<Code, String> {
    if let Some(method) = Method::ALL.into_iter().find(|method| method.name() == text) {
        return Ok(method.code());
    }
    let parsed = text.split_once('.').and_then(|(class, detail)| {
        let (class, detail): (u8, u8) = (class.parse().ok()?, detail.parse().ok()?);
        (class < 8 && detail < 32).then(|| Code::new(class, detail))
    });
    parsed.ok_or_else(|| format!("{text} is neither a code nor an option nor a \"payload\""))
}

/// `/a/b?c&d`, not percent-encoded.
fn path_options(text: &str, options: &mut Vec<(OptionNumber, Value)>) {
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let mut add = |number, text: &str| options.push((number, Value::Text(text.to_owned())));
    if path != "/" {
        path.split('/').skip(1).for_each(|segment| add(OptionNumber::URI_PATH, segment));
    }
    query.into_iter().flat_map(|query| query.split('&')).for_each(|item| add(OptionNumber::URI_QUERY, item));
}
