//! What is remembered is forgotten: after its lifetime, or to make room.

use std::time::Duration;

use coapway_time::Instant;

use super::entry::{Class, Entry, Moment};
use super::sums::exchange_reply;
use super::{Duplicates, ENTRY_BYTES, hash};
use crate::datagram::peers::{PeerNumber, Peers};

/// What is older than its lifetime by this is forgotten although nothing comes in.
const OVERDUE: Duration = Duration::from_secs(10);
/// Rounds of forgetting in one wake.
const PORTION: usize = 256;

impl Duplicates {
    #[inline]
    pub(super) fn enqueue(&mut self, class: Class, expires: Instant, index: u32) {
        let (queue, moment) = (&mut self.queues[class as usize], Moment::at_or_after(expires));
        if queue.is_empty() {
            self.soonest = self.soonest.min(moment);
        }
        queue.push_back((moment, index));
    }

    /// To be called when something was taken out of a queue.
    fn find_soonest(&mut self) {
        let fronts = self.queues.iter().filter_map(|queue| Some(queue.front()?.0));
        self.soonest = fronts.min().unwrap_or(Moment::NEVER);
    }

    fn forget(&mut self, peers: &mut Peers, index: u32) {
        let entry = &mut self.entries[index];
        if exchange_reply(entry, &mut self.replies, &mut self.sums, None).is_none() {
            return;
        }
        entry.generation = entry.generation.wrapping_add(1);
        let hash = hash(&self.hasher, entry.peer, entry.message_id);
        if let Ok(found) = self.remembered.find_entry(hash, |&other| other == index) {
            found.remove();
        }
        let is_kept = entry.class.is_kept();
        let (bytes, kept) = peers.forget(entry.peer, is_kept);
        self.sums.subtract(ENTRY_BYTES, is_kept);
        (self.sums.bytes, self.sums.kept) = (self.sums.bytes - bytes, self.sums.kept - kept);
        self.free.push(index);
    }

    /// When [`Duplicates::expire_overdue`] has something to do; traffic mostly comes before it.
    #[inline]
    pub(in crate::datagram) fn next_overdue(&self) -> Option<Instant> {
        (self.soonest != Moment::NEVER).then(|| self.soonest.instant() + OVERDUE)
    }

    /// Forgets what no traffic made us forget, a portion at a time.
    pub(in crate::datagram) fn expire_overdue(&mut self, peers: &mut Peers, now: Instant) {
        for _ in 0..PORTION {
            if self.next_overdue().is_none_or(|due| due > now) {
                return;
            }
            self.expire(peers, now);
        }
    }

    /// Forgets what is older than its lifetime, a few at a time.
    pub(super) fn expire(&mut self, peers: &mut Peers, now: Instant) {
        for class in Class::ALL {
            for _ in 0..4 {
                let Some(&(moment, index)) = self.queues[class as usize].front() else { break };
                if !moment.is_over(now) {
                    break;
                }
                self.queues[class as usize].pop_front();
                let Entry { expires, class: home, .. } = self.entries[index];
                if expires <= now {
                    self.forget(peers, index);
                } else {
                    self.enqueue(home, expires, index);
                }
            }
        }
        self.find_soonest();
    }

    /// Forgets others until one more entry of a peer fits, or what there is.
    #[cold]
    pub(super) fn make_room(&mut self, peers: &mut Peers, peer: Option<PeerNumber>) -> u64 {
        let mut forgotten = 0;
        let wanted = |peers: &Peers| peer.map_or(0, |peer| ENTRY_BYTES + peers.would_take(peer, false).0);
        while self.sums.bytes + wanted(peers) > self.limit {
            let next = [Class::NonConfirmable, Class::Confirmable]
                .into_iter()
                .find_map(|class| Some((class, self.queues[class as usize].pop_front()?)));
            let Some((class, (_, index))) = next else { break };
            let Entry { expires, class: home, .. } = self.entries[index];
            if home.is_kept() && class != home {
                self.enqueue(home, expires, index);
            } else {
                self.forget(peers, index);
                forgotten += 1;
            }
        }
        self.find_soonest();
        forgotten
    }
}
