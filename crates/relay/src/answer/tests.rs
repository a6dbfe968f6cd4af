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
        (Failure::LookUpFailed, Code::BAD_GATEWAY),
        (Failure::LookUpTimedOut, Code::GATEWAY_TIMEOUT),
        (Failure::Unusable, Code::BAD_GATEWAY),
        (Failure::Overloaded, Code::SERVICE_UNAVAILABLE),
        (Failure::TooManyOrigins, Code::SERVICE_UNAVAILABLE),
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
        let content = Answer::from(refusal).write("coapway", &mut scratch);
        assert_eq!(content.options.uint(OptionNumber::MAX_AGE), Some(RETRY_AFTER));
        assert_eq!(content.options.iter().count(), 1);
    }
}

#[test]
fn only_server_errors_say_that_nothing_left() {
    let mut scratch = Vec::new();
    assert_eq!(
        text(&Answer::from(Refusal::TARGET).write("coapway", &mut scratch)),
        "not-sent: target not allowed"
    );
    assert_eq!(
        text(&Answer::from(Refusal::scheme(Scheme::Coaps)).write("coapway", &mut scratch)),
        "not-sent: scheme coaps not supported"
    );
    assert_eq!(
        text(&Answer::from(Refusal::MULTICAST).write("coapway", &mut scratch)),
        "not-sent: multicast is not forwarded"
    );
    assert_eq!(text(&Answer::from(Refusal::METHOD).write("coapway", &mut scratch)), "method not supported");
    assert_eq!(
        text(
            &Answer::from(Refusal::option(OptionNumber(65003), Fault::Unknown))
                .write("coapway", &mut scratch)
        ),
        "option 65003 not supported here"
    );
    assert_eq!(
        text(&Answer::from(Refusal::uri(UriError::Fragment)).write("coapway", &mut scratch)),
        "Proxy-Uri: fragment"
    );
}

#[test]
fn a_reached_hop_limit_carries_our_identifier_alone() {
    let mut scratch = Vec::new();
    let content = Answer::from(Refusal::HOP_LIMIT_REACHED).write("coapway", &mut scratch);
    assert_eq!((content.code, text(&content)), (Code::HOP_LIMIT_REACHED, "coapway".to_owned()));
}

/// Every refusal there is, by kinds of texts.
fn refusals() -> Vec<Refusal> {
    let numbers = [1, 3, 5, 6, 7, 11, 14, 16, 23, 27, 35, 39, 258, 65002].map(OptionNumber);
    let faults = [Fault::Unknown, Fault::Empty, Fault::TooLong, Fault::Repeated, Fault::Misplaced];
    let options = numbers.into_iter().flat_map(|number| faults.map(|fault| Refusal::option(number, fault)));
    let uris = [
        UriError::NotAbsolute,
        UriError::UnknownScheme,
        UriError::Fragment,
        UriError::UserInfo,
        UriError::EmptyHost,
        UriError::ZoneId,
        UriError::PercentEncoding,
        UriError::Port,
        UriError::SegmentTooLong,
        UriError::Syntax,
    ];
    let fixed = Refusal::FIXED.iter().copied().chain([Refusal::HOP_LIMIT_REACHED]);
    fixed.chain(options).chain(uris.map(Refusal::uri)).chain(Scheme::ALL.map(Refusal::scheme)).collect()
}

#[test]
fn each_refusal_has_a_max_age_and_a_short_text_and_nothing_else() {
    let mut scratch = Vec::new();
    for refusal in refusals() {
        let content = Answer::from(refusal).write("coapway", &mut scratch);
        let options: Vec<_> = content.options.iter().map(|(number, _)| number).collect();
        assert_eq!(options, [OptionNumber::MAX_AGE], "{refusal:?}");
        let is_limit = matches!(refusal.code, Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE);
        assert_eq!(content.options.uint(OptionNumber::MAX_AGE) != Some(0), is_limit, "{refusal:?}");
        let text = text(&content);
        assert!(text.is_ascii() && !text.is_empty() && text.len() < 70, "{text}");
    }
}

#[test]
fn the_text_says_which_option_and_why() {
    for (number, fault, expected) in [
        (35, Fault::TooLong, "Proxy-Uri is longer than 1034 bytes"),
        (35, Fault::Empty, "Proxy-Uri is empty"),
        (3, Fault::Repeated, "Uri-Host occurs twice"),
        (5, Fault::TooLong, "If-None-Match has a value"),
        (258, Fault::TooLong, "No-Response is longer than 1 byte"),
        (14, Fault::Misplaced, "Max-Age has no meaning in this request"),
        (65002, Fault::Unknown, "option 65002 not supported here"),
    ] {
        assert_eq!(Text::Option(OptionNumber(number), fault).to_string(), expected);
    }
}

#[test]
fn an_answer_to_an_unverified_address_is_short() {
    let mut scratch = Vec::new();
    let content = Answer::from(Refusal::UNVERIFIED).write("coapway", &mut scratch);
    assert_eq!((content.code, content.options.uint(OptionNumber::MAX_AGE)), (Code::UNAUTHORIZED, Some(0)));
    let (header, token, marker) = (4, 8, 1);
    let length = header + token + content.options.as_encoded().len() + marker + content.payload.len();
    assert!(length < 40, "{length}");
}

#[test]
fn a_proxy_without_identifier_names_nobody() {
    let mut scratch = Vec::new();
    let content = Answer::from(Refusal::HOP_LIMIT_REACHED).write("", &mut scratch);
    assert_eq!((content.code, content.payload), (Code::HOP_LIMIT_REACHED, &b""[..]));
    let content = Answer::from(Refusal::HOP_LIMIT_REACHED).write("edge-7", &mut scratch);
    assert_eq!(content.payload, b"edge-7");
    assert!(Refusal::HOP_LIMIT_REACHED.may_be_loop() && !Refusal::HOP_LIMIT.may_be_loop());
}
