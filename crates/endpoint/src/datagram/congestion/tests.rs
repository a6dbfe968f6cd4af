use super::*;

const AUTO: Nstart = Nstart::Auto { max: 1024 };

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn loss(sent: u64) -> Loss {
    Loss { sent: at(sent), timeout: Duration::from_secs(2), is_first: false, exact_samples: 100 }
}

fn grown(to: u32) -> Window {
    let mut window = Window::new(AUTO);
    while window.size() < to {
        window.acknowledged(1, 100, true);
    }
    window
}

#[test]
fn starts_with_one_and_grows_only_while_requests_wait() {
    let mut window = Window::new(AUTO);
    assert_eq!(window.size(), 1);
    window.acknowledged(1, 1, false);
    assert_eq!(window.size(), 1);
    window.acknowledged(1, 2, true);
    assert_eq!(window.size(), 2);
    window.acknowledged(1, 8, false);
    assert_eq!(window.size(), 4);
    assert_eq!(grown(1024).size(), 1024);
}

#[test]
fn at_first_it_grows_with_requests_that_were_sent_again_up_to_the_floor() {
    let mut window = Window::new(AUTO);
    let sizes = [1, 2, 3, 4, 5].map(|_| {
        window.acknowledged(2, 0, true);
        window.size()
    });
    assert_eq!(sizes, [2, 3, 4, 4, 4]);
    let mut idle = Window::new(AUTO);
    idle.acknowledged(2, 0, false);
    assert_eq!(idle.size(), 1, "nothing waits");
    let mut cut = Window::new(AUTO);
    (cut.size, cut.was_cut) = (2.0, true);
    cut.acknowledged(2, 0, true);
    assert_eq!(cut.size(), 2);
    let mut known = Window::new(AUTO);
    known.acknowledged(2, 8, true);
    assert_eq!(known.size(), 4);
    known.acknowledged(2, 8, true);
    assert_eq!(known.size(), 4);
}

/// So many copies in a row were lost and nothing was heard meanwhile, the last at `second`.
fn silent(window: &mut Window, copies: u32, second: u64) {
    window.arrived(at(9));
    (0..copies).for_each(|_| window.timed_out(&loss(10), at(second)));
}

#[test]
fn three_copies_in_a_row_are_chance_and_four_are_silence() {
    for (copies, size) in [(3, 64), (4, 32), (40, 32)] {
        let mut window = grown(64);
        silent(&mut window, copies, 12);
        assert_eq!(window.size(), size, "{copies} copies");
    }
    let mut window = grown(64);
    silent(&mut window, 3, 12);
    silent(&mut window, 3, 14);
    assert_eq!(window.size(), 64, "something was heard in between");
}

#[test]
fn random_loss_does_not_close_it() {
    let mut window = grown(64);
    window.arrived(at(11));
    window.timed_out(&loss(10), at(12));
    assert_eq!(window.size(), 64);
}

#[test]
fn silence_halves_it_once_a_timeout_and_down_to_the_floor() {
    let mut window = grown(64);
    silent(&mut window, 4, 12);
    window.timed_out(&loss(10), at(13));
    assert_eq!(window.size(), 32);
    for second in 0..40 {
        window.timed_out(&loss(20 + second), at(20 + second));
    }
    assert_eq!(window.size(), 4);
    window.arrived(at(70));
    window.acknowledged(1, 200, true);
    assert!(window.size() < 6, "after a cut it grows by one a round trip");
}

#[test]
fn a_loss_while_a_queue_stands_halves_it() {
    let mut window = Window::new(AUTO);
    round_trips(&mut window, 0, 60, 100);
    (0..100).for_each(|_| window.saw(Duration::from_secs(2), at(100)));
    assert_eq!(window.size(), 48, "the queue itself cuts it once a round trip");
    window.arrived(at(111));
    window.timed_out(&loss(110), at(112));
    assert_eq!(window.size(), 24);
}

