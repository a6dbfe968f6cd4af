use clap::Parser;

use super::*;

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    arguments: Arguments,
}

fn shown(line: &str) -> String {
    let words = std::iter::once("simulate").chain(line.split_whitespace());
    let arguments = Words::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).arguments;
    output(&arguments).unwrap_or_else(|problem| panic!("{problem}"))
}

/// As far as a number that was written and read is the same.
#[track_caller]
fn assert_same(seen: &Value, expected: f64) {
    let seen = seen.as_f64().expect("a number");
    assert!((seen / expected - 1.0).abs() < 1e-12, "{seen}, expected {expected}");
}

const SMALL: &str = "--model --runs 2 --requests 300 --quiet";

#[test]
fn the_first_table_is_the_model_s_and_the_second_the_proxy_s() {
    let report: Value = serde_json::from_str(&shown(&format!("{SMALL} --json"))).expect("JSON");
    for (table, (path, delay)) in report["tables"].as_array().expect("tables").iter().zip(paths()) {
        let loss = path.path.up.loss;
        let rows = table["rows"].as_array().expect("rows");
        assert_eq!(table["scenario"], path.name.as_str());
        assert_eq!((table["loss"].as_f64(), rows.len()), (Some(loss), timers().len()));
        for (row, timer) in rows.iter().zip(timers()) {
            assert_eq!(row["policy"], timer.name);
            let runs = (0..2).map(|run| {
                let seed = Chance::of_run(1, run).seed;
                loss::row_over(timer, Lossy { loss, delay, seed }, 300)
            });
            let mean = Estimate::of(runs.map(|row| row.mean.as_secs_f64()));
            assert_same(&row["alone"]["mean"]["mean"], mean.mean);
            assert_same(&row["alone"]["mean"]["within"], mean.within);
            // Of two runs.
            assert_same(&row["alone"]["middle_mean"], mean.mean);
            assert_eq!(row["proxy"].is_null(), configured(&timer).is_none(), "{}", timer.name);
        }
        let row = |name: &str| rows.iter().find(|row| row["policy"] == name).expect("a row");
        let study = Study {
            policies: vec![Policy::parse("default", &[]).expect("it is shipped")],
            cells: vec![sequential(path.clone(), 300)],
            runs: 2,
            seed: 1,
            threads: 2,
        };
        let shipped = study.run(&|_| ()).remove(0).remove(0).mean("mean");
        assert_same(&row("default")["proxy"]["mean"]["mean"], shipped);
    }
}

#[test]
fn both_tables_have_a_line_for_each_timer() {
    let text = shown(SMALL);
    for title in ["timers alone, limits lifted", "through the proxy as shipped"] {
        assert_eq!(text.matches(title).count(), 5, "{text}");
    }
    for timer in timers() {
        let lines = text.lines().filter(|line| {
            line.strip_prefix("  ").and_then(|line| line.strip_prefix(timer.name)).is_some_and(|rest| {
                let rest = rest.trim_start();
                rest.starts_with('-') || rest.starts_with(|first: char| first.is_ascii_digit())
            })
        });
        assert_eq!(lines.count(), 10, "{}\n{text}", timer.name);
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110 && !line.contains("NaN")), "{text}");
}

#[test]
fn a_seed_is_an_output_and_what_it_does_not_use_is_refused() {
    let text = shown(&format!("{SMALL} --threads 1"));
    assert_eq!(text, shown(&format!("{SMALL} --threads 2")));
    assert_ne!(text, shown(&format!("{SMALL} --seed 2")));
    for more in ["loss-5", "--policy fixed", "--load 5", "--plot a.svg", "--list"] {
        let words = format!("simulate --model {more}");
        assert!(Words::try_parse_from(words.split_whitespace()).is_err(), "{more}");
    }
}
