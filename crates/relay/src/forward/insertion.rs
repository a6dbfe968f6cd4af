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
