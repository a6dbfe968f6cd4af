//! The budget for retries, kept as books are: in a random run each deposit and each withdrawal is seen from outside,
//! the balance follows from them to the last billionth, and the proxy issues a request anew exactly when it is
//! covered.
//!
//! Two origins are asked, one request at a time. They answer, or stay silent to the first copies, or to all of them.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{
    Carry, EndpointParameters, Estimator, Local, RtoParameters, Seed, SocketId, TransmissionParameters,
};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{
    CopySchedule, Input, Limits, Listening, Output, Parameters, Patience, Proxy, RetransmitParameters,
    RetryParameters, SocketRole, UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000);
/// Of all origins together, and of each: first copies, and seconds.
const RATES: [(f64, f64); 3] = [(0.4, 0.01), (0.5, 0.005), (0.25, 0.02)];

/// Copies of an exchange.
const COPIES: usize = 4;

/// The proxy's timers are so late at the most.
const TICK: Duration = Duration::from_millis(2);

/// One retry; accounts are in billionths of it.
const ONE: i64 = 1_000_000_000;
/// The proxy counts in floating point: so close to one retry it may see it either way.
const EITHER_WAY: i64 = 1_000;

/// One account.
#[derive(Debug)]
struct Account {
    left: i64,
    most: i64,
    per_first_copy: i64,
    per_micro: i64,
    filled: Instant,
    deposited: i64,
    withdrawn: i64,
    /// What was deposited into a full account, and withdrawn from an empty one.
    overflown: i64,
    uncovered: i64,
}

impl Account {
    fn new((ratio, per_second): (f64, f64)) -> Self {
        let per_first_copy = (ratio * ONE as f64).round() as i64;
        let per_micro = (per_second * 1000.0).round() as i64;
        let most = 100 * per_first_copy + 10_000_000 * per_micro;
        Self {
            left: most,
            most,
            per_first_copy,
            per_micro,
            filled: Instant::ZERO,
            deposited: 0,
            withdrawn: 0,
            overflown: 0,
            uncovered: 0,
        }
    }

    fn deposit(&mut self, amount: i64) {
        self.deposited += amount;
        self.overflown += (self.left + amount - self.most).max(0);
        self.left = (self.left + amount).min(self.most);
    }

    fn withdraw(&mut self) {
        self.withdrawn += ONE;
        self.uncovered += (ONE - self.left).max(0);
        self.left = (self.left - ONE).max(0);
    }

    /// The balance at the moment that it is asked for.
    fn balance(&mut self, now: Instant) -> i64 {
        let micros = now.since(self.filled).as_micros() as i64;
        self.filled = now;
        self.deposit(micros * self.per_micro);
        self.left
    }

    fn check(&self) {
        let Self { deposited, withdrawn, overflown, uncovered, .. } = self;
        assert_eq!(self.left, self.most + deposited - overflown - withdrawn + uncovered, "{self:?}");
        assert!((0..=self.most).contains(&self.left), "{self:?}");
    }
}

/// What an origin does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// It answers the copy after so many.
    Answers(usize),
    /// Not even the last one; what is issued anew is answered.
    Mute,
}

struct Bench {
    proxy: Proxy,
    now: Instant,
    wake: Option<Instant>,
    message_id: u16,
    /// What left for origins since the last request, by token; pings are answered.
    sent: Vec<(SocketId, SocketAddr, Vec<u8>)>,
    answers: Vec<Code>,
}

fn origin(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number as u8], 5683))
}

/// As shipped, but that there is time for another exchange after one in vain.
fn upstream_parameters((budget_ratio, budget_per_second): (f64, f64)) -> UpstreamParameters {
    let usual = UpstreamParameters::default();
    let max_retransmit = COPIES as u32 - 1;
    UpstreamParameters {
        retry: RetryParameters { budget_ratio, budget_per_second, ..usual.retry },
        transmission: TransmissionParameters { max_retransmit, retry_jitter: 0.0, ..usual.transmission },
        retransmit: RetransmitParameters { schedule: CopySchedule::Doubling, ..usual.retransmit },
        rto: RtoParameters { estimator: Estimator::Fixed, carry: Carry::Never, ..usual.rto },
        max_wait: Duration::from_secs(120),
        ..usual
    }
}

