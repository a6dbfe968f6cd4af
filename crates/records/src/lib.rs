//! Forward records, read back: what is one, and why something is none, for all who use them.
//!
//! ```text
//! a file, a pipe ─▶ Records: one line at a time, none longer than a record can be ─▶ Line │ NoRecord
//! ```
//!
//! Files are what strangers and other versions have written. Nothing in them ends the reading, and all that is
//! handed on is checked: names are names, addresses are addresses, and times can have been.

mod line;
mod lines;

use std::io::{self, BufRead};

pub use line::{Answer, Bad, Cause, Copy, Forward, Line, METHODS, NoRecord};

use lines::{Lines, Next};

/// The records of a reader.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    number: u64,
}

impl<R: BufRead> Records<R> {
    /// Reads from where `reader` stands; a byte order mark there is passed over.
    pub const fn new(reader: R) -> Self {
        Self { lines: Lines::new(reader), number: 0 }
    }

    /// The next line that is not blank; nothing at the end.
    ///
    /// Errors: the reader's. What is wrong with a line is no error of it.
    pub fn next_line(&mut self) -> io::Result<Option<Result<Line<'_>, NoRecord>>> {
        loop {
            self.number += 1;
            match self.lines.next()? {
                Next::End => return Ok(None),
                Next::TooLong => return Ok(Some(Err(NoRecord::too_long(lines::LONGEST_LINE)))),
                Next::Line if self.lines.line().iter().all(u8::is_ascii_whitespace) => {}
                Next::Line => return Ok(Some(line::read(self.lines.line()))),
            }
        }
    }

    /// The number of the line that was read last, from 1.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes were read.
    pub const fn read(&self) -> u64 {
        self.lines.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = include_str!("../../proxy/src/record/tests/plain.jsonl");

    /// What each line is: the number of a forward, or what is wrong with it; and the number of the line.
    fn all(text: &str) -> Vec<(Result<u64, Bad>, u64)> {
        let mut records = Records::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(line) = records.next_line().expect("memory can be read") {
            let what = match line {
                Ok(Line::Forward(forward)) => Ok(forward.id),
                Ok(Line::Refused(count)) => Ok(count),
                Err(no_record) => Err(no_record.bad),
            };
            found.push((what, records.number()));
        }
        assert_eq!(records.read(), text.len() as u64);
        found
    }

    #[test]
    fn blank_lines_are_counted_and_are_nothing() {
        assert_eq!(all(&format!("\n \t\r\n{USUAL}\nx\n")), [(Ok(17), 3), (Err(Bad::NotJson), 5)]);
    }

    #[test]
    fn a_byte_order_mark_costs_no_line() {
        assert_eq!(all(&format!("\u{feff}{USUAL}{USUAL}")), [(Ok(17), 1), (Ok(17), 2)]);
        assert_eq!(all("\u{feff}"), []);
        assert_eq!(all(&format!("{USUAL}\u{feff}{USUAL}")), [(Ok(17), 1), (Err(Bad::NotJson), 2)]);
    }

    #[test]
    fn a_line_of_3_mb_is_one_line() {
        let long = "x".repeat(3 << 20);
        let found = all(&format!("{USUAL}{long}\n{USUAL}{long}"));
        assert_eq!(found, [(Ok(17), 1), (Err(Bad::TooLong), 2), (Ok(17), 3), (Err(Bad::TooLong), 4)]);
    }
}
