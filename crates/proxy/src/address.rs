//! An address as the key of a table.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use ahash::RandomState;
use coapway_endpoint::hash_address;

/// An address and a small number that tells uses of it apart, hashed by words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressKey(pub(crate) SocketAddr, pub(crate) u32);

impl Hash for AddressKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_address(&self.0, self.1, state);
    }
}

/// The number of a client: a keyed hash of its address, so that nobody can choose it.
#[inline]
pub(crate) fn number_of(client: &SocketAddr, hasher: &RandomState) -> u64 {
    hasher.hash_one(AddressKey(*client, 0))
}
