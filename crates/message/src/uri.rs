//! Options ↔ URI.
