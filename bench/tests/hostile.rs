//! A short hostile run against the real proxy: low rates, the loopback interface.

use std::process::Command;

mod coapway;

#[test]
fn good_clients_are_answered_beside_hostile_datagrams() {
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["hostile", "--no-pin", "--quiet", "1", "--seconds", "2", "--flat-out", "0", "--seed", "1"])
        .args(["--rate", "1000", "--good", "100", "--clients", "10", "--bound-mib", "1024"])
        .arg("--coapway")
        .arg(coapway::program())
        .output()
        .expect("the bench starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    // Times and rates are another matter on a machine that runs tests.
    for phase in ["quiet", "hostile"] {
        let start = format!("- holds: {phase}: ");
        let answered = |line: &str| line.starts_with(&start) && line.contains("answered rightly and once");
        assert!(text.lines().any(answered), "{text}\n{errors}");
    }
    for verdict in ["- holds: the proxy lived to the end", "- holds: memory"] {
        assert!(text.contains(verdict), "{text}\n{errors}");
    }
    assert_eq!(output.status.success(), !text.contains("does not hold"), "{text}\n{errors}");
}
