//! What is in a file that lines are to be added to.
//!
//! A file is looked at before the first line is written, and only how it begins: nobody is kept from starting
//! by a torn line, by lines of another program, or by the zeros that a power cut leaves of what was on its way
//! to the disk.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// How each record begins.
const RECORD: &[u8] = b"{\"ts\":\"";
/// So much of a file is looked at, in bytes.
const BEGINNING: u64 = 4096;

/// What the lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Of the log. Others may write to the same file.
    Log,
    /// Records, which are read by programs.
    Records,
}

impl Lines {
    /// Errors: what is in the file would be spoiled by lines behind it.
    pub(super) fn follow(self, path: &Path) -> Result<(), String> {
        let holds = beginning(path);
        let text = holds.iter().position(|byte| *byte != 0).and_then(|start| holds.get(start..));
        let Some(text) = text.filter(|text| !text.trim_ascii().is_empty()) else { return Ok(()) };
        match self {
            Self::Records if text.trim_ascii_start().starts_with(RECORD) => Ok(()),
            Self::Records => Err("it begins with what is no record, and would be spoiled".to_owned()),
            Self::Log if text.starts_with(b"#!") => Err("a script, which would be spoiled".to_owned()),
            Self::Log if !is_text(text) => {
                Err("its first line is not text, so that it would be spoiled".to_owned())
            }
            Self::Log => Ok(()),
        }
    }
}

/// How a regular file begins; nothing of any other, and of one that we may not read.
fn beginning(path: &Path) -> Vec<u8> {
    let mut holds = Vec::new();
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let _ = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut holds));
    }
    holds
}

/// Whether the first line is text.
fn is_text(text: &[u8]) -> bool {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = match std::str::from_utf8(line) {
        Ok(line) => line,
        // It may go on behind what was looked at.
        Err(error) if error.error_len().is_none() && line.len() == text.len() => {
            str::from_utf8(line.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    // An escape begins a colour.
    !line.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\x1b'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follows(lines: Lines, content: &[u8]) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, content).expect("written");
        let follows = lines.follow(&path).is_ok();
        assert_eq!(fs::read(&path).expect("it is left alone"), content);
        follows
    }

    /// What programs keep: a program, a database, a picture, an archive, a document.
    const OTHERS: [&[u8]; 5] = [
        b"\x7fELF\x02\x01\x01\0",
        b"SQLite format 3\0\x10\0\x01\x01",
        b"\x89PNG\r\n\x1a\n\0",
        b"\x1f\x8b\x08\0text",
        b"PK\x03\x04",
    ];

    #[test]
    fn records_follow_records_only() {
        for ours in [
            &b""[..],
            b"\n",
            b"{\"ts\":\"2026-01-01T00:00:00.000000Z\",\"event\":\"forward\"}\n",
            b"{\"ts\":\"2026-01-01T00:0",
            b"\0\0\0\0",
            b"\0\0\0\0\n{\"ts\":\"2026-01-01T00:00:00.000000Z\"}\n",
        ] {
            assert!(follows(Lines::Records, ours), "{ours:?}");
        }
        let texts =
            [&b"127.0.0.1 localhost\n"[..], b"{}", b"{\"learned\":1}\n", b"[[listen]]\n", b"#!/bin/sh\n"];
        for other in texts.into_iter().chain(OTHERS) {
            assert!(!follows(Lines::Records, other), "{other:?}");
        }
    }

    #[test]
    fn the_log_follows_any_text() {
        let long = "\u{e9}".repeat(4096);
        for text in [
            &b""[..],
            b"2026-01-01T00:00:00.000000Z  INFO ready\n",
            b"{\"timestamp\":\"2026-01-01T00:00:00Z\"}\r\n",
            b"\x1b[2m2026-01-01\x1b[0m another program\n\0\0",
            b"a\tb",
            b"\0\0\0\0",
            b"\0\0INFO after a power cut\n",
            long.as_bytes(),
            &long.as_bytes()[1..][1..],
        ] {
            assert!(follows(Lines::Log, text), "{:?}", text.escape_ascii().to_string());
        }
        assert!(follows(Lines::Log, format!("a{long}").as_bytes()), "a character is cut in two");
        for other in [&b"#!/bin/sh\n"[..], b"caf\xe9\n", b"a\0b\n"].into_iter().chain(OTHERS) {
            assert!(!follows(Lines::Log, other), "{other:?}");
        }
    }

    #[test]
    fn what_may_not_be_read_or_is_no_file_is_not_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in
            [Path::new("/dev/null"), Path::new("/dev/zero"), folder.path(), &folder.path().join("none")]
        {
            assert_eq!([Lines::Log, Lines::Records].map(|lines| lines.follow(path)), [Ok(()), Ok(())]);
        }
    }
}
