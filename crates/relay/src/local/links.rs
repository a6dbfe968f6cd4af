//! The links to our namespace, written once for all who ask for them.
//!
//! ```text
//! everywhere   ,</a>,</b/deep>,</z>      in the order of their targets, each behind a comma
//! under v           ,</v>                comes behind two of those
//! ```
//! A filter is a range in that order, found by halving. A body is such a range of both lists, merged; where
//! each of its links begins is a sum, so that a block of it is found by halving, too.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use ahash::RandomState;
use coapway_message::uri::{self, HostRef};

use crate::admission::{literal, without_root};
use crate::answer::Refusal;
use crate::parameters::Route;

/// More filters in one request are refused. RFC 6690 §4.1 knows one.
const MOST_FILTERS: usize = 4;

/// The links to our namespace.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Under each host.
    everywhere: List,
    /// Under one host only.
    under: BTreeMap<Hosted, List>,
    nowhere: List,
}

/// The host of some links, in a form that is compared as such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hosted {
    Address(IpAddr),
    Name(String),
}

/// Links in order.
#[derive(Debug, Default)]
struct List {
    links: Vec<Link>,
    text: String,
    hash: u64,
}

#[derive(Debug)]
struct Link {
    /// What it leads to, as filters see it.
    target: Box<[u8]>,
    /// Where it begins in the text.
    start: usize,
    /// The number of those under each host that come before it.
    behind: usize,
}

impl Links {
    /// A link to each part of our namespace.
    pub(crate) fn new(routes: &[Route]) -> Self {
        let of = |route: &Route| (target(route), reference(route));
        let everywhere: Vec<_> = routes.iter().filter(|route| route.host.is_none()).map(of).collect();
        let everywhere = List::new(everywhere, &[]);
        let mut under: BTreeMap<Hosted, Vec<_>> = BTreeMap::new();
        for route in routes {
            if let Some(host) = &route.host {
                under.entry(Hosted::new(host)).or_default().push(of(route));
            }
        }
        let others = everywhere.iter().collect::<Vec<_>>();
        let under = under.into_iter().map(|(host, links)| (host, List::new(links, &others))).collect();
        Self { everywhere, under, nowhere: List::default() }
    }

    /// All links under this host.
    pub(super) fn under(&self, host: Option<HostRef<'_>>) -> Body<'_> {
        let host = host.map(|host| match host {
            HostRef::Address(address) => Hosted::Address(address),
            HostRef::Name(name) => Hosted::Name(without_root(name).to_ascii_lowercase()),
        });
        let own = host.and_then(|host| self.under.get(&host)).unwrap_or(&self.nowhere);
        Body {
            everywhere: Part { list: &self.everywhere, range: 0..self.everywhere.links.len() },
            own: Part { list: own, range: 0..own.links.len() },
            filters: 0,
        }
    }
}

impl Hosted {
    fn new(host: &str) -> Self {
        literal(host).map_or_else(|| Self::Name(without_root(host).to_ascii_lowercase()), Self::Address)
    }
}

impl List {
    /// Each of the links once, without those that are among the others.
    fn new(mut links: Vec<(Vec<u8>, String)>, others: &[(&[u8], &str)]) -> Self {
        links.sort_unstable();
        links.dedup();
        let mut list = Self::default();
        for (target, reference) in links {
            let Err(behind) = others.binary_search(&(&*target, &*reference)) else { continue };
            list.links.push(Link { target: target.into(), start: list.text.len(), behind });
            list.text.extend([",<", &*reference, ">"]);
        }
        // Fixed seeds: what did not change has the same ETag in all workers.
        list.hash = RandomState::with_seeds(6, 6, 9, 0).hash_one(&list.text);
        list
    }

    /// Targets, and references to them.
    fn iter(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.links.iter().enumerate().map(|(index, link)| {
            let text = self.text(index..index + 1);
            (&*link.target, text.strip_prefix(",<").and_then(|text| text.strip_suffix('>')).unwrap_or(text))
        })
    }

    /// Where a link begins; behind the last one the text ends.
    fn start(&self, index: usize) -> usize {
        self.links.get(index).map_or(self.text.len(), |link| link.start)
    }

    fn text(&self, range: Range<usize>) -> &str {
        self.text.get(self.start(range.start)..self.start(range.end)).unwrap_or_default()
    }

    fn length(&self, range: Range<usize>) -> usize {
        self.start(range.end) - self.start(range.start)
    }

    /// The links whose targets are equal by this order, which is that of the list.
    fn find(&self, order: impl Fn(&[u8]) -> Ordering) -> Range<usize> {
        let start = self.links.partition_point(|link| order(&link.target) == Ordering::Less);
        let end = self.links.partition_point(|link| order(&link.target) != Ordering::Greater);
        start..end
    }
}

/// Some links that follow each other.
#[derive(Debug)]
struct Part<'l> {
    list: &'l List,
    range: Range<usize>,
}

impl Part<'_> {
    fn narrow(&mut self, filter: &Filter<'_>) {
        let found = self.list.find(|target| filter.order(target));
        let start = self.range.start.max(found.start);
        self.range = start..self.range.end.min(found.end).max(start);
    }

    fn len(&self) -> usize {
        self.list.length(self.range.clone())
    }
}

