//! Named sets of values, and what goes before them.

use std::time::Duration;

use coapway_endpoint::{Carry, Estimator, Nstart, TransmissionParameters};
use coapway_proxy::{Probe, UpstreamParameters};

use super::*;

const LPWAN: &str = "[upstream]\nprofile = \"lpwan\"\n";

#[test]
fn a_profile_sets_values_and_the_dump_says_so() {
    let config = loaded(LPWAN, &[], &Overrides::default());
    let dump = config.dump();
    assert_eq!(line(&dump, "upstream.profile"), "lpwan  # coapway.toml:2");
    assert_eq!(line(&dump, "upstream.ack_timeout"), "10s  # profile lpwan");
    assert_eq!(line(&dump, "upstream.max_wait"), "247s  # profile lpwan");
    assert_eq!(line(&dump, "upstream.rto.window"), "60  # default");
    let [upstream] = config.parameters().upstreams[..] else { panic!("one set") };
    assert_eq!((upstream.transmission.max_retransmit, upstream.nstart), (2, Nstart::Fixed(1)));
}

#[test]
fn what_is_written_goes_before_a_profile_wherever_it_stands() {
    let file = "[upstream]\nmax_wait = \"60s\"\nprofile = \"lpwan\"\nnstart = 2\n";
    let environment = [("COAP_UPSTREAM_ACK_TIMEOUT", "8")];
    let overrides = set(&["upstream.max_retransmit=1"]);
    let dump = loaded(file, &environment, &overrides).dump();
    assert_eq!(line(&dump, "upstream.max_wait"), "60s  # coapway.toml:2");
    assert_eq!(line(&dump, "upstream.nstart"), "2  # coapway.toml:4");
    assert_eq!(line(&dump, "upstream.ack_timeout"), "8s  # env COAP_UPSTREAM_ACK_TIMEOUT");
    assert_eq!(line(&dump, "upstream.max_retransmit"), "1  # --set");
    assert_eq!(line(&dump, "upstream.retry.max_attempts"), "1  # profile lpwan");
    let late = loaded("[upstream]\nqueue = 9\n", &[], &set(&["upstream.profile=lan"])).dump();
    assert_eq!(line(&late, "upstream.queue"), "9  # coapway.toml:2");
    assert_eq!(line(&late, "upstream.rto.floor"), "20ms  # profile lan");
}

#[test]
fn a_named_upstream_takes_that_of_upstream_or_one_of_its_own() {
    let named =
        |more: &str| format!("{LPWAN}queue = 7\n[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n{more}");
    let dump = loaded(&named("max_wait = \"9s\"\n"), &[], &Overrides::default()).dump();
    assert_eq!(line(&dump, "upstreams.a.ack_timeout"), "10s  # profile lpwan");
    assert_eq!(line(&dump, "upstreams.a.max_wait"), "9s  # coapway.toml:7");

    let own = named("nstart = 3\nprofile = \"rfc7252\"\n");
    let overrides = set(&["upstreams.a.rto.estimator=linux"]);
    let config = loaded(&own, &[], &overrides);
    let dump = config.dump();
    assert_eq!(line(&dump, "upstreams.a.ack_timeout"), "2s  # profile rfc7252");
    assert_eq!(line(&dump, "upstreams.a.nstart"), "3  # coapway.toml:7");
    assert_eq!(line(&dump, "upstreams.a.rto.estimator"), "linux  # --set");
    assert_eq!(line(&dump, "upstreams.a.queue"), "7  # coapway.toml:3");
    assert_eq!(line(&dump, "upstreams.a.max_wait"), "247s  # profile lpwan", "not in its own");
    let late = loaded(&named(""), &[], &set(&["upstreams.a.profile=lan"])).dump();
    assert_eq!(line(&late, "upstreams.a.rto.floor"), "20ms  # profile lan");
    assert_eq!(line(&late, "upstreams.a.ack_timeout"), "1s  # profile lan");
}

