//! Other settings while requests are under way.
//!
//! What is kept of origins and requests names its upstream by number, so upstreams keep their numbers:
//! new settings are brought into the order of the old ones. An upstream that is gone keeps its place
//! while something is under way to it; no route and no authority leads there any more.

use coapway_endpoint::SocketId;
use coapway_relay::{Upstream, UpstreamId};
use coapway_time::Instant;

use crate::journal::Listening;
use crate::parameters::{Parameters, UpstreamParameters};
use crate::proxy::Proxy;

impl Proxy {
    pub(crate) fn reconfigure(
        &mut self,
        parameters: &Parameters,
        listening: Listening,
        closing: &[SocketId],
        now: Instant,
    ) {
        let known = &self.known;
        let order = Order::of(known, &parameters.relay.upstreams);
        let under_way = self.relay.fetches().map(|(_, fetch)| fetch.upstream);
        let waiting = self.upstreams.origins.iter().filter(|(_, origin)| !origin.may_be_forgotten());
        let in_use: Vec<_> = under_way.chain(waiting.map(|(_, origin)| origin.upstream)).collect();
        let order = order.complete(known.len(), &in_use);

        let (parameters, known) = order.apply(parameters.clone(), known, &self.upstreams.parameters);
        self.known = known;
        let Parameters { downstream, upstreams, mut relay, answer_within, patience, limits } = parameters;
        relay.routes.retain(|route| relay.upstreams.get(route.upstream.0 as usize).is_some());
        let is_gone = |upstream: UpstreamId| !order.places.contains(&(upstream.0 as usize));

        self.limits.set(relay.client_rate, limits.clients);
        self.hints.set_most(limits.hints);
        self.lookups.set_most(limits.names);
        (self.answer_within, self.early_ack_after) = (answer_within, downstream.early_ack_after);
        self.most_under_way = limits.fetches;
        self.clients.set(patience);
        self.closing = closing.to_vec();
        self.journal.listen(listening, self.relay.fetches().map(|(fetch, _)| fetch.0), now);
        self.downstream.set_parameters(downstream);
        self.relay.reconfigure(relay, limits.fetches);
        self.upstreams.reconfigure(upstreams, limits.origins, is_gone, now);
    }
}

/// Where new upstreams stand among those that are known.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    /// The place of each; `usize::MAX` for one that has none yet.
    places: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl Order {
    /// Finds those that are known: by authority, since one that is only renamed leads to the same origin,
    /// and what was learned is the origin's; then by name. The first is the default one.
    fn of(known: &[Upstream], new: &[Upstream]) -> Self {
        let mut places = vec![NOWHERE; new.len()];
        if let Some(first) = places.first_mut() {
            *first = 0;
        }
        let mut find = |same: fn(&Upstream, &Upstream) -> bool| {
            for (index, upstream) in new.iter().enumerate().skip(1) {
                let place = (1..known.len())
                    .find(|place| same(&known[*place], upstream) && !places.contains(place))
                    .filter(|_| places[index] == NOWHERE);
                places[index] = place.unwrap_or(places[index]);
            }
        };
        find(|known, new| known.name == new.name && known.authority == new.authority);
        find(|known, new| known.authority.is_some() && known.authority == new.authority);
        find(|known, new| known.name == new.name);
        Self { places }
    }

    /// Gives a place to those that have none: one that nobody uses, else one behind all others.
    fn complete(mut self, known: usize, in_use: &[UpstreamId]) -> Self {
        let mut free = 1;
        for index in 0..self.places.len() {
            if self.places[index] != NOWHERE {
                continue;
            }
            let is_taken = |place: usize| {
                self.places.contains(&place)
                    || place < known && in_use.iter().any(|upstream| upstream.0 as usize == place)
            };
            while is_taken(free) {
                free += 1;
            }
            self.places[index] = free;
        }
        self
    }

    /// The settings with their upstreams in this order, those that are gone between them and without an
    /// authority; and what is known of all of them then.
    fn apply(
        &self,
        mut new: Parameters,
        known: &[Upstream],
        old: &[UpstreamParameters],
    ) -> (Parameters, Vec<Upstream>) {
        let (upstreams, parameters) = (std::mem::take(&mut new.relay.upstreams), new.upstreams);
        let usual = parameters.first().copied().unwrap_or_default();
        let most = self.places.iter().map(|place| place + 1).max().unwrap_or(0).max(known.len());
        let gone = |place: usize| {
            let nobody = || Upstream { name: "".into(), authority: None };
            let upstream = known.get(place).cloned().unwrap_or_else(nobody);
            (upstream, old.get(place).copied().unwrap_or(usual))
        };
        let mut ordered: Vec<_> = (0..most).map(gone).collect();
        for (index, upstream) in upstreams.into_iter().enumerate() {
            ordered[self.places[index]] = (upstream, parameters.get(index).copied().unwrap_or(usual));
        }
        let known: Vec<Upstream>;
        (known, new.upstreams) = ordered.into_iter().unzip();
        new.relay.upstreams.clone_from(&known);
        for (place, upstream) in new.relay.upstreams.iter_mut().enumerate() {
            if !self.places.contains(&place) {
                upstream.authority = None;
            }
        }
        for route in &mut new.relay.routes {
            let place = self.places.get(route.upstream.0 as usize).copied().unwrap_or(NOWHERE);
            route.upstream = UpstreamId(u32::try_from(place).unwrap_or(u32::MAX));
        }
        (new, known)
    }
}

