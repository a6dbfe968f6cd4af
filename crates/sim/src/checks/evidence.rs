//! A failure that says `not-sent` or `not-executed` says the truth: no origin got or executed the
//! request.

use std::collections::{BTreeMap, BTreeSet};

use super::exchanges::Exchanges;
use crate::actor::Actor;
use crate::client::{Asked, Outcome};

pub(super) fn finish(actors: &[Actor], exchanges: &Exchanges) -> Vec<String> {
    let sent: BTreeSet<_> = exchanges.all().iter().map(|exchange| exchange.key).collect();
    let mut executed = BTreeMap::new();
    for actor in actors {
        if let Actor::Origin(origin) = actor {
            executed.extend(origin.executed().keys().map(|&key| (key, origin.name())));
        }
    }
    let mut found = Vec::new();
    for actor in actors {
        let Actor::Client(client) = actor else { continue };
        // What another copy was taken for by the proxy may have left or been executed.
        if client.addresses().count() > 1 || client.is_careless() {
            continue;
        }
        for Asked { request, outcome, .. } in client.asked() {
            let Outcome::Answered { payload, .. } = outcome else { continue };
            let (not_sent, not_executed) =
                (payload.starts_with(b"not-sent"), payload.starts_with(b"not-executed"));
            let deed = match executed.get(&request.key) {
                Some(origin) if not_sent || not_executed => format!("{origin} executed it"),
                _ if not_sent && sent.contains(&request.key) => "a copy left".to_owned(),
                _ => continue,
            };
            let (name, key, said) = (client.name(), request.key, String::from_utf8_lossy(payload));
            found.push(format!("{name}'s request {key} was answered {said:?}, {deed}"));
        }
    }
    found
}
