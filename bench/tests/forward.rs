//! The bench against itself: real processes, short loads, the loopback interface.

use std::env;
use std::fs;
use std::process::{Command, id};

use serde_json::Value;

/// Runs a short `forward` and gives back the table and the JSON.
fn forward(arguments: &[&str]) -> (String, Value) {
    let file = env::temp_dir().join(format!("coapway-bench-test-{}-{}.json", id(), arguments.len()));
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["forward", "--without-coapway", "--no-pin", "--repetitions", "1"])
        .args(["--seconds", "0.2", "--warm-up", "0.1", "--json"])
        .arg(&file)
        .args(arguments)
        .output()
        .expect("the bench starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = fs::read_to_string(&file).expect("the bench writes its JSON");
    fs::remove_file(&file).expect("the file can be removed");
    let json = serde_json::from_str(&json).expect("the bench writes right JSON");
    (String::from_utf8(output.stdout).expect("the table is text"), json)
}

#[test]
fn measures_the_bare_forwarder() {
    let (table, json) = forward(&["--clients", "1,40"]);
    let runs = json["runs"].as_array().expect("a list of runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!((&run["counts"], &run["wrong"]), (&Value::from(true), &Value::from(0)), "{run}");
        assert!(
            run["answered"].as_u64() > Some(0) && run["cpu_us_per_request"].as_f64() > Some(0.0),
            "{run}"
        );
    }
    assert!(table.contains("| 40 | bare |") && !table.contains("**!**"), "{table}");
}

#[test]
fn marks_a_proxy_that_confuses_its_clients() {
    let peer = format!(
        "confused={} origin --confuse 50 --listen 127.0.0.1:{{port}}",
        env!("CARGO_BIN_EXE_coapway-bench")
    );
    let (table, json) = forward(&["--clients", "8", "--peer", &peer]);
    let run = &json["runs"][1];
    assert_eq!((&run["proxy"], &run["counts"]), (&Value::from("confused"), &Value::from(false)), "{run}");
    assert!(run["wrong"].as_u64() > Some(0) && run["first_fault"].is_string(), "{run}");
    assert!(table.contains("0/1 **!**"), "{table}");
}
