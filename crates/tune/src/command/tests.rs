//! Records of the product on known paths, and what is made of them.

use std::sync::LazyLock;

use coapway_config::{Config, Overrides};
use coapway_endpoint::Estimator;
use coapway_proxy::UpstreamParameters;
use serde_json::Value;

use super::*;
use crate::path::Path as Way;
use crate::policy::Policy;
use crate::predictor::Run;
use crate::rehearsal::tests::{path, records};

const FEW: Effort = Effort { search: (150, 2), told: (300, 4), threads: 2, seed: 1 };
const QUIET: Progress = Progress { is_shown: false };

fn fixed() -> UpstreamParameters {
    let mut fixed = UpstreamParameters::default();
    fixed.rto.estimator = Estimator::Fixed;
    fixed
}

/// 10 000 forwards with fixed timers over a path that loses 10 % each way, and a bad line.
static LOSSY: LazyLock<String> = LazyLock::new(|| {
    let (text, _) = records(&Way { once: 0.1, ..path(0.1) }, &fixed(), 10_000, 1);
    text + "{\"event\":\"forward\",\"id\":\"x\"}\n"
});

/// What is made of them, for people and for programs.
static REPORT: LazyLock<(String, Value)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let arguments = asked(&folder, &LOSSY);
    let both = advise(&arguments, FEW, &Rehearsal, QUIET, |tally, advice| {
        let text = std::iter::once(report::head(tally)).chain(advice.iter().map(report::upstream));
        Ok((text.collect(), json::of(tally, advice)))
    });
    both.unwrap()
});

fn asked(folder: &tempfile::TempDir, text: &str) -> Arguments {
    let file = folder.path().join("records");
    std::fs::write(&file, text).unwrap();
    Arguments { records: vec![file], upstream: None, config: None, json: false, seed: 1 }
}

fn said(text: &str, more: &[&str], predictor: &dyn Predictor) -> Result<(String, ExitCode), Complaint> {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = asked(&folder, text);
    for one in more {
        match *one {
            "--json" => arguments.json = true,
            other if other.starts_with('[') => {
                let config = folder.path().join("coapway.toml");
                std::fs::write(&config, other).unwrap();
                arguments.config = Some(config);
            }
            name => arguments.upstream = Some(name.to_owned()),
        }
    }
    let mut output = Vec::new();
    let code = tune(&arguments, FEW, predictor, QUIET, &mut output)?;
    Ok((String::from_utf8(output).unwrap(), code))
}

fn json(text: &str) -> Value {
    serde_json::from_str(&said(text, &["--json"], &Nothing).unwrap().0).unwrap()
}

/// Knows nothing, so that reading alone is tried.
struct Nothing;

impl Predictor for Nothing {
    fn run(&self, _: &Way, _: &Policy, _: usize, seed: u64) -> Run {
        Run { mean: 100.0 + seed as f64 * 1e-3, answered: 1.0, copies: 1.0, ..Run::default() }
    }

    fn useful_share(&self, _: &Policy, _: usize, _: u64) -> f64 {
        1.0
    }
}

/// What learns costs half; only the fixed timeout survives a crowd.
struct Unstable;

impl Predictor for Unstable {
    fn run(&self, _: &Way, policy: &Policy, _: usize, seed: u64) -> Run {
        let mean = if crate::policy::learns(policy) { 50.0 } else { 100.0 };
        Run { mean: mean + seed as f64 * 1e-3, answered: 1.0, copies: 1.0, ..Run::default() }
    }

    fn useful_share(&self, policy: &Policy, _: usize, _: u64) -> f64 {
        if crate::policy::learns(policy) { 0.3 } else { 1.0 }
    }
}

#[track_caller]
fn about(found: &Value, wanted: f64, relative: f64) {
    let found = found.as_f64().unwrap_or(f64::NAN);
    assert!((found / wanted - 1.0).abs() < relative, "{found} instead of {wanted}");
}

#[test]
fn the_path_is_recovered_whatever_timers_were_in_force() {
    // The 95 % quantile of 100 ms · e^(N/2) is 227.6 ms.
    for (loss, policy) in
        [(0.01, fixed()), (0.05, UpstreamParameters::default()), (0.15, UpstreamParameters::default())]
    {
        let (text, _) = records(&path(loss), &policy, 10_000, 1);
        let said = json(&text);
        let found = &said["upstreams"][0]["path"];
        about(&found["loss_each_way"]["value"], loss, 0.2);
        about(&found["loss"]["value"], 1.0 - (1.0 - loss).powi(2), 0.2);
        about(&found["p95_ms"]["value"], 227.6, 0.1);
        let (low, high) = (&found["loss"]["low"], &found["loss"]["high"]);
        assert!(low.as_f64().unwrap() < high.as_f64().unwrap(), "{found}");
        assert_eq!(found["bursts"], Value::Null, "{found}");
    }
}

