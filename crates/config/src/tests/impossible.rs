//! What can be read, each value by itself, and could never work.

use super::*;

fn told(file: &str) -> String {
    refused(file, &[], &Overrides::default())
}

fn of_upstream(uri: &str) -> String {
    format!("[[upstreams]]\nname = \"a\"\nuri = \"{uri}\"\n")
}

#[test]
fn an_origin_has_an_address_that_one_host_can_have() {
    for (uri, reason) in [
        ("coap://[fe80::1]", "a link-local address, which leads nowhere without its zone"),
        ("coap://[febf::1]:7", "(RFC 9844); allowed: coap://HOST or coap://HOST:PORT"),
        ("coap://240.0.0.1", "a reserved address, which no host has (240.0.0.0/4"),
        ("coap://[::ffff:250.1.2.3]", "a reserved address"),
        ("coap://0.0.0.0", "an unspecified address"),
        ("coap://[::]", "an unspecified address"),
        ("coap://0.1.2.3", "an address that means \"this network\""),
        ("coap://255.255.255.255", "a broadcast address"),
        ("coap://224.0.1.187", "a multicast address"),
        ("coap://[ff02::fd]", "a multicast address"),
    ] {
        let errors = told(&of_upstream(uri));
        let begins = format!("1 error in the configuration\n\ncoapway.toml:3:7: upstreams.uri = \"{uri}\"\n");
        assert!(errors.starts_with(&begins) && errors.contains(reason), "{errors}");
    }
    let hint = "hint: use another address of the origin, or a name that leads to one";
    assert!(told(&of_upstream("coap://[fe80::1]")).ends_with(hint));
    // Networks for documentation and private ones are somebody's.
    for uri in [
        "coap://192.0.2.1",
        "coap://[2001:db8::1]",
        "coap://169.254.1.1",
        "coap://100.64.0.1",
        "coap://[fd00::1]",
    ] {
        loaded(&of_upstream(uri), &[], &Overrides::default());
    }
}

#[test]
fn a_name_server_is_one_host() {
    for (server, reason) in [
        ("240.0.0.1:53", "a reserved address"),
        ("0.0.0.1:53", "\"this network\""),
        ("[fe80::1]:53", "without its zone"),
    ] {
        let errors = refused("", &[], &set(&[&format!("resolver={server}")]));
        assert!(errors.contains(reason), "{errors}");
    }
    loaded("", &[], &set(&["resolver=[fe80::1%2]:53"]));
}

#[test]
fn bits_behind_a_prefix_leave_open_what_was_meant() {
    for (key, rest) in
        [("forward.clients", "allow = [\"a\"]"), ("forward.allow", "clients = [\"10.0.0.0/8\"]")]
    {
        let (table, name) = key.split_once('.').expect("it is in a table");
        let errors = told(&format!("[{table}]\n{name} = [\"fd00::/8\", \"10.1.2.3/8\"]\n{rest}\n"));
        let begins = format!(
            "1 error in the configuration\n\n\
             coapway.toml:2:{}: {key} = [\"fd00::/8\", \"10.1.2.3/8\"]\n    \
             \"10.1.2.3/8\" has bits behind its prefix; allowed: ",
            name.len() + 4
        );
        assert!(errors.starts_with(&begins), "{errors}");
        assert!(errors.ends_with("hint: the network is 10.0.0.0/8, the one address 10.1.2.3"), "{errors}");
    }
    for (setting, network) in [
        ("clients.trusted=fd00::1/64", "fd00::/64"),
        ("clients.trusted=::ffff:10.1.0.1/112", "10.1.0.0/16"),
        ("clients.trusted=10.0.0.0/8,10.1.2.3/31", "10.1.2.2/31"),
    ] {
        let errors = refused("", &[], &set(&[setting]));
        assert!(errors.contains(&format!("hint: the network is {network}, ")), "{errors}");
    }
    let errors = told("[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"[fd00::1/64]:5683\"]\n");
    assert!(errors.contains("hint: the network is fd00::/64, the one address fd00::1"), "{errors}");
    loaded(
        "[clients]\ntrusted = [\"10.1.2.3\", \"10.1.2.3/32\", \"fd00::1/128\", \"0.0.0.0/0\"]\n",
        &[],
        &set(&[]),
    );
}

#[test]
fn nothing_is_allowed_that_is_never_forwarded_to() {
    for target in ["224.0.1.187", "[ff02::fd]:5683", "ff00::/8"] {
        let errors = told(&format!("[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"{target}\"]\n"));
        assert!(
            errors.contains(&format!("\"{target}\" is multicast, to which nothing is forwarded")),
            "{errors}"
        );
    }
}

