//! One endpoint and peers that speak raw datagrams, in virtual time.

mod addresses;
mod amplification;
mod fresh_ids;
mod hop;
mod memory;
mod messages;
mod random;
mod timers;
mod tokens;
mod turns;
mod unusable;
