//! What the values come to, in a few sentences: what a start and `coapway check` say.

use coapway_proxy::UpstreamParameters;
use coapway_relay::Forward;

use crate::config::Config;
use crate::forecast;
use crate::memory;
use crate::schema::operation::RecordDestination;
use crate::section::Value as _;
use crate::sets::downstream;
use crate::units::show_duration;

/// More routes than this are only counted.
const ROUTES_SHOWN: usize = 8;

impl Config {
    /// What follows from the values, a line for each thing: what listens, who may reach what, how many
    /// copies fit into `max_wait` and when what is answered, what is limited, how much memory that takes at
    /// the most.
    ///
    /// Source: R-USR-04.
    pub fn summary(&self) -> Vec<String> {
        let listeners: Vec<String> =
            self.listen().iter().map(|address| format!("listening on coap://{address}")).collect();
        let mut lines = listeners;
        lines.push(format!("forwarding is {}", self.forwarding()));
        self.routes(&mut lines);
        for (name, upstream) in self.upstreams_in_use() {
            towards(&name, &upstream, &mut lines);
        }
        lines.push(self.clients());
        lines.push(self.limited());
        let bound = self.memory();
        let parts = bound.parts.iter().filter(|part| part.bytes > 0);
        let parts: Vec<String> =
            parts.map(|part| format!("{} {}", part.name, memory::show(part.bytes))).collect();
        lines.push(format!("memory is at most {bound}, whatever strangers send: {}", parts.join(", ")));
        lines
    }

    /// A warning, where strangers could make the process use more than the `available` bytes that `place` has.
    pub fn memory_beyond(&self, available: u64, place: &str) -> Option<String> {
        let bound = self.memory();
        let show = |key: &str| {
            let entries = self.settings.sections().into_iter().flat_map(|section| section.entries());
            let entry = entries.into_iter().find(|entry| entry.key == key);
            entry.map(|entry| format!("{key} = {} ({})", entry.value, entry.source))
        };
        (bound.total() > available).then(|| {
            let keys: Vec<String> = bound.beyond(available).into_iter().filter_map(show).collect();
            format!(
                "memory may come to {bound} and {place} has {}MiB: what strangers send could end the process; smaller \
                 values make it fit, above all of {}",
                available >> 20,
                keys.join(", ")
            )
        })
    }

    /// What strangers can make the process keep.
    pub(crate) fn memory(&self) -> memory::Bound {
        let records = self.record().destination != RecordDestination::Off;
        memory::Bound::new(&memory::Limits::new(&self.parameters(), self.listen().len(), records))
    }

    /// Who may have requests forwarded, and why.
    pub(crate) fn forwarding(&self) -> String {
        let settings = &self.settings;
        let values = &settings.forward.values;
        match &self.forward {
            Forward::Off => {
                let why = match values.enabled {
                    Some(_) => "forward.enabled is false",
                    None if settings.routes.is_empty() => {
                        "a listener is not on loopback and there is no [forward]"
                    }
                    None => "there are routes and no [forward]",
                };
                format!("off: {why}; requests with Proxy-Uri or Proxy-Scheme get 5.05")
            }
            Forward::Open => "open: to local clients only, since all listeners are on loopback; to every \
                              unicast target with port 5683, 5684 or from 1024 on, except ourselves"
                .to_owned(),
            Forward::Listed { .. } => {
                let clients = values.clients.as_ref().map(|clients| clients.show()).unwrap_or_default();
                let allow = values.allow.as_ref().map(|allow| allow.show()).unwrap_or_default();
                let named: Vec<&str> = settings.upstreams.iter().map(|named| &*named.name).collect();
                let named = match named.is_empty() {
                    true => String::new(),
                    false => format!(" and upstreams {}", named.join(", ")),
                };
                format!("listed: {clients} may reach {allow}{named}; all others get 5.05")
            }
        }
    }

