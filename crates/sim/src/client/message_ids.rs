//! Clients that come back to a Message ID much too soon: a counter of a few bits, or one that starts
//! anew with each wake-up.

use std::collections::BTreeMap;

/// Narrows the Message IDs of a client's requests, and widens those in what acknowledges them.
#[derive(Debug)]
pub(super) struct Narrow {
    mask: u16,
    /// By narrow ID, the latest that became it.
    latest: BTreeMap<u16, u16>,
}

/// CON or NON, with a request code.
fn is_request(bytes: &[u8]) -> bool {
    matches!(bytes, [first, 1..=31, _, _, ..] if first >> 5 == 0b010)
}

/// ACK or RST.
fn acknowledges(bytes: &[u8]) -> bool {
    matches!(bytes, [first, _, _, _, ..] if first >> 5 == 0b011)
}

impl Narrow {
    /// Only the bits of `mask` are used; all of them by most clients.
    pub(super) const fn new(mask: u16) -> Self {
        Self { mask, latest: BTreeMap::new() }
    }

    pub(super) const fn is_narrow(&self) -> bool {
        self.mask != u16::MAX
    }

    pub(super) fn outgoing(&mut self, bytes: &mut [u8]) {
        if is_request(bytes)
            && let [_, _, high, low, ..] = bytes
        {
            let wide = u16::from_be_bytes([*high, *low]);
            self.latest.insert(wide & self.mask, wide);
            [*high, *low] = (wide & self.mask).to_be_bytes();
        }
    }

    pub(super) fn incoming(&self, bytes: &mut [u8]) {
        if acknowledges(bytes)
            && let [_, _, high, low, ..] = bytes
            && let Some(wide) = self.latest.get(&u16::from_be_bytes([*high, *low]))
        {
            [*high, *low] = wide.to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_for_the_latest_of_that_id() {
        let mut narrow = Narrow::new(3);
        for wide in [0x1235_u16, 0x1239] {
            let [high, low] = wide.to_be_bytes();
            let mut request = [0x40, 1, high, low];
            narrow.outgoing(&mut request);
            assert_eq!(request, [0x40, 1, 0, 1]);
            let mut acknowledgement = [0x60, 0, 0, 1];
            narrow.incoming(&mut acknowledgement);
            assert_eq!(acknowledgement, [0x60, 0, high, low]);
        }
        // What it acknowledges itself and what it is sent have the proxy's IDs.
        for mut other in [[0x60, 0, 9, 9], [0x40, 0x45, 9, 9]] {
            narrow.outgoing(&mut other);
            narrow.incoming(&mut other);
            assert_eq!(other[2..], [9, 9]);
        }
    }
}
