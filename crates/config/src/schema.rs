//! The tables of the file. One line of one table per key, and nothing about it anywhere else.

pub(crate) mod admission;
pub(crate) mod downstream;
pub(crate) mod operation;
pub(crate) mod places;
pub(crate) mod profile;
pub(crate) mod upstream;
pub(crate) mod window;
