//! The devices that ask, steadily.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::Method;
use coapway_sim::client::{Request, Target};
use coapway_sim::network::stream;
use coapway_time::Instant;

/// Where devices are; their addresses are believed.
pub(crate) const NETWORK: &str = "10.1.0.0/16";
/// How long a device listens for an answer: longer than `max_wait`, so that it hears every answer there is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(7);

/// A device, which asks one thing again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) confirmable: bool,
    /// How often, in milliseconds.
    every: u64,
}

pub(crate) const DEVICES: [Device; 4] = [
    Device { name: "sensor", method: Method::Get, path: "temperature", confirmable: true, every: 900 },
    Device { name: "valve", method: Method::Post, path: "valve", confirmable: true, every: 1000 },
    Device { name: "door", method: Method::Get, path: "door", confirmable: true, every: 1300 },
    Device { name: "meter", method: Method::Get, path: "meter", confirmable: false, every: 2600 },
];

impl Device {
    /// The words for a list: method and path.
    pub(crate) fn asks(&self) -> String {
        format!("{} /{}", self.method.name(), self.path)
    }
}

/// Where a device is.
pub(crate) fn address(device: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, device as u8 + 1], 40_000))
}

/// Which device is there.
pub(crate) fn device_at(address: SocketAddr) -> Option<usize> {
    (0..DEVICES.len()).find(|&device| self::address(device) == address)
}

/// What all devices ask, in order of time; the same in every world.
#[derive(Debug)]
pub(crate) struct Requests {
    random: fastrand::Rng,
    next: [Instant; DEVICES.len()],
    key: u32,
}

impl Requests {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(stream(seed, &["devices"]));
        let next = DEVICES.map(|device| Instant::from_micros(random.u64(0..device.every * 600)));
        Self { random, next, key: 0 }
    }

    /// What is asked before `until` and was not told before: which device, and what.
    pub(crate) fn before(&mut self, until: Instant) -> Vec<(usize, Request)> {
        let mut requests = Vec::new();
        loop {
            let soonest = (0..DEVICES.len()).min_by_key(|&device| self.next[device]);
            let Some(device) = soonest.filter(|&device| self.next[device] < until) else { return requests };
            let Device { method, path, confirmable, every, .. } = DEVICES[device];
            self.key += 1;
            let target = Target::Path(vec![path]);
            let (at, key) = (self.next[device], self.key);
            requests.push((device, Request { at, key, method, confirmable, target, patience: PATIENCE }));
            self.next[device] += Duration::from_micros(self.random.u64(every * 900..every * 1100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_ask_steadily_and_keys_follow_time() {
        let until = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut requests = Requests::new(1);
        let mut all = requests.before(until(50));
        all.extend(requests.before(until(100)));
        assert!(all.is_sorted_by_key(|(_, request)| (request.at, request.key)));
        let asked = |device| all.iter().filter(|(who, _)| *who == device).count();
        assert_eq!((0..4).map(|device| asked(device).div_ceil(10)).collect::<Vec<_>>(), [11, 10, 8, 4]);
        assert_eq!((0..4).map(address).map(device_at).collect::<Option<Vec<_>>>(), Some(vec![0, 1, 2, 3]));
    }
}
