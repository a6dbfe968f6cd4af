//! The file that keeps what was learned of origins over a restart.
//!
//! ```text
//! {"learned":1,"at":1767225600000}                                        version, and when it was written
//! {"upstream":"meters","origin":"192.0.2.7:5683","window":8,"heard":true,"round_trips":[[61000,104312],…]}
//! ```
//! `at` is in milliseconds since 1970; a round-trip time is its age in milliseconds when the file was
//! written, and itself in microseconds. The file is written anew under another name and then takes its
//! place, so that it is whole at any time. Whatever is wrong with it while serving
//! is worth a warning and no more.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use coapway_proxy::{Kept, Proxy};
use coapway_time::Instant;

use crate::clock::Clock;
use crate::log::ONCE_A_MINUTE;

/// How often it is written.
const EVERY: Duration = Duration::from_secs(60);
/// Nothing longer is read: 8192 origins with 50 round-trip times each take 8 MiB.
const LONGEST: u64 = 64 << 20;
/// How each file of any version begins.
const BEGINNING: &str = "{\"learned\":";
/// What this version writes and understands.
const VERSION: u64 = 1;
/// No request is waited for longer, so no round trip that was seen is longer.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(3600);

/// Writes the file once in a while.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    path: Option<PathBuf>,
    due: Option<Instant>,
    /// The thread that waits for the disk, so that nobody else does.
    writing: Option<JoinHandle<()>>,
}

impl Keeper {
    /// From now on it is kept there, or nowhere.
    pub(crate) fn keep(&mut self, path: Option<PathBuf>, now: Instant) {
        self.due = path.is_some().then(|| now + EVERY);
        self.path = path;
    }

    /// Writes it if that is due; says when to come back.
    pub(crate) fn tend(&mut self, proxy: &Proxy, clock: &Clock, now: Instant) -> Option<Instant> {
        let due = self.due?;
        if now < due {
            return Some(due);
        }
        self.due = Some(now + EVERY);
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished)
            && let Some(path) = self.path.clone()
        {
            let text = text(proxy.export_learned(now), clock.wall_clock());
            let write = move || tell(&path, write(&path, &text));
            self.writing = std::thread::Builder::new().name("state".into()).spawn(write).ok();
        }
        self.due
    }

    /// Writes it for the last time.
    pub(crate) fn finish(&mut self, proxy: &Proxy, clock: &Clock, now: Instant) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
        if let Some(path) = &self.path {
            tell(path, write(path, &text(proxy.export_learned(now), clock.wall_clock())));
        }
    }
}

fn tell(path: &Path, written: io::Result<()>) {
    if let Err(error) = written {
        let path = path.display();
        tracing::warn!(target: ONCE_A_MINUTE, "what was learned cannot be kept in {path}: {error}");
    }
}

/// Reads it back; says how many origins are taken over. A file that is not there is a first start.
pub(crate) fn restore(path: &Path, proxy: &mut Proxy, clock: &Clock, now: Instant) {
    let name = path.display();
    match read(path, clock.wall_clock()) {
        Ok((kept, wrong)) => {
            let origins = proxy.import_learned(kept, now);
            tracing::info!(origins, "what was learned is taken over from {name}");
            if wrong > 0 {
                tracing::warn!(lines = wrong, "lines of {name} mean nothing and are left out");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("what was learned is not taken over from {name}: {error}"),
    }
}

fn text(kept: impl Iterator<Item = Kept>, at: SystemTime) -> String {
    let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut text = format!("{BEGINNING}{VERSION},\"at\":{at}}}\n");
    for Kept { upstream, origin, window, heard, round_trips } in kept {
        let round_trips: Vec<_> = round_trips
            .iter()
            .map(|(age, time)| format!("[{},{}]", age.as_millis(), time.as_micros()))
            .collect();
        let upstream = serde_json::Value::from(&*upstream);
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "{{\"upstream\":{upstream},\"origin\":\"{origin}\",\"window\":{window},\"heard\":{heard},\
             \"round_trips\":[{}]}}",
            round_trips.join(",")
        );
    }
    text
}

/// Whether nothing is lost with the file: it is not there, is empty, or begins as this one does.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    match open(OpenOptions::new().read(true), path) {
        Ok(file) => file.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(beginning.is_empty() || beginning == BEGINNING.as_bytes())
}

