//! The codec against `coap-lite`, an independent one.
//!
//! On well-formed messages both must agree. What `coap-lite` gets wrong is pinned below: it takes
//! messages that RFC 7252 calls format errors, and does not know the tokens of RFC 8974.

mod verdict;

use coap_lite::Packet;
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use proptest::prelude::*;

use verdict::{Verdict, expected, verdict};

fn theirs(bytes: &[u8]) -> Packet {
    Packet::from_bytes(bytes).expect("valid there too")
}

fn options_of(packet: &Packet) -> Vec<(u16, Vec<u8>)> {
    packet
        .options()
        .flat_map(|(number, values)| values.iter().map(|value| (*number, value.clone())))
        .collect()
}

#[derive(Clone, Debug)]
struct Message {
    message_type: MessageType,
    message_id: u16,
    token: Vec<u8>,
    code: u8,
    options: Vec<(u16, Vec<u8>)>,
    payload: Vec<u8>,
}

impl Message {
    fn encode(&self) -> Vec<u8> {
        let (mut buffer, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut buffer);
        for (number, value) in &self.options {
            writer.push(OptionNumber(*number), value);
        }
        let content = Content { code: Code(self.code), options: writer.finish(), payload: &self.payload };
        datagram::encode(&mut bytes, self.message_type, self.message_id, &self.token, &content);
        bytes
    }
}

/// Lengths and steps of options, those at the borders of their encodings often.
fn extended() -> impl Strategy<Value = u16> {
    prop_oneof![0..=16_u16, 265..=273_u16, 0..=400_u16, Just(12), Just(13), Just(268), Just(269)]
}

fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let step = prop_oneof![8 => extended(), 1 => any::<u16>()];
    let value = extended().prop_flat_map(|length| prop::collection::vec(any::<u8>(), usize::from(length)));
    prop::collection::vec((step, value), 0..6).prop_map(|steps| {
        let mut number = 0_u16;
        steps
            .into_iter()
            .map(|(step, value)| {
                number = number.saturating_add(step);
                (number, value)
            })
            .collect()
    })
}

fn message(token: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Message> {
    let message_type = prop::sample::select(vec![
        MessageType::Confirmable,
        MessageType::NonConfirmable,
        MessageType::Acknowledgement,
        MessageType::Reset,
    ]);
    let payload = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 1..40),
        prop::collection::vec(Just(0xFF_u8), 1..4),
        prop::collection::vec(any::<u8>(), 1000..1400),
    ];
    (message_type, any::<u16>(), token, 1..=u8::MAX, options(), payload).prop_map(
        |(message_type, message_id, token, code, options, payload)| Message {
            message_type,
            message_id,
            token,
            code,
            options,
            payload,
        },
    )
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=8)
}

