//! What cannot be used is counted, rejected where it wants to be confirmed, and changes nothing
//! (RFC 7252 §3, §4.2, §4.3, §5.3.2).

use coapway_endpoint::{Counters, Event};
use coapway_message::{Code, Content, Failure, MessageType, datagram};

use crate::hop::{Got, Hop, OTHER, RESPONSE, bytes, empty_ack, failure, ids};

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;
const ACK: MessageType = MessageType::Acknowledgement;
const RST: MessageType = MessageType::Reset;

/// What one datagram brings while a request of ours is under way: how much it is counted, and whether it is
/// rejected.
#[track_caller]
fn check(datagram: &[u8], expected: Counters, rejected: bool) {
    let mut hop = Hop::new();
    let (exchange, sent) = hop.request(true);
    assert_eq!(hop.receive(datagram), Got::Nothing, "{datagram:02x?}");
    assert_eq!(*hop.endpoint.counters(), expected, "{datagram:02x?}");
    let message_id = datagram.get(2..4).unwrap_or_default();
    let reset = if rejected { vec![[&[0x70, 0][..], message_id].concat()] } else { vec![] };
    assert_eq!(hop.sent(), reset, "{datagram:02x?}");
    let acknowledged = |event: &Event| matches!(event, Event::AcknowledgedAgain { .. });
    assert!(hop.events().iter().all(acknowledged), "{datagram:02x?}");
    let (message_id, token) = ids(&sent);
    let answer = hop.receive(&bytes(ACK, message_id, &token, &RESPONSE));
    assert!(matches!(answer, Got::Response(answered, ..) if answered == exchange), "it goes on");
}

#[test]
fn other_versions_and_less_than_a_header_are_ignored() {
    let expected = Counters { ignored: 1, ..Counters::default() };
    for datagram in [&[][..], &[0x40, 1, 0], &[0x00, 1, 0, 3], &[0x80, 1, 0, 3], &[0xC0, 1, 0, 3]] {
        check(datagram, expected, false);
    }
}

#[test]
fn malformed_messages_are_rejected_where_they_are_confirmable() {
    let expected = Counters { malformed: 1, ..Counters::default() };
    for (datagram, rejected) in [
        (&[0x4F, 1, 0, 3][..], true),
        (&[0x5F, 1, 0, 3], false),
        (&[0x6F, 1, 0, 3], false),
        (&[0x7F, 1, 0, 3], false),
        (&[0x40, 1, 0, 3, 0xFF], true),
        (&[0x40, 0, 0, 3, 7], true),
    ] {
        check(datagram, expected, rejected);
    }
}

#[test]
fn codes_without_a_meaning_are_no_requests_and_no_responses() {
    let expected = Counters { malformed: 1, ..Counters::default() };
    for code in [0x20, 0x3F, 0xC0, 0xE0, 0xFF] {
        for (message_type, rejected) in [(CON, true), (NON, false), (ACK, false)] {
            check(&bytes(message_type, 3, b"\xA1", &Content::bare(Code(code))), expected, rejected);
        }
    }
}

#[test]
fn a_reset_with_a_code_resets_nothing() {
    for code in [Code::GET, Code::CONTENT, Code(0xE0)] {
        let mut hop = Hop::new();
        let (_, sent) = hop.request(true);
        hop.receive(&bytes(RST, ids(&sent).0, b"", &Content::bare(code)));
        assert!(hop.events().is_empty() && hop.sent().is_empty());
        assert_eq!(hop.endpoint.counters().malformed, 1);
        hop.receive(&datagram::empty(RST, ids(&sent).0));
        assert_eq!(hop.events().len(), 1);
    }
}

#[test]
fn acknowledgements_and_resets_of_nothing_are_unexpected() {
    let expected = Counters { unexpected: 1, ..Counters::default() };
    for message_type in [ACK, RST] {
        check(&datagram::empty(message_type, 3), expected, false);
    }
    check(&bytes(ACK, 3, b"\xA1", &RESPONSE), expected, false);
    let mut hop = Hop::new();
    let (_, sent) = hop.request(true);
    let (message_id, token) = ids(&sent);
    hop.receive_from(OTHER, &empty_ack(message_id));
    hop.receive_from(OTHER, &bytes(ACK, message_id, &token, &RESPONSE));
    assert_eq!(*hop.endpoint.counters(), Counters { unexpected: 2, ..Counters::default() });
}

#[test]
fn responses_to_nothing_are_unmatched_and_rejected_where_they_are_confirmable() {
    let expected = Counters { unmatched: 1, ..Counters::default() };
    for token in [&b""[..], b"\xA1", b"12345678"] {
        check(&bytes(CON, 3, token, &RESPONSE), expected, true);
        check(&bytes(NON, 3, token, &RESPONSE), expected, false);
    }
}

#[test]
fn a_ping_is_rejected_and_an_empty_message_that_is_none_is_not_answered() {
    check(&datagram::empty(CON, 3), Counters::default(), true);
    check(&datagram::empty(NON, 3), Counters { malformed: 1, ..Counters::default() }, false);
}

#[test]
fn what_comes_in_place_of_a_response_ends_its_exchange() {
    let reserved = |message_type, message_id, token: &[u8]| {
        bytes(message_type, message_id, token, &Content::bare(Code(0xE0)))
    };
    let broken = |message_type, message_id, token: &[u8]| {
        [&bytes(message_type, message_id, token, &RESPONSE)[..], &[0xFF]].concat()
    };
    for unusable in [&reserved as &dyn Fn(_, _, &[u8]) -> Vec<u8>, &broken] {
        for message_type in [CON, NON, ACK] {
            let mut hop = Hop::new();
            let (_, sent) = hop.request(true);
            let (message_id, token) = ids(&sent);
            let other_id = message_id.wrapping_add(7);
            hop.receive(&unusable(ACK, other_id, &token));
            hop.receive(&unusable(message_type, message_id, b"\xA1"));
            assert_eq!(failure(&hop.events()), None, "it belongs to another");
            hop.receive(&unusable(
                message_type,
                if message_type == ACK { message_id } else { other_id },
                &token,
            ));
            let events = hop.events();
            assert!(matches!(failure(&events), Some((Failure::Unusable, _))), "{events:?}");
            assert_eq!(hop.endpoint.outstanding(), 0);
        }
    }
}
