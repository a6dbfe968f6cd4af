//! Bytes as a message: judged as an independent codec judges them, and written again as they were.

#![no_main]

use coapway_message::{Datagram, Malformed, MessageType, datagram};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/message/tests/oracle/verdict.rs"]
mod verdict;

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(verdict::verdict(bytes), verdict::expected(bytes));
    match Datagram::parse(bytes) {
        Ok(Datagram { message_type, message_id, token, content }) => {
            let mut again = Vec::new();
            datagram::encode(&mut again, message_type, message_id, token, &content);
            assert_eq!(again, bytes);
        }
        Err(Malformed::Format { message_type, message_id, token, .. }) => {
            assert_eq!(bytes[0] >> 4, 4 | message_type as u8);
            assert_eq!(bytes[2..4], message_id.to_be_bytes());
            assert!(token.is_none_or(|token| token.len() + 4 <= bytes.len()));
            assert_eq!(datagram::empty(MessageType::Reset, message_id)[2..], bytes[2..4]);
        }
        Err(Malformed::Ignored) => assert!(bytes.len() < 4 || bytes[0] >> 6 != 1),
    }
});