impl Bench {
    fn new(seed: u64) -> Self {
        let upstream = |number: usize| Upstream {
            name: format!("origin{number}").into(),
            authority: (number > 0)
                .then(|| Authority { host: Host::Address(origin(number).ip()), port: origin(number).port() }),
        };
        let route = |number: usize| Route {
            host: None,
            path: vec![number.to_string().into_bytes().into()],
            upstream: UpstreamId(number as u32),
            strip: false,
        };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: RATES.map(upstream_parameters).into(),
            relay: coapway_relay::Parameters {
                upstreams: (0..3).map(upstream).collect(),
                routes: (1..3).map(route).collect(),
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: Patience::Off,
            limits: Limits::default(),
        };
        Self {
            proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(seed)),
            now: Instant::ZERO,
            wake: None,
            message_id: 0,
            sent: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        let mut replies = Vec::new();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (local, remote) = (transmit.peer.local, transmit.peer.remote);
                    let message = Datagram::parse(transmit.datagram).expect("well formed");
                    let is_upstream = matches!(SocketRole::of(local.socket), SocketRole::Upstream { .. });
                    let mut reply = |kind| {
                        let mut bytes = Vec::new();
                        datagram::encode(
                            &mut bytes,
                            kind,
                            message.message_id,
                            b"",
                            &Content::bare(Code::EMPTY),
                        );
                        replies.push((local, remote, bytes));
                    };
                    if is_upstream && message.content.code == Code::EMPTY {
                        if message.message_type == MessageType::Confirmable {
                            reply(MessageType::Reset);
                        }
                    } else if is_upstream {
                        self.sent.push((local.socket, remote, transmit.datagram.to_vec()));
                    } else if message.content.code.is_response() {
                        self.answers.push(message.content.code);
                        if message.message_type == MessageType::Confirmable {
                            reply(MessageType::Acknowledgement);
                        }
                    }
                }
                Output::Wait { until } => {
                    self.wake = until;
                    break;
                }
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
            }
        }
        for (Local { socket, .. }, remote, bytes) in replies {
            self.give(Input::Datagram {
                local: Local { socket, address: None },
                remote,
                bytes: &bytes,
                truncated: false,
            });
        }
    }

    fn wait_until(&mut self, until: Instant) {
        while let Some(wake) = self.wake.filter(|&wake| wake <= until) {
            self.now = self.now.max(wake);
            self.give(Input::Wake);
        }
        self.now = until;
    }

    fn ask(&mut self, of: usize) {
        (self.sent, self.answers) = (Vec::new(), Vec::new());
        self.message_id = self.message_id.wrapping_add(1);
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        writer.push(OptionNumber::URI_PATH, of.to_string().as_bytes());
        let content = Content { code: Code::GET, options: writer.finish(), payload: b"" };
        let mut bytes = Vec::new();
        let token = self.message_id.to_be_bytes();
        datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, &token, &content);
        self.give(Input::Datagram { local: LISTENER, remote: CLIENT, bytes: &bytes, truncated: false });
    }

    /// Lets the proxy do what it does next.
    fn step(&mut self) {
        let next = self.wake.expect("something is waited for");
        self.wait_until(next.max(self.now));
    }

    /// When each copy left, once there are so many.
    fn copies(&mut self, count: usize) -> Vec<Instant> {
        let mut left = vec![self.now];
        while left.len() < count {
            self.step();
            left.resize(self.sent.len(), self.now);
        }
        left
    }

    /// The origin answers a copy.
    fn answer(&mut self, place: usize) {
        let (socket, remote, bytes) = self.sent[place].clone();
        let request = Datagram::parse(&bytes).expect("well formed");
        let (message_id, token) = (request.message_id, request.token);
        let content = Content::bare(Code::CONTENT);
        let mut reply = Vec::new();
        datagram::encode(&mut reply, MessageType::Acknowledgement, message_id, token, &content);
        let local = Local { socket, address: None };
        self.give(Input::Datagram { local, remote, bytes: &reply, truncated: false });
    }
}

/// How often it was issued anew, and how often that was not covered.
fn run(seed: u64) -> (u32, u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bench = Bench::new(seed);
    let mut accounts = RATES.map(Account::new);
    let (mut anew, mut refused) = (0, 0);
    for number in 0..3000 {
        // Quiet times and busy ones, so that accounts are full, empty and in between.
        let is_busy = number / 100 % 2 == 1;
        let gap = random.u64(..if is_busy { 400_000 } else { 6_000_000 });
        bench.wait_until(bench.now + Duration::from_micros(gap));
        let of = random.usize(1..3);
        let mood = match random.u32(..10) {
            5.. if is_busy => Mood::Mute,
            _ => Mood::Answers(random.usize(..if is_busy { COPIES } else { 2 })),
        };
        bench.ask(of);
        let place = format!("seed {seed}, request {number}: {mood:?}");
        assert_eq!(bench.sent.len(), 1, "{place}");
        for account in [0, of] {
            let amount = accounts[account].per_first_copy;
            accounts[account].deposit(amount);
        }
        let copies = if let Mood::Answers(before) = mood { before + 1 } else { COPIES };
        let left = bench.copies(copies);
        // The second is the protocol's own.
        for account in [0, of].repeat(copies.saturating_sub(2)) {
            accounts[account].withdraw();
        }
        let mut answered = copies - 1;
        if mood == Mood::Mute {
            // The last wait is twice as long as the one before.
            let over = left[3] + 2 * left[3].since(left[2]);
            while bench.sent.len() == COPIES && bench.wake.is_some_and(|wake| wake <= over + TICK) {
                bench.step();
            }
            // The wait after the last copy counts as a copy when it is over.
            for account in [0, of] {
                accounts[account].withdraw();
            }
            let own = accounts[of].balance(bench.now);
            let balances = if own >= ONE { vec![own, accounts[0].balance(bench.now)] } else { vec![own] };
            let is_covered = balances.iter().all(|&balance| balance >= ONE);
            let is_anew = bench.sent.len() > COPIES;
            let is_close = balances.iter().any(|balance| (balance - ONE).abs() <= EITHER_WAY);
            assert!(is_anew == is_covered || is_close, "{place}: {balances:?}, anew: {is_anew}");
            if is_anew {
                for account in [0, of] {
                    accounts[account].withdraw();
                }
                answered = COPIES;
            }
            anew += u32::from(is_anew);
            refused += u32::from(!is_anew);
        }
        bench.answer(answered);
        assert_eq!(bench.sent.len(), answered + 1, "{place}, waited {:?}", bench.now.since(left[0]));
        assert_eq!(bench.answers, [Code::CONTENT], "{place}");
        accounts.iter().for_each(Account::check);
    }
    assert!(accounts.iter().all(|account| account.overflown > 0), "{accounts:?}");
    (anew, refused)
}

#[test]
fn what_is_deposited_and_withdrawn_makes_the_balance() {
    for seed in 1..=8 {
        let (anew, refused) = run(seed);
        assert!(anew > 100 && refused > 100, "both happen: {anew} and {refused}");
    }
}
