//! What a reload says of what it changes.

use super::*;

fn changes(old: &str, new: &str) -> Vec<String> {
    let [old, new] = [old, new].map(|file| loaded(file, &[], &Overrides::default()));
    old.difference(&new).iter().map(ToString::to_string).collect()
}

const NAMED: &str = "[[upstreams]]\nname = \"boiler\"\nuri = \"coap://10.1.2.3\"\n";
const ROUTED: &str = "[[routes]]\npath = \"/boiler\"\nupstream = \"boiler\"\n";

#[test]
fn the_same_values_are_no_change_wherever_they_stand() {
    assert_eq!(changes(EXAMPLE, EXAMPLE), [""; 0]);
    assert_eq!(changes(EXAMPLE, &format!("\n\n{EXAMPLE}")), [""; 0]);
    assert_eq!(changes("", "[upstream]\nmax_wait = \"30s\"\n"), [""; 0]);
}

#[test]
fn a_value_is_told_with_what_it_was_and_where_it_stands() {
    let new = "drain_timeout = \"5s\"\n[upstream]\nmax_wait = \"20s\"\nprobing_rate = \"off\"\n";
    assert_eq!(
        changes("", new),
        [
            "drain_timeout: 30s → 5s (coapway.toml:1)",
            "upstream.max_wait: 30s → 20s (coapway.toml:3)",
            "upstream.probing_rate: 1.0 → off (coapway.toml:4)",
        ]
    );
    assert_eq!(changes(new, "")[0], "drain_timeout: 5s → 30s (default)");
}

#[test]
fn listeners_come_go_and_move() {
    let [one, two] = [5683, 5684].map(|port| format!("[[listen]]\nuri = \"coap://127.0.0.1:{port}\"\n"));
    let both = format!("{one}{two}");
    assert_eq!(
        changes(&one, &two),
        ["listen: coap://127.0.0.1:5683 → coap://127.0.0.1:5684 (coapway.toml:2)"]
    );
    assert_eq!(changes(&one, &both), ["listen: new, coap://127.0.0.1:5684 (coapway.toml:4)"]);
    assert_eq!(changes(&both, &one), ["listen: gone, was coap://127.0.0.1:5684 (coapway.toml:4)"]);
}

#[test]
fn upstreams_are_known_by_name_and_say_what_is_their_own() {
    let two =
        format!("{NAMED}ack_timeout = \"4s\"\n[[upstreams]]\nname = \"b\"\nuri = \"coap://b\"\n{ROUTED}");
    assert_eq!(
        changes(NAMED, &two),
        [
            "upstreams.boiler.ack_timeout: 2s → 4s (coapway.toml:4)",
            "upstreams.b.uri: new, coap://b:5683 (coapway.toml:7)",
            "routes./boiler: new, boiler (coapway.toml:10)",
        ]
    );
    assert_eq!(changes(&two, NAMED)[0], "upstreams.boiler.ack_timeout: 4s → 2s (default)");
    let usual = format!("[upstream]\nmax_wait = \"9s\"\n{NAMED}");
    assert_eq!(changes(NAMED, &usual), ["upstream.max_wait: 30s → 9s (coapway.toml:2)"]);
    let moved = NAMED.replace("10.1.2.3", "10.1.2.4");
    let uri = "upstreams.boiler.uri: coap://10.1.2.3:5683 → coap://10.1.2.4:5683 (coapway.toml:3)";
    assert_eq!(changes(NAMED, &moved), [uri]);
}

#[test]
fn routes_are_known_by_host_and_path() {
    let old = format!("{NAMED}{ROUTED}");
    let new = format!("{NAMED}{ROUTED}strip = false\n");
    assert_eq!(changes(&old, &new), ["routes./boiler: boiler → boiler, strip = false (coapway.toml:6)"]);
    let hosted = format!("{NAMED}[[routes]]\nhost = \"b.example\"\nupstream = \"boiler\"\n");
    assert_eq!(
        changes(&old, &hosted),
        [
            "routes.b.example/: new, boiler (coapway.toml:6)",
            "routes./boiler: gone, was boiler (coapway.toml:6)",
        ]
    );
}
