use std::path::Path;

use super::*;

fn errors(text: &str) -> Vec<String> {
    let errors = Scenario::parse(Path::new("mine.toml"), text).expect_err("something is wrong");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn each_named_scenario_is_a_file_without_errors() {
    let names: Vec<_> = named().map(|scenario| scenario.name).collect();
    for name in &names {
        let text = source(name).expect("a file");
        let path = format!("{name}.toml");
        let scenario = Scenario::parse(Path::new(&path), text).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(scenario.name, *name);
        assert!(!scenario.about.is_empty() && scenario.about.len() < 100, "{name}: {}", scenario.about);
    }
    assert_eq!(find("all").len(), names.len());
    assert!(names.len() > 40, "{}", names.len());
}

#[test]
fn names_stand_for_one_or_for_a_family() {
    let names =
        |name: &str| -> Vec<String> { find(name).into_iter().map(|scenario| scenario.name).collect() };
    assert_eq!(names("lte-m"), ["lte-m"]);
    assert_eq!(names("wifi-burst"), ["wifi-burst"]);
    assert_eq!(names("wifi-burst*").len(), 4);
    assert_eq!(names("outage"), ["outage-up", "outage-both", "outage-flaps"]);
    assert!(names("nothing").is_empty() && names("").is_empty());
}

#[test]
fn everything_in_a_file_is_understood() {
    let scenario = Scenario::parse(
        Path::new("place/mine.toml"),
        r#"
        about = "mine"
        duration = "2min"
        warmup = "10s"
        requests = 100
        clients = { count = 3, think = "1s", together = true, each = 5, post = 0.2, non = 0.1, payload = 9, patience = "50s" }
        path.rtt = { law = "gamma", least = "80ms", shape = 0.5, mean = "20ms" }
        path.loss = 0.1
        path.down = { loss = 0.2, rate = "30kbit/s", buffer = "2500B" }
        path.phases = [{ at = "1min", add = "150ms" }]
        path.outages = [{ at = "10s", for = "5s", direction = "down" }]
        path.nat = { timeout = "30s" }
        access.rtt = "3ms"
        origin = { think = "20ms", empty_ack_after = "never", deduplicates = false, when_full = "4.29", max_age = 3 }
        "#,
    );
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((&*scenario.name, &*scenario.about, scenario.requests), ("mine", "mine", Some(100)));
    assert_eq!((scenario.clients.pace, scenario.clients.each), (Pace::Think(1.0), Some(5)));
    assert_eq!((scenario.path.up.loss, scenario.path.down.loss), (0.1, 0.2));
    assert_eq!((scenario.path.up.rate, scenario.path.down.buffer), (None, Some(2500)));
    assert_eq!((scenario.path.up.outages.len(), scenario.path.down.outages.len()), (0, 1));
    assert_eq!(scenario.path.phases[0].add, 0.15);
    assert_eq!(scenario.access.rtt, Law::Constant(0.003));
    let origin = scenario.origin;
    assert_eq!((origin.empty_ack_after, origin.deduplicates), (None, false));
    assert_eq!((origin.when_full, origin.max_age), (WhenFull::TooManyRequests, 3));
}

#[test]
fn each_error_says_where_what_and_what_would_do() {
    let found = errors(
        "duration = \"10\"\n[clients]\nrate = 0\nthnk = \"1s\"\n[path]\nloss = 2\nrtt = { law = \"normal\" }\n",
    );
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(
        found[0].starts_with("mine.toml:1:12: duration = \"10\"\n") && found[0].contains("\"1s\" to"),
        "{}",
        found[0]
    );
    assert!(found[1].starts_with("mine.toml:3:8: clients.rate = 0\n") && found[1].contains("out of range"));
    assert!(
        found[2].starts_with("mine.toml:4:1: clients.thnk\n") && found[2].contains("think"),
        "{}",
        found[2]
    );
    assert!(found[3].starts_with("mine.toml:6:8: path.loss = 2\n") && found[3].contains("allowed: 0 to 1"));
    assert!(
        found[4].contains("path.rtt.law = \"normal\"") && found[4].contains("\"lognormal\""),
        "{}",
        found[4]
    );
}

#[test]
fn what_belongs_together_is_told() {
    assert!(errors("[path]\nbuffer = \"2500B\"\n")[0].contains("path.rate\n    missing"));
    assert!(errors("[clients]\nrate = 1\nthink = \"1s\"\n")[0].contains("not beside rate"));
    assert!(errors("path.rtt = { law = \"lognormal\" }\n")[0].contains("path.rtt.median\n    missing"));
    let shares = errors("clients = { post = 0.7, non = 0.7 }\n").remove(0);
    assert!(shares.contains("clients.non = 0.7") && shares.ends_with("allowed: 0 to 0.3"), "{shares}");
    assert!(errors("duration = \n")[0].starts_with("mine.toml:1:"));
}

#[test]
fn what_contradicts_itself_is_told_with_its_place() {
    for (text, place, rest) in [
        (
            "path.rtt = { law = \"uniform\", least = \"2s\", most = \"1s\" }",
            "1 path.rtt.most = \"1s\"",
            "\"2s\" to \"600s\"",
        ),
        (
            "path.rtt = { law = \"pareto\", least = \"2s\", most = \"1s\" }",
            "1 path.rtt.most = \"1s\"",
            "\"2s\" to \"600s\"",
        ),
        (
            "origin.think = { law = \"lognormal\", median = \"2s\", most = \"1s\" }",
            "1 origin.think.most",
            "\"2s\" to",
        ),
        ("path.wake = { least = \"2s\", most = \"1s\" }", "1 path.wake.most = \"1s\"", "\"2s\" to \"600s\""),
        ("path.wake = { least = \"2s\" }", "1 path.wake.most", "missing"),
        (
            "[path]\nphases = [{ at = \"20s\" }, { at = \"5s\" }]",
            "2 path.phases.at = \"5s\"",
            "\"20s\" to \"604800s\"",
        ),
        ("path.phases = [{ at = \"20s\" }, { add = \"5s\" }]", "1 path.phases.at", "missing"),
        ("[path]\ncycle = \"10s\"\nphases = [{ at = \"20s\" }]", "2 path.cycle = \"10s\"", "\"20s\" to"),
        ("duration = \"1min\"\nwarmup = \"2min\"", "2 warmup = \"2min\"", "allowed: less than \"60s\""),
        ("warmup = \"10min\"", "1 warmup = \"10min\"", "allowed: less than \"600s\""),
    ] {
        let found = errors(text);
        let [error] = &found[..] else { panic!("{text}: {found:#?}") };
        let (line, key) = place.split_once(' ').expect("line and key");
        assert!(error.starts_with(&format!("mine.toml:{line}:")), "{text}: {error}");
        assert!(error.contains(&format!(": {key}")) && error.contains(rest), "{text}: {error}");
    }
}

#[test]
fn what_would_not_end_is_refused() {
    let cross = errors("path = { rate = \"1Mbit/s\", cross = { size = \"1B\", share = 1 } }\n").remove(0);
    assert!(cross.contains("path.cross = ") && cross.contains("a size of \"2B\" or more"), "{cross}");
    let found = errors("path = { cross = { size = \"1B\", share = 1 }, up = { rate = \"1Mbit/s\" } }\n");
    assert!(found.len() == 1 && found[0].contains("path.up.rate = "), "{found:?}");
    let stalls = errors("origin.stalls = [{ at = \"1s\", for = \"10ms\", every = \"10ms\" }]\n").remove(0);
    assert!(stalls.contains("origin.stalls.every = \"10ms\"") && stalls.contains("\"11ms\" to"), "{stalls}");
}

#[test]
fn equal_bounds_are_no_contradiction() {
    let text = "path.rtt = { law = \"uniform\", least = \"1s\", most = \"1s\" }\n\
                path.phases = [{ add = \"1s\" }, { at = \"0s\", add = \"2s\" }]\n";
    assert!(Scenario::parse(Path::new("x.toml"), text).is_ok());
}

#[test]
fn shares_that_are_all_are_fine_whatever_their_sum_in_binary() {
    for (post, non) in [(0.9, 0.1), (0.7, 0.3), (0.35, 0.65)] {
        let text = format!("clients = {{ post = {post}, non = {non} }}\n");
        assert!(Scenario::parse(Path::new("x.toml"), &text).is_ok(), "{text}");
    }
}

#[test]
fn a_title_ends_where_nothing_more_is_said() {
    let title = |text| Scenario::parse(Path::new("mine.toml"), text).expect("fine").title();
    assert_eq!((&*title(""), &*title("about = \"far\"\n")), ("mine", "mine: far"));
}

#[test]
fn outages_repeat_as_often_as_they_are_asked_to() {
    let text = "path.outages = [{ at = \"60s\", for = \"5s\", every = \"10s\", times = 6 }]\n";
    let scenario = Scenario::parse(Path::new("x.toml"), text).expect("fine");
    let outage = scenario.path.up.outages[0];
    assert_eq!(
        [59.0, 60.0, 66.0, 112.0, 120.0].map(|at| outage.around(at)),
        [None, Some((60.0, 65.0)), None, Some((110.0, 115.0)), None]
    );
}
