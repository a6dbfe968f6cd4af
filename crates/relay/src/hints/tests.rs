use coapway_message::OwnedContent;

use super::*;

type List<'a> = &'a [(u16, &'a [u8])];

fn content(code: Code, list: List<'_>, payload: &[u8]) -> OwnedContent {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
    Content { code, options: writer.finish(), payload }.into()
}

fn hints() -> Hints {
    Hints::new(RandomState::with_seeds(1, 2, 3, 4), 3)
}

fn client(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// What a request at `seconds` is answered after `response` came in at 0.
fn held_after(response: &OwnedContent, seconds: f64) -> Option<OwnedContent> {
    let mut hints = hints();
    hints.note(1, &response.as_content(), at(0.0));
    hints.held(1, client(1), at(seconds), &mut vec![1, 2, 3]).map(Into::into)
}

//= https://www.rfc-editor.org/rfc/rfc8516#section-3
//= type=test
#[test]
fn a_hint_answers_similar_requests_until_it_is_over() {
    let response = content(Code::TOO_MANY_REQUESTS, &[(14, &[20])], b"slow down");
    let expected = |left| Some(content(Code::TOO_MANY_REQUESTS, &[(14, &[left])], b"slow down"));
    assert_eq!(held_after(&response, 0.0), expected(20));
    assert_eq!(held_after(&response, 0.1), expected(20));
    assert_eq!(held_after(&response, 5.0), expected(15));
    assert_eq!(held_after(&response, 5.001), expected(15));
    assert_eq!(held_after(&response, 19.5), expected(1));
    assert_eq!(held_after(&response, 20.0), None);
}

#[test]
fn only_the_same_key_is_held() {
    let mut hints = hints();
    assert!(hints.is_empty() && hints.held(1, client(1), at(0.0), &mut Vec::new()).is_none());
    hints.note(1, &content(Code::SERVICE_UNAVAILABLE, &[], b"").as_content(), at(0.0));
    assert!(hints.held(2, client(1), at(0.0), &mut Vec::new()).is_none());
    assert!(hints.held(1, client(1), at(0.0), &mut Vec::new()).is_some());
    assert_eq!(*hints.counters(), HintCounters { noted: 1, held: 1, forgotten: 0 });
}

#[test]
fn max_age_is_a_minute_when_absent_and_five_at_most_and_zero_is_no_hint() {
    let busy = |list: List<'_>| content(Code::SERVICE_UNAVAILABLE, list, b"");
    assert_eq!(held_after(&busy(&[]), 0.0), Some(busy(&[(14, &[60])])));
    assert_eq!(held_after(&busy(&[(14, &[0xFF; 4])]), 0.0), Some(busy(&[(14, &[1, 44])])));
    assert_eq!(held_after(&busy(&[(14, &[0xFF; 4])]), 300.0), None);
    for zero in [&[][..], &[0], &[0, 0]] {
        assert_eq!(held_after(&busy(&[(14, zero)]), 0.0), None);
    }
}

#[test]
fn what_is_no_hint_is_neither_kept_nor_counted() {
    let busy = |list: List<'_>| content(Code::SERVICE_UNAVAILABLE, list, b"");
    let none = Hints::new(RandomState::with_seeds(1, 2, 3, 4), 0);
    for (mut hints, response) in
        [(hints(), busy(&[(14, &[0])])), (hints(), content(Code::CONTENT, &[], b"")), (none, busy(&[]))]
    {
        hints.note(1, &response.as_content(), at(0.0));
        assert!(hints.is_empty());
        assert_eq!(*hints.counters(), HintCounters::default());
        assert!(hints.held(1, client(1), at(0.0), &mut Vec::new()).is_none());
    }
    let mut hints = hints();
    hints.note(1, &busy(&[]).as_content(), at(0.0));
    assert!(!hints.is_empty());
}

#[test]
fn other_codes_say_nothing() {
    for byte in 0..=u8::MAX {
        let is_hint = matches!(Code(byte), Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE);
        assert_eq!(held_after(&content(Code(byte), &[], b""), 0.0).is_some(), is_hint);
    }
}

#[test]
fn only_what_means_something_by_itself_is_repeated() {
    let long = [b'x'; 257];
    let accented = format!("{}é", "x".repeat(255));
    for (list, payload, kept, kept_payload) in [
        (&[(4, &b"etag"[..]), (12, &[50]), (60, &[9])][..], &b"{}"[..], &[(12, &[50][..])][..], &b"{}"[..]),
        (&[(12, &[0xFF, 0xFE])], b"x", &[(12, &[0xFF, 0xFE])], b"x"),
        (&[(12, &[60])], &long, &[], b""),
        (&[], &long, &[], &long[..256]),
        (&[], accented.as_bytes(), &[], &long[..255]),
        (&[], &[0xFF; 257], &[], b""),
        (&[], &[0xFF; 256], &[], &[0xFF; 256]),
        (&[(12, &[50]), (23, &[0x0E])], b"part", &[], b""),
        (&[(9, b"")], b"cipher", &[], b""),
        (&[(65001, b"")], b"text", &[], b""),
    ] as [(List<'_>, &[u8], List<'_>, &[u8]); 10]
    {
        let held = held_after(&content(Code::SERVICE_UNAVAILABLE, list, payload), 0.0);
        let list: Vec<_> = kept.iter().copied().chain([(14, &[60][..])]).collect();
        assert_eq!(held, Some(content(Code::SERVICE_UNAVAILABLE, &list, kept_payload)), "{payload:?}");
    }
}

#[test]
fn a_newer_hint_takes_the_place_of_an_older_one() {
    let mut hints = hints();
    hints.note(1, &content(Code::SERVICE_UNAVAILABLE, &[(14, &[5])], b"").as_content(), at(0.0));
    hints.note(1, &content(Code::TOO_MANY_REQUESTS, &[(14, &[9])], b"").as_content(), at(1.0));
    let held = hints.held(1, client(1), at(6.0), &mut Vec::new()).map(OwnedContent::from);
    assert_eq!(held, Some(content(Code::TOO_MANY_REQUESTS, &[(14, &[4])], b"")));
    assert_eq!((hints.len(), hints.order.len()), (1, 1));
}

#[test]
fn the_oldest_is_forgotten_when_there_are_too_many() {
    let mut hints = hints();
    for key in 0..5 {
        hints.note(key, &content(Code::SERVICE_UNAVAILABLE, &[], b"").as_content(), at(0.0));
    }
    let held: Vec<_> =
        (0..5).map(|key| hints.held(key, client(1), at(1.0), &mut Vec::new()).is_some()).collect();
    assert_eq!(held, [false, false, true, true, true]);
    assert_eq!((hints.len(), hints.order.len(), hints.counters().forgotten), (3, 3, 2));
}

#[test]
fn hints_that_are_over_are_forgotten_without_being_counted() {
    let mut hints = hints();
    for second in 0..100 {
        let response = content(Code::SERVICE_UNAVAILABLE, &[(14, &[1])], b"");
        hints.note(second, &response.as_content(), at(second as f64));
    }
    assert_eq!((hints.len(), hints.order.len(), hints.counters().forgotten), (2, 2, 0));
}

/// When each of 1000 clients may ask, in seconds. All of them come at 20 s, when the origin's time is over,
/// and then when they are told; `lifted` says whether the first was answered well.
fn returns(lifted: bool) -> Vec<u32> {
    let mut hints = hints();
    hints.note(1, &content(Code::TOO_MANY_REQUESTS, &[(14, &[20])], b"").as_content(), at(0.0));
    let told = |hints: &mut Hints, port, second: u32| {
        let mut scratch = Vec::new();
        let answer = hints.held(1, client(port), at(second.into()), &mut scratch)?;
        answer.options.uint(OptionNumber::MAX_AGE)
    };
    let mut times = Vec::new();
    for port in 0..1000 {
        let mut time = 20;
        while let Some(wait) = told(&mut hints, port, time) {
            assert!(wait > 0);
            time += wait;
        }
        times.push(time);
        if lifted {
            hints.lift(1);
        }
    }
    times
}

#[test]
fn clients_that_were_told_one_time_do_not_reach_the_origin_at_once() {
    let returns = returns(false);
    let at_once = returns.iter().filter(|&&time| time == 20).count();
    assert_eq!(at_once, 1, "a probe");
    for second in 21..=30 {
        let then = returns.iter().filter(|&&time| time == second).count();
        assert!((60..140).contains(&then), "{then} at {second} s");
    }
}

#[test]
fn once_the_probe_fared_well_all_may_ask() {
    assert!(returns(true).iter().all(|&time| time == 20));
}

#[test]
fn a_probe_that_is_told_to_wait_begins_a_hint_anew() {
    let mut hints = hints();
    let busy = content(Code::SERVICE_UNAVAILABLE, &[(14, &[20])], b"");
    hints.note(1, &busy.as_content(), at(0.0));
    assert!(hints.held(1, client(1), at(20.0), &mut Vec::new()).is_none() && hints.has_probes());
    hints.note(1, &busy.as_content(), at(20.5));
    assert!(!hints.has_probes());
    let held = hints.held(1, client(2), at(21.0), &mut Vec::new()).map(OwnedContent::from);
    assert_eq!(held, Some(content(Code::SERVICE_UNAVAILABLE, &[(14, &[20])], b"")));
    hints.lift(1);
    assert!(hints.held(1, client(2), at(21.0), &mut Vec::new()).is_some(), "no probe was let through");
}

#[test]
fn nobody_is_held_for_longer_than_the_longest_time() {
    let mut hints = hints();
    hints.note(1, &content(Code::SERVICE_UNAVAILABLE, &[(14, &[1, 24])], b"").as_content(), at(0.0));
    assert!(hints.held(1, client(1), at(280.0), &mut Vec::new()).is_none(), "the probe");
    let held = (2..100).filter(|&port| hints.held(1, client(port), at(280.0), &mut Vec::new()).is_some());
    assert!(held.count() > 50);
    assert!((2..100).all(|port| hints.held(1, client(port), at(300.0), &mut Vec::new()).is_none()));
}

#[test]
fn similar_is_the_same_method_and_resource_at_the_same_origin() {
    let (hints, upstream) = (hints(), UpstreamId(1));
    let origin = |last| Origin::Address(([10, 0, 0, last], 5683).into());
    let key_at =
        |origin, options, code| hints.key(upstream, origin, &content(code, options, b"").as_content());
    let key = |options, code| key_at(origin(1), options, code);
    let one = key(&[(11, b"a"), (15, b"q")], Code::GET);
    assert!(one.is_some());
    assert_eq!(key(&[(4, b"etag"), (11, b"a"), (15, b"q"), (17, &[50])], Code::GET), one);
    assert_ne!(key(&[(11, b"a"), (15, b"q")], Code::PUT), one);
    assert_ne!(key(&[(11, b"a")], Code::GET), one);
    assert_ne!(key_at(origin(2), &[(11, b"a"), (15, b"q")], Code::GET), one);
    assert_ne!(key_at(Origin::Named(5683), &[(11, b"a"), (15, b"q")], Code::GET), one);
    assert_eq!(key(&[(9, b""), (11, b"a"), (15, b"q")], Code::POST), None, "what is asked is hidden");
}
