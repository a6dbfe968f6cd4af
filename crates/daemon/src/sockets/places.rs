//! Where a socket is, by what it is for.

use coapway_endpoint::SocketId;
use coapway_proxy::SocketRole;

/// Places of sockets; the numbers of each kind count from 0.
#[derive(Debug, Default)]
pub(super) struct Places {
    listeners: Vec<Option<usize>>,
    upstream_v4: Vec<Option<usize>>,
    upstream_v6: Vec<Option<usize>>,
}

impl Places {
    pub(super) fn get(&self, id: SocketId) -> Option<usize> {
        let (places, number) = match SocketRole::of(id) {
            SocketRole::Listener(number) => (&self.listeners, number),
            SocketRole::Upstream { ipv6: false, number } => (&self.upstream_v4, number),
            SocketRole::Upstream { ipv6: true, number } => (&self.upstream_v6, number),
        };
        *places.get(number as usize)?
    }

    /// Notes the place of a socket; `None` when it is closed.
    pub(super) fn set(&mut self, id: SocketId, place: Option<usize>) {
        let (places, number) = match SocketRole::of(id) {
            SocketRole::Listener(number) => (&mut self.listeners, number),
            SocketRole::Upstream { ipv6: false, number } => (&mut self.upstream_v4, number),
            SocketRole::Upstream { ipv6: true, number } => (&mut self.upstream_v6, number),
        };
        let number = number as usize;
        if places.len() <= number {
            places.resize(number + 1, None);
        }
        places[number] = place;
    }
}
