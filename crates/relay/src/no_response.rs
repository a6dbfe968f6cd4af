//! Which responses a client does not want to hear (RFC 7967).

use coapway_message::{Code, Content, OptionNumber};

/// Classes of responses that are not sent to the client; all are wanted by default.
///
/// An empty Acknowledgement is sent all the same where the request is Confirmable (RFC 7967 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NoResponse(u8);

impl NoResponse {
    /// Every response is wanted.
    pub const NONE: Self = Self(0);

    /// Reads an option value, 0 or 1 byte; bits that name no class of responses mean nothing.
    pub(crate) const fn read(value: &[u8]) -> Self {
        match value {
            &[bits] => Self(bits & 0b11010),
            _ => Self::NONE,
        }
    }

    /// What a request asks for, whatever else is wrong with it: for an answer of ours to it.
    ///
    /// An option that is too long or repeated counts as unrecognised (RFC 7252 §5.4.3, §5.4.5), so
    /// the client hears what is wrong.
    pub fn of(content: &Content<'_>) -> Self {
        let mut values = content.options.values(OptionNumber::NO_RESPONSE);
        match (values.next(), values.next()) {
            (Some(value), None) => Self::read(value),
            _ => Self::NONE,
        }
    }

    /// Whether a response with this code is not sent.
    ///
    /// Source: RFC 7967 §2.1: 2, 8 and 16 stand for 2.xx, 4.xx and 5.xx.
    pub const fn suppresses(self, code: Code) -> bool {
        self.0 << 1 >> code.class() & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use coapway_message::OptionsWriter;

    use super::*;

    fn of(values: &[&[u8]]) -> NoResponse {
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        values.iter().for_each(|value| writer.push(OptionNumber::NO_RESPONSE, value));
        NoResponse::of(&Content { code: Code::GET, options: writer.finish(), payload: &[] })
    }

    #[test]
    fn each_bit_stands_for_a_class() {
        for (value, suppressed) in [
            (0, &[][..]),
            (2, &[2]),
            (8, &[4]),
            (16, &[5]),
            (26, &[2, 4, 5]),
            (24, &[4, 5]),
            (4 | 1 | 32 | 64 | 128, &[]),
            (255, &[2, 4, 5]),
        ] {
            for class in 0..8 {
                let is_suppressed = of(&[&[value]]).suppresses(Code::new(class, 4));
                assert_eq!(is_suppressed, suppressed.contains(&class), "{value} {class}");
            }
        }
    }

    #[test]
    fn all_are_wanted_where_the_option_is_absent_empty_too_long_or_repeated() {
        for values in [&[], &[&[]], &[&[26, 26]], &[&[26], &[26]]] as [&[&[u8]]; 4] {
            assert_eq!(of(values), NoResponse::NONE, "{values:?}");
        }
    }
}
