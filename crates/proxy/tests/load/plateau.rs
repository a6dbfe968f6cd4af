//! Two thousand requests a second for five minutes: the memory of repeats grows up to what it may take, and
//! no further.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::EndpointParameters;
use coapway_message::Code;
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, Heard, one_origin};

const CLIENTS: u32 = 100;
const RATE: u32 = 2000;
const SECONDS: u32 = 300;
/// One request in so many comes twice.
const REPEATED: u32 = 100;
const BODY: usize = 1000;

#[test]
fn two_thousand_puts_a_second_for_five_minutes_reach_a_plateau() {
    let limit = EndpointParameters::default().duplicates.memory as i64;
    let mut run = Run::new();
    let (mut heap, mut peak, mut seen) = (0, 0, Vec::new());
    for seconds in (30..=SECONDS).step_by(30) {
        let counted = allocation_counter::measure(|| run.puts_until(seconds));
        peak = peak.max(heap + counted.bytes_max as i64);
        heap += counted.bytes_current;
        seen.push((seconds, run.bench.proxy.occupancy().remembered, heap));
        run.bench.proxy.check_invariants();
    }
    println!("seconds, messages remembered, bytes: {seen:?}; at the most {peak} bytes");

    run.puts_until(SECONDS + 1);

    // All were answered, and each was executed once, as was the POST of each second.
    let requests = u64::from(RATE * SECONDS);
    assert_eq!((run.answered(), run.wrong), (requests, 0));
    assert_eq!(run.bench.executed, requests + u64::from(SECONDS));
    // A repeat before the answer is acknowledged, and the answer then separate; one after it gets it again.
    let early = requests / u64::from(2 * REPEATED);
    let late = early - u64::from(RATE / (2 * REPEATED));
    assert_eq!((run.acknowledged, run.separate, run.repeats), (early, early, late));
    // An eighth is what allocators may take, as `coapway check` has it.
    assert!(peak <= limit + limit / 8, "{peak}");
    // It is full after half of the time.
    let grown: Vec<_> = seen.iter().filter(|(seconds, ..)| *seconds >= SECONDS / 2).collect();
    let &&(_, first, bytes) = grown.first().expect("there are some");
    assert!(bytes > limit / 8 * 7, "{bytes}: it is used");
    for &&(seconds, remembered, heap) in &grown {
        assert!(remembered * 100 <= first * 101 && heap <= bytes + bytes / 100, "{seconds} s: {seen:?}");
    }
    // What made room is counted, one by one.
    let (downstream, upstream) = run.bench.proxy.counters();
    let remembered = run.bench.proxy.occupancy().remembered as u64;
    let expired = requests + u64::from(SECONDS) - remembered - downstream.forgotten;
    assert!((SECONDS - 250..=SECONDS - 245).contains(&(expired as u32)), "POSTs older than 247 s: {expired}");
    assert_eq!((downstream.duplicates, downstream.refused), (early + late, 0));
    assert_eq!(upstream.retransmissions, 0);

    run.what_may_be_done_again_went_first();
    let over = run.bench.now + Duration::from_secs(260);
    run.bench.run_until(over);
    assert_eq!(run.bench.proxy.occupancy(), Occupancy::default());
    run.bench.proxy.check_invariants();
}

/// A hundred clients that PUT, one that POSTs once a second, and what they heard.
struct Run {
    bench: Bench,
    next: u32,
    /// A bit for each request.
    answered: Vec<u64>,
    /// The answers to the POSTs.
    posted: Vec<Heard>,
    /// Answers that came a second time.
    repeats: u64,
    /// Empty Acknowledgements and separate responses, which are acknowledged.
    acknowledged: u64,
    separate: u64,
    /// Answers to nobody, to another client, of another code.
    wrong: u64,
}

