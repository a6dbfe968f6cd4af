use proptest::prelude::*;

use super::*;

#[test]
fn refuses_what_the_format_forbids() {
    for (bytes, error) in [
        (&[0xF1, 0][..], OptionsError::Reserved),
        (&[0x1F, 0], OptionsError::Reserved),
        (&[0xB9, 1, 2, 3, 4], OptionsError::Truncated),
        (&[0xD0], OptionsError::Truncated),
        (&[0xE0, 1], OptionsError::Truncated),
        (&[0xFF], OptionsError::EmptyPayload),
        (&[0xE0, 0xFF, 0xFF], OptionsError::NumberTooLarge),
        (&[0xE0, 0xFE, 0xF2, 0x10], OptionsError::NumberTooLarge),
    ] {
        assert_eq!(Options::parse(bytes), Err(error), "{bytes:02x?}");
    }
}

#[test]
fn takes_the_marker_only_where_an_option_could_start() {
    let (options, payload) = Options::parse(&[0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0]).expect("valid");
    assert_eq!(options.first(OptionNumber(1)), Some(&[0xFF, 0xFF, 0xFF][..]));
    assert_eq!(payload, [0xFF, 0]);
}

#[test]
fn uints_take_leading_zeros_and_are_written_short() {
    assert_eq!((uint(&[]), uint(&[0, 0x32]), uint(&[1; 5])), (Some(0), Some(0x32), None));
    let mut buffer = [0; 4];
    assert_eq!(minimal_uint(0, &mut buffer), []);
    assert_eq!(minimal_uint(256, &mut buffer), [1, 0]);
}

#[test]
fn a_uint_is_found_by_its_number() {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    writer.push_uint(OptionNumber::CONTENT_FORMAT, 0);
    writer.push_uint(OptionNumber::MAX_AGE, 300);
    writer.push(OptionNumber::SIZE2, &[1; 5]);
    let options = writer.finish();
    let value = |number| options.uint(number);
    assert_eq!(
        (value(OptionNumber::CONTENT_FORMAT), value(OptionNumber::MAX_AGE), value(OptionNumber::SIZE2)),
        (Some(0), Some(300), None)
    );
    assert_eq!(value(OptionNumber::ACCEPT), None);
    assert!(!options.is_empty() && Options::NONE.is_empty());
}

proptest! {
    #[test]
    fn lists_survive_a_round_trip(
        mut list in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..400)), 0..12),
        payload in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        list.sort_by_key(|(number, _)| *number);
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        for (number, value) in &list {
            writer.push(OptionNumber(*number), value);
        }
        if !payload.is_empty() {
            buffer.push(0xFF);
            buffer.extend_from_slice(&payload);
        }
        let (options, rest) = Options::parse(&buffer).expect("what we write is valid");
        prop_assert_eq!(rest, payload);
        let read: Vec<_> = options.iter().map(|(n, v)| (n.0, v.to_vec())).collect();
        prop_assert_eq!(read, list);
    }

    #[test]
    fn parts_are_written_as_one_by_one(
        before in 0_u16..12,
        number in 12_u16..30,
        parts in proptest::collection::vec("[a-z]{0,14}", 1..5),
    ) {
        let (mut together, mut apart) = (vec![7], vec![7]);
        let text: String = parts.iter().map(|part| format!("/{part}")).collect();
        let heads: Vec<u8> = text.match_indices('/').map(|(place, _)| place as u8).collect();
        let mut writer = OptionsWriter::new(&mut together);
        writer.push(OptionNumber(before), b"x");
        writer.push_parts(OptionNumber(number), text.as_bytes(), &heads);
        writer.push(OptionNumber(number + 1), b"y");
        let mut writer = OptionsWriter::new(&mut apart);
        writer.push(OptionNumber(before), b"x");
        parts.iter().for_each(|part| writer.push(OptionNumber(number), part.as_bytes()));
        writer.push(OptionNumber(number + 1), b"y");
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn any_bytes_are_a_list_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok((options, payload)) = Options::parse(&bytes) {
            let marker = usize::from(!payload.is_empty());
            prop_assert_eq!(options.as_encoded().len() + marker + payload.len(), bytes.len());
            prop_assert!(options.iter().is_sorted_by_key(|(number, _)| number));
        }
    }
}
