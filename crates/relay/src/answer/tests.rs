use super::*;

fn text(content: &Content<'_>) -> String {
    String::from_utf8(content.payload.to_vec()).expect("texts are ASCII")
}

#[test]
fn a_failure_has_its_code_and_begins_with_the_evidence() {
    let mut scratch = Vec::new();
    for (failure, code) in [
        (Failure::TimedOut, Code::GATEWAY_TIMEOUT),
        (Failure::Reset, Code::BAD_GATEWAY),
        (Failure::Unreachable, Code::BAD_GATEWAY),
        (Failure::NotFound, Code::BAD_GATEWAY),
        (Failure::Unusable, Code::BAD_GATEWAY),
        (Failure::Overloaded, Code::SERVICE_UNAVAILABLE),
        (Failure::TooLarge, Code::REQUEST_ENTITY_TOO_LARGE),
    ] {
        for evidence in [Evidence::NotSent, Evidence::NotExecuted, Evidence::OutcomeUnknown] {
            let content = Answer::for_failure(failure, evidence).write("coapway", &mut scratch);
            assert_eq!(content.code, code, "{failure:?}");
            let text = text(&content);
            assert!(text.starts_with(&format!("{}: ", evidence.name())), "{text}");
            assert!(text.is_ascii() && text.len() < 60, "{text}");
        }
    }
}

#[test]
fn max_age_is_explicit_and_zero_where_no_limit_of_ours_was_met() {
    let mut scratch = Vec::new();
    let content = Answer::for_failure(Failure::TimedOut, Evidence::NotSent).write("coapway", &mut scratch);
    assert_eq!(content.options.as_encoded(), [0xD0, 0x01]);
    for refusal in [Refusal::OVERLOADED, Refusal::DRAINING, Refusal::TOO_FAST] {
        let content = refusal.write("coapway", &mut scratch);
        assert_eq!(content.options.uint(OptionNumber::MAX_AGE), Some(RETRY_AFTER));
        assert_eq!(content.options.iter().count(), 1);
    }
}

#[test]
fn only_server_errors_say_that_nothing_left() {
    let mut scratch = Vec::new();
    assert_eq!(text(&Refusal::TARGET.write("coapway", &mut scratch)), "not-sent: target not allowed");
    assert_eq!(
        text(&Refusal::scheme(Scheme::Coaps).write("coapway", &mut scratch)),
        "not-sent: scheme coaps not supported"
    );
    assert_eq!(
        text(&Refusal::MULTICAST.write("coapway", &mut scratch)),
        "not-sent: multicast is not forwarded"
    );
    assert_eq!(text(&Refusal::METHOD.write("coapway", &mut scratch)), "method not supported");
    assert_eq!(
        text(&Refusal::option(OptionNumber(65003)).write("coapway", &mut scratch)),
        "option 65003 not supported here"
    );
    assert_eq!(text(&Refusal::uri(UriError::Fragment).write("coapway", &mut scratch)), "Proxy-Uri: fragment");
}

#[test]
fn a_reached_hop_limit_carries_our_identifier_alone() {
    let mut scratch = Vec::new();
    let content = Refusal::HOP_LIMIT_REACHED.write("coapway", &mut scratch);
    assert_eq!((content.code, text(&content)), (Code::HOP_LIMIT_REACHED, "coapway".to_owned()));
}
