//! A life as a service: serving, reading settings again, opening files anew, ending.

use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use coapway_config::{Change, Config, ConfigError, ConfigErrors, RecordDestination};
use coapway_proxy::{Listening, MOST_LOOK_UPS, Parameters, Sampling};
use coapway_transport::{Resolver, Source};

use crate::arguments::Settings;
use crate::clock::Clock;
use crate::commands::Commands;
use crate::events::Events;
use crate::interfaces::Interfaces;
use crate::log::{Lines, OPERATOR};
use crate::on_alert::OnAlert;
use crate::reading::{Outcome, Reading};
use crate::signals::{Order, Signals};
use crate::sockets::{Bound, Unbound};
use crate::worker::{Changed, Worker};
use crate::{log, notify, rehearsal, unbound};

/// What the service manager allows for beside `drain_timeout`, for the copies of the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// A running proxy and the settings it has.
pub(crate) struct Service<'s> {
    pub(crate) settings: &'s Settings,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) worker: Worker<Events>,
    pub(crate) reading: Reading,
    pub(crate) commands: Commands,
}

/// What ends a run of the worker.
enum Call {
    Order(Order),
    /// Settings were read, and whether they are to be read again.
    Read(Box<Outcome>, bool),
}

/// Other settings, with all that can fail behind it.
struct Prepared {
    config: Config,
    bound: Bound,
    resolver: Option<Resolver>,
    records: Option<Events>,
    lines: Option<Lines>,
    on_alert: OnAlert,
}

impl Service<'_> {
    /// Serves until it is told to stop, and then until what is under way is answered.
    pub(crate) async fn run(mut self, mut signals: Signals) -> Worker<Events> {
        notify::ready(&self.serving());
        loop {
            let reading = &mut self.reading;
            let call = self.worker.run(|cx| match signals.poll(cx) {
                Poll::Ready(order) => Poll::Ready(Call::Order(order)),
                Poll::Pending => {
                    reading.poll(cx).map(|(outcome, again)| Call::Read(Box::new(outcome), again))
                }
            });
            let Some(call) = call.await else { break };
            match call {
                Call::Order(Order::Reload) | Call::Read(..) if self.worker.is_draining() => {
                    tracing::warn!(target: OPERATOR, "stopping: settings are not read again");
                }
                Call::Order(Order::Reload) => {
                    notify::reloading();
                    self.reading.begin(self.settings);
                }
                Call::Read(outcome, again) => {
                    self.reload(*outcome);
                    if again {
                        notify::reloading();
                        self.reading.begin(self.settings);
                    }
                }
                Call::Order(Order::Reopen) => self.reopen(),
                Call::Order(Order::Stop) if self.worker.is_draining() => {
                    let requests = self.worker.requests();
                    tracing::warn!(target: OPERATOR, requests, "stopping at once; requests are left unanswered");
                    break;
                }
                Call::Order(Order::Stop) => self.drain(),
            }
        }
        self.worker.finish();
        self.commands.end();
        self.worker
    }

    fn drain(&mut self) {
        let (requests, within) = (self.worker.requests(), self.config.drain_timeout());
        tracing::info!(
            target: OPERATOR,
            requests,
            ?within,
            "stopping: running requests are finished, new ones refused"
        );
        notify::stopping(within + LAST_ANSWERS, &format!("stopping; {requests} requests under way"));
        self.worker.drain_within(within);
    }

    /// Opens log and records anew, for whoever has moved the files away. The old ones stay in use where
    /// that fails.
    fn reopen(&mut self) {
        match rehearsal::log_takes_lines(&self.config).and_then(|()| log::open(self.config.log())) {
            Ok(lines) => log::replace(lines),
            Err(error) => {
                tracing::warn!(target: OPERATOR, %error, "the log cannot be opened anew; the old one stays in use");
            }
        }
        self.worker.reader().reopen(self.clock.now());
        // Where one of them fails, a warning says so, here or from the thread that writes records.
        tracing::info!(target: OPERATOR, "opening log and records anew");
    }

    /// Settings were read again: all of them hold from now on, or none.
    fn reload(&mut self, read: Outcome) {
        let status = match read.and_then(|(config, errors)| self.prepare(config, errors)) {
            Ok(prepared) => {
                let changes = self.take_over(prepared);
                tracing::info!(target: OPERATOR, changes, "configuration reloaded");
                self.serving()
            }
            Err(errors) => {
                for error in errors.first() {
                    tracing::warn!(target: OPERATOR, "{}", in_one_line(error));
                }
                let errors = errors.iter().count();
                tracing::warn!(target: OPERATOR, errors, "configuration not reloaded: nothing has changed");
                format!("configuration not reloaded, errors: {errors}; {}", self.serving())
            }
        };
        notify::ready(&status);
    }

    /// Errors: whatever keeps the settings from being taken over; nothing has changed then.
    fn prepare(&self, config: Config, errors: Vec<ConfigError>) -> Result<Prepared, ConfigErrors> {
        let errors = [errors, self.readers(&config)].concat();
        if !errors.is_empty() {
            return Err(ConfigErrors::new(errors));
        }
        let one = |error| ConfigErrors::new(vec![error]);
        let cannot = |key: &'static str, what: &'static str| {
            let config = &config;
            move |error: io::Error| one(config.object(key, format!("{what}: {error}")))
        };
        let bound = self.worker.sockets().bind_further(config.listen());
        let bound = bound.map_err(|unbound| ConfigErrors::new(self.unbound(&config, &unbound)))?;
        let resolver = (config.resolver() != self.config.resolver()).then(|| resolver(&config));
        let resolver = resolver.transpose().map_err(cannot("resolver", "cannot be started"))?;
        let records = config.record() != self.config.record();
        let records = records.then(|| Events::start(config.record(), &self.clock)).transpose();
        let records = records.map_err(cannot("record.file", "cannot be opened"))?;
        let lines = (config.log() != self.config.log()).then(|| log::open(config.log())).transpose();
        let lines = lines.map_err(cannot("log.file", "cannot be opened"))?;
        let on_alert = on_alert(&config, &self.commands).map_err(cannot("on_alert", "cannot be run"))?;
        Ok(Prepared { bound, resolver, records, lines, on_alert, config })
    }

    /// Errors: FIFOs that are new and that nobody reads. To open one would stop the service until
    /// somebody does.
    fn readers(&self, config: &Config) -> Vec<ConfigError> {
        let object = |key| move |error: io::Error| config.object(key, format!("cannot be opened: {error}"));
        let record = (config.record() != self.config.record())
            .then(|| rehearsal::record_takes_lines(config).err().map(object("record.file")));
        let log = (config.log() != self.config.log())
            .then(|| rehearsal::log_takes_lines(config).err().map(object("log.file")));
        [record, log].into_iter().flatten().flatten().collect()
    }

    fn unbound(&self, config: &Config, unbound: &[Unbound]) -> Vec<ConfigError> {
        let object = |one: &Unbound| {
            let (address, error) = one;
            let mut own = self.worker.sockets().listeners();
            let in_our_way =
                own.find(|own| error.kind() == io::ErrorKind::AddrInUse && own.port() == address.port());
            match in_our_way {
                Some(own) => vec![unbound::in_our_way(config, *address, own)],
                None => unbound::objections(config, std::slice::from_ref(one)),
            }
        };
        unbound.iter().flat_map(object).collect()
    }

    /// Nothing here can fail. Returns how many values have changed.
    fn take_over(
        &mut self,
        Prepared { config, bound, resolver, records, lines, on_alert }: Prepared,
    ) -> usize {
        let changes = self.config.difference(&config);
        changes.iter().for_each(tell);
        let warnings = |config: &Config| [config.warnings(), &rehearsal::warnings(config)].concat();
        let told = warnings(&self.config);
        for warning in warnings(&config).iter().filter(|warning| !told.contains(warning)) {
            tracing::warn!(target: OPERATOR, "{warning}");
        }
        self.worker.reconfigure(Changed {
            parameters: parameters(&config, config.listen().to_vec()),
            listening: listening(&config),
            listen: config.listen().to_vec(),
            bound,
            resolver,
        });
        if config.state() != self.config.state() {
            self.worker.keep(config.state().map(Into::into));
        }
        if let Some(records) = records {
            self.worker.reader().replace(records);
        }
        self.worker.reader().tell_alerts_to(on_alert);
        if let Some(lines) = lines {
            log::replace(lines);
        }
        self.config = config;
        changes.len()
    }

    fn serving(&self) -> String {
        let listeners: Vec<_> =
            self.config.listen().iter().map(|address| format!("coap://{address}")).collect();
        format!("serving on {}", listeners.join(", "))
    }
}

