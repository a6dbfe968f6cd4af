//! When a client must have given up: then nothing more is done for its request.
//!
//! A request that has not left is answered and does not leave. Of one that has, no further copy leaves; a
//! response is still listened for, and goes to the client unless that has used the token again.

use std::net::SocketAddr;

use coapway_message::{Content, Evidence, ExchangeId, Failure, Token};
use coapway_relay::{Fetch, FetchId, Phase};
use coapway_time::Instant;

use crate::cause::Cause;
use crate::clients::Sign;
use crate::proxy::Proxy;

impl Proxy {
    /// A client asks something under a token: what it asked before under the same it has given up.
    pub(crate) fn token_came(&mut self, client: SocketAddr, token: &[u8], now: Instant) {
        if token.is_empty() {
            return;
        }
        let Some(&id) = self.clients.by_token.get(&(client, Token::new(token))) else { return };
        let Some(received) = self.relay.fetch(id).map(|fetch| fetch.received) else { return };
        if self.clients.is_learning() {
            self.clients.lives.ended(client.ip(), now.since(received), now);
        }
        self.given_up(id, Sign::Token, now);
    }

    /// A request is on its way.
    pub(crate) fn await_patience(&mut self, id: FetchId, client: SocketAddr, token: &[u8], now: Instant) {
        self.clients.begin(id, client, token, now);
    }

    /// Clients whose time is over have given up.
    pub(crate) fn end_patience(&mut self, now: Instant) {
        while let Some(id) = self.clients.timers.expire(now) {
            let Some(fetch) = self.relay.fetch(id) else { continue };
            if self.clients.is_gone(id) {
                continue;
            }
            if self.clients.is_learning()
                && let Some(client) = self.clients.address(id)
            {
                // Or else only those who give up early would ever be counted.
                self.clients.lives.ended(client, now.since(fetch.received), now);
            }
            self.given_up(id, Sign::Silence, now);
        }
    }

    fn given_up(&mut self, id: FetchId, sign: Sign, now: Instant) {
        let Some(fetch) = self.relay.fetch(id) else { return };
        if self.guards.waiting() > 0 && !fetch.method.is_idempotent() {
            // Others may wait for its answer.
            return;
        }
        self.clients.mark(id, sign);
        match fetch.phase {
            Phase::LookingUp | Phase::Queued(_) => self.fail(id, Failure::TimedOut, now),
            Phase::Sent(_, exchange) => {
                for &exchange in fetch.earlier().iter().chain([&exchange]) {
                    self.upstreams.stop_copies(exchange);
                }
            }
        }
    }

    /// Answers the request of a fetch whose client has given up. Says whether that is so.
    pub(crate) fn answer_the_gone(
        &mut self,
        id: FetchId,
        fetch: &Fetch,
        content: &Content<'_>,
        evidence: Option<Evidence>,
        now: Instant,
    ) -> bool {
        let FetchId(request) = id;
        match self.clients.settle(id) {
            None => false,
            Some(Sign::Silence) => {
                self.clients.lives.answered(request);
                let no_response = fetch.no_response;
                self.answer(request, no_response, content, Cause::ClientGone, evidence, now);
                true
            }
            Some(Sign::Token) => {
                // It would be taken for the answer to the other request.
                self.journal.answered(request, content, Cause::ClientGone, evidence, now);
                let _ = self.downstream.stay_silent(request, now);
                true
            }
        }
    }

    /// A request was acknowledged before its answer is there: what its client does with that says
    /// something.
    pub(crate) fn answer_will_be_separate(&mut self, request: ExchangeId) {
        let id = FetchId(request);
        if self.clients.is_learning()
            && let (Some(fetch), Some(client)) = (self.relay.fetch(id), self.clients.address(id))
        {
            self.clients.lives.separate(request, client, fetch.received);
        }
    }

    /// A separate response was acknowledged, rejected, or given up.
    pub(crate) fn separate_response_ended(
        &mut self,
        request: ExchangeId,
        outcome: Result<(), Failure>,
        now: Instant,
    ) {
        self.clients.lives.delivered(request, outcome, now);
    }
}
