//! Other programs.

use std::fmt;
use std::io::{self, Write as _};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Runs a program to its end and takes what it says.
///
/// Errors: it cannot be run, or fails; with what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let told = [text.as_str(), &String::from_utf8_lossy(&output.stderr)].concat();
        bail!("{name} failed ({}):\n{}", output.status, told.trim());
    }
    Ok(text)
}

/// Says on standard error what is done. Where nobody hears it, it is done all the same.
pub(crate) fn tell(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{what}");
}
