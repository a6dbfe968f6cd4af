use proptest::prelude::*;

use super::*;

fn error(bytes: &[u8]) -> Option<FormatError> {
    match Datagram::parse(bytes) {
        Err(Malformed::Format { error, .. }) => Some(error),
        Err(Malformed::Ignored) | Ok(_) => None,
    }
}

#[test]
fn ignores_runts_and_other_versions() {
    for bytes in
        [&[][..], &[0x40], &[0x40, 1, 0], &[0, 1, 0x12, 0x34], &[0x80, 1, 0x12, 0x34], &[0xC0, 1, 0, 1]]
    {
        assert_eq!(Datagram::parse(bytes), Err(Malformed::Ignored), "{bytes:02x?}");
    }
}

#[test]
fn an_empty_message_is_four_bytes() {
    assert_eq!(error(&[0x41, 0, 0, 5, 0xAA]), Some(FormatError::NotEmpty));
    assert_eq!(error(&[0x40, 0, 0, 5, 0xFF, 1]), Some(FormatError::NotEmpty));
    assert_eq!(error(&[0x41, 0, 0, 5]), Some(FormatError::NotEmpty));
    assert_eq!(empty(MessageType::Reset, 0xABCD), [0x70, 0, 0xAB, 0xCD]);
}

#[test]
fn reads_tokens_of_any_length() {
    assert_eq!(error(&[0x4F, 1, 0, 1]), Some(FormatError::Token));
    assert_eq!(error(&[0x44, 1, 0, 1, 0xAA]), Some(FormatError::Token));
    assert_eq!(error(&[0x4D, 1, 0, 1]), Some(FormatError::Token));
    for length in [0, 1, 8, 12, 13, 20, 268, 269, 300] {
        let token = vec![7; length];
        let mut bytes = Vec::new();
        encode(&mut bytes, MessageType::Confirmable, 1, &token, &Content::bare(Code::GET));
        assert_eq!(Datagram::parse(&bytes).expect("valid").token, token);
    }
}

#[test]
fn a_format_error_keeps_what_could_be_read() {
    let Err(Malformed::Format { message_type, message_id, code, token, .. }) =
        Datagram::parse(&[0x61, 0x45, 0x12, 0x34, 0xAA, 0xFF])
    else {
        panic!("malformed")
    };
    assert_eq!((message_type, message_id, code), (MessageType::Acknowledgement, 0x1234, Code::CONTENT));
    assert_eq!(token, Some(&[0xAA][..]));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(datagram) = Datagram::parse(&bytes) {
            let mut again = Vec::new();
            encode(&mut again, datagram.message_type, datagram.message_id, datagram.token, &datagram.content);
            let second = Datagram::parse(&again).expect("what we write is valid");
            prop_assert_eq!(second, datagram);
        }
    }
}