/// What is written, before it takes the place of the file.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

/// Writes the text beside the file and puts it in its place.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path);
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("not a file"));
    }
    if !may_be_replaced(path)? {
        return Err(io::Error::other("it holds something else, which is left alone"));
    }
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(true), &beside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    placed
}

/// Opens a file. A FIFO would wait for its other end, and keep nothing.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a file")) }
}

/// What the file says, and how many of its lines mean nothing.
///
/// Errors: there is no such file, it cannot be read, or it is of another version.
fn read(path: &Path, now: SystemTime) -> io::Result<(Vec<Kept>, usize)> {
    let file = open(OpenOptions::new().read(true), path)?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let first: serde_json::Value =
        lines.next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let version = &first["learned"];
    if version.as_u64() != Some(VERSION) {
        return Err(io::Error::other(if text.trim().is_empty() {
            "it is empty".to_owned()
        } else if version.is_null() {
            "it is something else".to_owned()
        } else {
            format!("it is of another version: {version}")
        }));
    }
    let written = SystemTime::UNIX_EPOCH + Duration::from_millis(first["at"].as_u64().unwrap_or(0));
    // A clock that was set back says nothing about how long ago that was.
    let since = now.duration_since(written).unwrap_or_default();
    let mut wrong = 0;
    let kept = lines.filter_map(|line| {
        let kept = serde_json::from_str(line).ok().and_then(|line| kept(&line, since));
        wrong += usize::from(kept.is_none());
        kept
    });
    Ok((kept.collect(), wrong))
}

