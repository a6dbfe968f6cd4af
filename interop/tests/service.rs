//! A life as a service: other settings under load, files that move, an end that leaves nobody waiting.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use coapway_interop::clock::now;
use coapway_interop::coapway::{Launch, Proxy};
use coapway_interop::datagram::{CONTENT, Code, Datagram, GATEWAY_TIMEOUT, GET, Kind, POST, option};
use coapway_interop::load::{Load, Outcome, codes};
use coapway_interop::process::{Family, free_port};
use coapway_interop::raw::{RawClient, RawOrigin, Reply};
use tempfile::TempDir;

const CHANGED: Code = Code(0x44);
const SERVICE_UNAVAILABLE: Code = Code(0xa3);
const RELOADED: &str = "configuration reloaded";
const NOT_RELOADED: &str = "configuration not reloaded";

/// Answers with the path it was asked for, some of it later.
fn echo(request: &Datagram) -> Vec<Reply> {
    let path = request.values(option::URI_PATH).concat();
    let code = if request.code == POST { CHANGED } else { CONTENT };
    let answer = request.piggybacked(code).payload(&path);
    match () {
        () if path.starts_with(b"slow") => vec![Reply::later(Duration::from_millis(700), &answer)],
        () if path.starts_with(b"never") => Vec::new(),
        () => vec![Reply::now(&answer)],
    }
}

/// A proxy with a file of settings, between two origins.
struct Stage {
    directory: TempDir,
    listener: SocketAddr,
    origins: [RawOrigin; 2],
}

impl Stage {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("the folder for temporary files is writable"),
            listener: Family::V4.address(free_port()),
            origins: [RawOrigin::start(Family::V4, echo), RawOrigin::start(Family::V4, echo)],
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the file anew: `top` stands at its top, `more` at its end.
    fn write(&self, top: &str, more: &str) {
        let [a, b] = &self.origins;
        let text = format!(
            "{top}\n[[listen]]\nuri = \"coap://{}\"\n\
             [[upstreams]]\nname = \"a\"\nuri = \"coap://{}\"\n[[routes]]\npath = \"/a\"\nupstream = \"a\"\n\
             [[upstreams]]\nname = \"b\"\nuri = \"coap://{}\"\n[[routes]]\npath = \"/b\"\nupstream = \"b\"\n{more}\n",
            self.listener,
            a.address(),
            b.address()
        );
        fs::write(self.path("coapway.toml"), text).expect("the file is writable");
    }

    fn launch(&self) -> Launch {
        Launch::config(&self.path("coapway.toml"), &[self.listener])
    }

