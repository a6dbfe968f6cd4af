//! The operator's command for alerts: `on_alert = ["/usr/local/bin/tell", "coapway"]`.
//!
//! One command runs at a time, waited for by a thread of its own, and is ended with all it has started when it
//! takes too long or the program ends; alerts that come meanwhile wait, and what is too many is counted and
//! said to the next one.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use coapway_proxy::{Alert, Whose};
use coapway_time::Instant;
use serde::Serialize;

use crate::clock::Clock;
use crate::commands::Commands;
use crate::log::ONCE_A_MINUTE;

/// Alerts that wait while a command runs.
const WAITING: usize = 16;
/// Commands that begin in one [`MINUTE`].
const MOST: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// A command that takes longer is ended, and what it has started.
const LONGEST: Duration = Duration::from_secs(30);
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a command is told: one JSON object on its standard input, and the same words in its environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Message {
    alert: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usual: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantile_ms: Option<u64>,
    /// Alerts before this one that no command was run for.
    left_out: u64,
}

/// Runs the command, if there is one.
#[derive(Debug, Default)]
pub(crate) struct OnAlert {
    queue: Option<SyncSender<Message>>,
    /// The names of upstreams by number.
    names: Vec<Box<str>>,
    left_out: u64,
}

impl OnAlert {
    /// Runs `command` from now on, as one of `commands`; an empty one is none.
    ///
    /// Errors: there is no thread to be had.
    pub(crate) fn start(command: &[String], names: Vec<Box<str>>, commands: &Commands) -> io::Result<Self> {
        let [program, arguments @ ..] = command else { return Ok(Self { names, ..Self::default() }) };
        let (queue, messages) = sync_channel(WAITING);
        let (program, arguments, commands) = (program.clone(), arguments.to_vec(), commands.clone());
        let make = move || {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command
        };
        let run = move || run(&messages, make, LONGEST, &commands);
        thread::Builder::new().name("on-alert".into()).spawn(run)?;
        Ok(Self { queue: Some(queue), names, left_out: 0 })
    }

    /// Has the command told of an alert.
    pub(crate) fn tell(&mut self, alert: &Alert) {
        let Some(queue) = &self.queue else { return };
        let message = Message { left_out: self.left_out, ..self.message(alert) };
        match queue.try_send(message) {
            Ok(()) => self.left_out = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += 1,
        }
    }

    fn message(&self, alert: &Alert) -> Message {
        let name = |upstream: &coapway_relay::UpstreamId| {
            self.names.get(upstream.0 as usize).map(ToString::to_string)
        };
        let message = Message { alert: alert.name(), ..Message::default() };
        match alert {
            Alert::RetriesRose { upstream, origin, usual, recent } => Message {
                upstream: name(upstream),
                origin: Some(origin.to_string()),
                usual: Some(*usual),
                recent: Some(*recent),
                ..message
            },
            Alert::RetriesCalmed { upstream, origin } | Alert::OriginBack { upstream, origin } => {
                Message { upstream: name(upstream), origin: Some(origin.to_string()), ..message }
            }
            Alert::OriginDown { upstream, origin, whose, .. } => Message {
                upstream: name(upstream),
                origin: Some(origin.to_string()),
                client: (*whose != Whose::Everybody).then(|| whose.to_string()),
                ..message
            },
            Alert::TimeoutOverCap { upstream, origin, quantile } => Message {
                upstream: name(upstream),
                origin: Some(origin.to_string()),
                quantile_ms: Some(quantile.as_millis() as u64),
                ..message
            },
            Alert::Loop { client } => Message { client: Some(client.to_string()), ..message },
        }
    }
}

/// Runs one command after the other until nobody has anything to tell any more.
fn run(messages: &Receiver<Message>, make: impl Fn() -> Command, longest: Duration, commands: &Commands) {
    let clock = Clock::start();
    let mut begun: Vec<Instant> = Vec::new();
    let mut left_out = 0;
    while let Ok(message) = messages.recv() {
        let now = clock.now();
        begun.retain(|&at| now.since(at) < MINUTE);
        left_out += message.left_out;
        if begun.len() >= MOST {
            left_out += 1;
            continue;
        }
        begun.push(now);
        let message = Message { left_out: std::mem::take(&mut left_out), ..message };
        if let Err(error) = run_one(&mut make(), &message, longest, clock, commands) {
            tracing::warn!(target: ONCE_A_MINUTE, %error, "on_alert: the command failed");
        }
    }
}

