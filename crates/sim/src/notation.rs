//! Datagrams in readable form: the notation of scenario files, for logs, diagrams and errors.

use std::fmt::Write as _;

use coapway_message::{Code, Datagram, Malformed, MessageType, Method, OptionNumber, Options, uri};

/// How the value of an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As a number.
    Uint,
    /// As text.
    Text,
    /// Number, whether more follow, and size: `2/1/64` (RFC 7959 §2.2).
    Block,
    /// Byte by byte; nothing at all for an empty value.
    Hex,
}

/// How this project writes the values of an option.
pub const fn format_of(number: OptionNumber) -> Format {
    match number {
        OptionNumber::URI_HOST
        | OptionNumber::LOCATION_PATH
        | OptionNumber::URI_PATH
        | OptionNumber::URI_QUERY
        | OptionNumber::LOCATION_QUERY
        | OptionNumber::PROXY_URI
        | OptionNumber::PROXY_SCHEME => Format::Text,
        OptionNumber::OBSERVE
        | OptionNumber::URI_PORT
        | OptionNumber::CONTENT_FORMAT
        | OptionNumber::MAX_AGE
        | OptionNumber::HOP_LIMIT
        | OptionNumber::ACCEPT
        | OptionNumber::SIZE2
        | OptionNumber::SIZE1
        | OptionNumber::NO_RESPONSE => Format::Uint,
        OptionNumber::BLOCK2 | OptionNumber::BLOCK1 => Format::Block,
        _ => Format::Hex,
    }
}

/// The type as diagrams write it.
pub const fn type_name(message_type: MessageType) -> &'static str {
    match message_type {
        MessageType::Confirmable => "CON",
        MessageType::NonConfirmable => "NON",
        MessageType::Acknowledgement => "ACK",
        MessageType::Reset => "RST",
    }
}

/// One datagram as a scenario would write it: `CON GET /t MID=10 token=a1`.
pub fn describe(bytes: &[u8]) -> String {
    match Datagram::parse(bytes) {
        Ok(datagram) => describe_message(&datagram),
        Err(Malformed::Ignored) => format!("raw {}", hex_spaced(bytes)),
        Err(Malformed::Format { error, .. }) => format!("raw {} ({error})", hex_spaced(bytes)),
    }
}

fn describe_message(datagram: &Datagram<'_>) -> String {
    let Datagram { message_type, message_id, token, content } = datagram;
    let mut text = String::from(type_name(*message_type));
    if content.code != Code::EMPTY {
        match Method::from_code(content.code) {
            Some(method) => push(&mut text, format_args!(" {}", method.name())),
            None => push(&mut text, format_args!(" {}", content.code)),
        }
    }
    describe_options(&content.options, content.code, &mut text);
    if !content.payload.is_empty() {
        push(&mut text, format_args!(" {}", payload(content.payload)));
    }
    push(&mut text, format_args!(" MID={message_id}"));
    if content.code != Code::EMPTY {
        push(&mut text, format_args!(" token={}", hex(token)));
    }
    text
}

fn describe_options(options: &Options<'_>, code: Code, text: &mut String) {
    if code.is_request() && options.first(OptionNumber::PROXY_URI).is_none() {
        text.push(' ');
        uri::write_path(options, text);
        uri::write_query(options, text);
    }
    for (number, value) in options.iter() {
        let in_path = matches!(number, OptionNumber::URI_PATH | OptionNumber::URI_QUERY)
            && code.is_request()
            && options.first(OptionNumber::PROXY_URI).is_none();
        if !in_path {
            push(text, format_args!(" {}", option(number, value)));
        }
    }
}

/// One option as a scenario would write it: `max-age=60`, `option 65001=2a`.
pub fn option(number: OptionNumber, value: &[u8]) -> String {
    let Some(name) = number.name() else { return format!("option {}={}", number.0, hex(value)) };
    let name = name.to_ascii_lowercase();
    match (format_of(number), std::str::from_utf8(value), coapway_message::options::uint(value)) {
        (Format::Uint, _, Some(number)) => format!("{name}={number}"),
        (Format::Block, _, Some(value)) => {
            format!("{name}={}/{}/{}", value >> 4, value >> 3 & 1, 16 << (value & 7))
        }
        (Format::Hex, _, _) if value.is_empty() => name,
        (Format::Text, Ok(text), _) if text.contains([' ', '"']) => format!("{name}={text:?}"),
        (Format::Text, Ok(text), _) => format!("{name}={text}"),
        _ => format!("{name}={}", hex(value)),
    }
}

fn payload(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => format!("\"{text}\""),
        _ => format!("payload={}", hex(bytes)),
    }
}

/// Bytes without spaces.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes.iter().for_each(|byte| push(&mut text, format_args!("{byte:02x}")));
    text
}

/// Bytes with spaces between them.
pub fn hex_spaced(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(" ")
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_like_a_diagram() {
        for (bytes, text) in [
            (&[0x41, 1, 0, 10, 0xA1, 0xB1, b't'][..], "CON GET /t MID=10 token=a1"),
            (&[0x60, 0, 0, 10], "ACK MID=10"),
            (
                &[0x61, 0x45, 0, 10, 0xA1, 0xD1, 1, 60, 0xFF, b'2'],
                "ACK 2.05 max-age=60 \"2\" MID=10 token=a1",
            ),
            (&[0x40], "raw 40"),
            (&[0x4F, 1, 0, 1], "raw 4F 01 00 01 (reserved or truncated token)"),
        ] {
            assert_eq!(describe(bytes), text);
        }
    }

    #[test]
    fn unknown_options_have_numbers() {
        assert_eq!(option(OptionNumber(65001), &[0x2A]), "option 65001=2a");
        assert_eq!(option(OptionNumber::MAX_AGE, &[]), "max-age=0");
        assert_eq!(option(OptionNumber::URI_HOST, b"h"), "uri-host=h");
        assert_eq!(option(OptionNumber::BLOCK2, &[0x2E]), "block2=2/1/1024");
        assert_eq!(option(OptionNumber::IF_NONE_MATCH, &[]), "if-none-match");
    }
}
