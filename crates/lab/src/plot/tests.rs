use super::*;
use crate::policy::Policy;
use crate::scenario::{Scenario, find};

fn drawn(name: &str) -> picture::Picture {
    let scenario = Scenario { requests: Some(200), ..find(name).remove(0) };
    let policies = ["default", "fixed", "rfc7252"].map(|name| Policy::parse(name, &[]).expect("a policy"));
    let study = Study { policies: policies.into(), cells: vec![scenario], runs: 2, seed: 1, threads: 1 };
    panels::picture(&study, &study.run(&|_| {}))
}

#[test]
fn a_picture_says_what_it_shows() {
    let svg = svg::encode(&drawn("loss-15"));
    for text in [
        "loss-15",
        "answered, % of all requests",
        "copies per request",
        "mean latency, seconds",
        "rfc7252",
        "200 requests",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf")
    );
    assert_eq!(svg.matches("<text ").count(), svg.matches("</text>").count());
}

#[test]
fn both_formats_come_of_one_picture() {
    let picture = drawn("lan");
    let bytes = png::encode(&picture).expect("it is not large");
    assert!(bytes.starts_with(b"\x89PNG\r\n"));
    let (width, height) = (bytes[16..20].try_into().unwrap(), bytes[20..24].try_into().unwrap());
    assert_eq!(
        (u32::from_be_bytes(width), u32::from_be_bytes(height)),
        (picture.width as u32, picture.height as u32)
    );
    assert!(bytes.len() > 10_000 && bytes.len() < 1_000_000, "{}", bytes.len());
}

#[test]
fn files_are_named_by_their_format() {
    let format = |name: &str| Format::of(Path::new(name));
    assert_eq!(
        ["a.svg", "b/c.png", "d.jpg", "svg"].map(format),
        [Some(Format::Svg), Some(Format::Png), None, None]
    );
}