#[test]
fn separate_responses_tell_the_two_ways_apart() {
    let thinking = path(0.0).round_trip.scaled(5.0);
    let lossy = Way { loss_there: 0.12, loss_back: 0.04, separate: Some((1.0, thinking)), ..path(0.0) };
    let (text, _) = records(&lossy, &fixed(), 10_000, 1);
    let said = json(&text);
    let found = &said["upstreams"][0]["path"];
    about(&found["loss_there"]["value"], 0.12, 0.2);
    about(&found["loss_back"]["value"], 0.04, 0.2);
}

#[test]
fn bursts_are_seen() {
    let bursts = crate::neighbours::Bursts { good: 20.0, bad: 2.0, loss: 0.9 };
    let (text, _) =
        records(&Way { bursts: Some(bursts), ..path(0.0) }, &UpstreamParameters::default(), 10_000, 1);
    let said = json(&text);
    let found = &said["upstreams"][0]["path"]["bursts"];
    about(&found["loss"], 0.9, 0.25);
    // It was bad for less of this time than the 9 % that it is on average.
    about(&found["bad_s"], 2.0, 0.75);
}

#[test]
fn the_proposal_is_better_on_records_it_was_not_made_from() {
    let upstream = &REPORT.1["upstreams"][0];
    assert_eq!(upstream["verdict"], "proposed", "{upstream:#}");
    let proposal = &upstream["proposal"];
    assert!(proposal["cost"].as_f64().unwrap() < 0.9, "{proposal:#}");
    let (before, after) = (&upstream["in_force"]["predicted"], &proposal["predicted"]);
    let mean = |value: &Value, end: &str| value["mean_ms"][end].as_f64().unwrap();
    assert!(mean(after, "high") < mean(before, "low"), "{upstream:#}");
    assert_eq!(upstream["in_force"]["read"]["rto.estimator"], "\"fixed\"");
}

