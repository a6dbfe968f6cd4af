//! A scenario file: TOML into a [`Scenario`].

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coapway_config::ConfigErrors;
use toml::de::{DeTable, DeValue};

use super::keys::{File, Table, Wrong};
use super::units;
use super::{
    BurstLaw, ClientLaw, CrossLaw, MOST_REQUESTS, Mix, NatLaw, OriginLaw, Outage, Pace, PathLaw, Phase,
    RadioLaw, Scenario, Wake, WayLaw, WhenFull,
};
use crate::law::Law;

/// No time of a scenario is longer, in seconds.
const LONGEST: f64 = 7.0 * 24.0 * 3600.0;
/// No delay is longer, in seconds.
const LONGEST_DELAY: f64 = 600.0;
/// Foreign traffic has no more datagrams a second.
const MOST_FOREIGN: f64 = 100_000.0;
/// What is wrong with a longest time.
const BELOW: &str = "below the shortest, or the middle";

pub(super) fn read(path: &Path, text: &str) -> Result<Scenario, ConfigErrors> {
    let file = File { path: Arc::new(path.to_owned()), text, errors: RefCell::default() };
    let (table, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let reason = format!("not TOML: {}", error.message());
        let span = error.span().unwrap_or_default();
        file.wrong(Wrong {
            key: String::new(),
            span: &span,
            shown: false,
            reason: &reason,
            allowed: None,
            hint: None,
        });
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let top = Table::new(&file, String::new(), table.get_ref(), 0..0);
    let scenario = if syntax.is_empty() { scenario(top, name) } else { Scenario::default() };
    let errors = file.errors.into_inner();
    if errors.is_empty() { Ok(scenario) } else { Err(ConfigErrors::new(errors)) }
}

fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn scenario(top: Table<'_>, name: String) -> Scenario {
    let mut scenario = Scenario { name, ..Scenario::default() };
    if let Some(about) = top.text("about") {
        scenario.about = about.to_owned();
    }
    if let Some(seconds) = top.seconds("duration", 1.0, LONGEST) {
        scenario.duration = duration(seconds);
    }
    if let Some(seconds) = top.seconds("warmup", 0.0, LONGEST) {
        scenario.warmup = duration(seconds);
        if let Some(value) = top.get("warmup").filter(|_| scenario.warmup >= scenario.duration) {
            let all = units::show(scenario.duration.as_secs_f64());
            top.wrong("warmup", value, "nothing would count", format!("less than \"{all}\", the duration"));
        }
    }
    scenario.requests = top.count("requests", 1, MOST_REQUESTS);
    if let Some(table) = top.table("clients") {
        clients(table, &mut scenario.clients);
    }
    if let Some(table) = top.table("path") {
        path(table, &mut scenario.path);
    }
    if let Some(table) = top.table("access") {
        path(table, &mut scenario.access);
    }
    if let Some(table) = top.table("origin") {
        origin(table, &mut scenario.origin);
    }
    top.finish();
    scenario
}

fn clients(table: Table<'_>, law: &mut ClientLaw) {
    if let Some(count) = table.count("count", 1, 65_000) {
        law.count = count;
    }
    let rate = table.number("rate", 0.0001, 100_000.0);
    let think = table.seconds("think", 0.0, LONGEST);
    match (rate, think) {
        (Some(_), Some(_)) => {
            if let Some(value) = table.get("think") {
                table.wrong("think", value, "not beside rate", "rate or think".to_owned());
            }
        }
        (Some(rate), None) => law.pace = Pace::Rate(rate),
        (None, Some(think)) => law.pace = Pace::Think(think),
        (None, None) => {}
    }
    law.together = table.flag("together").unwrap_or(law.together);
    law.each = table.count("each", 1, 10_000_000);
    let (post, non) = (table.share("post").unwrap_or(0.0), table.share("non").unwrap_or(0.0));
    law.mix = Mix { post, non };
    if post + non > 1.0 + 1e-9
        && let Some(value) = table.get("non")
    {
        table.wrong(
            "non",
            value,
            "together with post more than all",
            format!("0 to {}", rounded(1.0 - post)),
        );
    }
    if let Some(payload) = table.count("payload", 0, 1024) {
        law.payload = payload as usize;
    }
    if let Some(seconds) = table.seconds("patience", 0.1, 3600.0) {
        law.patience = duration(seconds);
    }
    table.finish();
}

/// As people would write it.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

fn path(table: Table<'_>, law: &mut PathLaw) {
    if let Some(rtt) = time(&table, "rtt") {
        law.rtt = rtt;
    }
    if let Some(wake) = table.table("wake") {
        law.wake = Some(Wake {
            share: wake.share("share").unwrap_or(0.01),
            least: wake.seconds("least", 0.0, LONGEST_DELAY).unwrap_or(0.0),
            most: wake.seconds("most", 0.0, LONGEST_DELAY).unwrap_or(1.0),
        });
        if let Some(Wake { least, most, .. }) = law.wake {
            wake.at_least("most", most, least, LONGEST_DELAY, BELOW);
            if !wake.has("most") && least > most {
                wake.missing("most", "it is \"1s\" by itself, which is below least");
            }
        }
        wake.finish();
    }
    for phase in table.tables("phases") {
        let at = phase.seconds("at", 0.0, LONGEST).unwrap_or(0.0);
        if let Some(before) = law.phases.last().map(|before: &Phase| before.at.as_secs_f64()) {
            if phase.has("at") {
                phase.at_least("at", at, before, LONGEST, "before the phase above it");
            } else {
                phase.missing("at", "only the first phase may begin by itself, at \"0s\"");
            }
        }
        law.phases.push(Phase {
            at: duration(at),
            rtt: time(&phase, "rtt"),
            add: phase.seconds("add", 0.0, LONGEST_DELAY).unwrap_or(0.0),
        });
        phase.finish();
    }
    law.cycle = table.seconds("cycle", 1.0, LONGEST).map(duration);
    if let (Some(cycle), Some(last)) = (law.cycle, law.phases.last()) {
        let (cycle, last) = (cycle.as_secs_f64(), last.at.as_secs_f64());
        table.at_least("cycle", cycle, last, LONGEST, "over before the last phase begins");
    }
    if let Some(overhead) = table.count("overhead", 0, 1000) {
        law.overhead = overhead as usize;
    }
    way(&table, &mut [&mut law.up, &mut law.down]);
    for outage in table.tables("outages") {
        let directions = [("both", (true, true)), ("up", (true, false)), ("down", (false, true))];
        let (up, down) = outage.word("direction", &directions).unwrap_or((true, true));
        let found = interval(&outage);
        law.up.outages.extend(up.then_some(found));
        law.down.outages.extend(down.then_some(found));
        outage.finish();
    }
    for (key, direction) in [("up", &mut law.up), ("down", &mut law.down)] {
        if let Some(own) = table.table(key) {
            way(&own, &mut [direction]);
            own.finish();
        }
    }
    if let Some(nat) = table.table("nat") {
        let timeout = duration(nat.seconds("timeout", 1.0, LONGEST).unwrap_or(120.0));
        law.nat = Some(NatLaw { timeout, rebind: nat.seconds("rebind", 1.0, LONGEST).map(duration) });
        nat.finish();
    }
    if let Some(table) = table.table("radio") {
        law.radio = Some(radio(table));
    }
    table.finish();
}

fn radio(table: Table<'_>) -> RadioLaw {
    let airtime = |key| {
        let Some(table) = table.table(key) else { return (0.0, 0.0) };
        let seconds = |key| table.seconds(key, 0.0, LONGEST_DELAY).unwrap_or(0.0);
        let airtime = (seconds("message"), seconds("byte"));
        table.finish();
        airtime
    };
    let law = RadioLaw {
        up: airtime("up"),
        down: airtime("down"),
        window: table.seconds("window", 0.0, 60.0).unwrap_or(1.0),
        duty_cycle: table.number("duty_cycle", 0.0001, 1.0).unwrap_or(0.01),
    };
    table.finish();
    law
}

/// What both directions may have alike, or one of its own.
fn way(table: &Table<'_>, ways: &mut [&mut WayLaw]) {
    let loss = table.share("loss");
    let burst = table.table("burst").map(burst);
    let rate = table.rate("rate");
    let buffer = table.size("buffer");
    let cross = table.table("cross").map(cross);
    let duplication = table.share("duplication");
    let reordering = table.share("reordering");
    let lag = table.number("lag", 0.0, 100.0);
    let mut crowded = None;
    for way in ways {
        way.loss = loss.unwrap_or(way.loss);
        way.burst = burst.or(way.burst);
        way.rate = rate.or(way.rate);
        way.buffer = buffer.or(way.buffer);
        way.cross = cross.or(way.cross);
        way.duplication = duplication.unwrap_or(way.duplication);
        way.reordering = reordering.unwrap_or(way.reordering);
        way.lag = lag.unwrap_or(way.lag);
        if let (Some(rate), Some(CrossLaw { share, size, .. })) = (way.rate, way.cross)
            && rate * share > MOST_FOREIGN * 8.0 * size as f64
        {
            crowded = Some((rate * share, rate * share / MOST_FOREIGN / 8.0));
        }
    }
    if let Some((rate, size)) = crowded
        && let Some((key, value)) = ["cross", "rate"].into_iter().find_map(|key| Some((key, table.get(key)?)))
    {
        let reason = format!("more than {MOST_FOREIGN} foreign datagrams a second");
        let allowed = format!("a size of \"{}B\" or more, or less than {rate} bit/s of it", size.ceil());
        table.wrong(key, value, &reason, allowed);
    }
    if table.has("buffer") && !table.has("rate") {
        table.missing("rate", "a buffer is before something that has a rate");
    }
}

fn burst(table: Table<'_>) -> BurstLaw {
    let law = BurstLaw {
        good: table.seconds("good", 0.001, LONGEST).unwrap_or(1.0),
        bad: table.seconds("bad", 0.001, LONGEST).unwrap_or(1.0),
        loss_good: table.share("loss_good").unwrap_or(0.0),
        loss_bad: table.share("loss_bad").unwrap_or(1.0),
        shape: table.number("shape", 1.01, 100.0),
        shared: table.flag("shared").unwrap_or(true),
    };
    table.finish();
    law
}

fn cross(table: Table<'_>) -> CrossLaw {
    let law = CrossLaw {
        on: table.seconds("on", 0.001, LONGEST).unwrap_or(10.0),
        off: table.seconds("off", 0.001, LONGEST).unwrap_or(10.0),
        share: table.number("share", 0.01, 2.0).unwrap_or(0.5),
        size: table.size("size").unwrap_or(296),
    };
    table.finish();
    law
}

fn interval(table: &Table<'_>) -> Outage {
    let at = table.seconds("at", 0.0, LONGEST).unwrap_or(0.0);
    let lasts = table.seconds("for", 0.001, LONGEST).unwrap_or(30.0);
    let every = table.seconds("every", lasts + 0.001, LONGEST).unwrap_or(LONGEST);
    let times = table.count("times", 1, 1_000_000);
    let times = times.unwrap_or(if table.has("every") { 1_000_000 } else { 1 });
    Outage { at: duration(at), lasts: duration(lasts), every: duration(every), times }
}

fn origin(table: Table<'_>, law: &mut OriginLaw) {
    if let Some(think) = time(&table, "think") {
        law.think = think;
    }
    if let Some(value) = table.get("empty_ack_after") {
        law.empty_ack_after = match value.get_ref().as_str() {
            Some("never") => None,
            _ => table.seconds("empty_ack_after", 0.0, LONGEST_DELAY).map(duration),
        };
    }
    law.deduplicates = table.flag("deduplicates").unwrap_or(law.deduplicates);
    law.service = time(&table, "service");
    law.queue = table.count("queue", 0, 1_000_000).unwrap_or(law.queue);
    let words =
        [("silent", WhenFull::Silent), ("5.03", WhenFull::Unavailable), ("4.29", WhenFull::TooManyRequests)];
    law.when_full = table.word("when_full", &words).unwrap_or(law.when_full);
    law.max_age = table.count("max_age", 0, 3600).unwrap_or(law.max_age);
    if let Some(payload) = table.count("payload", 0, 1024) {
        law.payload = payload as usize;
    }
    for stall in table.tables("stalls") {
        law.stalls.push(interval(&stall));
        stall.finish();
    }
    table.finish();
}

/// A time that is always the same, or a law.
fn time(table: &Table<'_>, key: &'static str) -> Option<Law> {
    let value = table.get(key)?;
    if !matches!(value.get_ref(), DeValue::Table(_)) {
        return table.seconds(key, 0.0, LONGEST_DELAY).map(Law::Constant);
    }
    let law = table.table(key)?;
    let seconds = |key: &'static str, usual: f64| law.seconds(key, 0.0, LONGEST_DELAY).unwrap_or(usual);
    let need = |key: &'static str| {
        if !law.has(key) {
            law.missing(key, "this law needs it");
        }
        law.seconds(key, 1e-6, LONGEST_DELAY).unwrap_or(1.0)
    };
    let kinds =
        [("uniform", 0), ("exponential", 1), ("lognormal", 2), ("gamma", 3), ("pareto", 4), ("bimodal", 5)];
    if !law.has("law") {
        law.missing("law", "uniform, exponential, lognormal, gamma, pareto or bimodal");
    }
    let found = match law.word("law", &kinds)? {
        0 => Law::Uniform { least: seconds("least", 0.0), most: need("most") },
        1 => Law::Exponential { mean: need("mean") },
        2 => Law::Lognormal {
            median: need("median"),
            sigma: law.number("sigma", 0.0, 3.0).unwrap_or(0.5),
            most: seconds("most", LONGEST_DELAY),
            carried: law.number("carried", 0.0, 0.999),
        },
        3 => Law::Gamma {
            least: seconds("least", 0.0),
            shape: law.number("shape", 0.05, 100.0).unwrap_or(1.0),
            mean: need("mean"),
        },
        4 => Law::Pareto {
            least: need("least"),
            shape: law.number("shape", 0.1, 100.0).unwrap_or(1.5),
            most: seconds("most", LONGEST_DELAY),
        },
        _ => Law::Bimodal {
            usual: need("usual"),
            rare: need("rare"),
            share: law.share("share").unwrap_or(0.05),
        },
    };
    if let Law::Uniform { least, most }
    | Law::Lognormal { median: least, most, .. }
    | Law::Pareto { least, most, .. } = found
    {
        law.at_least("most", most, least, LONGEST_DELAY, BELOW);
    }
    law.finish();
    Some(found)
}
