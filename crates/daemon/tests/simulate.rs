//! `coapway simulate` as a program: what goes where, and how it ends.

use std::process::{Command, Output};

use serde_json::Value;

fn simulate(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.arg("simulate").args(line.split_whitespace()).output().expect("the program runs")
}

#[test]
fn a_table_or_json_goes_to_standard_output_and_nothing_else_anywhere() {
    let table = simulate("lan --runs 2 --requests 50");
    assert!(table.status.success() && table.stderr.is_empty(), "{table:?}");
    assert!(String::from_utf8_lossy(&table.stdout).starts_with("lan: a local network"), "{table:?}");
    let json = simulate("lan --runs 2 --requests 50 --json --policy default");
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["cells"][0]["results"][0]["metrics"]["answered"]["mean"], 1.0);
    assert_eq!(
        json.stdout,
        simulate("lan --runs 2 --requests 50 --json --policy default --threads 2").stdout
    );
}

#[test]
fn what_is_not_there_is_wrong_use() {
    for line in ["nowhere", "lan --policy nothing", "nothing.toml", ""] {
        let output = simulate(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"coapway: "), "{line}: {output:?}");
    }
}