#[test]
fn rfc7252_is_the_protocol_s_own() {
    let config = loaded("", &[], &set(&["upstream.profile=rfc7252"]));
    let [upstream] = config.parameters().upstreams[..] else { panic!("one set") };
    assert_eq!(upstream.transmission, TransmissionParameters::default());
    assert_eq!((upstream.rto.estimator, upstream.rto.carry), (Estimator::Fixed, Carry::Never));
    assert_eq!((upstream.nstart, upstream.retry.max_attempts), (Nstart::Fixed(1), 1));
    assert_eq!(config.warnings().len(), 1, "nothing is carried: {:?}", config.warnings());
}

#[test]
fn interop_leaves_the_defaults_but_for_what_is_not_expected() {
    let config = loaded("", &[], &set(&["upstream.profile=interop"]));
    let [mut upstream] = config.parameters().upstreams[..] else { panic!("one set") };
    assert_eq!((upstream.source_ports, upstream.retry.max_attempts), (1, 1));
    let default = UpstreamParameters::default();
    upstream.source_ports = default.source_ports;
    upstream.retry = default.retry;
    assert_eq!(upstream.retransmit.probe, Probe::Off);
    upstream.retransmit = default.retransmit;
    assert_eq!(upstream, default);
}

#[test]
fn a_profile_that_is_none_is_refused() {
    let error = refused("[upstream]\nprofile = \"lpvan\"\n", &[], &Overrides::default());
    assert!(error.contains("did you mean \"lpwan\"?") && error.contains("\"interop\""), "{error}");
}

#[test]
fn a_profile_is_no_stronger_than_the_limits_between_keys() {
    // A floor above the cap is told of the floor, which somebody wrote.
    let file = "[upstream]\nprofile = \"lan\"\nrto.cap = \"1s\"\nrto.floor = \"2s\"\n";
    assert!(refused(file, &[], &Overrides::default()).contains("upstream.rto.floor = 2s"));
    let lan = loaded("[upstream]\nprofile = \"lan\"\n", &[], &Overrides::default());
    assert_eq!(lan.parameters().upstreams[0].rto.floor, Duration::from_millis(20));
}

#[test]
fn estimators_and_their_keys() {
    let estimator = |name: &str| {
        let config = loaded("", &[], &set(&[&format!("upstream.rto.estimator={name}")]));
        assert_eq!(config.warnings(), [""; 0], "{name}");
        assert_eq!(line(&config.dump(), "upstream.rto.estimator"), format!("{name}  # --set"));
        config.parameters().upstreams[0].rto.estimator
    };
    let names = ["fixed", "p95", "budget", "rfc6298", "linux", "cocoa", "cocoa_strong", "peakhopper", "pto"];
    assert_eq!(names.map(estimator), Estimator::ALL);

    let warnings = |keys: &[&str]| loaded("", &[], &set(keys)).warnings().join("\n");
    let budget = ["upstream.rto.estimator=budget", "upstream.rto.spurious_budget=0.01"];
    assert!(warnings(&budget).contains("wants 99 samples"), "{}", warnings(&budget));
    assert_eq!(warnings(&[budget[0], budget[1], "upstream.rto.window=99"]), "");
    let idle = warnings(&["upstream.rto.estimator=p95", "upstream.rto.spurious_budget=0.1"]);
    assert!(idle.contains("has no effect: it is for \"budget\""), "{idle}");
    assert_eq!(warnings(&["upstream.rto.cap=5s"]), "", "what is above it is told");
    let idle = warnings(&["upstream.rto.estimator=linux", "upstream.rto.cap=5s"]);
    assert!(idle.contains("upstream.rto.cap has no effect"), "{idle}");
    for wrong in ["0.004", "0.31", "nan"] {
        let error = refused("", &[], &set(&[&format!("upstream.rto.spurious_budget={wrong}")]));
        assert!(error.contains("0.005 to 0.3"), "{error}");
    }
}
