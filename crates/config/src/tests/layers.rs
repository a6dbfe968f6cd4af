//! Which value wins, and what the proxy is told.

use std::path::PathBuf;
use std::time::Duration;

use coapway_endpoint::{Estimator, Nstart, RtoParameters, TransmissionParameters};
use coapway_proxy::{Limits, PostGuard, RetryParameters, TokenPolicy, UpstreamParameters};
use coapway_relay::{Forward, UpstreamId};

use super::*;
use crate::{LogDestination, LogFormat, LogLevel, RecordDestination, Resolver};

const SECOND: Duration = Duration::from_secs(1);

fn value(file: &str, environment: &[(&str, &str)], overrides: &Overrides, key: &str) -> String {
    line(&loaded(file, environment, overrides).dump(), key).to_owned()
}

#[test]
fn nothing_is_needed() {
    let config = loaded("", &[], &Overrides::default());
    assert_eq!(config.listen(), [([127, 0, 0, 1], 5683).into()]);
    assert_eq!(config.resolver(), &Resolver::System);
    assert_eq!(config.record().destination, RecordDestination::Off);
    assert_eq!(config.log().destination, LogDestination::StandardError);
    assert_eq!(config.warnings(), [""; 0]);

    let parameters = config.parameters();
    assert_eq!(parameters.upstreams, [UpstreamParameters::default()]);
    assert_eq!(parameters.limits, Limits::default());
    assert_eq!(parameters.relay.forward, Forward::Open);
    assert_eq!(parameters.relay.own, config.listen());
    assert_eq!(parameters.relay.upstreams[0].authority, None);
    let downstream = TransmissionParameters {
        ack_timeout: SECOND,
        ack_random_factor: 1.2,
        retry_jitter: 0.1,
        max_retransmit: 2,
    };
    assert_eq!(parameters.downstream.transmission, downstream);
    assert_eq!(parameters.downstream.max_wait, 10 * SECOND);
    assert_eq!(parameters.downstream.early_ack_after, SECOND / 2);
    assert_eq!(parameters.downstream.peer, TransmissionParameters::default());
    assert_eq!(parameters.downstream.nstart, Nstart::Auto { max: 1024 });
    assert_eq!(parameters.answer_within, None);
    let relay = coapway_relay::Parameters::default();
    assert_eq!(parameters.relay.client_rate, relay.client_rate);
    assert_eq!(parameters.relay.identifier, relay.identifier);
    assert_eq!(parameters.relay.trusted, relay.trusted);
    assert_eq!(config.drain_timeout(), 30 * SECOND);
}

#[test]
fn command_line_beats_environment_beats_file_beats_default() {
    let key = "upstream.ack_timeout";
    let file = "[upstream]\nack_timeout = \"3.0s\"\n";
    let environment = [("COAP_UPSTREAM_ACK_TIMEOUT", "4.0")];
    let overrides = set(&["upstream.ack_timeout=5s", "upstream.ack_timeout=6s"]);
    assert_eq!(value("", &[], &Overrides::default(), key), "2s  # default");
    assert_eq!(value(file, &[], &Overrides::default(), key), "3s  # coapway.toml:2");
    assert_eq!(value(file, &environment, &Overrides::default(), key), "4s  # env COAP_UPSTREAM_ACK_TIMEOUT");
    assert_eq!(value(file, &environment, &overrides, key), "6s  # --set");
    assert_eq!(value("", &environment, &Overrides::default(), key), "4s  # env COAP_UPSTREAM_ACK_TIMEOUT");
}

