//! Option values as people write and read them.

use std::fmt::Write as _;

use coapway_message::{OptionNumber, options};

/// The format of an option's value (RFC 7252 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Number,
    /// Number, more and size exponent in one (RFC 7959 §2.2).
    Block,
    Text,
    /// Bytes; what this project does not know as well.
    Opaque,
}

const fn format(number: OptionNumber) -> Format {
    match number {
        OptionNumber::OBSERVE
        | OptionNumber::URI_PORT
        | OptionNumber::CONTENT_FORMAT
        | OptionNumber::MAX_AGE
        | OptionNumber::HOP_LIMIT
        | OptionNumber::ACCEPT
        | OptionNumber::SIZE1
        | OptionNumber::SIZE2
        | OptionNumber::NO_RESPONSE => Format::Number,
        OptionNumber::BLOCK1 | OptionNumber::BLOCK2 => Format::Block,
        OptionNumber::URI_HOST
        | OptionNumber::URI_PATH
        | OptionNumber::URI_QUERY
        | OptionNumber::LOCATION_PATH
        | OptionNumber::LOCATION_QUERY
        | OptionNumber::PROXY_URI
        | OptionNumber::PROXY_SCHEME => Format::Text,
        _ => Format::Opaque,
    }
}

/// One option from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionArgument {
    pub(super) number: OptionNumber,
    pub(super) value: Vec<u8>,
}

impl OptionArgument {
    /// Reads `NAME=VALUE`. Neither repetition nor length is judged: a tester may want them wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| "write NAME=VALUE, or NAME= for an empty value".to_owned())?;
        let number =
            name.parse().ok().map(OptionNumber).or_else(|| OptionNumber::from_name(name)).ok_or_else(
                || format!("no option is called {name:?}; a number from 0 to 65535 works for all"),
            )?;
        let value = match (value.strip_prefix("0x"), format(number)) {
            (Some(digits), _) => hexadecimal(digits).ok_or("0x wants pairs of hexadecimal digits")?,
            (None, Format::Number | Format::Block) if !value.is_empty() => {
                let value = value.parse().map_err(|_| format!("{number} is a number, up to 4294967295"))?;
                options::minimal_uint(value, &mut [0; 4]).to_vec()
            }
            (None, Format::Number | Format::Block | Format::Text | Format::Opaque) => value.into(),
        };
        if value.len() > usize::from(u16::MAX) {
            return Err("no option value is longer than 65535 bytes".to_owned());
        }
        Ok(Self { number, value })
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<_> = digits.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks() else { return None };
    Some(pairs.iter().map(|&[high, low]| (high << 4 | low) as u8).collect())
}

/// A value as one line of text that cannot move a terminal's cursor.
pub(super) fn show(number: OptionNumber, value: &[u8]) -> String {
    match (format(number), options::uint(value)) {
        (Format::Number, Some(value)) => value.to_string(),
        (Format::Block, Some(value)) => {
            let (block, more, size) = (value >> 4, value >> 3 & 1 == 1, 16 << (value & 7));
            format!("{block}, {size} bytes{}", if more { ", more to come" } else { "" })
        }
        (Format::Text, _) => printable(value),
        (Format::Number | Format::Block | Format::Opaque, _) if value.is_empty() => "empty".to_owned(),
        (Format::Number | Format::Block | Format::Opaque, _) => {
            value.iter().fold("0x".to_owned(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        }
    }
}

/// Foreign bytes as text without control characters.
pub(super) fn printable(bytes: &[u8]) -> String {
    coapway_config::escaped(String::from_utf8_lossy(bytes)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(u16, Vec<u8>), String> {
        OptionArgument::parse(text).map(|option| (option.number.0, option.value))
    }

    #[test]
    fn reads_values_in_the_format_of_their_option() {
        assert_eq!(parse("Max-Age=60"), Ok((14, vec![60])));
        assert_eq!(parse("max-age=0"), Ok((14, vec![])), "the shortest form");
        assert_eq!(parse("6=0"), Ok((6, vec![])));
        assert_eq!(parse("Uri-Query=a=b"), Ok((15, b"a=b".to_vec())));
        assert_eq!(parse("ETag=0xA1b2"), Ok((4, vec![0xA1, 0xB2])));
        assert_eq!(parse("Max-Age=0x0001"), Ok((14, vec![0, 1])), "bytes as they are");
        assert_eq!(parse("If-None-Match="), Ok((5, vec![])));
        assert_eq!(parse("65001=12"), Ok((65001, b"12".to_vec())));
        for wrong in ["Max-Age", "Nope=1", "65536=", "Max-Age=1s", "Max-Age=4294967296", "4=0xf", "4=0xgg"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shows_values_in_the_format_of_their_option() {
        assert_eq!(show(OptionNumber::MAX_AGE, &[1, 0]), "256");
        assert_eq!(show(OptionNumber::BLOCK2, &[0x2E]), "2, 1024 bytes, more to come");
        assert_eq!(show(OptionNumber::LOCATION_PATH, b"a\x1b[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(show(OptionNumber::ETAG, &[0, 255]), "0x00ff");
        assert_eq!(show(OptionNumber::MAX_AGE, &[1; 5]), "0x0101010101", "too long for a number");
        assert_eq!(show(OptionNumber(65001), b""), "empty");
    }
}
