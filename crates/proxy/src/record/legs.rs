//! What many records have in common: the listener, the upstream, the origin and our port towards it.
//! Their text is kept.

use std::net::SocketAddr;

use super::line::Line;
use super::lines::Outside;

/// No text that is kept is longer, in bytes.
pub(super) const LONGEST: usize = 192;
/// So many are kept, one for each hash of an origin.
const KEPT: u32 = 64;
/// What a text takes at the most but for the upstream's name, in bytes.
pub(super) const ROOM: usize = 2 * super::part::ROOM;
/// The text of a longer name is not kept.
const LONGEST_NAME: usize = 64;

/// The text from behind the client's address to our port.
#[derive(Debug)]
pub(super) struct Legs {
    kept: Box<[Leg]>,
    /// Where a text is made.
    scratch: Box<[u8]>,
}

#[derive(Clone, Debug)]
struct Leg {
    listener: Option<SocketAddr>,
    upstream: String,
    origin: Option<SocketAddr>,
    local_port: Option<u16>,
    text: [u8; LONGEST],
    /// Zero for none.
    length: usize,
}

impl Legs {
    pub(super) fn new() -> Self {
        let none = Leg {
            listener: None,
            upstream: String::new(),
            origin: None,
            local_port: None,
            text: [0; LONGEST],
            length: 0,
        };
        let scratch = vec![0; ROOM + 6 * LONGEST_NAME];
        Self { kept: vec![none; KEPT as usize].into(), scratch: scratch.into() }
    }

    /// The text and its length; `None` for one that is not kept.
    #[inline(always)]
    pub(super) fn text(
        &mut self,
        outside: &Outside<'_>,
        origin: Option<&SocketAddr>,
    ) -> Option<(&[u8; LONGEST], usize)> {
        let leg = self.kept.get_mut((hash(origin) % KEPT) as usize)?;
        if !leg.is_of(outside, origin) {
            leg.become_of(outside, origin, &mut self.scratch)?;
        }
        Some((&leg.text, leg.length))
    }
}

impl Leg {
    #[inline(always)]
    fn is_of(&self, outside: &Outside<'_>, origin: Option<&SocketAddr>) -> bool {
        self.length > 0
            && is_at(self.origin.as_ref(), origin)
            && is_at(self.listener.as_ref(), outside.listener.as_ref())
            && self.local_port == outside.local_port
            && is_same(self.upstream.as_bytes(), outside.upstream.as_bytes())
    }

    #[inline(never)]
    fn become_of(
        &mut self,
        outside: &Outside<'_>,
        origin: Option<&SocketAddr>,
        scratch: &mut [u8],
    ) -> Option<()> {
        if outside.upstream.len() > LONGEST_NAME {
            return None;
        }
        let room = scratch.len();
        let mut line = Line::new(scratch);
        write(&mut line, outside, origin)?;
        let length = room - line.left();
        self.length = 0;
        self.text.get_mut(..length)?.copy_from_slice(scratch.get(..length)?);
        self.upstream.clear();
        self.upstream.push_str(outside.upstream);
        (self.listener, self.origin, self.local_port) =
            (outside.listener, origin.copied(), outside.local_port);
        self.length = length;
        Some(())
    }
}

/// Writes the text.
pub(super) fn write(line: &mut Line<'_>, outside: &Outside<'_>, origin: Option<&SocketAddr>) -> Option<()> {
    let mut part = line.part()?;
    match &outside.listener {
        Some(listener) => {
            part.constant(b"\",\"listener\":\"");
            part.address(listener);
            part.constant(b"\",\"upstream\":\"");
        }
        None => part.constant(b"\",\"listener\":null,\"upstream\":\""),
    }
    let length = part.length();
    line.advance(length)?;
    line.text(outside.upstream)?;
    let mut part = line.part()?;
    match origin {
        Some(origin) => {
            part.constant(b"\",\"origin\":\"");
            part.address(origin);
            part.constant(b"\",\"local_port\":");
        }
        None => part.constant(b"\",\"origin\":null,\"local_port\":"),
    }
    match outside.local_port {
        Some(port) => part.short(port),
        None => part.constant(b"null"),
    }
    let length = part.length();
    line.advance(length)
}

fn hash(origin: Option<&SocketAddr>) -> u32 {
    let (address, port) = match origin {
        Some(SocketAddr::V4(origin)) => (origin.ip().to_bits(), origin.port()),
        Some(SocketAddr::V6(origin)) => {
            let bits = origin.ip().to_bits();
            ((bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32, origin.port())
        }
        None => (0, 0),
    };
    // The upper bits of a product depend on all bits of its factors.
    (address ^ u32::from(port) << 16).wrapping_mul(0x9E37_79B1) >> 16
}

#[inline(always)]
fn is_at(one: Option<&SocketAddr>, other: Option<&SocketAddr>) -> bool {
    match (one, other) {
        (Some(SocketAddr::V4(one)), Some(SocketAddr::V4(other))) => {
            one.ip().to_bits() == other.ip().to_bits() && one.port() == other.port()
        }
        _ => one == other,
    }
}

/// Compares two names; where they are short, without a call.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && match one.len() {
            8..=16 => {
                one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk()
            }
            4..8 => {
                one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk()
            }
            _ => one == other,
        }
}
