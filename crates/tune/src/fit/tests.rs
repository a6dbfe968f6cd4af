use smallvec::SmallVec;

use super::*;
use crate::trial::Elapsed;

/// A standard normal draw (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// Exchanges whose copies leave after 1, 3 and 7 times `wait`: exact ones, and the others.
fn exchanges(loss: [f64; 2], wait: f64, counts_late: bool) -> (Histogram, Vec<Trial>) {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut exact, mut others) = (Histogram::default(), Vec::new());
    for _ in 0..20_000 {
        let wait = wait * (1.0 + 0.5 * random.f64());
        let sent: Vec<f64> = (0..5).map(|k| wait * f64::from((1 << k) - 1)).collect();
        let back: Vec<Option<f64>> = (0..5)
            .map(|k| {
                let time = 100.0 * (0.5 * normal(&mut random)).exp();
                (random.f64() >= loss[k.min(1)]).then_some(sent[k] + time)
            })
            .collect();
        let first = back.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let end = first.min(30_000.0);
        let left = sent.iter().filter(|&&sent| sent < end).count();
        let copies: SmallVec<_> = sent[..left]
            .iter()
            .map(|sent| Elapsed { millis: (end - sent) as f32, is_candidate: true })
            .collect();
        let arrivals = counts_late.then(|| back[..left].iter().flatten().count() as u64);
        let trial = Trial { copies, arrived: first <= end, arrivals };
        match trial.exact() {
            Some(time) => exact.add(time),
            None => others.push(trial),
        }
    }
    (exact, others)
}

fn fit(loss: [f64; 2], wait: f64, counts_late: bool) -> Fit {
    let (exact, others) = exchanges(loss, wait, counts_late);
    Fit::new(&[Seen { exact: &exact, others: &others, weight: 1.0 }]).unwrap()
}

/// The 95 % quantile of 100 ms · e^(N/2).
const P95: f64 = 227.6;

#[track_caller]
fn about(found: f64, wanted: f64, relative: f64) {
    assert!((found / wanted - 1.0).abs() < relative, "{found} instead of {wanted}");
}

#[test]
fn long_waits_leave_nothing_in_doubt() {
    let fit = fit([0.19, 0.19], 2000.0, false);
    about(fit.loss, 0.19, 0.03);
    about(fit.loss_again.unwrap(), 0.19, 0.05);
    about(fit.quantile(0.95), P95, 0.03);
    assert!(fit.spurious < 40.0, "{}", fit.spurious);
}

#[test]
fn what_is_late_is_not_taken_for_lost() {
    // Of those that come back 14 % take longer than 170 ms.
    for counts_late in [false, true] {
        let fit = fit([0.1, 0.1], 150.0, counts_late);
        about(fit.loss, 0.1, if counts_late { 0.06 } else { 0.2 });
        about(fit.quantile(0.5), 100.0, 0.03);
        about(fit.quantile(0.95), P95, 0.1);
        assert!((1000.0..3200.0).contains(&fit.spurious), "{}", fit.spurious);
    }
}

#[test]
fn further_copies_have_a_loss_of_their_own() {
    let fit = fit([0.1, 0.6], 400.0, false);
    about(fit.loss, 0.1, 0.06);
    about(fit.loss_again.unwrap(), 0.6, 0.06);
}

#[test]
fn of_silence_nothing_is_learned() {
    let copies = [Elapsed { millis: 30_000.0, is_candidate: true }].into_iter().collect();
    let silence = Trial { copies, arrived: false, arrivals: None };
    let nothing = Histogram::default();
    assert!(Fit::new(&[Seen { exact: &nothing, others: &[silence], weight: 1.0 }]).is_none());
    assert!(Fit::new(&[]).is_none());
}
