//! What `check --dump` prints.

use super::*;

#[test]
fn shows_the_times_of_the_rfc() {
    let times_in = |dump: &str, name: &str| {
        ["MAX_TRANSMIT_SPAN", "MAX_TRANSMIT_WAIT", "MAX_RTT", "EXCHANGE_LIFETIME", "NON_LIFETIME"].map(
            |time| line(dump, &format!("{name}.{time}")).split(' ').next().unwrap_or_default().to_owned(),
        )
    };
    let dump = loaded("", &[], &Overrides::default()).dump();
    let times = |name: &str| times_in(&dump, name);
    assert_eq!(times("upstream"), ["45s", "93s", "202s", "247s", "145s"]);
    assert_eq!(times("downstream"), ["3.6s", "8.4s", "201s", "204.6s", "103.6s"]);
    assert_eq!(times("protocol"), times("upstream"));
    // They follow what is set.
    let like_downstream =
        ["upstream.ack_timeout=1s", "upstream.ack_random_factor=1.2", "upstream.max_retransmit=2"];
    let dump = loaded("", &[], &set(&like_downstream)).dump();
    assert_eq!(times_in(&dump, "upstream"), times("downstream"));
    assert_eq!(times_in(&dump, "protocol"), times("protocol"));
}

#[test]
fn shows_the_parameters_of_the_rfc() {
    let dump = loaded("", &[], &Overrides::default()).dump();
    for (key, value) in [
        ("upstream.ack_timeout", "2s"),
        ("upstream.ack_random_factor", "1.5"),
        ("upstream.max_retransmit", "4"),
        // NSTART is 1 to begin with.
        ("upstream.nstart", "auto"),
        ("upstream.probing_rate", "1.0"),
        ("protocol.DEFAULT_LEISURE", "5s"),
        ("protocol.PROBING_RATE", "1 byte/s"),
        ("protocol.MAX_LATENCY", "100s"),
    ] {
        let shown = line(&dump, key);
        assert_eq!(shown.split("  #").next(), Some(value), "{key}: {shown}");
    }
}

#[test]
fn an_exchange_outlives_its_own_retransmission() {
    let dump = loaded("", &[], &set(&["upstream.max_retransmit=7"])).dump();
    assert!(line(&dump, "upstream.MAX_TRANSMIT_WAIT").starts_with("765s "));
    assert!(line(&dump, "upstream.EXCHANGE_LIFETIME").starts_with("765s "), "{dump}");
    assert!(line(&dump, "upstream.effective_retransmissions").contains("held to 4"));
}

#[test]
fn shows_how_many_copies_fit() {
    let dump = loaded("", &[], &Overrides::default()).dump();
    assert_eq!(
        line(&dump, "upstream.effective_retransmissions"),
        "3  # 3 retransmissions of 4 fit, 4 copies in all: number 4 would leave 30s to 45s after the first copy, too \
         late with max_wait 30s; counted for the longest first wait, while nothing else is learned"
    );
    assert!(
        line(&dump, "downstream.effective_retransmissions").starts_with("2  # 2 retransmissions of 2 fit")
    );
    assert!(line(&dump, "upstream.due").starts_with("30s  #"));
    let dump = loaded("", &[], &set(&["upstream.max_wait=31s"])).dump();
    let copies = line(&dump, "upstream.effective_retransmissions");
    assert!(
        copies.starts_with("3  #") && copies.contains("only if the first wait is drawn short"),
        "{copies}"
    );
}

#[test]
fn shows_what_a_post_costs() {
    let dump = loaded("", &[], &Overrides::default()).dump();
    let price = line(&dump, "upstream.unanswered_posts");
    assert!(
        price.starts_with("3.6 / 7.7 / 19 %  # at 10 / 15 / 25 % loss each way, with 2 copies"),
        "{price}"
    );
    let cure = "cure: deduplicates = true, if it recognises duplicates: 4 copies and 0.13 / 0.59 / 3.7 %";
    assert!(price.ends_with(cure), "{price}");
    let dump = loaded("", &[], &set(&["upstream.deduplicates=true"])).dump();
    let price = line(&dump, "upstream.unanswered_posts");
    assert!(price.starts_with("0.13 / 0.59 / 3.7 %") && !price.contains("cure"), "{price}");
}

