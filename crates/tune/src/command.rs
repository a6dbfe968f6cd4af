//! `coapway tune`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::advice::{Advice, Verdict};
use crate::numbers::{bytes, count};
use crate::predictor::Predictor;
use crate::rehearsal::Rehearsal;
use crate::search::{Effort, Search};
use crate::tally::Tally;
use crate::{json, report};

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;
/// Progress is told after so many further bytes.
const TOLD_EVERY: u64 = 16 << 20;
/// No configuration is larger, in bytes.
const LARGEST_CONFIGURATION: u64 = 1 << 20;

/// What `coapway tune` is asked.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Forward records, as `coapway serve --record` writes them; `-` is standard input.
    #[arg(required = true, value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// Look at this upstream only.
    #[arg(long, value_name = "NAME")]
    pub upstream: Option<String>,
    /// The configuration file that was in force; without it the defaults, and what the records show.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Where all chance of the simulation comes from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// Why there is no report.
#[derive(Debug)]
struct Complaint {
    code: u8,
    text: String,
}

fn failed(text: String) -> Complaint {
    Complaint { code: 1, text }
}

fn wrong_use(text: String) -> Complaint {
    Complaint { code: 2, text }
}

/// Runs it: the report goes to standard output, progress and errors to standard error.
pub fn run(arguments: &Arguments) -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let effort = Effort { search: (500, 2), told: (2000, 8), threads, seed: arguments.seed };
    let progress = Progress { is_shown: io::stderr().is_terminal() };
    match tune(arguments, effort, &Rehearsal, progress, &mut io::stdout().lock()) {
        Ok(code) => code,
        Err(Complaint { code, text }) => {
            // With nowhere to complain, the exit code says it.
            let _ = writeln!(io::stderr(), "coapway: {}", coapway_config::escaped_lines(text.trim_end()));
            ExitCode::from(code)
        }
    }
}

/// Says on a terminal how far it is.
#[derive(Clone, Copy)]
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn tell(self, text: &str) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

fn tune(
    arguments: &Arguments,
    effort: Effort,
    predictor: &dyn Predictor,
    progress: Progress,
    output: &mut dyn Write,
) -> Result<ExitCode, Complaint> {
    advise(arguments, effort, predictor, progress, |tally, advice| {
        let text = if arguments.json {
            format!("{:#}\n", json::of(tally, advice))
        } else {
            let text: String =
                std::iter::once(report::head(tally)).chain(advice.iter().map(report::upstream)).collect();
            // Names of files and what bad lines say come from elsewhere.
            coapway_config::escaped_lines(text).to_string()
        };
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => {}
            // Whoever read the report has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(failed(format!("cannot write to standard output: {error}"))),
        }
        let knows = advice.iter().any(|one| matches!(one.verdict, Verdict::Known(_)));
        Ok(if knows { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Reads the records, judges each upstream, and hands all of it on.
fn advise<T>(
    arguments: &Arguments,
    effort: Effort,
    predictor: &dyn Predictor,
    progress: Progress,
    then: impl FnOnce(&Tally, &[Advice<'_>]) -> Result<T, Complaint>,
) -> Result<T, Complaint> {
    let configuration = arguments.config.as_deref().map(configuration).transpose()?;
    let file = arguments.config.as_deref().zip(configuration.as_deref());
    let tally = read(arguments, progress)?;
    if let Some(name) = arguments.upstream.as_ref().filter(|_| tally.upstreams.is_empty()) {
        let text =
            format!("no forward record is of upstream {name:?}\n  hint: without --upstream all are listed");
        return Err(wrong_use(text));
    }
    let mut advice = Vec::new();
    for (name, observed) in &tally.upstreams {
        let told = |done: usize, all: usize| {
            if done.is_multiple_of(8) || done == all {
                progress.tell(&format!("{name}: {} of {} runs", count(done as u64), count(all as u64)));
            }
        };
        let search = Search { predictor, effort, progress: &told };
        let one = Advice::new(name, observed, tally.recorded(), file, &search);
        advice.push(one.map_err(|errors| wrong_use(errors.to_string()))?);
    }
    progress.tell("");
    then(&tally, &advice)
}

fn configuration(path: &Path) -> Result<String, Complaint> {
    let wrong = |what: &str| wrong_use(format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_CONFIGURATION + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 > LARGEST_CONFIGURATION => Err(wrong("too large for a configuration")),
        Ok(_) => coapway_config::text(path, &bytes)
            .map(str::to_owned)
            .map_err(|errors| wrong_use(errors.to_string())),
        Err(error) => Err(wrong(&format!("cannot be read: {error}"))),
    }
}

fn read(arguments: &Arguments, progress: Progress) -> Result<Tally, Complaint> {
    let mut tally = Tally::default();
    tally.only.clone_from(&arguments.upstream);
    let all: u64 =
        arguments.records.iter().map(|path| std::fs::metadata(path).map_or(0, |found| found.len())).sum();
    let mut told = 0;
    let mut tell = |read: u64| {
        if read >= told + TOLD_EVERY {
            told = read;
            let of = if all >= read { format!(" of {}", bytes(all)) } else { String::new() };
            progress.tell(&format!("{}{of} read", bytes(read)));
        }
    };
    for path in &arguments.records {
        let name = path.display().to_string();
        let reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
            Box::new(BufReader::with_capacity(BUFFER, io::stdin().lock()))
        } else {
            let file = File::open(path);
            let file = file.map_err(|error| failed(format!("{name}: cannot be opened: {error}")))?;
            Box::new(BufReader::with_capacity(BUFFER, file))
        };
        let done = tally.read(&name, reader, &mut tell);
        done.map_err(|error| failed(format!("{name}: cannot be read: {error}")))?;
    }
    tally.finish();
    progress.tell("");
    Ok(tally)
}

#[cfg(test)]
mod tests;
