//! Look-ups under way, and a resolver that may be replaced while they are.

use std::collections::BTreeMap;
use std::task::{Context, Poll};

use coapway_transport::{Busy, Finished, Resolver};

/// A resolver and what it was asked.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Resolver,
    under_way: BTreeMap<u64, Box<str>>,
}

impl Names {
    pub(crate) const fn new(resolver: Resolver) -> Self {
        Self { resolver, under_way: BTreeMap::new() }
    }

    /// Begins to look up `name`; see [`Resolver::look_up`].
    pub(crate) fn look_up(&mut self, id: u64, name: &str) -> Result<(), Busy> {
        self.resolver.look_up(id, name)?;
        self.under_way.insert(id, name.into());
        Ok(())
    }

    /// Waits for a look-up to be done; see [`Resolver::poll_finished`].
    pub(crate) fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        let finished = self.resolver.poll_finished(cx);
        if let Poll::Ready(finished) = &finished {
            self.under_way.remove(&finished.id);
        }
        finished
    }

    /// Asks another resolver from now on, also for what the one before has not found yet. Returns the
    /// look-ups that the new one has no room for.
    pub(crate) fn replace(&mut self, resolver: Resolver) -> Vec<u64> {
        self.resolver = resolver;
        let resolver = &self.resolver;
        let refused: Vec<_> = self
            .under_way
            .iter()
            .filter(|(id, name)| resolver.look_up(**id, name).is_err())
            .map(|(&id, _)| id)
            .collect();
        refused.iter().for_each(|id| drop(self.under_way.remove(id)));
        refused
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::future::poll_fn;
    use std::net::{IpAddr, Ipv4Addr};

    use coapway_transport::Source;

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_is_asked_of_the_new_resolver() {
        let directory = tempfile::tempdir().expect("a directory");
        let hosts = directory.path().join("hosts");
        fs::write(&hosts, "192.0.2.7 boiler.example\n").expect("it can be written");
        // No server there: it would keep its look-ups for seconds.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let server = Source::Server(silent.local_addr().expect("bound"));
        let mut names = Names::new(Resolver::new(server, 1, 8).expect("threads"));
        for id in 0..3 {
            names.look_up(id, "boiler.example").expect("there is room");
        }
        assert!(names.replace(Resolver::new(Source::Hosts(hosts), 1, 8).expect("threads")).is_empty());
        for _ in 0..3 {
            let found = poll_fn(|cx| names.poll_finished(cx)).await;
            assert_eq!(found.addresses, Ok(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))]));
        }
        assert!(names.under_way.is_empty());
    }
}
