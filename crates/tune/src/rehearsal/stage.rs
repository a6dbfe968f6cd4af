//! Requests that come by chance, one proxy, and one origin behind a path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coapway_endpoint::SocketId;
use coapway_message::{Code, Datagram, MessageType};
use coapway_proxy::{SocketRole, UpstreamParameters};
use smallvec::SmallVec;

use super::node::{
    Bytes, Kind, Node, ORIGIN, Sent, Write, acknowledgement, client, number, request, response,
};
use super::weather::{Way, Weather, mixed};
use crate::path::Path;
use crate::predictor::Run;

/// A separate response is sent so many times at the most.
const RESPONSES: u32 = 5;
/// Its first wait for an Acknowledgement, in µs.
const RESPONSE_WAIT: u64 = 2_500_000;

/// So many times `max_wait` pass before a run counts.
const LONGEST_WAITS: f64 = 4.0;

/// What is known of one request.
#[derive(Clone, Debug, Default)]
struct Request {
    asked: u64,
    copies: u32,
    /// Whether a copy came back, or is on its way to.
    comes_back: bool,
    spurious: u32,
    /// Those the origin has executed.
    executed: SmallVec<[u16; 2]>,
    answered: Option<(u64, Code)>,
    once: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A client asks.
    Ask(u32),
    /// A datagram of the origin reaches the proxy.
    Arrive(u32, Bytes),
    /// A client acknowledges a separate response.
    Acknowledge(u32, Bytes),
    /// The origin sends a separate response, for the n-th time.
    Respond(usize, u32),
}

struct Separate {
    request: u32,
    socket: u32,
    token: SmallVec<[u8; 8]>,
    acknowledged: bool,
}

/// One run.
pub(crate) struct Stage<'p> {
    path: &'p Path,
    weather: Weather<'p>,
    node: Node,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    entered: u64,
    requests: Vec<Request>,
    separate: Vec<Separate>,
    random: fastrand::Rng,
    now: u64,
    wanted: usize,
    open: usize,
}

/// What so many requests went through, after a start that is not counted: whoever begins has learned nothing
/// yet, and does so once, and where more is asked than can be served the queue has to become what it will be.
/// That takes a few of the longest waits; it is a quarter as many requests at least, and twice as many at most.
pub(crate) fn run(path: &Path, policy: &UpstreamParameters, requests: usize, seed: u64) -> Run {
    let settled = path.load * policy.max_wait.as_secs_f64() * LONGEST_WAITS;
    let warming_up = (settled as usize).clamp(requests / 4, 2 * requests);
    let mut stage = Stage::new(path, policy, None, requests + warming_up, seed);
    stage.play();
    stage.run(warming_up)
}

impl<'p> Stage<'p> {
    pub(crate) fn new(
        path: &'p Path,
        policy: &UpstreamParameters,
        records: Option<Write>,
        wanted: usize,
        seed: u64,
    ) -> Self {
        Self {
            path,
            weather: Weather::new(path, seed),
            node: Node::new(policy, records, mixed(seed)),
            queue: BinaryHeap::new(),
            entered: 0,
            requests: Vec::with_capacity(wanted),
            separate: Vec::new(),
            random: fastrand::Rng::with_seed(mixed(seed ^ 0x51)),
            now: 0,
            wanted,
            open: 0,
        }
    }

    /// What records came to.
    #[cfg(test)]
    pub(crate) fn into_written(self) -> Vec<u8> {
        self.node.written
    }

    /// Lets everything happen until all are answered.
    pub(crate) fn play(&mut self) {
        self.go_on();
        self.node.close(self.now);
    }

    fn go_on(&mut self) {
        self.enter(0, Happening::Ask(0));
        while self.open > 0 || self.requests.len() < self.wanted {
            let next = self.queue.peek().map(|Reverse((at, ..))| *at);
            let wake = self.node.wake();
            match (next, wake) {
                (Some(at), wake) if wake.is_none_or(|wake| at <= wake) => {
                    let Some(Reverse((at, _, happening))) = self.queue.pop() else { return };
                    self.now = self.now.max(at);
                    self.happen(happening);
                }
                (_, Some(wake)) => {
                    self.now = self.now.max(wake);
                    self.node.tick(self.now);
                }
                (_, None) => return,
            }
            for sent in self.node.take_sent() {
                if sent.is_for_client() { self.reach_client(&sent) } else { self.reach_origin(&sent) }
            }
        }
    }

