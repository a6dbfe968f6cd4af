//! A translator between the proxy and its origins: when a binding is gone the proxy has another address.

use std::time::Duration;

use coapway_time::Instant;

use crate::scenario::NatLaw;

/// The bindings of our sockets.
#[derive(Debug)]
pub(crate) struct Nat {
    law: Option<NatLaw>,
    bindings: Vec<Binding>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Binding {
    number: u32,
    used: Option<Instant>,
    made: Instant,
}

impl Nat {
    pub(crate) const fn new(law: Option<NatLaw>) -> Self {
        Self { law, bindings: Vec::new() }
    }

    /// A datagram leaves through a socket: which of its bindings it goes through.
    pub(crate) fn out(&mut self, socket: usize, now: Instant) -> u32 {
        let Some(law) = self.law else { return 0 };
        if self.bindings.len() <= socket {
            self.bindings.resize(socket + 1, Binding::default());
        }
        let Some(binding) = self.bindings.get_mut(socket) else { return 0 };
        let is_first = binding.used.is_none();
        if is_first || gone(law, binding, now) {
            binding.number += u32::from(!is_first);
            binding.made = now;
        }
        binding.used = Some(now);
        binding.number
    }

    /// Whether a datagram to this binding of the socket comes through.
    pub(crate) fn lets_in(&self, socket: usize, number: u32, now: Instant) -> bool {
        let Some(law) = self.law else { return true };
        self.bindings.get(socket).is_some_and(|binding| binding.number == number && !gone(law, binding, now))
    }
}

fn gone(law: NatLaw, binding: &Binding, now: Instant) -> bool {
    let idle = binding.used.map_or(Duration::MAX, |used| now.since(used));
    idle > law.timeout || law.rebind.is_some_and(|rebind| now.since(binding.made) >= rebind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_binding_lives_as_long_as_it_is_used() {
        let mut nat = Nat::new(Some(NatLaw { timeout: Duration::from_secs(30), rebind: None }));
        let numbers = [0, 29, 58, 100, 101].map(|moment| nat.out(0, at(moment)));
        assert_eq!(numbers, [0, 0, 0, 1, 1]);
        assert!(nat.lets_in(0, 1, at(131)) && !nat.lets_in(0, 0, at(102)) && !nat.lets_in(0, 1, at(132)));
        assert_eq!(nat.out(3, at(140)), 0, "each socket has its own");
    }

    #[test]
    fn all_change_when_they_are_made_to() {
        let law = NatLaw { timeout: Duration::from_secs(300), rebind: Some(Duration::from_secs(10)) };
        let mut nat = Nat::new(Some(law));
        assert_eq!([0, 5, 9, 10, 15, 20].map(|moment| nat.out(0, at(moment))), [0, 0, 0, 1, 1, 2]);
    }
}
