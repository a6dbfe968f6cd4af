//! sendmmsg, with a source address for each datagram.

use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd as _;

use super::result;

/// Datagrams that leave one socket with one system call.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    bytes: Range<usize>,
    from: Option<Ipv4Addr>,
    to: SocketAddrV4,
}

/// An IP_PKTINFO control message: the address a datagram leaves from.
#[repr(C)]
struct Source {
    header: libc::cmsghdr,
    address: libc::in_pktinfo,
}

impl Batch {
    /// Adds a datagram; on a socket bound to 0.0.0.0, `from` may be any address of this host.
    pub(crate) fn push(&mut self, from: Option<Ipv4Addr>, to: SocketAddrV4, datagram: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.entries.push(Entry { bytes: start..self.bytes.len(), from, to });
    }

    /// How many datagrams wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sends and forgets them all; returns how many left. One that the system refuses is skipped.
    pub(crate) fn send(&mut self, socket: &UdpSocket) -> usize {
        let mut names: Vec<libc::sockaddr_in> = self.entries.iter().map(|entry| name(entry.to)).collect();
        let mut sources: Vec<Source> = self.entries.iter().map(|entry| source(entry.from)).collect();
        let mut slices: Vec<libc::iovec> = self
            .entries
            .iter()
            .map(|entry| libc::iovec {
                iov_base: self.bytes.as_mut_ptr().wrapping_add(entry.bytes.start).cast(),
                iov_len: entry.bytes.len(),
            })
            .collect();
        let mut headers: Vec<libc::mmsghdr> = Vec::with_capacity(self.entries.len());
        for (place, entry) in self.entries.iter().enumerate() {
            // SAFETY: all zeros is a valid mmsghdr.
            let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
            header.msg_hdr.msg_name = (&raw mut names[place]).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_hdr.msg_iov = &raw mut slices[place];
            header.msg_hdr.msg_iovlen = 1;
            if entry.from.is_some() {
                header.msg_hdr.msg_control = (&raw mut sources[place]).cast();
                header.msg_hdr.msg_controllen = size_of::<Source>() as _;
            }
            headers.push(header);
        }
        let (mut first, mut left) = (0, 0);
        while first < headers.len() {
            let rest = &mut headers[first..];
            // SAFETY: every header points into `names`, `slices`, `sources` and `self.bytes`, all of
            // which live through the call and are not touched meanwhile.
            let outcome = unsafe {
                libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as libc::c_uint, 0)
            };
            match result(outcome) {
                Ok(sent) if sent > 0 => {
                    first += sent as usize;
                    left += sent as usize;
                }
                Ok(_) | Err(_) => first += 1,
            }
        }
        self.bytes.clear();
        self.entries.clear();
        left
    }
}

fn name(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all zeros is a valid sockaddr_in.
    let mut name: libc::sockaddr_in = unsafe { mem::zeroed() };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = address.port().to_be();
    name.sin_addr.s_addr = u32::from(*address.ip()).to_be();
    name
}

fn source(address: Option<Ipv4Addr>) -> Source {
    // SAFETY: all zeros is a valid control message.
    let mut source: Source = unsafe { mem::zeroed() };
    source.header.cmsg_level = libc::IPPROTO_IP;
    source.header.cmsg_type = libc::IP_PKTINFO;
    // SAFETY: only computes a length.
    source.header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<libc::in_pktinfo>() as libc::c_uint) } as _;
    source.address.ipi_spec_dst.s_addr = u32::from(address.unwrap_or(Ipv4Addr::UNSPECIFIED)).to_be();
    source
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_datagram_has_its_own_source_address() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let SocketAddr::V4(to) = receiver.local_addr().unwrap() else { panic!("IPv4 was asked for") };
        let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let sources = [Ipv4Addr::new(127, 1, 2, 3), Ipv4Addr::new(127, 250, 0, 9)];
        let mut batch = Batch::default();
        for (from, datagram) in sources.into_iter().zip([&b"one"[..], b"other"]) {
            batch.push(Some(from), to, datagram);
        }
        batch.push(None, to, b"");
        assert_eq!((batch.len(), batch.send(&sender), batch.len()), (3, 3, 0));
        let mut buffer = [0; 16];
        let mut received = || {
            let (length, from) = receiver.recv_from(&mut buffer).unwrap();
            (from.ip(), buffer[..length].to_vec())
        };
        assert_eq!(received(), (sources[0].into(), b"one".to_vec()));
        assert_eq!(received(), (sources[1].into(), b"other".to_vec()));
        assert_eq!(received(), (Ipv4Addr::LOCALHOST.into(), Vec::new()));
    }
}
