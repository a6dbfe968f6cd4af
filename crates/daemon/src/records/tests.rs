use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::mpsc;

use coapway_endpoint::{AnswerKind, Copy, Local, Peer, Trace};
use coapway_message::{Code, Evidence, Failure, OptionNumber, OptionsWriter, Token};
use coapway_proxy::{Cause, Path};
use serde_json::Value;

use super::buffer::FULL;
use super::thread::BUFFERS;
use super::*;

/// Longer than anything here takes unless it hangs.
const LIMIT: Duration = Duration::from_secs(20);
/// 2026-11-30T06:23:17.5Z.
const START: Duration = Duration::from_millis(1_796_019_797_500);

fn wall_clock() -> WallClock {
    WallClock { at_start: SystemTime::UNIX_EPOCH + START }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A POST of which a second copy left and that failed all the same.
fn record(id: u64) -> Record {
    let copy = |sent, timeout| Copy::new(at(sent), Duration::from_millis(timeout), 17);
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_PATH, b"a\"b");
    let trace = Trace {
        peer: Peer { local: Local::default(), remote: address(5683) },
        token: Token::new(&[7; 8]),
        confirmable: true,
        copies: [copy(1001, 2400), copy(3401, 4800)].into_iter().collect(),
        first_ack: Some(at(3500)),
        first_ack_id: Some(17),
        acks: 1,
        answer: Some(AnswerKind::Separate),
        bytes: 30,
    };
    Record {
        id,
        received: at(1000),
        answered: at(31_000),
        client: address(40_000),
        method: Code::POST,
        path: Path::of(&writer.finish()),
        confirmable: true,
        client_token: Token::new(&[0xA1, 0xB2]),
        client_message_id: 4711,
        exchanges: [trace].into_iter().collect(),
        early_ack: Some(at(1500)),
        queued: Duration::from_micros(1234),
        window: 4,
        code: Code::GATEWAY_TIMEOUT,
        cause: Cause::Failed(Failure::TimedOut),
        evidence: Some(Evidence::OutcomeUnknown),
        bytes_in: 20,
        bytes_out: 40,
        ..Record::blank()
    }
}

/// The addresses of sockets.
fn addresses(socket: SocketId) -> Option<SocketAddr> {
    Some(address(if socket == SocketId(0) { 5683 } else { 40_001 }))
}

fn start(path: impl Into<PathBuf>) -> RecordWriter {
    RecordWriter::start(Target::File(path.into()), wall_clock()).expect("a writer")
}

fn write(writer: &mut RecordWriter, id: u64, now: Instant) {
    writer.write(&record(id), "boiler", &addresses, now);
}

fn line(id: u64) -> Vec<u8> {
    let mut line = vec![0; Lines::room(&record(id), "boiler")];
    let length =
        wall_clock().lines().write(&record(id), "boiler", &addresses, &mut line).expect("there is room");
    line.truncate(length);
    line
}

/// The ids of the records in `text`, each of which is whole.
fn ids(text: &str) -> Vec<u64> {
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].as_u64().expect("a number"))
        .collect()
}

/// Runs what must not hang.
fn bounded<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || done.send(run()));
    finished.recv_timeout(LIMIT).expect("it does not hang")
}

#[test]
fn writes_whole_lines_to_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    std::fs::write(&path, line(0)).expect("a file with a record");
    let mut writer = start(&path);
    for id in 1..1000 {
        write(&mut writer, id, at(1000));
    }
    writer.close();
    let text = std::fs::read_to_string(&path).expect("text");
    assert_eq!(ids(&text), (0..1000).collect::<Vec<_>>());
    assert!(text.as_bytes().ends_with(&line(999)), "with the time of receipt");
    assert_eq!((writer.dropped(), writer.failed()), (0, 0));
}

