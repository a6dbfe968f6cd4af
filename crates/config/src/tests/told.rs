//! What is told of an error, and what is not.

use super::*;

#[test]
fn what_only_follows_from_an_error_is_not_told() {
    for (file, told) in [
        (
            "[forward]\nclients = [\"10.0.0.0/33\"]\nallow = [\"10.0.0.0/8\"]\n",
            "2:11: forward.clients = [\"10.0.0.0/33\"]",
        ),
        ("[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"*\"]\n", "3:9: forward.allow = [\"*\"]"),
        ("[forward]\nclients = [\"10.0.0.0/8\"]\nalow = [\"10.0.0.0/8\"]\n", "did you mean forward.allow?"),
        ("[[listen]]\nuri = \"coap://10.0.0.1\"\n[forward]\nenabled = 1\n", "4:11: forward.enabled = 1"),
        ("[upstream.rto]\ncap = \"10\"\nfloor = \"11s\"\n", "2:7: upstream.rto.cap = \"10\""),
        ("[downstream]\nearly_ack_after = 1\nclient_ack_timeout = \"800ms\"\n", "2:19: downstream.early_ack"),
        (
            "[[listen]]\nuri = \"coap://[::1\"\n[[upstreams]]\nname = \"a\"\nuri = \"coap://127.0.0.1\"\n",
            "2:7: listen.uri = \"coap://[::1\"",
        ),
        ("[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [10.0.0.0/8]\n", "not TOML"),
        ("[upstream]\nrto.floor = \"11s\"\nrto.cap = 20s\n", "not TOML"),
    ] {
        let errors = refused(file, &[], &Overrides::default());
        assert!(errors.starts_with("1 error in") && errors.contains(told), "{file}{errors}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_shown() {
    check(
        "upstream = 5\n",
        &format!(
            "1 error in the configuration\n\n\
             coapway.toml:1:12: upstream = 5\n    \
                 a table, not a value\n    \
                 hint: its keys are {}",
            keys_of_upstream()
        ),
    );
    check(
        "[record.file]\n",
        "1 error in the configuration\n\n\
         coapway.toml:1:9: record.file\n    \
             a value, not a table; allowed: a file, \"-\" for standard output, or \"off\"",
    );
}

fn keys_of_upstream() -> String {
    let errors = refused("upstream = 5\n", &[], &Overrides::default());
    let keys = errors.split_once("its keys are ").expect("they are told").1;
    assert!(keys.contains("ack_timeout, ") && keys.ends_with("token"), "{keys}");
    keys.to_owned()
}

#[test]
fn listeners_are_one_address_each_and_one_at_least() {
    let option = |uris: &[&str]| {
        let listen = uris.iter().map(|uri| (*uri).to_owned()).collect();
        refused("", &[], &Overrides { listen, ..Overrides::default() })
    };
    assert_eq!(
        option(&["coap://127.0.0.1,coap://[::1]"]),
        "1 error in the configuration\n\n\
         command line: --listen coap://127.0.0.1,coap://[::1]\n    \
             several addresses in one value; allowed: coap://ADDRESS:PORT\n    \
             hint: one for each --listen, which may be repeated, and for each [[listen]]"
    );
    assert!(option(&["a,b"]).contains("several addresses in one value"));
    assert!(option(&[""]).contains("\n    empty; allowed: coap://ADDRESS:PORT"), "{}", option(&[""]));
    let empty = "an empty list; allowed: coap://ADDRESS:PORT, one or several with commas\n    \
                 hint: left out, it is coap://127.0.0.1:5683; a proxy listens somewhere";
    let listed = |value: &str| refused("", &[], &set(&[&format!("listen={value}")]));
    assert_eq!(
        listed("[]"),
        format!("1 error in the configuration\n\ncommand line: --set listen=[]\n    {empty}")
    );
    assert!(listed("[1]").contains("\n    not a list of URIs; allowed: coap://ADDRESS:PORT"));
    check(
        "listen = []\n",
        "1 error in the configuration\n\n\
         coapway.toml:1:10: listen = []\n    \
             an empty list\n    \
             hint: left out, it is coap://127.0.0.1:5683; a proxy listens somewhere",
    );
}

#[test]
fn nobody_is_given_a_control_character() {
    for (setting, reason) in [
        ("on_alert = [\"/bin/sh\", \"a\\u0000b\"]", "holds a NUL"),
        ("on_alert = [\"/bin/\\u0000sh\"]", "holds a NUL"),
        ("state = \"a\\u0000b\"", "holds a control character"),
        ("record.file = \"a\\u001b[31mb\"", "holds a control character"),
        ("log.file = \"a\\nb\"", "holds a control character"),
        ("resolver = \"hosts:a\\u009bb\"", "holds a control character"),
    ] {
        let errors = refused(&format!("{setting}\n"), &[], &Overrides::default());
        assert!(errors.starts_with("1 error in") && errors.contains(reason), "{errors}");
    }
    loaded("on_alert = [\"/bin/sh\", \"-c\", \"one\\n\\ttwo\"]\n", &[], &Overrides::default());
}

#[test]
fn text_from_outside_is_shown_without_its_control_characters() {
    let hostile = "\x1b[2J\u{9b}1m\0\r";
    let path = Path::new("coap\x1bway.toml");
    let file =
        "\"a\\u001b[2Jb\" = 1\n[log]\nfile = 'a\x1b'\nlevel = \"\u{9b}\"\n[upstream]\nqueue = \"\\r\"\n";
    let uri = format!("coap://{hostile}");
    let overrides = Overrides {
        set: vec![format!("{hostile}={hostile}"), format!("resolver={hostile}"), hostile.to_owned()],
        listen: vec![uri.clone()],
        reverse: Some(uri),
        record: Some(hostile.to_owned()),
        ..Overrides::default()
    };
    let environment = [("COAPWAY__\x1b[2J", hostile), ("COAPWAY__FORWARD__CLIENTS", hostile)];
    let errors = Config::load(Some((path, file)), environment, &overrides).map(|config| config.dump());
    let errors = errors.expect_err("nothing of it is right").to_string();
    assert!(errors.lines().count() > 30, "{errors:?}");
    assert!(errors.contains("coap\\u{1b}way.toml:"), "{errors:?}");
    assert!(!errors.replace('\n', "").contains(char::is_control), "{errors:?}");
}
