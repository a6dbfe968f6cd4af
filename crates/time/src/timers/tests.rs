use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

#[test]
fn fires_in_order_and_never_early() {
    let mut timers = Timers::new();
    for micros in [5_000_000, 1_000, 247_000_000, 2_000_000, 2_000] {
        timers.insert(at(micros), micros);
    }
    let mut fired = Vec::new();
    while let Some(wake) = timers.next_deadline() {
        while let Some(micros) = timers.expire(wake) {
            assert!(wake >= at(micros) && wake.since(at(micros)) < Duration::from_micros(1_100));
            fired.push(micros);
        }
    }
    assert_eq!(fired, [1_000, 2_000, 2_000_000, 5_000_000, 247_000_000]);
    assert!(timers.is_empty());
}

#[test]
fn a_past_deadline_is_due_at_once() {
    let mut timers = Timers::new();
    assert_eq!(timers.expire(at(10_000_000)), None);
    timers.insert(at(5), "late");
    assert!(timers.next_deadline().is_some_and(|wake| wake <= at(10_000_000)));
    assert_eq!(timers.expire(at(10_000_000)), Some("late"));
}

#[test]
fn a_cancelled_timer_stays_silent_and_its_name_is_not_reused() {
    let mut timers = Timers::new();
    let first = timers.insert(at(1_000), 1);
    assert_eq!(timers.cancel(first), Some(1));
    let second = timers.insert(at(1_000), 2);
    assert_eq!(timers.cancel(first), None);
    assert_eq!(timers.expire(at(9_999)), Some(2));
    assert_eq!(timers.cancel(second), None);
    assert_eq!(timers.expire(at(9_999)), None);
}

#[test]
fn reaches_as_far_as_instants_do() {
    let mut timers = Timers::new();
    timers.insert(Instant::FAR_FUTURE, ());
    let mut turns = 0;
    while timers.expire(timers.next_deadline().expect("one runs")).is_none() {
        turns += 1;
        assert!(turns < 20);
    }
}

#[test]
fn a_timer_takes_as_few_bytes_as_it_can() {
    assert_eq!(size_of::<Node<u32>>(), 24);
    assert_eq!(size_of::<Option<TimerId>>(), 8);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Cancel(usize),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..400_000_000).prop_map(Step::Insert),
        (0u64..20_000).prop_map(Step::Insert),
        any::<usize>().prop_map(Step::Cancel),
        (0u64..90_000_000).prop_map(Step::Advance),
        (0u64..5_000).prop_map(Step::Advance),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_map(steps in proptest::collection::vec(step(), 1..200)) {
        let mut timers = Timers::new();
        let mut model = BTreeMap::new();
        let mut ids = Vec::new();
        let mut now = 0;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(after) => {
                    ids.push((timers.insert(at(now + after), number), number));
                    model.insert(number, now + after);
                }
                Step::Cancel(which) => {
                    if !ids.is_empty() {
                        let (id, number) = ids[which % ids.len()];
                        prop_assert_eq!(timers.cancel(id), model.remove(&number).map(|_| number));
                    }
                }
                Step::Advance(by) => {
                    now += by;
                    let mut last = 0;
                    while let Some(number) = timers.expire(at(now)) {
                        let deadline = model.remove(&number).expect("fires once");
                        prop_assert!(deadline <= now);
                        let tick = deadline.div_ceil(1 << TICK_SHIFT);
                        prop_assert!(tick >= last);
                        last = tick;
                    }
                    prop_assert!(model.values().all(|&deadline| deadline + (1 << TICK_SHIFT) > now));
                }
            }
            prop_assert_eq!(timers.len(), model.len());
            if let Some(&earliest) = model.values().min() {
                let wake = timers.next_deadline().expect("one runs");
                prop_assert!(wake <= at(earliest + (1 << TICK_SHIFT)));
            }
        }
    }
}
