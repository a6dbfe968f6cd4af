//! The package in a Debian system of its own: installed, run, removed, purged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::files::{Files, difference};
use crate::run::{output, tell};

/// How long a Debian system may take to be fetched and unpacked, and a forward to be made, in seconds.
const DEBOOTSTRAP: &str = "1200";
const FORWARD: &str = "60";
const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What may be left after a removal.
const CONFIGURATION: [&str; 3] = ["etc/coapway", "etc/coapway/coapway.toml", "etc/logrotate.d/coapway"];
/// What an administrator may have made of it.
const OWN_CONFIGURATION: &str = "[[listen]]\nuri = \"coap://127.0.0.1:5683\"\n";
/// What dpkg notes about itself.
const OF_DPKG: [&str; 2] = ["var/lib/dpkg", "var/log/dpkg.log"];

/// Where to get Debian from.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The mirror; where apt has its packages from if it is left out.
    #[arg(long, value_name = "URI")]
    mirror: Option<String>,
    /// The release; that of this system if it is left out.
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// A folder that keeps what was fetched for the next time.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// No Debian at all: dpkg of this system installs into an empty folder.
    #[arg(long)]
    empty: bool,
    /// The same where no Debian can be fetched.
    #[arg(long)]
    or_empty: bool,
}

/// Installs, runs, removes and purges a package.
///
/// Errors: what does not work, or what is left behind.
pub(crate) fn check(root: &Path, package: &Path, source: &Source) -> Result<()> {
    let user = output(Command::new("id").arg("--user"))?;
    ensure!(user.trim() == "0", "only root may install packages, if only into a folder of its own");
    lint(package)?;
    let system = if source.empty {
        System::empty()?
    } else {
        match System::debian(source) {
            Err(error) if source.or_empty => {
                tell(format_args!("==> {error:#}"));
                System::empty()?
            }
            system => system?,
        }
    };

    let before = system.files()?;
    system.install(package)?;
    tell(format_args!(
        "==> installed; {} files and folders",
        difference(&before, &system.files()?).added.len()
    ));

    let told = system.forward(root)?;
    ensure!(told.contains("2.05 Content"), "no forward:\n{told}");
    tell(format_args!("==> started without a service manager, and forwarded a request"));

    let configuration = system.folder.path().join("etc/coapway/coapway.toml");
    fs::write(&configuration, OWN_CONFIGURATION)?;
    system.dpkg(&["--remove", "coapway"], None)?;
    let left = difference(&before, &system.files()?);
    let unexpected = left.without(&OF_DPKG).without_files(&CONFIGURATION);
    ensure!(unexpected.is_empty(), "the removal leaves:\n{unexpected}");
    tell(format_args!("==> removed; configuration is left"));

    // And once more over what was left.
    system.install(package)?;
    ensure!(fs::read_to_string(&configuration)? == OWN_CONFIGURATION, "the configuration was overwritten");
    fs::create_dir_all(system.folder.path().join("var/log/coapway"))?;
    fs::write(system.folder.path().join("var/log/coapway/forwards.jsonl"), "{}")?;
    system.dpkg(&["--purge", "coapway"], None)?;
    let left = difference(&before, &system.files()?).without(&OF_DPKG);
    ensure!(left.is_empty(), "the purge leaves:\n{left}");
    tell(format_args!("==> purged; nothing is left"));
    Ok(())
}

