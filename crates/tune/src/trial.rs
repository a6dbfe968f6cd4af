//! What one exchange tells about the path: copies that left, and what came back.

use coapway_records::{Answer, Cause, Forward};
use smallvec::SmallVec;

/// Copies beyond these say nothing new.
pub(crate) const MOST: usize = 12;

/// One Confirmable exchange as it is seen from our end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) copies: SmallVec<[Elapsed; 3]>,
    /// Whether an Acknowledgement came; else nothing came while it was waited for.
    pub(crate) arrived: bool,
    /// How many Acknowledgements came in all, where the record can tell.
    pub(crate) arrivals: Option<u64>,
}

/// A copy, and how long after it the first Acknowledgement came or waiting ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Elapsed {
    /// In milliseconds.
    pub(crate) millis: f32,
    /// Whether it may be this copy that was acknowledged.
    pub(crate) is_candidate: bool,
}

impl Trial {
    /// What a forward tells; `None` when it says nothing about loss and delay: nothing left, it was
    /// Non-confirmable, or something else than silence ended it.
    pub(crate) fn of(forward: &Forward<'_>) -> Option<Self> {
        let tells = matches!(forward.cause, Cause::Origin | Cause::TimedOut | Cause::Other)
            && forward.answer != Some(Answer::NonConfirmable);
        if !tells || !forward.confirmable || forward.copies.is_empty() {
            return None;
        }
        let end = forward.first_ack.unwrap_or(forward.total);
        let left = forward.copies.iter().filter(|copy| copy.at <= end);
        // An Acknowledgement is of a copy under its Message ID. Where the record does not name that, a
        // piggybacked response came in the last exchange that it names.
        let last = forward.copies.last()?.message_id;
        let in_last = (forward.answer == Some(Answer::Piggybacked)).then_some(last);
        let acknowledged = forward.first_ack_id.or(in_last);
        let is_of = |id: u16| acknowledged.is_none_or(|acknowledged| id == acknowledged);
        let copies: SmallVec<[Elapsed; 3]> = left
            .take(MOST)
            .map(|copy| Elapsed { millis: (end - copy.at) as f32, is_candidate: is_of(copy.message_id) })
            .collect();
        let arrived = forward.first_ack.is_some() && copies.iter().any(|copy| copy.is_candidate);
        let arrivals = forward.late.map(|late| (forward.acks + late).max(u64::from(arrived)));
        (!copies.is_empty()).then_some(Self { copies, arrived, arrivals })
    }

    /// The round-trip time, when it is beyond doubt: one copy left and was acknowledged (RFC 6298 §3).
    pub(crate) fn exact(&self) -> Option<f64> {
        match &self.copies[..] {
            [only] if self.arrived => Some(only.millis.into()),
            _ => None,
        }
    }
}

/// So many things at the most, each of all that there ever were with the same chance.
#[derive(Clone, Debug)]
pub(crate) struct Reservoir<T> {
    kept: Vec<T>,
    seen: u64,
    most: usize,
    random: fastrand::Rng,
}

impl<T> Reservoir<T> {
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self { kept: Vec::new(), seen: 0, most, random: fastrand::Rng::with_seed(seed) }
    }

    pub(crate) fn add(&mut self, thing: T) {
        self.seen += 1;
        if self.kept.len() < self.most {
            self.kept.push(thing);
        } else if let Some(place) = self.kept.get_mut(self.random.u64(..self.seen) as usize) {
            *place = thing;
        }
    }

    pub(crate) fn kept(&self) -> &[T] {
        &self.kept
    }

    /// For how many each one stands.
    pub(crate) fn weight(&self) -> f64 {
        self.seen as f64 / self.kept.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use coapway_records::{Line, Records};

    use super::*;

    fn trial(line: &str) -> Option<Trial> {
        match Records::new(line.as_bytes()).next_line() {
            Ok(Some(Ok(Line::Forward(forward)))) => Trial::of(&forward),
            other => panic!("{other:?}"),
        }
    }

    const USUAL: &str = include_str!("../../proxy/src/record/tests/plain.jsonl");
    const FAILED: &str = include_str!("../../proxy/src/record/tests/failed.jsonl");

    #[test]
    fn one_copy_and_its_acknowledgement_are_exact() {
        let usual = trial(USUAL).unwrap();
        assert!((usual.exact().unwrap() - 2272.69).abs() < 0.001);
    }

    #[test]
    fn of_several_copies_any_may_be_acknowledged() {
        let silent_of_it = FAILED.replace("\"first_ack_mid\":17,", "");
        let failed = trial(&silent_of_it).unwrap();
        assert!(failed.arrived && failed.exact().is_none());
        assert_eq!(candidates(&silent_of_it), [true, true, true]);
        // The response came in an Acknowledgement: to the second exchange, with its one copy.
        let resolved = silent_of_it.replace("\"answer_kind\":null", "\"answer_kind\":\"piggybacked\"");
        assert_eq!(candidates(&resolved), [false, false, true]);
    }

    fn candidates(line: &str) -> Vec<bool> {
        trial(line).unwrap().copies.iter().map(|copy| copy.is_candidate).collect()
    }

    #[test]
    fn the_message_id_of_the_acknowledgement_says_of_which_copies_it_may_be() {
        assert_eq!(candidates(FAILED), [true, true, false], "of the first exchange");
        let fresh = FAILED.replace("\"mid\":17,\"kind\":\"retr", "\"mid\":20,\"kind\":\"retr");
        assert_eq!(candidates(&fresh), [true, false, false], "of the first copy");
        let second = fresh.replace("\"first_ack_mid\":17", "\"first_ack_mid\":20");
        assert_eq!(candidates(&second), [false, true, false]);
    }

    #[test]
    fn silence_is_a_trial_and_a_reset_is_none() {
        let acknowledged = "\"first_ack_ms\":2272.690,\"first_ack_mid\":17,\"acks\":1";
        let silent = FAILED.replace(acknowledged, "\"first_ack_ms\":null,\"first_ack_mid\":null,\"acks\":0");
        assert!(!trial(&silent).unwrap().arrived);
        assert_eq!(trial(&silent.replace("timeout", "reset")), None);
        assert_eq!(trial(&USUAL.replace("\"con\"", "\"non\"")), None);
        assert_eq!(
            trial(
                include_str!("../../proxy/src/record/tests/nothing.jsonl").replace("a\\\"b", "ab").as_str()
            ),
            None
        );
    }

    #[test]
    fn a_reservoir_keeps_all_with_the_same_chance() {
        let mut reservoir = Reservoir::new(100, 1);
        (0..10_000).for_each(|number| reservoir.add(number));
        let early = reservoir.kept().iter().filter(|&&number| number < 5000).count();
        assert_eq!(reservoir.kept().len(), 100);
        assert!((30..70).contains(&early), "{early}");
        assert!((reservoir.weight() - 100.0).abs() < 1e-9);
    }
}