#[test]
fn every_key_has_a_variable() {
    let environment = [
        ("COAP_DOWNSTREAM_ACK_TIMEOUT", "1.5"),
        ("COAP_DOWNSTREAM_ACK_RANDOM_FACTOR", "1.25"),
        ("COAP_DOWNSTREAM_MAX_RETRANSMIT", "3"),
        ("COAP_DOWNSTREAM_MAX_WAIT", "40"),
        ("COAPWAY__UPSTREAM__RTO__ESTIMATOR", "fixed"),
        ("COAPWAY__UPSTREAM__NSTART", "7"),
        ("COAPWAY__DEDUP__MEMORY", "64MiB"),
        ("COAPWAY__RESOLVER", "hosts:/etc/plant"),
        ("COAPWAY__LISTEN", "coap://0.0.0.0, coap://[::]:5700"),
        ("COAPWAY__FORWARD__CLIENTS", "10.0.0.0/8,fd00::/8"),
        ("COAPWAY__FORWARD__ALLOW", "[\"*.plant.example\"]"),
        ("COAPWAY__LOG__LEVEL", "\"debug\""),
        ("COAPWAY_BIN", "not ours"),
        ("COAP_SERVER", "not ours"),
    ];
    let config = loaded("", &environment, &Overrides::default());
    let parameters = config.parameters();
    assert_eq!(parameters.downstream.transmission.ack_timeout, Duration::from_millis(1500));
    assert_eq!(parameters.downstream.max_wait, 40 * SECOND);
    assert_eq!(parameters.upstreams[0].rto.estimator, Estimator::Fixed);
    assert_eq!(parameters.upstreams[0].nstart, Nstart::Fixed(7));
    assert_eq!(parameters.downstream.duplicates.memory, 64 << 20);
    assert_eq!(config.resolver(), &Resolver::Hosts(PathBuf::from("/etc/plant")));
    assert_eq!(config.listen().len(), 2);
    assert_eq!(config.log().level, LogLevel::Debug);
    assert!(
        matches!(parameters.relay.forward, Forward::Listed { clients, allow } if clients.len() == 2 && allow.len() == 1)
    );
}

#[test]
fn what_keys_say_reaches_the_proxy() {
    let file = "identifier = \"gate-7\"\nresolver = \"[2001:db8::53]:5353\"\ndrain_timeout = \"5s\"\n\
                [downstream]\nanswer_within = \"9s\"\nnstart = 3\n\
                [upstream]\nprobing_rate = \"off\"\ntoken = \"preserve\"\npost_guard = \"fingerprint\"\n\
                post_guard_window = \"2s\"\nretry = { max_attempts = 1, budget = { ratio = 0.5 } }\n\
                [clients]\ntrusted = [\"10.0.0.0/8\", \"fd00::1\"]\n[limits]\nclient_rate = 50\n\
                [[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\nprobing_rate = 2.5\n\
                retry.budget.per_second = 4\npost_guard = \"request-tag\"\n";
    let config = loaded(file, &[], &Overrides::default());
    assert_eq!(config.resolver(), &Resolver::Server("[2001:db8::53]:5353".parse().unwrap()));
    assert_eq!(config.drain_timeout(), 5 * SECOND);
    let parameters = config.parameters();
    assert_eq!(parameters.answer_within, Some(9 * SECOND));
    assert_eq!(parameters.downstream.nstart, Nstart::Fixed(3));
    assert_eq!(&*parameters.relay.identifier, "gate-7");
    assert_eq!(parameters.relay.trusted, ["10.0.0.0/8".parse().unwrap(), "fd00::1/128".parse().unwrap()]);
    assert_eq!(parameters.relay.client_rate, 50);
    let [default, a] = parameters.upstreams[..] else { panic!("two sets") };
    assert_eq!((default.probing_rate, a.probing_rate), (None, Some(2.5)));
    assert_eq!((default.token, a.token), (TokenPolicy::Preserve, TokenPolicy::Preserve));
    assert_eq!((default.post_guard, a.post_guard), (PostGuard::Fingerprint, PostGuard::RequestTag));
    assert_eq!(a.post_guard_window, 2 * SECOND);
    assert_eq!(default.retry, RetryParameters { max_attempts: 1, budget_ratio: 0.5, budget_per_second: 1.0 });
    assert_eq!(a.retry, RetryParameters { budget_per_second: 4.0, ..default.retry });
    let max = loaded("", &[], &set(&["downstream.nstart_max=8", "clients.trusted=[]"])).parameters();
    assert_eq!(max.downstream.nstart, Nstart::Auto { max: 8 });
}

