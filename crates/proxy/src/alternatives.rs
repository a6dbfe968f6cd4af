//! Further addresses of a name, for fetches whose first address turns out to be closed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Content, OwnedContent};
use coapway_relay::FetchId;

/// By slot of the fetch; only fetches by a name with more than one address are here.
#[derive(Debug, Default)]
pub(crate) struct Alternatives {
    kept: BTreeMap<u32, (FetchId, Vec<SocketAddr>, OwnedContent)>,
}

impl Alternatives {
    pub(crate) fn keep(
        &mut self,
        fetch: FetchId,
        addresses: impl Iterator<Item = SocketAddr>,
        content: &Content<'_>,
    ) {
        let addresses: Vec<_> = addresses.collect();
        if !addresses.is_empty() {
            self.kept.insert(fetch.0.slot, (fetch, addresses, (*content).into()));
        }
    }

    pub(crate) fn take(&mut self, fetch: FetchId) -> Option<(Vec<SocketAddr>, OwnedContent)> {
        let (owner, addresses, content) = self.kept.remove(&fetch.0.slot)?;
        (owner == fetch).then_some((addresses, content))
    }

    #[inline]
    pub(crate) fn forget(&mut self, fetch: FetchId) {
        if !self.kept.is_empty() {
            self.kept.remove(&fetch.0.slot);
        }
    }
}
