//! The settings of a scenario: the product's own configuration, and the world around it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use coapway_config::{Config, ConfigErrors, Overrides};
use coapway_proxy::Parameters;
use coapway_time::Instant;

use super::line::duration;
use super::rehearsal::{CLIENTS, address};
use crate::network::Link;
use crate::script::Script;
use crate::sockets::{GROUP, LISTENER};
use crate::world::{Found, Plan};

/// What a name leads to that is no peer: nobody, or a multicast group.
const NOBODY: &str = "nobody";
const THE_GROUP: &str = "group";

/// Settings, routes, names, and what the world is like.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// As behind `--set`.
    assignments: Vec<String>,
    forward: bool,
    /// Whether the addresses of clients are not believed.
    unverified: bool,
    /// Without any, `/` leads to `origin`.
    routes: Option<Vec<Route>>,
    names: Vec<Name>,
    own_names: Vec<Box<str>>,
    delay: Duration,
    lateness: Duration,
    /// Less than a configuration may ask for.
    memory: Option<usize>,
}

#[derive(Clone, Debug)]
struct Route {
    /// For every host where there is none.
    host: Option<Box<str>>,
    path: Box<str>,
    origin: Box<str>,
    strip: bool,
}

#[derive(Clone, Debug)]
struct Name {
    name: Box<str>,
    peers: Vec<Box<str>>,
    since: Duration,
    delay: Duration,
}

impl Settings {
    /// `KEY=VALUE`: a key of the configuration, or one of the world.
    pub(super) fn set(&mut self, assignment: &str) -> Result<(), String> {
        let (key, value) = assignment.split_once('=').ok_or("set KEY=VALUE")?;
        match key {
            "world.delay" => self.delay = duration(value)?,
            "world.lateness" => self.lateness = duration(value)?,
            "world.own_name" => self.own_names.push(value.into()),
            "world.dedup_memory" => {
                self.memory = Some(value.parse().map_err(|_| format!("{value} is no number of bytes"))?);
            }
            _ => {
                self.assignments.push(assignment.to_owned());
                load(None, &self.assignments).map_err(|errors| errors.to_string())?;
            }
        }
        Ok(())
    }

    pub(super) const fn forward_anything(&mut self) {
        self.forward = true;
    }

    pub(super) const fn leave_clients_unverified(&mut self) {
        self.unverified = true;
    }

    pub(super) fn no_route(&mut self) {
        self.routes.get_or_insert_default();
    }

    pub(super) fn route(&mut self, path: &str, origin: &str, rest: &[&str]) -> Result<(), String> {
        let strip = match rest {
            [] => false,
            ["strip"] => true,
            _ => return Err("route [HOST]PATH -> ORIGIN [strip]".to_owned()),
        };
        let (host, path) = path.split_at(path.find('/').unwrap_or(path.len()));
        let host = (!host.is_empty()).then(|| host.into());
        let route = Route { host, path: path.into(), origin: origin.into(), strip };
        self.routes.get_or_insert_default().push(route);
        Ok(())
    }

    pub(super) fn name(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let (words, delay) = match words {
            [words @ .., "after", delay] => (words, duration(delay)?),
            words => (words, Duration::ZERO),
        };
        let (peers, since) = match words {
            [peers @ .., "at", since] => (peers, duration(since)?),
            peers => (peers, Duration::ZERO),
        };
        // A name that leads to nobody is looked up in vain.
        let peers = peers.iter().filter(|&&peer| peer != NOBODY).map(|&peer| peer.into()).collect();
        self.names.push(Name { name: name.into(), peers, since, delay });
        Ok(())
    }

    /// The peers that routes and names lead to.
    pub(super) fn peers(&self) -> impl Iterator<Item = &str> {
        let usual = self.routes.is_none().then_some("origin");
        let routes = self.routes.iter().flatten().map(|route| &*route.origin);
        let names = self.names.iter().flat_map(|name| name.peers.iter().map(|peer| &**peer));
        let names = names.filter(|&name| name != THE_GROUP);
        usual.into_iter().chain(routes).chain(names)
    }

    /// What the proxy is told when it listens at `listener` and peers have these addresses.
    ///
    /// Each peer that a route leads to is a named upstream.
    /// Errors: what the configuration has to say against it.
    pub fn parameters(
        &self,
        script: &Script,
        listener: SocketAddr,
        address: impl Fn(usize) -> SocketAddr,
    ) -> Result<Parameters, ConfigErrors> {
        let mut file = format!("[[listen]]\nuri = \"coap://{listener}\"\n[forward]\n");
        // Writing into a String cannot fail.
        let _ = match self.forward {
            true => writeln!(file, "clients = [\"0.0.0.0/0\", \"::/0\"]\nallow = [\"0.0.0.0/0\", \"::/0\"]"),
            false => writeln!(file, "enabled = false"),
        };
        let usual = [Route { host: None, path: "/".into(), origin: "origin".into(), strip: false }];
        let routes = self.routes.as_deref().unwrap_or(&usual);
        for (place, peer) in script.peers.iter().enumerate() {
            if routes.iter().any(|route| route.origin == peer.name) {
                let _ = writeln!(file, "[[upstreams]]\nname = {:?}", peer.name);
                let _ = writeln!(file, "uri = \"coap://{}\"", address(place));
            }
        }
        for Route { host, path, origin, strip } in routes {
            let _ = writeln!(file, "[[routes]]\npath = {path:?}\nupstream = {origin:?}\nstrip = {strip}");
            if let Some(host) = host {
                let _ = writeln!(file, "host = {host:?}");
            }
        }
        let mut parameters = load(Some(&file), &self.assignments)?.parameters();
        parameters.relay.own_names.clone_from(&self.own_names);
        if let Some(memory) = self.memory {
            parameters.downstream.duplicates.memory = memory;
        }
        Ok(parameters)
    }

    /// The virtual world these settings make.
    ///
    /// Errors: as [`Settings::parameters`].
    pub fn plan(&self, script: &Script, seed: u64) -> Result<Plan, ConfigErrors> {
        let mut parameters = self.parameters(script, LISTENER, |place| address(script, place))?;
        if !self.unverified {
            parameters.relay.trusted.push(CLIENTS.parse().expect("a network"));
        }
        let place = |name: &str| script.peers.iter().position(|peer| &*peer.name == name);
        let ip = |name: &str| match name {
            THE_GROUP => Some(GROUP.ip()),
            name => Some(address(script, place(name)?).ip()),
        };
        let mut names: BTreeMap<String, Vec<Found>> = BTreeMap::new();
        for Name { name, peers, since, delay } in &self.names {
            let addresses = peers.iter().filter_map(|peer| ip(peer)).collect();
            let found = Found { since: Instant::ZERO + *since, addresses, delay: *delay };
            names.entry(name.to_string()).or_default().push(found);
        }
        names.values_mut().for_each(|found| found.sort_by_key(|found| found.since));
        let link = Link { delay: self.delay, ..Link::PERFECT };
        Ok(Plan { parameters, names, link, lateness: self.lateness, seed })
    }
}

fn load(file: Option<&str>, assignments: &[String]) -> Result<Config, ConfigErrors> {
    let overrides = Overrides { set: assignments.to_vec(), ..Overrides::default() };
    let file = file.map(|text| (Path::new("scenario"), text));
    Config::load(file, std::iter::empty::<(String, String)>(), &overrides)
}