#[test]
fn the_example_of_the_design_is_read() {
    let config = loaded(EXAMPLE, &[], &Overrides::default());
    assert_eq!(config.listen(), [([0, 0, 0, 0], 5683).into()]);
    let parameters = config.parameters();
    let [default, boiler] = parameters.upstreams[..] else { panic!("two sets") };
    let rto = RtoParameters { estimator: Estimator::P95, window: 50, ..RtoParameters::default() };
    assert_eq!(default, UpstreamParameters { rto, ..UpstreamParameters::default() });
    assert_eq!(boiler.transmission.ack_timeout, 4 * SECOND);
    assert!(boiler.deduplicates && !default.deduplicates);
    assert_eq!(parameters.relay.upstreams[1].name.as_ref(), "boiler");
    let authority = parameters.relay.upstreams[1].authority.as_ref().expect("it has one");
    assert_eq!(authority.to_string(), "10.1.2.3:5683");
    let [route] = &parameters.relay.routes[..] else { panic!("one route") };
    assert_eq!(route.upstream, UpstreamId(1));
    assert_eq!(route.path, [b"boiler".as_slice().into()]);
    assert!(route.strip && route.host.is_none());
    assert!(matches!(&parameters.relay.forward, Forward::Listed { allow, .. } if allow.len() == 2));
}

#[test]
fn the_command_line_of_the_bench_is_read() {
    let overrides = Overrides {
        listen: vec!["coap://127.0.0.1:1234".to_owned()],
        admin: Some("off".to_owned()),
        record: Some("off".to_owned()),
        log: Some("/dev/null".to_owned()),
        ..set(&[
            "downstream.ack_timeout=2s",
            "downstream.ack_random_factor=1.5",
            "downstream.max_retransmit=4",
            "downstream.max_wait=100s",
            "upstream.rto.estimator=fixed",
            "upstream.max_wait=100s",
            "upstream.deduplicates=true",
        ])
    };
    let config = loaded("", &[], &overrides);
    assert_eq!(config.listen(), [([127, 0, 0, 1], 1234).into()]);
    assert_eq!(config.log().destination, LogDestination::File("/dev/null".into()));
    assert_eq!(config.warnings(), [""; 0]);
    let parameters = config.parameters();
    assert_eq!(parameters.relay.forward, Forward::Open);
    assert_eq!(parameters.downstream.transmission.max_retransmit, 4);
    assert!(parameters.upstreams[0].deduplicates);
    assert_eq!(parameters.upstreams[0].max_wait, 100 * SECOND);

    let reverse = Overrides { reverse: Some("coap://127.0.0.1:5700".to_owned()), ..overrides };
    let config = loaded("", &[], &reverse);
    let parameters = config.parameters();
    assert_eq!(parameters.relay.forward, Forward::Off);
    assert_eq!(parameters.relay.upstreams[1].name.as_ref(), "reverse");
    assert_eq!(parameters.relay.routes[0].upstream, UpstreamId(1));
    assert_eq!(parameters.relay.routes[0].path.len(), 0);
    assert_eq!(parameters.upstreams[1], parameters.upstreams[0]);
}

#[test]
fn a_named_upstream_takes_what_it_does_not_say_from_upstream() {
    let file = "[[upstreams]]\nname = \"Boiler-1\"\nuri = \"coap://boiler\"\nmax_wait = \"20s\"\n\
                rto.factor = 3.0\n";
    let environment = [("COAP_UPSTREAM_MAX_WAIT", "40"), ("COAPWAY__UPSTREAMS__BOILER_1__QUEUE", "5")];
    let overrides = set(&["upstream.source_ports=8", "upstreams.Boiler-1.nstart=4"]);
    let config = loaded(file, &environment, &overrides);
    let dump = config.dump();
    assert_eq!(line(&dump, "upstream.max_wait"), "40s  # env COAP_UPSTREAM_MAX_WAIT");
    assert_eq!(line(&dump, "upstreams.Boiler-1.max_wait"), "20s  # coapway.toml:4");
    assert_eq!(line(&dump, "upstreams.Boiler-1.rto.factor"), "3.0  # coapway.toml:5");
    assert_eq!(line(&dump, "upstreams.Boiler-1.queue"), "5  # env COAPWAY__UPSTREAMS__BOILER_1__QUEUE");
    assert_eq!(line(&dump, "upstreams.Boiler-1.source_ports"), "8  # --set");
    assert_eq!(line(&dump, "upstreams.Boiler-1.nstart"), "4  # --set");
    assert_eq!(line(&dump, "upstreams.Boiler-1.uri"), "coap://boiler:5683  # coapway.toml:3");
}

