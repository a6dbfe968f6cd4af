//! What a CoAP proxy does with a request, apart from how messages cross a hop.
//!
//! ```text
//! client's request ──▶ route::decide ──▶ Plan { upstream, destination, content }  ──▶ origin
//!                        │  admission: who may reach what
//!                        │  forward:   which options pass, which are rewritten
//!                        └▶ Refusal ──▶ answer ──▶ client
//! origin's response ──▶ forward::relay_response ──▶ client
//! its absence       ──▶ answer::Answer::for_failure ──▶ client
//! ```
//!
//! [`Parameters`] say where origins are and who may reach them. Options stay encoded: what changes is
//! written anew into a buffer of the caller, what does not is handed on as it came.
//! Source: RFC 7252 §5.4, §5.7, §5.10, §11.

pub mod admission;
pub mod answer;
pub mod fetch;
pub mod forward;
pub mod parameters;
pub mod relay;
pub mod route;

pub use admission::{Admission, admit_address};
pub use answer::{Answer, Refusal, Text};
pub use fetch::{Fetch, FetchId, Phase};
pub use forward::relay_response;
pub use parameters::{Forward, Hosts, Parameters, PatternError, Route, TargetPattern, Upstream, UpstreamId};
pub use relay::Relay;
pub use route::{Destination, Plan, decide};
