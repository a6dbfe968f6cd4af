//! What `coapway check --dump` prints: every value with its source, and what the values come to.

use std::fmt::{self, Write as _};
use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_endpoint::parameters::MAX_LATENCY;

use crate::config::Config;
use crate::forecast;
use crate::memory;
use crate::section::{AnySection, Entry, Value as _};
use crate::sets::{UpstreamSet, downstream};
use crate::units::show_duration;

impl Config {
    /// Every effective value with its source, and what follows from them: lines `key = value  # source`,
    /// and lines that begin with `#` for people.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        write(self, &mut text).expect("a String takes everything");
        text
    }
}

fn write(config: &Config, out: &mut String) -> fmt::Result {
    let settings = &config.settings;
    out.push_str(
        "# each value and its source: default, profile NAME, FILE:LINE, env VARIABLE or an option\n",
    );
    section(&settings.process, out)?;
    for (listener, source) in &settings.listen {
        writeln!(out, "listen = {}  # {source}", listener.show())?;
    }

    out.push_str("\n# towards clients\n");
    section(&settings.downstream, out)?;
    let used = downstream(settings);
    derived("downstream", &settings.downstream.values.transmission, out)?;
    copies("downstream", settings.downstream.values.transmission, used.transmission, used.max_wait, out)?;
    let remembered = show_duration(used.peer.exchange_lifetime());
    writeln!(
        out,
        "downstream.remembered = {remembered}  # EXCHANGE_LIFETIME of clients: how long duplicates are known"
    )?;

    out.push_str("\n# towards origins without a name\n");
    for set in config.upstream_sets() {
        if let Some(named) = set.named {
            writeln!(out, "\n# towards {}", named.name)?;
            let uri = named.origin.entries().into_iter().filter(|entry| entry.key.ends_with(".uri"));
            entries(uri, out)?;
        }
        upstream(set, out)?;
    }

    out.push_str("\n# who may reach what\n");
    for route in &settings.routes {
        section(route, out)?;
    }
    section(&settings.forward, out)?;
    section(&settings.clients, out)?;
    let forwarding = config.forwarding();
    let (word, meaning) = forwarding.split_once(": ").unwrap_or((&forwarding, ""));
    writeln!(out, "forwarding = {word}  # {meaning}")?;

    out.push_str("\n# operation\n");
    let rest: [&dyn AnySection; 5] =
        [&settings.dedup, &settings.limits, &settings.record, &settings.log, &settings.admin];
    rest.into_iter().try_for_each(|known| section(known, out))?;

    out.push_str("\n# the most memory that strangers can make the process use\n");
    let bound = config.memory();
    for part in &bound.parts {
        writeln!(out, "memory.{} = {}  # {}", part.name, memory::show(part.bytes), part.what)?;
    }
    writeln!(out, "memory.most = {bound}  # all of it")?;

    out.push_str("\n# the protocol's own (RFC 7252 §4.8), for peers that are told nothing else\n");
    protocol(out)?;
    for warning in config.warnings() {
        writeln!(out, "\n# warning: {warning}")?;
    }
    Ok(())
}

fn section(section: &dyn AnySection, out: &mut String) -> fmt::Result {
    entries(section.entries(), out)
}

fn entries(entries: impl IntoIterator<Item = Entry>, out: &mut String) -> fmt::Result {
    entries
        .into_iter()
        .try_for_each(|Entry { key, value, source }| writeln!(out, "{key} = {value}  # {source}"))
}

/// The times of R-PAR-02.
fn derived(name: &str, transmission: &TransmissionParameters, out: &mut String) -> fmt::Result {
    let times = [
        ("MAX_TRANSMIT_SPAN", transmission.max_transmit_span(), "first copy to last"),
        (
            "MAX_TRANSMIT_WAIT",
            transmission.max_transmit_wait(),
            "first copy to giving up, if max_wait lets it",
        ),
        ("MAX_RTT", transmission.max_rtt(), "request to response at the most"),
        ("EXCHANGE_LIFETIME", transmission.exchange_lifetime(), "a Message ID of a CON stays taken"),
        ("NON_LIFETIME", transmission.non_lifetime(), "a Message ID of a NON stays taken"),
    ];
    times.into_iter().try_for_each(|(time, duration, meaning)| {
        writeln!(out, "{name}.{time} = {}  # derived: {meaning}", show_duration(forecast::rounded(duration)))
    })
}