#[test]
fn options_are_short_for_keys() {
    let overrides = Overrides {
        record: Some("-".to_owned()),
        log: Some("-".to_owned()),
        log_format: Some("json".to_owned()),
        ..set(&["log.format=text", "record.sample=0.5"])
    };
    let config = loaded("[record]\nfile = \"records.json\"", &[], &overrides);
    assert_eq!(config.record().destination, RecordDestination::StandardOutput);
    assert_eq!(config.record().sample, 0.5);
    assert_eq!(config.log().format, LogFormat::Json);
    let config = loaded("[record]\nfile = \"records.json\"", &[], &Overrides::default());
    assert_eq!(config.record().destination, RecordDestination::File("records.json".into()));
}

#[test]
fn a_list_of_listeners_replaces_the_weaker_one() {
    let file = "[[listen]]\nuri = \"coap://127.0.0.1:1\"\n[[listen]]\nuri = \"coap://[::1]:2\"\n";
    assert_eq!(loaded(file, &[], &Overrides::default()).listen().len(), 2);
    let overrides = Overrides { listen: vec!["coap://127.0.0.1:3".to_owned()], ..Overrides::default() };
    let environment = [("COAPWAY__LISTEN", "coap://127.0.0.1:4")];
    assert_eq!(loaded(file, &environment, &overrides).listen(), [([127, 0, 0, 1], 3).into()]);
    assert_eq!(loaded(file, &environment, &Overrides::default()).listen(), [([127, 0, 0, 1], 4).into()]);
}

#[test]
fn forwarding_is_never_open_to_the_world() {
    let forward = |file: &str| loaded(file, &[], &Overrides::default()).parameters().relay.forward;
    let world = "[[listen]]\nuri = \"coap://0.0.0.0\"\n";
    let route =
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[[routes]]\npath = \"/\"\nupstream = \"a\"\n";
    let lists = "[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"a\"]\n";
    let ask = "[forward]\nenabled = true\n";
    assert_eq!(forward("[limits]\nnames = 1\n"), Forward::Open);
    assert_eq!(forward("[forward]\n"), Forward::Open);
    assert_eq!(forward("[forward]\nenabled = false\n"), Forward::Off);
    assert_eq!(forward(world), Forward::Off);
    assert_eq!(forward(route), Forward::Off);
    assert_eq!(forward(&format!("{route}{ask}")), Forward::Open);
    assert_eq!(forward(&format!("{world}{route}")), Forward::Off);
    for file in [lists.to_owned(), format!("{world}{lists}"), format!("{route}{lists}")] {
        let Forward::Listed { clients, allow } = forward(&file) else { panic!("{file}") };
        assert_eq!(clients, ["10.0.0.0/8".parse().expect("a network")]);
        assert_eq!(allow.len(), 1);
    }
    for asked in ["[forward]\n", ask] {
        let errors = refused(&format!("{world}{asked}"), &[], &Overrides::default());
        assert!(errors.contains("needs forward.clients and forward.allow"), "{errors}");
    }
}

#[test]
fn clients_that_wait_longer_are_remembered_longer() {
    let lifetime =
        |text: &str| loaded("", &[], &set(&[text])).parameters().downstream.peer.exchange_lifetime();
    assert_eq!(lifetime("downstream.client_ack_timeout=1s"), 247 * SECOND);
    assert_eq!(lifetime("downstream.client_ack_timeout=4s"), 294 * SECOND);
}

