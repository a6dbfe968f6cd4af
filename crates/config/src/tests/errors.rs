//! What an operator reads.

use proptest::prelude::*;

use super::*;

#[test]
fn a_value_out_of_range() {
    check(
        "[upstream]\nmax_wait = \"20s\"\nack_timeout = \"5ms\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:3:15: upstream.ack_timeout = \"5ms\"\n    \
             out of range; allowed: 10ms to 60s\n    \
             hint: shorter than 10ms no answer is back yet, longer than 60s no client waits; under 1s RFC 8085 §3.1.1 warns",
    );
    check(
        "[downstream]\nack_random_factor = 0.9\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:21: downstream.ack_random_factor = 0.9\n    \
             out of range; allowed: 1.0 to 3.0\n    \
             hint: below 1.0 copies would leave before ACK_TIMEOUT (RFC 7252 §4.8.1), above 3.0 they spread further \
             than a doubling; under 1.1 peers repeat in step, which warns",
    );
}

#[test]
fn a_value_without_unit() {
    check(
        "[upstream]\nack_timeout = 2\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:15: upstream.ack_timeout = 2\n    \
             a duration needs a unit; allowed: 10ms to 60s\n    \
             hint: write it like \"2s\" or \"500ms\"",
    );
    check(
        "dedup.memory = \"64\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:1:16: dedup.memory = \"64\"\n    \
             a size needs a unit; allowed: 1MiB to 64GiB\n    \
             hint: write 64MiB or 64B",
    );
}

#[test]
fn an_unknown_key() {
    check(
        "[upstream]\nack_timout = \"2s\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:14: upstream.ack_timout = \"2s\"\n    \
             unknown key\n    \
             hint: did you mean upstream.ack_timeout?",
    );
    check(
        "cache.enabled = true\n",
        "1 error in the configuration\n\n\
         coapway.toml:1:1: cache\n    \
             unknown key\n    \
             hint: not in this version",
    );
    check(
        "[log]\ncolour = true\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:10: log.colour = true\n    \
             unknown key\n    \
             hint: known here: file, format, level",
    );
}

#[test]
fn an_unknown_table_even_if_it_is_empty() {
    for file in ["[cache]\n", "[cache]\nenabled = true\n"] {
        let errors = refused(file, &[], &Overrides::default());
        assert!(errors.starts_with("1 error in"), "{errors}");
        assert!(errors.contains("unknown key\n    hint: not in this version"), "{errors}");
    }
    for file in [
        "[upstraem]\nmax_wait = \"2s\"\n",
        "[\"upstream.rto\"]\n",
        "\"upstream.queue\" = 3\n",
        "upstream = 3\n",
    ] {
        assert!(refused(file, &[], &Overrides::default()).starts_with("1 error in"), "{file}");
    }
}

#[test]
fn an_unknown_variable() {
    let refused = |name, value| refused("", &[(name, value)], &Overrides::default());
    assert_eq!(
        refused("COAP_UPSTREAM_ACK_TIMOUT", "2"),
        "1 error in the configuration\n\n\
         environment: COAP_UPSTREAM_ACK_TIMOUT=2\n    \
             unknown variable\n    \
             hint: did you mean COAP_UPSTREAM_ACK_TIMEOUT?"
    );
    assert_eq!(
        refused("COAPWAY__UPSTREAM__QUEU", "2"),
        "1 error in the configuration\n\n\
         environment: COAPWAY__UPSTREAM__QUEU=2\n    \
             unknown variable\n    \
             hint: did you mean COAPWAY__UPSTREAM__QUEUE?"
    );
    for (name, hint) in [
        ("COAP_DOWNSTREAM_PORT", "COAPWAY__SECTION__KEY"),
        ("COAP_UPSTREM_ACK_TIMEOUT", "did you mean COAP_UPSTREAM_ACK_TIMEOUT?"),
        ("COAPWAY_DEDUP__MEMORY", "COAPWAY__SECTION__KEY"),
        ("COAPWAY__UPSTREAM__ACK_TIMEOUT", "set COAP_UPSTREAM_ACK_TIMEOUT"),
        ("COAPWAY__upstream__queue", "write COAPWAY__UPSTREAM__QUEUE"),
        ("COAPWAY__ROUTES__PATH", "in the file only, in [[routes]]"),
        ("COAPWAY__LISTEN__URI", "COAPWAY__LISTEN is a list"),
        ("COAPWAY__UPSTREAMS__BOILER__QUEUE", "no [[upstreams]] are defined"),
        ("COAPWAY__", "known here"),
    ] {
        let errors = refused(name, "2");
        assert!(errors.starts_with("1 error in") && errors.contains(hint), "{name}: {errors}");
    }
}

