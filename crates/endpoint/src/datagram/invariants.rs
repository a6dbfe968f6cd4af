//! What always holds between the tables of an endpoint.

use super::endpoint::Endpoint;
use super::message::{Bond, Kind};

impl Endpoint {
    /// Panics when the tables contradict each other. For simulations, after each step.
    pub fn check_invariants(&self) {
        let own = self.messages.in_use().flat_map(|slot| {
            let message = self.messages.at(slot);
            let active = message.active.and_then(|number| self.active.get(number));
            active.into_iter().flat_map(move |active| active.own_ids(message).map(move |id| (slot, id)))
        });
        self.by_message_id.check_invariants(&self.messages, own);
        let (mut in_turn, mut preserved, mut active) = (0, 0, 0);
        for message in self.messages.iter() {
            assert!(message.timer.is_some(), "each message under way has a timer");
            in_turn += usize::from(message.bond == Bond::InTurn);
            preserved += usize::from(message.bond == Bond::Preserved);
            active += usize::from(message.active.is_some());
            let may_do_without = message.kind == Kind::NonConfirmable || message.is_acknowledged();
            assert!(message.active.is_some() || may_do_without, "each that may be repeated can be");
        }
        assert_eq!(self.active.len(), active, "each active part has its message");
        let acknowledgements = self.pending.iter().filter(|pending| pending.timer.is_some());
        assert_eq!(
            self.timers.len(),
            self.messages.len() + acknowledgements.count() + self.turns.waiting(),
            "each timer has its message"
        );
        self.turns.check_invariants(in_turn);
        self.preserved.check_invariants(preserved);
        self.duplicates.check_invariants();
        self.pending.check_invariants();
        let requests = self.pending.iter().map(|pending| pending.peer);
        let messages = self.messages.iter().map(|message| message.peer);
        let spaces = self.message_ids.peers();
        let users =
            requests.chain(messages).chain(spaces).chain(self.turns.peers()).chain(self.preserved.peers());
        self.peers.check_invariants(users, self.duplicates.peers());
    }
}
