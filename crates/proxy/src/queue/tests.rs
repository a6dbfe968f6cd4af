use super::*;

impl Waiting for u64 {
    fn is_patient(&self) -> bool {
        *self >= 1000
    }
}

fn queue() -> FairQueue<u64> {
    FairQueue::new(RandomState::with_seeds(1, 2, 3, 4))
}

/// A client of a site.
fn client(endpoint: u64, site: u64) -> u64 {
    endpoint << 32 | site
}

fn all(queue: &mut FairQueue<u64>) -> Vec<u64> {
    std::iter::from_fn(|| queue.pop(|_| true)).map(|(_, item)| item).collect()
}

fn is_clean(queue: &FairQueue<u64>) -> bool {
    queue.is_empty()
        && queue.patient == 0
        && queue.sites.is_empty()
        && queue.turns.is_empty()
        && queue.clients.is_empty()
}

#[test]
fn clients_take_turns() {
    let mut queue = queue();
    for (client, item) in [(1, 0), (1, 1), (1, 2), (2, 10), (3, 20)] {
        queue.push(client, item);
    }
    assert_eq!(queue.len(), 5);
    assert_eq!(all(&mut queue), [0, 10, 20, 1, 2]);
    assert!(is_clean(&queue));
}

#[test]
fn sites_take_turns_and_within_them_their_clients() {
    let mut queue = queue();
    for (endpoint, site, item) in [(1, 1, 0), (2, 1, 10), (3, 1, 20), (1, 1, 1), (9, 2, 90), (9, 2, 91)] {
        queue.push(client(endpoint, site), item);
    }
    assert_eq!(
        [queue.before(client(1, 1)), queue.before(client(4, 1)), queue.before(client(9, 2))],
        [6, 6, 6]
    );
    assert_eq!(queue.before(client(1, 3)), 2);
    assert_eq!(all(&mut queue), [0, 90, 10, 91, 20, 1]);
    assert!(is_clean(&queue));
}

#[test]
fn what_is_taken_out_leaves_no_lane_behind() {
    let mut queue = queue();
    queue.push(1, 1);
    queue.push(2, 2);
    assert!(queue.has_others_than(Site::of(1)) && queue.has_others_than(Site::of(3)));
    assert_eq!(queue.remove(1, |item| *item == 1), Some(1));
    assert_eq!(queue.remove(1, |item| *item == 1), None);
    assert!(!queue.has_others_than(Site::of(2)));
    assert_eq!(queue.pop(|_| true), Some((2, 2)));
    assert_eq!(queue.pop(|_| true), None);
    assert!(is_clean(&queue));
}

#[test]
fn what_may_not_leave_is_passed_by_and_keeps_its_turn() {
    let mut queue = queue();
    for (client, item) in [(1, 1), (1, 2), (2, 10), (3, 20)] {
        queue.push(client, item);
    }
    assert_eq!(queue.pop(|item| *item >= 10), Some((2, 10)));
    assert_eq!(queue.pop(|item| *item == 2), None, "it is behind another of its client");
    assert_eq!(queue.pop(|_| true), Some((1, 1)));
    queue.put_back(1, 1);
    assert_eq!(all(&mut queue), [1, 20, 2]);
    assert!(is_clean(&queue));
}

#[test]
fn what_is_put_back_has_the_turn_that_it_had_among_its_neighbours() {
    let mut queue = queue();
    for (endpoint, item) in [(1, 1), (2, 2), (1, 3)] {
        queue.push(client(endpoint, 7), item);
    }
    for _ in 0..3 {
        let (client, item) = queue.pop(|_| true).expect("one");
        assert_eq!(item, 1);
        queue.put_back(client, item);
    }
    assert_eq!(all(&mut queue), [1, 2, 3]);
    assert!(is_clean(&queue));
}

#[test]
fn a_site_that_may_not_leave_is_passed_by_as_a_whole() {
    let mut queue = queue();
    (0..100).for_each(|endpoint| queue.push(client(endpoint, 1), endpoint));
    queue.push(client(1, 2), 500);
    let mut looked = 0;
    let found = queue.pop_among(64, |item| {
        looked += 1;
        if *item == 500 { Look::Leaves } else { Look::SiteStays }
    });
    assert_eq!((found, looked), (Found::One(client(1, 2), 500), 2));
    assert_eq!(queue.pop_among(64, |_| Look::SiteStays), Found::None);
}

#[test]
fn one_site_does_not_hide_another() {
    let mut queue = queue();
    (0..100).for_each(|endpoint| queue.push(client(endpoint, 1), endpoint));
    (100..110).for_each(|site| queue.push(client(1, site), site));
    let mut looked = Vec::new();
    let found = queue.pop_among(64, |item| {
        looked.push(*item);
        if *item == 107 { Look::Leaves } else { Look::Stays }
    });
    assert_eq!(found, Found::One(client(1, 107), 107));
    assert_eq!(looked, (0..8).chain(100..108).collect::<Vec<_>>());
    looked.clear();
    assert_eq!(
        queue.pop_among(64, |item| {
            looked.push(*item);
            Look::Stays
        }),
        Found::NotYet
    );
    assert_eq!(looked[..8], [8, 9, 10, 11, 12, 13, 14, 15], "the next ones of the site that was cut short");
}