#[test]
fn round_trips_that_scatter_and_random_loss_leave_it_alone() {
    let mut window = grown(64);
    let mut random = fastrand::Rng::with_seed(1);
    for second in 0..5000 {
        // From a third of the usual to three times as long, and three in ten are lost.
        window.saw(Duration::from_millis(100).mul_f64(9_f64.powf(random.f64() - 0.5)), at(second));
        window.arrived(at(second));
        let is_lost = random.f64() < 0.3;
        if is_lost {
            window.timed_out(&loss(second), at(second + 1));
        }
        window.acknowledged(1 + u32::from(is_lost), 100, true);
    }
    assert_eq!(window.size(), 1024);
}

/// So many first copies of which `lost` of each eight are lost, while something is always heard; fewer, when the
/// window changes.
fn first_copies(window: &mut Window, most: u32, lost: u32) {
    let size = window.size();
    for copy in 0..most {
        window.arrived(at(11));
        if copy * 5 % 8 < lost {
            window.timed_out(&Loss { is_first: true, ..loss(10) }, at(12));
        } else {
            window.acknowledged(1, 100, false);
        }
        if window.size() != size {
            return;
        }
    }
}

/// The window after a small one was tried because five of eight first copies were lost, and then fewer.
fn tried(window: &mut Window, lost: u32) -> u32 {
    first_copies(window, 600, 5);
    assert_eq!(window.size(), 8, "a small one is tried");
    window.last_cut = None;
    first_copies(window, 32, lost);
    window.size()
}

#[test]
fn where_most_are_lost_a_small_window_is_tried_and_kept_no_longer_than_it_helps() {
    let mut window = grown(64);
    assert_eq!(tried(&mut window, 5), 64, "as many are lost: it was not to blame");
    first_copies(&mut window, 5000, 5);
    assert_eq!(window.size(), 64, "that is known now");
    first_copies(&mut window, 600, 8);
    assert_eq!(window.size(), 8, "that is more");
}

#[test]
fn a_small_window_that_helps_leaves_half_of_the_large_one() {
    let mut window = grown(64);
    assert_eq!(tried(&mut window, 1), 32);
    assert_eq!(tried(&mut window, 1), 16);
}

#[test]
fn a_small_window_is_judged_by_what_left_under_it() {
    let mut window = grown(64);
    (0..64).for_each(|_| window.start());
    first_copies(&mut window, 600, 5);
    assert_eq!(window.size(), 8);
    first_copies(&mut window, 100, 5);
    assert_eq!(window.size(), 8, "those were on their way");
    (0..60).for_each(|_| window.end());
    first_copies(&mut window, 32, 0);
    assert_eq!(window.size(), 32);
}

#[test]
fn half_is_not_most_and_what_is_lost_at_one_moment_is_gone() {
    let mut window = grown(64);
    first_copies(&mut window, 5000, 4);
    assert_eq!(window.size(), 64);
    for _ in 0..20 {
        first_copies(&mut window, 128, 8);
        first_copies(&mut window, 256, 1);
    }
    assert_eq!(window.size(), 64, "as where a translator forgets us");
}

#[test]
fn where_much_is_lost_silence_takes_longer() {
    let mut window = grown(64);
    first_copies(&mut window, 400, 4);
    for (copies, size) in [(9, 64), (10, 32)] {
        silent(&mut window, copies, 12);
        assert_eq!(window.size(), size, "of half of all copies {copies} in a row");
    }
}

#[test]
fn a_timeout_after_a_cut_it_may_be_cut_again() {
    let mut window = grown(64);
    silent(&mut window, 3, 11);
    for (second, size) in [(12, 32), (13, 32), (14, 16)] {
        window.timed_out(&loss(10), at(second));
        assert_eq!(window.size(), size, "at {second} s");
    }
}

/// So many round trips of `millis`, one a second, while requests wait; returns the smallest window.
fn round_trips(window: &mut Window, from: u64, count: u64, millis: u64) -> u32 {
    let sizes = (from..from + count).map(|second| {
        window.saw(Duration::from_millis(millis), at(second));
        window.acknowledged(1, 100, true);
        window.size()
    });
    sizes.min().unwrap_or(0)
}

