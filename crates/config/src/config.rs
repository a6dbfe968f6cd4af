//! A checked configuration.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coapway_proxy::Parameters;
use coapway_relay::{Forward, Route, Upstream, UpstreamId};

use crate::command_line::{self, Overrides};
use crate::document::Document;
use crate::environment;
use crate::error::{ConfigError, ConfigErrors};
use crate::file;
use crate::schema::operation::{LogSettings, RecordSettings, Resolver};
use crate::section::{AnySection as _, Section};
use crate::sets::{UpstreamSet, downstream, upstream_sets};
use crate::settings::{Layers, Settings};
use crate::source::Source;
use crate::{validate, warnings};

/// A checked configuration; each value knows where it comes from.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) settings: Settings,
    pub(crate) forward: Forward,
    listen: Vec<SocketAddr>,
    file: Option<PathBuf>,
    warnings: Vec<String>,
}

impl Config {
    /// Puts file, environment and command line over the defaults and checks the whole.
    ///
    /// Shape:  `file` is its name for messages and its text; `environment` is all of it, of which
    ///         only `COAP_UPSTREAM_*`, `COAP_DOWNSTREAM_*` and `COAPWAY__*` are looked at.
    /// Errors: everything that is wrong, not the first thing; then nothing of it holds.
    /// Source: R-USR-05, R-USR-06.
    pub fn load<K, V>(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (K, V)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigErrors>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let mut document = match file {
            Some((path, text)) => file::read(path, text, &Settings::default()),
            None => Document::default(),
        };
        let mut errors = std::mem::take(&mut document.errors);
        let is_broken = document.broken;
        let variables = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
        let layers = Layers {
            file: document,
            environment: environment::read(variables, &mut errors),
            command_line: command_line::read(overrides, &mut errors),
            listen: &overrides.listen,
            reverse: overrides.reverse.as_deref(),
        };
        let settings = Settings::new(layers, &mut errors);
        let forward = validate::check(&settings, is_broken, &mut errors);
        if !errors.is_empty() {
            return Err(ConfigErrors::new(errors));
        }
        let warnings = warnings::of(&settings, &forward);
        let listen = settings.listen.iter().map(|(listener, _)| listener.0).collect();
        let file = file.map(|(path, _)| path.to_owned());
        Ok(Self { settings, forward, listen, file, warnings })
    }

    /// What the proxy is told.
    ///
    /// Shape: `relay.own_addresses`, `own_broadcasts` and `own_names` are empty: they are the host's, which
    ///        whoever asks it fills in.
    pub fn parameters(&self) -> Parameters {
        let default = Upstream { name: "default".into(), authority: None };
        let named = self.settings.upstreams.iter().map(|named| Upstream {
            name: named.name.as_str().into(),
            authority: named.origin.values.uri.clone().map(|origin| origin.0),
        });
        Parameters {
            downstream: downstream(&self.settings),
            upstreams: self.upstream_sets().map(|set| set.used()).collect(),
            relay: coapway_relay::Parameters {
                upstreams: std::iter::once(default).chain(named).collect(),
                routes: self.settings.routes.iter().filter_map(|route| self.route(route)).collect(),
                forward: self.forward.clone(),
                own: self.listen.clone(),
                own_addresses: Vec::new(),
                own_broadcasts: Vec::new(),
                own_names: Vec::new(),
                identifier: self.settings.process.values.identifier.0.as_str().into(),
                insert_hop_limit: self.settings.process.values.insert_hop_limit.0,
                trusted: self.settings.clients.values.trusted.0.clone(),
                client_rate: self.settings.limits.values.client_rate,
            },
            answer_within: self.settings.downstream.values.answer_within,
            patience: self.settings.clients.values.patience,
            limits: self.settings.limits(),
        }
    }

    /// Where to listen: at least one address, each once, none with port 0.
    pub fn listen(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// The file that it was read from, as it was named.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Where names are looked up.
    pub const fn resolver(&self) -> &Resolver {
        &self.settings.process.values.resolver
    }

    /// How long running requests may take once the process is asked to stop.
    pub const fn drain_timeout(&self) -> Duration {
        self.settings.process.values.drain_timeout
    }

    /// The command that is run for each alert, and its arguments; empty for none.
    pub fn on_alert(&self) -> &[String] {
        &self.settings.process.values.on_alert.0
    }

    /// The file that keeps what was learned over a restart.
    pub fn state(&self) -> Option<&Path> {
        self.settings.process.values.state.0.as_deref()
    }

    /// Where forward records go.
    pub const fn record(&self) -> &RecordSettings {
        &self.settings.record.values
    }

    /// Where the program's own log goes.
    pub const fn log(&self) -> &LogSettings {
        &self.settings.log.values
    }

    /// What is allowed and deserves a look, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// An error about the value of `key`, for whoever finds that the host does not go along with it.
    ///
    /// Shape: `key` is dotted, as in the dump; one that nobody knows counts as a default.
    pub fn object(&self, key: &str, reason: impl Into<String>) -> ConfigError {
        let named = self.settings.upstreams.iter().flat_map(|named| named.origin.entries());
        let entries = self.settings.sections().into_iter().flat_map(|section| section.entries()).chain(named);
        match entries.into_iter().find(|entry| entry.key == key) {
            Some(entry) => ConfigError::new(entry.key, &entry.source, reason).value(entry.value),
            None => ConfigError::new(key.to_owned(), &Source::Default, reason),
        }
    }

    /// The same about an address of [`Config::listen`].
    pub fn object_to_listener(&self, address: SocketAddr, reason: impl Into<String>) -> ConfigError {
        let listener = self.settings.listen.iter().find(|(listener, _)| listener.0 == address);
        let source = listener.map_or(Source::Default, |(_, source)| source.clone());
        ConfigError::new("listen".to_owned(), &source, reason).value(format!("coap://{address}"))
    }

    /// The set for origins without a name, then those of the named ones.
    pub(crate) fn upstream_sets(&self) -> impl Iterator<Item = UpstreamSet<'_>> {
        upstream_sets(&self.settings)
    }

    fn route(&self, route: &Section<crate::schema::places::Route>) -> Option<Route> {
        let values = &route.values;
        let name = values.upstream.as_ref()?;
        let index = self.settings.upstreams.iter().position(|named| named.name == name.0)?;
        Some(Route {
            host: values.host.as_ref().map(|host| host.0.as_str().into()),
            path: values.path.as_ref().map(|path| path.segments.clone()).unwrap_or_default(),
            upstream: UpstreamId(u32::try_from(index + 1).ok()?),
            strip: values.strip,
        })
    }
}
