//! Those who ask: clients with the protocol's own retransmission, without more state than they need.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_time::Instant;

use crate::chance::{Chance, of_request};
use crate::dice::{Dice, Use};
use crate::exchange::{Exchange, Kind, Outcome};
use crate::path::duration;
use crate::post::Post;
use crate::queue::Event;
use crate::scenario::{ClientLaw, Pace};

/// What a request is known by, at the end of its query.
const QUERY: &[u8] = b"k=";
/// No client asks again sooner after it asked: where neither path nor thought takes time, time goes on all the same.
const LEAST_BETWEEN: Duration = Duration::from_micros(100);

/// All clients of a world.
#[derive(Debug)]
pub(crate) struct Clients<'s> {
    law: &'s ClientLaw,
    seed: u64,
    each: Vec<Client>,
    /// How much of its level an exchange takes from the one before.
    carried: f64,
    /// Nobody asks from then on.
    until: Instant,
    most: u32,
    templates: [Template; 3],
    /// Whose patience ends when, in order.
    patience: VecDeque<(Instant, u32)>,
    pub(crate) open: u32,
}

#[derive(Debug, Default)]
struct Client {
    /// Its exchanges, first to last; their places are their Message IDs too.
    asked: Vec<u32>,
    level: f64,
}

/// A request but for Message ID, token and number.
#[derive(Debug)]
struct Template {
    bytes: Vec<u8>,
    number: usize,
}

impl Template {
    fn new(kind: Kind, payload: usize) -> Self {
        let (message_type, code, payload) = match kind {
            Kind::Get => (MessageType::Confirmable, Code::GET, 0),
            Kind::Post => (MessageType::Confirmable, Code::POST, payload),
            Kind::Non => (MessageType::NonConfirmable, Code::GET, 0),
        };
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::URI_PATH, b"r");
        writer.push(OptionNumber::URI_QUERY, &[QUERY, &[b'0'; 8]].concat());
        let payload = vec![b'p'; payload];
        let content = Content { code, options: writer.finish(), payload: &payload };
        datagram::encode(&mut bytes, message_type, 0, &[0; 4], &content);
        let number = bytes.windows(2).position(|window| window == QUERY).unwrap_or_default() + QUERY.len();
        Self { bytes, number }
    }

    fn write(&self, buffer: &mut Vec<u8>, message_id: u16, exchange: u32) {
        buffer.extend_from_slice(&self.bytes);
        buffer[2..4].copy_from_slice(&message_id.to_be_bytes());
        buffer[4..8].copy_from_slice(&exchange.to_be_bytes());
        let digits = &mut buffer[self.number..self.number + 8];
        for (place, digit) in digits.iter_mut().enumerate() {
            let nibble = (exchange >> (28 - 4 * place) & 15) as usize;
            *digit = b"0123456789abcdef"[nibble];
        }
    }
}

/// The exchange that a request of the proxy belongs to.
pub(crate) fn exchange_of(content: &Content<'_>) -> Option<u32> {
    let queries = content.options.values(OptionNumber::URI_QUERY);
    let digits = queries.filter_map(|query| query.strip_prefix(QUERY)).last()?;
    digits.iter().try_fold(0_u32, |number, &digit| {
        let value = char::from(digit).to_digit(16)?;
        number.checked_shl(4).map(|number| number | value)
    })
}

pub(crate) fn address(client: u32) -> SocketAddr {
    let [_, _, high, low] = client.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, high, low)), 40_000)
}

/// The client at an address.
pub(crate) fn client_at(address: &SocketAddr) -> u32 {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_bits() & 0xFFFF,
        IpAddr::V6(_) => 0,
    }
}

impl<'s> Clients<'s> {
    pub(crate) fn new(
        law: &'s ClientLaw,
        carried: Option<f64>,
        until: Duration,
        most: u32,
        seed: u64,
    ) -> Self {
        let template = |kind| Template::new(kind, law.payload);
        Self {
            law,
            seed,
            each: (0..law.count).map(|_| Client::default()).collect(),
            carried: carried.unwrap_or(0.0),
            until: Instant::ZERO + until,
            most,
            templates: [template(Kind::Get), template(Kind::Post), template(Kind::Non)],
            patience: VecDeque::new(),
            open: 0,
        }
    }