/// Asks lintian, where there is one.
fn lint(package: &Path) -> Result<()> {
    if output(Command::new("lintian").arg("--version")).is_err() {
        tell(format_args!("==> lintian is not here and was not asked"));
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    let told = output(lintian.args(["--allow-root", "--fail-on", "error"]).arg(package))?;
    tell(format_args!("==> lintian has no errors\n{}", told.trim_end()));
    Ok(())
}

/// A system to install into.
struct System {
    folder: TempDir,
    /// Whether programs in it can be run as if there were nothing else.
    is_complete: bool,
}

impl System {
    /// The smallest Debian there is.
    fn debian(source: &Source) -> Result<Self> {
        let (mirror, suite) = match (&source.mirror, &source.suite) {
            (Some(mirror), Some(suite)) => (mirror.clone(), suite.clone()),
            (mirror, suite) => {
                let (own, of_own) = apt_source()?;
                (mirror.clone().unwrap_or(own), suite.clone().unwrap_or(of_own))
            }
        };
        tell(format_args!("==> fetching {suite} from {mirror}"));
        let folder = tempfile::tempdir()?;
        // What it mounts goes when it goes.
        let mut debootstrap = Command::new("timeout");
        debootstrap.args([DEBOOTSTRAP, "unshare", "--mount", "debootstrap", "--variant=minbase"]);
        if let Some(cache) = &source.cache {
            fs::create_dir_all(cache)?;
            debootstrap.arg(format!("--cache-dir={}", cache.canonicalize()?.display()));
        }
        output(debootstrap.arg(&suite).arg(folder.path()).arg(&mirror)).with_context(|| {
            format!(
                "no Debian to install into: is debootstrap here, and does {mirror} answer? \
                 --mirror names another one, --empty does without"
            )
        })?;
        let system = Self { folder, is_complete: true };
        ensure!(!system.folder.path().join("usr/bin/systemctl").exists(), "{suite} comes with systemctl");
        Ok(system)
    }

    fn empty() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // What the smallest Debian has too; a folder with nothing else in it would go with the package.
        let shared = ["etc/logrotate.d", "etc/systemd/system", "usr/lib", "var/lib/systemd"];
        for needed in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"].iter().chain(&shared) {
            fs::create_dir_all(folder.path().join(needed))?;
        }
        for folder in shared.map(|shared| folder.path().join(shared)) {
            fs::write(folder.join("of-another-package"), "")?;
        }
        fs::write(folder.path().join("var/lib/dpkg/status"), "")?;
        std::os::unix::fs::symlink("usr/lib", folder.path().join("lib"))?;
        tell(format_args!("==> an empty folder instead of a Debian system"));
        Ok(Self { folder, is_complete: false })
    }

    fn files(&self) -> Result<Files> {
        crate::files::list(self.folder.path())
    }

    fn install(&self, package: &Path) -> Result<()> {
        // With the configuration that is there, as for an upgrade.
        self.dpkg(&["--install", "--force-confold"], Some(package))?;
        let verified = self.dpkg(&["--verify", "coapway"], None)?;
        // The configuration may be another one: `c`.
        let changed: Vec<_> = verified.lines().filter(|line| !line.contains(" c /etc/")).collect();
        ensure!(changed.is_empty(), "files are not as they were packed:\n{}", changed.join("\n"));
        Ok(())
    }

    fn dpkg(&self, arguments: &[&str], package: Option<&Path>) -> Result<String> {
        let root = self.folder.path();
        let mut command = if self.is_complete {
            let mut command = Command::new("chroot");
            command.arg(root).arg("dpkg");
            command
        } else {
            let mut command = Command::new("dpkg");
            command.arg(format!("--root={}", root.display()));
            command.arg(format!("--log={}", root.join("var/log/dpkg.log").display()));
            command.args(["--force-script-chrootless", "--force-depends"]);
            command
        };
        command.args(arguments).env_clear().env("PATH", SEARCHED).env("LC_ALL", "C");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        let Some(package) = package else { return output(&mut command) };
        if self.is_complete {
            fs::copy(package, root.join("coapway.deb"))?;
            let told = output(command.arg("/coapway.deb"));
            fs::remove_file(root.join("coapway.deb"))?;
            told
        } else {
            output(command.arg(package))
        }
    }

    /// Asks for something through the proxy as it is installed; as nobody, where there is one.
    fn forward(&self, root: &Path) -> Result<String> {
        let own = self.folder.path();
        let mut command = Command::new("timeout");
        command.args([FORWARD, "unshare", "--net", "--pid", "--fork", "--kill-child"]);
        command.arg(root.join("packaging/forward.sh"));
        if self.is_complete {
            command.arg("/etc/coapway/coapway.toml");
            command.args(["chroot", "--userspec=65534:65534"]).arg(own).arg("/usr/bin/coapway");
        } else {
            command.arg(own.join("etc/coapway/coapway.toml")).arg(own.join("usr/bin/coapway"));
        }
        output(&mut command)
    }
}

/// The mirror and the release that apt has its packages from.
fn apt_source() -> Result<(String, String)> {
    let mut ask = Command::new("apt-get");
    let told = output(ask.args(["indextargets", "--format", "$(SITE) $(RELEASE)"]))?;
    let mut sources = told.lines().filter_map(|line| line.split_once(' '));
    // Updates and the like are no whole releases.
    let (mirror, suite) = sources
        .find(|(_, release)| !release.contains(['-', '/']))
        .context("apt names no Debian release; --mirror and --suite do")?;
    Ok((mirror.to_owned(), suite.to_owned()))
}
