//! A short run of `reload` against the real proxy.

use std::process::Command;

mod coapway;

#[test]
fn nothing_is_lost_over_reloads_and_a_stop() {
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["reload", "--no-pin", "--rate", "200", "--clients", "10", "--reloads", "20", "--pause", "20"])
        .arg("--coapway")
        .arg(coapway::program())
        .output()
        .expect("the bench starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert_eq!(text.matches("- holds: ").count(), 4, "{text}");
}
