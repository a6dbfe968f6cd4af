//! The message format (RFC 7252 §3, §4.1; RFC 8974 §2.1). The number in a name is that of R-FMT-….

use coapway_message::datagram::{self, FormatError};
use coapway_message::options::{OptionsError, minimal_uint, uint};
use coapway_message::token::MAX_EXTENDED_LENGTH;
use coapway_message::{
    Code, Content, Datagram, Malformed, MessageType, OptionNumber, Options, OptionsWriter, OwnedContent,
};

const TYPES: [MessageType; 4] =
    [MessageType::Confirmable, MessageType::NonConfirmable, MessageType::Acknowledgement, MessageType::Reset];

/// The bytes of a hexadecimal text; spaces do not count.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn error(bytes: &[u8]) -> Option<FormatError> {
    match Datagram::parse(bytes) {
        Err(Malformed::Format { error, .. }) => Some(error),
        Err(Malformed::Ignored) | Ok(_) => None,
    }
}

/// Encodes one option and decodes it again.
fn there_and_back(number: u16, value: &[u8]) -> (Vec<u8>, u16, Vec<u8>) {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    writer.push(OptionNumber(number), value);
    let encoded = writer.finish().as_encoded().to_vec();
    let (options, payload) = Options::parse(&encoded).expect("what we write is valid");
    assert!(payload.is_empty());
    let mut all = options.iter();
    let (read, value) = all.next().expect("one option");
    assert_eq!(all.next(), None);
    (encoded.clone(), read.0, value.to_vec())
}

fn written(content: &Content<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, MessageType::Confirmable, 0x1234, b"\xAA", content);
    bytes
}

#[test]
fn fmt_02_runts_and_other_versions_are_ignored_whatever_their_type() {
    for bytes in ["", "40", "4001", "400125"] {
        assert_eq!(Datagram::parse(&hex(bytes)), Err(Malformed::Ignored), "{bytes}");
    }
    for version in [0, 2, 3] {
        for rest in 0..64 {
            let first = version << 6 | rest;
            for code in [0x00, 0x01, 0x45, 0xFF] {
                let bytes = [first, code, 0x12, 0x34, 0xAA, 0xB1, 0x61];
                assert_eq!(Datagram::parse(&bytes), Err(Malformed::Ignored), "{bytes:02x?}");
                assert_eq!(Datagram::parse(&bytes[..4]), Err(Malformed::Ignored), "{bytes:02x?}");
            }
        }
    }
}

#[test]
fn fmt_03_token_length_15_is_a_format_error() {
    for message_type in 0..4 {
        let mut bytes = vec![0x4F | message_type << 4, 1, 0, 1];
        assert_eq!(error(&bytes), Some(FormatError::Token));
        bytes.resize(400, 0);
        assert_eq!(error(&bytes), Some(FormatError::Token));
    }
}

#[test]
fn fmt_03_token_lengths_9_to_14_are_those_of_extended_tokens() {
    for length in 9..=12_u8 {
        let mut bytes = vec![0x40 | length, 1, 0, 1];
        bytes.resize(4 + usize::from(length), 0xEE);
        assert_eq!(Datagram::parse(&bytes).expect("valid").token.len(), usize::from(length));
    }
    let mut bytes = hex("4d010001 00");
    bytes.resize(5 + 13, 0xEE);
    assert_eq!(Datagram::parse(&bytes).expect("valid").token, [0xEE; 13]);
    let mut bytes = hex("4e010001 0000");
    bytes.resize(6 + 269, 0xEE);
    assert_eq!(Datagram::parse(&bytes).expect("valid").token, [0xEE; 269]);
}

#[test]
fn fmt_03_tokens_of_every_length_survive_a_round_trip() {
    let token: Vec<u8> = (0..MAX_EXTENDED_LENGTH).map(|place| (place % 251) as u8).collect();
    let mut bytes = Vec::new();
    for length in 0..=token.len() {
        bytes.clear();
        let content = Content { payload: b"\xFF", ..Content::bare(Code::GET) };
        datagram::encode(&mut bytes, MessageType::NonConfirmable, 7, &token[..length], &content);
        let extension = match length {
            0..=12 => 0,
            13..=268 => 1,
            _ => 2,
        };
        assert_eq!(bytes.len(), 4 + extension + length + 2, "{length}");
        let read = Datagram::parse(&bytes).expect("what we write is valid");
        assert_eq!(read.token, &token[..length], "{length}");
        assert_eq!((read.message_id, read.content.payload), (7, &b"\xFF"[..]), "{length}");
        // A token that is cut is no token, however much of it is there.
        let cut = &bytes[..4 + extension + length.saturating_sub(1)];
        assert_eq!(error(cut).is_some(), length > 0, "{length}");
    }
}

