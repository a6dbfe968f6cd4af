use super::*;
use crate::scenario::BurstLaw;

fn label(errand: u64, copy: u32) -> Label {
    Label { errand, copy, level: 0.0 }
}

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1000)
}

fn bad() -> PathLaw {
    let way = WayLaw { loss: 0.1, duplication: 0.1, reordering: 0.1, lag: 2.0, ..WayLaw::default() };
    let rtt = Law::Uniform { least: 0.05, most: 0.15 };
    PathLaw { rtt, up: way.clone(), down: way, ..PathLaw::default() }
}

#[test]
fn what_becomes_of_a_datagram_does_not_hang_on_the_others() {
    let law = bad();
    let (mut all, mut few) = (Path::new(&law, 1), Path::new(&law, 1));
    let fates: Vec<_> = (0..1000).map(|n| all.send(Direction::Up, label(n, 0), 50, at(n))).collect();
    for n in (0..1000).rev().step_by(7) {
        assert_eq!(few.send(Direction::Up, label(n, 0), 50, at(n)), fates[n as usize]);
    }
}

#[test]
fn a_copy_and_its_answer_share_one_round_trip() {
    let law = PathLaw { rtt: Law::Uniform { least: 0.1, most: 0.3 }, ..PathLaw::default() };
    let mut path = Path::new(&law, 1);
    let mut times = Vec::new();
    for n in 0..1000 {
        let there = path.send(Direction::Up, label(n, 0), 50, at(0)).first.expect("no loss");
        let back = path.send(Direction::Down, label(n, 0), 50, there).first.expect("no loss");
        assert_eq!(back.since(at(0)), 2 * there.since(at(0)));
        times.push(back.since(at(0)).as_secs_f64());
    }
    let mean = times.iter().sum::<f64>() / 1000.0;
    assert!((mean - 0.2).abs() < 0.01 && times.iter().all(|time| (0.0999..0.3).contains(time)), "{mean}");
}

#[test]
fn shares_are_as_they_were_asked_for() {
    let law = bad();
    let mut path = Path::new(&law, 2);
    let mut held_up = 0;
    for n in 0..10_000 {
        let arrivals = path.send(Direction::Down, label(n, 1), 50, at(n));
        held_up += u32::from(arrivals.first.is_some_and(|first| first.since(at(n)).as_secs_f64() > 0.0755));
    }
    let Conservation { lost, duplicated, .. } = *path.counted()[1];
    assert!((900..1100).contains(&lost) && (800..1000).contains(&duplicated), "{lost} {duplicated}");
    assert!((600..900).contains(&held_up), "{held_up}: of nine tenths one tenth, most of it late enough");
}

#[test]
fn directions_lose_each_for_itself_or_together() {
    let burst = BurstLaw { good: 1.0, bad: 1.0, loss_good: 0.0, loss_bad: 1.0, shape: None, shared: true };
    let both = |shared| {
        let way = WayLaw { burst: Some(BurstLaw { shared, ..burst }), ..WayLaw::default() };
        let law = PathLaw { up: way.clone(), down: way, ..PathLaw::default() };
        let mut path = Path::new(&law, 3);
        (0..1000)
            .filter(|&n| {
                let [up, down] = [Direction::Up, Direction::Down]
                    .map(|to| path.send(to, label(n, 0), 50, at(n * 100)).first.is_some());
                up == down
            })
            .count()
    };
    assert_eq!(both(true), 1000);
    assert!((300..700).contains(&both(false)), "{}", both(false));
}

#[test]
fn phases_come_and_come_again() {
    let phase = |seconds, rtt: Option<f64>, add| crate::scenario::Phase {
        at: Duration::from_secs(seconds),
        rtt: rtt.map(Law::Constant),
        add,
    };
    let law = PathLaw {
        rtt: Law::Constant(0.1),
        phases: vec![phase(10, Some(3.0), 0.0), phase(20, None, 0.5)],
        cycle: Some(Duration::from_secs(30)),
        ..PathLaw::default()
    };
    let rtt = |at| round_trip(&law, &mut Dice::new(1, Use::Datagram, 1, 1), 0.0, at);
    assert_eq!([0.0, 10.0, 25.0, 31.0, 45.0].map(rtt), [0.1, 3.0, 0.6, 0.1, 3.0]);
}

#[test]
fn outages_come_when_they_are_due() {
    let secs = Duration::from_secs;
    let flaps = Outage { at: secs(10), lasts: secs(5), every: secs(10), times: 2 };
    let out = [9.0, 10.0, 14.9, 15.0, 22.0, 31.0].map(|at| is_out(&[flaps], at));
    assert_eq!(out, [false, true, true, false, true, false]);
}
