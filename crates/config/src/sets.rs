//! The parameter sets that settings make: one towards clients, one for each kind of origin.

use coapway_endpoint::{EndpointParameters, TransmissionParameters};
use coapway_proxy::UpstreamParameters;

use crate::forecast;
use crate::section::Section;
use crate::settings::{NamedUpstream, Settings};

/// The parameters of one upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpstreamSet<'s> {
    pub(crate) section: &'s Section<crate::schema::upstream::Upstream>,
    /// `None` for the set of origins without a name.
    pub(crate) named: Option<&'s NamedUpstream>,
}

impl UpstreamSet<'_> {
    /// As they are set.
    pub(crate) const fn set(&self) -> UpstreamParameters {
        self.section.values.parameters()
    }

    /// As they are used: an origin without a schedule of its own relies on the protocol's span.
    pub(crate) fn used(&self) -> UpstreamParameters {
        let mut parameters = self.set();
        if !self.named.is_some_and(|named| named.has_own_schedule) {
            let span = TransmissionParameters::default().max_transmit_span();
            parameters.transmission.max_retransmit = forecast::held(&parameters.transmission, span);
        }
        parameters
    }
}

/// The set for origins without a name, then those of the named ones.
pub(crate) fn upstream_sets(settings: &Settings) -> impl Iterator<Item = UpstreamSet<'_>> {
    let default = UpstreamSet { section: &settings.upstream, named: None };
    let named = settings.upstreams.iter();
    std::iter::once(default)
        .chain(named.map(|named| UpstreamSet { section: &named.upstream, named: Some(named) }))
}

/// What the endpoint towards clients is told.
pub(crate) fn downstream(settings: &Settings) -> EndpointParameters {
    let values = &settings.downstream.values;
    // Clients that wait longer also repeat later; those that wait less are remembered as the others.
    let protocol = TransmissionParameters::default();
    let ack_timeout = values.client_ack_timeout.max(protocol.ack_timeout);
    let peer = TransmissionParameters { ack_timeout, ..protocol };
    let max_retransmit = forecast::held(&values.transmission, peer.max_transmit_span());
    EndpointParameters {
        transmission: TransmissionParameters { max_retransmit, ..values.transmission },
        max_wait: values.max_wait,
        early_ack_after: values.early_ack_after,
        nstart: values.window.nstart(),
        duplicates: settings.dedup.values.duplicates,
        peer,
    }
}
