//! A Hop-Limit for one request (RFC 8768 §3).

use coapway_message::{Content, OptionNumber, OptionsWriter};

use super::insertion::insert;

/// The request with this Hop-Limit, in `scratch`, which is cleared; one that has the option stays as it
/// is.
pub fn with_hop_limit<'s>(content: &Content<'s>, limit: u8, scratch: &'s mut Vec<u8>) -> Content<'s> {
    if content.options.first(OptionNumber::HOP_LIMIT).is_some() {
        return *content;
    }
    insert(content, OptionNumber::HOP_LIMIT, &[limit], scratch)
}

/// The request as it would be with any number of hops left, its other options in `scratch`, which is cleared.
pub fn without_hop_limit<'s>(content: &Content<'s>, scratch: &'s mut Vec<u8>) -> Content<'s> {
    scratch.clear();
    let mut writer = OptionsWriter::new(scratch);
    let others = content.options.iter().filter(|&(number, _)| number != OptionNumber::HOP_LIMIT);
    others.for_each(|(number, value)| writer.push(number, value));
    Content { options: writer.finish(), ..*content }
}

#[cfg(test)]
mod tests {
    use coapway_message::Code;

    use super::*;

    #[test]
    fn it_stands_in_its_place_and_only_once() {
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        writer.push(OptionNumber::URI_PATH, b"a");
        writer.push(OptionNumber::ACCEPT, &[50]);
        let content = Content { code: Code::GET, options: writer.finish(), payload: b"" };
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let limited = with_hop_limit(&content, 14, &mut one);
        let numbers: Vec<_> = limited.options.iter().map(|(number, _)| number.0).collect();
        assert_eq!(numbers, [11, 16, 17]);
        assert_eq!(limited.options.first(OptionNumber::HOP_LIMIT), Some(&[14][..]));
        assert_eq!(with_hop_limit(&limited, 3, &mut other), limited);
        assert_eq!(without_hop_limit(&limited, &mut other), content);
    }
}