#[test]
fn fmt_04_what_runs_past_the_end_is_a_format_error() {
    for (bytes, expected) in [
        ("44010001 AA", FormatError::Token),
        ("48012507 aabb", FormatError::Token),
        ("4d010001", FormatError::Token),
        ("4d010001 00aabbccddeeff", FormatError::Token),
        ("4e010001", FormatError::Token),
        ("4e010001 00", FormatError::Token),
        ("4e010001 0000aa", FormatError::Token),
        ("40010001 b961626364", FormatError::Options(OptionsError::Truncated)),
        ("40010001 b1", FormatError::Options(OptionsError::Truncated)),
        ("40010001 d0", FormatError::Options(OptionsError::Truncated)),
        ("40010001 0d", FormatError::Options(OptionsError::Truncated)),
        ("40010001 e0", FormatError::Options(OptionsError::Truncated)),
        ("40010001 e001", FormatError::Options(OptionsError::Truncated)),
        ("40010001 0e", FormatError::Options(OptionsError::Truncated)),
        ("40010001 0e01", FormatError::Options(OptionsError::Truncated)),
        ("40010001 0effff", FormatError::Options(OptionsError::Truncated)),
        ("40010001 dd00", FormatError::Options(OptionsError::Truncated)),
        ("40010001 dd0001", FormatError::Options(OptionsError::Truncated)),
        ("40010001 ee00000000", FormatError::Options(OptionsError::Truncated)),
    ] {
        assert_eq!(error(&hex(bytes)), Some(expected), "{bytes}");
    }
}

#[test]
fn fmt_04_a_valid_message_that_is_cut_is_read_only_where_an_option_ends() {
    let whole = hex("42012501 aabb b173 01 61 4d 04 00000000000000000000000000000000 00 ff78");
    assert!(Datagram::parse(&whole).is_ok());
    let good: Vec<usize> = (4..whole.len()).filter(|&end| Datagram::parse(&whole[..end]).is_ok()).collect();
    assert_eq!(good, [6, 8, 10, 29]);
}

#[test]
fn fmt_05_nibble_15_is_a_format_error_but_for_the_marker() {
    let reserved = Some(FormatError::Options(OptionsError::Reserved));
    for nibble in 0..15_u8 {
        for head in [0xF0 | nibble, nibble << 4 | 0xF] {
            let mut bytes = vec![0x40, 1, 0, 1, head];
            bytes.resize(400, 0);
            assert_eq!(error(&bytes), reserved, "{head:02x}");
        }
    }
    for bytes in ["40010001 f100", "40010001 1f00", "41012515 aa f0", "41012516 aa 0f"] {
        assert_eq!(error(&hex(bytes)), reserved, "{bytes}");
    }
}

#[test]
fn fmt_06_deltas_are_exact_at_their_borders() {
    for (number, encoded) in [
        (0, "00"),
        (12, "c0"),
        (13, "d000"),
        (14, "d001"),
        (268, "d0ff"),
        (269, "e00000"),
        (270, "e00001"),
        (65_534, "e0fef1"),
        (65_535, "e0fef2"),
    ] {
        assert_eq!(there_and_back(number, &[]), (hex(encoded), number, Vec::new()));
    }
}

#[test]
fn fmt_06_every_option_number_survives_a_round_trip() {
    for number in 0..=u16::MAX {
        assert_eq!(there_and_back(number, b"x").1, number);
    }
}

#[test]
fn fmt_06_lengths_are_exact_at_their_borders() {
    for (length, head) in [
        (0, "10"),
        (12, "1c"),
        (13, "1d00"),
        (268, "1dff"),
        (269, "1e0000"),
        (300, "1e001f"),
        (65_535, "1efef2"),
        (65_536, "1efef3"),
        (65_804, "1effff"),
    ] {
        let value: Vec<u8> = (0..length).map(|place| (place % 255) as u8).collect();
        let (encoded, number, read) = there_and_back(1, &value);
        assert_eq!((number, read.len()), (1, length));
        assert_eq!(read, value);
        assert_eq!(encoded[..encoded.len() - length], hex(head), "{length}");
    }
}

