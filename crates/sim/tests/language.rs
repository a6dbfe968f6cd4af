//! What scenario files say when they are wrong, or when something else happens.

use std::path::Path;

use coapway_sim::scenario::Scenario;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse(Path::new("a.scenario"), text).map_err(|error| error.to_string())
}

fn played(text: &str) -> String {
    let scenario = read(text).unwrap_or_else(|error| panic!("{error}"));
    scenario.rehearse(1).0.err().map_or_else(String::new, |error| error.to_string())
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| text.contains(part)), "{text}\nhas not all of {parts:?}");
}

#[test]
fn names_the_line_that_means_nothing() {
    for (text, parts) in [
        ("client sends CON GETT /t", ["a.scenario: line 1", "GETT"]),
        ("\nclient sends CON GET /t max_age=1", ["line 2", "max_age is no option"]),
        ("client sends GET /t", ["line 1", "begins with CON"]),
        ("client sends raw 4", ["line 1", "hexadecimal"]),
        ("nothing for 5", ["line 1", "no unit"]),
        ("after 3s..2s", ["line 1", "ends before it begins"]),
        ("after 3s", ["line 1", "nothing follows"]),
        ("client dances", ["line 1", "neither"]),
        ("client sends CON GET /t block2=1/2/64", ["line 1", "NUMBER/MORE/SIZE"]),
        ("client sends CON GET /t block2=1/0/65", ["line 1", "NUMBER/MORE/SIZE"]),
        ("client sends CON GET /t to=client2", ["line 1", "to=group"]),
        ("client sends CON\nclients unverified", ["line 2", "before the first message"]),
        ("client sends CON GET /t \"x", ["line 1", "without an end"]),
        ("client sends CON\nset upstream.max_wait=5s", ["line 2", "before the first message"]),
        ("set upstream.max_weight=5s", ["line 1", "upstream.max_weight"]),
        ("set upstream.max_wait=5", ["line 1", "upstream.max_wait"]),
    ] {
        let error = read(text).expect_err(text);
        assert_has(&error, &parts);
    }
}

#[test]
fn shows_what_was_expected_and_what_was_seen() {
    let opening =
        "client sends CON GET /t MID=10 token=a1\nproxy sends CON GET /t\norigin sends ACK 2.05 \"22.5\"\n";
    for (line, parts) in [
        (
            "proxy sends ACK 2.05 \"22.4\"",
            [
                "expected  proxy sends ACK 2.05 \"22.4\"",
                "seen      ACK 2.05 \"22.5\" MID=10 token=a1",
                "the payload",
            ],
        ),
        ("proxy sends ACK 2.05 \"22.5\" max-age=1", ["line 4", "seen", "max-age=1 is missing"]),
        ("proxy sends ACK 2.05 \"22.5\" MID=11", ["line 4", "seen", "the Message ID, expected 11"]),
        ("proxy sends ACK 2.05 \"22.5\" token=a2", ["line 4", "seen", "the token, expected a2"]),
        ("proxy sends CON 2.05 \"22.5\"", ["line 4", "seen", "type or code"]),
        ("proxy sends raw 61 45 00 0B ..", ["line 4", "seen", "byte 3 of 61 45 00 0A"]),
        ("after 1s\nproxy sends ACK 2.05 \"22.5\"", ["line 5", "seen", "1.000000 s early"]),
        ("nothing for 1s", ["line 4", "expected  nothing for 1s", "ACK 2.05"]),
        ("", ["line 3", "expected  the end", "ACK 2.05"]),
    ] {
        assert_has(&played(&format!("{opening}{line}")), &parts);
    }
    assert_has(
        &played("client sends CON GET /t MID=10\nproxy sends CON GET /t\nafter 1s\nproxy repeats"),
        &["nothing for origin until 1.002"],
    );
}

#[test]
fn what_must_be_another_one_is_compared_with_the_message_called_so() {
    let text =
        "client sends CON GET /t MID=10 token=a1 as=one\nproxy sends CON GET /t\norigin sends ACK 2.05\n";
    for (line, what) in [
        ("proxy sends ACK 2.05 for=one MID=other", "the Message ID, expected another"),
        ("proxy sends ACK 2.05 for=one token=other", "the token, expected another"),
        ("proxy sends ACK 2.05", ""),
    ] {
        assert_has(&played(&format!("{text}{line}")), &[what]);
    }
    let line = "client sends CON GET /t\nproxy sends CON GET /t token=other";
    assert_has(&played(line), &["no message whose token it could differ from"]);
}

#[test]
fn a_port_is_in_the_name_of_a_peer() {
    let text = "forward anything\nroute none\nclient sends CON GET proxy-uri=coap://10.2.0.2:5700/t MID=10\n";
    assert_eq!(played(&format!("{text}proxy sends CON GET /t to=origin_5700")), "");
}

#[test]
fn checks_watch_scenarios_too() {
    // The puppet never acknowledges and the diagram ends early; what is promised still holds.
    assert_eq!(played("client sends CON GET /t MID=10\nproxy sends CON GET /t"), "");
}

#[test]
fn one_line_may_come_in_any_order() {
    let text = "client sends CON GET /t MID=10 token=a1\nproxy sends CON GET /t\norigin sends CON 2.05\n";
    for line in
        ["proxy sends ACK to=origin ; ACK 2.05 to=client", "proxy sends ACK 2.05 to=client ; ACK to=origin"]
    {
        assert_eq!(played(&format!("{text}{line}")), "");
    }
}

#[test]
fn options_may_be_written_in_any_order_and_by_name() {
    let asked = "client sends CON FETCH /t \"x\" no-response=26 hop-limit=3 block2=0/0/64 accept=60 observe=0 if-none-match if-match=0a token=000102030405060708090a0b0c0d0e0f10111213";
    let journal = read(asked).unwrap_or_else(|error| panic!("{error}")).rehearse(1).1;
    let said = "CON FETCH /t if-match=0a if-none-match observe=0 hop-limit=3 accept=60 block2=0/0/64 no-response=26 \"x\"";
    assert_has(&journal.diagram(), &[said, "token=000102030405060708090a0b0c0d0e0f10111213"]);
}

#[test]
fn what_goes_to_the_old_address_of_a_peer_does_not_reach_it() {
    let text = "client sends CON GET /t MID=10 token=a1\nproxy sends CON GET /t\nclient moves\n\
                origin sends ACK 2.05\n";
    assert_eq!(played(&format!("{text}nothing for 5s")), "");
    // Repeated from the new one it is another request.
    assert_eq!(played(&format!("{text}client repeats\nproxy sends CON GET /t\n")), "");
}

#[test]
fn a_look_up_finds_what_there_is_by_then() {
    let text = "forward anything\nroute none\nname h.example = nobody\nname h.example = origin at 100s after 1s\n\
                client sends CON GET proxy-uri=coap://h.example/t MID=10 token=a1\n\
                proxy sends ACK 5.02 ...\"not-sent\"...\n";
    let text = text.replace("...\"not", "... \"not");
    assert_eq!(
        played(&format!(
            "{text}after 100s\nclient sends CON GET proxy-uri=coap://h.example/t MID=11 token=a2\n\
             after 500ms\nproxy sends ACK\nafter 500ms\nproxy sends CON GET /t uri-host=h.example\n"
        )),
        ""
    );
}
