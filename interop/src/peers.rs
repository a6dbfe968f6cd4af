//! What is installed: libcoap's example programs and aiocoap.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A foreign implementation that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `coap-client-notls` of libcoap.
    LibcoapClient,
    /// `coap-server-notls` of libcoap.
    LibcoapServer,
    /// A Python that can `import aiocoap`.
    Aiocoap,
}

/// Where a peer was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program to start: the tool, or the Python interpreter.
    pub program: PathBuf,
    /// What it says of its version.
    pub version: String,
}

impl Peer {
    /// Every peer there is.
    pub const ALL: [Self; 3] = [Self::LibcoapClient, Self::LibcoapServer, Self::Aiocoap];

    /// Looks for the peer; the search is made once per process.
    pub fn find(self) -> Option<&'static Found> {
        static FOUND: [OnceLock<Option<Found>>; 3] = [const { OnceLock::new() }; 3];
        FOUND[self as usize].get_or_init(|| self.search()).as_ref()
    }

    /// What to install to have it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::LibcoapClient | Self::LibcoapServer => "Debian package libcoap3-bin",
            Self::Aiocoap => {
                "aiocoap from PyPI in target/peers/venv, or COAPWAY_AIOCOAP_PYTHON=path of a Python that has it"
            }
        }
    }

    fn search(self) -> Option<Found> {
        match self {
            Self::LibcoapClient => libcoap(&["coap-client-notls", "coap-client"]),
            Self::LibcoapServer => libcoap(&["coap-server-notls", "coap-server"]),
            Self::Aiocoap => {
                let named = env::var_os("COAPWAY_AIOCOAP_PYTHON").map(PathBuf::from);
                let ours = workspace().join("target/peers/venv/bin/python");
                named.into_iter().chain([ours, PathBuf::from("python3")]).find_map(aiocoap)
            }
        }
    }
}

/// Whether all `peers` are here; if not, says so where the test runner shows it.
///
/// Panics when one is missing and `COAPWAY_REQUIRE_PEERS=1`.
pub fn present(peers: &[Peer]) -> bool {
    let missing: Vec<_> = peers.iter().filter(|peer| peer.find().is_none()).collect();
    for peer in &missing {
        let text = format!("missing peer {peer:?}: install {}", peer.hint());
        assert!(!required(), "{text}");
        tell(&format!("{text}; this test checked nothing\n"));
    }
    missing.is_empty()
}

/// Whether a missing peer is a failure.
pub fn required() -> bool {
    env::var("COAPWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1")
}

/// Prints past the test runner's capture, which hides the output of tests that pass.
pub fn tell(text: &str) {
    io::stderr().write_all(text.as_bytes()).expect("standard error is open");
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies inside the workspace")
}

fn libcoap(names: &[&str]) -> Option<Found> {
    let path = env::var_os("PATH")?;
    let program = names
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|candidate| candidate.is_file())?;
    let output = Command::new(&program).arg("-?").output().ok()?;
    let usage = [output.stdout, output.stderr].concat();
    let first = String::from_utf8_lossy(&usage).lines().find(|line| line.contains(" v"))?.to_owned();
    let version = first.split(" v").nth(1)?.split_whitespace().next()?.to_owned();
    Some(Found { program, version })
}

fn aiocoap(program: PathBuf) -> Option<Found> {
    let script =
        "import aiocoap.meta, platform; print(aiocoap.meta.version, 'on Python', platform.python_version())";
    let output = Command::new(&program).args(["-c", script]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(Found { program, version })
}