#[test]
fn shows_the_constants_of_the_protocol() {
    let dump = loaded("", &[], &Overrides::default()).dump();
    for (constant, value) in [
        ("ACK_TIMEOUT", "2s"),
        ("ACK_RANDOM_FACTOR", "1.5"),
        ("MAX_RETRANSMIT", "4"),
        ("NSTART", "1"),
        ("DEFAULT_LEISURE", "5s"),
        ("PROBING_RATE", "1 byte/s"),
        ("MAX_LATENCY", "100s"),
    ] {
        let line = line(&dump, &format!("protocol.{constant}"));
        assert!(line.starts_with(&format!("{value}  # RFC 7252 §4.8")), "{constant}: {line}");
    }
}

#[test]
fn shows_what_memory_is_made_of() {
    let most = |settings: &[&str]| {
        let dump = loaded("", &[], &set(settings)).dump();
        let mebibytes = |line: &str| -> u64 {
            line.split_once("MiB").and_then(|(number, _)| number.parse().ok()).expect("MiB")
        };
        let parts: u64 =
            ["remembered", "requests", "responses", "origins", "names", "clients", "hints", "tokens"]
                .into_iter()
                .chain(["transfers", "fingerprints", "sockets", "records", "base"])
                .map(|part| mebibytes(line(&dump, &format!("memory.{part}"))))
                .sum();
        let most = mebibytes(line(&dump, "memory.most"));
        assert!((parts - 13..=parts).contains(&most), "each part is rounded up: {dump}");
        most
    };
    let default = most(&[]);
    assert!(default < 850, "a default that fits beside other programs: {default}MiB");
    assert!(most(&["limits.fetches=1000000"]) > 6000);
    assert_eq!(most(&["dedup.memory=1MiB"]), default - 255 - 32);
    assert!(most(&["record.file=-"]) > default + 200, "paths of records are kept with requests");
    assert!(most(&["upstream.rto.window=1000"]) > default + 200);
    assert!(most(&["upstream.token=preserve", "upstream.post_guard=fingerprint"]) > default + 100);
}

#[test]
fn shows_what_message_ids_allow() {
    let dump = loaded("", &[], &set(&["upstream.source_ports=1"])).dump();
    assert!(line(&dump, "upstream.requests_per_second").starts_with("265  #"));
}

#[test]
fn says_who_may_reach_what() {
    let forwarding = |file: &str, overrides: &Overrides| {
        line(&loaded(file, &[], overrides).dump(), "forwarding").to_owned()
    };
    assert_eq!(
        forwarding("", &Overrides::default()),
        "open  # to local clients only, since all listeners are on loopback; to every unicast target with port 5683, \
         5684 or from 1024 on, except ourselves"
    );
    assert_eq!(
        forwarding(EXAMPLE, &Overrides::default()),
        "listed  # 10.0.0.0/8 may reach 10.1.0.0/16, *.plant.example and upstreams boiler; all others get 5.05"
    );
    let reverse = Overrides { reverse: Some("coap://a".to_owned()), ..Overrides::default() };
    assert!(forwarding("", &reverse).starts_with("off  # there are routes"));
    assert!(
        forwarding("", &set(&["listen=coap://0.0.0.0"])).starts_with("off  # a listener is not on loopback")
    );
    assert!(forwarding("", &set(&["forward.enabled=false"])).starts_with("off  # forward.enabled is false"));
}

#[test]
fn every_value_reads_back() {
    let dump = loaded(EXAMPLE, &[], &Overrides::default()).dump();
    let settings: Vec<String> = dump
        .lines()
        .filter_map(|line| line.split_once("  # "))
        .filter(|(setting, source)| {
            (*source == "default" || source.starts_with("coapway.toml"))
                && !setting.ends_with("= unset")
                && !setting.starts_with("routes.")
        })
        .map(|(setting, _)| setting.replace(" = ", "="))
        .collect();
    assert!(settings.len() > 50);
    let again = loaded(EXAMPLE, &[], &Overrides { set: settings, ..Overrides::default() });
    let values = |dump: &str| -> Vec<String> {
        dump.lines().map(|line| line.split("  # ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(values(&again.dump())[1..], values(&dump)[1..]);
}
