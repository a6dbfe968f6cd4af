use clap::Parser;
use serde_json::Value;

use super::*;
use crate::figures::METRICS;
use crate::replay::tests::record;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(line: &str) -> Arguments {
    let words = std::iter::once("simulate").chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).arguments
}

fn shown(line: &str) -> String {
    output(&arguments(line)).unwrap_or_else(|trouble| panic!("{}", trouble.what))
}

fn trouble(line: &str) -> String {
    let trouble = output(&arguments(line)).expect_err("something is wrong");
    assert_eq!(trouble.code, WRONG_USE, "{}", trouble.what);
    trouble.what
}

const SMALL: &str = "--policy default --policy fixed --runs 3 --requests 300 --quiet";

#[test]
fn a_table_has_a_column_per_policy_and_a_line_per_measure() {
    let table = shown(&format!("loss-15 {SMALL} --mix 70,20,10"));
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("loss-15: 100 ms there and back"), "{table}");
    assert!(
        lines[1].contains("70 % GET, 20 % POST, 10 % NON") && lines[1].contains("3 runs, seed 1"),
        "{table}"
    );
    assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["default", "fixed"]);
    for title in [
        "latency, mean",
        "latency, P95",
        "answered",
        "copies per request",
        "executions per POST",
        "fairness over clients",
    ] {
        let line = lines.iter().find(|line| line.trim_start().starts_with(title));
        let line = line.unwrap_or_else(|| panic!("{title}\n{table}"));
        assert!(line.matches(['±', '−', '+']).count() >= 2, "{line}");
    }
    assert!(table.contains("more or less than default, run by run"), "{table}");
    assert!(lines.iter().all(|line| line.chars().count() <= 110 && !line.contains("NaN")), "{table}");
}

#[test]
fn json_has_everything_and_is_the_same_with_each_number_of_threads() {
    let line = format!("loss-15 lan {SMALL} --json --load 5,20");
    let text = shown(&format!("{line} --threads 1"));
    assert_eq!(text, shown(&format!("{line} --threads 2")));
    assert_eq!(text, shown(&format!("{line} --threads 2")));
    assert_ne!(text, shown(&format!("{line} --seed 2")));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["seed"], &report["runs"]), (&1.into(), &3.into()));
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(
        cells.iter().map(|cell| cell["rate"].as_f64()).collect::<Vec<_>>(),
        [5.0, 20.0, 5.0, 20.0].map(Some)
    );
    for result in cells.iter().flat_map(|cell| cell["results"].as_array().expect("results")) {
        assert_eq!(result["metrics"].as_object().map(serde_json::Map::len), Some(METRICS.len()));
        assert_eq!(result["runs"].as_array().map(Vec::len), Some(3));
        let answered = result["answered"].as_u64().expect("a count");
        let steps = result["latency_steps"].as_array().expect("steps");
        assert_eq!(steps.last().map(|step| step[1].as_u64()), Some(Some(answered)));
        let retries: u64 =
            result["retries"].as_array().expect("counts").iter().filter_map(Value::as_u64).sum();
        assert!(retries <= 900 && retries >= answered, "{retries} of 900 left, {answered} were answered");
        assert!(result["timeline"]["samples"].as_array().is_some_and(|samples| samples.len() > 1));
    }
}

#[test]
fn one_more_policy_changes_nothing_for_the_others() {
    let of_default = |policies: &str| -> Value {
        let report: Value = serde_json::from_str(&shown(&format!(
            "loss-15 {policies} --runs 2 --requests 200 --quiet --json"
        )))
        .expect("JSON");
        report["cells"][0]["results"][0].clone()
    };
    assert_eq!(
        of_default("--policy default"),
        of_default("--policy default --policy fixed --policy rfc7252")
    );
}

#[test]
fn an_unknown_name_is_answered_with_what_there_is() {
    assert!(trouble("los-15").contains("no scenario \"los-15\"\n  hint: there are lan, loss-1"));
    assert!(
        trouble("lan --policy fixd").contains("no policy \"fixd\"\n  hint: there are default, fixed, p95")
    );
    assert!(trouble("").contains("no scenario"));
    assert!(trouble("lan --set upstream.max_wat=1s").contains("did you mean upstream.max_wait"));
    assert!(trouble("lan --plot a.jpg").contains("neither .svg nor .png"));
    assert!(trouble("none.toml").contains("none.toml: cannot be read"));
    assert!(trouble("--replay /none").contains("/none: cannot be read"));
    assert!(trouble("--show none").contains("no scenario"));
}

#[test]
fn a_file_is_a_scenario_and_its_errors_say_where() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, shown("--show loss-5").replace("100 ms", "my own")).expect("written");
    assert!(shown(&format!("{} {SMALL}", file.display())).starts_with("mine: my own there and back"));
    std::fs::write(&file, "[path]\nloss = 1.5\nlos = 1\n").expect("written");
    let what = trouble(&file.display().to_string());
    assert!(what.contains("mine.toml:2:8: path.loss = 1.5\n    out of range; allowed: 0 to 1"), "{what}");
    assert!(what.contains("mine.toml:3:1: path.los\n    unknown key"), "{what}");
}

