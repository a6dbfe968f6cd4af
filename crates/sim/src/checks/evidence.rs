//! A failure that says `not-sent` or `not-executed` says the truth: no origin executed the request.

use std::collections::BTreeMap;

use crate::actor::Actor;
use crate::client::Outcome;

pub(super) fn finish(actors: &[Actor]) -> Vec<String> {
    let mut executed = BTreeMap::new();
    for actor in actors {
        if let Actor::Origin(origin) = actor {
            executed.extend(origin.executed().keys().map(|&key| (key, origin.name())));
        }
    }
    let mut found = Vec::new();
    for actor in actors {
        let Actor::Client(client) = actor else { continue };
        for asked in client.asked() {
            let Outcome::Answered { payload, .. } = &asked.outcome else { continue };
            let denies = payload.starts_with(b"not-sent") || payload.starts_with(b"not-executed");
            if let Some(origin) = executed.get(&asked.request.key).filter(|_| denies) {
                let (name, key) = (client.name(), asked.request.key);
                let payload = String::from_utf8_lossy(payload);
                found.push(format!("{name}'s request {key} was answered {payload:?}, {origin} executed it"));
            }
        }
    }
    found
}
