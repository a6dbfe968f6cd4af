//! Chance by address: what is drawn follows from what it is drawn for and from nothing that was drawn before.
//!
//! Policies that are compared therefore meet the same path, copy by copy, and one more policy changes
//! nothing for the others.

/// What chance is used for; each use has its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// What becomes of a datagram.
    Datagram,
    /// The level of delay that all copies of an exchange share.
    Level,
    /// When a client asks.
    Asking,
    /// What it asks.
    Method,
    /// A client's first timeout.
    ClientTimeout,
    /// How long the origin takes.
    Origin,
    /// The origin's first timeout for a separate response.
    OriginTimeout,
    /// The states of a channel with bursts of loss.
    Bursts,
    /// Foreign traffic.
    Cross,
    /// The proxy's own seed.
    Proxy,
    /// One run of many.
    Run,
}

/// A stream of chance for one thing.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The stream for this use of this thing.
    pub(crate) fn new(seed: u64, what: Use, of: u64, number: u64) -> Self {
        Self(mix(mix(mix(seed, what as u64), of), number))
    }

    /// 64 bits of chance (splitmix64).
    pub(crate) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.0)
    }

    /// From 0 to 1, 1 excluded.
    pub(crate) fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.share()
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.share())
    }

    /// Mean 0, variance 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log1p(-self.share()));
        radius * libm::cos(std::f64::consts::TAU * self.share())
    }

    /// Least value `least`; the mean is `least * shape / (shape - 1)` where `shape` is above 1.
    pub(crate) fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        least * libm::pow(1.0 - self.share(), -1.0 / shape)
    }

    /// With this shape and scale (Marsaglia and Tsang 2000).
    pub(crate) fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        if shape < 1.0 {
            let power = libm::pow(1.0 - self.share(), 1.0 / shape);
            return self.gamma(shape + 1.0, scale) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let (normal, share) = (self.normal(), self.share());
            let cube = 1.0 + c * normal;
            let cube = cube * cube * cube;
            let accepted = cube > 0.0
                && libm::log(1.0 - share) < 0.5 * normal * normal + d - d * cube + d * libm::log(cube);
            if accepted {
                return d * cube * scale;
            }
        }
    }
}

/// One number out of two, near ones far apart.
pub(crate) const fn mix(seed: u64, part: u64) -> u64 {
    scramble(
        seed.rotate_left(25) ^ part.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD6E8_FEB8_6659_FD93),
    )
}

/// The end of splitmix64.
const fn scramble(state: u64) -> u64 {
    let state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ state >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(draw: impl Fn(&mut Dice) -> f64) -> (f64, f64) {
        let count = 200_000;
        let draws = (0..count).map(|number| draw(&mut Dice::new(3, Use::Datagram, number, 1)));
        let (sum, squares) = draws.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let mean = sum / count as f64;
        (mean, squares / count as f64 - mean * mean)
    }

    fn assert_near((mean, variance): (f64, f64), expected: (f64, f64)) {
        let far = |is: f64, should: f64| (is - should).abs() > 0.02 * should.abs() + 0.01;
        assert!(!far(mean, expected.0) && !far(variance, expected.1), "{mean} {variance}, {expected:?}");
    }

    #[test]
    fn first_draws_of_neighbours_have_the_moments_of_their_law() {
        assert_near(moments(Dice::share), (0.5, 1.0 / 12.0));
        assert_near(moments(Dice::normal), (0.0, 1.0));
        assert_near(moments(|dice| dice.exponential(2.0)), (2.0, 4.0));
        assert_near(moments(|dice| dice.gamma(0.5, 2.0)), (1.0, 2.0));
        assert_near(moments(|dice| dice.gamma(4.0, 0.5)), (2.0, 1.0));
        assert_near(moments(|dice| dice.pareto(1.0, 5.0)), (1.25, 5.0 / 16.0 / 3.0));
    }

    #[test]
    fn a_draw_depends_on_what_it_is_for_only() {
        let draw = |what, of, number| Dice::new(7, what, of, number).bits();
        assert_eq!(draw(Use::Datagram, 1, 2), draw(Use::Datagram, 1, 2));
        let others = [
            draw(Use::Level, 1, 2),
            draw(Use::Datagram, 2, 1),
            draw(Use::Datagram, 1, 3),
            Dice::new(8, Use::Datagram, 1, 2).bits(),
        ];
        assert!(others.iter().all(|&other| other != draw(Use::Datagram, 1, 2)));
    }
}
