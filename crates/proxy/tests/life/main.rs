//! A proxy's life in virtual time: other settings while requests are under way, and its end.

mod bench;
mod drain;
mod estimators;
mod fresh_ids;
mod reload;