impl Run {
    fn new() -> Self {
        Self {
            bench: Bench::counting(one_origin(), BODY),
            next: 0,
            answered: vec![0; (RATE * SECONDS).div_ceil(64) as usize],
            posted: Vec::with_capacity(SECONDS as usize),
            repeats: 0,
            acknowledged: 0,
            separate: 0,
            wrong: 0,
        }
    }

    fn puts_until(&mut self, seconds: u32) {
        while self.next < seconds.min(SECONDS) * RATE {
            let number = self.next;
            self.next += 1;
            self.bench.run_until(Instant::ZERO + Duration::from_secs(1) * number / RATE);
            self.bench.ask(client(number), &put(number));
            // Half of the repeats come before the answer, the others a second after it.
            match number % (2 * REPEATED) {
                0 => self.bench.ask(client(number), &put(number)),
                REPEATED if number >= RATE => {
                    self.bench.ask(client(number - RATE), &put(number - RATE));
                }
                _ => {}
            }
            if number % RATE == 7 {
                self.bench.ask(POSTS, &post(number / RATE));
            }
            self.listen();
        }
        self.bench.run_until(Instant::ZERO + Duration::from_secs(seconds.into()));
        self.listen();
    }

    fn listen(&mut self) {
        for heard in std::mem::take(&mut self.bench.heard) {
            if heard.client == POSTS {
                self.posted.push(heard);
                continue;
            }
            match heard.bytes[..] {
                [0x60, 0, _, _] => self.acknowledged += 1,
                [head @ (0x44 | 0x64), code, high, low, a, b, c, d, ..] => {
                    let number = u32::from_be_bytes([a, b, c, d]);
                    let is_separate = head == 0x44;
                    let is_right = (heard.client, code) == (client(number), Code::CHANGED.0)
                        && (is_separate || put(number)[2..4] == [high, low]);
                    self.take(number, is_right);
                    if is_separate {
                        self.separate += 1;
                        self.bench.ask(heard.client, &[0x60, 0, high, low]);
                    }
                }
                _ => self.wrong += 1,
            }
        }
    }

    fn take(&mut self, number: u32, is_right: bool) {
        let Some(word) = self.answered.get_mut(number as usize / 64).filter(|_| is_right) else {
            self.wrong += 1;
            return;
        };
        self.repeats += *word >> (number % 64) & 1;
        *word |= 1 << (number % 64);
    }

    fn answered(&self) -> u64 {
        self.answered.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// A POST is known for its lifetime however many PUTs came after it; a PUT that made room is a new one.
    fn what_may_be_done_again_went_first(&mut self) {
        let executed = self.bench.executed;
        for second in SECONDS - 240..SECONDS {
            self.bench.ask(POSTS, &post(second));
            let again = self.bench.heard.pop().map(|heard| heard.bytes);
            assert_eq!(again.as_deref(), Some(&self.posted[second as usize].bytes[..]), "{second} s");
        }
        assert_eq!(self.bench.executed, executed, "nothing is done twice");
        self.bench.ask(client(0), &put(0));
        let soon = self.bench.now + Duration::from_secs(1);
        self.bench.run_until(soon);
        assert_eq!((self.bench.executed, self.bench.heard.len()), (executed + 1, 1));
        self.bench.heard.clear();
    }
}

const PORT: u32 = 40_000;
const POSTS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2)), 5000);

fn client(number: u32) -> SocketAddr {
    ([10, 1, 0, 1], (PORT + number % CLIENTS) as u16).into()
}

/// PUT /s/a "x"; the token is the number.
fn put(number: u32) -> [u8; 14] {
    let ([_, _, high, low], [a, b, c, d]) = ((number / CLIENTS).to_be_bytes(), number.to_be_bytes());
    [0x44, Code::PUT.0, high, low, a, b, c, d, 0xB1, b's', 0x01, b'a', 0xFF, b'x']
}

fn post(second: u32) -> [u8; 10] {
    let [_, _, high, low] = second.to_be_bytes();
    [0x40, Code::POST.0, high, low, 0xB1, b's', 0x01, b'a', 0xFF, b'x']
}