    fn routes(&self, lines: &mut Vec<String>) {
        let routes = &self.settings.routes;
        if routes.len() > ROUTES_SHOWN {
            lines.push(format!("{} routes are served; --dump lists them", routes.len()));
            return;
        }
        lines.extend(routes.iter().map(|route| {
            let values = &route.values;
            let host = values.host.as_ref().map(|host| format!(" of host {}", host.show()));
            let path = values.path.as_ref().map_or_else(|| "/".to_owned(), |path| path.show());
            let upstream = values.upstream.as_ref().map(|name| name.show()).unwrap_or_default();
            let origin = self.settings.upstreams.iter().find(|named| named.name == upstream);
            let uri = origin.and_then(|named| named.origin.values.uri.as_ref()).map(|uri| uri.show());
            format!("{path}{} is served by {upstream}, {}", host.unwrap_or_default(), uri.unwrap_or_default())
        }));
    }

    /// Parameter sets and who they are for, each once.
    fn upstreams_in_use(&self) -> Vec<(String, UpstreamParameters)> {
        let mut sets: Vec<(String, UpstreamParameters)> = Vec::new();
        for set in self.upstream_sets() {
            let name = match set.named {
                None if self.forward == Forward::Off => continue,
                None => "origins without a name",
                Some(named) => &named.name,
            };
            let used = set.used();
            match sets.iter_mut().find(|(_, other)| *other == used) {
                Some((names, _)) => *names = format!("{names}, {name}"),
                None => sets.push((name.to_owned(), used)),
            }
        }
        sets
    }

    fn clients(&self) -> String {
        let used = downstream(&self.settings);
        let copies = 1 + forecast::fit(&used.transmission, used.max_wait).surely;
        let within = match self.settings.downstream.values.answer_within {
            Some(within) => format!("an answer within {}, ", show_duration(within)),
            None => String::new(),
        };
        format!(
            "clients get {within}an empty Acknowledgement within {} and a separate response up to {copies} times \
             in {}",
            show_duration(used.early_ack_after),
            show_duration(used.max_wait)
        )
    }

    fn limited(&self) -> String {
        let values = &self.settings.limits.values;
        let rate = match values.client_rate {
            0 => "any number of requests".to_owned(),
            rate => format!("{}/s (then 4.29)", counted(rate as usize, "request")),
        };
        let sets = self.upstreams_in_use();
        let queues: Vec<usize> = sets.iter().map(|(_, upstream)| upstream.queue).collect();
        let queue = match (queues.iter().min(), queues.iter().max()) {
            (Some(least), Some(most)) if least == most => format!(", {most} waiting for one origin"),
            (Some(least), Some(most)) => format!(", {least} to {most} waiting for one origin"),
            _ => String::new(),
        };
        format!(
            "limited to {rate} for each client outside of loopback, {} under way{queue}, {} and {} (then 5.03)",
            values.limits.fetches,
            counted(values.limits.origins, "origin"),
            counted(values.limits.names, "name")
        )
    }
}

/// A number of things.
fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn towards(name: &str, upstream: &UpstreamParameters, lines: &mut Vec<String>) {
    let copies = forecast::copies(upstream);
    let configured = upstream.transmission.max_retransmit;
    let max_wait = show_duration(upstream.max_wait);
    let fit = match forecast::too_late(&upstream.transmission, upstream.max_wait) {
        Some((number, earliest, latest)) => format!(
            "{} of {configured} retransmissions fit (number {number} would leave {} to {} after the first copy)",
            number - 1,
            show_duration(earliest),
            show_duration(latest)
        ),
        None => format!("all {configured} retransmissions fit"),
    };
    lines.push(format!(
        "towards {name}: {fit} and a silent origin is answered for with 5.04 after max_wait = {max_wait}"
    ));
    let once = forecast::posts(upstream);
    let mut post = format!(
        "towards {name}: a POST or PATCH leaves {} and stays without an answer for {} % at {} % loss each way",
        times(once),
        forecast::prices(once),
        forecast::LOSSES_SHOWN
    );
    if once < copies {
        post += &format!(
            "; with deduplicates = true, for origins that recognise duplicates, it leaves {} and {} %",
            times(copies),
            forecast::prices(copies)
        );
    }
    lines.push(post);
    if upstream.source_ports == 1 {
        lines.push(format!(
            "towards {name}: source_ports = 1 carries {} requests/s to one origin, since a Message ID rests for {}",
            forecast::requests_per_port(upstream),
            show_duration(forecast::message_id_lifetime(upstream))
        ));
    }
}

fn times(copies: u32) -> String {
    if copies == 1 { "once".to_owned() } else { format!("{copies} times") }
}
