//! One option more, in its place.

use coapway_message::{Content, OptionNumber, OptionsWriter};

/// `content` with this option after all of its number and below, in `scratch`, which is cleared.
pub(super) fn insert<'s>(
    content: &Content<'s>,
    number: OptionNumber,
    value: &[u8],
    scratch: &'s mut Vec<u8>,
) -> Content<'s> {
    scratch.clear();
    let mut writer = OptionsWriter::new(scratch);
    let mut value = Some(value);
    for (other, present) in content.options {
        if other > number
            && let Some(value) = value.take()
        {
            writer.push(number, value);
        }
        writer.push(other, present);
    }
    if let Some(value) = value {
        writer.push(number, value);
    }
    Content { options: writer.finish(), ..*content }
}

#[cfg(test)]
mod tests {
    use coapway_message::Code;

    use super::*;

    #[test]
    fn an_option_stands_behind_those_of_its_number_and_below() {
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        for (number, value) in [(11, b"a"), (15, b"b"), (15, b"c"), (17, b"d")] {
            writer.push(OptionNumber(number), value);
        }
        let content = Content { code: Code::GET, options: writer.finish(), payload: b"x" };
        for (number, expected) in [(1, *b"-abcd"), (11, *b"a-bcd"), (15, *b"abc-d"), (60, *b"abcd-")] {
            let mut scratch = vec![9; 9];
            let longer = insert(&content, OptionNumber(number), b"-", &mut scratch);
            let values: Vec<u8> = longer.options.iter().flat_map(|(_, value)| value).copied().collect();
            assert_eq!((&values[..], longer.code, longer.payload), (&expected[..], Code::GET, &b"x"[..]));
        }
    }
}
