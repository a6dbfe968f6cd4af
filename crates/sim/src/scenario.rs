//! Scenario files: one message diagram each, with the settings it holds for.
//!
//! ```text
//! set upstream.max_wait=5s                        configuration keys, before the first message
//! route /boiler -> origin strip                   instead of the route / to `origin`
//! forward anything                                instead of nothing
//! clients unverified                              instead of believed
//! name boiler.example = origin at 5s after 50ms   what a look-up finds, from when on
//!
//! client  sends   CON GET /t  MID=10 token=a1
//! proxy   sends   CON GET /t  to=origin  lost
//! after   2s..3s                                  since the step before
//! proxy   repeats
//! origin  sends   ACK ; then CON 2.05 "22.5" max-age=60
//! proxy   sends   ACK to=origin ; ACK 2.05 "22.5" max-age=60 MID=10 token=a1 to=client
//! nothing for 5s
//! ```
//! Without `after`, a step happens at once. What is left out follows from what was said before: the
//! proxy's own Message IDs and tokens, and those an answer or Acknowledgement belongs to.
//! The whole language is in `scenarios/README.md`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::journal::Journal;
use crate::play::{Deviation, play};
use crate::script::Script;

mod line;
mod message;
mod parse;
mod rehearsal;
mod settings;

pub use rehearsal::Rehearsal;
pub use settings::Settings;

/// A scenario file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it is from, for errors.
    pub path: PathBuf,
    /// The settings it holds for.
    pub settings: Settings,
    /// What happens.
    pub script: Script,
}

/// Why a scenario did not go as written.
#[derive(Debug)]
pub struct Failed {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: Why,
}

/// What is wrong with a scenario or with what it shows.
#[derive(Debug)]
pub enum Why {
    /// The file could not be read.
    Unreadable(std::io::Error),
    /// A line of it means nothing.
    Syntax {
        /// The line.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Something else happened.
    Deviated(Deviation),
    /// It went as written, and something that must always hold did not.
    Violated(Vec<String>),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.why {
            Why::Unreadable(error) => write!(f, "{error}"),
            Why::Syntax { line, what } => write!(f, "line {line}: {what}"),
            Why::Deviated(deviation) => write!(f, "{deviation}"),
            Why::Violated(violations) => write!(f, "\n  {}", violations.join("\n  ")),
        }
    }
}

impl std::error::Error for Failed {}

impl Scenario {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Failed> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failed { path: path.into(), why: Why::Unreadable(error) })?;
        Self::parse(path, &text)
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Failed> {
        let (settings, script) = parse::parse(text).map_err(|parse::Error { line, what }| Failed {
            path: path.into(),
            why: Why::Syntax { line, what },
        })?;
        Ok(Self { path: path.into(), settings, script })
    }

    /// Plays it in a virtual world, with all checks. The journal tells what happened in either case.
    pub fn rehearse(&self, seed: u64) -> (Result<(), Failed>, Journal) {
        let plan = self.settings.plan(&self.script, seed).expect("the parser has had it checked");
        let mut stage = Rehearsal::new(plan, &self.script);
        let why = match play(&self.script, &mut stage) {
            Err(deviation) => Some(Why::Deviated(deviation)),
            Ok(()) => {
                let violations = stage.finish();
                (!violations.is_empty()).then_some(Why::Violated(violations))
            }
        };
        let result = why.map_or(Ok(()), |why| Err(Failed { path: self.path.clone(), why }));
        (result, stage.into_journal())
    }
}