    /// All clients begin.
    pub(crate) fn begin(&mut self, post: &mut Post<'_>) {
        for client in 0..self.law.count {
            let at = match self.law.pace {
                _ if self.law.together => 0.0,
                Pace::Rate(rate) => self.gap(client, 0, f64::from(self.law.count) / rate),
                Pace::Think(think) => {
                    Dice::new(self.seed, Use::Asking, client.into(), 0).between(0.0, think.max(0.1))
                }
            };
            post.queue.push(Instant::ZERO + duration(at), Event::Ask { client });
        }
    }

    fn gap(&self, client: u32, number: u32, mean: f64) -> f64 {
        Chance { seed: self.seed }.gap(client, number, mean)
    }

    /// When the first of those who still wait has waited long enough.
    pub(crate) fn next_patience(&self) -> Option<Instant> {
        self.patience.front().map(|(at, _)| *at)
    }

    /// Those who have waited long enough by now give up.
    pub(crate) fn lose_patience(&mut self, exchanges: &mut [Exchange], post: &mut Post<'_>, now: Instant) {
        while let Some(&(at, number)) = self.patience.front().filter(|(at, _)| *at <= now) {
            self.patience.pop_front();
            self.settle(&mut exchanges[number as usize], Outcome::Silence, Duration::ZERO, at, post);
        }
    }

    /// A client asks.
    pub(crate) fn ask(
        &mut self,
        client: u32,
        exchanges: &mut Vec<Exchange>,
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let place = &mut self.each[client as usize];
        let (id, number) = (exchanges.len() as u32, place.asked.len() as u32);
        if now >= self.until || id >= self.most || self.law.each.is_some_and(|each| number >= each) {
            return;
        }
        place.asked.push(id);
        let fresh = Dice::new(self.seed, Use::Level, client.into(), number.into()).normal();
        place.level = match number {
            0 => fresh,
            _ => self.carried * place.level + libm::sqrt(1.0 - self.carried * self.carried) * fresh,
        };
        let method = Dice::new(self.seed, Use::Method, client.into(), number.into()).share();
        let mix_of = self.law.mix;
        let kind = match method {
            _ if method < mix_of.post => Kind::Post,
            _ if method < mix_of.post + mix_of.non => Kind::Non,
            _ => Kind::Get,
        };
        let mut timeout = Dice::new(self.seed, Use::ClientTimeout, client.into(), number.into());
        exchanges.push(Exchange {
            client,
            number,
            kind,
            errand: of_request(client, number),
            level: place.level,
            asked: now,
            settled: now,
            outcome: Outcome::Open,
            client_copies: 0,
            acknowledged: false,
            client_timeout: timeout.between(2.0, 3.0),
            to_client: 0,
            copies: 0,
            sent: now,
            first_heard: u16::MAX,
            executions: 0,
        });
        self.open += 1;
        self.patience.push_back((now + self.law.patience, id));
        self.send(id, exchanges, post, now);
        if let Pace::Rate(rate) = self.law.pace {
            let gap = self.gap(client, number + 1, f64::from(self.law.count) / rate);
            post.queue.push(now + duration(gap), Event::Ask { client });
        }
    }

    fn send(&mut self, id: u32, exchanges: &mut [Exchange], post: &mut Post<'_>, now: Instant) {
        let exchange = &mut exchanges[id as usize];
        exchange.client_copies += 1;
        let template = &self.templates[exchange.kind as usize];
        let message_id = exchange.number as u16;
        let buffer = post.buffers.fill(|buffer| template.write(buffer, message_id, id));
        let copies = exchange.client_copies;
        if exchange.kind != Kind::Non {
            let timeout = duration(exchange.client_timeout * f64::from(1_u32 << (copies - 1)));
            post.queue.push(now + timeout, Event::ClientTimeout { exchange: id, copies });
        }
        post.client_sends(exchange.client, Some((exchange, copies.into())), buffer, now);
    }

