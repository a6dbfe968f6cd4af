//! Tokens of all lengths (RFC 8974 §2.1): a header with any token length and extension, before more or
//! fewer bytes than they say.
//!
//! Input: token length nibble · extension, 2 bytes · bytes that follow, 2 bytes · what stands behind
//! the token.

#![no_main]

use coapway_fuzz::Script;
use coapway_message::token::MAX_EXTENDED_LENGTH;
use coapway_message::{Datagram, Malformed, datagram};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = run(Script::new(bytes));
});

fn run(mut script: Script<'_>) -> Option<()> {
    let first = 0x40 | script.byte()? & 0x3F;
    let extension = script.number()?.to_be_bytes();
    let (extension, stated) = match first & 15 {
        length @ 0..=12 => (&extension[..0], Some(usize::from(length))),
        13 => (&extension[..1], Some(13 + usize::from(extension[0]))),
        14 => (&extension[..], Some(269 + usize::from(u16::from_be_bytes(extension)))),
        _ => (&extension[..], None),
    };
    let there = usize::from(script.number()?);
    let mut bytes = vec![first, 1, 0x12, 0x34];
    bytes.extend_from_slice(extension);
    bytes.resize(bytes.len() + there, 0xB0);
    if stated == Some(there) {
        bytes.extend_from_slice(script.rest());
    }
    match (Datagram::parse(&bytes), stated) {
        (Ok(Datagram { message_type, message_id, token, content }), Some(stated)) => {
            assert!(token.len() == stated && stated <= MAX_EXTENDED_LENGTH && stated <= there);
            let mut again = Vec::new();
            datagram::encode(&mut again, message_type, message_id, token, &content);
            assert_eq!(again, bytes);
        }
        (Err(Malformed::Format { token, .. }), _) => {
            let token_is_there = stated.is_some_and(|stated| stated <= there);
            assert_eq!(token.is_some(), token_is_there);
        }
        (result, stated) => panic!("{result:?} for a token of {stated:?} bytes"),
    }
    Some(())
}
