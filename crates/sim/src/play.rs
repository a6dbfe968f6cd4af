//! Plays a [`Script`] on a stage: sends what peers send, compares what the proxy sends.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::notation::describe;
use crate::script::{Act, Expected, Message, Script, Step, When, Window};

mod compare;
mod compose;
mod memory;

use memory::Memory;

/// What a script is played on: the virtual world, or real sockets around a real proxy.
pub trait Stage {
    /// Time since the play began.
    fn elapsed(&self) -> Duration;
    /// How far from what is written things may happen here.
    fn tolerance(&self) -> Duration;
    /// Where the proxy listens.
    fn listener(&self) -> SocketAddr;
    /// The address of a peer, by its place in the script.
    fn address(&self, peer: usize) -> SocketAddr;
    /// Sends bytes from a peer.
    fn send(&mut self, peer: usize, to: SocketAddr, bytes: &[u8]);
    /// Waits until a peer gets something, at most until then.
    fn receive(&mut self, until: Duration) -> Option<Arrival>;
    /// Closes or opens the port of a peer.
    fn listen(&mut self, peer: usize, listens: bool) -> Result<(), Impossible>;
    /// A multicast group that the proxy has joined, if there is one.
    fn group(&self) -> Option<SocketAddr> {
        None
    }
    /// Gives a peer another address.
    fn move_peer(&mut self, _peer: usize) -> Result<(), Impossible> {
        Err(Impossible)
    }
    /// Has the proxy stand still.
    fn stall(&mut self, duration: Duration) -> Result<(), Impossible>;
}

/// A stage cannot do this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible;

/// A datagram that reached a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whom.
    pub peer: usize,
    /// When, since the play began.
    pub at: Duration,
    /// From which of the proxy's addresses.
    pub from: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Where a play went another way than its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The line of the script.
    pub line: usize,
    /// The line as it is written.
    pub expected: Box<str>,
    /// What happened instead.
    pub seen: String,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, expected, seen } = self;
        write!(f, "line {line}\n  expected  {expected}\n  seen      {seen}")
    }
}

/// Plays a script to its end.
///
/// Errors: the first line that something else happened at.
pub fn play(script: &Script, stage: &mut impl Stage) -> Result<(), Deviation> {
    let began = stage.elapsed();
    let inboxes = script.peers.iter().map(|_| VecDeque::new()).collect();
    let mut player = Player { script, stage, memory: Memory::new(script), inboxes, began, last: began };
    for step in &script.steps {
        player.step(step).map_err(|seen| Deviation { line: step.line, expected: step.text.clone(), seen })?;
    }
    let end = player.last + player.stage.tolerance();
    player.wait(end);
    let line = script.steps.last().map_or(0, |step| step.line);
    player.nothing_left().map_err(|seen| Deviation { line, expected: "the end".into(), seen })
}

struct Player<'p, S> {
    script: &'p Script,
    stage: &'p mut S,
    memory: Memory<'p>,
    /// What peers got and no line has spoken of yet.
    inboxes: Vec<VecDeque<Arrival>>,
    began: Duration,
    /// When the last step happened.
    last: Duration,
}

