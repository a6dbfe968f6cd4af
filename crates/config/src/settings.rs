//! All values with their sources.

mod layers;
mod suggestions;

pub(crate) use layers::Layers;

use std::cell::Cell;

use coapway_proxy::Limits;

use crate::document::Array;
use crate::error::ConfigError;
use crate::raw::{Assignment, Raw, Written};
use crate::schema::admission::{Clients, Forward, LimitKeys};
use crate::schema::downstream::{Dedup, Downstream};
use crate::schema::operation::{Admin, LogSettings, Process, RecordSettings};
use crate::schema::places::{LISTEN_ALLOWED, Listener, NamedOrigin, Route};
use crate::schema::upstream::Upstream;
use crate::section::{AnySection, Section, Value as _};
use crate::source::Source;

/// All values with their sources.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) process: Section<Process>,
    pub(crate) downstream: Section<Downstream>,
    pub(crate) upstream: Section<Upstream>,
    pub(crate) forward: Section<Forward>,
    pub(crate) clients: Section<Clients>,
    pub(crate) dedup: Section<Dedup>,
    pub(crate) limits: Section<LimitKeys>,
    pub(crate) record: Section<RecordSettings>,
    pub(crate) log: Section<LogSettings>,
    pub(crate) admin: Section<Admin>,
    /// How many errors about unknown keys were explained.
    explained: Cell<usize>,
    /// At least one.
    pub(crate) listen: Vec<(Listener, Source)>,
    pub(crate) upstreams: Vec<NamedUpstream>,
    pub(crate) routes: Vec<Section<Route>>,
    /// Where `[forward]` is asked for.
    pub(crate) forward_wanted: Option<Source>,
}

/// One of `[[upstreams]]`.
#[derive(Clone, Debug)]
pub(crate) struct NamedUpstream {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) origin: Section<NamedOrigin>,
    /// What it has of its own, over what `[upstream]` says.
    pub(crate) upstream: Section<Upstream>,
    /// The keys among those.
    own: Vec<String>,
    /// Whether it has a schedule of its own.
    pub(crate) has_own_schedule: bool,
}

/// What is listened on when nothing is said.
pub(crate) const WITHOUT_LISTENERS: &str = "left out, it is coap://127.0.0.1:5683; a proxy listens somewhere";

/// The keys that make a schedule.
const SCHEDULE: [&str; 3] = ["ack_timeout", "ack_random_factor", "max_retransmit"];

impl NamedUpstream {
    fn set(&mut self, key: &str, written: &Written) -> Result<(), ConfigError> {
        if self.origin.has(key) {
            return self.origin.set(key, written);
        }
        self.upstream.set(key, written)?;
        self.has_own_schedule |= SCHEDULE.contains(&key);
        self.own.push(key.to_owned());
        Ok(())
    }

    /// Sets what its own profile says and no key of its own does.
    fn apply_profile(&mut self) {
        let Some(profile) = self.upstream.values.profile.filter(|_| self.has_own("profile")) else { return };
        for (key, written) in profile.values().filter(|(key, _)| !self.has_own(key)).collect::<Vec<_>>() {
            let set = self.upstream.set(key, &written);
            debug_assert!(set.is_ok(), "a profile holds valid values");
            self.has_own_schedule |= SCHEDULE.contains(&key);
        }
    }

    pub(crate) fn has_own(&self, key: &str) -> bool {
        self.own.iter().any(|own| own == key)
    }

    /// The key behind this upstream's name in `rest`, the name as it is or as a variable spells it.
    fn key<'k>(&self, rest: &'k str) -> Option<&'k str> {
        let behind = |name: &str| rest.strip_prefix(name)?.strip_prefix('.');
        behind(&self.name).or_else(|| behind(&spelled(&self.name)))
    }
}

/// A name as it comes out of a variable.
fn spelled(name: &str) -> String {
    name.to_lowercase().replace('-', "_").replace("__", ".")
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            process: Section::new(""),
            downstream: Section::new("downstream"),
            upstream: Section::new("upstream"),
            forward: Section::new("forward"),
            clients: Section::new("clients"),
            dedup: Section::new("dedup"),
            limits: Section::new("limits"),
            record: Section::new("record"),
            log: Section::new("log"),
            admin: Section::new("admin"),
            explained: Cell::new(0),
            listen: vec![(Listener(([127, 0, 0, 1], 5683).into()), Source::Default)],
            upstreams: Vec::new(),
            routes: Vec::new(),
            forward_wanted: None,
        }
    }
}

