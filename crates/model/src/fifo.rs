//! One queue with one server, first come first served, without end.

use std::time::Duration;

use coapway_time::Instant;

use crate::engine::{Fate, Name, Path};

/// One queue with one server.
#[derive(Clone, Copy, Debug)]
pub struct Fifo {
    free_at: Instant,
    service: Duration,
    served: u64,
}

impl Fifo {
    /// A queue that serves each after `service`, and has work for `backlog` before the first comes.
    pub fn new(service: Duration, backlog: Duration) -> Self {
        Self { free_at: Instant::ZERO + backlog, service, served: 0 }
    }

    /// Something comes that is served for `service`: when it leaves.
    pub fn enter_for(&mut self, service: Duration, now: Instant) -> Instant {
        self.served += 1;
        self.free_at = self.free_at.max(now) + service;
        self.free_at
    }

    /// Something comes: when it leaves.
    pub fn enter(&mut self, now: Instant) -> Instant {
        self.enter_for(self.service, now)
    }
}

/// Every datagram is answered, after it waited for its turn.
impl Path for Fifo {
    fn carry(&mut self, _name: Name, now: Instant) -> Fate {
        Fate::Answered(self.enter(now))
    }
}