fn tell(change: &Change) {
    tracing::info!(target: OPERATOR, "{change}");
}

/// An error is a block for people; in a log it is one line.
fn in_one_line(error: &ConfigError) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// What is listened to.
pub(crate) fn listening(config: &Config) -> Listening {
    let record = config.record();
    let records = (record.destination != RecordDestination::Off).then(|| Sampling::share(record.sample));
    Listening { events: false, records, late: true }
}

/// What the proxy is told, with what this host knows of itself.
pub(crate) fn parameters(config: &Config, own: Vec<SocketAddr>) -> Parameters {
    let mut parameters = config.parameters();
    parameters.relay.own = own;
    let interfaces = Interfaces::ask().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list this host's addresses; a request to ourselves may go round");
        Interfaces::default()
    });
    parameters.relay.own_addresses = interfaces.addresses;
    parameters.relay.own_broadcasts = interfaces.broadcasts;
    parameters.relay.own_names = own_names();
    parameters
}

/// Errors: there is no thread to be had.
pub(crate) fn on_alert(config: &Config, commands: &Commands) -> io::Result<OnAlert> {
    let names = config.parameters().relay.upstreams.into_iter().map(|upstream| upstream.name);
    OnAlert::start(config.on_alert(), names.collect(), commands)
}

/// Errors: there are no threads to be had.
pub(crate) fn resolver(config: &Config) -> io::Result<Resolver> {
    let source = match config.resolver() {
        coapway_config::Resolver::System => Source::System,
        coapway_config::Resolver::Hosts(path) => Source::Hosts(path.clone()),
        coapway_config::Resolver::Server(address) => Source::Server(*address),
    };
    // No more are asked for at a time.
    Resolver::new(source, MOST_LOOK_UPS, MOST_LOOK_UPS)
}

/// The names of this host.
fn own_names() -> Vec<Box<str>> {
    let mut names: Vec<Box<str>> = vec!["localhost".into()];
    if let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        names.push(name.trim().to_ascii_lowercase().into());
    }
    names
}
