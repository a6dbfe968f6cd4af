use super::*;
use crate::figures::Fate;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn summary(demo: &Demo, policy: Policy) -> Summary {
    demo.summaries()[policy.index()].1
}

/// The first moment of what is told, by a part of it.
fn told(lines: &[(Instant, Line)], part: &str) -> Option<Instant> {
    let found = lines.iter().find(|(_, line)| line.what.contains(part) || line.why.contains(part));
    found.map(|&(at, _)| at)
}

#[test]
fn a_story_unfolds_within_twenty_seconds() {
    for seed in 0..12 {
        let mut demo = Demo::new(seed);
        demo.run_until(at(22));
        let lines = demo.take_lines();
        let parts = [
            "Timeout learned",
            "begins to lose",
            "so copy 2 left after",
            "Outage",
            "5.04",
            "back",
            "First answer",
        ];
        let times = parts.map(|part| told(&lines, part));
        assert!(times.iter().all(Option::is_some), "seed {seed}: {lines:#?}");
        assert!(times.is_sorted(), "seed {seed}: {times:?}");
    }
}

#[test]
fn how_often_it_is_looked_at_makes_no_difference() {
    let (mut smooth, mut jerky) = (Demo::new(3), Demo::new(3));
    for step in 1..=400 {
        smooth.run_until(Instant::from_micros(step * 75_000));
    }
    jerky.run_until(at(30));
    assert_eq!(smooth.summaries(), jerky.summaries());
    assert_eq!(smooth.take_lines(), jerky.take_lines());
    assert_eq!(smooth.place().history().timeouts(), jerky.place().history().timeouts());
}

#[test]
fn behind_the_proxy_nobody_is_left_in_silence() {
    let mut demo = Demo::new(5);
    demo.run_until(at(150));
    for (policy, summary) in demo.summaries() {
        assert_eq!(summary.ended, summary.answered + summary.told + summary.silent);
        assert!(summary.ended > 400, "{policy:?}: {summary:?}");
        assert_eq!(summary.silent > 0, policy == Policy::Bare, "{policy:?}: {summary:?}");
    }
}

#[test]
fn patience_pays_and_has_its_price() {
    let mut sum = [0.0; 5];
    let mut copies = [0.0; 5];
    for seed in 0..4 {
        let mut demo = Demo::new(seed);
        demo.perform(Command::MoreLoss);
        (0..2).for_each(|_| demo.perform(Command::MoreLoss));
        demo.run_until(at(50));
        for (policy, summary) in demo.summaries() {
            sum[policy.index()] += summary.share_answered().unwrap_or_default() / 4.0;
            copies[policy.index()] += summary.copies.unwrap_or_default() / 4.0;
        }
    }
    let [bare, fixed, learned, once, cured] = sum;
    assert!(bare + 0.1 < fixed && fixed < learned && once < learned && learned < cured, "{sum:?}");
    assert!(copies[0] == 1.0 && copies[1..].iter().all(|&copies| copies > 1.1), "{copies:?}");
}

#[test]
fn a_forgetful_origin_executes_what_is_repeated_and_one_copy_is_the_cure() {
    let mut demo = Demo::new(1);
    (0..5).for_each(|_| demo.perform(Command::MoreLoss));
    demo.run_until(at(60));
    let twice = |demo: &Demo| Policy::ALL.map(|policy| summary(demo, policy).posts_twice);
    assert_eq!(twice(&demo), [0; 5]);
    demo.perform(Command::ForgetfulOrigin);
    demo.run_until(at(120));
    let [bare, _, learned, once, cured] = twice(&demo);
    assert_eq!((bare, once), (0, 0));
    assert!(0 < learned && learned < cured, "{learned} {cured}");
}

#[test]
fn a_slow_origin_is_waited_for() {
    let mut demo = Demo::new(1);
    demo.perform(Command::LessLoss);
    demo.perform(Command::LessLoss);
    demo.perform(Command::LessLoss);
    demo.perform(Command::SlowOrigin);
    demo.run_until(at(5));
    let shown = summary(&demo, Policy::Learned);
    assert!(shown.answered > 0 && shown.mean > Some(Duration::from_secs(2)), "{shown:?}");
    assert!(demo.place().forwards().newest().any(|forward| forward.early_ack.is_some()));
}

#[test]
fn what_is_shown_is_that_of_its_world() {
    let mut demo = Demo::new(2);
    demo.run_until(at(4));
    let learned = demo.place().learned().expect("the origin is known");
    assert!(learned.timeout < Duration::from_millis(500), "{learned:?}");
    demo.perform(Command::Estimator);
    assert_eq!(demo.shown(), Policy::Fixed);
    let fixed = demo.place().learned().expect("the origin is known");
    assert_eq!(fixed.timeout, Duration::from_secs(2));
    demo.perform(Command::Deduplicates);
    assert_eq!(demo.shown(), Policy::Deduplicates);
    demo.perform(Command::Show(Policy::PostOnce));
    assert_eq!(demo.place().policy(), Policy::PostOnce);
}

#[test]
fn first_copies_meet_one_weather_in_all_worlds() {
    // Without a proxy and with a POST that leaves once, the same are answered.
    let sky = Sky { loss: 0.0, burst: false, outage: false };
    let mut requests = Requests::new(9);
    let mut places = [Policy::Bare, Policy::PostOnce].map(|policy| Place::new(policy, 9, &sky));
    let mut fates = [Vec::new(), Vec::new()];
    let lossy = Sky { loss: 0.2, ..sky };
    for second in 1..60 {
        for (device, request) in requests.before(at(second)) {
            places.iter_mut().filter(|_| device == 1).for_each(|place| place.ask(device, request.clone()));
        }
        for (place, fates) in places.iter_mut().zip(&mut fates) {
            // Until then the window has opened.
            place.set_sky(if second < 12 { &sky } else { &lossy });
            let told = place.run_until(at(second));
            fates.extend(told.into_iter().filter_map(|(_, told)| match told {
                Told::Settled(settled) => Some((settled.key, settled.fate == Fate::Answered)),
                Told::Event(_) => None,
            }));
        }
    }
    fates.iter_mut().for_each(|fates| fates.sort_unstable());
    let [bare, proxied] = fates;
    let proxied: std::collections::BTreeMap<_, _> = proxied.into_iter().collect();
    let same = bare.iter().filter(|(key, answered)| proxied.get(key) == Some(answered)).count();
    let answered = bare.iter().filter(|(_, answered)| *answered).count();
    assert!(same == bare.len() && (30..50).contains(&answered), "{same} of {}, {answered}", bare.len());
}

#[test]
fn hours_take_no_more_memory_than_minutes() {
    let mut demo = Demo::new(1);
    let mut most = 0;
    for minute in 1..=16 {
        demo.run_until(at(minute * 60));
        demo.take_lines();
        let place = demo.place();
        let held = place.forwards().newest().count()
            + place.history().round_trips().len()
            + place.history().timeouts().len()
            + place.held();
        if minute <= 6 {
            most = most.max(held);
        }
        assert!(held <= most * 3 / 2, "minute {minute}: {held} after {most}");
    }
}