#[test]
fn fmt_06_an_option_number_above_65535_is_a_format_error() {
    let too_large = Some(FormatError::Options(OptionsError::NumberTooLarge));
    for bytes in [
        "40010001 e0fef3",
        "40010001 e0ffff",
        "40010001 e0fef2 10",
        "40010001 e0fef1 20",
        "40010001 10 e0fef2",
    ] {
        assert_eq!(error(&hex(bytes)), too_large, "{bytes}");
    }
    // Many small steps count like one large one, and the number never wraps.
    let mut bytes = hex("40010001");
    bytes.extend([0xD0, 0xFF].repeat(244));
    assert!(Datagram::parse(&bytes).is_ok());
    bytes.extend([0xD0, 0xFF].repeat(244));
    assert_eq!(error(&bytes), too_large);
}

#[test]
fn fmt_07_ff_is_a_marker_only_where_an_option_could_start() {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    writer.push(OptionNumber(65_000), &[0xFF, 0xFF, 0xFF]);
    let content = Content { code: Code::POST, options: writer.finish(), payload: &[0xFF, 0x00] };
    let bytes = written(&content);
    let read = Datagram::parse(&bytes).expect("valid").content;
    assert_eq!(read, content);
    assert_eq!(read.options.first(OptionNumber(65_000)), Some(&[0xFF, 0xFF, 0xFF][..]));
    assert_eq!(read.payload, [0xFF, 0x00]);
    // Extended deltas and lengths may be 0xFF too.
    let bytes = [hex("40010001 ddffff"), vec![0xFF; 268], hex("ffff")].concat();
    let read = Datagram::parse(&bytes).expect("valid").content;
    assert_eq!((read.options.iter().count(), read.payload), (1, &[0xFF][..]));
}

#[test]
fn fmt_07_a_marker_with_nothing_behind_it_is_a_format_error() {
    let expected = Some(FormatError::Options(OptionsError::EmptyPayload));
    for bytes in ["40010001 ff", "42012501 aabb b173 ff", "52012502 aabb b173 ff"] {
        assert_eq!(error(&hex(bytes)), expected, "{bytes}");
    }
}

#[test]
fn fmt_07_no_marker_is_written_without_a_payload() {
    assert_eq!(written(&Content::bare(Code::CONTENT)), hex("41451234 aa"));
    let owned = OwnedContent::from(Content::bare(Code::CONTENT));
    assert_eq!(written(&owned.as_content()), hex("41451234 aa"));
}

#[test]
fn fmt_08_an_empty_message_with_anything_behind_its_message_id_is_a_format_error() {
    for (first, message_type) in [0x40, 0x50, 0x60, 0x70].into_iter().zip(TYPES) {
        let plain = [first, 0, 0, 5];
        assert_eq!(Datagram::parse(&plain).map(|datagram| datagram.message_type), Ok(message_type));
        for rest in ["aa", "ff", "ff01", "b161", "00", "0000000000"] {
            let bytes = [vec![first, 0, 0, 5], hex(rest)].concat();
            assert_eq!(error(&bytes), Some(FormatError::NotEmpty), "{bytes:02x?}");
        }
        for token_length in 1..=15 {
            let mut bytes = vec![first | token_length, 0, 0, 5];
            assert_eq!(error(&bytes), Some(FormatError::NotEmpty), "{bytes:02x?}");
            bytes.resize(400, 0xAA);
            assert_eq!(error(&bytes), Some(FormatError::NotEmpty), "{bytes:02x?}");
        }
    }
}

#[test]
fn fmt_09_a_format_error_says_type_and_message_id_for_its_rejection() {
    for (first, message_type) in [0x41, 0x51, 0x61, 0x71].into_iter().zip(TYPES) {
        let bytes = [first, 0x45, 0xAB, 0xCD, 0xEE, 0xFF];
        assert_eq!(
            Datagram::parse(&bytes),
            Err(Malformed::Format {
                message_type,
                message_id: 0xABCD,
                code: Code::CONTENT,
                token: Some(&[0xEE]),
                error: FormatError::Options(OptionsError::EmptyPayload),
            })
        );
    }
    assert_eq!(datagram::empty(MessageType::Reset, 0xABCD).to_vec(), hex("7000abcd"));
    assert_eq!(datagram::empty(MessageType::Acknowledgement, 5).to_vec(), hex("60000005"));
    assert_eq!(datagram::empty(MessageType::Confirmable, 5).to_vec(), hex("40000005"));
}

