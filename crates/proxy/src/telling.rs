//! What Acknowledgements after a second copy still tell of the path, and a ping where they tell nothing.
//!
//! A timeout that ran out is held doubled for the exchanges to come until there is an exact sample, and on
//! a lossy path the next exact sample may be far. So what can be told apart is, and where nothing is told
//! and the back-off is still held when the next request leaves, one CoAP ping (RFC 7252 §4.3) beside it asks
//! for the round trip: 4 bytes each way. An origin that is asked nothing more is not woken for it. The ping
//! takes a place in the window and keeps to PROBING_RATE; an origin that never answered one and leaves four
//! unanswered is not pinged for a day: some know no ping, and some paths lose many.

use std::time::Duration;

use coapway_endpoint::{Peer, Schedule, Trace, TransmissionParameters};
use coapway_message::ExchangeId;
use coapway_time::Instant;

use crate::apart::{Key, Several, by_causality};
use crate::parameters::Probe;
use crate::pings::Pings;
use crate::upstreams::{Deadline, Upstreams};

/// So many pings in a row without an answer, of an origin that never answered one and of others …
const MOST_MISSED: u32 = 4;
const MOST_MISSED_OF_KNOWN: u32 = 16;
/// … and there is none for so long.
const PAUSE: Duration = Duration::from_secs(24 * 3600);
/// A ping is waited for at least this long, and for so many timeouts.
const LEAST_WAIT: Duration = Duration::from_secs(2);
const TIMEOUTS: u32 = 3;
/// So many places have to be free: a ping that is lost holds its own for a while.
const ROOM: u32 = 2;
/// Bytes of an Empty message.
const EMPTY: u32 = 4;

