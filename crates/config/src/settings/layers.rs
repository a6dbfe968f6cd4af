//! The four layers put over each other.

use super::{NamedUpstream, Settings, spelled};
use crate::command_line::{REVERSE, word};
use crate::document::{Array, ArrayEntry, Document};
use crate::error::ConfigError;
use crate::raw::{Assignment, Raw};
use crate::schema::places::{Listen, Name, Route, RoutePath};
use crate::section::{AnySection as _, Section, Value};
use crate::source::Source;

/// The three layers over the defaults, weakest first.
pub(crate) struct Layers<'l> {
    pub(crate) file: Document,
    pub(crate) environment: Vec<Assignment>,
    pub(crate) command_line: Vec<Assignment>,
    pub(crate) listen: &'l [String],
    pub(crate) reverse: Option<&'l str>,
}

impl Settings {
    /// Puts the layers over each other.
    pub(crate) fn new(layers: Layers<'_>, errors: &mut Vec<ConfigError>) -> Self {
        let mut settings = Self::default();
        let mut of_named = Vec::new();
        let (listeners, others): (Vec<ArrayEntry>, Vec<ArrayEntry>) =
            layers.file.entries.into_iter().partition(|entry| entry.array == Array::Listen);
        let (origins, routes): (Vec<ArrayEntry>, Vec<ArrayEntry>) =
            others.into_iter().partition(|entry| entry.array == Array::Upstreams);

        settings.add_listeners(listeners, errors);
        let layered = [layers.file.assignments, layers.environment, layers.command_line];
        for assignment in layered.into_iter().flatten() {
            if assignment.key.starts_with("upstreams.") {
                of_named.push(assignment);
            } else if let Err(error) = settings.assign(&assignment, errors) {
                errors.push(error);
            }
        }
        settings.apply_profile();
        if !layers.listen.is_empty() {
            let written = layers.listen.iter().map(|uri| word("--listen", uri)).collect();
            settings.listen_on(written, errors);
        }

        // Errors about names that are not there would only follow from errors that are told already.
        let complete = !layers.file.broken & settings.add_upstreams(origins, errors);
        settings.add_routes(routes, errors);
        if let Some(uri) = layers.reverse {
            settings.reverse(uri, errors);
        }
        for Assignment { key, value } in of_named {
            let rest = key.strip_prefix("upstreams.").unwrap_or(&key);
            let named = settings.upstreams.iter().enumerate();
            let found = named.filter_map(|(index, named)| Some((index, named.key(rest)?.to_owned()))).next();
            match found {
                Some((_, name)) if name == "name" => {
                    errors.push(ConfigError::new(key, &value.source, "a name is set in the file only"));
                }
                Some((index, name)) => {
                    let result = settings.upstreams[index].set(&name, &value);
                    errors.extend(result.err().map(|error| settings.explain(error)));
                }
                None if complete => errors.push(settings.explain_name(ConfigError::unknown(key, &value))),
                None => {}
            }
        }
        settings.upstreams.iter_mut().for_each(NamedUpstream::apply_profile);
        if complete {
            settings.check_routes(errors);
        }
        settings
    }

    fn add_listeners(&mut self, entries: Vec<ArrayEntry>, errors: &mut Vec<ConfigError>) {
        let mut uris = Vec::new();
        for entry in entries {
            let mut section = Section::<Listen>::new("listen");
            for Assignment { key, value } in &entry.assignments {
                match section.set(key, value) {
                    Ok(()) => uris.push(value.clone()),
                    Err(error) => errors.push(self.explain(error)),
                }
            }
            require(&entry, &["uri"], errors);
        }
        self.listen_on(uris, errors);
    }

    /// Adds the named upstreams; `false` when the name of one could not be read.
    fn add_upstreams(&mut self, entries: Vec<ArrayEntry>, errors: &mut Vec<ConfigError>) -> bool {
        let mut complete = true;
        for entry in entries {
            let mut named = NamedUpstream {
                name: String::new(),
                source: entry.source.clone(),
                origin: Section::new("upstreams"),
                upstream: self.upstream.renamed("upstreams"),
                own: Vec::new(),
                has_own_schedule: false,
            };
            for Assignment { key, value } in &entry.assignments {
                if value.raw == Raw::Table && self.knows_table_in(Array::Upstreams, key) {
                    continue;
                }
                errors.extend(named.set(key, value).err().map(|error| self.explain(error)));
            }
            require(&entry, &["name", "uri"], errors);
            match named.origin.values.name.clone() {
                Some(Name(name)) => complete &= self.add_named(name, named, errors),
                None => complete = false,
            }
        }
        complete
    }

