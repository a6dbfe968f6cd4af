//! The Debian package: a tree of what it installs, and `dpkg-deb` around it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, Result, ensure};

use crate::completions::SHELLS;
use crate::run::output;
use crate::{completions, manual};

/// The upstream version and the package's own.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");
const SUMMARY: &str = "CoAP proxy that keeps its word on weak networks";
const DESCRIPTION: &str = " coapway is a forward and reverse proxy for the Constrained Application
 Protocol (RFC 7252). Every request is answered once and in time, a POST is
 never begun anew, and timeouts fit the path they are used on.
 .
 The package runs it as a service that listens on the loopback interface
 until it is configured otherwise.
";

/// What goes where; manual pages, completions and changelogs come beside it.
const FILES: [(&str, &str, u32); 6] = [
    ("packaging/coapway.service", "usr/lib/systemd/system/coapway.service", 0o644),
    ("packaging/coapway.toml", "etc/coapway/coapway.toml", 0o644),
    ("packaging/coapway.logrotate", "etc/logrotate.d/coapway", 0o644),
    ("packaging/debian/copyright", "usr/share/doc/coapway/copyright", 0o644),
    ("README.md", "usr/share/doc/coapway/README.md", 0o644),
    ("docs/record.md", "usr/share/doc/coapway/record.md", 0o644),
];
const CONFFILES: &str = "/etc/coapway/coapway.toml\n/etc/logrotate.d/coapway\n";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds the package out of a binary and the sources in `root`, and says where it is.
///
/// Shape:  the same binary and sources make the same package, byte for byte.
/// Errors: a tool is missing or fails.
pub(crate) fn build(root: &Path, binary: &Path, folder: &Path) -> Result<PathBuf> {
    let tools = ["dpkg-deb", "dpkg-shlibdeps", "strip", "gzip"];
    let missing = |tool: &&str| output(Command::new(tool).arg("--version")).is_err();
    let missing: Vec<_> = tools.into_iter().filter(missing).collect();
    ensure!(missing.is_empty(), "not here: {}; on Debian, dpkg-dev brings them", missing.join(", "));
    let staging = tempfile::tempdir()?;
    let tree = staging.path().join("tree");
    let epoch = epoch(root)?;
    install(root, binary, &tree, epoch)?;
    let installed = size(&tree)?;
    control(root, &tree, installed)?;

    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    fs::create_dir_all(folder)?;
    let package = folder.join(format!("coapway_{VERSION}_{}.deb", architecture.trim()));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(&package);
    output(build.env("SOURCE_DATE_EPOCH", epoch.to_string()))?;
    Ok(package)
}

fn install(root: &Path, binary: &Path, tree: &Path, epoch: u64) -> Result<()> {
    let program = tree.join("usr/bin/coapway");
    copy(binary, &program, 0o755)?;
    output(Command::new("strip").args(["--strip-unneeded", "--remove-section=.comment"]).arg(&program))?;
    for (from, to, mode) in FILES {
        copy(&root.join(from), &tree.join(to), mode)?;
    }

    let command = coapway_daemon::command_line();
    let shells = tempfile::tempdir()?;
    completions::write(&command, shells.path())?;
    let places = [
        "usr/share/bash-completion/completions/coapway",
        "usr/share/zsh/vendor-completions/_coapway",
        "usr/share/fish/vendor_completions.d/coapway.fish",
    ];
    for ((_, name), place) in SHELLS.into_iter().zip(places) {
        copy(&shells.path().join(name), &tree.join(place), 0o644)?;
    }
    let pages = tempfile::tempdir()?;
    manual::write(&command, pages.path())?;
    for entry in fs::read_dir(pages.path())? {
        let page = entry?.path();
        let section = page.extension().context("a page has a section")?.display().to_string();
        let name = page.file_name().context("a page has a name")?;
        compressed(&page, &tree.join(format!("usr/share/man/man{section}")).join(name))?;
    }

    let documents = tree.join("usr/share/doc/coapway");
    compressed(&root.join("CHANGELOG.md"), &documents.join("changelog"))?;
    let changes = shells.path().join("changes");
    fs::write(&changes, changelog(epoch)?)?;
    compressed(&changes, &documents.join("changelog.Debian"))
}

