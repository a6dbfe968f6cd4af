//! What surrounds the program where it is installed. The crate in `packaging` makes it; it is built when
//! it is asked for, so that the checks here need not wait for the program.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::saying::tell;
use crate::workspace::Workspace;

/// Manual pages and completions; true when they were written.
pub(crate) fn documents(workspace: &Workspace) -> Result<bool> {
    let folder = folder(workspace);
    let written = packaging(workspace, &["documents".as_ref(), folder.as_os_str()]).status()?.success();
    if written {
        tell!("written to {}", folder.display());
    }
    Ok(written)
}

/// The Debian package; where it is, when it was built.
pub(crate) fn build(workspace: &Workspace, debug: bool) -> Result<Option<PathBuf>> {
    let mut program = cargo(workspace);
    program.args(["build", "--quiet", "--locked", "--package", "coapway-daemon", "--bin", "coapway"]);
    if !debug {
        program.arg("--release");
    }
    if !program.status().context("cannot run cargo build")?.success() {
        return Ok(None);
    }
    let binary = workspace.target().join(if debug { "debug" } else { "release" }).join("coapway");
    let folder = folder(workspace);
    let arguments = ["deb".as_ref(), binary.as_os_str(), folder.as_os_str()];
    let output = packaging(workspace, &arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let package = String::from_utf8(output.stdout).context("a path is text")?;
    let package = package.trim();
    tell!("built {package}");
    Ok(Some(package.into()))
}

/// Builds and tries the package; true when it left nothing behind.
pub(crate) fn check(workspace: &Workspace, debug: bool, arguments: &[String]) -> Result<bool> {
    if let Some(obstacle) = obstacle() {
        bail!("the package cannot be tried: {obstacle}");
    }
    let Some(package) = build(workspace, debug)? else { return Ok(false) };
    let folder = folder(workspace);
    let (cache, systems) = (folder.join("debootstrap"), folder.join("systems"));
    fs::create_dir_all(&systems)?;
    let mut all: Vec<&OsStr> =
        vec!["check".as_ref(), package.as_os_str(), "--cache".as_ref(), cache.as_os_str()];
    all.extend(arguments.iter().map(AsRef::<OsStr>::as_ref));
    let check = packaging(workspace, &all);
    // A system that is thrown away need not wait for a disk.
    let mut in_memory = Command::new("unshare");
    in_memory.args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs \"$TMPDIR\"; exec \"$@\"", "sh"]);
    in_memory.arg(check.get_program()).args(check.get_args()).env("TMPDIR", &systems);
    Ok(in_memory.current_dir(workspace.root()).status()?.success())
}

/// Why the package cannot be tried on this system, if it cannot.
pub(crate) fn obstacle() -> Option<&'static str> {
    let succeeds = |command: &mut Command| {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !succeeds(Command::new("dpkg-shlibdeps").arg("--version")) {
        return Some("dpkg-dev is not installed");
    }
    let network =
        succeeds(Command::new("unshare").args(["--mount", "--net", "ip", "link", "set", "lo", "up"]));
    (!network).then_some("no namespaces can be made; are you root, and is there unshare and ip?")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("package")
}

fn packaging(workspace: &Workspace, arguments: &[&OsStr]) -> Command {
    let mut command = cargo(workspace);
    command.args(["run", "--quiet", "--locked", "--package", "coapway-packaging", "--"]).args(arguments);
    command
}

fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root());
    command
}
