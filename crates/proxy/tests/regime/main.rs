//! An origin that is down, clients that have gone, and what outlives a restart: a proxy, its clients and
//! its origin, by hand and in virtual time.

mod bench;
mod dormant;
mod kept;
mod patience;
mod pings;
mod shift;