/// Errors: it cannot be started, says that it failed, or takes too long.
fn run_one(
    command: &mut Command,
    message: &Message,
    longest: Duration,
    clock: Clock,
    commands: &Commands,
) -> io::Result<()> {
    let json = serde_json::to_string(message)?;
    command.env("COAPWAY_ALERT", message.alert);
    for (name, value) in [
        ("COAPWAY_UPSTREAM", &message.upstream),
        ("COAPWAY_ORIGIN", &message.origin),
        ("COAPWAY_CLIENT", &message.client),
    ] {
        command.env(name, value.as_deref().map_or(OsStr::new(""), OsStr::new));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = commands.spawn(command)?;
    if let Some(mut input) = child.stdin.take() {
        // Less than a pipe holds; one that does not read it is free not to.
        let _ = writeln!(input, "{json}");
    }
    wait(&mut child, longest, clock, commands)
}

fn wait(child: &mut Child, longest: Duration, clock: Clock, commands: &Commands) -> io::Result<()> {
    let end = clock.now() + longest;
    // Nobody sends anything: receiving waits.
    let (_open, nothing) = channel::<()>();
    loop {
        match commands.try_wait(child)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if clock.now() >= end => {
                commands.kill(child)?;
                return Err(io::Error::other(format!("ended after {longest:?}")));
            }
            None => drop(nothing.recv_timeout(LOOK)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rose() -> Alert {
        let upstream = coapway_relay::UpstreamId(1);
        Alert::RetriesRose { upstream, origin: ([127, 0, 0, 1], 5683).into(), usual: 0.05, recent: 0.4 }
    }

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn names() -> Vec<Box<str>> {
        vec!["default".into(), "boiler".into()]
    }

    #[test]
    fn the_command_is_told_what_and_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("told");
        let script = format!("(cat; echo $COAPWAY_ALERT $COAPWAY_UPSTREAM) > {}", file.display());
        let on_alert = OnAlert { names: names(), ..OnAlert::default() };
        let [program, arguments @ ..] = &shell(&script)[..] else { panic!("a program") };
        let mut command = Command::new(program);
        run_one(
            command.args(arguments),
            &on_alert.message(&rose()),
            LONGEST,
            Clock::start(),
            &Commands::default(),
        )
        .expect("it runs");
        let told = std::fs::read_to_string(file).expect("told");
        assert_eq!(
            told,
            "{\"alert\":\"retries rose\",\"upstream\":\"boiler\",\"origin\":\"127.0.0.1:5683\",\"usual\":0.05,\
             \"recent\":0.4,\"left_out\":0}\nretries rose boiler\n"
        );
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_said_to() {
        let message = Message::default();
        let run_one = |program: &str, arguments: &[&str], longest| {
            run_one(
                Command::new(program).args(arguments),
                &message,
                longest,
                Clock::start(),
                &Commands::default(),
            )
        };
        assert!(run_one("/nowhere/at/all", &[], LONGEST).is_err());
        assert!(run_one("/bin/sh", &["-c", "exit 3"], LONGEST).is_err());
        let error = run_one("/bin/sleep", &["60"], Duration::from_millis(1)).expect_err("it hangs");
        assert!(error.to_string().contains("ended after"), "{error}");
    }

    #[test]
    fn a_flood_of_alerts_runs_ten_commands_a_minute_and_counts_the_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let (queue, messages) = sync_channel(100);
        (0..50).for_each(|_| queue.send(Message { left_out: 1, ..Message::default() }).expect("room"));
        drop(queue);
        let path = folder.path().join("lines");
        let make = || {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("cat >> {}", path.display()));
            command
        };
        run(&messages, make, LONGEST, &Commands::default());
        let lines = std::fs::read_to_string(&path).expect("lines");
        assert_eq!(lines.lines().count(), MOST);
    }

    #[test]
    fn without_a_command_nothing_runs_and_a_full_queue_is_counted() {
        let mut none = OnAlert::start(&[], names(), &Commands::default()).expect("no thread");
        none.tell(&rose());
        assert_eq!(none.left_out, 0);
        let (queue, messages) = sync_channel(1);
        let mut full = OnAlert { queue: Some(queue), names: names(), left_out: 0 };
        (0..5).for_each(|_| full.tell(&rose()));
        assert_eq!(full.left_out, 4);
        assert_eq!(messages.recv().map(|message| message.left_out), Ok(0));
        full.tell(&rose());
        assert_eq!(messages.recv().map(|message| message.left_out), Ok(4));
    }
}
