//! Methods, codes and options against the registries, as an independent crate has them. The number in
//! a name is that of R-MET-….

use coap_numbers::code::{self, Range};
use coap_numbers::option::{self, Criticality, ProxySafety};
use coapway_message::{Code, Method, OptionNumber};

#[test]
fn every_option_number_has_the_bits_the_registry_gives_it() {
    for number in 0..=u16::MAX {
        let ours = OptionNumber(number);
        assert_eq!(ours.is_critical(), option::get_criticality(number) == Criticality::Critical, "{number}");
        match option::get_proxy_safety(number) {
            ProxySafety::Unsafe => assert!(ours.is_unsafe(), "{number}"),
            ProxySafety::SafeToForward { cache_key } => {
                assert!(!ours.is_unsafe(), "{number}");
                assert_eq!(ours.is_no_cache_key(), !cache_key, "{number}");
            }
        }
    }
}

#[test]
fn every_option_we_name_has_its_registered_name() {
    let mut known = 0;
    for number in 0..=u16::MAX {
        if let Some(name) = OptionNumber(number).name() {
            assert_eq!(Some(name), option::to_name(number));
            assert_eq!(OptionNumber::from_name(name), Some(OptionNumber(number)));
            known += 1;
        }
    }
    assert_eq!(known, 24);
}

#[test]
fn lengths_and_repetition_are_those_of_the_definitions() {
    let definitions: [(u16, usize, usize, bool); 24] = [
        (1, 0, 8, true),
        (3, 1, 255, false),
        (4, 1, 8, true),
        (5, 0, 0, false),
        (6, 0, 3, false),
        (7, 0, 2, false),
        (8, 0, 255, true),
        (9, 0, 255, false),
        (11, 0, 255, true),
        (12, 0, 2, false),
        (14, 0, 4, false),
        (15, 0, 255, true),
        (16, 1, 1, false),
        (17, 0, 2, false),
        (20, 0, 255, true),
        (23, 0, 3, false),
        (27, 0, 3, false),
        (28, 0, 4, false),
        (35, 1, 1034, false),
        (39, 1, 255, false),
        (60, 0, 4, false),
        (252, 1, 40, false),
        (258, 0, 1, false),
        (292, 0, 8, true),
    ];
    for (number, shortest, longest, repeatable) in definitions {
        let option = OptionNumber(number);
        assert!((0..1500).all(|n| option.allows_length(n) == (shortest..=longest).contains(&n)), "{option}");
        assert_eq!(option.longest().map(usize::from), Some(longest), "{option}");
        assert_eq!(option.is_repeatable(), repeatable, "{option}");
    }
    // Nothing is known of the others, so everything is allowed.
    for number in [0, 2, 13, 19, 21, 31, 235, 239, 65_000] {
        assert!(OptionNumber(number).allows_length(1500) && OptionNumber(number).is_repeatable());
        assert_eq!(OptionNumber(number).longest(), None);
    }
}

#[test]
fn every_code_is_in_the_range_the_registry_gives_it() {
    for number in 0..=u8::MAX {
        let ours = Code(number);
        let range = code::classify(number);
        assert_eq!(ours.is_request(), range == Range::Request, "{ours}");
        assert_eq!(ours.is_response(), matches!(range, Range::Response(_)), "{ours}");
        assert_eq!(ours.is_success(), number >> 5 == 2);
        let shown = format!("{}.{:02}", number >> 5, number & 31);
        assert_eq!((ours.to_string(), format!("{ours:?}")), (shown.clone(), shown));
    }
}

#[test]
fn met_01_methods_other_than_the_seven_are_unknown() {
    for number in 0..=u8::MAX {
        let method = Method::from_code(Code(number));
        assert_eq!(method.is_some(), (1..=7).contains(&number), "{number}");
        if let Some(method) = method {
            assert_eq!(method.code(), Code(number));
            assert_eq!(Some(method.name()), code::to_name(number));
        }
    }
    assert!(Code::new(0, 31).is_request());
}

#[test]
fn met_02_what_is_safe_and_what_is_idempotent() {
    let table = Method::ALL.map(|method| (method.name(), method.is_safe(), method.is_idempotent()));
    assert_eq!(
        table,
        [
            ("GET", true, true),
            ("POST", false, false),
            ("PUT", false, true),
            ("DELETE", false, true),
            ("FETCH", true, true),
            ("PATCH", false, false),
            ("iPATCH", false, true),
        ]
    );
}

#[test]
fn met_03_get_and_delete_give_a_payload_no_meaning() {
    let without: Vec<_> = Method::ALL.into_iter().filter(|method| !method.has_payload()).collect();
    assert_eq!(without, [Method::Get, Method::Delete]);
}

#[test]
fn met_04_the_codes_of_fetch_and_patch_are_known() {
    for (ours, theirs) in [
        (Code::FETCH, code::FETCH),
        (Code::PATCH, code::PATCH),
        (Code::IPATCH, code::IPATCH),
        (Code::CONFLICT, code::CONFLICT),
        (Code::UNPROCESSABLE_ENTITY, code::UNPROCESSABLE_ENTITY),
    ] {
        assert_eq!(ours.0, theirs);
    }
}
