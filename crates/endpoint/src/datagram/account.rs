//! What one request of a peer whose address nobody verified may cause to be sent to that address
//! (R-ATK-01; RFC 7252 §11.3, RFC 9175 §2.4).
//!
//! Everything counts: Acknowledgements, the response, every copy, every replay for a repeat. Before
//! the response only Empty messages leave, 4 bytes for at least 4 that came, so that the first copy
//! of a short response always fits.

/// What may leave however little came.
const FLOOR: u32 = 136;
/// How many bytes may leave for each that came.
const FACTOR: u32 = 3;

/// A response of this size fits whatever was sent before it, also when the account is lost:
/// 4 n + 92 ≤ max(136, 3 · 4 n) for every number n of Empty messages.
pub(super) const ALWAYS_FITS: usize = 92;

/// Bytes that came and went because of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    received: u32,
    sent: u32,
}

impl Account {
    /// The address is believed; nothing is counted.
    pub(super) const VERIFIED: Self = Self { received: u32::MAX, sent: 0 };

    /// A request of so many bytes came from an address that is not.
    pub(super) fn unverified(received: usize) -> Self {
        Self { received: 0, sent: 0 }.credited(received)
    }

    const fn is_verified(self) -> bool {
        self.received == u32::MAX
    }

    fn credited(self, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX / 4);
        Self { received: self.received.saturating_add(bytes).min(u32::MAX / 4), ..self }
    }

    /// The request was repeated.
    pub(super) fn receive(&mut self, bytes: usize) {
        if !self.is_verified() {
            *self = self.credited(bytes);
        }
    }

    /// Whether so many bytes may leave; then they count as sent.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        if self.is_verified() {
            return true;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let sent = self.sent.saturating_add(bytes);
        let fits = sent <= FLOOR.max(self.received * FACTOR);
        if fits {
            self.sent = sent;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_requests_get_the_floor_and_long_ones_three_times_their_bytes() {
        let mut short = Account::unverified(30);
        assert!(short.spend(100) && !short.spend(37) && short.spend(36) && !short.spend(1));
        let mut long = Account::unverified(100);
        assert!(long.spend(300) && !long.spend(1));
        long.receive(100);
        assert!(long.spend(300) && !long.spend(1));
    }

    #[test]
    fn the_floor_is_given_once_and_not_for_each_repeat() {
        let mut account = Account::unverified(10);
        assert!(account.spend(136));
        for _ in 0..3 {
            account.receive(10);
        }
        assert!(!account.spend(1), "40 bytes came: 120 are less than the floor");
        account.receive(10);
        assert!(account.spend(14) && !account.spend(1));
    }

    #[test]
    fn a_short_response_always_fits_after_empty_messages() {
        for repeats in 0..1000 {
            let mut account = Account::unverified(4);
            assert!(account.spend(4));
            for _ in 0..repeats {
                account.receive(4);
                assert!(account.spend(4));
            }
            assert!(account.spend(ALWAYS_FITS), "after {repeats} repeats");
        }
    }

    #[test]
    fn a_verified_address_gets_everything() {
        let mut account = Account::VERIFIED;
        account.receive(usize::MAX);
        assert!((0..1000).all(|_| account.spend(usize::MAX)));
    }

    #[test]
    fn the_numbers_do_not_run_over() {
        let mut account = Account::unverified(usize::MAX);
        assert!(account.spend(3_000_000_000));
        for _ in 0..10 {
            account.receive(usize::MAX);
            account.spend(u32::MAX as usize / 2);
        }
        assert!(!account.spend(usize::MAX));
    }
}
