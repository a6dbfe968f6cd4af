//! A short run of `weak`: the real proxy on a link that loses datagrams, against its simulation.

use std::process::Command;

mod coapway;

#[test]
fn a_weak_link_does_what_its_simulation_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["weak", "--loss", "0,5", "--origins", "12", "--seconds", "6", "--runs", "32", "--seed", "2"])
        // Timers of a machine that runs tests are late; what gets lost, and how often it is sent, is not.
        .args(["--within", "0.5"])
        .arg("--coapway")
        .arg(coapway::program())
        .output()
        .expect("the bench starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert_eq!(text.matches("- holds: ").count(), 4, "{text}");
    let row = |what: &str| {
        let start = format!("| 5 % | {what} | ");
        let row = text.lines().find_map(|line| line.strip_prefix(&start)).expect("a row");
        let numbers =
            row.split(" | ").map(|cell| cell.split(' ').next().and_then(|number| number.parse().ok()));
        numbers.map(|number: Option<f64>| number.expect("a number")).collect::<Vec<f64>>()
    };
    let (measured, simulated) = (row("coapway, measured"), row("simulated, the same requests and losses"));
    assert!(measured[0] > 0.11 && measured[3] > 1.05, "nothing was lost: {text}");
    assert!((measured[2] - simulated[2]).abs() < 1.0, "answered: {text}");
    assert!((measured[3] - simulated[3]).abs() < 0.05, "copies per request: {text}");
}

#[test]
fn nobody_need_read_to_the_end() {
    let (reader, writer) = std::io::pipe().expect("pipes can be had");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["weak", "--loss", "0", "--origins", "1", "--seconds", "1", "--runs", "2", "--within", "9"])
        .arg("--coapway")
        .arg(coapway::program())
        .stdout(writer)
        .output()
        .expect("the bench starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked") && !errors.contains("cannot write"), "{errors}");
}
