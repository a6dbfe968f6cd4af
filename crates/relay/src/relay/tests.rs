use std::time::Duration;

use coapway_message::{Code, OptionNumber, OptionsWriter};

use super::*;
use crate::fetch::tests::{fetch, id};
use crate::fetch::{OriginId, Rare};
use crate::parameters::Forward;

const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 5683);

const QUEUED: Phase = Phase::Queued(OriginId(4));

fn relay(most: usize) -> Relay {
    Relay::new(Parameters::default(), most)
}

/// Starts the fetch of the request in this slot.
fn begin(relay: &mut Relay, slot: u32, seconds: u64) -> Option<FetchId> {
    relay.begin(id(slot, 0), fetch(seconds)).then_some(id(slot, 0))
}

#[test]
fn as_many_fetches_as_allowed_are_under_way_and_no_more() {
    let mut relay = relay(2);
    assert_eq!((relay.len(), relay.is_empty()), (0, true));
    let first = begin(&mut relay, 0, 1).expect("there is room");
    assert!(begin(&mut relay, 1, 1).is_some() && begin(&mut relay, 2, 1).is_none());
    assert_eq!((relay.len(), relay.is_empty()), (2, false));
    assert!(relay.finish(first).is_some() && relay.finish(first).is_none(), "it ends once");
    assert_eq!(relay.len(), 1);
    assert!(begin(&mut relay, 2, 1).is_some(), "one that ended makes room");
}

#[test]
fn a_fetch_is_followed_until_it_ends() {
    let mut relay = relay(2);
    let (first, next) = (id(0, 0), id(0, 1));
    assert!(relay.begin(first, fetch(1)));
    relay.set_phase(first, QUEUED);
    assert_eq!(relay.fetch(first).map(|fetch| fetch.phase), Some(QUEUED));
    let rare = &mut relay.fetch_mut(first).expect("under way").rare;
    *rare = Some(Rare { mark: Some(7), ..Rare::default() }.into());
    assert_eq!(relay.finish(first).and_then(|fetch| fetch.mark()), Some(7));
    assert!(relay.begin(next, fetch(1)));
    relay.set_phase(first, QUEUED);
    relay.start_over(first, Evidence::OutcomeUnknown);
    let next = relay.fetch(next).expect("under way");
    assert_eq!((next.phase, next.evidence), (Phase::LookingUp, Evidence::NotSent), "its place is another's");
    assert!(relay.fetch(first).is_none() && relay.fetch_mut(first).is_none());
}

#[test]
fn evidence_only_grows_weaker_from_exchange_to_exchange() {
    let mut relay = relay(1);
    let id = begin(&mut relay, 0, 1).expect("there is room");
    for (ended_with, evidence) in [
        (Evidence::NotExecuted, Evidence::NotExecuted),
        (Evidence::NotSent, Evidence::NotExecuted),
        (Evidence::OutcomeUnknown, Evidence::OutcomeUnknown),
        (Evidence::NotExecuted, Evidence::OutcomeUnknown),
    ] {
        relay.set_phase(id, QUEUED);
        relay.start_over(id, ended_with);
        let fetch = relay.fetch(id).expect("under way");
        assert_eq!((fetch.phase, fetch.evidence), (Phase::LookingUp, evidence));
    }
}

#[test]
fn fetches_expire_at_their_deadlines_and_not_before() {
    let mut relay = relay(2);
    assert_eq!(relay.poll_timeout(), None);
    let [late, soon] = [2, 1].map(|slot| begin(&mut relay, slot, slot.into()).expect("there is room"));
    for (id, seconds) in [(soon, 1), (late, 2)] {
        let deadline = Instant::ZERO + Duration::from_secs(seconds);
        let mut wake = relay.poll_timeout().expect("a deadline runs");
        while wake < deadline {
            assert_eq!(relay.poll_expired(wake), None);
            wake = relay.poll_timeout().filter(|next| *next > wake).expect("each wake is later");
        }
        assert!(wake < deadline + Duration::from_millis(2), "{wake:?}");
        assert_eq!((relay.poll_expired(wake), relay.poll_expired(wake)), (Some(id), None));
        relay.finish(id);
    }
    assert_eq!(relay.poll_timeout(), None);
}

#[test]
fn what_a_name_leads_to_is_judged_on_the_grounds_of_its_fetch() {
    let relay = relay(1);
    let by_name = Fetch { admission: admission::Admission::Address, ..fetch(1) };
    assert_eq!(relay.admit(&by_name, ORIGIN), Err(Refusal::TARGET), "nothing is forwarded by default");
    assert_eq!(relay.admit(&fetch(1), ORIGIN), Ok(()), "the upstream was named by the operator");
    let open = Relay::new(Parameters { forward: Forward::Open, ..Parameters::default() }, 1);
    assert_eq!(open.admit(&by_name, ORIGIN), Ok(()));
}

#[test]
fn only_addresses_that_are_believed_are_verified() {
    let relay = relay(1);
    assert!(relay.is_verified([127, 0, 0, 1].into()) && !relay.is_verified([192, 0, 2, 1].into()));
}

#[test]
fn links_are_those_of_the_routes_there_are() {
    let route = |path: &str| Route {
        host: None,
        path: vec![path.as_bytes().into()],
        upstream: crate::parameters::UpstreamId(1),
        strip: true,
    };
    let with = |path| Parameters { routes: vec![route(path)], ..Parameters::default() };
    let listed = |relay: &mut Relay| {
        let mut buffer = Vec::new();
        let mut options = OptionsWriter::new(&mut buffer);
        [".well-known", "core"].iter().for_each(|path| options.push(OptionNumber::URI_PATH, path.as_bytes()));
        let content = Content { code: Code::GET, options: options.finish(), payload: &[] };
        match relay.decide(ORIGIN.ip(), None, &content, &mut Vec::new()) {
            Ok(Decision::Local(content)) => content.payload.to_vec(),
            other => panic!("{other:?}"),
        }
    };
    let mut relay = Relay::new(with("a"), 1);
    assert_eq!(listed(&mut relay), b"</a>");
    relay.reconfigure(with("b"), 1);
    assert_eq!(listed(&mut relay), b"</b>");
}
