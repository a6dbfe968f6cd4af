//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::client::{ObserveArguments, PingArguments, RequestArguments};

/// A CoAP proxy that keeps its word on weak networks.
///
/// Without a configuration file `coapway serve` listens on coap://127.0.0.1:5683 and forwards
/// requests with Proxy-Uri or Proxy-Scheme of local clients.
#[derive(Debug, Parser)]
#[command(name = "coapway", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy.
    Serve(Settings),
    /// Check the configuration and what this host says to it.
    ///
    /// Nothing is made or changed, so that it can be run beside the service that has the same
    /// configuration: a port that is in use is a note and no error.
    Check {
        #[command(flatten)]
        settings: Settings,
        /// Print every effective value, its source and what follows from it.
        #[arg(long)]
        dump: bool,
    },
    /// Fetch a representation.
    Get(RequestArguments),
    /// Have a payload processed.
    Post(RequestArguments),
    /// Create or replace a resource.
    Put(RequestArguments),
    /// Delete a resource.
    Delete(RequestArguments),
    /// Fetch what a payload asks for (RFC 8132).
    Fetch(RequestArguments),
    /// Change parts of a resource (RFC 8132).
    Patch(RequestArguments),
    /// Change parts of a resource; doing it twice is like doing it once (RFC 8132).
    Ipatch(RequestArguments),
    /// Fetch a representation and each one that follows it, until Ctrl-C (RFC 7641).
    Observe(ObserveArguments),
    /// Ask whether a CoAP endpoint is alive.
    Ping(PingArguments),
    /// Compare policies on simulated paths: named ones, your own, or those your records have seen.
    Simulate(coapway_lab::Arguments),
    /// Read forward records; say what the path is like, propose parameters and show what they would do.
    Tune(coapway_tune::Arguments),
    /// Watch the proxy on a weak link, simulated, and change the weather.
    Demo(coapway_demo::Arguments),
}

/// Where settings come from, the strongest first: these flags, the environment, the file, defaults.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Settings {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen, e.g. coap://0.0.0.0:5683; may be repeated.
    #[arg(long, value_name = "URI")]
    pub(crate) listen: Vec<String>,
    /// The origin behind every path, e.g. coap://10.1.2.3; turns forwarding off.
    #[arg(long, value_name = "URI")]
    pub(crate) reverse: Option<String>,
    /// Where metrics and dashboard are served; only `off` in this version.
    #[arg(long, value_name = "ADDR|off")]
    pub(crate) admin: Option<String>,
    /// Where forward records go, one JSON line per request.
    #[arg(long, value_name = "FILE|-|off")]
    pub(crate) record: Option<String>,
    /// Where the program's own log goes.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) log: Option<String>,
    /// Its format.
    #[arg(long, value_name = "json|text")]
    pub(crate) log_format: Option<String>,
    /// Any key of the file, e.g. upstream.max_wait=20s; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}
