//! How long an origin has been silent, and the pace of probes while it is taken to be down.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_relay::{FetchId, UpstreamId};
use coapway_time::Instant;

use crate::address::Site;

/// So many exchanges have to fail.
const FAILURES: u32 = 2;
/// Between the learned timeout of an origin and the first pause.
const MARGIN: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The exchanges that failed since an origin was heard, and what follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    failures: u32,
    /// When the first of them began.
    since: Instant,
    /// Whose request it was.
    first: Option<Site>,
    /// Whether requests of others failed, too: what one client asks for may be what is silent.
    of_several: bool,
    /// The sites whose requests failed, or were probes, the latest ones first.
    in_vain: [Option<Site>; REMEMBERED],
    pub(crate) rest: Option<Rest>,
    /// Whether it was told that the origin is down.
    pub(crate) is_told: bool,
}

/// Whose requests have failed last in an origin's silences of one site: as long as these go on, one verdict on
/// them is told and no other, however often others hear of the origin between.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Going {
    site: Option<Site>,
    until: Instant,
}

impl Going {
    /// A request of this site has failed, the origin being down for it; says whether that goes on from before.
    /// Between two failures are the pause of a probe, a client that takes its time as long, and `max_wait`.
    pub(crate) fn on(&mut self, site: Site, max_wait: Duration, now: Instant) -> bool {
        let goes_on = self.site == Some(site) && now < self.until;
        *self = Self { site: Some(site), until: now + LONGEST_PAUSE * 2 + max_wait };
        goes_on
    }
}

/// An origin that is down, for one site or for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Down {
    pub(crate) upstream: UpstreamId,
    pub(crate) origin: SocketAddr,
    pub(crate) is_for_all: bool,
    pub(crate) silent_for: Duration,
    pub(crate) probe_in: Duration,
}

/// Of so many sites it is known that they asked in vain.
const REMEMBERED: usize = 8;

/// The pace of probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// None leaves sooner.
    pub(crate) next: Instant,
    /// From the next to the one after it.
    pub(crate) pause: Duration,
    /// The number of the client whose request was the last.
    last: Option<u64>,
    /// Whether other clients were told to stay away since, and whether other sites were.
    others: bool,
    other_sites: bool,
    /// Whether a site was told to stay away since that has not asked in vain yet.
    newcomers: bool,
}

impl Rest {
    pub(crate) fn begin(timeout: Duration, now: Instant) -> Self {
        let pause = (timeout + MARGIN).min(LONGEST_PAUSE);
        let first =
            Self { next: now, pause, last: None, others: false, other_sites: false, newcomers: false };
        first.further(now)
    }

    fn further(self, now: Instant) -> Self {
        Self { next: now + self.pause, pause: (self.pause * 2).min(LONGEST_PAUSE), ..self }
    }
}

/// Which request may leave for an origin now, as far as its silence is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Any.
    Any,
    /// This one alone.
    Probe(FetchId),
    /// None before this time, if it is known.
    None(Option<Instant>),
}

impl Silence {
    /// Whether exchanges failed since the origin was heard.
    pub(crate) const fn has_begun(&self) -> bool {
        self.failures > 0
    }

    pub(crate) const fn is_dormant(&self) -> bool {
        self.rest.is_some()
    }

    /// When the first copy left of all that are unanswered.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// Whether requests of several clients have failed.
    pub(crate) const fn is_of_several(&self) -> bool {
        self.of_several
    }

    /// Whose requests alone have failed, as far as is known: others may ask as ever.
    pub(crate) fn is_of_one(&self) -> Option<Site> {
        self.first.filter(|_| !self.of_several)
    }

    /// A request of this client leaves.
    #[inline]
    pub(crate) fn sent(&mut self, client: u64, now: Instant) {
        if let Some(rest) = self.rest {
            let rest =
                Rest { last: Some(client), others: false, other_sites: false, newcomers: false, ..rest };
            self.rest = Some(rest.further(now));
            self.had_its_turn(Site::of(client));
        }
    }

    #[cold]
    fn had_its_turn(&mut self, site: Site) {
        if !self.in_vain.contains(&Some(site)) {
            self.in_vain.rotate_right(1);
            self.in_vain[0] = Some(site);
        }
    }

    /// Whether the next probe is for others, who have asked in vain since the last one and may ask for something
    /// else: for other clients than that one's, for other sites than its site, and for sites that have not asked in
    /// vain yet rather than for those that have. They have one pause to come back.
    pub(crate) fn is_for_others(&self, client: u64, now: Instant) -> bool {
        let (Some(rest), Some(last)) = (self.rest, self.rest.and_then(|rest| rest.last)) else {
            return false;
        };
        let site = Site::of(client);
        let is_awaited = last == client && rest.others
            || Site::of(last) == site && rest.other_sites
            || rest.newcomers && self.in_vain.contains(&Some(site));
        is_awaited && now < rest.next + rest.pause
    }

