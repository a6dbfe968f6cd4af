//! The program under test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds coapway beside the bench, in the profile that the bench itself has.
pub(crate) fn program() -> PathBuf {
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
