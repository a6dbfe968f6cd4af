//! Messages of ours leave: a Message ID, a token, a place, a timer (RFC 7252 §4.2, §4.3).

use coapway_message::ExchangeId;
use coapway_time::Instant;

use super::endpoint::Endpoint;
use super::message::{Answered, Kind};
use super::peers::PeerNumber;
use super::pending::{Deadline, Due, ShortToken};
use super::retransmission::Schedule;
use crate::parameters::micros;

/// A message that is to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch<'s> {
    pub(super) peer: PeerNumber,
    pub(super) kind: Kind,
    pub(super) schedule: &'s Schedule,
    /// The request that it answers.
    pub(super) answered: Option<Answered>,
    /// `None` for one of our own, or none that matters.
    pub(super) token: Option<ShortToken>,
}

impl Endpoint {
    /// The first copy of a message of ours leaves. `write` is given its Message ID and token.
    ///
    /// Errors: `None` when no Message ID is free.
    #[inline]
    pub(super) fn launch(
        &mut self,
        launch: &Launch<'_>,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>, u16, &[u8]),
    ) -> Option<ExchangeId> {
        let &Launch { peer, kind, schedule, answered, token } = launch;
        let (peers, lifetime) = (&mut self.peers, schedule.lifetime);
        let message_id = match kind {
            Kind::Response => self.message_ids.take_for_response(peers, peer, lifetime, now)?,
            Kind::Request | Kind::NonConfirmable | Kind::Ping => {
                self.message_ids.take(peers, peer, lifetime, now)?
            }
        };
        peers.hold(peer);
        let (exchange, message) = self.messages.claim();
        let token = token.unwrap_or_else(|| self.tokens.token(exchange).into());
        let bytes = self.outbox.write(peer, |buffer| write(buffer, message_id, token.as_bytes()));
        message.begin(kind, peer, message_id, token, bytes);
        (message.deadline, message.sent) = (schedule.deadline, now);
        let (mut wake, mut timeout) = (schedule.deadline, schedule.timeout);
        if message.is_confirmable() {
            timeout = schedule.first_wait(&mut self.random);
            message.active = Some(self.active.begin(schedule, timeout, answered));
            wake = wake.min(now + timeout);
        }
        message.timeout = micros(timeout);
        message.timer = Some(self.timers.insert(wake, Deadline::new(Due::Message(exchange.slot))));
        self.by_message_id.insert(&self.messages, exchange.slot);
        Some(exchange)
    }
}
