//! A short hostile run against the real proxy: low rates, the loopback interface.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds coapway beside the bench, in the profile that the bench itself has.
fn coapway() -> PathBuf {
    let bench = Path::new(env!("CARGO_BIN_EXE_coapway-bench"));
    let profile_folder = bench.parent().expect("a program lies in its profile's folder");
    let target_folder = profile_folder.parent().expect("a profile lies in the target folder");
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--package", "coapway-daemon", "--bin", "coapway"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target_folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo can be started");
    assert!(status.success(), "coapway does not build");
    profile_folder.join(format!("coapway{}", env::consts::EXE_SUFFIX))
}

#[test]
fn good_clients_are_answered_beside_hostile_datagrams() {
    let output = Command::new(env!("CARGO_BIN_EXE_coapway-bench"))
        .args(["hostile", "--no-pin", "--quiet", "1", "--seconds", "2", "--flat-out", "0", "--seed", "1"])
        .args(["--rate", "1000", "--good", "100", "--clients", "10", "--bound-mib", "1024"])
        .arg("--coapway")
        .arg(coapway())
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
