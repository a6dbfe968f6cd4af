//! One end of a hop with all its peers.

use std::collections::VecDeque;
use std::net::IpAddr;

use coapway_message::{Code, Datagram, ExchangeId, Failure, Malformed, MessageType};
use coapway_time::{InOrder, Instant, Timers};

use super::by_message_id::ByMessageId;
use super::duplicates::Duplicates;
use super::message::{ActiveParts, Message};
use super::message_id::MessageIds;
use super::outbox::{Outbox, Transmit};
use super::peers::{Peers, Sender};
use super::pending::{Deadline, Due, PendingRequests};
use super::preserved::PreservedTokens;
use super::seed::Seed;
use super::slots::Slots;
use super::turns::Turns;
use crate::event::{Counters, Event, Gate, Received};
use crate::matching::Tokens;
use crate::parameters::EndpointParameters;
use crate::peer::{Local, Peer, SocketId};

/// One end of a hop: requests of peers in, requests of ours out, over datagrams.
///
/// Each method returns at once. After any of them, drain [`Endpoint::poll_event`] and
/// [`Endpoint::poll_transmit`], and wake it at [`Endpoint::poll_timeout`].
#[derive(Debug)]
pub struct Endpoint {
    pub(super) parameters: EndpointParameters,
    pub(super) tokens: Tokens,
    /// Everything else names them by their numbers.
    pub(super) peers: Peers,
    pub(super) message_ids: MessageIds,
    pub(super) duplicates: Duplicates,
    /// Requests of peers that are not answered yet.
    pub(super) pending: PendingRequests,
    /// Messages of ours under way.
    pub(super) messages: Slots<Message>,
    /// What those need that are not acknowledged.
    pub(super) active: ActiveParts,
    pub(super) by_message_id: ByMessageId,
    /// Separate responses and whose turn it is.
    pub(super) turns: Turns,
    /// Tokens of the caller's.
    pub(super) preserved: PreservedTokens,
    pub(super) timers: Timers<Deadline>,
    /// When requests of peers are acknowledged although they are not answered.
    pub(super) acknowledgements: InOrder<ExchangeId>,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
    pub(super) random: fastrand::Rng,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// An endpoint without peers.
    pub fn new(parameters: EndpointParameters, seed: Seed) -> Self {
        let peer = parameters.peer;
        let mut key = [0; 16];
        key.copy_from_slice(&seed.0[..16]);
        Self {
            parameters,
            tokens: Tokens::new(key),
            peers: Peers::new(seed.part(1).hasher()),
            message_ids: MessageIds::new(fastrand::Rng::with_seed(seed.word(2))),
            duplicates: Duplicates::new(
                parameters.duplicates.memory,
                peer.exchange_lifetime(),
                peer.non_lifetime(),
                seed.part(2).hasher(),
            ),
            pending: PendingRequests::new(),
            messages: Slots::new(),
            active: ActiveParts::default(),
            by_message_id: ByMessageId::new(seed.part(3).hasher()),
            turns: Turns::new(seed.part(4).hasher()),
            preserved: PreservedTokens::new(seed.part(5).hasher()),
            timers: Timers::new(),
            acknowledgements: InOrder::default(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed.word(3)),
            counters: Counters::default(),
        }
    }