    /// A client has waited for an Acknowledgement to this many copies.
    pub(crate) fn handle_timeout(
        &mut self,
        id: u32,
        copies: u8,
        exchanges: &mut [Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let exchange = &mut exchanges[id as usize];
        if exchange.outcome != Outcome::Open || exchange.acknowledged || exchange.client_copies != copies {
            return;
        }
        if u32::from(copies) > TransmissionParameters::default().max_retransmit {
            self.settle(exchange, Outcome::Silence, Duration::ZERO, now, post);
        } else {
            self.send(id, exchanges, post, now);
        }
    }

    /// A datagram comes to a client.
    pub(crate) fn handle_datagram(
        &mut self,
        client: u32,
        bytes: &[u8],
        exchanges: &mut [Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let Ok(message) = Datagram::parse(bytes) else { return };
        if message.content.code == Code::EMPTY {
            let Some(exchange) = self.by_message_id(client, message.message_id, exchanges) else { return };
            match message.message_type {
                MessageType::Acknowledgement => exchange.acknowledged = true,
                MessageType::Reset => self.settle(exchange, Outcome::Refused, Duration::ZERO, now, post),
                MessageType::Confirmable | MessageType::NonConfirmable => {}
            }
            return;
        }
        if message.message_type == MessageType::Confirmable {
            let empty = datagram::empty(MessageType::Acknowledgement, message.message_id);
            let buffer = post.buffers.fill(|buffer| buffer.extend_from_slice(&empty));
            post.client_sends(client, None, buffer, now);
        }
        let Some(exchange) = exchange_by_token(message.token, exchanges) else { return };
        let outcome = match message.content.code.is_success() {
            true => Outcome::Answered,
            false if message.content.payload.starts_with(b"outcome-unknown") => Outcome::Unknown,
            false => Outcome::Refused,
        };
        self.settle(exchange, outcome, told_to_wait(&message.content), now, post);
    }

    fn by_message_id<'e>(
        &self,
        client: u32,
        message_id: u16,
        exchanges: &'e mut [Exchange],
    ) -> Option<&'e mut Exchange> {
        let asked = &self.each.get(client as usize)?.asked;
        let newest = (asked.len() as u32).checked_sub(1)?;
        let number = newest.checked_sub(u32::from((newest as u16).wrapping_sub(message_id)))?;
        exchanges.get_mut(*asked.get(number as usize)? as usize)
    }

    /// Who asks again after an answer does so no sooner than it was told to, `wait` from now.
    fn settle(
        &mut self,
        exchange: &mut Exchange,
        outcome: Outcome,
        wait: Duration,
        now: Instant,
        post: &mut Post<'_>,
    ) {
        if exchange.outcome != Outcome::Open {
            return;
        }
        (exchange.outcome, exchange.settled) = (outcome, now);
        self.open -= 1;
        if let Pace::Think(think) = self.law.pace {
            let pause = self.gap(exchange.client, exchange.number + 1, think);
            let at = (now + duration(pause).max(wait)).max(exchange.asked + LEAST_BETWEEN);
            post.queue.push(at, Event::Ask { client: exchange.client });
        }
    }
}

/// How long 4.29 or 5.03 asks its receiver to stay away (RFC 8516 §4, RFC 7252 §5.9.3.4).
fn told_to_wait(content: &Content<'_>) -> Duration {
    if !matches!(content.code, Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE) {
        return Duration::ZERO;
    }
    let seconds = content.options.first(OptionNumber::MAX_AGE).map_or(60, |value| {
        value.iter().take(4).fold(0, |seconds: u64, &byte| seconds << 8 | u64::from(byte))
    });
    Duration::from_secs(seconds)
}

/// The exchange whose token this is.
pub(crate) fn exchange_by_token<'e>(token: &[u8], exchanges: &'e mut [Exchange]) -> Option<&'e mut Exchange> {
    let id = u32::from_be_bytes(token.try_into().ok()?);
    exchanges.get_mut(id as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_carries_its_number_through_the_proxy() {
        for kind in [Kind::Get, Kind::Post, Kind::Non] {
            let mut bytes = Vec::new();
            Template::new(kind, 20).write(&mut bytes, 0x1234, 0xDEAD_0007);
            let message = Datagram::parse(&bytes).expect("a message");
            assert_eq!(exchange_of(&message.content), Some(0xDEAD_0007));
            assert_eq!((message.message_id, message.token), (0x1234, &0xDEAD_0007_u32.to_be_bytes()[..]));
        }
    }

    #[test]
    fn addresses_name_clients() {
        for client in [0, 1, 255, 256, 64_999] {
            assert_eq!(client_at(&address(client)), client);
        }
    }
}