    /// This client was told to stay away.
    pub(crate) fn spared(&mut self, client: u64) {
        if let Some(rest) = &mut self.rest {
            rest.others |= rest.last != Some(client);
            rest.other_sites |= rest.last.map(Site::of) != Some(Site::of(client));
            rest.newcomers |= !self.in_vain.contains(&Some(Site::of(client)));
        }
    }

    /// An exchange has failed, and nothing was heard since its first copy left. Says whether the copies of
    /// all that failed span `enough`.
    pub(crate) fn missed(&mut self, client: Site, first: Instant, last: Instant, enough: Duration) -> bool {
        if self.failures == 0 {
            (self.first, self.of_several) = (Some(client), false);
        }
        self.of_several |= self.first != Some(client);
        self.had_its_turn(client);
        self.since = if self.failures == 0 { first } else { self.since.min(first) };
        self.failures = self.failures.saturating_add(1);
        self.failures >= FAILURES && last.since(self.since) >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Site = Site::of(1);
    const WAIT: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn it_takes_two_failures_whose_copies_span_the_longest_wait() {
        let missed = |silence: &mut Silence, first, last| silence.missed(CLIENT, at(first), at(last), WAIT);
        let mut silence = Silence::default();
        assert!(!missed(&mut silence, 10, 40), "the first");
        assert!(missed(&mut silence, 11, 41));
        let mut outage = Silence::default();
        for second in 5..30 {
            assert!(
                !missed(&mut outage, second - 5, second),
                "{second} s are no longer than a request waits"
            );
        }
        assert!(missed(&mut outage, 30, 30));
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let rest = Some(Rest::begin(Duration::from_secs(2), at(30)));
        let mut silence = Silence { rest, ..Silence::default() };
        let mut now = at(30);
        let mut pauses = Vec::new();
        while pauses.len() < 7 {
            let next = silence.rest.expect("down").next;
            pauses.push(next.since(now).as_secs());
            now = next;
            silence.sent(1, now);
        }
        assert_eq!(pauses, [3, 6, 12, 24, 48, 60, 60]);
    }

    #[test]
    fn the_next_probe_is_for_who_asked_in_vain_a_neighbour_or_another_site() {
        let client = |endpoint: u64, site: u64| endpoint << 32 | site << 1;
        let (one, neighbour, other) = (client(1, 1), client(2, 1), client(3, 2));
        let rest = Some(Rest::begin(Duration::from_secs(2), at(0)));
        let mut silence = Silence { rest, of_several: true, ..Silence::default() };
        silence.sent(one, at(3));
        assert!(!silence.is_for_others(one, at(9)), "nobody else asked");
        silence.spared(neighbour);
        let are_kept_away =
            |silence: &Silence, now| [one, neighbour, other].map(|client| silence.is_for_others(client, now));
        assert_eq!(are_kept_away(&silence, at(9)), [true, false, false]);
        silence.spared(other);
        assert_eq!(
            are_kept_away(&silence, at(9)),
            [true, true, false],
            "a site cannot do it by ports in turn"
        );
        assert_eq!(are_kept_away(&silence, at(60)), [false; 3], "who does not come back has lost it");
        silence.sent(other, at(60));
        assert_eq!(are_kept_away(&silence, at(61)), [false; 3]);
    }

    #[test]
    fn sites_that_asked_in_vain_leave_the_next_probe_to_those_that_have_not() {
        let client = |site: u64| 1 << 32 | site << 1;
        let rest = Some(Rest::begin(Duration::from_secs(2), at(0)));
        let mut silence = Silence { rest, of_several: true, ..Silence::default() };
        silence.sent(client(1), at(3));
        silence.spared(client(2));
        silence.sent(client(2), at(9));
        silence.spared(client(1));
        assert!(!silence.is_for_others(client(1), at(21)), "they take turns");
        silence.spared(client(3));
        assert_eq!([1, 2, 3].map(|site| silence.is_for_others(client(site), at(21))), [true, true, false]);
        silence.sent(client(3), at(21));
        assert_eq!([1, 2, 3].map(|site| silence.is_for_others(client(site), at(45))), [false; 3]);
        silence.missed(Site::of(client(4)), at(0), at(45), WAIT);
        silence.spared(client(4));
        assert!(!silence.is_for_others(client(1), at(46)), "what failed before was no probe");
        (4..20).for_each(|site| silence.sent(client(site), at(45)));
        silence.spared(client(1));
        assert!(!silence.is_for_others(client(1), at(46)), "so many are not remembered");
    }
}
