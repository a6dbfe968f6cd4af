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

/// Whether a text is one element after the other, all of them closed, of letters that XML knows.
fn is_xml(text: &str) -> bool {
    let is_letter = |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{7e}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    let mut open = Vec::new();
    let is_closed = text.split('<').skip(1).all(|part| {
        let Some((tag, content)) = part.split_once('>') else { return false };
        if let Some(name) = tag.strip_prefix('/') {
            return open.pop() == Some(name);
        }
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
        let entities = ["amp;", "lt;", "gt;"];
        content.split('&').skip(1).all(|after| entities.iter().any(|entity| after.starts_with(entity)))
    });
    is_closed && open.is_empty() && text.chars().all(is_letter)
}

#[test]
fn names_of_strangers_leave_a_picture_well_formed() {
    let name = "<&>\u{1b}[31m\0\u{85}\u{ffff}</text>\"'é";
    let scenario = Scenario {
        name: name.to_owned(),
        about: name.to_owned(),
        requests: Some(20),
        ..find("lan").remove(0)
    };
    let mut policies = ["default", "fixed"].map(|name| Policy::parse(name, &[]).expect("a policy"));
    policies[1].name = name.to_owned();
    let study = Study { policies: policies.into(), cells: vec![scenario], runs: 1, seed: 1, threads: 1 };
    let picture = panels::picture(&study, &study.run(&|_| {}));
    let svg = svg::encode(&picture);
    assert!(is_xml(&svg) && svg.contains("&lt;&amp;&gt;\\u{1b}[31m"), "{svg}");
    assert!(!is_xml("<a>&</a>") && !is_xml("<a>\u{1b}</a>") && !is_xml("<a><b></a>"));
    assert!(png::encode(&picture).is_ok());
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