/// How many copies leave in time (R-USR-04).
fn copies(
    name: &str,
    set: TransmissionParameters,
    used: TransmissionParameters,
    max_wait: Duration,
    out: &mut String,
) -> fmt::Result {
    let fit = forecast::fit(&used, max_wait);
    let configured = set.max_retransmit;
    let surely = fit.surely;
    let retransmissions = if surely == 1 { "retransmission" } else { "retransmissions" };
    write!(
        out,
        "{name}.effective_retransmissions = {surely}  # {surely} {retransmissions} of {configured} fit, "
    )?;
    write!(
        out,
        "{} in all",
        if surely == 0 { "1 copy".to_owned() } else { format!("{} copies", surely + 1) }
    )?;
    if surely < used.max_retransmit {
        let (earliest, latest) = forecast::retransmission(&used, surely + 1);
        let draw = if fit.at_best > surely {
            "it leaves in time only if the first wait is drawn short"
        } else {
            "too late"
        };
        write!(
            out,
            ": number {} would leave {} to {} after the first copy, {draw} with max_wait {}",
            surely + 1,
            show_duration(forecast::rounded(earliest)),
            show_duration(forecast::rounded(latest)),
            show_duration(max_wait)
        )?;
    }
    if used.max_retransmit < configured {
        write!(out, "; held to {} for peers with default parameters", used.max_retransmit)?;
    }
    writeln!(out, "; counted for the longest first wait, while nothing else is learned")
}

fn upstream(set: UpstreamSet<'_>, out: &mut String) -> fmt::Result {
    let name = &set.section.name;
    section(set.section, out)?;
    let (configured, used) = (set.set(), set.used());
    derived(name, &configured.transmission, out)?;
    copies(name, configured.transmission, used.transmission, used.max_wait, out)?;
    let due = show_duration(used.max_wait);
    writeln!(
        out,
        "{name}.due = {due}  # a silent origin is answered for with 5.04 exactly this long after receipt"
    )?;

    let (posts, copies) = (forecast::posts(&used), forecast::copies(&used));
    let plural = |copies| if copies == 1 { "1 copy".to_owned() } else { format!("{copies} copies") };
    write!(
        out,
        "{name}.unanswered_posts = {} %  # at {} % loss each way, with {}",
        forecast::prices(posts),
        forecast::LOSSES_SHOWN,
        plural(posts)
    )?;
    if posts < copies {
        write!(
            out,
            ", since an origin may execute each copy; cure: deduplicates = true, if it recognises duplicates: {} \
             and {} %",
            plural(copies),
            forecast::prices(copies)
        )?;
    }
    out.push('\n');

    let per_port = forecast::requests_per_port(&used);
    let lifetime = show_duration(forecast::rounded(forecast::message_id_lifetime(&used)));
    writeln!(
        out,
        "{name}.requests_per_second = {}  # at the most to one origin: {} source ports of {per_port}/s, 65536 \
         Message IDs in {lifetime} each",
        per_port * u64::from(used.source_ports),
        used.source_ports,
    )
}

fn protocol(out: &mut String) -> fmt::Result {
    let own = TransmissionParameters::default();
    let source = "RFC 7252 §4.8";
    writeln!(out, "protocol.ACK_TIMEOUT = {}  # {source}", show_duration(own.ack_timeout))?;
    writeln!(out, "protocol.ACK_RANDOM_FACTOR = {:?}  # {source}", own.ack_random_factor)?;
    writeln!(out, "protocol.MAX_RETRANSMIT = {}  # {source}", own.max_retransmit)?;
    writeln!(out, "protocol.NSTART = 1  # {source}")?;
    writeln!(out, "protocol.DEFAULT_LEISURE = 5s  # {source}")?;
    writeln!(out, "protocol.PROBING_RATE = 1 byte/s  # {source}")?;
    writeln!(out, "protocol.MAX_LATENCY = {}  # RFC 7252 §4.8.2", show_duration(MAX_LATENCY))?;
    derived("protocol", &own, out)
}