#[test]
fn a_window_is_no_larger_than_its_largest() {
    check(
        "[upstream]\nnstart = 8\nnstart_max = 4\n",
        "1 error in the configuration\n\n\
         coapway.toml:3:14: upstream.nstart_max = 4\n    \
             too small for upstream.nstart = 8 (coapway.toml:2); allowed: at least 8\n    \
             hint: nstart_max is for nstart = \"auto\"; beside a number it is left out",
    );
    for section in ["downstream", "upstream"] {
        let file = format!("[{section}]\nnstart_max = 4\n");
        let errors = refused(&file, &[], &set(&[&format!("{section}.nstart=8")]));
        let told = format!(
            "command line: --set {section}.nstart=8\n    too large for {section}.nstart_max = 4 (coapway.toml:2); \
             allowed: at most 4\n"
        );
        assert!(errors.starts_with("1 error in") && errors.contains(&told), "{errors}");
    }
    let named = of_upstream("coap://a") + "nstart = 3\nnstart_max = 2\n";
    assert!(told(&named).contains("upstreams.a.nstart_max = 2\n    too small for upstreams.a.nstart = 3"));
    // A limit that nobody wrote, or that was written for all origins, makes way.
    for file in [
        "[upstream]\nnstart = 5000\n".to_owned(),
        "[upstream]\nprofile = \"lan\"\nnstart = 9000\n".to_owned(),
        format!("[upstream]\nnstart_max = 4\n{}nstart = 8\n", of_upstream("coap://a")),
        "[upstream]\nnstart = 4\nnstart_max = 4\n".to_owned(),
    ] {
        loaded(&file, &[], &Overrides::default());
    }
    let both = format!("[upstream]\nnstart = 8\nnstart_max = 4\n{}", of_upstream("coap://a"));
    assert!(told(&both).starts_with("1 error in"), "it is told once");
}

#[test]
fn a_first_wait_is_no_longer_than_the_longest_first_wait() {
    check(
        "[upstream]\nack_timeout = \"6s\"\nrto.cap = \"5s\"\nrto.estimator = \"p95\"\n",
        "1 error in the configuration\n\n\
         coapway.toml:3:11: upstream.rto.cap = 5s\n    \
             too small for upstream.ack_timeout = 6s (coapway.toml:2); allowed: at least 6s\n    \
             hint: the first wait before anything is learned would be above the largest one after",
    );
    for file in [
        "[upstream]\nack_timeout = \"20s\"\nrto.estimator = \"p95\"\n",
        "[upstream]\nack_timeout = \"5s\"\nrto = { cap = \"5s\", estimator = \"p95\" }\n",
        "[upstream]\nack_timeout = \"6s\"\nrto = { cap = \"5s\", estimator = \"budget\" }\n",
    ] {
        loaded(file, &[], &Overrides::default());
    }
}

#[test]
fn a_limit_that_is_held_to_another_is_told() {
    let warned = |file: &str| {
        let config = loaded(file, &[], &Overrides::default());
        config.warnings().iter().any(|warning| {
            warning == "upstream.max_retransmit_non_idempotent = 3 is held to upstream.max_retransmit = 2"
        })
    };
    assert!(warned("[upstream]\nmax_retransmit = 2\nmax_retransmit_non_idempotent = 3\n"));
    assert!(!warned("[upstream]\nmax_retransmit = 3\nmax_retransmit_non_idempotent = 3\n"));
    let default = loaded("[upstream]\nmax_retransmit = 0\n", &[], &Overrides::default());
    assert!(!default.warnings().iter().any(|warning| warning.contains("is held to upstream.")));
}

#[test]
fn a_key_is_set_once() {
    let told =
        |settings: &[&str]| set(settings).repeated().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        told(&["upstream.queue=5", "upstream.max_wait=20s", " upstream.queue = 6", "nonsense", "nonsense"]),
        ["command line: --set upstream.queue=6\n    \
          given twice\n    \
          hint: the first one is --set upstream.queue=5; leave one of them out"]
    );
    assert_eq!(told(&["listen=coap://[::1]", "listen=coap://[::1]"]).len(), 1);
    assert_eq!(told(&["upstream.queue=5", "upstream.max_wait=20s"]), [""; 0]);
}

#[test]
fn memory_that_is_not_there_is_told_with_the_keys_that_want_it() {
    let file = "[limits]\nfetches = 16777216\n";
    let config = loaded(file, &[], &set(&["dedup.memory=64GiB"]));
    let told = config.memory_beyond(8 << 30, "this host").expect("it is not there");
    assert!(told.contains(" and this host has 8192MiB: "), "{told}");
    let keys = "above all of limits.fetches = 16777216 (coapway.toml:2), dedup.memory = 64GiB (--set)";
    assert!(told.ends_with(keys), "{told}");
    // Where one of them is enough, the other one is not to blame.
    let told = config.memory_beyond(100 << 30, "this host").expect("it is not there");
    assert!(told.ends_with("above all of limits.fetches = 16777216 (coapway.toml:2)"), "{told}");
    assert_eq!(config.memory_beyond(1 << 40, "this host"), None);
    let bound = config.memory().total();
    assert!(
        config.memory_beyond(bound, "this host").is_none() && config.memory_beyond(bound - 1, "x").is_some()
    );
}

#[test]
fn targets_that_lack_a_zone_are_none() {
    let allowing = |target: &str| format!("[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"{target}\"]\n");
    for target in ["fe80::/10", "fe80::1", "[fe80::1]:5683", "[fe80::/64]:7", "febf::/16"] {
        let errors = told(&allowing(target));
        let reason = format!("\"{target}\" is link-local, which leads nowhere without its zone");
        assert!(errors.contains(&reason), "{errors}");
        assert!(errors.contains("hint: list other addresses of these targets"), "{errors}");
    }
    for target in ["::/0", "fe80::/9", "fd00::/8", "169.254.0.0/16"] {
        loaded(&allowing(target), &[], &Overrides::default());
    }
}
