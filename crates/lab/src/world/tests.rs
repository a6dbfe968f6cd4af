use std::path::Path;

use super::*;
use crate::exchange::{Kind, Outcome};
use crate::figures::Numbers;
use crate::policy::DEFAULT;
use crate::scenario::{Scenario, find, named};

fn policy(name: &str) -> Policy {
    Policy::parse(name, &[]).unwrap_or_else(|problem| panic!("{problem}"))
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(Path::new("test.toml"), text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(scenario: &Scenario, name: &str, seed: u64) -> Numbers {
    let policy = policy(name);
    let mut world = World::new(scenario, &policy, seed, false);
    world.run();
    world.figures().numbers
}

/// Not longer than a test may take.
fn short(mut scenario: Scenario) -> Scenario {
    scenario.requests = Some(scenario.requests.unwrap_or(u32::MAX).min(400));
    scenario.duration = scenario.duration.min(Duration::from_secs(24 * 3600));
    scenario.warmup = Duration::ZERO;
    scenario
}

#[test]
fn a_local_network_answers_everybody_at_once() {
    let numbers = run(&short(find("lan").remove(0)), DEFAULT, 1);
    assert_eq!((numbers.requests, numbers.answered, numbers.transmissions), (400.0, 1.0, 1.0));
    assert!((0.002..0.006).contains(&numbers.mean), "{}", numbers.mean);
    assert!((numbers.fairness - 1.0).abs() < 1e-9 && numbers.unknown_posts.is_nan());
}

#[test]
fn each_named_scenario_runs_and_stays_within_what_is_possible() {
    for scenario in named().map(short) {
        for name in [DEFAULT, "rfc7252"] {
            let numbers = run(&scenario, name, 1);
            let place = format!("{} under {name}: {numbers:?}", scenario.name);
            assert!(numbers.requests >= 100.0, "{place}");
            for share in [numbers.answered, numbers.silent, numbers.fairness] {
                assert!(share.is_nan() || (0.0..=1.0 + 1e-9).contains(&share), "{place}");
            }
            assert!(numbers.spurious <= numbers.transmissions, "{place}");
            assert!(numbers.p50.is_nan() || numbers.mean > 0.0 && numbers.p50 <= numbers.p95, "{place}");
            assert!(numbers.silent == 0.0, "nobody is left without an answer on a perfect access: {place}");
        }
    }
}

#[test]
fn no_datagram_is_forgotten_at_any_time() {
    for name in
        ["dup-reorder", "wifi-burst-long", "nb-iot-b", "lora-sf7", "nat-rebind-midway", "outage-flaps"]
    {
        let (scenario, policy) = (short(find(name).remove(0)), policy(DEFAULT));
        let mut world = World::new(&scenario, &policy, 3, false);
        let mut steps = 0;
        while world.step(Instant::FAR_FUTURE) && steps < 20_000 {
            steps += 1;
            if steps % 50 != 0 {
                continue;
            }
            let now = world.now;
            let queued = world.post.path.queued(now);
            let (mut up, mut down) = (0, 0);
            for event in world.post.queue.iter() {
                up += u64::from(matches!(event, Event::ToOrigin(_)));
                down += u64::from(matches!(event, Event::FromOrigin(_)));
            }
            let [counted_up, counted_down] = world.counted();
            assert_eq!((counted_up.under_way(), counted_down.under_way()), (up, down), "{name} at {now}");
            assert!(queued[0] <= up && queued[1] <= down, "{name}: what is queued is under way");
        }
        assert!(steps > 1000, "{name}: {steps}");
    }
}

#[test]
fn each_request_ends_once_and_what_is_executed_was_accepted() {
    let scenario = Scenario { requests: Some(2000), ..find("dup-reorder").remove(0) };
    let policy = policy("default,deduplicates=true");
    let mut world = World::new(&scenario, &policy, 5, false);
    world.run();
    let ended = |outcome| world.exchanges.iter().filter(|exchange| exchange.outcome == outcome).count();
    let outcomes = [Outcome::Answered, Outcome::Refused, Outcome::Unknown, Outcome::Silence].map(ended);
    assert_eq!((outcomes.iter().sum::<usize>(), ended(Outcome::Open), world.clients.open), (2000, 0, 0));
    assert!(outcomes[0] > 1900, "{outcomes:?}");
    let executions: u64 = world.exchanges.iter().map(|exchange| u64::from(exchange.executions)).sum();
    assert_eq!(executions, world.origin.accepted);
    let posts = world.exchanges.iter().filter(|exchange| exchange.kind == Kind::Post);
    let (posts, twice) =
        posts.fold((0, 0), |(posts, twice), post| (posts + 1, twice + u32::from(post.executions > 1)));
    assert!((500..700).contains(&posts) && twice == 0, "{posts} POSTs, {twice} more than once");
}

#[test]
fn an_origin_without_memory_executes_each_copy() {
    let text = "clients = { count = 4, rate = 10, post = 1.0 }\nrequests = 500\n\
                path = { rtt = \"100ms\", loss = 0.2 }\norigin = { deduplicates = false }\n";
    let (mut scenario, policy) = (scenario(text), policy("default,deduplicates=true"));
    let mut twice = |memory| {
        scenario.origin.deduplicates = memory;
        let mut world = World::new(&scenario, &policy, 1, false);
        world.run();
        world.figures().numbers.executed_twice
    };
    assert_eq!(twice(true), 0.0);
    assert!(twice(false) > 30.0, "copies of one in five POSTs whose answer was lost");
}

#[test]
fn clients_repeat_on_an_access_that_loses() {
    let text = "clients = { count = 4, rate = 10 }\nrequests = 1000\npath = { rtt = \"50ms\" }\n\
                access = { rtt = \"20ms\", loss = 0.2 }\n";
    let numbers = run(&scenario(text), DEFAULT, 1);
    assert!(numbers.answered > 0.98 && numbers.mean > 0.5, "{numbers:?}");
    assert!(numbers.transmissions <= 1.0, "nothing of it is seen on the path: {numbers:?}");
}

#[test]
fn copies_meet_the_loss_that_the_formula_says() {
    let text = "clients = { count = 4, rate = 20 }\nrequests = 20000\nduration = \"1h\"\n\
                path = { rtt = \"100ms\", loss = 0.15 }\n";
    let numbers = run(&scenario(text), "rfc7252,nstart=64,max_wait=93s", 1);
    let q: f64 = 1.0 - 0.85 * 0.85;
    let copies = (1.0 - q.powi(5)) / (1.0 - q);
    // Variance of the number of copies is below 0.6; four standard errors of 20 000.
    assert!(
        (numbers.transmissions - copies).abs() < 4.0 * (0.6_f64 / 20_000.0).sqrt(),
        "{}, {copies}",
        numbers.transmissions
    );
    assert_eq!(numbers.spurious, 0.0, "no answer takes longer than the first timeout");
}

#[test]
fn time_goes_on_where_nothing_takes_any() {
    let text = "clients = { count = 2, think = \"0s\" }\nduration = \"1s\"\n";
    let numbers = run(&scenario(text), DEFAULT, 1);
    assert!((15_000.0..=20_000.0).contains(&numbers.requests), "{numbers:?}");
}

#[test]
fn no_run_has_requests_without_end() {
    let scenario = scenario("clients = { rate = 100000 }\nduration = \"168h\"\npath = { rtt = \"1ms\" }\n");
    let policy = policy(DEFAULT);
    let mut world = World::with_most(&scenario, &policy, 1, false, 500);
    world.run();
    assert!(world.now < Instant::ZERO + Duration::from_secs(1), "{}", world.now);
    let figures = world.figures();
    assert_eq!((figures.numbers.requests, figures.cut_short), (500.0, true));
    assert_eq!(World::new(&scenario, &policy, 1, false).most, USUAL_REQUESTS);
}

#[test]
fn a_run_that_ends_as_it_was_asked_to_is_not_cut_short() {
    let scenario = short(find("lan").remove(0));
    let policy = policy(DEFAULT);
    let mut world = World::new(&scenario, &policy, 1, false);
    world.run();
    assert!(!world.figures().cut_short);
}

#[test]
fn a_seed_is_a_run() {
    let scenario = short(find("loss-15").remove(0));
    let numbers = |seed| run(&scenario, DEFAULT, seed).all().map(f64::to_bits);
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test]
fn policies_meet_the_same_requests_on_the_same_path() {
    let scenario = short(find("loss-15").remove(0));
    let runs = ["default", "fixed"].map(|name| {
        let policy = policy(name);
        let mut world = World::new(&scenario, &policy, 1, false);
        world.run();
        world.exchanges
    });
    let asked = |run: &[Exchange]| -> Vec<_> {
        run.iter().map(|exchange| (exchange.client, exchange.asked, exchange.kind)).collect()
    };
    assert_eq!(asked(&runs[0]), asked(&runs[1]));
    let plain = |exchange: &Exchange| exchange.copies == 1;
    let [both, either] = [
        runs[0].iter().zip(&runs[1]).filter(|(a, b)| plain(a) && plain(b)).count(),
        runs[0].iter().zip(&runs[1]).filter(|(a, b)| plain(a) || plain(b)).count(),
    ];
    assert!(either - both < 40, "first copies are lost or not together: {both} of {either}");
}

#[test]
fn those_asked_in_an_outage_are_told_apart() {
    let scenario = Scenario { requests: Some(2000), ..find("outage-both").remove(0) };
    let numbers = run(&scenario, DEFAULT, 1);
    assert!((0.0..=1.0).contains(&numbers.survived) && numbers.recovery > 0.0, "{numbers:?}");
    assert!(numbers.survived <= numbers.answered, "{numbers:?}");
}

/// All that is to be told of a run in which the proxy is woken at each of these moments as well, if at any.
fn ticking(scenario: &Scenario, name: &str, seed: u64, tick: Option<Duration>) -> (String, u64) {
    let policy = policy(name);
    let mut world = World::new(scenario, &policy, seed, false);
    let limit = Instant::ZERO + scenario.duration + scenario.clients.patience + SETTLING;
    let (mut at, mut ticks) = (Instant::ZERO, 0);
    while let Some(next) = world.next().filter(|&next| next <= limit) {
        let Some(tick) = tick.filter(|_| at < next) else {
            world.step(limit);
            continue;
        };
        // What is due at the same moment comes first.
        while let Some(event) = world.post.queue.pop_at_once() {
            world.happen(event);
        }
        if world.next() == Some(next) {
            world.now = at;
            (world.wakes, ticks) = (0, ticks + 1);
            world.wake();
            at += tick;
        }
    }
    let exchanges: String = world.exchanges.iter().map(|exchange| format!("{exchange:?}\n")).collect();
    (format!("{exchanges}{:?}\n{:?}", world.counted(), world.figures().numbers), ticks)
}

#[test]
fn each_millisecond_is_as_good_as_each_event() {
    let mut all = 0;
    for (name, requests) in [
        ("loss-15", 300),
        ("dup-reorder", 200),
        ("outage-flaps", 100),
        ("overload-120", 300),
        ("nb-iot-b", 100),
    ] {
        for (policy, seed) in [(DEFAULT, 1), (DEFAULT, 2), ("rfc7252", 3), ("cocoa", 4)] {
            let scenario = Scenario {
                requests: Some(requests),
                duration: Duration::from_secs(90),
                warmup: Duration::ZERO,
                ..find(name).remove(0)
            };
            let (jumping, none) = ticking(&scenario, policy, seed, None);
            let (ticking, ticks) = ticking(&scenario, policy, seed, Some(Duration::from_millis(1)));
            assert_eq!(none, 0);
            let differs = jumping.lines().zip(ticking.lines()).find(|(one, other)| one != other);
            assert!(jumping == ticking, "{name} under {policy}, seed {seed}: {differs:#?}");
            all += ticks;
        }
    }
    assert!(all > 1_000_000, "{all} ticks");
}