#[test]
fn records_are_a_path_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("records");
    let record = |second: u32| record(second.into(), &[0.0], Some(300.0));
    std::fs::write(&file, (0..60).map(record).collect::<String>()).expect("written");
    let table =
        shown(&format!("--replay {} --policy default --policy fixed --runs 2 --quiet", file.display()));
    assert!(
        table.starts_with("boiler: 60 forwards in records: half of the answers within 0.300 s"),
        "{table}"
    );
    let median = table.lines().find(|line| line.contains("latency, P50")).expect("a line");
    assert!(median.matches("0.300").count() == 2, "{table}");
    assert!(
        trouble(&format!("--replay {} --upstream kettle", file.display()))
            .contains("no forward of upstream \"kettle\"")
    );
}

#[test]
fn rejections_are_told_by_number() {
    assert!(
        rejections(1).starts_with("1 forward was rejected")
            && rejections(1).ends_with("it is not counted as lost")
    );
    assert!(rejections(7).starts_with("7 forwards were rejected (ICMP unreachable or Reset)"));
}

#[test]
fn more_runs_than_memory_holds_are_refused_before_the_first() {
    let what = trouble("all --runs 10000 --load 1,2,3 --policy default --policy fixed");
    assert!(what.contains("at most 100000 are kept in memory\n  hint: fewer"), "{what}");
    assert!(what.contains("with --runs 10000 are ") && what.contains("2 policies"), "{what}");
}

#[test]
fn what_files_say_reaches_no_terminal_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = directory.path().join("s\u{1b}[31m.toml");
    let text = shown("--show lan").replace("a local network", "\\u001b[32m<&");
    std::fs::write(&scenario, text).expect("written");
    let policy = directory.path().join("p\u{9b}.toml");
    std::fs::write(&policy, "[upstream]\nmax_wait = \"7s\"\n").expect("written");
    let picture = directory.path().join("a.svg");
    let table = shown(&format!(
        "{} --policy {} --policy fixed --runs 2 --requests 20 --quiet --plot {}",
        scenario.display(),
        policy.display(),
        picture.display()
    ));
    assert!(table.chars().all(|letter| letter == '\n' || !letter.is_control()), "{table:?}");
    assert!(table.starts_with("s\\u{1b}[31m: \\u{1b}[32m<&"), "{table}");
    let picture = std::fs::read_to_string(picture).expect("a picture");
    assert!(picture.chars().all(|letter| letter == '\n' || !letter.is_control()), "{picture:?}");
}

#[test]
fn files_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = ["a", "b"].map(|folder| directory.path().join(folder).join("mine.toml"));
    for file in &files {
        std::fs::create_dir(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, "[upstream]\nmax_wait = \"7s\"\n").expect("written");
    }
    let [a, b] = files.map(|file| file.display().to_string());
    let line = format!("lan --policy {a} --policy {b} --policy fixed --runs 1 --requests 20 --quiet --json");
    let report: Value = serde_json::from_str(&shown(&line)).expect("JSON");
    let names: Vec<_> = (0..3).map(|place| report["policies"][place]["name"].clone()).collect();
    assert_eq!(names, [&*a, &b, "fixed"]);
}

#[test]
fn a_duration_within_the_warmup_is_refused() {
    let what = trouble("bufferbloat-50 --duration 1min");
    assert!(what.contains("scenario bufferbloat-50: nothing would count") && what.contains("300s"), "{what}");
    assert!(trouble("lan --warmup 10h").contains("nothing would count"));
    let requests = |more: &str| {
        let report =
            shown(&format!("loss-15 --policy default --runs 1 --quiet --json --duration 2min {more}"));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        report["cells"][0]["results"][0]["metrics"]["requests"]["mean"].as_f64().expect("a number")
    };
    let share = requests("--warmup 1min") / requests("");
    assert!((0.35..0.65).contains(&share), "half of the time counts: {share}");
}

#[test]
fn pictures_are_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let (svg, png) = (directory.path().join("a.svg"), directory.path().join("a.png"));
    shown(&format!("lan {SMALL} --plot {} --plot {}", svg.display(), png.display()));
    assert!(std::fs::read_to_string(svg).is_ok_and(|text| text.contains("answered, % of all requests")));
    assert!(std::fs::read(png).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG")));
}

#[test]
fn the_list_names_everything_once() {
    let list = shown("--list");
    for scenario in named() {
        assert_eq!(list.matches(&format!("  {} ", scenario.name)).count(), 1, "{}", scenario.name);
    }
    let json: Value = serde_json::from_str(&shown("--list --json")).expect("JSON");
    assert_eq!(json["scenarios"].as_array().map(Vec::len), Some(named().count()));
    assert_eq!(json["policies"][0], DEFAULT);
}