fn extended_token() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![0..=300_usize, Just(8), Just(9), Just(12), Just(13), Just(268), Just(269)];
    length.prop_flat_map(|length| prop::collection::vec(any::<u8>(), length))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_we_write_reads_the_same_on_both_sides(message in message(token())) {
        let bytes = message.encode();
        let packet = theirs(&bytes);
        prop_assert_eq!(packet.header.get_version(), 1);
        prop_assert_eq!(packet.header.get_type() as u8, message.message_type as u8);
        prop_assert_eq!(packet.header.message_id, message.message_id);
        prop_assert_eq!(u8::from(packet.header.code), message.code);
        prop_assert_eq!(packet.get_token(), &message.token[..]);
        prop_assert_eq!(&packet.payload, &message.payload);
        prop_assert_eq!(options_of(&packet), message.options);
        prop_assert_eq!(packet.to_bytes_unlimited().expect("encodes"), bytes);
    }

    #[test]
    fn what_they_write_reads_the_same_here(message in message(token())) {
        let mut packet = Packet::new();
        packet.header.set_type(theirs(&message.encode()).header.get_type());
        packet.header.message_id = message.message_id;
        packet.header.code = message.code.into();
        packet.set_token(message.token.clone());
        for (number, value) in &message.options {
            packet.add_option((*number).into(), value.clone());
        }
        packet.payload = message.payload.clone();
        let bytes = packet.to_bytes_unlimited().expect("encodes");
        let read = Datagram::parse(&bytes).expect("valid here too");
        prop_assert_eq!((read.message_type, read.message_id), (message.message_type, message.message_id));
        prop_assert_eq!(read.token, &message.token[..]);
        prop_assert_eq!((read.content.code.0, read.content.payload), (message.code, &message.payload[..]));
        let options: Vec<_> = read.content.options.iter().map(|(number, value)| (number.0, value.to_vec())).collect();
        prop_assert_eq!(options, message.options.clone());
        prop_assert_eq!(bytes, message.encode());
    }

    #[test]
    fn messages_with_extended_tokens_survive_a_round_trip(message in message(extended_token())) {
        let bytes = message.encode();
        let read = Datagram::parse(&bytes).expect("valid");
        prop_assert_eq!((read.message_type, read.message_id), (message.message_type, message.message_id));
        prop_assert_eq!(read.token, &message.token[..]);
        prop_assert_eq!((read.content.code.0, read.content.payload), (message.code, &message.payload[..]));
        prop_assert!(read.content.options.iter().map(|(n, v)| (n.0, v.to_vec())).eq(message.options.clone()));
        prop_assert_eq!(expected(&bytes), Verdict::Message);
    }

    #[test]
    fn any_bytes_are_judged_as_the_rfc_says(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(verdict(&bytes), expected(&bytes));
    }

    #[test]
    fn bytes_like_a_message_are_judged_as_the_rfc_says(
        first in prop_oneof![9 => 0x40..=0x7F_u8, 1 => any::<u8>()],
        code in prop_oneof![1 => Just(0), 9 => any::<u8>()],
        rest in prop::collection::vec(prop_oneof![3 => 0..=0x24_u8, 1 => 0xC0..=0xFF_u8, 1 => any::<u8>()], 0..80),
    ) {
        let bytes = [vec![first, code, 0x12, 0x34], rest].concat();
        prop_assert_eq!(verdict(&bytes), expected(&bytes), "{:02x?}", bytes);
    }

    /// A message that was damaged on its way.
    #[test]
    fn damaged_messages_are_judged_as_the_rfc_says(
        message in message(extended_token()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = message.encode();
        for (place, value) in damage {
            *place.get_mut(&mut bytes) = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        prop_assert_eq!(verdict(&bytes), expected(&bytes), "{:02x?}", bytes);
    }

    /// All deltas, lengths and tokens have one encoding, so whatever is read is written the same.
    #[test]
    fn what_is_read_is_written_the_same(
        first in 0x40..=0x7F_u8,
        rest in prop::collection::vec(prop_oneof![3 => 0..=0x24_u8, 1 => 0xC0..=0xFF_u8, 1 => any::<u8>()], 3..80),
    ) {
        let bytes = [vec![first], rest].concat();
        if let Ok(Datagram { message_type, message_id, token, content }) = Datagram::parse(&bytes) {
            let mut again = Vec::new();
            datagram::encode(&mut again, message_type, message_id, token, &content);
            prop_assert_eq!(&again, &bytes);
            let mut options = Vec::new();
            let mut writer = OptionsWriter::new(&mut options);
            content.options.iter().for_each(|(number, value)| writer.push(number, value));
            prop_assert_eq!(writer.finish(), content.options);
        }
    }
}

/// If one of these fails, `coap-lite` was mended and `expected` can say less.
mod errors_of_coap_lite {
    use super::*;

    /// Takes it there; judged differently here.
    fn takes(bytes: &[u8], ours: Verdict) {
        assert!(Packet::from_bytes(bytes).is_ok(), "{bytes:02x?}");
        assert_eq!(verdict(bytes), ours, "{bytes:02x?}");
    }

    #[test]
    fn a_marker_without_payload_is_taken_and_lost() {
        let bytes = [0x40, 0x01, 0x00, 0x01, 0xFF];
        takes(&bytes, Verdict::FormatError);
        assert_eq!(theirs(&bytes).to_bytes().expect("encodes"), bytes[..4]);
    }

    #[test]
    fn other_versions_are_taken() {
        for first in [0x00, 0x80, 0xC0] {
            takes(&[first, 0x01, 0x00, 0x01], Verdict::Ignored);
        }
    }

    #[test]
    fn an_empty_message_may_have_token_options_and_payload() {
        takes(&[0x41, 0x00, 0x00, 0x01, 0xAA], Verdict::FormatError);
        takes(&[0x40, 0x00, 0x00, 0x01, 0xB1, 0x61], Verdict::FormatError);
        takes(&[0x40, 0x00, 0x00, 0x01, 0xFF, 0x61], Verdict::FormatError);
    }

    #[test]
    fn extended_tokens_are_refused() {
        let mut bytes = vec![0x4D, 0x01, 0x00, 0x01, 0x00];
        bytes.resize(5 + 13, 0xAA);
        assert!(Packet::from_bytes(&bytes).is_err());
        assert_eq!(verdict(&bytes), Verdict::Message);
    }

    #[test]
    fn lengths_end_at_65_535() {
        let value = vec![0; 65_804];
        let bytes = [vec![0x40, 0x01, 0x00, 0x01, 0x1E, 0xFF, 0xFF], value].concat();
        assert!(Packet::from_bytes(&bytes).is_err());
        assert_eq!(verdict(&bytes), Verdict::Message);
    }
}
