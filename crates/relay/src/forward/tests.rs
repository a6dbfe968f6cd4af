mod requests;
mod responses;

use coapway_message::{Code, Content, Method, Options, OptionsWriter, OwnedContent};

use super::*;

type List<'a> = &'a [(u16, &'a [u8])];

fn content(code: Code, list: List<'_>, payload: &[u8]) -> OwnedContent {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
    Content { code, options: writer.finish(), payload }.into()
}

fn listed(options: &Options<'_>) -> Vec<(u16, Vec<u8>)> {
    options.iter().map(|(number, value)| (number.0, value.to_vec())).collect()
}

fn owned(list: List<'_>) -> Vec<(u16, Vec<u8>)> {
    list.iter().map(|(number, value)| (*number, value.to_vec())).collect()
}

/// The ciphertext of RFC 8613 Appendix C.4.
const CIPHERTEXT: &[u8] = b"\x61\x2f\x10\x92\xf1\x77\x6f\x1c\x16\x68\xb3\x82\x5e";
