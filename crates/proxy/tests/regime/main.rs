//! An origin that is down, requests that come round, clients that have gone, and what outlives a restart: a proxy, its clients and
//! its origin, by hand and in virtual time.

mod bench;
mod circle;
mod dormant;
mod kept;
mod patience;
mod pings;
mod shift;