    /// Sends a signal and waits until the log says `words` once more.
    fn tell(proxy: &Proxy, signal: &str, words: &str) {
        let count = |log: &str| log.matches(words).count();
        let before = count(&proxy.process().output());
        proxy.process().signal(signal);
        wait_until(words, || count(&proxy.process().output()) > before);
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let limit = now() + Duration::from_secs(20);
    while !is_so() {
        assert!(now() < limit, "never: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// A request out of the load: to both origins, GET and POST, one in 16 answered late.
fn mixed(number: u64, request: Datagram) -> Datagram {
    let name = if number.is_multiple_of(16) { format!("slow{number}") } else { format!("quick{number}") };
    let code = if number % 3 == 1 { POST } else { GET };
    let code = if name.starts_with("slow") { GET } else { code };
    Datagram { code, ..request }
        .option(option::URI_PATH, if number.is_multiple_of(2) { "a" } else { "b" })
        .option(option::URI_PATH, name)
}

/// Panics unless each was answered, once.
fn check_each_answered_once(outcomes: &[Outcome]) {
    let unanswered: Vec<_> = outcomes.iter().filter(|outcome| outcome.answer.is_none()).collect();
    assert_eq!(unanswered.len(), 0, "of {}, unanswered: {:?}", outcomes.len(), unanswered.first());
    let twice: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.second.as_ref()).collect();
    assert_eq!(twice.len(), 0, "of {}, answered twice: {:?}", outcomes.len(), twice.first());
}

#[test]
fn a_hundred_reloads_under_load_lose_nothing_and_answer_nothing_twice() {
    let stage = Stage::new();
    let spare = Family::V4.address(free_port());
    let record = stage.path("records");
    let variants = [
        ("", String::new()),
        ("upstream.max_wait = \"20s\"\nupstream.nstart = 64\n", String::new()),
        ("", "[[upstreams]]\nname = \"c\"\nuri = \"coap://127.0.0.1:9\"\n".to_owned()),
        ("upstream.rto.estimator = \"fixed\"\n", format!("[[listen]]\nuri = \"coap://{spare}\"\n")),
        ("limits.hints = 7\ndedup.memory = \"64MiB\"\n", String::new()),
        ("", format!("[record]\nfile = \"{}\"\n", record.display())),
    ];
    let (top, more) = &variants[0];
    stage.write(top, more);
    let proxy = stage.launch().set(&["log.level=info"]).start();
    let load = Load::start(stage.listener, 16, 400, mixed);
    for reload in 1..=100 {
        let (top, more) = &variants[reload % variants.len()];
        stage.write(top, more);
        Stage::tell(&proxy, "HUP", RELOADED);
    }
    let outcomes = load.finish(Duration::from_secs(20));
    assert!(outcomes.len() > 200, "a load worth the name: {}", outcomes.len());
    check_each_answered_once(&outcomes);
    assert_eq!(codes(&outcomes).keys().copied().collect::<Vec<_>>(), [CHANGED.0, CONTENT.0]);
    let log = proxy.stop();
    assert!(log.contains("upstream.nstart: auto → 64"), "{log}");
    assert_eq!(log.matches(NOT_RELOADED).count(), 0, "{log}");
}

#[test]
fn a_bad_file_changes_nothing_and_each_error_names_its_line() {
    let stage = Stage::new();
    stage.write("", "");
    let proxy = stage.launch().start();
    let ask = |segment: &str| {
        let request =
            RawClient::reverse_request(Kind::Confirmable, GET, "a").option(option::URI_PATH, segment);
        RawClient::new(stage.listener).settle(&request, Duration::from_secs(5)).answer
    };
    assert_eq!(ask("one").payload, b"one");

    // Three errors, and a good change that must not happen either.
    stage.write(
        "upstream.max_wait = \"5h\"\nupstream.nstrat = 3\nforward.enabled = true",
        "[limits]\nfetches = 0\n",
    );
    Stage::tell(&proxy, "HUP", NOT_RELOADED);
    let log = proxy.process().output();
    let file = stage.path("coapway.toml");
    let line = |line: u32, words: &[&str]| {
        let place = format!("{}:{line}:", file.display());
        let told = log.lines().find(|told| told.contains(&place));
        let told = told.unwrap_or_else(|| panic!("nothing of line {line}:\n{log}"));
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
    };
    line(1, &["upstream.max_wait", "5h", "out of range; allowed:", "to 3600s"]);
    line(2, &["upstream.nstrat", "did you mean"]);
    line(19, &["limits.fetches = 0", "allowed: "]);
    assert!(log.contains("errors=3"), "{log}");
    assert!(!log.contains(" → "), "{log}");
    assert_eq!(ask("two").payload, b"two");

    // A port that is taken, beside a good change.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let address = taken.local_addr().expect("it is bound");
    stage.write("drain_timeout = \"1s\"", &format!("[[listen]]\nuri = \"coap://{address}\"\n"));
    Stage::tell(&proxy, "HUP", NOT_RELOADED);
    let log = proxy.process().output();
    assert!(log.contains(&format!(":17:7: listen = coap://{address}; the port is in use")), "{log}");
    assert!(!log.contains("drain_timeout: "), "{log}");

    fs::remove_file(&file).expect("it is there");
    Stage::tell(&proxy, "HUP", NOT_RELOADED);
    assert!(proxy.process().output().contains("cannot be read"));
    assert_eq!(ask("three").payload, b"three");

    stage.write("drain_timeout = \"1s\"", "");
    Stage::tell(&proxy, "HUP", RELOADED);
    let log = proxy.stop();
    assert!(log.contains(&format!("drain_timeout: 30s → 1s ({}:1)", file.display())), "{log}");
}

/// Panics unless each of those that were accepted was answered, and no one twice. Accepted is what was
/// sent before the signal and what was acknowledged at any time.
fn check_each_accepted_answered(outcomes: &[Outcome], signal: Instant) {
    let accepted = |outcome: &Outcome| outcome.sent < signal || outcome.acknowledged;
    let accepted: Vec<_> = outcomes.iter().filter(|outcome| accepted(outcome)).cloned().collect();
    check_each_answered_once(&accepted);
    assert!(outcomes.iter().all(|outcome| outcome.second.is_none()), "answered twice");
}

#[test]
fn a_stop_under_load_answers_every_request_that_was_accepted() {
    let stage = Stage::new();
    stage.write("drain_timeout = \"1.5s\"", "");
    let proxy = stage.launch().start();
    let load = Load::start(stage.listener, 16, 400, |number, request| match number % 20 {
        0 => {
            Datagram { code: POST, ..request }.option(option::URI_PATH, "a").option(option::URI_PATH, "never")
        }
        _ => mixed(number, request),
    });
    thread::park_timeout(Duration::from_secs(2));
    let signal = now();
    let log = proxy.stop();
    let took = now() - signal;
    let outcomes = load.finish(Duration::from_millis(100));
    check_each_accepted_answered(&outcomes, signal);
    let texts = |code: Code| {
        let of = outcomes.iter().filter_map(|outcome| outcome.answer.as_ref());
        of.filter(|answer| answer.0 == code).map(|answer| answer.1.clone()).collect::<Vec<_>>()
    };
    let (refused, late) = (texts(SERVICE_UNAVAILABLE), texts(GATEWAY_TIMEOUT));
    assert!(!refused.is_empty() && !late.is_empty(), "{:?}", codes(&outcomes));
    assert!(refused.iter().all(|text| text == "not-sent: shutting down"), "{:?}", refused[0]);
    assert!(late.iter().all(|text| text == "outcome-unknown: no answer in time"), "{:?}", late[0]);
    assert!(took < Duration::from_secs(8), "it took {took:?}");
    assert!(log.contains("stopping: running requests are finished") && log.contains("stopped"), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let stage = Stage::new();
    stage.write("", "");
    let proxy = stage.launch().start();
    let client = RawClient::new(stage.listener);
    let request = RawClient::reverse_request(Kind::Confirmable, GET, "a").option(option::URI_PATH, "never");
    client.send(&request);
    wait_until("the origin is asked", || !stage.origins[0].requests().is_empty());
    Stage::tell(&proxy, "TERM", "stopping: running requests are finished");
    let started = now();
    let log = proxy.stop();
    assert!(now() - started < Duration::from_secs(3), "{log}");
    assert!(log.contains("stopping at once; requests are left unanswered requests=1"), "{log}");
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn files_that_were_moved_away_are_opened_anew_on_sigusr1() {
    let stage = Stage::new();
    stage.write("", "");
    let [record, log] = ["records", "log"].map(|name| stage.path(name));
    let proxy = stage.launch().record(&record).log(&log).start();
    let ask = |segment: &str| {
        let request =
            RawClient::reverse_request(Kind::Confirmable, GET, "a").option(option::URI_PATH, segment);
        RawClient::new(stage.listener).settle(&request, Duration::from_secs(5));
    };
    ask("one");
    wait_until("a record", || lines(&record) == 1);
    let [old_record, old_log] = ["records.1", "log.1"].map(|name| stage.path(name));
    fs::rename(&record, &old_record).expect("it is there");
    fs::rename(&log, &old_log).expect("it is there");
    proxy.process().signal("USR1");
    wait_until("both files", || record.exists() && lines(&log) > 0);
    ask("two");
    wait_until("a record in the new file", || lines(&record) == 1);
    assert_eq!(lines(&old_record), 1);
    assert!(fs::read_to_string(&log).is_ok_and(|text| text.contains("opening log and records anew")));
    // Settings of the log change like all others.
    stage.write("", "");
    proxy.process().signal("HUP");
    wait_until("a reload in the new log", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains(RELOADED))
    });
    proxy.stop();
    assert!(
        fs::read_to_string(&old_log).is_ok_and(|text| !text.contains("stopped") && text.contains("ready"))
    );
}

#[test]
fn listeners_come_and_go_and_the_last_answers_leave_from_where_they_were_asked_for() {
    let stage = Stage::new();
    let further = Family::V4.address(free_port());
    let with_further = format!("[[listen]]\nuri = \"coap://{further}\"\n");
    stage.write("", "");
    let proxy = stage.launch().start();
    stage.write("", &with_further);
    Stage::tell(&proxy, "HUP", RELOADED);
    let request = |segment: &str| {
        RawClient::reverse_request(Kind::Confirmable, GET, "a").option(option::URI_PATH, segment)
    };
    let client = RawClient::new(further);
    let slow = request("slow");
    client.send(&slow);
    wait_until("the origin is asked", || !stage.origins[0].requests().is_empty());
    stage.write("", "");
    Stage::tell(&proxy, "HUP", RELOADED);
    let refused = RawClient::new(further).settle(&request("new"), Duration::from_secs(5)).answer;
    assert_eq!(refused.code, SERVICE_UNAVAILABLE);
    let answered = RawClient::new(stage.listener).settle(&request("new"), Duration::from_secs(5)).answer;
    assert_eq!(answered.payload, b"new");
    let limit = now() + Duration::from_secs(5);
    let answer =
        std::iter::from_fn(|| client.receive(limit)).find(|received| !received.message().payload.is_empty());
    let answer = answer.expect("it was accepted").message().clone();
    assert_eq!(answer.payload, b"slow");
    client.send(&Datagram::empty(Kind::Acknowledgement, answer.message_id));
    let closed = format!("no longer listening on coap://{further}");
    wait_until(&closed, || proxy.process().output().contains(&closed));
    // It can be had again.
    stage.write("", &with_further);
    Stage::tell(&proxy, "HUP", RELOADED);
    let answered = RawClient::new(further).settle(&request("again"), Duration::from_secs(5)).answer;
    assert_eq!(answered.payload, b"again");
    let log = proxy.stop();
    assert!(log.contains(&format!("listen: new, coap://{further} (")), "{log}");
    assert!(log.contains(&format!("listen: gone, was coap://{further} (")), "{log}");
}
