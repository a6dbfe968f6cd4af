//! Commands of the operator that are running: each in a process group of its own, so that what it has started
//! ends with it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// All that are running; a clone is the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    /// Process groups whose leader was not waited for, so that their numbers are nobody else's.
    groups: Vec<Pid>,
    ended: bool,
}

impl Commands {
    /// Starts one.
    ///
    /// Errors: it cannot be started, or no further one may be.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut running = self.running();
        if running.ended {
            return Err(io::Error::other("the program ends"));
        }
        let child = command.process_group(0).spawn()?;
        running.groups.push(Pid::from_child(&child));
        Ok(child)
    }

    /// Whether one has ended, and how.
    pub(crate) fn try_wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut running = self.running();
        let group = Pid::from_child(child);
        let status = child.try_wait()?;
        if status.is_some() {
            running.groups.retain(|&other| other != group);
        }
        Ok(status)
    }

    /// Ends one and what it has started.
    pub(crate) fn kill(&self, child: &mut Child) -> io::Result<()> {
        let mut running = self.running();
        let group = Pid::from_child(child);
        if running.groups.contains(&group) {
            kill_process_group(group, Signal::KILL)?;
            running.groups.retain(|&other| other != group);
        }
        child.wait().map(drop)
    }

    /// Ends all, for good: none is started any more.
    pub(crate) fn end(&self) {
        let mut running = self.running();
        running.ended = true;
        for &group in &running.groups {
            // It fails where nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Stdio;

    use super::*;

    /// A command and its child, which says something if it is left alone.
    fn family() -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "(sleep 20; echo late) & echo; wait"]).stdout(Stdio::piped());
        command
    }

    #[test]
    fn what_a_command_has_started_ends_with_it() {
        let commands = Commands::default();
        let mut child = commands.spawn(&mut family()).expect("started");
        let mut output = child.stdout.take().expect("piped");
        output.read_exact(&mut [0]).expect("it runs");
        assert!(commands.try_wait(&mut child).expect("asked").is_none());
        commands.kill(&mut child).expect("ended");
        assert_eq!(output.read_to_end(&mut Vec::new()).expect("nobody writes any more"), 0);
        assert!(commands.running().groups.is_empty());
    }

    #[test]
    fn all_end_with_the_program_and_none_begins() {
        let commands = Commands::default();
        let mut family: Vec<_> = (0..2).map(|_| commands.spawn(&mut family()).expect("started")).collect();
        let mut outputs: Vec<_> = family.iter_mut().filter_map(|child| child.stdout.take()).collect();
        for output in &mut outputs {
            output.read_exact(&mut [0]).expect("it runs");
        }
        commands.clone().end();
        for mut output in outputs {
            assert_eq!(output.read_to_end(&mut Vec::new()).expect("nobody writes any more"), 0);
        }
        assert!(commands.spawn(&mut Command::new("/bin/true")).is_err());
        family.iter_mut().for_each(|child| commands.kill(child).expect("waited for"));
    }
}
