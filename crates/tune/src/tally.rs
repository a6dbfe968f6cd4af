//! All records, sorted by upstream; whatever files they come from and however many there are.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use coapway_records::{Bad, Line, NoRecord, Records};

use crate::observed::Observed;

/// Upstreams that are told apart; records of others are counted only.
pub(crate) const MOST_UPSTREAMS: usize = 256;
/// A process counts its forwards from 0: a number so far below the last one is another process.
const ANOTHER_PROCESS: u64 = 100_000;

/// The first line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: u64,
    pub(crate) why: String,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) upstreams: BTreeMap<Box<str>, Observed>,
    /// Only this one is looked at.
    pub(crate) only: Option<String>,
    pub(crate) forwards: u64,
    /// Records of upstreams beyond the most.
    pub(crate) beyond: u64,
    /// Requests that were answered without a forward.
    pub(crate) refused: u64,
    pub(crate) bad: BTreeMap<Bad, (u64, Example)>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    ids: Ids,
}

/// The numbers of records, from which follows how many there were that are not here.
#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    run: Option<(u64, u64)>,
    spanned: u64,
    counted: u64,
}

impl Tally {
    /// Reads one file to its end; `progress` hears of the bytes read so far now and then.
    ///
    /// Errors: the reader's.
    pub(crate) fn read(
        &mut self,
        name: &str,
        reader: impl BufRead,
        mut progress: impl FnMut(u64),
    ) -> io::Result<()> {
        let mut records = Records::new(reader);
        let before = self.bytes;
        self.ids.end();
        while let Some(line) = records.next_line()? {
            self.lines += 1;
            if let Err(NoRecord { bad, why }) = line.map(|line| self.take(line)) {
                let example = || Example { file: name.to_owned(), line: records.number(), why };
                self.bad.entry(bad).or_insert_with(|| (0, example())).0 += 1;
            }
            self.bytes = before + records.read();
            if self.lines.is_multiple_of(8192) {
                progress(self.bytes);
            }
        }
        self.bytes = before + records.read();
        self.ids.end();
        Ok(())
    }

    /// To be called when all is read.
    pub(crate) fn finish(&mut self) {
        self.upstreams.values_mut().for_each(Observed::finish);
    }

    fn take(&mut self, line: Line<'_>) {
        let forward = match line {
            Line::Refused(count) => {
                self.refused += count;
                return;
            }
            Line::Forward(forward) => forward,
        };
        self.forwards += 1;
        self.ids.add(forward.id);
        let name = &*forward.upstream;
        if self.only.as_deref().is_some_and(|only| only != name) {
            return;
        }
        if let Some(observed) = self.upstreams.get_mut(name) {
            observed.add(&forward);
        } else if self.upstreams.len() < MOST_UPSTREAMS {
            let mut observed = Observed::new(self.upstreams.len() as u64);
            observed.add(&forward);
            self.upstreams.insert(name.into(), observed);
        } else {
            self.beyond += 1;
        }
    }

    /// Lines that could not be used.
    pub(crate) fn bad_lines(&self) -> u64 {
        self.bad.values().map(|(count, _)| count).sum()
    }

    /// The share of forwards that was recorded, as the numbers of the records say.
    pub(crate) fn recorded(&self) -> f64 {
        if self.ids.spanned < 1000 {
            return 1.0;
        }
        let share = self.ids.counted as f64 / self.ids.spanned as f64;
        if share > 0.98 { 1.0 } else { share }
    }
}

impl Ids {
    fn add(&mut self, id: u64) {
        self.counted += 1;
        self.run = match self.run {
            Some((least, most)) if id.saturating_add(ANOTHER_PROCESS) >= most => {
                Some((least.min(id), most.max(id)))
            }
            other => {
                self.spanned += span(other);
                Some((id, id))
            }
        };
    }

    fn end(&mut self) {
        self.spanned += span(self.run.take());
    }
}

const fn span(run: Option<(u64, u64)>) -> u64 {
    match run {
        Some((least, most)) => (most - least).saturating_add(1),
        None => 0,
    }
}

#[cfg(test)]
mod tests;
