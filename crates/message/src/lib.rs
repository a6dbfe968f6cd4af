//! What travels: CoAP messages and their codec, without state and without time.
//!
//! ```text
//! bytes ──▶ Datagram::parse ──▶ Datagram<'d> { message_type, message_id, token, content }
//!                                                └─ Content<'d> { code, options, payload }  (floors above)
//! Content + type + Message ID + token ──▶ datagram::encode ──▶ bytes
//! ```
//!
//! Everything read is a view of the bytes that came in: options are checked once and stay encoded.
//! Whoever changes options writes a new list with [`OptionsWriter`], which then travels as a
//! [`Content`] again. Source: RFC 7252 §3, §5.10, §6, §12; RFC 8974 §2.1.

pub mod code;
pub mod datagram;
pub mod exchange;
pub mod option;
pub mod options;
pub mod token;
pub mod uri;

mod content;

pub use code::{Code, Method};
pub use content::{Content, OwnedContent};
pub use datagram::{Datagram, Malformed, MessageType};
pub use exchange::{Evidence, ExchangeId, Failure};
pub use option::OptionNumber;
pub use options::{Options, OptionsWriter};
pub use token::Token;