#[test]
fn a_bad_variable() {
    for value in ["abc", "NaN", "inf", "-1", "", "2s", "0", "1e3", "61"] {
        let errors = refused("", &[("COAP_UPSTREAM_ACK_TIMEOUT", value)], &Overrides::default());
        let place = format!("environment: COAP_UPSTREAM_ACK_TIMEOUT={value}\n");
        assert!(errors.contains(&place) && errors.contains("allowed: 0.01 to 60 seconds"), "{errors}");
    }
    for value in ["abc", "NaN", "inf", "-1", "", "0.99"] {
        let errors = refused("", &[("COAP_UPSTREAM_ACK_RANDOM_FACTOR", value)], &Overrides::default());
        assert!(errors.contains("allowed: 1.0 to 3.0"), "{errors}");
    }
    for value in ["abc", "NaN", "inf", "-1", "", "1.5", "11", "99999999999999999999999999999999999999999"] {
        let errors = refused("", &[("COAP_UPSTREAM_MAX_RETRANSMIT", value)], &Overrides::default());
        assert!(errors.contains("allowed: 0 to 10"), "{errors}");
    }
}

#[test]
fn a_bad_option() {
    let refused = |setting: &str| refused("", &[], &set(&[setting]));
    assert_eq!(
        refused("upstream.queue=-1"),
        "1 error in the configuration\n\n\
         command line: --set upstream.queue=-1\n    \
             out of range; allowed: 0 to 1048576\n    \
             hint: 0 refuses what cannot leave at once; more than a million requests are never answered in time"
    );
    for (setting, text) in [
        ("upstream.max_wait", "no value"),
        ("upstream.rto=fixed", "a table, not a value"),
        ("upstream={ queue = 1 }", "a table, not a value"),
        ("upstream.rto.estimator=p96", "did you mean \"p95\"?"),
        ("upstream.nstart=0", "\"auto\" or 1 to 65536"),
        ("upstream.deduplicates=yes", "allowed: true or false"),
        ("record.sample=0", "allowed: 1e-6 to 1.0"),
        ("record.sample=nan", "allowed: 1e-6 to 1.0"),
        ("admin.listen=127.0.0.1:8080", "not in this version"),
        ("resolver=9.9.9.9", "hint: write 9.9.9.9:53"),
        ("resolver=9.9.9.9:0", "port must be 1 to 65535"),
        ("resolver=0.0.0.0:53", "an unspecified address"),
        ("resolver=224.0.0.251:53", "not the address of one host"),
        ("resolver=dns.example:53", "allowed: \"system\", \"hosts:FILE\" or \"ADDRESS:PORT\""),
        ("workers=2", "several workers are not in this version"),
        ("forward.clients=[]", "an empty array"),
        ("forward.clients=10.0.0.0/33", "\"10.0.0.0/33\" is not a network"),
        ("listen=coap://localhost", "a name, not an address"),
        ("listen=coaps://127.0.0.1", "coaps is not in this version"),
        ("listen=127.0.0.1:5683", "write coap://127.0.0.1:5683"),
        ("listen=coap://127.0.0.1:0", "port must be 1 to 65535"),
        ("listen=coap://224.0.1.187", "a multicast address"),
        ("listen=coap://[::1],coap://[::1]:5683", "twice the same address"),
        ("upstreams.boiler.queue=3", "no [[upstreams]] are defined"),
    ] {
        let errors = refused(setting);
        assert!(errors.starts_with("1 error in") && errors.contains(text), "{setting}: {errors}");
    }
    let overrides = Overrides { reverse: Some("10.1.2.3".to_owned()), ..Overrides::default() };
    assert_eq!(
        super::refused("", &[], &overrides),
        "1 error in the configuration\n\n\
         command line: --reverse 10.1.2.3\n    \
             not an absolute URI; allowed: coap://HOST or coap://HOST:PORT\n    \
             hint: write coap://10.1.2.3"
    );
}

