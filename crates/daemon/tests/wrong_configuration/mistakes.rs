//! Mistakes of each kind, and what is told about them.

/// A mistake, where it was made, and what has to be told about it.
pub(crate) struct Mistake {
    pub(crate) kind: &'static str,
    pub(crate) file: &'static [u8],
    pub(crate) environment: &'static [(&'static str, &'static str)],
    pub(crate) arguments: &'static [&'static str],
    pub(crate) told: &'static [&'static str],
}

const fn in_file(kind: &'static str, file: &'static str, told: &'static [&'static str]) -> Mistake {
    Mistake { kind, file: file.as_bytes(), environment: &[], arguments: &[], told }
}

const fn in_environment(
    kind: &'static str,
    environment: &'static [(&'static str, &'static str)],
    told: &'static [&'static str],
) -> Mistake {
    Mistake { kind, file: b"", environment, arguments: &[], told }
}

const fn in_arguments(
    kind: &'static str,
    arguments: &'static [&'static str],
    told: &'static [&'static str],
) -> Mistake {
    Mistake { kind, file: b"", environment: &[], arguments, told }
}

pub(crate) const MISTAKES: &[Mistake] = &[
    in_file(
        "unknown key, mistyped",
        "[upstream]\nack_timout = \"2s\"\n",
        &[
            "coapway.toml:2:14: upstream.ack_timout = \"2s\"",
            "unknown key",
            "did you mean upstream.ack_timeout?",
        ],
    ),
    in_file(
        "unknown key, like no other",
        "[log]\ncolour = true\n",
        &["coapway.toml:2:10: log.colour = true", "unknown key", "known here: file, format, level"],
    ),
    in_file(
        "unknown table",
        "\n[upstraem]\nqueue = 3\n",
        &["coapway.toml:2:2: upstraem", "unknown key", "did you mean upstream?"],
    ),
    in_file(
        "table that is inside of another",
        "[retry]\nmax_attempts = 2\n",
        &["coapway.toml:1:2: retry", "unknown key", "did you mean upstream.retry?"],
    ),
    in_file(
        "key of another table",
        "[downstream]\nqueue = 3\n",
        &["coapway.toml:2:9: downstream.queue = 3", "unknown key", "did you mean upstream.queue?"],
    ),
    in_file(
        "text for a number",
        "[upstream]\nqueue = \"many\"\n",
        &["coapway.toml:2:9: upstream.queue = \"many\"", "not a whole number", "allowed: 0 to 1048576"],
    ),
    in_file(
        "number for a boolean",
        "[upstream]\ndeduplicates = 1\n",
        &["coapway.toml:2:16: upstream.deduplicates = 1", "not a boolean", "allowed: true or false"],
    ),
    in_file(
        "fraction for a count",
        "[upstream]\nmax_retransmit = 2.5\n",
        &["coapway.toml:2:18: upstream.max_retransmit = 2.5", "not a whole number", "allowed: 0 to 10"],
    ),
    in_file(
        "text for a list",
        "[forward]\nclients = \"10.0.0.0/8\"\nallow = [\"a\"]\n",
        &[
            "coapway.toml:2:11: forward.clients = \"10.0.0.0/8\"",
            "not an array of strings",
            "allowed: networks",
        ],
    ),
    in_file(
        "value for a table",
        "upstream = 3\n",
        &["coapway.toml:1:12: upstream", "a table, not a value", "its keys are ack_random_factor"],
    ),
    in_file(
        "too small",
        "[upstream]\nack_timeout = \"5ms\"\n",
        &["coapway.toml:2:15: upstream.ack_timeout = \"5ms\"", "out of range; allowed: 10ms to 60s"],
    ),
    in_file(
        "too large",
        "[downstream]\nack_random_factor = 3.5\n",
        &["coapway.toml:2:21: downstream.ack_random_factor = 3.5", "out of range; allowed: 1.0 to 3.0"],
    ),
    in_file(
        "larger than any number",
        "[limits]\nfetches = 99999999999999999999999999999999999999999\n",
        &["coapway.toml:2:11: limits.fetches = 9999", "too large; allowed: 1 to 16777216"],
    ),
    in_file(
        "below what the protocol allows",
        "[upstream]\nack_random_factor = 0.9\n",
        &["coapway.toml:2:21: upstream.ack_random_factor = 0.9", "allowed: 1.0 to 3.0", "RFC 7252 §4.8.1"],
    ),
    in_file(
        "negative",
        "[upstream]\nqueue = -1\n",
        &["coapway.toml:2:9: upstream.queue = -1", "out of range; allowed: 0 to 1048576"],
    ),
    in_file(
        "not a number",
        "[upstream]\nrto.factor = nan\n",
        &["coapway.toml:2:14: upstream.rto.factor = nan", "out of range; allowed: 1.0 to 10.0"],
    ),
    in_file(
        "infinite",
        "[record]\nsample = inf\n",
        &["coapway.toml:2:10: record.sample = inf", "out of range; allowed: 1e-6 to 1.0"],
    ),
    in_file(
        "no window at all",
        "[downstream]\nnstart = 0\n",
        &["coapway.toml:2:10: downstream.nstart = 0", "allowed: \"auto\" or 1 to 65536"],
    ),
    in_file(
        "no unit",
        "[upstream]\nmax_wait = 30\n",
        &[
            "coapway.toml:2:12: upstream.max_wait = 30",
            "needs a unit; allowed: 100ms to 3600s",
            "\"2s\" or \"500ms\"",
        ],
    ),
    in_file(
        "another unit",
        "[dedup]\nmemory = \"256MB\"\n",
        &[
            "coapway.toml:2:10: dedup.memory = \"256MB\"",
            "unknown unit \"MB\"; allowed: 1MiB to 64GiB",
            "B, KiB, MiB",
        ],
    ),
    in_file(
        "no such choice",
        "[upstream]\npost_guard = \"fingerprnt\"\n",
        &[
            "coapway.toml:2:14: upstream.post_guard = \"fingerprnt\"",
            "allowed: \"none\", \"fingerprint\" or \"request-tag\"",
            "did you mean \"fingerprint\"?",
        ],
    ),
    in_file(
        "duplicate key",
        "[upstream]\nqueue = 1\nqueue = 2\n",
        &["coapway.toml:3:1: queue = 2", "duplicate key"],
    ),
    in_file(
        "no quotes",
        "[upstream]\nmax_wait = 30s\n",
        &[
            "coapway.toml:2:12: max_wait = 30s",
            "not TOML: string values must be quoted\n",
            "write max_wait = \"30s\"",
        ],
    ),
    in_file(
        "brackets too many",
        "[[[listen]]]\nuri = \"coap://[::1]\"\n",
        &["1 error", "coapway.toml:1:3: [[[listen]]]", "a table is [name], and one of several [[name]]"],
    ),
    in_file(
        "no program for alerts",
        "on_alert = []\n",
        &["coapway.toml:1:12: on_alert = []", "no program; allowed: an array", "\"off\""],
    ),
    in_file("not TOML", "[upstream]\nqueue 5\n", &["coapway.toml:2:", "queue 5", "not TOML"]),
    Mistake {
        kind: "not UTF-8",
        file: b"[upstream]\n# f\xFCr\n",
        environment: &[],
        arguments: &[],
        told: &["coapway.toml:2:4", "not UTF-8: byte 0xFC"],
    },
    in_file(
        "two upstreams of one name",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[[upstreams]]\nname = \"a\"\nuri = \"coap://b\"\n",
        &["coapway.toml:4:1: upstreams.name = \"a\"", "a second upstream with this name", "coapway.toml:1"],
    ),
    in_file(
        "upstream without a place",
        "[[upstreams]]\nname = \"a\"\n",
        &["coapway.toml:1:1: upstreams.uri", "missing"],
    ),
    in_file(
        "route to nowhere",
        "[[upstreams]]\nname = \"boiler\"\nuri = \"coap://b\"\n[[routes]]\npath = \"/\"\nupstream = \"boilr\"\n",
        &["coapway.toml:6:12: routes.upstream = \"boilr\"", "no such upstream", "the upstreams are boiler"],
    ),
    in_file(
        "two equal routes",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[[routes]]\npath = \"/x\"\nupstream = \"a\"\n\
         [[routes]]\npath = \"/x\"\nupstream = \"a\"\n",
        &["coapway.toml:8:8: routes.path = \"/x\"", "a second route for the same requests"],
    ),
    in_file(
        "bad path",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[[routes]]\npath = \"x\"\nupstream = \"a\"\n",
        &["coapway.toml:5:8: routes.path = \"x\"", "does not begin with /; allowed: a path like /boiler"],
    ),
    in_file(
        "bad URI",
        "[[upstreams]]\nname = \"a\"\nuri = \"10.1.2.3\"\n",
        &["coapway.toml:3:7: upstreams.uri = \"10.1.2.3\"", "allowed: coap://HOST", "write coap://10.1.2.3"],
    ),
    in_file(
        "scheme that is not spoken",
        "[[listen]]\nuri = \"coaps://127.0.0.1\"\n",
        &[
            "coapway.toml:2:7: listen",
            "\"coaps://127.0.0.1\"",
            "allowed: coap://ADDRESS:PORT",
            "CoAP over UDP only",
        ],
    ),
    in_file(
        "bad network",
        "[clients]\ntrusted = [\"10.0.0.0/33\"]\n",
        &[
            "coapway.toml:2:11: clients.trusted = [\"10.0.0.0/33\"]",
            "is not a network; allowed: networks like",
        ],
    ),
    in_file(
        "bad target",
        "[forward]\nclients = [\"10.0.0.0/8\"]\nallow = [\"*plant\"]\n",
        &["coapway.toml:3:9: forward.allow = [\"*plant\"]", "neither an address", "allowed: targets like"],
    ),
    in_file(
        "two keys against each other",
        "[downstream]\nclient_ack_timeout = \"800ms\"\n",
        &[
            "coapway.toml:2:22: downstream.client_ack_timeout = 800ms",
            "too small for downstream.early_ack_after = 500ms (default)",
            "allowed: at least 1s",
        ],
    ),
    in_file(
        "the same origin twice",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://a\"\n[[upstreams]]\nname = \"b\"\nuri = \"coap://A:5683\"\n",
        &[
            "coapway.toml:6:7: upstreams.b.uri = coap://a:5683",
            "the same origin as upstreams.a.uri (coapway.toml:3)",
        ],
    ),
    in_file(
        "open proxy",
        "[[listen]]\nuri = \"coap://0.0.0.0\"\n[forward]\nenabled = true\n",
        &[
            "coapway.toml:4:11: forward",
            "needs forward.clients and forward.allow",
            "an open proxy is never run",
        ],
    ),
    in_file(
        "circle",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://127.0.0.1\"\n",
        &[
            "coapway.toml:3:7: upstreams.a.uri = coap://127.0.0.1:5683",
            "our own listener",
            "round in a circle",
        ],
    ),
    in_file(
        "circle by way of a listener on all addresses",
        "[forward]\nenabled = false\n[[listen]]\nuri = \"coap://[::]\"\n\
         [[upstreams]]\nname = \"a\"\nuri = \"coap://127.0.0.1\"\n",
        &["coapway.toml:7:7: upstreams.a.uri = coap://127.0.0.1:5683", "our own listener [::]:5683"],
    ),
    in_arguments(
        "circle by way of a name",
        &["--reverse", "coap://localhost:5683"],
        &[
            "command line: --reverse coap://localhost:5683",
            "where our own listener 127.0.0.1:5683 takes what is sent",
            "allowed: the origin's own address and port",
        ],
    ),
    in_file(
        "link-local origin",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://[fe80::1]\"\n",
        &[
            "coapway.toml:3:7: upstreams.uri = \"coap://[fe80::1]\"",
            "nowhere without its zone, and a coap URI has no place for one",
            "allowed: coap://HOST",
        ],
    ),
    in_file(
        "address that no host has",
        "[[upstreams]]\nname = \"a\"\nuri = \"coap://240.0.0.1\"\n",
        &[
            "coapway.toml:3:7: upstreams.uri = \"coap://240.0.0.1\"",
            "a reserved address",
            "allowed: coap://HOST",
        ],
    ),
    in_file(
        "window above the largest one",
        "[upstream]\nnstart = 8\nnstart_max = 4\n",
        &[
            "coapway.toml:3:14: upstream.nstart_max = 4",
            "too small for upstream.nstart = 8 (coapway.toml:2)",
            "allowed: at least 8",
        ],
    ),
    in_file(
        "bits behind a prefix",
        "[forward]\nclients = [\"10.1.2.3/8\"]\nallow = [\"a\"]\n",
        &[
            "coapway.toml:2:11: forward.clients = [\"10.1.2.3/8\"]",
            "bits behind its prefix; allowed: networks like",
            "the network is 10.0.0.0/8",
        ],
    ),
    in_arguments(
        "--set twice",
        &["--set", "upstream.queue=5", "--set", "upstream.queue=6"],
        &[
            "command line: --set upstream.queue=6",
            "given twice",
            "the first one is --set upstream.queue=5; leave one of them out",
        ],
    ),
    in_file(
        "listener twice",
        "[[listen]]\nuri = \"coap://[::1]\"\n[[listen]]\nuri = \"coap://[::1]:5683\"\n",
        &["coapway.toml:4:7: listen = \"coap://[::1]:5683\"", "twice the same address"],
    ),
    in_file(
        "listener inside another",
        "[[listen]]\nuri = \"coap://[::]\"\n[[listen]]\nuri = \"coap://127.0.0.1\"\n",
        &["coapway.toml:4:7: listen = coap://127.0.0.1:5683", "already listened on by coap://[::]:5683"],
    ),
    in_file(
        "listener on another host's address",
        "[forward]\nenabled = false\n[[listen]]\nuri = \"coap://127.0.0.1:5683\"\n[[listen]]\nuri = \"coap://192.0.2.1\"\n",
        &[
            "coapway.toml:6:7: listen = coap://192.0.2.1:5683",
            "not an address of this host; allowed: 0.0.0.0, 127.0.0.1",
            "coap://0.0.0.0:5683 listens on all",
        ],
    ),
    in_file(
        "listener on a broadcast address",
        "[[listen]]\nuri = \"coap://255.255.255.255\"\n",
        &["coapway.toml:2:7: listen", "a broadcast address; allowed: coap://ADDRESS:PORT"],
    ),
    in_file(
        "records into nowhere",
        "[record]\nfile = \"/no/such/place/records\"\n",
        &["coapway.toml:2:8: record.file = /no/such/place/records", "no directory /no/such/place"],
    ),
    in_file(
        "no hosts file",
        "resolver = \"hosts:/no/such/hosts\"\n",
        &["coapway.toml:1:12: resolver = hosts:/no/such/hosts", "cannot be read"],
    ),
    in_file(
        "hosts file that is none",
        "resolver = \"hosts:/dev/zero\"\n",
        &["coapway.toml:1:12: resolver = hosts:/dev/zero", "not a file"],
    ),
    in_file(
        "name server without port",
        "resolver = \"9.9.9.9\"\n",
        &["coapway.toml:1:12: resolver = \"9.9.9.9\"", "no port; allowed: \"system\"", "write 9.9.9.9:53"],
    ),
    in_environment(
        "bad variable",
        &[("COAP_UPSTREAM_ACK_TIMEOUT", "abc")],
        &[
            "environment: COAP_UPSTREAM_ACK_TIMEOUT=abc",
            "not a number of seconds; allowed: 0.01 to 60 seconds",
        ],
    ),
    in_environment(
        "mistyped variable",
        &[("COAP_UPSTREAM_ACK_TIMOUT", "2")],
        &[
            "environment: COAP_UPSTREAM_ACK_TIMOUT=2",
            "unknown variable",
            "did you mean COAP_UPSTREAM_ACK_TIMEOUT?",
        ],
    ),
    in_environment(
        "variable of a key that has another",
        &[("COAPWAY__UPSTREAM__MAX_WAIT", "20s")],
        &[
            "environment: COAPWAY__UPSTREAM__MAX_WAIT=20s",
            "a variable of its own",
            "set COAP_UPSTREAM_MAX_WAIT",
        ],
    ),
    in_arguments(
        "bad --set",
        &["--set", "upstream.nstart=0"],
        &["command line: --set upstream.nstart=0", "out of range; allowed: \"auto\" or 1 to 65536"],
    ),
    in_arguments(
        "--set without value",
        &["--set", "upstream.max_wait"],
        &["command line: --set upstream.max_wait", "no value", "--set upstream.max_wait=20s"],
    ),
    in_arguments(
        "bad --listen",
        &["--listen", "coap://localhost"],
        &["command line: --listen coap://localhost", "a name, not an address; allowed: coap://ADDRESS:PORT"],
    ),
    in_environment(
        "listener on another host's address, by variable",
        &[("COAPWAY__LISTEN", "coap://[2001:db8::1]"), ("COAPWAY__FORWARD__ENABLED", "false")],
        &[
            "environment: COAPWAY__LISTEN=coap://[2001:db8::1]:5683",
            "not an address of this host; allowed: [::]",
        ],
    ),
    in_arguments(
        "listener on another host's address, by option",
        &["--listen", "coap://192.0.2.1:7", "--set", "forward.enabled=false"],
        &["command line: --listen coap://192.0.2.1:7", "not an address of this host; allowed: 0.0.0.0"],
    ),
    in_arguments(
        "listener on a group",
        &["--listen", "coap://224.0.1.187"],
        &[
            "command line: --listen coap://224.0.1.187",
            "a multicast address",
            "multicast is not in this version",
        ],
    ),
    in_arguments(
        "bad --reverse",
        &["--reverse", "coap://10.1.2.3/x"],
        &["command line: --reverse coap://10.1.2.3/x", "has a path or a query; allowed: coap://HOST"],
    ),
    in_arguments(
        "interface that is not there",
        &["--admin", "127.0.0.1:8080"],
        &["command line: --admin 127.0.0.1:8080", "not in this version; allowed: \"off\""],
    ),
    in_arguments(
        "unknown option",
        &["--lissen", "coap://[::1]"],
        &["unexpected argument '--lissen'", "--listen"],
    ),
];
