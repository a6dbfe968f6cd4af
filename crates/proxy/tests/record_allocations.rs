//! What records allocate: nothing, once as many requests were under way as ever are.

use std::net::{Ipv4Addr, SocketAddr};

use coapway_endpoint::{EndpointParameters, Local, Nstart, Peer, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    Input, Limits, Lines, Listening, Output, Parameters, Proxy, Sampling, SocketRole, UpstreamParameters,
};
use coapway_relay::Forward;
use coapway_time::Instant;

const CLIENTS: u16 = 16;

/// A proxy, clients and an origin that answers at once.
struct World {
    proxy: Proxy,
    lines: Lines,
    line: Vec<u8>,
    now: Instant,
    message_id: u16,
    /// Bytes of lines, all together.
    written: usize,
    requests: Vec<Vec<u8>>,
    sent: Vec<(Peer, Vec<u8>)>,
    answer: Vec<u8>,
}

impl World {
    fn new(records: Option<Sampling>) -> Self {
        let upstream = UpstreamParameters { nstart: Nstart::Fixed(CLIENTS.into()), ..Default::default() };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![upstream],
            relay: coapway_relay::Parameters { forward: Forward::Open, ..Default::default() },
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        let request = |client: u16| {
            let (mut options, mut bytes) = (Vec::new(), Vec::new());
            let mut writer = OptionsWriter::new(&mut options);
            writer.push(OptionNumber::PROXY_URI, format!("coap://127.0.0.1/a/{client}").as_bytes());
            let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
            datagram::encode(&mut bytes, MessageType::Confirmable, 0, b"\xA1\xB2\xC3\xD4", &content);
            bytes
        };
        Self {
            proxy: Proxy::new(
                parameters,
                Listening { events: false, records, late: false },
                Seed::from_number(1),
            ),
            lines: Lines::new(0),
            line: vec![0; 8192],
            now: Instant::ZERO,
            message_id: 0,
            written: 0,
            requests: (0..CLIENTS).map(request).collect(),
            sent: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Each client asks and is answered.
    fn round(&mut self) {
        self.message_id += 1;
        let mut requests = std::mem::take(&mut self.requests);
        for (client, request) in (0..).zip(&mut requests) {
            request[2..4].copy_from_slice(&self.message_id.to_be_bytes());
            let local = Local { socket: SocketRole::Listener(0).socket(), address: None };
            self.give(local, (Ipv4Addr::LOCALHOST, 40_000 + client).into(), request);
        }
        self.requests = requests;
        self.drain();
        self.now = Instant::from_micros(self.now.as_micros() + 5000);
        let (mut sent, mut answer) = (std::mem::take(&mut self.sent), std::mem::take(&mut self.answer));
        for (origin, bytes) in sent.drain(..) {
            let asked = Datagram::parse(&bytes).expect("our own is valid");
            let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"22.5 C" };
            answer.clear();
            let (id, token) = (asked.message_id, asked.token);
            datagram::encode(&mut answer, MessageType::Acknowledgement, id, token, &content);
            self.give(origin.local, origin.remote, &answer);
        }
        (self.sent, self.answer) = (sent, answer);
        self.drain();
        self.sent.clear();
    }

    fn give(&mut self, local: Local, remote: SocketAddr, bytes: &[u8]) {
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, self.now);
    }

    fn drain(&mut self) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => self.sent.push((*transmit.peer, transmit.datagram.to_vec())),
                Output::Records(records) => {
                    for (record, upstream) in records.iter() {
                        let address = Some((Ipv4Addr::LOCALHOST, 1).into());
                        let length = self.lines.write(record, upstream, &|_| address, &mut self.line);
                        self.written += length.expect("there is room");
                    }
                }
                Output::LookUp { .. } | Output::Event(_) => {}
                Output::Wait { .. } => return,
            }
        }
    }
}

#[test]
fn a_record_allocates_nothing() {
    let count = |records| {
        let mut world = World::new(records);
        (0..200).for_each(|_| world.round());
        let counted = allocation_counter::measure(|| (0..1000).for_each(|_| world.round()));
        (counted.count_total, world.written)
    };
    let ((without, nothing), (with, written)) = (count(None), count(Some(Sampling::ALL)));
    assert!(nothing == 0 && written > 1200 * usize::from(CLIENTS) * 500);
    assert_eq!(with, without, "of {} forwards", 1000 * u32::from(CLIENTS));
}
