//! What a CoAP proxy does with a request, apart from how messages cross a hop.
//!
//! ```text
//! client's request ──▶ limits::judge: is this client too fast?
//!                  ──▶ route::decide ──▶ Plan { upstream, destination, content, … }
//!                        │  admission: who may reach what          ├─▶ hints::held: shall the origin
//!                        │  forward:   which options pass          │   be left alone for now?
//!                        │             and which are rewritten     └─▶ origin
//!                        ├▶ local: what the proxy itself offers ──▶ client
//!                        └▶ Refusal ──▶ answer ──▶ client
//! origin's response ──▶ forward::relay_response ──▶ client
//! its absence       ──▶ answer::Answer::for_failure ──▶ client
//! ```
//!
//! Whatever is on its way to the client, [`NoResponse`] may say that it does not want to hear it.
//! [`Parameters`] say where origins are and who may reach them. Options stay encoded: what changes is
//! written anew into a buffer of the caller, what does not is handed on as it came.
//! Source: RFC 7252 §5.4, §5.7, §5.10, §11; RFC 6690; RFC 7967; RFC 8516; RFC 8768.

pub mod admission;
pub mod answer;
pub mod block;
pub mod fetch;
pub mod forward;
pub mod hints;
pub mod limits;
pub mod no_response;
pub mod parameters;
pub mod relay;
pub mod resource;
pub mod route;

mod local;

pub use admission::{Admission, admit_address};
pub use answer::{Answer, Fault, Refusal, Text};
pub use block::Block;
pub use fetch::{Fetch, FetchId, OriginId, Phase, Rare};
pub use forward::{Relayed, relay_response, with_hop_limit, with_request_tag, without_hop_limit};
pub use hints::{HintCounters, Hints, Origin};
pub use limits::{ClientLimits, LimitCounters, Verdict};
pub use no_response::NoResponse;
pub use parameters::{Forward, Hosts, Parameters, PatternError, Route, TargetPattern, Upstream, UpstreamId};
pub use relay::Relay;
pub use resource::resource_key;
pub use route::{Decision, Destination, Plan};