    /// Takes over changed parameters; what is under way or remembered keeps its own. Of memory that is
    /// less now, what must not be forgotten is kept all the same.
    pub fn set_parameters(&mut self, parameters: EndpointParameters) {
        let peer = parameters.peer;
        self.parameters = parameters;
        let memory = parameters.duplicates.memory;
        let (confirmable, non_confirmable) = (peer.exchange_lifetime(), peer.non_lifetime());
        self.counters.forgotten += self.duplicates.set(&mut self.peers, memory, confirmable, non_confirmable);
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Requests of peers that are not answered yet.
    pub fn pending_requests(&self) -> usize {
        self.pending.len()
    }

    /// Messages of ours under way, and separate responses that wait for their turn.
    pub fn outstanding(&self) -> usize {
        self.messages.len() + self.turns.waiting()
    }

    /// Whether nothing is under way at one of our sockets: no request there is unanswered, and no
    /// message of ours is on its way from there or waits for its turn.
    ///
    /// It looks at everything that is under way anywhere.
    pub fn is_idle_at(&self, socket: SocketId) -> bool {
        let requests = self.pending.iter().map(|pending| pending.peer);
        let messages = self.messages.iter().map(|message| message.peer);
        let mut peers = requests.chain(messages).chain(self.turns.peers());
        peers.all(|peer| self.peers.socket(peer) != socket)
    }

    /// Separate responses that wait for their turn leave now, once and Non-confirmable (RFC 7252
    /// §5.2.3): nobody will be there when it comes.
    pub fn hurry(&mut self, now: Instant) {
        for place in self.turns.places() {
            if let Some(timer) = self.turns.timer(place) {
                self.timers.cancel(timer);
            }
            self.turn_did_not_come(place, now);
        }
    }

    /// Separate responses that wait for their turn.
    pub fn waiting_responses(&self) -> usize {
        self.turns.waiting()
    }

    /// Tokens of the caller's that are in use or rest.
    pub fn preserved_tokens(&self) -> usize {
        self.preserved.len()
    }

    /// Messages of peers that are remembered.
    pub fn remembered(&self) -> usize {
        self.duplicates.len()
    }

    /// Peers for which Message IDs are kept.
    pub fn peers(&self) -> usize {
        self.message_ids.len()
    }

    /// A datagram came from `peer`.
    ///
    /// `gate` is asked only about a request that would be new, before anything is remembered. Repeats
    /// are answered from memory.
    /// Shape:  what is returned borrows from `bytes`; everything else is told by events.
    /// Source: RFC 7252 §4.2, §4.3, §5.2, §5.3.2, §8.1.
    pub fn handle_datagram<'d>(
        &mut self,
        peer: &Peer,
        bytes: &'d [u8],
        now: Instant,
        gate: impl FnOnce() -> Gate,
    ) -> Received<'d> {
        if is_group(&peer.local) {
            self.counters.group += 1;
            return Received::Nothing;
        }
        if self.outbox.is_empty() {
            self.peers.tidy();
        }
        let sender = &self.peers.sender(peer);
        let parsed = Datagram::parse(bytes);
        let datagram = match &parsed {
            Ok(datagram) => datagram,
            Err(malformed) => {
                self.handle_malformed(sender, malformed, now);
                return Received::Nothing;
            }
        };
        let &Datagram { message_type, message_id, content, .. } = datagram;
        match (message_type, content.code.class()) {
            (MessageType::Acknowledgement, 0) => self.handle_acknowledgement(sender, message_id, now),
            (MessageType::Reset, _) if content.code == Code::EMPTY => {
                self.handle_reset(sender, message_id, now);
            }
            (MessageType::Confirmable, _) if content.code == Code::EMPTY => {
                self.outbox.empty_to(sender, MessageType::Reset, message_id);
            }
            (MessageType::Confirmable | MessageType::NonConfirmable, 0) if content.code.is_request() => {
                return self.handle_request(sender, bytes, datagram, now, gate);
            }
            (
                MessageType::Confirmable | MessageType::NonConfirmable | MessageType::Acknowledgement,
                2..=5,
            ) => {
                return self.handle_response(sender, datagram, now);
            }
            (MessageType::Reset, _) => self.counters.malformed += 1,
            // A code of no class that means anything here: rejected like any such message, and no
            // answer to the request it claims to answer (RFC 7252 §4.2, §5.7.1).
            (MessageType::Confirmable | MessageType::NonConfirmable | MessageType::Acknowledgement, _) => {
                self.counters.malformed += 1;
                if message_type == MessageType::Confirmable {
                    self.outbox.empty_to(sender, MessageType::Reset, message_id);
                }
                self.fail_unusable(sender, message_type, message_id, datagram.token, now);
            }
        }
        Received::Nothing
    }

    /// Something came in place of the response to a request of ours: waiting on would bring more of the
    /// kind.
    fn fail_unusable(
        &mut self,
        sender: &Sender<'_>,
        message_type: MessageType,
        message_id: u16,
        token: &[u8],
        now: Instant,
    ) {
        let Some(exchange) = self.live_request(sender, token) else { return };
        let is_of = || self.under_way(sender, message_id) == Some(exchange);
        if message_type != MessageType::Acknowledgement || is_of() {
            self.fail(exchange, Failure::Unusable, now);
        }
    }

    fn handle_malformed(&mut self, sender: &Sender<'_>, malformed: &Malformed<'_>, now: Instant) {
        let &Malformed::Format { message_type, message_id, code, token, .. } = malformed else {
            self.counters.ignored += 1;
            return;
        };
        self.counters.malformed += 1;
        if message_type == MessageType::Confirmable {
            self.outbox.empty_to(sender, MessageType::Reset, message_id);
        }
        // A response whose header and token are ours but whose rest is broken ends the exchange
        // (RFC 7252 §5.7.1): more of the kind would follow.
        if matches!(code.class(), 2..=5)
            && let Some(token) = token
        {
            self.fail_unusable(sender, message_type, message_id, token, now);
        }
    }

    /// Lets everything happen whose time has come at `now`.
    ///
    /// After a late wake that may be a copy of every message under way. They leave in portions, so
    /// that they never stand in memory all at once: [`Endpoint::poll_timeout`] is over until all left.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.outbox.is_empty() {
            self.peers.tidy();
        }
        self.duplicates.expire_overdue(&mut self.peers, now);
        let most = self.outbox.len() + self.events.len() + AT_ONCE;
        while self.outbox.len() + self.events.len() < most
            && let Some(exchange) = self.acknowledgements.expire(now)
        {
            self.acknowledge_early(exchange);
        }
        while self.outbox.len() + self.events.len() < most
            && let Some(deadline) = self.timers.expire(now)
        {
            match deadline.due() {
                Due::Acknowledge(slot) => self.acknowledge_early(self.pending.id(slot)),
                Due::Message(slot) => self.wait_is_over(self.messages.id(slot), now),
                Due::Turn(place) => self.turn_did_not_come(place, now),
            }
        }
    }

    /// When to call [`Endpoint::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [
            self.timers.next_deadline(),
            self.acknowledgements.next_deadline(),
            self.duplicates.next_overdue(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a datagram is to be sent.
    pub const fn has_transmit(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next datagram to send.
    #[inline(always)]
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.outbox.poll(&self.peers)
    }
}

/// So many datagrams and events one wake brings.
const AT_ONCE: usize = 256;

/// Whether a datagram was sent to a multicast group or to everyone in the network: what a proxy says
/// to that is nothing, not even a Reset (RFC 7252 §8.1, §8.2). An address of a network's own for
/// broadcasts is known to the sockets' owner alone.
fn is_group(local: &Local) -> bool {
    match local.address {
        None => false,
        Some(IpAddr::V4(address)) => address.is_multicast() || address.is_broadcast(),
        Some(IpAddr::V6(address)) => address.is_multicast(),
    }
}
