//! A forward allocates nothing once the tables are as large as they get.

mod forwards;

use std::time::Duration;

use forwards::Forwards;

#[test]
fn a_forward_allocates_nothing_once_the_tables_are_large_enough() {
    let mut forwards = Forwards::new(64, Duration::from_secs(1), false);
    (0..1000).for_each(|_| forwards.round());
    let counted = allocation_counter::measure(|| (0..1000).for_each(|_| forwards.round()));
    assert_eq!(forwards.answered, 2000 * 64);
    assert_eq!(counted.count_total, 0, "in 64 000 forwards");
}

#[test]
fn nor_does_one_through_a_route_to_a_named_origin() {
    let mut forwards = Forwards::reverse(64, Duration::from_secs(1));
    (0..1000).for_each(|_| forwards.round());
    let counted = allocation_counter::measure(|| (0..1000).for_each(|_| forwards.round()));
    assert_eq!(forwards.answered, 2000 * 64);
    // The name is looked up again every 30 s, and those who ask meanwhile wait.
    assert!(counted.count_total < 34 * 80, "{} in 64 000 forwards", counted.count_total);
}