#[test]
fn a_standing_queue_stops_its_growth_and_brings_it_down() {
    let mut window = Window::new(AUTO);
    round_trips(&mut window, 0, 60, 100);
    assert_eq!(window.size(), 64);
    assert_eq!(round_trips(&mut window, 100, 200, 2000), 4);
    round_trips(&mut window, 300, 200, 2000);
    assert!(window.size() > 10, "what lasts is the path, and no queue of ours");
}

#[test]
fn a_path_that_is_slow_by_itself_gets_its_window_back() {
    let mut window = Window::new(AUTO);
    round_trips(&mut window, 0, 60, 100);
    (0..60).for_each(|_| window.start());
    let wait = |window: &mut Window, from: u64, until: u32| {
        let mut seconds = from..from + 300;
        let mut sees = |second| {
            window.saw(Duration::from_millis(900), at(second));
            window.size() == until
        };
        seconds.position(&mut sees).expect("in time")
    };
    wait(&mut window, 100, 4);
    (0..60).for_each(|_| window.end());
    assert!(wait(&mut window, 400, 64) >= 15, "no smaller window makes it faster");
    round_trips(&mut window, 500, 500, 900);
    assert!(window.size() > 500, "and that is what it is from now on");
}

#[test]
fn a_queue_that_a_small_window_empties_was_its_own() {
    let mut window = Window::new(AUTO);
    let mut largest = 0;
    for second in 0..2000 {
        // An answer takes 25 ms.
        let millis = 100.max(25 * u64::from(window.size()));
        round_trips(&mut window, second, 1, millis);
        largest = largest.max(if second < 300 { 0 } else { window.size() });
    }
    assert!((8..20).contains(&largest), "{largest}");
}

#[test]
fn neither_single_slow_answers_nor_short_queues_count() {
    let mut window = grown(64);
    for exchange in 1..1000 {
        let millis = if exchange % 10 == 0 { 4000 } else { 20 };
        window.saw(Duration::from_millis(millis), at(exchange));
    }
    assert_eq!(window.size(), 64);
    for exchange in 0..1000 {
        window.saw(Duration::from_millis(200), at(exchange));
    }
    assert_eq!(window.size(), 64, "ten times as long, and 180 ms");
}

#[test]
fn a_loss_at_the_floor_does_not_slow_the_growth() {
    let mut window = Window::new(AUTO);
    (0..4).for_each(|_| window.timed_out(&Loss { exact_samples: 0, ..loss(0) }, at(2)));
    for exchange in 0..20 {
        window.acknowledged(1, exchange, true);
    }
    assert_eq!(window.size(), 21);
}

#[test]
fn a_copy_that_left_at_the_moment_of_the_last_arrival_was_not_heard_of() {
    let mut window = grown(64);
    window.arrived(at(10));
    (0..4).for_each(|_| window.timed_out(&loss(10), at(12)));
    assert_eq!(window.size(), 32);
}

#[test]
fn it_begins_anew_with_one_and_resumes_with_half() {
    let mut window = grown(64);
    window.restart();
    assert_eq!(window.size(), 1);
    window.resume(64);
    assert_eq!(window.size(), 32);
    window.resume(1);
    assert_eq!(window.size(), 1);
}

#[test]
fn a_changed_setting_holds_at_once() {
    let mut window = grown(64);
    for (nstart, size) in [(Nstart::Fixed(3), 3), (Nstart::Auto { max: 10 }, 10), (AUTO, 64)] {
        window.set_nstart(nstart);
        assert_eq!(window.size(), size);
    }
}

#[test]
fn a_number_fixes_it() {
    let mut window = Window::new(Nstart::Fixed(3));
    window.acknowledged(1, 100, true);
    window.timed_out(&loss(0), at(9));
    assert_eq!(window.size(), 3);
    for _ in 0..3 {
        assert!(window.is_open());
        window.start();
    }
    assert!(!window.is_open());
    window.end();
    assert!(window.is_open());
}