    fn add_named(&mut self, name: String, named: NamedUpstream, errors: &mut Vec<ConfigError>) -> bool {
        if let Some(other) = self.upstreams.iter().find(|other| spelled(&other.name) == spelled(&name)) {
            let reason = match other.name == name {
                true => format!("a second upstream with this name; the first is at {}", other.source),
                false => format!("too close to {:?}: both are spelled alike in variables", other.name),
            };
            let error = ConfigError::new("upstreams.name".to_owned(), &named.source, reason);
            errors.push(error.value(format!("{name:?}")));
            return false;
        }
        let full_name = format!("upstreams.{name}");
        let origin = named.origin.renamed(full_name.clone());
        let upstream = named.upstream.renamed(full_name);
        self.upstreams.push(NamedUpstream { name, origin, upstream, ..named });
        true
    }

    fn add_routes(&mut self, entries: Vec<ArrayEntry>, errors: &mut Vec<ConfigError>) {
        for (index, entry) in entries.into_iter().enumerate() {
            let mut route = Section::<Route>::new("routes");
            for Assignment { key, value } in &entry.assignments {
                errors.extend(route.set(key, value).err().map(|error| self.explain(error)));
            }
            require(&entry, &["upstream"], errors);
            if !entry.assignments.iter().any(|assignment| matches!(&*assignment.key, "path" | "host")) {
                errors.push(
                    ConfigError::new("routes".to_owned(), &entry.source, "neither path nor host")
                        .hint("path = \"/\" is for every request"),
                );
            }
            self.routes.push(route.renamed(format!("routes.{}", index + 1)));
        }
    }

    fn reverse(&mut self, uri: &str, errors: &mut Vec<ConfigError>) {
        let written = word(REVERSE, uri);
        let mut named = NamedUpstream {
            name: String::new(),
            source: written.source.clone(),
            origin: Section::new("upstreams.reverse"),
            upstream: self.upstream.clone(),
            own: Vec::new(),
            has_own_schedule: false,
        };
        named.origin.values.name = Some(Name("reverse".to_owned()));
        match named.origin.set("uri", &written) {
            Ok(()) => {}
            Err(error) => errors.push(ConfigError { key: String::new(), ..error }),
        }
        if self.add_named("reverse".to_owned(), named, errors) {
            let mut route = Section::<Route>::new("routes.0");
            for (key, text) in [("path", "/"), ("upstream", "reverse")] {
                let set = route.set(key, &word(REVERSE, text));
                debug_assert!(set.is_ok(), "both are valid");
            }
            self.routes.insert(0, route);
        }
    }

    fn check_routes(&self, errors: &mut Vec<ConfigError>) {
        let root = RoutePath::root();
        for (index, route) in self.routes.iter().enumerate() {
            let values = &route.values;
            if let Some(Name(name)) = &values.upstream
                && !self.upstreams.iter().any(|named| named.name == *name)
            {
                let source = route.source("upstream");
                let error = ConfigError::new("routes.upstream".to_owned(), &source, "no such upstream");
                errors.push(self.explain_name(error.value(format!("{name:?}"))));
            }
            let path = |values: &Route| values.path.as_ref().unwrap_or(&root).segments.clone();
            let same = |other: &&Section<Route>| {
                other.values.host == values.host && path(&other.values) == path(values)
            };
            let by_file =
                |section: &Section<Route>| section.source("upstream") != Source::CommandLine(REVERSE);
            if self.routes[..index].iter().filter(|other| by_file(other)).any(|other| same(&other)) {
                let (key, value) = match (&values.path, &values.host) {
                    (Some(path), _) => ("path", Some(path.show())),
                    (None, host) => ("host", host.as_ref().map(Value::show)),
                };
                let reason = "a second route for the same requests";
                let error = ConfigError::new(format!("routes.{key}"), &route.source(key), reason);
                errors.push(error.maybe_value(value.map(|value| format!("{value:?}"))));
            }
        }
    }
}

fn require(entry: &ArrayEntry, keys: &[&str], errors: &mut Vec<ConfigError>) {
    for key in keys {
        if !entry.assignments.iter().any(|assignment| assignment.key == *key) {
            let name = format!("{}.{key}", entry.array.name());
            errors.push(ConfigError::new(name, &entry.source, "missing"));
        }
    }
}