impl<S: Stage> Player<'_, S> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let window = self.window(step.when);
        let impossible = |Impossible| "not possible on this stage".to_owned();
        match &step.act {
            Act::Send { peer, messages } => {
                self.begin(window);
                messages.iter().try_for_each(|message| self.send(*peer, message))
            }
            Act::Expect(expected) => self.expect(window, expected),
            Act::Nothing(duration) => {
                self.last += *duration;
                self.wait(self.last);
                self.nothing_left()
            }
            Act::Listen { peer, listens } => {
                self.begin(window);
                self.stage.listen(*peer, *listens).map_err(impossible)
            }
            Act::Move { peer } => {
                self.begin(window);
                self.stage.move_peer(*peer).map_err(impossible)
            }
            Act::Stall(duration) => {
                self.begin(window);
                self.stage.stall(*duration).map_err(impossible)
            }
        }
    }

    /// The window on the stage's clock.
    fn window(&self, when: When) -> Window {
        let (since, Window { from, until }) = match when {
            When::After(window) => (self.last, window),
            When::At(window) => (self.began, window),
        };
        Window { from: since + from, until: since + until }
    }

    /// Something of ours happens at the beginning of its window.
    fn begin(&mut self, window: Window) {
        self.wait(window.from);
        self.last = self.last.max(self.stage.elapsed());
    }

    fn send(&mut self, peer: usize, message: &Message) -> Result<(), String> {
        let stage = &*self.stage;
        let address = |peer| stage.address(peer);
        let listener = match message.to_group {
            true => stage.group().ok_or("no group on this stage")?,
            false => stage.listener(),
        };
        let (to, bytes) = compose::compose(&mut self.memory, peer, message, listener, address)?;
        if !message.lost {
            self.stage.send(peer, to, &bytes);
        }
        self.memory.sent(peer, to, bytes, message.called.as_deref());
        Ok(())
    }

    /// Each expected datagram must be the next one its peer has not spoken of.
    fn expect(&mut self, window: Window, expected: &[Expected]) -> Result<(), String> {
        let Window { from, until } = window;
        let latest = until + self.stage.tolerance();
        let mut last = self.last;
        let mut open: Vec<&Expected> = expected.iter().collect();
        while let Some(&first) = open.first() {
            let peer = first.peer;
            while self.inboxes[peer].is_empty() && self.stage.elapsed() < latest {
                self.receive(latest);
            }
            let name = &self.script.peers[peer].name;
            let Some(arrival) = self.inboxes[peer].pop_front() else {
                let elsewhere = self.left().map_or(String::new(), |left| format!("; {left}"));
                return Err(format!("nothing for {name} until {}{elsewhere}", seconds(latest)));
            };
            let what = format!("{} for {name} at {}", describe(&arrival.bytes), seconds(arrival.at));
            // Messages of one line may come in any order, also to one peer.
            let stage = &*self.stage;
            let address = |peer| stage.address(peer);
            let compared: Vec<_> = open
                .iter()
                .map(|expected| match expected.peer == peer {
                    true => compare::compare(&self.memory, expected, &arrival, address),
                    false => Err("another peer".to_owned()),
                })
                .collect();
            let Some(place) = compared.iter().position(Result::is_ok) else {
                let why = compared.into_iter().find_map(Result::err).unwrap_or_default();
                return Err(format!("{what}\n  differs   {why}"));
            };
            // The step before may have been that much late.
            if arrival.at + self.stage.tolerance() < from {
                return Err(format!("{what}, {} early", seconds(from - arrival.at)));
            }
            if arrival.at > latest {
                return Err(format!("{what}, {} late", seconds(arrival.at - until)));
            }
            last = last.max(arrival.at);
            let expected = open.remove(place);
            self.memory.heard(peer, arrival.from, arrival.bytes, expected.message.called.as_deref());
        }
        self.last = last;
        Ok(())
    }

    fn wait(&mut self, until: Duration) {
        while self.stage.elapsed() < until {
            self.receive(until);
        }
    }

    fn receive(&mut self, until: Duration) {
        if let Some(arrival) = self.stage.receive(until) {
            self.inboxes[arrival.peer].push_back(arrival);
        }
    }

    fn nothing_left(&self) -> Result<(), String> {
        self.left().map_or(Ok(()), Err)
    }

    fn left(&self) -> Option<String> {
        let arrival = self.inboxes.iter().find_map(VecDeque::front)?;
        let name = &self.script.peers[arrival.peer].name;
        Some(format!("{} for {name} at {}", describe(&arrival.bytes), seconds(arrival.at)))
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.6} s", duration.as_secs_f64())
}
