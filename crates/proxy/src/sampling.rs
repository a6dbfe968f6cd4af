//! Which forwards are recorded.

/// The share of forwards that is recorded. Which ones is decided by their record's `id` alone, so
/// that it is the same ones in each run, spread evenly; a larger share holds a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Of 2⁵³ places those below this one are kept.
    below: u64,
}

/// Places an `id` can have: as many as a number from 0 to 1 tells apart.
const PLACES: f64 = (1_u64 << 53) as f64;

impl Sampling {
    /// Every forward.
    pub const ALL: Self = Self { below: 1 << 53 };

    /// The share `share`, 0 to 1.
    pub fn share(share: f64) -> Self {
        Self { below: (share * PLACES).ceil() as u64 }
    }

    /// Whether the record with this `id` is kept.
    pub const fn keeps(self, id: u64) -> bool {
        // The finalizer of SplitMix64.
        let mut bits = id.wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        bits >> 11 < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_share_asked_for_and_the_same_records_each_time() {
        let kept = |share| (0..100_000).filter(|&id| Sampling::share(share).keeps(id)).collect::<Vec<_>>();
        assert_eq!(kept(0.0).len(), 0);
        assert_eq!(kept(1.0).len(), 100_000);
        assert_eq!(Sampling::share(1.0), Sampling::ALL);
        let tenth = kept(0.1);
        assert_eq!(tenth[..5], [10, 18, 21, 41, 48]);
        assert!((9_700..10_300).contains(&tenth.len()), "{}", tenth.len());
        assert_eq!(kept(0.1), tenth);
        assert!(tenth.iter().all(|&id| Sampling::share(0.2).keeps(id)), "a larger share holds a smaller one");
    }
}
