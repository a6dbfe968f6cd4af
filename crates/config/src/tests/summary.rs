//! What a start and `check` say.

use super::*;

fn summary(file: &str, overrides: &Overrides) -> Vec<String> {
    loaded(file, &[], overrides).summary()
}

#[test]
fn says_what_the_defaults_come_to() {
    let [listening, forwarding, copies, posts, clients, limited, memory] =
        &summary("", &Overrides::default())[..]
    else {
        panic!("seven lines")
    };
    assert_eq!(listening, "listening on coap://127.0.0.1:5683");
    assert!(forwarding.starts_with("forwarding is open: to local clients only"), "{forwarding}");
    assert_eq!(
        copies,
        "towards origins without a name: 3 of 4 retransmissions fit (number 4 would leave 30s to 45s after the \
         first copy) and a silent origin is answered for with 5.04 after max_wait = 30s"
    );
    assert_eq!(
        posts,
        "towards origins without a name: a POST or PATCH leaves 2 times and stays without an answer for \
         3.6 / 7.7 / 19 % at 10 / 15 / 25 % loss each way; with deduplicates = true, for origins that recognise \
         duplicates, it leaves 4 times and 0.13 / 0.59 / 3.7 %"
    );
    assert_eq!(
        clients,
        "clients get an empty Acknowledgement within 500ms and a separate response up to 3 times in 10s"
    );
    assert_eq!(
        limited,
        "limited to 1000 requests/s (then 4.29) for each client outside of loopback, 32768 under way, 4096 \
         waiting for one origin, 8192 origins and 4096 names (then 5.03)"
    );
    assert!(memory.starts_with("memory is at most "), "{memory}");
    assert!(memory.contains("MiB, whatever strangers send: remembered 289MiB, requests "), "{memory}");
}

#[test]
fn says_who_is_served_by_whom() {
    let lines = summary(EXAMPLE, &Overrides::default());
    assert_eq!(lines[2], "/boiler is served by boiler, coap://10.1.2.3:5683");
    assert!(lines[3].starts_with("towards origins without a name: 3 of 4"));
    assert!(lines[5].starts_with("towards boiler: 2 of 4"));
    let reverse = Overrides { reverse: Some("coap://[fd00::1]".to_owned()), ..Overrides::default() };
    let lines = summary("", &reverse);
    assert!(lines[1].starts_with("forwarding is off: there are routes"));
    assert_eq!(lines[2], "/ is served by reverse, coap://[fd00::1]:5683");
    assert!(lines[3].starts_with("towards reverse: "), "origins without a name are not reached");
}

#[test]
fn says_together_what_holds_for_several_upstreams() {
    let file = "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n\
                [[upstreams]]\nname = \"b\"\nuri = \"coap://b\"\nsource_ports = 1\nqueue = 8\n";
    let lines = summary(file, &Overrides::default());
    assert!(lines[2].starts_with("towards origins without a name, a: "), "{lines:?}");
    let ports = lines.iter().find(|line| line.contains("source_ports")).expect("one port is worth a line");
    assert_eq!(
        ports,
        "towards b: source_ports = 1 carries 265 requests/s to one origin, since a Message ID rests for 247s"
    );
    assert!(lines.iter().any(|line| line.contains("8 to 4096 waiting for one origin")), "{lines:?}");
}

#[test]
fn says_what_a_client_waits_for() {
    let lines = summary("", &set(&["downstream.answer_within=5s", "limits.client_rate=0"]));
    assert!(
        lines.iter().any(|line| line.starts_with("clients get an answer within 5s, an empty")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("limited to any number of requests for")), "{lines:?}");
}
