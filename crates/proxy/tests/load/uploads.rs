//! One host that begins uploads from all of its ports and ends none, beside clients that ask and upload.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Nstart;
use coapway_message::{Code, Datagram, MessageType, datagram};
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, answer, one_origin, parameters};

const RATE: u32 = 400;
const SECONDS: u32 = 60;
/// For so long the window grows.
const WARM: u32 = 10;
/// The queue is full of what waits for a source port; whoever needs none, or has none yet, is served as ever.
const SOON: Duration = Duration::from_millis(100);

#[test]
fn uploads_that_are_begun_and_never_ended_hold_up_nobody_else() {
    let mut unrated = parameters(one_origin());
    unrated.relay.client_rate = 0;
    unrated.upstreams[1].nstart = Nstart::Fixed(16);
    let mut bench = Bench::new(unrated, 1, |asked| answer(&asked.request, b"1"));
    let mut random = fastrand::Rng::with_seed(1);
    let (mut asked, mut answered, mut slowest) = (Vec::new(), 0, Duration::ZERO);
    let mut fullest = 0;
    for step in 0..RATE * SECONDS {
        bench.run_until(Instant::ZERO + Duration::from_secs(1) * step / RATE);
        let from = SocketAddr::from(([10, 9, 0, 1], random.u16(1024..)));
        bench.ask(from, &first_block(step));
        match step % RATE {
            _ if step < WARM * RATE => {}
            0 => bench.ask(client(step / RATE), &get(step)),
            200 => bench.ask(client(step / RATE), &first_block(step)),
            _ => {}
        }
        if step.is_multiple_of(RATE / 2) {
            asked.push(bench.now);
            fullest = fullest.max(bench.proxy.occupancy().queued);
        }
        for heard in std::mem::take(&mut bench.heard) {
            let message = Datagram::parse(&heard.bytes).expect("well formed");
            // As long as that line is, an answer might take its time.
            if heard.client.ip() != client(0).ip() || message.content.code == Code::EMPTY {
                continue;
            }
            if message.message_type == MessageType::Confirmable {
                let id = message.message_id;
                bench.ask(heard.client, &datagram::empty(MessageType::Acknowledgement, id));
            }
            assert!([Code::CONTENT, Code::CHANGED].contains(&message.content.code), "{message:?}");
            let step = u32::from_be_bytes(message.token.try_into().expect("four bytes"));
            let began = asked[(step / (RATE / 2)) as usize];
            slowest = slowest.max(heard.at.since(began));
            answered += 1;
        }
    }
    println!("{fullest} waited, the slowest good answer took {slowest:?}");
    assert_eq!(answered, 2 * (SECONDS - WARM));
    assert!(slowest < SOON, "{slowest:?}");
    assert!(fullest >= 900, "{fullest} waited");
    bench.proxy.check_invariants();
    bench.run_until(bench.now + Duration::from_secs(300));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
}

/// A client for each second.
fn client(second: u32) -> SocketAddr {
    ([10, 1, 0, 1], 40_000 + second as u16).into()
}

fn get(step: u32) -> Vec<u8> {
    let [a, b, c, d] = step.to_be_bytes();
    vec![0x44, Code::GET.0, c, d, a, b, c, d, 0xB1, b's', 0x01, b'a']
}

/// The first of several blocks of 1024 bytes of a PUT to one resource.
fn first_block(step: u32) -> Vec<u8> {
    let [a, b, c, d] = step.to_be_bytes();
    let mut bytes = vec![0x44, Code::PUT.0, c, d, a, b, c, d, 0xB1, b's', 0x01, b'b', 0xD1, 0x03, 0x0E, 0xFF];
    bytes.resize(bytes.len() + 1024, b'y');
    bytes
}
