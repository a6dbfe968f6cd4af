//! What another configuration changes, value by value: what a reload says before it happens.

use std::fmt;

use crate::config::Config;
use crate::schema::places::{Route, RoutePath};
use crate::section::{AnySection as _, Entry, Section, Value as _};
use crate::settings::NamedUpstream;
use crate::source::Source;

/// A value that is another one in a new configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The dotted key, as in the dump; routes are called by host and path.
    pub key: String,
    /// What it was; `None` where it is new.
    pub old: Option<String>,
    /// What it is; `None` where it is gone.
    pub new: Option<String>,
    /// Where the new value comes from, or the old one came from when it is gone.
    pub source: Source,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, old, new, source } = self;
        match (old, new) {
            (Some(old), Some(new)) => write!(f, "{key}: {old} → {new} ({source})"),
            (None, Some(new)) => write!(f, "{key}: new, {new} ({source})"),
            (Some(old), None) => write!(f, "{key}: gone, was {old} ({source})"),
            (None, None) => write!(f, "{key}: as it was ({source})"),
        }
    }
}

impl Config {
    /// What `new` changes, in the order of the dump; a value that only stands elsewhere is no change.
    ///
    /// What an upstream takes from `[upstream]` is told there and not again for each of them.
    pub fn difference(&self, new: &Self) -> Vec<Change> {
        let [mut old_values, mut new_values] = [self, new].map(Self::values);
        let is_same = |one: &Entry, other: &Entry| one.key == other.key && one.value == other.value;
        new_values.retain(|new| match old_values.iter().position(|old| is_same(old, new)) {
            Some(place) => {
                old_values.remove(place);
                false
            }
            None => true,
        });
        let mut changes = Vec::new();
        for Entry { key, value, source } in new_values {
            let place = old_values.iter().position(|old| old.key == key);
            let old = place.map(|place| old_values.remove(place)).or_else(|| self.of_an_upstream(&key));
            let old = old.map(|entry| entry.value);
            changes.push(Change { key, old, new: Some(value), source });
        }
        for Entry { key, value, source } in old_values {
            let (new, source) = match new.of_an_upstream(&key) {
                Some(usual) => (Some(usual.value), usual.source),
                None => (None, source),
            };
            changes.push(Change { key, old: Some(value), new, source });
        }
        changes
    }

    /// What holds for a named upstream, be it its own or not.
    fn of_an_upstream(&self, key: &str) -> Option<Entry> {
        let mut entries = self.settings.upstreams.iter().flat_map(|named| named.upstream.entries());
        entries.find(|entry| entry.key == key)
    }

    /// Every effective value; of upstreams what is their own.
    fn values(&self) -> Vec<Entry> {
        let settings = &self.settings;
        let mut values: Vec<Entry> =
            settings.sections().into_iter().flat_map(|known| known.entries()).collect();
        values.extend(settings.listen.iter().map(|(listener, source)| Entry {
            key: "listen".to_owned(),
            value: listener.show(),
            source: source.clone(),
        }));
        let usual = settings.upstream.entries();
        values.extend(settings.upstreams.iter().flat_map(|named| of_upstream(named, &usual)));
        values.extend(settings.routes.iter().map(of_route));
        values
    }
}

fn of_upstream(named: &NamedUpstream, usual: &[Entry]) -> Vec<Entry> {
    let uri = named.origin.entries().into_iter().filter(|entry| entry.key.ends_with(".uri"));
    let own = named.upstream.entries().into_iter().zip(usual);
    uri.chain(own.filter(|(entry, usual)| entry.value != usual.value).map(|(entry, _)| entry)).collect()
}

fn of_route(route: &Section<Route>) -> Entry {
    let values = &route.values;
    let host = values.host.as_ref().map(|host| host.show()).unwrap_or_default();
    let path = values.path.clone().unwrap_or_else(RoutePath::root).show();
    let upstream = values.upstream.as_ref().map(|name| name.show()).unwrap_or_default();
    let strip = if values.strip { "" } else { ", strip = false" };
    Entry {
        key: format!("routes.{host}{path}"),
        value: format!("{upstream}{strip}"),
        source: route.source("upstream"),
    }
}
