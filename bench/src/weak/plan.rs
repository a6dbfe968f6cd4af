//! Who asks what and when: the very requests that the simulator lets its clients make.

use std::time::Duration;

use coapway_lab::Chance;

/// What is asked in a run, of however many proxies.
pub(super) struct Plan {
    /// In order of time; the place of a request is its number on the wire.
    pub(super) requests: Vec<Planned>,
    /// The chance of each origin's link.
    pub(super) chances: Vec<Chance>,
    /// Clients of each origin.
    pub(super) clients: u8,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Planned {
    /// Since the beginning.
    pub(super) at: Duration,
    /// Of which origin.
    pub(super) origin: u8,
    /// By which of its clients.
    pub(super) client: u8,
    /// Which of that client's.
    pub(super) number: u32,
}

impl Plan {
    /// For so many origins, each asked `rate` times a second by its clients, at random.
    pub(super) fn new(seed: u64, origins: u8, clients: u8, rate: f64, length: Duration) -> Self {
        let chances: Vec<Chance> = (0..origins).map(|origin| Chance::of_run(seed, origin.into())).collect();
        let mean = f64::from(clients) / rate;
        let mut requests = Vec::new();
        for (origin, chance) in (0..origins).zip(&chances) {
            for client in 0..clients {
                let gaps = (0..).map(|number| (number, chance.gap(client.into(), number, mean)));
                let moments = gaps.scan(0.0, |at, (number, gap)| {
                    *at += gap;
                    Some((number, *at))
                });
                requests.extend(
                    moments.take_while(|(_, at)| *at < length.as_secs_f64()).map(|(number, at)| Planned {
                        at: Duration::from_secs_f64(at),
                        origin,
                        client,
                        number,
                    }),
                );
            }
        }
        requests.sort_by_key(|request| request.at);
        Self { requests, chances, clients }
    }

    /// The socket of a request's client.
    pub(super) fn socket(&self, request: Planned) -> u16 {
        u16::from(request.origin) * u16::from(self.clients) + u16::from(request.client)
    }

    /// How many sockets there are for each proxy.
    pub(super) fn sockets(&self) -> u16 {
        self.chances.len() as u16 * u16::from(self.clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_as_often_as_it_is_told_and_in_order() {
        let plan = Plan::new(3, 4, 8, 5.0, Duration::from_secs(100));
        // 2000 on average, 4.5 standard deviations.
        assert!((1800..2200).contains(&plan.requests.len()), "{}", plan.requests.len());
        assert!(plan.requests.is_sorted_by_key(|request| request.at));
        let mut sockets: Vec<u16> = plan.requests.iter().map(|request| plan.socket(*request)).collect();
        sockets.sort_unstable();
        sockets.dedup();
        assert_eq!(sockets, (0..plan.sockets()).collect::<Vec<_>>());
    }

    #[test]
    fn each_client_counts_its_own() {
        let plan = Plan::new(3, 2, 2, 5.0, Duration::from_secs(20));
        for origin in 0..2 {
            for client in 0..2 {
                let own = plan.requests.iter().filter(|it| (it.origin, it.client) == (origin, client));
                assert!(own.enumerate().all(|(place, request)| request.number == place as u32));
            }
        }
    }
}
