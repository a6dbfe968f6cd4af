use std::net::Ipv4Addr;

use super::*;
use crate::clock;

fn requests() -> Requests {
    Requests::new(Asked::Mixed(SocketAddr::from((Ipv4Addr::LOCALHOST, 5683))), 0x1234_5678, 4, 2)
}

/// A right answer, piggybacked.
fn answer(requests: &Requests, sequence: u32) -> Vec<u8> {
    let (mut datagram, mut out) = (Vec::new(), Vec::new());
    requests.write(sequence, &mut datagram);
    let request = Message::parse(&datagram).unwrap();
    let code = if request.code == POST { CHANGED } else { CONTENT };
    coap::write_reply(&mut out, &request, code, request.last_segment.unwrap());
    out
}

#[test]
fn half_of_them_are_posts_and_each_has_a_name_of_its_own() {
    let mut requests = requests();
    let mut names = std::collections::HashSet::new();
    let mut posts = 0;
    for _ in 0..1000 {
        let (sequence, _) = requests.issue(0, clock::now());
        let mut out = Vec::new();
        requests.write(sequence, &mut out);
        let message = Message::parse(&out).unwrap();
        posts += u32::from(message.code == POST);
        names.insert(message.last_segment.unwrap().to_vec());
    }
    assert!((400..600).contains(&posts) && names.len() == 1000, "{posts}");
}

#[test]
fn a_right_answer_counts_once_in_the_phase_of_its_request() {
    let (mut requests, now) = (requests(), clock::now());
    let (sequence, client) = requests.issue(0, now);
    let answer = answer(&requests, sequence);
    assert_eq!(requests.take(client, &answer, 1, now), None);
    requests.take(client, &answer, 1, now);
    assert!(requests.due(now).is_empty() && requests.all_over());
    let tallies = requests.into_tallies();
    assert_eq!((tallies[0].sent, tallies[0].right, tallies[0].repeated), (1, 1, 0));
    assert!(tallies[0].faults.is_empty() && tallies[1].faults.is_empty());
}

#[test]
fn a_second_answer_a_wrong_one_and_one_to_another_client_are_faults() {
    let (mut requests, now) = (requests(), clock::now());
    let (first, client) = requests.issue(0, now);
    let (second, other) = requests.issue(0, now);
    let right = answer(&requests, first);
    requests.take(other, &right, 0, now);
    requests.take(client, &right, 0, now);
    let mut separate = right.clone();
    separate[0] = separate[0] & 0x0f | 0x40;
    assert!(requests.take(client, &separate, 0, now).is_some());
    let mut wrong = answer(&requests, second);
    wrong[1] = 0xa3;
    requests.take(other, &wrong, 0, now);
    requests.take(other, b"?", 0, now);
    let faults = requests.into_tallies().remove(0).faults;
    assert_eq!(faults.values().sum::<u64>(), 4, "{faults:?}");
    assert!(faults.contains_key("a second answer"), "{faults:?}");
}

#[test]
fn repeats_four_times_and_then_gives_up() {
    let (mut requests, now) = (requests(), clock::now());
    requests.issue(0, now);
    let copies: usize = (0..200).map(|second| requests.due(now + Duration::from_secs(second)).len()).sum();
    assert_eq!((copies, requests.all_over()), (4, true));
    let tally = requests.into_tallies().remove(0);
    assert_eq!((tally.unanswered, tally.copies), (1, 4));
}

#[test]
fn an_empty_acknowledgement_stops_the_copies_and_a_separate_response_is_acknowledged() {
    let (mut requests, now) = (requests(), clock::now());
    let (sequence, client) = requests.issue(0, now);
    let mut response = answer(&requests, sequence);
    let id = u16::from_be_bytes([response[2], response[3]]);
    requests.take(client, &coap::empty(ACK, id), 0, now);
    assert!(requests.due(now + Duration::from_secs(30)).is_empty());
    response[0] = response[0] & 0x0f | 0x40;
    response[2..4].copy_from_slice(&[0xab, 0xcd]);
    assert_eq!(requests.take(client, &response, 0, now), Some(0xabcd));
    assert_eq!(requests.into_tallies()[0].right, 1);
}

#[test]
fn each_phase_may_have_an_origin_of_its_own() {
    let origins = [5683, 5684].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut requests = Requests::new(Asked::ByPhase(origins.to_vec()), 7, 3, 2);
    let mut out = Vec::new();
    for (sequence, phase) in [1, 0, 1].into_iter().enumerate() {
        assert_eq!(requests.issue_by(2, phase, clock::now()), sequence as u32);
        requests.write(sequence as u32, &mut out);
        let uri = String::from_utf8_lossy(&out);
        assert!(uri.contains(&format!("coap://{}/", origins[phase])), "{uri}");
        let request = Message::parse(&out).unwrap();
        assert_eq!(request.code, coap::GET);
        assert_eq!(sequence_of(request.last_segment.unwrap()), Some(sequence as u32));
        assert_eq!(request.message_id, 7 + 2 * 977 + sequence as u16);
    }
    assert_eq!([&b"short"[..], b"no hexadecimal!"].map(sequence_of), [None; 2]);
}
