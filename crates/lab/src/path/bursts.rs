//! A channel that is good for a while and bad for a while (Gilbert and Elliott, in continuous time).

use crate::dice::Dice;
use crate::scenario::BurstLaw;

/// Who comes later than after so many changes of state meets the channel as if it had always been going on.
const FORGOTTEN: f64 = 1e6;

/// The states of a channel as time goes on.
#[derive(Debug)]
pub(super) struct Bursts {
    law: BurstLaw,
    dice: Dice,
    bad: bool,
    /// When the state ends, seconds.
    until: f64,
}

impl Bursts {
    pub(super) fn new(law: BurstLaw, mut dice: Dice) -> Self {
        // As if it had always been going on.
        let bad = dice.share() < law.bad / (law.good + law.bad);
        let mut bursts = Self { law, dice, bad, until: 0.0 };
        bursts.until = bursts.sojourn();
        bursts
    }

    /// The share that is lost at a moment; moments come in order, but for a little.
    pub(super) fn loss_at(&mut self, at: f64) -> f64 {
        let BurstLaw { good, bad, .. } = self.law;
        if at - self.until > FORGOTTEN * (good + bad) {
            self.bad = self.dice.share() < bad / (good + bad);
            self.until = at + self.sojourn();
        }
        while at >= self.until {
            self.bad = !self.bad;
            self.until += self.sojourn();
        }
        if self.bad { self.law.loss_bad } else { self.law.loss_good }
    }

    fn sojourn(&mut self) -> f64 {
        match (self.bad, self.law.shape) {
            (false, _) => self.dice.exponential(self.law.good),
            (true, None) => self.dice.exponential(self.law.bad),
            (true, Some(shape)) => self.dice.pareto(self.law.bad * (shape - 1.0) / shape, shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Use;

    /// Share of loss, and that of those a step behind a loss; a step is 0.2 s.
    fn measured(law: BurstLaw) -> (f64, f64) {
        let mut bursts = Bursts::new(law, Dice::new(1, Use::Bursts, 0, 0));
        let mut chance = Dice::new(1, Use::Datagram, 0, 0);
        let (mut lost, mut both, mut before) = (0_u32, 0_u32, false);
        for step in 0..1_000_000 {
            let now = chance.share() < bursts.loss_at(f64::from(step) * 0.2);
            lost += u32::from(now);
            both += u32::from(now && before);
            before = now;
        }
        (f64::from(lost) / 1e6, f64::from(both) / f64::from(lost))
    }

    #[test]
    fn loses_and_remembers_as_the_formula_says() {
        let law =
            BurstLaw { good: 2.0, bad: 0.5, loss_good: 0.005, loss_bad: 0.8, shape: None, shared: true };
        let (lost, again) = measured(law);
        assert!((lost - 0.164).abs() < 0.004, "{lost}");
        assert!((again - 0.54).abs() < 0.01, "{again}");
        let heavy = measured(BurstLaw { shape: Some(3.0), ..law });
        assert!((heavy.0 - 0.164).abs() < 0.008, "{heavy:?} has the same mean");
    }

    #[test]
    fn ages_pass_in_no_time_and_leave_the_same_share() {
        let law =
            BurstLaw { good: 0.003, bad: 0.001, loss_good: 0.0, loss_bad: 1.0, shape: None, shared: true };
        let mut bursts = Bursts::new(law, Dice::new(1, Use::Bursts, 0, 0));
        let lost: f64 = (1..=10_000).map(|age| bursts.loss_at(f64::from(age) * 1e9)).sum();
        assert!((lost / 10_000.0 - 0.25).abs() < 0.02, "{lost}");
    }
}