#[test]
fn the_last_eighth_is_for_sites_that_have_little() {
    let mut queue = queue();
    for endpoint in 0..56 {
        assert!(!queue.is_used_up(client(endpoint, 1), 64), "{endpoint}");
        queue.push(client(endpoint, 1), endpoint);
    }
    assert!(queue.is_used_up(client(99, 1), 64) && !queue.is_used_up(client(99, 2), 64));
    queue.push(client(99, 2), 99);
    queue.remove(client(0, 1), |_| true);
    queue.pop(|_| true);
    assert!(!queue.is_used_up(client(99, 1), 64), "there is room again");
    all(&mut queue);
    assert!(is_clean(&queue));
    // In a small one nothing is kept free.
    queue.push(client(1, 1), 1);
    assert!(!queue.is_used_up(client(2, 1), 2));
    queue.push(client(2, 1), 2);
    assert!(queue.is_used_up(client(3, 1), 2) && !queue.is_used_up(client(3, 2), 2));
}

#[test]
fn the_patient_have_a_part_of_it_and_share_that() {
    let mut queue = queue();
    (0..28).for_each(|endpoint| queue.push(client(endpoint, 1), 1000 + endpoint));
    (0..20).for_each(|endpoint| queue.push(client(endpoint, 1), endpoint));
    let are_used_up =
        |queue: &FairQueue<u64>| [1, 2].map(|site| queue.patience_is_used_up(client(99, site), 32));
    assert_eq!(are_used_up(&queue), [true, false]);
    assert!(!queue.is_used_up(client(99, 1), 64));
    (0..4).for_each(|endpoint| queue.push(client(endpoint, 2), 1000));
    assert_eq!(are_used_up(&queue), [true, true]);
    (0..5).for_each(|_| assert!(queue.pop(|item| item.is_patient()).is_some()));
    assert_eq!(are_used_up(&queue), [false, false]);
}

#[test]
fn many_that_may_not_leave_do_not_hide_one_that_may() {
    let mut queue = queue();
    (0..10).for_each(|item| queue.push(10 + item, item));
    let mut looked = 0;
    let mut pop = |queue: &mut FairQueue<u64>| {
        queue.pop_among(4, |item| {
            looked += 1;
            if *item == 9 { Look::Leaves } else { Look::Stays }
        })
    };
    assert_eq!(
        [pop(&mut queue), pop(&mut queue), pop(&mut queue)],
        [Found::NotYet, Found::NotYet, Found::One(19, 9)]
    );
    assert_eq!(looked, 10);
    assert_eq!(all(&mut queue), [8, 0, 1, 2, 3, 4, 5, 6, 7], "in turn");
}

#[test]
fn who_uses_most_of_a_full_queue_gives_way() {
    let mut queue = queue();
    for (client, item) in [(1, 1), (1, 2), (1, 3), (2, 10)] {
        queue.push(client, item);
    }
    assert_eq!(queue.shed_for(3), Some(3), "the newest of the busiest");
    assert_eq!(queue.shed_for(2), None, "one more is no reason");
    assert_eq!((queue.len(), queue.shed_for(1)), (3, None));
}

#[test]
fn a_site_of_many_gives_way_and_among_neighbours_the_one_that_has_most() {
    let mut queue = queue();
    for (endpoint, item) in [(1, 1), (2, 2), (2, 3), (2, 4), (3, 5)] {
        queue.push(client(endpoint, 1), item);
    }
    assert_eq!(queue.shed_for(client(1, 1)), Some(4));
    assert_eq!(queue.shed_for(client(1, 1)), None);
    assert_eq!(queue.shed_for(client(9, 9)), Some(3), "each has one");
    assert_eq!(queue.len(), 3);
}

#[test]
fn whatever_is_done_is_counted() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut queue, mut known) = (queue(), Vec::new());
    for step in 0..50_000 {
        let who = client(random.u64(..6), random.u64(1..4));
        match random.u8(..10) {
            0..4 if known.len() < 40 => {
                let item = step + 2000 * random.u64(..2);
                queue.push(who, item);
                known.push((who, item));
            }
            4..6 => {
                let own = known.iter().position(|(other, _)| *other == who);
                let removed = queue.remove(who, |_| true);
                assert_eq!(removed, own.map(|place| known.remove(place).1));
            }
            6 => {
                if let Some(item) = queue.shed_for(who) {
                    known.retain(|(_, other)| *other != item);
                }
            }
            7 => {
                if let Some((client, item)) = queue.pop(|_| true) {
                    queue.put_back(client, item);
                    let first = known.iter().find(|(other, _)| *other == client);
                    assert_eq!(first, Some(&(client, item)));
                }
            }
            8 => {
                queue.pop_among(3, |_| if random.bool() { Look::Stays } else { Look::SiteStays });
            }
            _ => {
                let popped = queue.pop_among(3, |_| if random.bool() { Look::Stays } else { Look::Leaves });
                if let Found::One(client, item) = popped {
                    let place = known.iter().position(|(other, _)| *other == client);
                    assert_eq!(place.map(|place| known.remove(place)), Some((client, item)));
                }
            }
        }
        assert_eq!(
            (queue.len(), queue.patient),
            (known.len(), known.iter().filter(|one| one.1.is_patient()).count())
        );
        let mut clients: Vec<u64> = known.iter().map(|(client, _)| *client).collect();
        clients.sort_unstable();
        clients.dedup();
        assert_eq!((queue.clients.len(), queue.first_of_each().count()), (clients.len(), clients.len()));
    }
    all(&mut queue);
    assert!(is_clean(&queue));
}
