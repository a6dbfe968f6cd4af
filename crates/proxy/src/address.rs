//! An address as the key of a table.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

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
