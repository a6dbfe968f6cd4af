//! What a socket is made with, and how that is told to the kernel.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::syscalls;

/// What a socket is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether other sockets may be bound to the same address, to share its datagrams. Default: no.
    pub reuse_port: bool,
    /// Whether a socket bound to `[::]` takes IPv4 as well. Default: no.
    pub dual_stack: bool,
    /// Whether a socket on a wildcard address tells to which address of ours each datagram came.
    /// Default: yes; it costs about half a microsecond a datagram.
    pub destinations: bool,
    /// Bytes of receive buffer to ask for. Default: 4 MiB, some 10,000 small datagrams, or 0.2 s of
    /// 50,000/s: the kernel doubles it and charges each of them with about 800 bytes.
    pub receive_buffer: usize,
    /// Bytes of send buffer to ask for. Default: 1 MiB.
    pub send_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reuse_port: false,
            dual_stack: false,
            destinations: true,
            receive_buffer: 4 << 20,
            send_buffer: 1 << 20,
        }
    }
}

impl Options {
    /// How many bytes of receive buffer the system grants, found out with a socket that is closed again.
    ///
    /// Errors: there is no socket to be had on loopback.
    pub fn granted_receive_buffer(&self) -> io::Result<usize> {
        granted(&self.open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?)
    }

    /// Makes a socket and binds it to `address`.
    pub(super) fn open(&self, address: SocketAddr) -> io::Result<Socket> {
        let wildcard = address.ip().is_unspecified();
        let dual_stack = address.is_ipv6() && wildcard && self.dual_stack;

        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(!dual_stack)?;
            set_options_v6(socket.as_fd(), wildcard && self.destinations)?;
        }
        if !self.destinations {
            // Nobody here could tell what was sent to a group that some other program has joined.
            refuse_groups(socket.as_fd(), address.is_ipv4())?;
        }
        if address.is_ipv4() || dual_stack {
            // On a dual-stack socket the IPv6 option tells where an IPv4 datagram went to as well, but
            // not whether that was a broadcast.
            set_options_v4(socket.as_fd(), wildcard && self.destinations)?;
        }
        if self.reuse_port {
            socket.set_reuse_port(true)?;
        }
        // The forced options go past `net.core.rmem_max` and `wmem_max`, given CAP_NET_ADMIN.
        set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, self.receive_buffer)?;
        set_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, self.send_buffer)?;
        socket.bind(&address.into())?;
        Ok(socket)
    }
}

/// The kernel doubles what it is asked for, to pay for its own structures, and tells that.
pub(super) fn granted(socket: &Socket) -> io::Result<usize> {
    Ok(socket.recv_buffer_size()? / 2)
}

fn set_options_v4(socket: BorrowedFd<'_>, packet_information: bool) -> io::Result<()> {
    syscalls::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
    // No DF bit. By default the kernel sets it and learns the path's MTU from the routers' answers;
    // each path costs a datagram until it is learnt, or all large ones where a firewall drops the
    // answers. A proxy has many peers and few datagrams above a common MTU, so routers fragment
    // those. IPv6 stays at its default, since only we can fragment there: to the MTU that is known.
    // Source: RFC 7252 §4.6.
    syscalls::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)?;
    if packet_information {
        syscalls::set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    Ok(())
}

fn set_options_v6(socket: BorrowedFd<'_>, packet_information: bool) -> io::Result<()> {
    syscalls::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
    if packet_information {
        syscalls::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
    }
    Ok(())
}

fn refuse_groups(socket: BorrowedFd<'_>, v4: bool) -> io::Result<()> {
    let (level, option) = match v4 {
        true => (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        false => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL),
    };
    syscalls::set_option(socket, level, option, 0)
}

fn set_buffer(socket: &Socket, forced: i32, capped: i32, size: usize) -> io::Result<()> {
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, forced, size)
        .or_else(|_| syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, capped, size))
}