#[test]
fn values_that_contradict_each_other() {
    check(
        "[upstream]\nrto = { cap = \"1s\", floor = \"2s\" }\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:29: upstream.rto.floor = 2s\n    \
             too large for upstream.rto.cap = 1s (coapway.toml:2); allowed: at most 1s",
    );
    check(
        "[forward]\nclients = [\"10.0.0.0/8\"]\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:11: forward.allow\n    \
             missing beside forward.clients\n    \
             hint: say who may be forwarded (clients) and where to (allow), or forward.enabled = false",
    );
}

#[test]
fn a_contradiction_is_told_of_the_key_that_was_given() {
    check(
        "[downstream]\nclient_ack_timeout = \"800ms\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:22: downstream.client_ack_timeout = 800ms\n    \
             too small for downstream.early_ack_after = 500ms (default); allowed: at least 1s\n    \
             hint: later than half of client_ack_timeout clients repeat themselves before they hear of us",
    );
    check(
        "[downstream]\nearly_ack_after = \"1.5s\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:2:19: downstream.early_ack_after = 1.5s\n    \
             too large for downstream.client_ack_timeout = 2s (default); allowed: at most 1s\n    \
             hint: later than half of client_ack_timeout clients repeat themselves before they hear of us",
    );
    assert_eq!(
        refused("[upstream]\nrto.floor = \"3s\"\n", &[], &set(&["upstream.rto.cap=2s"])),
        "1 error in the configuration\n\n\
         command line: --set upstream.rto.cap=2s\n    \
             too small for upstream.rto.floor = 3s (coapway.toml:2); allowed: at least 3s",
    );
}

#[test]
fn a_contradiction_is_told_once_where_it_is() {
    let named = "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n";
    let errors = refused(&format!("[upstream]\nrto.floor = \"11s\"\n{named}"), &[], &Overrides::default());
    assert!(errors.starts_with("1 error in"), "{errors}");
    assert!(errors.contains("coapway.toml:2:13: upstream.rto.floor = 11s"), "{errors}");
    let errors =
        refused(&format!("[upstream]\nrto.floor = \"3s\"\n{named}rto.cap = \"2s\"\n"), &[], &set(&[]));
    assert!(errors.starts_with("1 error in"), "{errors}");
    let told = "coapway.toml:6:11: upstreams.a.rto.cap = 2s\n    too small for upstreams.a.rto.floor = 3s (coapway.toml:2)";
    assert!(errors.contains(told), "{errors}");
}