/// A representation: links in order, with commas between them.
#[derive(Debug)]
pub(super) struct Body<'l> {
    everywhere: Part<'l>,
    own: Part<'l>,
    filters: usize,
}

impl Body<'_> {
    /// Leaves out what does not pass a filter.
    ///
    /// Source: RFC 6690 §4.1; of several all must pass, as in RFC 9176 §6.1.
    /// Errors: there were too many already.
    pub(super) fn filter(&mut self, filter: &[u8]) -> Result<(), Refusal> {
        if self.filters == MOST_FILTERS {
            return Err(Refusal::FILTERS);
        }
        self.filters += 1;
        let filter = Filter::read(filter);
        self.everywhere.narrow(&filter);
        self.own.narrow(&filter);
        Ok(())
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        // The first link stands behind no comma.
        (self.everywhere.len() + self.own.len()).saturating_sub(1)
    }

    /// What tells it from another: the lists it is of, and which part of them it is.
    pub(super) fn etag(&self) -> [u8; 8] {
        let Self { everywhere, own, .. } = self;
        let lists = (everywhere.list.hash, own.list.hash);
        RandomState::with_seeds(6, 6, 9, 0).hash_one((lists, &everywhere.range, &own.range)).to_be_bytes()
    }

    /// Adds `most` bytes from `offset` on to `buffer`, or what there is.
    pub(super) fn write(&self, offset: usize, most: usize, buffer: &mut Vec<u8>) {
        let offset = offset + 1;
        let pieces = self.own.range.len() + 1;
        let first = halve(pieces, |piece| self.begin(piece) <= offset).saturating_sub(1);
        let (mut skip, mut room) = (offset - self.begin(first), most);
        for text in (first..pieces).flat_map(|piece| self.piece(piece)) {
            let rest = text.as_bytes().get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(text.len());
            let taken = rest.get(..room).unwrap_or(rest);
            buffer.extend_from_slice(taken);
            room -= taken.len();
            if room == 0 {
                break;
            }
        }
    }

    /// What of the links under each host stands before our own one of this number, and that.
    fn piece(&self, number: usize) -> [&str; 2] {
        let own = self.own.range.start + number;
        let before = self.everywhere.list.text(self.cut(number)..self.cut(number + 1));
        [before, self.own.list.text(own..self.own.range.end.min(own + 1))]
    }

    /// Where a piece begins in the body.
    fn begin(&self, piece: usize) -> usize {
        let own = self.own.range.start..self.own.range.start + piece;
        self.everywhere.list.length(self.everywhere.range.start..self.cut(piece)) + self.own.list.length(own)
    }

    /// The first link under each host that is not before this piece.
    fn cut(&self, piece: usize) -> usize {
        let Some(before) = piece.checked_sub(1) else { return self.everywhere.range.start };
        let own = self.own.list.links.get(self.own.range.clone()).unwrap_or_default();
        own.get(before).map_or(self.everywhere.range.end, |link| link.behind)
    }
}

/// How many of the numbers below `end` it holds for; it holds for none behind one for which it does not.
fn halve(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let mut range = 0..end;
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        range = if holds(middle) { middle + 1..range.end } else { range.start..middle };
    }
    range.start
}

/// Which links are asked for. Ours have no attribute but where they lead, and what is no filter lets all
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter<'f> {
    All,
    None,
    Is(&'f [u8]),
    Begins(&'f [u8]),
}

impl<'f> Filter<'f> {
    fn read(text: &'f [u8]) -> Self {
        let mut parts = text.splitn(2, |&byte| byte == b'=');
        match (parts.next(), parts.next()) {
            (Some(b"href"), Some(pattern)) => {
                pattern.strip_suffix(b"*").map_or(Self::Is(pattern), Self::Begins)
            }
            (_, Some(_)) => Self::None,
            (_, None) => Self::All,
        }
    }

    /// Where a target stands to those that pass.
    fn order(&self, target: &[u8]) -> Ordering {
        match self {
            Self::All => Ordering::Equal,
            Self::None => Ordering::Less,
            Self::Is(pattern) => target.cmp(pattern),
            Self::Begins(start) => target.get(..start.len()).unwrap_or(target).cmp(start),
        }
    }
}

/// What a route's link leads to.
fn target(route: &Route) -> Vec<u8> {
    let mut target = Vec::new();
    for segment in &route.path {
        target.push(b'/');
        target.extend_from_slice(segment);
    }
    if target.is_empty() {
        target.push(b'/');
    }
    target
}

/// The path of a route as a reference relative to the host.
fn reference(route: &Route) -> String {
    let mut path = String::new();
    if let [first, _, ..] = &*route.path
        && first.is_empty()
    {
        // Two slashes would begin an authority (RFC 3986 §4.2).
        path.push_str("/.");
    }
    uri::write_segments(route.path.iter().map(|segment| &**segment), &mut path);
    path
}

#[cfg(test)]
mod tests;