#[test]
fn what_is_to_be_pasted_is_a_configuration_with_that_effect() {
    let toml = REPORT.1["upstreams"][0]["toml"].as_str().unwrap();
    assert!(
        toml.starts_with("[[upstreams]]\nname = \"origin\"\nuri = \"coap://192.0.2.1:5683\"\n"),
        "{toml}"
    );
    let file = Some((Path::new("coapway.toml"), toml));
    let config =
        Config::load(file, [("", ""); 0], &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_ne!(config.parameters().upstreams[1], config.parameters().upstreams[0], "{toml}");
}

#[test]
fn a_configuration_says_what_was_in_force() {
    let config =
        "[[upstreams]]\nname = \"origin\"\nuri = \"coap://device.example\"\nrto.estimator = \"fixed\"\n";
    let (text, _) = said(&LOSSY, &[config], &Unstable).unwrap();
    assert!(text.contains("as the configuration says"), "{text}");
    let complaint = said(&LOSSY, &["[upstream]\nmax_wiat = \"3s\"\n"], &Nothing).unwrap_err();
    assert!(complaint.code == 2 && complaint.text.contains("max_wiat"), "{complaint:?}");
}

#[test]
fn what_fills_buffers_with_copies_is_not_proposed() {
    let (text, _) = said(&LOSSY, &[], &Unstable).unwrap();
    assert!(text.contains("\n    rto.estimator = \"p95\", rto.quantile = 0.9"), "{text}");
    assert!(text.contains("only 30.0 % of replies of use"), "{text}");
    assert!(text.contains("Nothing to propose"), "{text}");
    assert!(!text.contains("To paste"), "{text}");
}

#[test]
fn with_too_little_it_says_how_much_it_needs() {
    let few: String = LOSSY.lines().take(300).flat_map(|line| [line, "\n"]).collect();
    let (text, code) = said(&few, &[], &Nothing).unwrap();
    assert!(text.contains("300 of them tell about the path; it takes "), "{text}");
    assert_ne!(code, ExitCode::SUCCESS);
    let needed = json(&few)["upstreams"][0]["needed"].as_u64().unwrap();
    assert!((1000..10_000).contains(&needed), "{needed}");
    // With so many it is enough, give or take what chance does to the width.
    let more: String = LOSSY.lines().take(needed as usize * 12 / 10).flat_map(|line| [line, "\n"]).collect();
    assert_ne!(json(&more)["upstreams"][0]["verdict"], "too-little");
}

#[test]
fn each_upstream_is_judged_by_itself() {
    let other = LOSSY
        .lines()
        .take(50)
        .map(|line| line.replace("\"origin\",\"origin\"", "\"meter\",\"origin\"") + "\n");
    let both: String = std::iter::once(LOSSY.clone()).chain(other).collect();
    let (text, code) = said(&both, &[], &Nothing).unwrap();
    assert!(text.contains("10 050 forward records of 2 upstreams"), "{text}");
    assert!(text.contains("\nmeter: 50 forwards") && text.contains("\norigin: 10 000 forwards"), "{text}");
    assert_eq!(code, ExitCode::SUCCESS);
    let (text, _) = said(&both, &["meter"], &Nothing).unwrap();
    assert!(!text.contains("\norigin:"), "{text}");
    let complaint = said(&both, &["boiler"], &Nothing).unwrap_err();
    assert!(complaint.code == 2 && complaint.text.contains("boiler"), "{complaint:?}");
}

#[test]
fn a_file_of_anything_is_no_reason_to_fail() {
    let (text, code) = said("", &[], &Nothing).unwrap();
    assert_eq!(text, "0 forward records of 0 upstreams in 0 B (0 lines)\n");
    assert_ne!(code, ExitCode::SUCCESS);
    let (text, _) = said("\u{0}\n[]\n{\"event\":\"forward\",\"id\":\"x\"}\n", &[], &Nothing).unwrap();
    assert!(text.contains("3 lines could not be used") && text.contains("records:1"), "{text}");
}

#[test]
fn nothing_that_others_wrote_reaches_a_terminal_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r\u{1b}[31m\u{9b}");
    let bad = "{\"event\":\"\\u001b[32m\u{9b}\"}\n";
    let name =
        LOSSY.lines().next().unwrap().replacen("\"upstream\":\"origin\"", "\"upstream\":\"\\u001b[33m\"", 1);
    std::fs::write(&file, format!("{bad}{name}\n{}", LOSSY.lines().next().unwrap())).unwrap();
    let arguments = Arguments { records: vec![file], upstream: None, config: None, json: false, seed: 1 };
    let mut output = Vec::new();
    tune(&arguments, FEW, &Nothing, QUIET, &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    assert!(text.contains("first ") && text.contains("r\\u{1b}[31m\\u{9b}:1, event"), "{text}");
    assert!(text.contains(":2, upstream"), "{text}");
}

#[test]
fn an_origin_that_is_no_address_is_not_pasted_into_a_configuration() {
    let line = LOSSY.lines().next().unwrap();
    let wrong = line.replace("192.0.2.1:5683", "x\\\"\\nnstart = 9 #");
    assert_ne!(wrong, line);
    let (text, _) = said(&format!("{wrong}\n{}", *LOSSY), &[], &Nothing).unwrap();
    assert!(text.contains("records:1, origin") && !text.contains("nstart = 9"), "{text}");
}

/// Nobody reads what is written.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn who_has_read_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let code = tune(&asked(&folder, &LOSSY), FEW, &Nothing, QUIET, &mut Closed).unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
}

#[test]
fn a_byte_order_mark_costs_no_line() {
    let (text, _) = said(&format!("\u{feff}{}\n", LOSSY.lines().next().unwrap()), &[], &Nothing).unwrap();
    assert!(
        text.starts_with("1 forward records of 1 upstream") && !text.contains("could not be used"),
        "{text}"
    );
}

#[test]
fn the_only_number_among_the_flags_is_a_seed() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        _arguments: Arguments,
    }
    let command = <Line as clap::CommandFactory>::command();
    let flags = command.get_arguments().filter(|flag| flag.get_action().takes_values());
    let flags: Vec<_> = flags.filter_map(|flag| flag.get_long()).collect();
    assert_eq!(flags, ["upstream", "config", "seed"]);
    let parse = |value| <Line as clap::Parser>::try_parse_from(["tune", "-", "--seed", value]);
    assert!(parse("18446744073709551615").is_ok());
    let told = parse("18446744073709551616").err().expect("too large").to_string();
    assert!(told.contains("--seed <NUMBER>"), "{told}");
}

/// The report as a whole, for the eyes of whoever changes it; `BLESS=1` writes it anew.
#[test]
fn the_report_reads_well() {
    let text: String = REPORT
        .0
        .lines()
        .map(|line| {
            let line = match line.split_once("first /") {
                Some((before, path)) => {
                    format!("{before}first {}", path.rsplit('/').next().unwrap_or_default())
                }
                None => line.to_owned(),
            };
            line + "\n"
        })
        .collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command/tests/report.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(text == kept, "BLESS=1 writes the report anew:\n{text}");
}
