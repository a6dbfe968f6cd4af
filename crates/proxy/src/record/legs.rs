//! What many records have in common: the listener, the upstream, the origin and our port towards it.
//! Their text is kept.

use std::net::{Ipv4Addr, SocketAddr};

use coapway_endpoint::SocketId;

use super::line::Line;

/// No text that is kept is longer, in bytes.
pub(super) const LONGEST: usize = 192;
/// So many are kept, one for each hash of an origin.
const KEPT: u32 = 64;
/// What a text takes at the most but for the upstream's name, in bytes.
pub(super) const ROOM: usize = 2 * super::part::ROOM;
/// The text of a longer name is not kept.
const LONGEST_NAME: usize = 64;

/// What a text is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'w> {
    pub(super) listener: SocketId,
    pub(super) upstream: &'w str,
    /// The origin and our socket towards it.
    pub(super) origin: Option<(&'w SocketAddr, SocketId)>,
}

/// The addresses of sockets.
pub(super) type Addresses<'a> = &'a dyn Fn(SocketId) -> Option<SocketAddr>;

/// The texts from behind the client's address to our port.
#[derive(Debug)]
pub(super) struct Legs {
    kept: Box<[Leg]>,
    /// Where a text is made.
    scratch: Box<[u8]>,
}

#[derive(Clone, Debug)]
struct Leg {
    listener: SocketId,
    socket: SocketId,
    origin: SocketAddr,
    upstream: String,
    text: [u8; LONGEST],
    /// Zero for none.
    length: usize,
}

impl Legs {
    pub(super) fn new() -> Self {
        let none = Leg {
            listener: SocketId(0),
            socket: SocketId(0),
            origin: (Ipv4Addr::UNSPECIFIED, 0).into(),
            upstream: String::new(),
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
        way: &Way<'_>,
        addresses: Addresses<'_>,
    ) -> Option<(&[u8; LONGEST], usize)> {
        let (origin, socket) = way.origin?;
        let leg = self.kept.get_mut((hash(origin) % KEPT) as usize)?;
        let is_known = leg.length > 0
            && leg.listener == way.listener
            && leg.socket == socket
            && is_at(&leg.origin, origin)
            && is_same(leg.upstream.as_bytes(), way.upstream.as_bytes());
        if !is_known {
            leg.learn(way, addresses, &mut self.scratch)?;
        }
        Some((&leg.text, leg.length))
    }
}

impl Leg {
    #[inline(never)]
    fn learn(&mut self, way: &Way<'_>, addresses: Addresses<'_>, scratch: &mut [u8]) -> Option<()> {
        let (origin, socket) = way.origin?;
        // What is unknown now may be known later.
        let is_known = addresses(way.listener).is_some() && addresses(socket).is_some();
        if !is_known || way.upstream.len() > LONGEST_NAME {
            return None;
        }
        let room = scratch.len();
        let mut line = Line::new(scratch);
        write(&mut line, way, addresses)?;
        let length = room - line.left();
        self.length = 0;
        self.text.get_mut(..length)?.copy_from_slice(scratch.get(..length)?);
        self.upstream.clear();
        self.upstream.push_str(way.upstream);
        (self.listener, self.socket, self.origin) = (way.listener, socket, *origin);
        self.length = length;
        Some(())
    }
}

/// Writes the text.
pub(super) fn write(line: &mut Line<'_>, way: &Way<'_>, addresses: Addresses<'_>) -> Option<()> {
    let mut part = line.part()?;
    match addresses(way.listener) {
        Some(listener) => {
            part.constant(b"\",\"listener\":\"");
            part.address(&listener);
            part.constant(b"\",\"upstream\":\"");
        }
        None => part.constant(b"\",\"listener\":null,\"upstream\":\""),
    }
    let length = part.length();
    line.advance(length)?;
    line.text(way.upstream)?;
    let mut part = line.part()?;
    match way.origin {
        Some((origin, _)) => {
            part.constant(b"\",\"origin\":\"");
            part.address(origin);
            part.constant(b"\",\"local_port\":");
        }
        None => part.constant(b"\",\"origin\":null,\"local_port\":"),
    }
    match way.origin.and_then(|(_, socket)| addresses(socket)) {
        Some(local) => part.short(local.port()),
        None => part.constant(b"null"),
    }
    let length = part.length();
    line.advance(length)
}

fn hash(origin: &SocketAddr) -> u32 {
    let (address, port) = match origin {
        SocketAddr::V4(origin) => (origin.ip().to_bits(), origin.port()),
        SocketAddr::V6(origin) => {
            let bits = origin.ip().to_bits();
            ((bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32, origin.port())
        }
    };
    // The upper bits of a product depend on all bits of its factors.
    (address ^ u32::from(port) << 16).wrapping_mul(0x9E37_79B1) >> 26
}

#[inline(always)]
fn is_at(one: &SocketAddr, other: &SocketAddr) -> bool {
    match (one, other) {
        (SocketAddr::V4(one), SocketAddr::V4(other)) => {
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
