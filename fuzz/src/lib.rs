//! What the fuzz targets share: an input that is read as a script, and messages made from one.

mod script;

pub use script::Script;

#[cfg(feature = "machines")]
pub mod message;