#[test]
fn a_longer_schedule_is_for_origins_that_know() {
    let file = "[upstream]\nmax_retransmit = 6\n\
                [[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\nmax_retransmit = 6\n\
                [[upstreams]]\nname = \"b\"\nuri = \"coap://b\"\nqueue = 1\n";
    let config = loaded(file, &[], &Overrides::default());
    let copies: Vec<u32> =
        config.parameters().upstreams.iter().map(|upstream| upstream.transmission.max_retransmit).collect();
    assert_eq!(copies, [4, 6, 4]);
    let [warning] = config.warnings() else { panic!("{:?}", config.warnings()) };
    assert!(warning.starts_with("upstream.max_retransmit = 6 is held to 4"), "{warning}");
}

#[test]
fn what_is_allowed_but_bold_gives_a_warning() {
    let warnings = |settings: &[&str]| loaded("", &[], &set(settings)).warnings().to_vec();
    for (setting, text) in [
        ("upstream.ack_timeout=500ms", "RFC 8085 §3.1.1"),
        ("downstream.ack_timeout=999ms", "RFC 8085 §3.1.1"),
        ("upstream.ack_random_factor=1.0", "under 1.1"),
        ("downstream.ack_random_factor=1.09", "under 1.1"),
        ("downstream.max_wait=8s", "MAX_TRANSMIT_WAIT (8.4s)"),
        ("downstream.answer_within=30s", "has no effect: no upstream is waited for longer than 30s"),
        ("forward.enabled=false", "nothing is served"),
        ("upstream.token=preserve", "RFC 7252 §11.4"),
        ("upstream.post_guard=request-tag", "beyond what RFC 9175 means"),
        ("upstream.post_guard_window=9s", "has no effect: upstream.post_guard is \"none\""),
        ("upstream.retry.max_attempts=3", "one more load"),
        ("upstream.probing_rate=off", "RFC 7252 §4.7"),
    ] {
        let warnings = warnings(&[setting]);
        assert!(matches!(&warnings[..], [warning] if warning.contains(text)), "{setting}: {warnings:?}");
    }
    assert_eq!(warnings(&["upstream.nstart=4"]), [""; 0]);
    assert_eq!(warnings(&["upstream.nstart=4", "upstream.rto.estimator=fixed"]).len(), 1);
    for quiet in ["downstream.answer_within=29s", "upstream.post_guard=fingerprint", "limits.client_rate=0"] {
        assert_eq!(warnings(&[quiet]), [""; 0], "{quiet}");
    }
    let open = warnings(&["forward.clients=0.0.0.0/0", "forward.allow=a"]);
    assert_eq!(open, ["forward.clients has 0.0.0.0/0: everybody may have requests forwarded"]);
}

#[test]
fn a_listener_for_everybody_gives_a_warning() {
    let served =
        ["listen=coap://127.0.0.1:5700,coap://[::]", "forward.clients=10.0.0.0/8", "forward.allow=a"];
    let warnings = |more: &[&str]| loaded("", &[], &set(&[&served, more].concat())).warnings().to_vec();
    let [forged] = &warnings(&[])[..] else { panic!("one") };
    assert!(forged.starts_with("clients.trusted is empty and [::]:5683 is open"), "{forged}");
    assert!(forged.contains("above 136 bytes and three times the request is withheld with 4.01"), "{forged}");
    assert_eq!(warnings(&["clients.trusted=10.0.0.0/8"]), [""; 0]);
    let [any_rate] = &warnings(&["clients.trusted=10.0.0.0/8", "limits.client_rate=0"])[..] else {
        panic!("one")
    };
    assert!(any_rate.starts_with("limits.client_rate = 0: one client that reaches [::]:5683"), "{any_rate}");
}

#[test]
fn a_warning_is_told_once_for_what_upstreams_share() {
    let file = "[upstream]\ntoken = \"preserve\"\nretry.max_attempts = 3\n\
                [[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n\
                [[upstreams]]\nname = \"b\"\nuri = \"coap://b\"\nretry.max_attempts = 5\n";
    let config = loaded(file, &[], &Overrides::default());
    let starts: Vec<&str> =
        config.warnings().iter().filter_map(|warning| warning.split(':').next()).collect();
    assert_eq!(
        starts,
        [
            "upstream.token = \"preserve\"",
            "upstream.retry.max_attempts = 3",
            "upstreams.b.retry.max_attempts = 5"
        ]
    );
}
