//! A queue with random arrivals, and what theory says of it.

use std::time::Duration;

use coapway_time::Instant;

use crate::fifo::Fifo;
use crate::random::{exponential, stream};

/// How long each is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Always equally long: M/D/1.
    Deterministic,
    /// Exponential: M/M/1.
    Exponential,
}

/// The mean time that `arrivals` random arrivals wait before they are served, at a load of `load`.
pub fn mean_wait(service: Service, mean: Duration, load: f64, seed: u64, arrivals: u64) -> Duration {
    let mut random = stream(seed, [1, 0, 0]);
    let mut queue = Fifo::new(mean, Duration::ZERO);
    let mut now = Instant::ZERO;
    let mut waited = 0;
    for _ in 0..arrivals {
        now += exponential(mean.div_f64(load), &mut random);
        let service = match service {
            Service::Deterministic => mean,
            Service::Exponential => exponential(mean, &mut random),
        };
        let leaves = queue.enter_for(service, now);
        waited += leaves.since(now).saturating_sub(service).as_micros();
    }
    Duration::from_secs_f64(waited as f64 / 1e6 / arrivals as f64)
}

/// The same by Pollaczek and Khinchine.
pub fn formula(service: Service, mean: Duration, load: f64) -> Duration {
    let wait = mean.mul_f64(load / (1.0 - load));
    match service {
        Service::Deterministic => wait / 2,
        Service::Exponential => wait,
    }
}
