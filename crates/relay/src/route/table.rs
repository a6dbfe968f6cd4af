//! Reverse routes, found by host and path without looking at each.

use std::cmp::Ordering;
use std::net::IpAddr;

use coapway_message::uri::HostRef;

use crate::admission::{literal, without_root};
use crate::parameters::Route;

/// Routes, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// For each host.
    everywhere: Node,
    /// For one host, in the order of names and addresses.
    names: Vec<(Box<str>, Node)>,
    addresses: Vec<(IpAddr, Node)>,
    /// Whether one is for a path that is not `/`.
    pub(super) have_paths: bool,
}

/// The routes whose paths begin with the same segments.
#[derive(Debug, Default)]
struct Node {
    /// The one for these segments, of several the first.
    route: Option<usize>,
    /// Those with one segment more, in order.
    next: Vec<(Box<[u8]>, Self)>,
}

impl Routes {
    pub(crate) fn new(routes: &[Route]) -> Self {
        let mut table = Self::default();
        for (index, route) in routes.iter().enumerate() {
            table.have_paths |= !route.path.is_empty();
            table.under(route.host.as_deref()).add(&route.path, index);
        }
        table
    }

    fn under(&mut self, host: Option<&str>) -> &mut Node {
        let Some(host) = host else { return &mut self.everywhere };
        match literal(host) {
            Some(address) => entry(&mut self.addresses, address, IpAddr::cmp),
            None => entry(&mut self.names, without_root(host).to_ascii_lowercase().into(), Ord::cmp),
        }
    }

    /// The route a request takes: one for its host before one for any, then the longest path.
    pub(super) fn find<S: AsRef<[u8]>, P: Iterator<Item = S>>(
        &self,
        host: Option<HostRef<'_>>,
        path: impl Fn() -> P,
    ) -> Option<usize> {
        self.of_host(host).and_then(|node| node.find(path())).or_else(|| self.everywhere.find(path()))
    }

    fn of_host(&self, host: Option<HostRef<'_>>) -> Option<&Node> {
        match host? {
            HostRef::Address(wanted) => {
                let found = self.addresses.binary_search_by(|(address, _)| address.cmp(&wanted));
                self.addresses.get(found.ok()?).map(|(_, node)| node)
            }
            HostRef::Name(wanted) => {
                let wanted = without_root(wanted);
                let found = self.names.binary_search_by(|(name, _)| cmp_names(name, wanted));
                self.names.get(found.ok()?).map(|(_, node)| node)
            }
        }
    }
}

impl Node {
    fn add(&mut self, path: &[Box<[u8]>], index: usize) {
        let mut node = self;
        for segment in path {
            node = entry(&mut node.next, segment.clone(), Ord::cmp);
        }
        node.route.get_or_insert(index);
    }

    fn find(&self, path: impl Iterator<Item = impl AsRef<[u8]>>) -> Option<usize> {
        let (mut node, mut best) = (self, self.route);
        if node.next.is_empty() {
            return best;
        }
        for segment in path {
            let segment = segment.as_ref();
            let Ok(place) = node.next.binary_search_by(|(wanted, _)| (**wanted).cmp(segment)) else { break };
            let Some((_, next)) = node.next.get(place) else { break };
            (node, best) = (next, next.route.or(best));
        }
        best
    }
}

/// What stands under a key, which is put in its place in the order.
fn entry<K>(sorted: &mut Vec<(K, Node)>, key: K, order: impl Fn(&K, &K) -> Ordering) -> &mut Node {
    let place = match sorted.binary_search_by(|(known, _)| order(known, &key)) {
        Ok(place) => place,
        Err(place) => {
            sorted.insert(place, (key, Node::default()));
            place
        }
    };
    &mut sorted[place].1
}

/// Compares a name in lower case with one that is written somehow.
fn cmp_names(lower: &str, other: &str) -> Ordering {
    lower.bytes().cmp(other.bytes().map(|byte| byte.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::parameters::UpstreamId;
    use crate::route::tests::is_for_host;

    fn route(host: Option<&str>, path: &[&str]) -> Route {
        Route {
            host: host.map(Into::into),
            path: path.iter().map(|segment| segment.as_bytes().into()).collect(),
            upstream: UpstreamId(1),
            strip: true,
        }
    }

    /// The best of all, looking at each.
    fn best(routes: &[Route], host: Option<HostRef<'_>>, path: &[&str]) -> Option<usize> {
        let begins = |route: &Route| {
            route.path.len() <= path.len()
                && route.path.iter().zip(path).all(|(wanted, segment)| **wanted == *segment.as_bytes())
        };
        let fits = |(_, route): &(usize, &Route)| is_for_host(route, host) && begins(route);
        let rank = |(index, route): &(usize, &Route)| {
            (route.host.is_some(), route.path.len(), std::cmp::Reverse(*index))
        };
        routes.iter().enumerate().filter(fits).max_by_key(rank).map(|(index, _)| index)
    }

    const SEGMENTS: [&str; 5] = ["", "a", "b", "a/b", "é"];

    proptest! {
        #[test]
        fn it_is_the_one_that_is_found_by_looking_at_each(
            routes in prop::collection::vec(
                (
                    prop::sample::select(vec![None, None, Some("a"), Some("A."), Some("b.c"), Some("10.1.2.3"), Some("[::1]")]),
                    prop::collection::vec(prop::sample::select(SEGMENTS.to_vec()), 0..4),
                )
                    .prop_map(|(host, path)| route(host, &path)),
                0..24,
            ),
            host in prop::sample::select(vec![None, Some("a"), Some("A"), Some("a."), Some("B.C."), Some("d"), Some("10.1.2.3"), Some("[::1]")]),
            path in prop::collection::vec(prop::sample::select(SEGMENTS.to_vec()), 0..5),
        ) {
            let host = host.map(|host| HostRef::parse(host.as_bytes()).expect("a host"));
            let found = Routes::new(&routes).find(host, || path.iter());
            prop_assert_eq!(found, best(&routes, host, &path));
        }
    }

    #[test]
    fn many_routes_are_each_found() {
        let routes: Vec<Route> = (0..3000)
            .map(|number| {
                let mut segment = String::new();
                write!(segment, "{number:x}").expect("written");
                route((number % 3 == 0).then_some("host"), &["s", &segment])
            })
            .collect();
        let table = Routes::new(&routes);
        for number in [0, 1, 2, 1500, 2998, 2999] {
            let host = (number % 3 == 0).then_some(HostRef::Name("Host"));
            let segment = format!("{number:x}");
            let find = |path: &[&str]| table.find(host, || path.iter());
            assert_eq!(find(&["s", &segment, "x"]), Some(number));
            assert_eq!(find(&["s"]), None);
        }
    }
}