impl Settings {
    /// The tables that have keys of their own.
    pub(crate) fn sections(&self) -> [&dyn AnySection; 10] {
        [
            &self.process,
            &self.downstream,
            &self.upstream,
            &self.forward,
            &self.clients,
            &self.dedup,
            &self.limits,
            &self.record,
            &self.log,
            &self.admin,
        ]
    }

    fn sections_mut(&mut self) -> [&mut dyn AnySection; 10] {
        [
            &mut self.process,
            &mut self.downstream,
            &mut self.upstream,
            &mut self.forward,
            &mut self.clients,
            &mut self.dedup,
            &mut self.limits,
            &mut self.record,
            &mut self.log,
            &mut self.admin,
        ]
    }

    /// Whether `name`, dotted, is a table.
    pub(crate) fn knows_table(&self, name: &str) -> bool {
        let (section, rest) = name.split_once('.').unwrap_or((name, ""));
        let named = self.sections().into_iter().find(|known| known.name() == section && !section.is_empty());
        named.is_some_and(|known| rest.is_empty() || known.has_table(rest))
    }

    /// Whether `name` is a table in the tables of an array.
    pub(crate) fn knows_table_in(&self, array: Array, name: &str) -> bool {
        match array {
            Array::Upstreams => self.upstream.has_table(name),
            Array::Listen | Array::Routes => false,
        }
    }

    fn assign(&mut self, assignment: &Assignment, errors: &mut Vec<ConfigError>) -> Result<(), ConfigError> {
        let Assignment { key, value } = assignment;
        if key == "listen" {
            if matches!(&value.raw, Raw::List(_)) && value.raw.as_texts().is_none_or(|uris| uris.is_empty()) {
                let is_empty = value.raw == Raw::List(Vec::new());
                let reason = if is_empty { "an empty list" } else { "not a list of URIs" };
                return Err(ConfigError::new(key.clone(), &value.source, reason)
                    .value(&*value.text)
                    .allowed("coap://ADDRESS:PORT, one or several with commas")
                    .hint(WITHOUT_LISTENERS));
            }
            self.listen_on(split(value), errors);
            return Ok(());
        }
        if key == "forward" || key.starts_with("forward.") {
            self.forward_wanted = Some(value.source.clone());
        }
        let is_table = value.raw == Raw::Table;
        match (self.knows_table(key), is_table) {
            (true, true) => return Ok(()),
            (true, false) => {
                return Err(ConfigError::new(key.clone(), &value.source, "a table, not a value")
                    .value(&*value.text)
                    .hint(format!("its keys are {}", self.keys_of(key))));
            }
            (false, _) => {}
        }
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        let result = match self.sections_mut().into_iter().find(|known| known.name() == section) {
            Some(known) => known.set(name, value),
            None => Err(ConfigError::unknown(key.clone(), value)),
        };
        result.map_err(|error| self.explain(error))
    }

    fn listen_on(&mut self, uris: Vec<Written>, errors: &mut Vec<ConfigError>) {
        let mut listeners: Vec<(Listener, Source)> = Vec::new();
        for written in uris {
            let wrong = |reason: &str| {
                ConfigError::new("listen".to_owned(), &written.source, reason)
                    .value(&*written.text)
                    .allowed(LISTEN_ALLOWED)
            };
            match Listener::read(&written.raw) {
                Ok(listener) if listeners.iter().any(|(other, _)| *other == listener) => {
                    errors.push(wrong("twice the same address"));
                }
                Ok(listener) => listeners.push((listener, written.source.clone())),
                Err(error) => errors.push(wrong(&error.reason).maybe_hint(error.hint)),
            }
        }
        if !listeners.is_empty() {
            self.listen = listeners;
        }
    }

    /// Sets what the profile of `[upstream]` says and no key there does.
    fn apply_profile(&mut self) {
        let section = &mut self.upstream;
        let Some(profile) = section.values.profile else { return };
        for (key, written) in profile.values() {
            if section.source(key) == Source::Default {
                let set = section.set(key, &written);
                debug_assert!(set.is_ok(), "a profile holds valid values");
            }
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits.values.limits
    }
}

/// The texts of a list, each as a value of its own.
fn split(written: &Written) -> Vec<Written> {
    match written.raw.as_texts() {
        Some(texts) if !texts.is_empty() => texts
            .into_iter()
            .map(|text| Written { raw: Raw::Word(text.to_owned()), text: text.to_owned(), ..written.clone() })
            .collect(),
        _ => vec![written.clone()],
    }
}