impl Upstreams {
    /// The first Acknowledgement of a message of which several copies had left.
    pub(crate) fn acknowledged_after_several(&mut self, index: u32, several: &Several, now: Instant) {
        self.await_others(index, several, now);
        let Some(message_id) = several.acknowledged else { return };
        let copies = several.under(message_id);
        if copies.len() < 2 {
            return;
        }
        let key = Key { peer: several.peer, message_id };
        let Some(origin) = self.origins.get_mut(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let retransmit = parameters.retransmit;
        let samples = origin.round_trip.exact_samples();
        if retransmit.dup_ack_match
            && copies.first().is_some_and(|&first| origin.inferred.may_be_believed(first, samples))
            && let Some(round_trip) = by_causality(&copies, origin.round_trip.minimum(), now)
        {
            origin.round_trip.sample(round_trip, now);
            origin.inferred.believed(origin.round_trip.exact_samples(), now);
            return;
        }
        if let [first, others @ ..] = &copies[..] {
            origin.round_trip.ambiguous(now.since(*first), others.len() as u32, now);
            if let Some(last) = others.last() {
                origin.round_trip.at_least(now.since(*last), now);
            }
        }
        // Whoever asks next need not wait as long as that before it is known how long the path takes.
        origin.pings.wanted |= retransmit.probe != Probe::Off && origin.round_trip.is_backed_off();
        if retransmit.dup_ack_match || retransmit.probe != Probe::Off {
            let was_empty = self.apart.next_end().is_none();
            let watch = origin.round_trip.in_force(parameters.max_wait);
            self.apart.watch(key, index, &copies, watch, now);
            self.wake_for_untold(was_empty);
        }
    }

    /// An exchange failed: an Acknowledgement that comes now says all the same how long the path takes, where
    /// it says of which copy it is.
    pub(crate) fn await_late(&mut self, index: u32, trace: &Trace, now: Instant) {
        if let Some(several) = trace.course().as_ref().and_then(Several::if_told_apart) {
            self.await_others(index, &several, now);
        }
    }

    /// So it does of an exchange that is over because another was answered.
    pub(crate) fn replaced(&mut self, index: u32, exchange: ExchangeId, now: Instant) {
        let course = self.endpoint.ended(exchange).filter(|course| course.acks() == 0);
        if let Some(several) = course.as_ref().and_then(Several::if_told_apart) {
            self.await_others(index, &several, now);
        }
    }

    /// Acknowledgements of copies with Message IDs of their own are awaited, for what they tell.
    fn await_others(&mut self, index: u32, several: &Several, now: Instant) {
        let Some(origin) = self.origins.get(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let was_empty = self.apart.next_end().is_none();
        let watch = origin.round_trip.in_force(parameters.max_wait);
        for (message_id, sent) in several.others() {
            self.apart.watch_only(Key { peer: several.peer, message_id }, index, sent, watch, now);
        }
        self.wake_for_untold(was_empty);
    }

    fn wake_for_untold(&mut self, was_empty: bool) {
        if was_empty && let Some(end) = self.apart.next_end() {
            self.timers.insert(end, Deadline::Untold);
        }
    }

    /// A message was acknowledged that had been before.
    pub(crate) fn acknowledged_again(&mut self, peer: Peer, message_id: u16, now: Instant) {
        if self.apart.is_empty() {
            return;
        }
        let Some((index, told)) = self.apart.acknowledged(&Key { peer, message_id }, now) else { return };
        let Some(origin) = self.origins.get_mut(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let counts = parameters.retransmit.dup_ack_match || !told.by_counting;
        if counts && origin.address == peer.remote {
            origin.round_trip.sample(told.round_trip, now);
        }
    }

    /// Messages whose Acknowledgements told nothing in time.
    pub(crate) fn stayed_untold(&mut self, now: Instant) {
        while let Some((index, address)) = self.apart.expire(now) {
            if let Some(origin) = self.origins.get_mut(index).filter(|origin| origin.address == address) {
                origin.pings.wanted = true;
            }
        }
        if let Some(end) = self.apart.next_end() {
            self.timers.insert(end, Deadline::Untold);
        }
    }

    /// A request has left for `peer`: the path is asked for its round trip beside it, if that is wanted.
    #[cold]
    pub(crate) fn ping(&mut self, index: u32, peer: Peer, now: Instant) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let Pings { under_way, not_before, .. } = origin.pings;
        let timeout = origin.round_trip.in_force(parameters.max_wait);
        origin.pings.wanted = parameters.retransmit.probe != Probe::Off && origin.round_trip.is_backed_off();
        if !origin.pings.wanted
            || origin.window.size() < origin.window.outstanding() + ROOM
            || under_way.is_some()
            || now < not_before
            || origin.silence.is_dormant()
            || origin.permits.probing.check(parameters.probing_rate, timeout, now).is_err()
        {
            return;
        }
        let once = TransmissionParameters { max_retransmit: 0, ..parameters.transmission };
        let deadline = now + (timeout * TIMEOUTS).max(LEAST_WAIT);
        let schedule = Schedule { timeout, deadline, last_copy_before: now, ..Schedule::new(&once, now) };
        let Ok(exchange) = self.endpoint.send_ping(&peer, &schedule, now) else { return };
        (origin.pings.under_way, origin.pings.wanted) = (Some(exchange), false);
        origin.window.start();
        origin.permits.probing.sent(parameters.probing_rate, EMPTY, now);
        self.pings.insert(exchange, index);
    }

    /// A ping was answered, or was not; says whether the exchange is one. It was answered in `round_trip`.
    pub(crate) fn pinged(
        &mut self,
        exchange: ExchangeId,
        answer: Option<Option<Duration>>,
        now: Instant,
    ) -> bool {
        if self.pings.is_empty() {
            return false;
        }
        let Some(index) = self.pings.remove(&exchange) else { return false };
        let Some(origin) = self.origins.get_mut(index) else { return true };
        origin.window.end();
        origin.pings.under_way = None;
        match answer {
            Some(round_trip) => {
                (origin.pings.missed, origin.pings.are_known) = (0, true);
                origin.window.arrived(now);
                origin.permits.probing.heard();
                if let Some(round_trip) = round_trip {
                    origin.round_trip.sample(round_trip, now);
                }
                self.heard(index);
            }
            None => {
                origin.pings.missed += 1;
                let most = if origin.pings.are_known { MOST_MISSED_OF_KNOWN } else { MOST_MISSED };
                if origin.pings.missed >= most {
                    origin.pings = Pings { not_before: now + PAUSE, ..Pings::default() };
                }
            }
        }
        self.may_move.push(index);
        true
    }
}
