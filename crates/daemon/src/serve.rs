//! `serve` and `check`: from settings to a running worker.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::Poll;

use coapway_config::{Config, ConfigErrors};
use coapway_endpoint::Seed;
use tokio::sync::oneshot;

use crate::arguments::Settings;
use crate::clock::Clock;
use crate::commands::Commands;
use crate::events::Events;
use crate::loading::load;
use crate::reading::Reading;
use crate::rehearsal::{self, Findings};
use crate::saying::{WRONG_USE, complain, say};
use crate::service::{self, Service};
use crate::signals::Signals;
use crate::sockets::{Bound, Sockets};
use crate::unbound;
use crate::worker::Worker;

fn runtime() -> Result<tokio::runtime::Runtime, ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| complain(1, &format!("cannot start: {error}")))
}

/// `coapway check`: what `serve` would say, without serving.
pub(crate) fn check(settings: &Settings, dump: bool) -> ExitCode {
    let config = match load(settings) {
        Ok(config) => config,
        Err(errors) => return complain(WRONG_USE, &errors.to_string()),
    };
    let Findings { errors, notes } = match runtime() {
        Ok(runtime) => {
            let _inside = runtime.enter();
            rehearsal::rehearse(&config)
        }
        Err(code) => return code,
    };
    if !errors.is_empty() {
        return complain(WRONG_USE, &ConfigErrors::new(errors).to_string());
    }
    let of_host = rehearsal::warnings(&config).into_iter().map(|warning| format!("warning: {warning}"));
    let of_host = of_host.chain(notes.into_iter().map(|note| format!("note: {note}")));
    let text = if dump {
        let of_host = of_host.map(|line| format!("\n# {line}\n"));
        std::iter::once(config.dump()).chain(of_host).collect()
    } else {
        let lines = config.summary().into_iter();
        let warnings = config.warnings().iter().map(|warning| format!("warning: {warning}"));
        let rest = "configuration ok; --dump prints every value and what follows from it".to_owned();
        lines.chain(warnings).chain(of_host).chain([rest]).map(|line| line + "\n").collect::<String>()
    };
    say(&text)
}

/// `coapway serve`.
pub(crate) fn serve(settings: &Settings) -> ExitCode {
    let config = match load(settings) {
        Ok(config) => config,
        Err(errors) => return complain(WRONG_USE, &errors.to_string()),
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let errors = rehearsal::beforehand(&config);
    if !errors.is_empty() {
        return complain(WRONG_USE, &ConfigErrors::new(errors).to_string());
    }
    let inside = runtime.enter();
    let bound = match Bound::to(config.listen()) {
        Ok(bound) => bound,
        Err(unbound) => {
            let errors = unbound::objections(&config, &unbound);
            return complain(WRONG_USE, &ConfigErrors::new(errors).to_string());
        }
    };
    drop(inside);
    if let Err(error) = crate::log::start(config.log()) {
        return complain(1, &format!("cannot open the log: {error}"));
    }
    runtime.block_on(run(settings, config, bound))
}

async fn run(settings: &Settings, config: Config, bound: Bound) -> ExitCode {
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return complain(1, &format!("cannot wait for signals: {error}")),
    };
    let sockets = Sockets::new(bound);
    let resolver = match service::resolver(&config) {
        Ok(resolver) => resolver,
        Err(error) => return complain(1, &format!("cannot start the resolver: {error}")),
    };
    let clock = Clock::start();
    let mut events = match events(&config, clock, &mut signals).await {
        Some(Ok(events)) => events,
        None => {
            tracing::info!("stopped");
            return ExitCode::SUCCESS;
        }
        Some(Err(error)) => return complain(1, &format!("cannot open the record file: {error}")),
    };
    let commands = Commands::default();
    match service::on_alert(&config, &commands) {
        Ok(on_alert) => events.tell_alerts_to(on_alert),
        Err(error) => return complain(1, &format!("cannot run on_alert: {error}")),
    }
    let mut seed = [0; 32];
    if let Err(error) = getrandom::fill(&mut seed) {
        return complain(1, &format!("no randomness: {error}"));
    }
    banner(&config);
    let parameters = service::parameters(&config, sockets.listeners().collect());
    let listening = service::listening(&config);
    let mut worker = Worker::new(parameters, listening, sockets, resolver, events, clock, Seed(seed));
    worker.restore(config.state().map(Into::into));
    let service = Service { settings, config, clock, worker, reading: Reading::default(), commands };
    let worker = service.run(signals).await;
    worker.tell_counters();
    tracing::info!("stopped");
    crate::log::finish();
    ExitCode::SUCCESS
}

/// Opens what records go to, on a thread of its own since a FIFO waits for its reader; nothing when it is to
/// stop meanwhile.
///
/// Errors: it cannot be opened, or there is no thread to be had.
async fn events(config: &Config, clock: Clock, signals: &mut Signals) -> Option<io::Result<Events>> {
    let (sender, mut opened) = oneshot::channel();
    let settings = config.record().clone();
    let open = move || drop(sender.send(Events::start(&settings, &clock)));
    if let Err(error) = std::thread::Builder::new().name("open-records".into()).spawn(open) {
        return Some(Err(error));
    }
    poll_fn(|cx| match Pin::new(&mut opened).poll(cx) {
        Poll::Ready(opened) => Poll::Ready(Some(opened.unwrap_or_else(|error| Err(io::Error::other(error))))),
        Poll::Pending => signals.poll_stop(cx).map(|()| None),
    })
    .await
}

/// What listens, who may reach what, how many copies fit, how much memory there may be: one block.
fn banner(config: &Config) {
    tracing::info!("coapway {}", env!("CARGO_PKG_VERSION"));
    for line in config.summary() {
        tracing::info!("{line}");
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    for warning in rehearsal::warnings(config) {
        tracing::warn!("{warning}");
    }
    tracing::info!("ready");
}
