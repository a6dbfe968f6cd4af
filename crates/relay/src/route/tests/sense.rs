//! Any request at all.

use proptest::prelude::*;

use super::*;

/// Options that decide where a request goes, among others.
fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let value = |values: &'static [&'static [u8]]| prop::sample::select(values).prop_map(<[u8]>::to_vec);
    let uri = value(&[
        b"coap://h/a%2fb/../c?d",
        b"coap://10.0.0.1",
        b"coap://h?",
        b"coap://h/%2e%2e/x",
        b"coap://H:7000//",
    ]);
    let option = prop_oneof![
        2 => (Just(35), uri),
        2 => (Just(39), value(&[b"coap", b"COAP", b"coaps"])),
        4 => (Just(3), value(&[b"h", b"virtual", b"10.0.0.1", b"[::1]", b"proxy"])),
        2 => (Just(7), value(&[&[0x16, 0x33], &[]])),
        9 => (Just(11), value(&[b"boiler", b"deep", b"kept", b"", b"x/y", b"\xFF", b"."])),
        3 => (Just(15), value(&[b"q", b"", b"a&b"])),
        1 => (Just(16), value(&[&[9], &[1], &[0]])),
        3 => (prop::sample::select(&[1u16, 4, 6, 9, 12, 17, 23, 27, 60, 258, 65000, 65001][..]), value(&[b"", b"1"])),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)),
    ];
    prop::collection::vec(option, 0..8).prop_map(|mut list| {
        list.sort_by_key(|(number, _)| *number);
        list
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_request_is_refused_or_makes_sense_at_the_origin(code in 1u8..9, list in options(), forwards: bool) {
        let forward = if forwards { Forward::Open } else { Forward::Off };
        let parameters = Parameters { forward, ..reverse_only() };
        let borrowed: Vec<_> = list.iter().map(|(number, value)| (*number, &value[..])).collect();
        let content = content(Code(code), &borrowed);
        let mut scratch = Vec::new();
        let decision = decide(&parameters, CLIENT, &content.as_content(), &mut scratch);
        let Ok(Decision::Forward(plan)) = decision else { return Ok(()) };

        let (options, rest) = Options::parse(plan.content.options.as_encoded()).expect("what we write is valid");
        prop_assert!(rest.is_empty());
        prop_assert!(options.iter().is_sorted_by_key(|(number, _)| number));
        let asked = content.as_content().options;
        let is_target = |n: OptionNumber| matches!(n.0, 3 | 6 | 7 | 11 | 15 | 16 | 35 | 39 | 258);
        prop_assert!(
            options.iter().filter(|(n, _)| !is_target(*n)).eq(asked.iter().filter(|(n, _)| !is_target(*n)))
        );
        for number in [6, 7, 35, 39, 258] {
            prop_assert_eq!(options.first(OptionNumber(number)), None);
        }
        prop_assert!(!options.values(OptionNumber::URI_PATH).any(|segment| matches!(segment, b"." | b"..")));

        let host = match &plan.destination {
            Destination::Address(_) => None,
            Destination::Name { host, .. } => Some(host.as_bytes()),
        };
        prop_assert!(options.values(OptionNumber::URI_HOST).eq(host));
        let values = |options: Options<'_>, number| options.values(number).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (path, query) = match asked.first(OptionNumber::PROXY_URI) {
            Some(uri) => {
                let uri = Uri::parse(std::str::from_utf8(uri).expect("admitted")).expect("admitted");
                (uri.path_segments().map(Into::into).collect(), uri.query_items().map(Into::into).collect())
            }
            None => (values(asked, OptionNumber::URI_PATH), values(asked, OptionNumber::URI_QUERY)),
        };
        prop_assert_eq!(values(options, OptionNumber::URI_QUERY), query);
        let seen = values(options, OptionNumber::URI_PATH);
        prop_assert!(path.ends_with(&seen) && (plan.route.is_some() || seen == path));
    }

    #[test]
    fn any_parsed_bytes_are_decided(bytes in prop::collection::vec(any::<u8>(), 0..60), code: u8) {
        if let Ok((options, payload)) = Options::parse(&bytes) {
            let content = Content { code: Code(code), options, payload };
            let _ = decide(&reverse_only(), CLIENT, &content, &mut Vec::new());
            let _ = NoResponse::of(&content);
            let parameters = reverse_only();
            let route = parameters.routes.first();
            let _ = crate::forward::relay_response(&parameters, route, &content, &mut Vec::new());
            let _ = crate::forward::with_request_tag(&content, b"tag", &mut Vec::new());
            let mut hints = crate::Hints::new(ahash::RandomState::with_seeds(1, 2, 3, 4), 1);
            hints.note(0, &content, coapway_time::Instant::ZERO);
            let _ = hints.held(0, ([127, 0, 0, 1], 1).into(), coapway_time::Instant::ZERO, &mut Vec::new());
        }
    }

    #[test]
    fn any_request_for_what_we_offer_is_answered_here_or_refused(code in 1u8..9, mut list in options()) {
        list.retain(|(number, _)| !matches!(number, 11 | 35));
        list.extend([(11, b".well-known".to_vec()), (11, b"core".to_vec())]);
        list.sort_by_key(|(number, _)| *number);
        let parameters = parameters(Forward::Off, vec![route(None, &["boiler"], 1, true)]);
        let borrowed: Vec<_> = list.iter().map(|(number, value)| (*number, &value[..])).collect();
        let content = content(Code(code), &borrowed);
        let mut scratch = Vec::new();
        match decide(&parameters, CLIENT, &content.as_content(), &mut scratch) {
            Ok(Decision::Local(answer)) => {
                prop_assert_eq!(code, 1);
                prop_assert!(answer.code.is_success());
            }
            Ok(Decision::Forward(plan)) => prop_assert!(false, "{:?}", plan),
            Err(refusal) => prop_assert!(refusal.code.class() >= 4),
        }
    }
}
