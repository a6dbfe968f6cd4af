//! What came of storms, in numbers.

use std::fmt;

use crate::actor::Actor;
use crate::checks::Again;
use crate::client::Outcome;
use crate::world::World;

/// What came of one run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests asked.
    pub asked: usize,
    /// Of these, answered with 2.xx.
    pub succeeded: usize,
    /// Answered otherwise.
    pub refused: usize,
    /// Of these, for being too fast.
    pub too_fast: u64,
    /// POST and PATCH that origins executed more than once.
    pub again: Again,
    /// Requests dropped because their client was too fast.
    pub dropped: u64,
    /// Separate answers that left Non-confirmable because their turn did not come.
    pub unconfirmed: u64,
    /// Datagrams withheld from addresses that nobody verified.
    pub withheld: u64,
    /// Times that origins restarted.
    pub restarts: u64,
    /// Times that the address of a client changed.
    pub moves: usize,
}

impl Tally {
    /// Counts what clients saw, what origins did and what the proxy counted.
    pub fn of(world: &World) -> Self {
        let (downstream, _) = world.counters();
        let mut tally = Self {
            again: world.again(),
            dropped: downstream.dropped,
            unconfirmed: downstream.unconfirmed,
            withheld: downstream.withheld,
            ..Self::default()
        };
        for actor in world.actors() {
            match actor {
                Actor::Client(client) => {
                    tally.moves += client.addresses().count() - 1;
                    client.asked().iter().for_each(|asked| tally.note(&asked.outcome));
                }
                Actor::Origin(origin) => tally.restarts += u64::from(origin.restarts()),
                Actor::Puppet(_) => {}
            }
        }
        tally
    }

    fn note(&mut self, outcome: &Outcome) {
        self.asked += 1;
        match outcome {
            Outcome::Answered { code, .. } if code.is_success() => self.succeeded += 1,
            Outcome::Answered { code, payload, .. } => {
                self.refused += 1;
                let from_proxy = payload.starts_with(b"too many");
                self.too_fast += u64::from(*code == coapway_message::Code::TOO_MANY_REQUESTS && from_proxy);
            }
            Outcome::Failed { .. } | Outcome::Waiting => {}
        }
    }

    /// What was counted, in words.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Again { rebound, reused, restarted, undeduplicated, tagged } = self.again;
        let count = |number: usize| number as u64;
        [
            ("requests asked", count(self.asked)),
            ("answered 2.xx", count(self.succeeded)),
            ("answered otherwise", count(self.refused)),
            ("of these, 4.29 by the proxy", self.too_fast),
            ("addresses of clients that changed", count(self.moves)),
            ("restarts of origins", self.restarts),
            ("copies dropped because their client was too fast", self.dropped),
            ("separate answers sent Non-confirmable", self.unconfirmed),
            ("datagrams withheld from unverified addresses", self.withheld),
            ("POST and PATCH executed again: the client's address changed", count(rebound)),
            ("POST and PATCH executed again: the client reused a Message ID", count(reused)),
            ("POST and PATCH executed again: the origin restarted", count(restarted)),
            ("POST and PATCH executed again: the origin has no memory", count(undeduplicated)),
            ("POST and PATCH executed again: the origin ignores Request-Tags", count(tagged)),
        ]
        .into_iter()
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.succeeded += other.succeeded;
        self.refused += other.refused;
        self.too_fast += other.too_fast;
        self.again += other.again;
        self.dropped += other.dropped;
        self.unconfirmed += other.unconfirmed;
        self.withheld += other.withheld;
        self.restarts += other.restarts;
        self.moves += other.moves;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (what, count) in self.rows().filter(|&(_, count)| count > 0) {
            write!(f, "{separator}{count} {what}")?;
            separator = ", ";
        }
        Ok(())
    }
}
