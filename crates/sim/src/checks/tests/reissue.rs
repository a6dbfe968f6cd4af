//! What a record must not tell is found.

use coapway_endpoint::{Copy, Local, Peer, Trace};
use coapway_message::{Evidence, Token};
use coapway_proxy::{Record, SocketRole};

use super::*;

/// One exchange: its bytes, when its copies left, and what came back after them.
struct Exchange<'e> {
    bytes: &'e [u8],
    copies: &'e [u64],
    reply: &'e [u8],
}

fn trace(exchange: &Exchange<'_>) -> Trace {
    let local = Local { socket: SocketRole::Upstream { ipv6: false, number: 0 }.socket(), address: None };
    let message_id = u16::from_be_bytes([exchange.bytes[2], exchange.bytes[3]]);
    let copies = exchange.copies.iter().map(|&millis| Copy::new(at(millis), Duration::ZERO, message_id));
    Trace {
        peer: Peer { local, remote: ORIGIN },
        token: Token::new(&exchange.bytes[4..12]),
        confirmable: true,
        copies: copies.collect(),
        first_ack: None,
        first_ack_id: None,
        acks: 0,
        answer: None,
        bytes: 0,
    }
}

fn told(exchanges: &[Exchange<'_>], evidence: Option<Evidence>) -> String {
    let mut checks = checks();
    for exchange in exchanges {
        for &millis in exchange.copies {
            checks.proxy_sent(UPSTREAM, ORIGIN, exchange.bytes, at(millis));
        }
        checks.proxy_received(
            ORIGIN,
            UPSTREAM,
            exchange.reply,
            at(exchange.copies.last().map_or(0, |at| at + 1)),
        );
    }
    let record = Record {
        id: 1,
        answered: at(30_000),
        client: CLIENT,
        method: Code::GET,
        confirmable: true,
        client_token: Token::new(&[0xA1]),
        client_message_id: 10,
        exchanges: exchanges.iter().map(trace).collect(),
        window: 1,
        code: Code::BAD_GATEWAY,
        evidence,
        ..Record::blank()
    };
    checks.recorded(&record, at(30_000));
    found(&checks)
}

/// A first exchange with this reply and a second one without.
fn twice(first: &[u8], second: &[u8], reply: &[u8]) -> String {
    told(
        &[
            Exchange { bytes: first, copies: &[0], reply },
            Exchange { bytes: second, copies: &[9_000], reply: &[] },
        ],
        None,
    )
}

fn with(mut bytes: Vec<u8>, option: &[u8]) -> Vec<u8> {
    bytes.extend_from_slice(option);
    bytes
}

#[test]
fn a_get_may_be_issued_anew_once() {
    let (first, second, third) = (request(true, 1, 1, 1), request(true, 1, 2, 2), request(true, 1, 3, 3));
    assert_eq!(twice(&first, &second, &[]), "");
    let of = |bytes, copies| Exchange { bytes, copies, reply: &[] };
    let thrice = told(&[of(&first, &[0]), of(&second, &[9_000]), of(&third, &[18_000])], None);
    assert_found(&thrice, "record 1 has 3 attempts");
}

#[test]
fn what_must_not_be_issued_anew_is_found() {
    let pair = |code, option: &[u8]| {
        [(1, 1), (2, 2)].map(|(id, token)| with(request(true, code, id, token), option))
    };
    // Each as it is sent: If-Match, If-None-Match, Observe, OSCORE, Block1.
    for (code, option) in
        [(2, &[][..]), (5 + 1, &[]), (3, &[0x10]), (3, &[0x50]), (1, &[0x60]), (5, &[0x90]), (3, &[0xD0, 14])]
    {
        let [first, second] = pair(code, option);
        assert_found(&twice(&first, &second, &[]), "which may execute it twice");
        // Refused at its only copy, it was not executed.
        assert_eq!(twice(&first, &second, &[0x70, 0, 0, 1]), "");
    }
}

#[test]
fn issuing_anew_after_an_acknowledgement_is_found() {
    let found = twice(&request(true, 1, 1, 1), &request(true, 1, 2, 2), &[0x60, 0, 0, 1]);
    assert_found(&found, "after an Acknowledgement");
}

#[test]
fn evidence_that_says_too_much_is_found() {
    let get = request(true, 1, 1, 1);
    let after = |copies, reply, evidence| told(&[Exchange { bytes: &get, copies, reply }], Some(evidence));
    let reset: &[u8] = &[0x70, 0, 0, 1];
    assert_found(&after(&[0], &[], Evidence::NotSent), "says not-sent");
    assert_found(&after(&[0], &[], Evidence::NotExecuted), "says not-executed");
    assert_found(&after(&[0, 3_000], reset, Evidence::NotExecuted), "says not-executed");
    assert_eq!(after(&[0], reset, Evidence::NotExecuted), "");
    assert_eq!(after(&[0, 3_000], &[], Evidence::OutcomeUnknown), "");
    assert_eq!(told(&[], Some(Evidence::NotSent)), "");
}