/// What the package is, for `dpkg`.
fn control(root: &Path, tree: &Path, installed: u64) -> Result<()> {
    let folder = tree.join("DEBIAN");
    fs::create_dir_all(&folder)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let text = format!(
        "Package: coapway\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {installed}\n\
         Depends: {}\nSuggests: logrotate\nSection: net\nPriority: optional\n\
         Description: {SUMMARY}\n{DESCRIPTION}",
        architecture.trim(),
        maintainer(),
        depends(&tree.join("usr/bin/coapway"))?,
    );
    fs::write(folder.join("control"), text)?;
    fs::write(folder.join("conffiles"), CONFFILES)?;
    for script in SCRIPTS {
        copy(&root.join("packaging/debian").join(script), &folder.join(script), 0o755)?;
    }
    let sums = "find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -printf '%P\\0' \
                | LC_ALL=C sort -z | xargs -0r md5sum";
    fs::write(folder.join("md5sums"), output(Command::new("sh").args(["-c", sums]).current_dir(tree))?)?;
    mode(&folder, 0o755)?;
    for name in ["control", "conffiles", "md5sums"] {
        mode(&folder.join(name), 0o644)?;
    }
    Ok(())
}

/// The libraries that the binary needs, and the versions that have what it uses.
fn depends(program: &Path) -> Result<String> {
    // It wants to stand in a source package.
    let source = tempfile::tempdir()?;
    fs::create_dir(source.path().join("debian"))?;
    fs::write(
        source.path().join("debian/control"),
        "Source: coapway\n\nPackage: coapway\nArchitecture: any\n",
    )?;
    let mut ask = Command::new("dpkg-shlibdeps");
    let told = output(ask.arg("-O").arg(program).current_dir(&source))?;
    let depends = told.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(depends.context("dpkg-shlibdeps names no library")?.to_owned())
}

/// As Debian's tools take it from the environment.
fn maintainer() -> String {
    let variable = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let name = variable("DEBFULLNAME", "The coapway authors");
    format!("{name} <{}>", variable("DEBEMAIL", "packages@coapway.invalid"))
}

fn changelog(epoch: u64) -> Result<String> {
    let date =
        output(Command::new("date").args(["--utc", "--rfc-email", "--date"]).arg(format!("@{epoch}")))?;
    Ok(format!(
        "coapway ({VERSION}) unstable; urgency=medium\n\n  * See changelog.gz for what has changed.\n\n -- {}  {}\n",
        maintainer(),
        date.trim()
    ))
}

/// The age of the package, in seconds since 1970: that of the last commit, or of the list of changes
/// where there is no history.
fn epoch(root: &Path) -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    let mut ask = Command::new("git");
    if let Ok(told) = output(ask.args(["log", "-1", "--format=%ct"]).current_dir(root))
        && let Ok(seconds) = told.trim().parse()
    {
        return Ok(seconds);
    }
    Ok(fs::metadata(root.join("CHANGELOG.md"))?.modified()?.duration_since(UNIX_EPOCH)?.as_secs())
}

/// What it takes when installed, in KiB.
fn size(tree: &Path) -> Result<u64> {
    let mut ask = Command::new("du");
    let told = output(ask.args(["--summarize", "--apparent-size", "--block-size=1024"]).arg(tree))?;
    told.split_whitespace().next().context("du tells nothing")?.parse().context("du tells no number")
}

fn compressed(from: &Path, to: &Path) -> Result<()> {
    copy(from, to, 0o644)?;
    output(Command::new("gzip").args(["--best", "--no-name"]).arg(to)).map(drop)
}

fn copy(from: &Path, to: &Path, bits: u32) -> Result<()> {
    let folder = to.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    mode(to, bits)
}

fn mode(path: &Path, bits: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(bits))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}