#[test]
fn fmt_09_a_code_of_a_reserved_class_is_neither_request_nor_response() {
    for code in (0..=u8::MAX).map(Code) {
        let bytes = [0x40, code.0, 0, 1];
        assert_eq!(Datagram::parse(&bytes).expect("the format is right").content.code, code);
        assert_eq!(code.is_request(), (1..=31).contains(&code.0), "{code}");
        assert_eq!(code.is_response(), matches!(code.class(), 2 | 4 | 5), "{code}");
        assert_eq!(Code::new(code.class(), code.detail()), code);
    }
}

#[test]
fn fmt_10_repeated_options_keep_their_order() {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    writer.push(OptionNumber::URI_PATH, b"x");
    for item in [b"b", b"a", b"b"] {
        writer.push(OptionNumber::URI_QUERY, item);
    }
    writer.push_uint(OptionNumber::ACCEPT, 0);
    let options = writer.finish();
    assert_eq!(options.as_encoded(), hex("b178 4162 0161 0162 20"));
    let items: Vec<_> = options.values(OptionNumber::URI_QUERY).collect();
    assert_eq!(items, [b"b", b"a", b"b"]);
    assert!(options.iter().is_sorted_by_key(|(number, _)| number));
}

#[test]
fn fmt_10_uints_are_written_in_their_shortest_form() {
    for (value, encoded) in [
        (0, ""),
        (1, "01"),
        (255, "ff"),
        (256, "0100"),
        (65_535, "ffff"),
        (65_536, "010000"),
        (16_777_215, "ffffff"),
        (16_777_216, "01000000"),
        (u32::MAX, "ffffffff"),
    ] {
        assert_eq!(minimal_uint(value, &mut [0; 4]), hex(encoded), "{value}");
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        writer.push_uint(OptionNumber::MAX_AGE, value);
        assert_eq!(writer.finish().first(OptionNumber::MAX_AGE), Some(&hex(encoded)[..]));
    }
}

#[test]
fn fmt_11_leading_zeros_do_not_change_a_uint() {
    for (value, expected) in [
        ("", Some(0)),
        ("00", Some(0)),
        ("00000000", Some(0)),
        ("32", Some(50)),
        ("0032", Some(50)),
        ("00000032", Some(50)),
        ("ffffffff", Some(u32::MAX)),
        ("0000000032", None),
    ] {
        assert_eq!(uint(&hex(value)), expected, "{value}");
    }
    // "Inside its length range": a longer Accept is no Accept.
    assert!(OptionNumber::ACCEPT.allows_length(2) && !OptionNumber::ACCEPT.allows_length(3));
}

#[test]
fn fmt_12_texts_are_bytes() {
    let (composed, decomposed) = ("\u{e9}".as_bytes(), "e\u{301}".as_bytes());
    let values: [&[u8]; 5] = [composed, decomposed, b"Case", b"case", b"\xFF\xFE\x00"];
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    values.iter().for_each(|value| writer.push(OptionNumber::URI_PATH, value));
    let bytes = written(&Content { options: writer.finish(), ..Content::bare(Code::GET) });
    let read = Datagram::parse(&bytes).expect("valid").content.options;
    assert!(read.values(OptionNumber::URI_PATH).eq(values));
}

#[test]
fn k17_malformed_datagrams_of_the_field_are_rejected_with_their_message_id() {
    for (bytes, id) in [
        ("42012501aabbb173ff", 0x2501),
        ("52012502aabbb173ff", 0x2502),
        ("48012507aabb", 0x2507),
        ("41012510aad1", 0x2510),
        ("41012511aae1", 0x2511),
        ("41012512aae100", 0x2512),
        ("41012513aa1d", 0x2513),
        ("41012514aa1e00", 0x2514),
        ("41012515aaf0", 0x2515),
        ("41012516aa0f", 0x2516),
        ("41012517aaedffffffff41", 0x2517),
        ("4f010000", 0),
        ("41012519aabf", 0x2519),
    ] {
        let bytes = hex(bytes);
        let message_id = match Datagram::parse(&bytes) {
            Err(Malformed::Format { message_id, .. }) => Some(message_id),
            Err(Malformed::Ignored) | Ok(_) => None,
        };
        assert_eq!(message_id, Some(id), "{bytes:02x?}");
    }
    for bytes in
        ["", "40", "4001", "400125", "ff", "0101251eaab1730161", "8101251faab1730161", "c1012520aab1730161"]
    {
        assert_eq!(Datagram::parse(&hex(bytes)), Err(Malformed::Ignored), "{bytes}");
    }
}