#[test]
fn a_small_buffer_is_handed_over_after_a_while() {
    let (mut reader, pipe) = io::pipe().expect("a pipe");
    let mut writer = start(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    assert_eq!(writer.flush_due(at(0)), None);
    write(&mut writer, 1, at(10));
    write(&mut writer, 2, at(60));
    assert_eq!(writer.flush_due(at(109)), Some(at(110)), "counted from the first");
    assert_eq!(writer.flush_due(at(110)), None);
    let expected = [line(1), line(2)].concat();
    let mut read = vec![0; expected.len()];
    let read = bounded(move || {
        reader.read_exact(&mut read).expect("two lines");
        read
    });
    assert_eq!(read, expected);
}

#[test]
fn drops_and_counts_while_nobody_reads() {
    let (mut reader, pipe) = io::pipe().expect("a pipe");
    let mut writer = start(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    drop(pipe);
    let mut writer = bounded(move || {
        // More than the pipe, the thread, the channel and the buffer hold.
        let enough = (BUFFERS as u64 + 8) * FULL as u64 / line(0).len() as u64;
        for id in 0..enough {
            write(&mut writer, id, at(id));
            assert!(writer.buffer.lines().len() < FULL, "memory is bounded");
        }
        write(&mut writer, enough, at(enough));
        writer
    });
    let dropped = writer.dropped();
    assert!(dropped > 0);
    assert!(writer.flush_due(at(1_000_000)).is_some(), "what is left waits for room");
    let writer = bounded(move || {
        writer.close();
        writer
    });
    assert_eq!(writer.dropped(), dropped);
    // A reader that comes after all finds lines, none of them torn.
    let text = bounded(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        text
    });
    assert!(ids(&text).is_sorted());
    assert_eq!(writer.failed(), 0);
}

#[test]
fn a_full_disk_is_counted_and_tried_again() {
    let mut writer = start("/dev/full");
    write(&mut writer, 1, at(0));
    assert_eq!(writer.flush_due(at(100)), None);
    write(&mut writer, 2, at(200));
    writer.close();
    assert_eq!((writer.dropped(), writer.failed()), (0, 2));
}

#[test]
fn a_reader_that_is_gone_is_counted() {
    let (reader, pipe) = io::pipe().expect("a pipe");
    let mut writer = start(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    drop((reader, pipe));
    write(&mut writer, 1, at(0));
    writer.close();
    assert_eq!((writer.dropped(), writer.failed()), (0, 1));
}

#[test]
fn a_line_that_was_cut_off_does_not_run_into_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    std::fs::write(&path, "{\"id\":").expect("a file");
    let target = Target::File(path.clone());
    let file = target.open().expect("it opens");
    let mut sink = Sink { file, target, torn: true, failed: Arc::default() };
    sink.write(&line(1)).expect("room");
    sink.write(&line(2)).expect("room");
    let text = std::fs::read_to_string(&path).expect("text");
    let (torn, whole) = text.split_once('\n').expect("a line");
    assert_eq!((torn, ids(whole)), ("{\"id\":", vec![1, 2]));
}

#[test]
fn reopens_behind_what_was_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, moved) = (directory.path().join("records"), directory.path().join("records.1"));
    let mut writer = start(&path);
    write(&mut writer, 1, at(0));
    std::fs::rename(&path, &moved).expect("moved");
    writer.reopen(at(1));
    write(&mut writer, 2, at(2));
    writer.close();
    let read = |path| ids(&std::fs::read_to_string(path).expect("text"));
    assert_eq!((read(&moved), read(&path)), (vec![1], vec![2]));
}

#[test]
fn a_line_that_is_longer_than_most_is_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    let mut writer = start(&path);
    let mut options = Vec::new();
    let mut segments = OptionsWriter::new(&mut options);
    (0..8).for_each(|_| segments.push(OptionNumber::URI_PATH, &[0xFF; 255]));
    let options = segments.finish();
    for id in 0..20 {
        writer.write(&Record { path: Path::of(&options), ..record(id) }, "boiler", &addresses, at(id));
    }
    writer.close();
    let text = std::fs::read_to_string(&path).expect("text");
    assert_eq!(ids(&text), (0..20).collect::<Vec<_>>());
    assert!(text.lines().all(|line| line.len() > 8 * 3 * 255));
}

#[test]
fn a_target_that_cannot_be_opened_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = RecordWriter::start(Target::File(directory.path().into()), wall_clock());
    assert_eq!(error.expect_err("a directory is no file").kind(), io::ErrorKind::IsADirectory);
}

/// All keys of a value, those inside its arrays and objects included.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The sum of answers without a forward, as the reference shows it.
fn sum() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    let mut writer = start(&path);
    let cause = Cause::Refused;
    writer.write_refusals(
        &Refusals { since: at(1000), code: Code::TOO_MANY_REQUESTS, cause, count: 1742 },
        at(2000),
    );
    writer.close();
    std::fs::read(&path).expect("bytes")
}

#[test]
fn answers_without_a_forward_are_a_line() {
    let reference = include_str!("../../../../docs/record.md");
    let line = String::from_utf8(sum()).expect("text");
    assert!(reference.contains(&line), "{line}");
}

#[test]
fn every_key_is_documented_and_the_example_has_them_all() {
    let reference = include_str!("../../../../docs/record.md");
    let emitted: Value = serde_json::from_slice(&line(1)).expect("JSON");
    assert_eq!(emitted["path"], "/a%22b");
    let mut of_emitted = BTreeSet::new();
    keys(&emitted, &mut of_emitted);
    let (mut of_record, mut of_sum) = (of_emitted.clone(), BTreeSet::new());
    keys(&serde_json::from_slice(&sum()).expect("JSON"), &mut of_sum);
    of_emitted.extend(of_sum.clone());
    let documented: BTreeSet<_> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key.to_owned())
        .collect();
    assert_eq!(documented, of_emitted);
    let examples = reference.lines().filter(|line| line.starts_with('{')).map(|example| {
        let mut of_example = BTreeSet::new();
        keys(&serde_json::from_str(example).expect("JSON"), &mut of_example);
        of_example
    });
    assert!(examples.eq([std::mem::take(&mut of_record), of_sum]));
}
