//! Clients that have given up.

use coapway_endpoint::Nstart;
use coapway_message::{Code, MessageType};
use coapway_proxy::{Patience, UpstreamParameters};

use crate::bench::{Bench, SECOND, settings};

const CON: MessageType = MessageType::Confirmable;

fn bench(patience: Patience) -> Bench {
    Bench::new(settings(UpstreamParameters::default(), patience))
}

/// The origin deals with one request at a time.
fn narrow(patience: Patience) -> Bench {
    let mut parameters = settings(UpstreamParameters::default(), patience);
    parameters.upstreams.iter_mut().for_each(|upstream| upstream.nstart = Nstart::Fixed(1));
    Bench::new(parameters)
}

#[test]
fn of_a_request_whose_time_is_over_no_further_copy_leaves_and_its_answer_still_comes() {
    let mut bench = bench(Patience::After(5 * SECOND));
    bench.get(1, "a");
    bench.pass(5 * SECOND);
    let sent = std::mem::take(&mut bench.sent);
    assert!((2..=3).contains(&sent.len()), "{sent:?}");
    bench.pass(15 * SECOND);
    assert!(bench.sent.is_empty() && bench.answers.is_empty());
    bench.respond(&sent[0]);
    assert_eq!(bench.answer().code, Code::CONTENT);
    bench.pass(60 * SECOND);
    assert_eq!(bench.records, [format!("client-gone - {}", sent.len())]);
}

#[test]
fn without_an_answer_the_record_says_what_is_known() {
    let mut bench = bench(Patience::After(SECOND));
    bench.ask(1, "a", CON, Code::POST, b"t");
    bench.pass(30 * SECOND);
    assert_eq!(bench.answer().text, "outcome-unknown: no answer in time");
    bench.pass(30 * SECOND);
    assert_eq!(
        (bench.asked().len(), &bench.records[..]),
        (1, &["client-gone outcome-unknown 1".to_owned()][..])
    );
}

#[test]
fn what_has_not_left_does_not_leave() {
    let mut bench = narrow(Patience::After(5 * SECOND));
    bench.get(1, "a");
    bench.get(2, "b");
    bench.pass(5 * SECOND);
    let answer = bench.answer();
    assert_eq!((answer.port, answer.text.as_str()), (2, "not-sent: no answer in time"));
    assert_eq!(bench.records, ["client-gone not-sent 0"]);
    let first = bench.sent[0].clone();
    bench.respond(&first);
    assert!(bench.asked().iter().all(|path| path == "a"));
}

#[test]
fn one_token_for_two_requests_gives_the_first_one_up() {
    let mut bench = bench(Patience::Learned);
    bench.ask(1, "a", CON, Code::GET, b"t");
    bench.pass(SECOND / 10);
    bench.ask(1, "b", CON, Code::GET, b"t");
    let sent = std::mem::take(&mut bench.sent);
    bench.pass(SECOND);
    bench.respond(&sent[0]);
    assert!(bench.answers.is_empty(), "it would be taken for the answer to the second");
    bench.respond(&sent[1]);
    assert_eq!(bench.answer().code, Code::CONTENT);
    assert_eq!(bench.records, ["client-gone - 1", "ok - 1"]);
    bench.pass(30 * SECOND);
    assert!(!bench.asked().contains(&"a".to_owned()), "no further copy");
}

#[test]
fn a_token_used_again_takes_what_waits_out_of_the_queue_in_silence() {
    let mut bench = narrow(Patience::Learned);
    bench.ask(1, "first", CON, Code::GET, b"0");
    bench.ask(1, "a", CON, Code::GET, b"t");
    bench.ask(1, "b", CON, Code::GET, b"t");
    assert_eq!((&bench.records[..], bench.answers.len()), (&["client-gone not-sent 0".to_owned()][..], 0));
    let first = bench.sent.remove(0);
    bench.respond(&first);
    assert_eq!(bench.asked(), ["b"]);
}

#[test]
fn other_clients_answered_requests_and_empty_tokens_are_no_sign() {
    let mut bench = bench(Patience::Learned);
    bench.ask(1, "a", CON, Code::GET, b"t");
    bench.ask(2, "b", CON, Code::GET, b"t");
    bench.ask(3, "c", CON, Code::GET, b"");
    bench.ask(3, "d", CON, Code::GET, b"");
    for sent in std::mem::take(&mut bench.sent) {
        bench.respond(&sent);
    }
    bench.ask(1, "e", CON, Code::GET, b"t");
    bench.respond(&bench.sent[0].clone());
    assert_eq!(bench.records, ["ok - 1"; 5]);
}

#[test]
fn the_patience_of_a_client_is_learned_and_unlearned() {
    let mut bench = bench(Patience::Learned);
    bench.acknowledges = false;
    // Eight times it has given up when its answer comes after 6 s.
    for number in 0..8 {
        bench.get(1, &number.to_string());
        bench.pass(6 * SECOND);
        // A ping may have left beside it.
        bench.respond(&bench.sent[0].clone());
        let answer = bench.answer();
        bench.reply(&answer, MessageType::Reset);
        bench.sent.clear();
    }
    assert!(bench.records.iter().all(|record| record.starts_with("ok")));
    bench.records.clear();
    bench.get(1, "late");
    bench.pass(7 * SECOND);
    let sent = std::mem::take(&mut bench.sent);
    bench.pass(13 * SECOND);
    assert!(bench.sent.is_empty(), "no copy after 6 s");
    bench.respond(&sent[0]);
    assert!(bench.records[0].starts_with("client-gone"), "{:?}", bench.records);
    // It was there after all.
    let answer = bench.answer();
    bench.reply(&answer, MessageType::Acknowledgement);
    bench.records.clear();
    bench.get(1, "again");
    bench.pass(20 * SECOND);
    let sent = std::mem::take(&mut bench.sent);
    bench.respond(&sent[0]);
    assert!(bench.records[0].starts_with("ok"), "{:?}", bench.records);
}

#[test]
fn off_means_that_each_request_has_its_time() {
    let mut bench = bench(Patience::Off);
    bench.ask(1, "a", CON, Code::GET, b"t");
    bench.ask(1, "b", CON, Code::GET, b"t");
    for sent in std::mem::take(&mut bench.sent) {
        bench.respond(&sent);
    }
    assert_eq!(
        (&bench.records[..], bench.answers.len()),
        (&["ok - 1".to_owned(), "ok - 1".to_owned()][..], 2)
    );
}
