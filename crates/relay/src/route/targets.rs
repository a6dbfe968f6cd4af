//! Targets that were admitted lately, by what their URIs begin with.
//!
//! Requests ask for the same few origins again and again. What is known of one is not read and judged
//! anew as long as the settings stay.

use coapway_message::uri::{Authority, PathAndQuery};

use crate::admission::Admission;
use crate::parameters::UpstreamId;

/// So many are kept, one for each hash.
const KEPT: usize = 64;
/// Of a URI that begins longer nothing is kept.
const LONGEST: usize = 48;
const SCHEME: &[u8] = b"coap://";

/// A target that requests may be forwarded to, and why.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) authority: Authority,
    pub(crate) ground: (UpstreamId, Admission),
    beginning: [u8; LONGEST],
    length: usize,
}

/// The targets that are kept.
#[derive(Debug)]
pub(crate) struct Targets {
    kept: Box<[Option<Target>]>,
    /// The place of the one that was found last: often it is looked for again.
    last: usize,
}

impl Default for Targets {
    fn default() -> Self {
        Self { kept: vec![None; KEPT].into(), last: 0 }
    }
}

impl Targets {
    /// The target of a Proxy-Uri and the rest of it; `None` also where it has to be read with more care.
    pub(crate) fn find<'d>(&mut self, uri: &'d [u8]) -> Option<(&Target, PathAndQuery<'d>)> {
        let kept = &self.kept;
        let at = |place: usize| {
            let target = kept.get(place)?.as_ref()?;
            Some((target, target.rest(uri)?))
        };
        let (target, rest) = match at(self.last) {
            Some(found) => found,
            None => {
                self.last = place(split(uri)?.0);
                at(self.last)?
            }
        };
        Some((target, PathAndQuery::plain(rest)?))
    }

    /// Keeps what was found out about the target of this Proxy-Uri, which can be read.
    pub(crate) fn keep(&mut self, uri: &[u8], authority: &Authority, ground: (UpstreamId, Admission)) {
        let Some((text, _)) = split(uri) else { return };
        let mut beginning = [0; LONGEST];
        if let (Some(room), Some(kept)) = (beginning.get_mut(..text.len()), self.kept.get_mut(place(text))) {
            room.copy_from_slice(text);
            *kept = Some(Target { authority: authority.clone(), ground, beginning, length: text.len() });
        }
    }

    /// Forgets all: they were admitted by other settings.
    pub(crate) fn forget(&mut self) {
        self.kept.fill(None);
    }
}

impl Target {
    /// What stands behind it in a URI, if that begins with just it.
    #[inline]
    fn rest<'d>(&self, uri: &'d [u8]) -> Option<&'d [u8]> {
        let rest = uri.strip_prefix(self.beginning.get(..self.length)?)?;
        matches!(rest, [] | [b'/' | b'?', ..]).then_some(rest)
    }
}

/// Scheme and authority, and what stands behind them.
fn split(uri: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = uri.strip_prefix(SCHEME)?;
    let length = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    uri.split_at_checked(SCHEME.len() + length)
}

/// Hosts and ports differ at their ends.
fn place(beginning: &[u8]) -> usize {
    let end = beginning.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
    // The upper bits of a product depend on all bits of its factors.
    (end.wrapping_mul(0x9E37_79B1) >> 16) as usize % KEPT
}

#[cfg(test)]
mod tests {
    use coapway_message::uri::Uri;

    use super::*;

    const GROUND: (UpstreamId, Admission) = (UpstreamId::DEFAULT, Admission::Address);

    fn keep(targets: &mut Targets, uri: &str) {
        let authority = Uri::parse(uri).expect("a URI").into_authority();
        targets.keep(uri.as_bytes(), &authority, GROUND);
    }

    fn found(targets: &mut Targets, uri: &str) -> Option<(String, usize)> {
        let (target, resource) = targets.find(uri.as_bytes())?;
        Some((target.authority.to_string(), resource.path_segments().count()))
    }

    #[test]
    fn whoever_begins_alike_has_the_same_target() {
        let mut targets = Targets::default();
        keep(&mut targets, "coap://10.1.2.3:5700/a");
        let target = |segments| Some(("10.1.2.3:5700".to_owned(), segments));
        assert_eq!(found(&mut targets, "coap://10.1.2.3:5700/b/c?d"), target(2));
        assert_eq!(found(&mut targets, "coap://10.1.2.3:5700?/"), target(0));
        assert_eq!(found(&mut targets, "coap://10.1.2.3:5700"), target(0));
        for other in [
            "coap://10.1.2.3:570/b",
            "coap://10.1.2.3:57000/b",
            "coaps://10.1.2.3:5700/b",
            "coap://10.1.2.3:5700#/b",
            "coap://10.1.2.3:5700/%62",
            "coap://10.1.2.3:5700/../b",
        ] {
            assert_eq!(found(&mut targets, other), None, "{other}");
        }
        keep(&mut targets, "coap://[2001:db8::1]/a");
        assert_eq!(
            found(&mut targets, "coap://[2001:db8::1]/a/b"),
            Some(("[2001:db8::1]:5683".to_owned(), 2))
        );
        assert_eq!(found(&mut targets, "coap://10.1.2.3:5700/b/c?d"), target(2));
        targets.forget();
        assert_eq!(found(&mut targets, "coap://10.1.2.3:5700"), None);
    }

    #[test]
    fn what_begins_too_long_is_not_kept() {
        let mut targets = Targets::default();
        for (length, is_kept) in [(34, true), (35, false)] {
            let uri = format!("coap://{}.example", "a".repeat(length - 1));
            keep(&mut targets, &uri);
            assert_eq!(found(&mut targets, &uri).is_some(), is_kept, "{length}");
        }
    }
}