#[cfg(test)]
mod tests {
    use coapway_message::uri::{Authority, Host};

    use super::*;

    fn upstream(name: &str, port: u16) -> Upstream {
        let host = Host::Address([127, 0, 0, 1].into());
        Upstream { name: name.into(), authority: (port > 0).then_some(Authority { host, port }) }
    }

    fn places(known: &[(&str, u16)], new: &[(&str, u16)], in_use: &[u32]) -> Vec<usize> {
        let [known, new] = [known, new].map(|list| {
            let named = list.iter().map(|&(name, port)| upstream(name, port));
            std::iter::once(upstream("default", 0)).chain(named).collect::<Vec<_>>()
        });
        let in_use: Vec<_> = in_use.iter().copied().map(UpstreamId).collect();
        let places = Order::of(&known, &new).complete(known.len(), &in_use).places;
        assert_eq!(places[0], 0, "the default one stays the first");
        places[1..].to_vec()
    }

    const AB: [(&str, u16); 2] = [("a", 1), ("b", 2)];

    #[test]
    fn the_order_of_the_file_does_not_matter() {
        assert_eq!(places(&AB, &[("b", 2), ("a", 1)], &[]), [2, 1]);
        assert_eq!(places(&AB, &[("b", 2)], &[]), [2]);
        assert_eq!(places(&AB, &[("c", 3), ("b", 2), ("a", 1)], &[]), [3, 2, 1]);
    }

    #[test]
    fn an_authority_stands_for_an_upstream_before_its_name_does() {
        assert_eq!(places(&AB, &[("c", 1), ("b", 2)], &[]), [1, 2], "renamed");
        assert_eq!(places(&AB, &[("b", 1), ("a", 2)], &[]), [1, 2], "names changed sides");
        assert_eq!(
            places(&AB, &[("b", 3), ("c", 2)], &[]),
            [1, 2],
            "the authority goes first, also where it is later"
        );
        assert_eq!(places(&AB, &[("b", 4), ("a", 3)], &[]), [2, 1], "new authorities");
        assert_eq!(
            places(&[("a", 1), ("b", 1)], &[("b", 1), ("a", 1)], &[]),
            [2, 1],
            "one origin under two names"
        );
    }

    #[test]
    fn a_place_is_given_away_once_nobody_uses_it() {
        assert_eq!(places(&AB, &[("c", 3)], &[]), [1]);
        assert_eq!(places(&AB, &[("c", 3)], &[1]), [2]);
        assert_eq!(places(&AB, &[("c", 3), ("d", 4)], &[1, 2]), [3, 4]);
    }
}
