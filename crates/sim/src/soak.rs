//! Long runs that no test has time for: many storms, an hour of full tables, a flood to one origin.
//!
//! The full [`crate::world::World`] remembers everything that happened; [`standing`] and [`flood`]
//! would not fit into memory that way. They drive the same `Proxy` by the same calls from a
//! `stripped` world that keeps nothing but what is under way.

use std::fmt;
use std::time::Duration;

mod gauge;
mod stripped;
mod wire;

pub mod flood;
pub mod standing;
pub mod storms;

pub use gauge::measured;

/// What came of one long run, as a table for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was run.
    pub title: String,
    /// What was counted or measured, and its value.
    pub rows: Vec<(&'static str, String)>,
    /// What must not be and was; empty for a good run.
    pub findings: Vec<String>,
}

impl Report {
    fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    fn row(&mut self, what: &'static str, value: impl fmt::Display) {
        self.rows.push((what, value.to_string()));
    }

    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.findings.push(otherwise());
        }
    }

    fn must_agree(&mut self, what: &str, one: u64, other: u64) {
        self.must(one == other, || format!("{what}: {one} and {other}"));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n| | |\n|:--|--:|", self.title)?;
        self.rows.iter().try_for_each(|(what, value)| writeln!(f, "| {what} | {value} |"))?;
        match &self.findings[..] {
            [] => writeln!(f, "| violated | nothing |"),
            findings => {
                writeln!(f, "| violated | **{}** |", findings.len())?;
                findings.iter().try_for_each(|finding| writeln!(f, "\n* {finding}"))
            }
        }
    }
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Seconds with one decimal.
fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests;
