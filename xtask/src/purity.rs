//! The core has no socket, no clock, no thread, no async, no lock and no global.

use crate::source::{line_of, mentions, product_code, words};

/// Paths that the core must not mention, each with all below it.
const PATHS: [(&str, &str); 13] = [
    ("std::time::Instant", "time is a parameter"),
    ("std::time::SystemTime", "time is a parameter"),
    ("std::time::*", "name what is used, so that clocks can be told from durations"),
    ("std::thread", "one worker is one thread, and owns the core"),
    ("std::net::UdpSocket", "sockets live in `transport`"),
    ("std::net::TcpStream", "sockets live in `transport`"),
    ("std::net::TcpListener", "sockets live in `transport`"),
    ("std::net::*", "name what is used, so that sockets can be told from addresses"),
    ("std::os", "the core knows no operating system"),
    ("std::fs", "files are for `daemon`"),
    ("std::env", "settings are parameters"),
    ("std::process", "processes are for `daemon`"),
    ("std::sync::atomic", "nothing is shared"),
];

/// Modules that must not be imported whole, because the paths above would hide behind them.
const WHOLE: [&str; 3] = ["std::time", "std::net", "std::sync"];

/// Words that the core must not use, however they were imported.
const WORDS: [(&str, &str); 11] = [
    ("async", "the core returns at once"),
    ("await", "the core returns at once"),
    ("Mutex", "nothing is shared"),
    ("RwLock", "nothing is shared"),
    ("Condvar", "nothing is shared"),
    ("OnceLock", "there are no globals"),
    ("LazyLock", "there are no globals"),
    ("SystemTime", "time is a parameter"),
    ("UdpSocket", "sockets live in `transport`"),
    ("TcpStream", "sockets live in `transport`"),
    ("TcpListener", "sockets live in `transport`"),
];

const MACROS: [(&str, &str); 6] = [
    ("println", "the core does not log; it tells by `Event`"),
    ("eprintln", "the core does not log; it tells by `Event`"),
    ("print", "the core does not log; it tells by `Event`"),
    ("eprint", "the core does not log; it tells by `Event`"),
    ("dbg", "the core does not log; it tells by `Event`"),
    ("thread_local", "there are no globals"),
];

/// What a source file of the core must not contain; tests may. `place` is how findings name the file.
pub(crate) fn check(place: &str, source: &str) -> Vec<String> {
    if is_for_tests(place) {
        return Vec::new();
    }
    let code = product_code(source);
    let mut found: Vec<(usize, String, &str)> = Vec::new();
    for mention in mentions(&code) {
        let path = mention.path.join("::");
        if let Some((_, why)) = PATHS.iter().find(|(forbidden, _)| is_within(&path, forbidden)) {
            found.push((mention.line, path, why));
        } else if WHOLE.contains(&path.as_str()) {
            found.push((mention.line, path, "import what is used, not the whole module"));
        }
    }
    for (word, why) in WORDS {
        found.extend(words(&code, word).map(|at| (line_of(&code, at), word.to_owned(), why)));
    }
    for (name, why) in MACROS {
        let calls = words(&code, name).filter(|at| follows(&code, at + name.len(), "!"));
        found.extend(calls.map(|at| (line_of(&code, at), format!("{name}!"), why)));
    }
    let globals = words(&code, "static").filter(|at| follows(&code, at + 6, " mut "));
    found.extend(globals.map(|at| (line_of(&code, at), "static mut".to_owned(), "there are no globals")));
    found.sort();
    // `std::sync::Mutex` is found as a word, and `std::time::SystemTime` twice: one a line is enough.
    found.dedup_by(|one, other| one.0 == other.0 && one.2 == other.2);
    found.into_iter().map(|(line, what, why)| format!("{place}:{line}: {what}: {why}")).collect()
}

/// `foo/tests.rs` and `foo/tests/…` are modules that only tests have.
fn is_for_tests(place: &str) -> bool {
    place.split('/').any(|part| part == "tests" || part == "tests.rs")
}

fn is_within(path: &str, forbidden: &str) -> bool {
    path.strip_prefix(forbidden).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn follows(code: &str, at: usize, what: &str) -> bool {
    code.get(at..).is_some_and(|rest| rest.starts_with(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_everything_that_must_not_be() {
        for line in [
            "use std::time::Instant;",
            "use std::{fmt, time::{Duration, SystemTime}};",
            "use std::time::*;",
            "use std::time;",
            "let now = std::time::Instant::now();",
            "std::thread::spawn(f);",
            "use std::net::{IpAddr, UdpSocket};",
            "fn f(stream: &mut TcpStream) {}",
            "async fn f() {}",
            "let x = f().await;",
            "lock: std::sync::Mutex<u8>,",
            "lock: RwLock<u8>,",
            "static mut COUNT: u8 = 0;",
            "static CELL: OnceLock<u8> = OnceLock::new();",
            "use std::sync::atomic::AtomicU64;",
            "println!(\"x\");",
            "std::env::var(\"X\");",
        ] {
            let findings = check("relay/a.rs", &format!("\n{line}\n"));
            assert_eq!(findings.len(), 1, "{line}: {findings:?}");
            assert!(findings[0].starts_with("relay/a.rs:2: "), "{findings:?}");
        }
    }

    #[test]
    fn lets_the_rest_pass() {
        let source = "
            //! No Mutex, no std::time::Instant, no println!(..).
            use std::net::{IpAddr, SocketAddr};
            use std::time::Duration;
            use coapway_time::Instant;
            /// Not async.
            static NAMES: [&str; 1] = [\"Mutex\"];
            fn print(now: Instant) -> Duration { now.since(Instant::ZERO) }
            #[cfg(test)]
            mod tests {
                use std::time::Instant;
                fn t() { println!(\"{:?}\", Instant::now()); }
            }";
        assert_eq!(check("relay/a.rs", source), Vec::<String>::new());
    }

    #[test]
    fn leaves_modules_of_tests_alone() {
        assert!(check("relay/a/tests.rs", "use std::sync::Mutex;").is_empty());
        assert_eq!(check("relay/a/contests.rs", "use std::sync::Mutex;").len(), 1);
    }
}