fn kept(line: &serde_json::Value, since: Duration) -> Option<Kept> {
    let round_trips = line["round_trips"].as_array()?.iter().map(|pair| {
        let age = Duration::from_millis(pair[0].as_u64()?);
        let time = Duration::from_micros(pair[1].as_u64()?);
        (time <= LONGEST_ROUND_TRIP).then(|| (age.saturating_add(since), time))
    });
    let origin: SocketAddr = line["origin"].as_str()?.parse().ok()?;
    if origin.port() == 0 || origin.ip().is_unspecified() || origin.ip().is_multicast() {
        return None;
    }
    Some(Kept {
        upstream: line["upstream"].as_str()?.into(),
        origin,
        window: u32::try_from(line["window"].as_u64()?).ok()?,
        heard: line["heard"].as_bool()?,
        round_trips: round_trips.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds)
    }

    fn origin(port: u16) -> Kept {
        Kept {
            upstream: "a \"quoted\" name".into(),
            origin: ([192, 0, 2, 7], port).into(),
            window: 8,
            heard: true,
            round_trips: vec![
                (Duration::from_secs(61), Duration::from_micros(104_312)),
                (Duration::from_secs(1), Duration::from_micros(99)),
            ],
        }
    }

    fn aged(mut kept: Kept, seconds: u64) -> Kept {
        kept.round_trips.iter_mut().for_each(|(age, _)| *age += Duration::from_secs(seconds));
        kept
    }

    #[test]
    fn what_is_written_is_read_back_and_has_aged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        write(&path, &text([origin(1), origin(2)].into_iter(), at(0))).expect("written");
        write(&path, &text([origin(3)].into_iter(), at(5))).expect("written over");
        assert_eq!(read(&path, at(15)).expect("read"), (vec![aged(origin(3), 10)], 0));
        assert_eq!(read(&path, at(0)).expect("the clock was set back"), (vec![origin(3)], 0));
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn lines_that_mean_nothing_are_counted_and_other_versions_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let good = text([origin(1)].into_iter(), at(0));
        let line = good.lines().nth(1).expect("one origin");
        let bad = ["", "{", "null", "[1]", &line[..line.len() - 2], &line.replace("192", "x")];
        let worse = [
            &line.replace(":8,", ":-8,"),
            &line.replace("99]", "\"\"]"),
            &line.replace("heard", "herd"),
            &line.replace("99]", "3600000001]"),
            &line.replace("99]", "18446744073709551615]"),
            &line.replace(":8,", ":4294967296,"),
            &line.replace("192.0.2.7:1", "192.0.2.7:0"),
            &line.replace("192.0.2.7", "0.0.0.0"),
            &line.replace("192.0.2.7", "224.0.1.187"),
        ];
        let bad: Vec<&str> = bad.into_iter().chain(worse.into_iter().map(|line| &**line)).collect();
        fs::write(&path, format!("{good}{}\n", bad.join("\n"))).expect("written");
        let (kept, wrong) = read(&path, at(0)).expect("read");
        assert_eq!((kept, wrong), (vec![origin(1)], bad.len()));
        for (text, reason) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("{}", "it is something else"),
            ("{\"learned\":2,\"at\":0}", "it is of another version: 2"),
            ("{\"learned\":\"1\"}", "it is of another version: \"1\""),
            ("\u{0}\u{1}", "it is something else"),
            ("[]", "it is something else"),
        ] {
            fs::write(&path, text).expect("written");
            assert_eq!(read(&path, at(0)).expect_err("nothing to take over").to_string(), reason, "{text:?}");
        }
        // A time that no clock has.
        fs::write(&path, format!("{{\"learned\":1,\"at\":{}}}\n{line}\n", u64::MAX)).expect("written");
        assert_eq!(read(&path, at(0)).expect("as if the clock was set back"), (vec![origin(1)], 0));
        assert_eq!(
            read(&folder.path().join("none"), at(0)).expect_err("not there").kind(),
            io::ErrorKind::NotFound
        );
        assert!(read(folder.path(), at(0)).is_err());
    }

    #[test]
    fn what_holds_something_else_is_left_alone() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("precious");
        let written = text([origin(1)].into_iter(), at(0));
        for (precious, is_kept) in [("[[listen]]\n", true), ("{}", true), ("", false), (&written, false)] {
            fs::write(&path, precious)?;
            assert_eq!(write(&path, &written).is_err(), is_kept, "{precious:?}");
            assert_eq!(fs::read_to_string(&path)?, if is_kept { precious } else { &written });
        }
        fs::remove_file(&path)?;
        write(&path, &written)
    }

    #[test]
    fn nobody_waits_for_the_other_end_of_a_fifo() {
        let folder = tempfile::tempdir().expect("a folder");
        let [fifo, path] = ["fifo", "state"].map(|name| folder.path().join(name));
        let beside = folder.path().join("state.new");
        let made = std::process::Command::new("mkfifo").args([&fifo, &beside]).status();
        assert!(made.expect("mkfifo runs").success());
        assert_eq!(read(&fifo, at(0)).expect_err("a FIFO").to_string(), "not a file");
        assert_eq!(write(&fifo, "x").expect_err("a FIFO").to_string(), "not a file");
        assert!(write(&path, "x").is_err());
        // One that is read from would take it.
        let _reader = open_fifo(&beside);
        assert_eq!(write(&path, "x").expect_err("a FIFO").to_string(), "not a file");
        assert!(!path.exists() && !fs::metadata(&fifo).expect("still there").is_file());
    }

    fn open_fifo(path: &Path) -> File {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).expect("it does not wait")
    }

    #[test]
    fn a_disk_that_is_full_leaves_the_old_file_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(write(&folder.path().join("none/state"), "x").is_err());
        let path = folder.path().join("state");
        fs::write(&path, "old").expect("written");
        fs::create_dir(folder.path().join("state.new")).expect("in the way");
        assert!(write(&path, "new").is_err());
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
    }
}
