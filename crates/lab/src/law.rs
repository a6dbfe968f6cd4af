//! How a time is distributed.

use std::sync::Arc;

use crate::dice::Dice;

/// How a time is distributed; everything in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Always the same.
    Constant(f64),
    /// Anything in between is as likely.
    Uniform {
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
    },
    /// Without memory.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// The median.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
        /// What is longer counts as this.
        most: f64,
        /// With it all copies of an exchange share one value, and those of consecutive exchanges of a
        /// client are correlated by this much; without it each copy has its own.
        carried: Option<f64>,
    },
    /// A shortest time and a gamma distribution over it.
    Gamma {
        /// The shortest.
        least: f64,
        /// The shape of what comes on top.
        shape: f64,
        /// The mean of what comes on top.
        mean: f64,
    },
    /// A heavy tail.
    Pareto {
        /// The shortest.
        least: f64,
        /// How fast the tail falls.
        shape: f64,
        /// What is longer counts as this.
        most: f64,
    },
    /// Nearly always the one, seldom the other.
    Bimodal {
        /// The one.
        usual: f64,
        /// The other.
        rare: f64,
        /// How often it is the other.
        share: f64,
    },
    /// What was measured, as time passed.
    Measured(Measured),
}

/// Times that were measured, each in force from its moment on. After the last it begins anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Moment and time, in order of moments; not empty, the first at 0.
    pub samples: Arc<[(f64, f64)]>,
    /// From the first moment to the end of the last sample; more than 0.
    pub period: f64,
}

impl Law {
    /// One time at this moment. `level` is what the exchange shares between its copies: mean 0, variance 1.
    pub(crate) fn draw(&self, dice: &mut Dice, level: f64, at: f64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { least, most } => dice.between(least, most),
            Self::Exponential { mean } => dice.exponential(mean),
            Self::Lognormal { median, sigma, most, carried } => {
                let normal = if carried.is_some() { level } else { dice.normal() };
                (median * libm::exp(sigma * normal)).min(most)
            }
            Self::Gamma { least, shape, mean } => least + dice.gamma(shape, mean / shape),
            Self::Pareto { least, shape, most } => dice.pareto(least, shape).min(most),
            Self::Bimodal { usual, rare, share } => {
                if dice.share() < share {
                    rare
                } else {
                    usual
                }
            }
            Self::Measured(ref measured) => measured.at(at),
        }
    }

    /// How much of its level an exchange takes from the one before.
    pub(crate) const fn carried(&self) -> Option<f64> {
        match self {
            Self::Lognormal { carried, .. } => *carried,
            Self::Constant(_)
            | Self::Uniform { .. }
            | Self::Exponential { .. }
            | Self::Gamma { .. }
            | Self::Pareto { .. }
            | Self::Bimodal { .. }
            | Self::Measured(_) => None,
        }
    }

    /// About the middle of it.
    pub fn typical(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform { least, most } => (least + most) / 2.0,
            Self::Exponential { mean } => *mean,
            Self::Lognormal { median, .. } => *median,
            Self::Gamma { least, mean, .. } => least + mean,
            Self::Pareto { least, shape, .. } => least * libm::pow(2.0, 1.0 / shape),
            Self::Bimodal { usual, .. } => *usual,
            Self::Measured(measured) => {
                let mut values: Vec<f64> = measured.samples.iter().map(|(_, value)| *value).collect();
                values.sort_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or_default()
            }
        }
    }
}

impl Measured {
    fn at(&self, at: f64) -> f64 {
        let place = at % self.period;
        let after = self.samples.partition_point(|(moment, _)| *moment <= place);
        self.samples.get(after.saturating_sub(1)).map_or(0.0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Use;

    #[test]
    fn what_was_measured_comes_in_its_order_and_begins_anew() {
        let measured = Measured { samples: [(0.0, 0.1), (1.0, 0.2), (4.0, 0.3)].into(), period: 5.0 };
        let values = [0.0, 0.9, 1.0, 3.9, 4.5, 5.0, 6.5].map(|at| measured.at(at));
        assert_eq!(values, [0.1, 0.1, 0.2, 0.2, 0.3, 0.1, 0.2]);
    }

    #[test]
    fn copies_share_what_is_carried_and_nothing_else() {
        let law = |carried| Law::Lognormal { median: 1.0, sigma: 0.8, most: 10.0, carried };
        let draw = |law: &Law, copy| law.draw(&mut Dice::new(1, Use::Datagram, 1, copy), 0.5, 0.0);
        assert_eq!(draw(&law(Some(0.7)), 1), draw(&law(Some(0.7)), 2));
        assert_ne!(draw(&law(None), 1), draw(&law(None), 2));
    }
}
