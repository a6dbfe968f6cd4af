//! What an operator who wrote an unknown key may have meant.

use super::{Array, Settings};
use crate::error::{ConfigError, ConfigErrors, nearest};
use crate::schema::places::{Listen, NamedOrigin, Route};
use crate::section::{AnySection, Section};

/// Keys that the file will have and this version does not know.
const LATER: [&str; 1] = ["cache"];

impl Settings {
    /// Adds what helps to find the right key to an error about an unknown one.
    pub(super) fn explain(&self, error: ConfigError) -> ConfigError {
        if error.hint.is_some() || !matches!(&*error.reason, "unknown key" | "unknown variable") {
            return error;
        }
        // A file that is something else has an unknown key in each line: to guess at the first ones will do.
        self.explained.set(self.explained.get() + 1);
        if self.explained.get() > ConfigErrors::MOST_TOLD {
            return error;
        }
        let source = &error.source;
        let (table, name) = error.key.rsplit_once('.').unwrap_or(("", &error.key));
        let known = self.all_keys();
        let arrays = Array::ALL.map(Array::name);
        // A table is meant where a table was written, not where a key of one was.
        let tables = self.sections().map(|section| section.name().to_owned());
        let is_key = |candidate: &&str| table.is_empty() || !tables.iter().any(|table| table == candidate);
        let inside = if error.value.is_none() { inside(&known) } else { Vec::new() };
        let candidates =
            known.iter().map(String::as_str).filter(is_key).chain(arrays).chain(inside.iter().copied());
        let hint = if table == "listen" && known.contains(&error.key) {
            format!("{} is a list of URIs outside of the file", source.spell("listen"))
        } else if known.contains(&error.key) {
            format!("in the file only, in [[{table}]]")
        } else if let Some(key) = nearest(&error.key, candidates) {
            format!("did you mean {}?", source.spell(key))
        } else if error.key.split('.').any(|part| LATER.contains(&part)) {
            "not in this version".to_owned()
        } else if let Some(key) = known.iter().find(|key| last(key) == name) {
            format!("did you mean {}?", source.spell(key))
        } else if let Some(meant) = of_name(&inside, table, name) {
            format!("did you mean {}?", source.spell(meant))
        } else {
            format!("known here: {}", self.keys_of(table))
        };
        error.hint(hint)
    }

    pub(super) fn explain_name(&self, error: ConfigError) -> ConfigError {
        let names: Vec<&str> = self.upstreams.iter().map(|named| &*named.name).collect();
        error.hint(match names.is_empty() {
            true => "no [[upstreams]] are defined".to_owned(),
            false => format!("the upstreams are {}", names.join(", ")),
        })
    }

    fn all_keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let own = |section: &dyn AnySection, keys: &mut Vec<String>| {
            let name = section.name().to_owned();
            let dotted = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
            keys.extend(section.key_names().into_iter().map(dotted));
            keys.extend((!name.is_empty()).then_some(name.clone()));
        };
        for section in self.sections() {
            own(section, &mut keys);
        }
        own(&Section::<Listen>::new("listen"), &mut keys);
        own(&Section::<NamedOrigin>::new("upstreams"), &mut keys);
        own(&self.upstream.renamed("upstreams"), &mut keys);
        own(&Section::<Route>::new("routes"), &mut keys);
        for named in &self.upstreams {
            own(&named.upstream, &mut keys);
        }
        keys
    }

    /// The keys of a table as a list, for people.
    pub(super) fn keys_of(&self, table: &str) -> String {
        let below = |key: &String| match table {
            "" => (!key.contains('.')).then(|| key.clone()),
            _ => key.strip_prefix(table)?.strip_prefix('.').map(str::to_owned),
        };
        let mut keys: Vec<String> = self.all_keys().iter().filter_map(below).collect();
        if keys.is_empty() {
            return self.keys_of("");
        }
        keys.sort();
        keys.dedup();
        keys.join(", ")
    }
}

/// The tables inside of tables.
fn inside(keys: &[String]) -> Vec<&str> {
    let tables = keys.iter().flat_map(|key| key.match_indices('.').map(|(end, _)| &key[..end]));
    tables.filter(|table| table.contains('.')).collect()
}

/// The table that is called `name`, rather one inside of `table`.
fn of_name<'k>(inside: &[&'k str], table: &str, name: &str) -> Option<&'k str> {
    let named = inside.iter().copied().filter(|inside| last(inside) == name);
    named.min_by_key(|inside| !inside.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}