    fn enter(&mut self, at: u64, happening: Happening) {
        self.entered += 1;
        self.queue.push(Reverse((at, self.entered, happening)));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ask(number) => self.ask(number),
            Happening::Arrive(socket, bytes) => {
                self.node.arrive(SocketId(socket), ORIGIN, &bytes, self.now);
            }
            Happening::Acknowledge(number, bytes) => {
                self.node.arrive(SocketRole::Listener(0).socket(), client(number), &bytes, self.now);
            }
            Happening::Respond(place, times) => self.respond(place, times),
        }
    }

    fn ask(&mut self, number: u32) {
        let kind = Kind {
            confirmable: self.weather.draw(number, 0, 8) >= self.path.non_confirmable,
            once: self.weather.draw(number, 0, 9) < self.path.once,
        };
        self.requests.push(Request { asked: self.now, once: kind.once, ..Request::default() });
        self.open += 1;
        let bytes = request(number, kind);
        self.node.arrive(SocketRole::Listener(0).socket(), client(number), &bytes, self.now);
        if self.requests.len() < self.wanted {
            // As independent clients ask: a Poisson process.
            let pause = -(1.0 - self.random.f64()).ln() / self.path.load.max(1e-3);
            self.enter(self.now + (pause * 1e6) as u64, Happening::Ask(number + 1));
        }
    }

    fn reach_client(&mut self, sent: &Sent) {
        let Ok(message) = Datagram::parse(&sent.bytes) else { return };
        if message.content.code == Code::EMPTY {
            return;
        }
        let Ok(token) = message.token.try_into() else { return };
        let number = u32::from_be_bytes(token);
        if message.message_type == MessageType::Confirmable {
            let bytes = acknowledgement(message.message_id);
            self.enter(self.now, Happening::Acknowledge(number, bytes));
        }
        if let Some(request) = self.requests.get_mut(number as usize)
            && request.answered.is_none()
        {
            request.answered = Some((self.now, message.content.code));
            self.open -= 1;
        }
    }

    fn reach_origin(&mut self, sent: &Sent) {
        let Ok(message) = Datagram::parse(&sent.bytes) else { return };
        if message.content.code == Code::EMPTY {
            let place = usize::from(message.message_id);
            let lost = self.random.f64();
            let lost = self.weather.loses(Way::There, lost, self.now);
            if let (Some(separate), false) = (self.separate.get_mut(place), lost) {
                separate.acknowledged = true;
            }
            return;
        }
        let Some(number) = number(&message.content) else { return };
        let Some(request) = self.requests.get_mut(number as usize) else { return };
        let copy = request.copies;
        request.copies += 1;
        request.spurious += u32::from(request.comes_back);
        let round_trip = self.weather.round_trip(number, copy);
        let (there, back) = (self.weather.draw(number, copy, 1), self.weather.draw(number, copy, 2));
        if self.weather.loses(Way::There, there, self.now) {
            return;
        }
        let at_origin = self.now + round_trip / 2;
        let is_new = !request.executed.contains(&message.message_id);
        if is_new {
            request.executed.push(message.message_id);
        }
        let comes_back = !self.weather.loses(Way::Back, back, at_origin);
        request.comes_back |= comes_back;
        let thinking = match &self.path.separate {
            Some((share, thinking)) if self.weather.draw(number, 0, 3) < *share => {
                Some((thinking.at(self.weather.draw(number, 0, 4)) * 1000.0) as u64)
            }
            Some(_) | None => None,
        };
        let confirmable = message.message_type == MessageType::Confirmable;
        let (id, token) = (message.message_id, message.token);
        let reply = match (confirmable, thinking) {
            (true, None) => response(MessageType::Acknowledgement, id, token),
            (true, Some(_)) => acknowledgement(id),
            (false, _) => response(MessageType::NonConfirmable, id, token),
        };
        if let (Some(thinking), true, true) = (thinking, confirmable, is_new) {
            let separate =
                Separate { request: number, socket: sent.from.0, token: token.into(), acknowledged: false };
            self.separate.push(separate);
            let place = self.separate.len() - 1;
            self.enter(at_origin + thinking, Happening::Respond(place, 0));
        }
        if comes_back {
            self.enter(self.now + round_trip, Happening::Arrive(sent.from.0, reply));
        }
    }

    fn respond(&mut self, place: usize, times: u32) {
        let Some(separate) = self.separate.get(place) else { return };
        if separate.acknowledged || times == RESPONSES {
            return;
        }
        let (number, socket, copy) = (separate.request, separate.socket, 0x800 + times);
        let bytes = response(MessageType::Confirmable, place as u16, &separate.token);
        let draw = self.weather.draw(number, copy, 2);
        if !self.weather.loses(Way::Back, draw, self.now) {
            let after = self.weather.round_trip(number, copy) / 2;
            self.enter(self.now + after, Happening::Arrive(socket, bytes));
        }
        self.enter(self.now + (RESPONSE_WAIT << times), Happening::Respond(place, times + 1));
    }

    /// What requests went through but for the first ones.
    pub(crate) fn run(&self, first: usize) -> Run {
        let requests = self.requests.get(first..).unwrap_or_default();
        let count = requests.len().max(1) as f64;
        let sum = |of: fn(&Request) -> u32| requests.iter().map(|one| f64::from(of(one))).sum::<f64>();
        let mut times: Vec<f64> = requests
            .iter()
            .filter_map(|one| {
                one.answered.filter(|(_, code)| *code == Code::CONTENT).map(|(at, _)| at - one.asked)
            })
            .map(|micros| micros as f64 / 1000.0)
            .collect();
        times.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let place = (share * times.len() as f64).ceil() as usize;
            times.get(place.max(1) - 1).copied().unwrap_or(0.0)
        };
        let once = sum(|one| u32::from(one.once)).max(1.0);
        let unanswered = |one: &Request| one.answered.is_none_or(|(_, code)| code != Code::CONTENT);
        let unknown = requests.iter().filter(|one| one.once && one.copies > 0 && unanswered(one)).count();
        Run {
            mean: times.iter().sum::<f64>() / times.len().max(1) as f64,
            median: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            answered: times.len() as f64 / count,
            copies: sum(|one| one.copies) / count,
            spurious: sum(|one| one.spurious) / count,
            unknown: unknown as f64 / once,
        }
    }
}