#[test]
fn places_that_lead_nowhere() {
    let upstream = "[[upstreams]]\nname = \"boiler\"\nuri = \"coap://boiler\"\n";
    for (rest, place, text) in [
        (
            "[[routes]]\npath = \"/\"\nupstream = \"boilr\"\n",
            "6:12: routes.upstream = \"boilr\"",
            "the upstreams are boiler",
        ),
        ("[[routes]]\nupstream = \"boiler\"\n", "4:1: routes", "neither path nor host"),
        ("[[routes]]\npath = \"/\"\n", "4:1: routes.upstream", "missing"),
        (
            "[[routes]]\npath = \"a\"\nupstream = \"boiler\"\n",
            "5:8: routes.path = \"a\"",
            "does not begin with /",
        ),
        (
            "[[routes]]\npath = \"/a/%2E./c\"\nupstream = \"boiler\"\n",
            "5:8: routes.path = \"/a/%2E./c\"",
            "has a segment . or ..",
        ),
        (
            "[[routes]]\npath = \"/a/\"\nupstream = \"boiler\"\n",
            "5:8: routes.path",
            "/a covers what is below it too",
        ),
        ("[[routes]]\npath = \"/a?b\"\nupstream = \"boiler\"\n", "5:8: routes.path", "has a query"),
        (
            "[[upstreams]]\nname = \"BOILER\"\nuri = \"coap://b\"\n",
            "4:1: upstreams.name",
            "too close to \"boiler\"",
        ),
        ("[[upstreams]]\nname = \"default\"\nuri = \"coap://b\"\n", "5:8: upstreams.name", "taken"),
        ("[[upstreams]]\nname = \"b\"\n", "4:1: upstreams.uri", "missing"),
        (
            "[[upstreams]]\nname = \"b\"\nuri = \"coap://b/x\"\n",
            "6:7: upstreams.uri",
            "has a path or a query",
        ),
        (
            "[[upstreams]]\nname = \"b\"\nuri = \"coap://127.0.0.1\"\n",
            "6:7: upstreams.b.uri",
            "round in a circle",
        ),
        (
            "[[upstreams]]\nname = \"b\"\nuri = \"coap://b\"\nrto.cop = \"1s\"\n",
            "7:11: upstreams.rto.cop",
            "did you mean upstreams.rto.cap?",
        ),
        ("[[listen]]\n", "4:1: listen.uri", "missing"),
        ("[listen]\nuri = \"coap://[::1]\"\n", "listen", "write [[listen]]"),
    ] {
        let errors = refused(&format!("{upstream}{rest}"), &[], &Overrides::default());
        assert!(errors.starts_with("1 error in"), "{rest}{errors}");
        assert!(errors.contains(place) && errors.contains(text), "{rest}{errors}");
    }
    let twice = "[[routes]]\npath = \"/a\"\nupstream = \"boiler\"\n";
    let errors = refused(&format!("{upstream}{twice}{twice}"), &[], &Overrides::default());
    assert!(
        errors.contains("coapway.toml:8:8: routes.path = \"/a\"\n    a second route for the same requests"),
        "{errors}"
    );
}

#[test]
fn an_origin_is_one_upstream() {
    let twice = "[[upstreams]]\nname = \"a\"\nuri = \"coap://boiler\"\n\
                 [[upstreams]]\nname = \"b\"\nuri = \"coap://BOILER:5683\"\n";
    check(
        twice,
        "1 error in the configuration\n\n\
         coapway.toml:6:7: upstreams.b.uri = coap://boiler:5683\n    \
             the same origin as upstreams.a.uri (coapway.toml:3)\n    \
             hint: several routes may lead to one upstream; what is learned of an origin, and NSTART, is kept for \
             each upstream",
    );
    loaded(twice, &[], &set(&["upstreams.b.uri=coap://boiler:5684"]));
    let one = "[[upstreams]]\nname = \"a\"\nuri = \"coap://boiler\"\n";
    let reverse = Overrides { reverse: Some("coap://boiler".to_owned()), ..Overrides::default() };
    let errors = refused(one, &[], &reverse);
    assert!(
        errors.contains("command line: --reverse coap://boiler:5683\n    the same origin as upstreams.a.uri (coapway.toml:3)"),
        "{errors}"
    );
}

