//! `profile`: named sets of values for the keys of an upstream.

use crate::error::Wrong;
use crate::raw::{Raw, Written};
use crate::section::{Value, choose};
use crate::source::Source;

/// A named set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Rfc7252,
    Lan,
    Lpwan,
    Interop,
}

pub(super) const ALLOWED: &str = "\"rfc7252\", \"lan\", \"lpwan\" or \"interop\"";

const PROFILES: [(&str, Profile); 4] = [
    ("rfc7252", Profile::Rfc7252),
    ("lan", Profile::Lan),
    ("lpwan", Profile::Lpwan),
    ("interop", Profile::Interop),
];

impl Value for Profile {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &PROFILES)
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

impl Profile {
    const fn name(self) -> &'static str {
        PROFILES[self as usize].0
    }

    /// The keys of an upstream that it sets, and to what.
    pub(crate) fn values(self) -> impl Iterator<Item = (&'static str, Written)> {
        let source = Source::Profile(self.name());
        self.pairs().iter().map(move |&(key, text)| {
            (key, Written { raw: Raw::from_word(text), text: text.to_owned(), source: source.clone() })
        })
    }

    const fn pairs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // What RFC 7252 says and nothing else: no memory of what an origin did before.
            Self::Rfc7252 => &[
                ("ack_timeout", "2s"),
                ("ack_random_factor", "1.5"),
                ("retry_jitter", "0.0"),
                ("max_retransmit", "4"),
                ("nstart", "1"),
                ("rto.estimator", "fixed"),
                ("rto.carry", "never"),
                ("retransmit.schedule", "doubling"),
                ("retransmit.extra", "0"),
                ("retransmit.dup_ack_match", "false"),
                ("retransmit.probe", "off"),
                ("retransmit.mid", "same"),
                ("retry.max_attempts", "1"),
            ],
            // Milliseconds, and room for many at a time.
            Self::Lan => {
                &[("ack_timeout", "1s"), ("nstart", "auto"), ("nstart_max", "8192"), ("rto.floor", "20ms")]
            }
            // Seconds, a duty cycle, and a radio that each copy costs.
            Self::Lpwan => &[
                ("ack_timeout", "10s"),
                ("retransmit.probe", "off"),
                ("max_retransmit", "2"),
                ("retransmit.extra", "0"),
                ("nstart", "1"),
                ("max_wait", "247s"),
                ("retry.max_attempts", "1"),
            ],
            // Nothing that an origin may not have seen before: one port, one exchange for a request.
            Self::Interop => &[
                ("source_ports", "1"),
                ("token", "fresh"),
                ("post_guard", "none"),
                ("retransmit.probe", "off"),
                ("retransmit.mid", "same"),
                ("retry.max_attempts", "1"),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::upstream::Upstream;
    use crate::section::{AnySection as _, Section};

    #[test]
    fn every_profile_can_be_set() {
        for (name, profile) in PROFILES {
            assert_eq!(profile.name(), name);
            let mut section = Section::<Upstream>::new("upstream");
            for (key, value) in profile.values() {
                section.set(key, &value).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(section.source(key), Source::Profile(name));
            }
        }
    }
}
