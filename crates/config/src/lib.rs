//! One TOML file, checked, with units; over it the environment, and over that the command line.
//!
//! ```text
//! command line ─┐ Overrides
//! environment ──┤ COAP_UPSTREAM_*, COAPWAY__*    ┌─▶ parameters() ──▶ proxy
//! file ─────────┼─▶ assignments ──▶ Settings ────┼─▶ listen(), resolver(), record(), log() ──▶ daemon
//! defaults ─────┘      each with its Source      ├─▶ warnings(), dump() ──▶ operator
//!                                                └─▶ or ConfigErrors: all of them, each with its place
//! ```
//!
//! [`Config::load`] is the only way in; it reads neither files, environment nor clock. Every key is
//! written down once, in a table of `schema`: its name, range, default, meaning and reason. Parsing,
//! error texts, [`Config::dump`] and the [`reference`](reference()) page all read those tables.

mod command_line;
mod config;
mod difference;
mod document;
mod dump;
mod environment;
mod error;
mod escaping;
mod file;
mod forecast;
mod memory;
mod raw;
mod reference;
mod schema;
mod section;
mod sets;
mod settings;
mod source;
mod summary;
mod syntax;
mod units;
mod validate;
mod warnings;

pub use command_line::Overrides;
pub use config::Config;
pub use difference::Change;
pub use error::{ConfigError, ConfigErrors};
pub use escaping::{escaped, escaped_lines};
pub use file::text;
pub use reference::reference;
pub use schema::operation::{LogDestination, LogFormat, LogLevel, LogSettings};
pub use schema::operation::{RecordDestination, RecordSettings, Resolver};
pub use source::Source;

#[cfg(test)]
mod tests;