#[test]
fn a_table_that_is_inside_of_another() {
    for (file, place, meant) in [
        ("[retry]\nmax_attempts = 2\n", "1:2: retry", "upstream.retry"),
        ("[rto]\n", "1:2: rto", "upstream.rto"),
        ("[budget]\nratio = 0.2\n", "1:2: budget", "upstream.retry.budget"),
        ("[upstream.budget]\n", "1:11: upstream.budget", "upstream.retry.budget"),
        ("[downstream.rto]\ncap = \"1s\"\n", "1:13: downstream.rto", "upstream.rto"),
        ("[upstream.retyr]\n", "1:11: upstream.retyr", "upstream.retry"),
        (
            "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[upstreams.budget]\n",
            "4:12: upstreams.budget",
            "upstreams.retry.budget",
        ),
    ] {
        let expected = format!(
            "1 error in the configuration\n\ncoapway.toml:{place}\n    unknown key\n    hint: did you mean {meant}?"
        );
        check(file, &expected);
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let file =
        "workers = 0\n[upstream]\nmax_retransmit = 11\nmax_wait = \"forever\"\n[log]\nlevel = \"inf\"\n";
    let environment = [("COAP_DOWNSTREAM_MAX_WAIT", "soon"), ("COAP_UPSTREAM_MAX_WAIT", "20")];
    let errors = match load(file, &environment, &set(&["x=1", "upstream.queue=many"])) {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors,
    };
    let places: Vec<String> = errors.iter().map(|error| format!("{} {}", error.source, error.key)).collect();
    assert_eq!(
        places,
        [
            "coapway.toml:1 workers",
            "coapway.toml:3 upstream.max_retransmit",
            "coapway.toml:4 upstream.max_wait",
            "coapway.toml:6 log.level",
            "env COAP_DOWNSTREAM_MAX_WAIT downstream.max_wait",
            "--set x",
            "--set upstream.queue",
        ]
    );
}

#[test]
fn what_is_not_toml_hides_what_follows_only() {
    check(
        "workers = 0\n[upstream]\nqueue = 1\nqueue = 2\nallow = [1\n[log]\nlevel = \"inf\"\n",
        "4 errors in the configuration\n\n\
         coapway.toml:1:11: workers = 0\n    \
             out of range; allowed: only 1\n    \
             hint: several workers are not in this version: with one, what is learned of an origin and NSTART are exact\n\n\
         coapway.toml:4:1: queue = 2\n    \
             not TOML: duplicate key\n\n\
         coapway.toml:5:9: upstream.allow = [1 …\n    \
             unknown key\n    \
             hint: did you mean forward.allow?\n\n\
         coapway.toml:6:1: [log]\n    \
             not TOML: missing comma between array elements\n    \
             hint: a table is [name], and one of several [[name]]",
    );
}

#[test]
fn what_is_not_toml_is_told_once_and_with_what_was_meant() {
    for (line, place, hint) in [
        ("[[[listen]]]", "2:3: [[[listen]]]", "a table is [name], and one of several [[name]]"),
        ("upstream.max_wait = 30s", "2:21: upstream.max_wait = 30s", "write upstream.max_wait = \"30s\""),
        ("upstream.max_wait = 'x", "2:23: upstream.max_wait = 'x", "a quote is missing at the end"),
        ("upstream.queue = 3 4", "2:18: upstream.queue = 3 4", "one value in a line"),
        (
            "forward.clients = [10.0.0.0/8]",
            "2:24: forward.clients = [10.0.0.0/8]",
            "write forward.clients = [\"…\", \"…\"]: each text is quoted",
        ),
    ] {
        let told = refused(&format!("# a comment\n{line}\n"), &[], &Overrides::default());
        let begins = format!("1 error in the configuration\n\ncoapway.toml:{place}\n    not TOML: ");
        assert!(told.starts_with(&begins), "{told}");
        assert!(told.ends_with(&format!("\n    hint: {hint}")) && !told.contains("expected"), "{told}");
    }
}

proptest! {
    #[test]
    fn no_input_panics(file: String, name in "COAPWAY__[A-Z_]{0,20}", value: String, set: Vec<String>) {
        let overrides = Overrides { set, reverse: Some(value.clone()), ..Overrides::default() };
        _ = load(&file, &[(&name, &value)], &overrides).map(|config| config.dump());
    }

    #[test]
    fn no_value_panics(
        key in proptest::sample::select(Section::all_keys()),
        value in "[-0-9a-z.:/\\[\\]\",{}= ]{0,20}",
    ) {
        let setting = format!("{key} = {value}\n");
        _ = load(&setting, &[], &Overrides::default()).map(|config| config.dump());
        _ = load("", &[], &set(&[&setting])).map(|config| config.dump());
    }
}

struct Section;

impl Section {
    fn all_keys() -> Vec<String> {
        let entries = crate::settings::Settings::default();
        let entries = entries.sections().into_iter().flat_map(|section| section.entries());
        entries.map(|entry| entry.key).chain(["listen".to_owned(), "routes".to_owned()]).collect()
    }
}
