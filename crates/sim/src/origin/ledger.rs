//! What an origin executed: the truth that every promise about execution is held against.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::Method;

/// What was executed under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The method.
    pub method: Method,
    /// Each time.
    pub runs: Vec<Run>,
}

/// One execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The port of the proxy that the request came from.
    pub from: SocketAddr,
    /// The request's Message ID.
    pub message_id: u16,
    /// How often the origin had restarted by then.
    pub restarts: u32,
}

/// All executions, by key.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<u32, Executed>);

impl Ledger {
    pub(super) const fn all(&self) -> &BTreeMap<u32, Executed> {
        &self.0
    }

    pub(super) fn forget_before(&mut self, key: u32) {
        self.0 = self.0.split_off(&key);
    }

    pub(super) fn note(&mut self, key: u32, method: Method, run: Run) {
        self.0.entry(key).or_insert(Executed { method, runs: Vec::new() }).runs.push(run);
    }
}
