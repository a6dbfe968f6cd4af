//! One number makes one storm: clients, origins and settings out of a seed, on links that lose,
//! double and overtake, with every check watching.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use coapway_time::Instant;

use crate::checks::Violation;
use crate::journal::Sent;
use crate::network::stream;
use crate::sockets::LISTENER;
use crate::world::World;

mod making;
mod tally;

pub use making::world;
pub use tally::Tally;

use making::{ORIGINS, STRANGER, parsed, reordered};

/// Disturbances from a host that takes no part.
const DISTURBANCES: u32 = 12;
/// They happen within so many seconds.
const DISTURBED: u64 = 60;
/// An origin that restarts is silent for a while before and after its host says that nobody listens: who
/// gets that for one of two copies that the network made could not know that the other was heard.
const SILENT: Duration = Duration::from_secs(1);
/// Longer than `max_wait` on both legs and all that a client waits for.
const LIMIT: Instant = Instant::from_micros(900_000_000);

/// A run that violated something, or panicked.
#[derive(Debug)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// What.
    pub what: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what } = self;
        write!(f, "seed {seed}: {what}\n  replay: cargo run -p coapway-sim -- run --seed {seed}")
    }
}

/// Runs one seed to its end.
///
/// Errors: what was violated; a panic inside the proxy counts.
pub fn run(seed: u64) -> Result<Tally, Failed> {
    let run = || {
        let mut world = world(seed);
        drive(&mut world);
        let violations: Vec<_> = world.violations().iter().map(Violation::to_string).collect();
        if violations.is_empty() { Ok(Tally::of(&world)) } else { Err(violations.join("\n  ")) }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(tally)) => Ok(tally),
        Ok(Err(what)) => Err(Failed { seed, what }),
        Err(panic) => {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(Failed { seed, what: format!("panicked: {what}") })
        }
    }
}

/// Runs one seed as far as it gets and keeps the world, for reading.
pub fn replay(seed: u64) -> World {
    let mut world = world(seed);
    // A panic ends the run; what happened until then is what is to be read.
    let _ = catch_unwind(AssertUnwindSafe(|| drive(&mut world)));
    world
}

/// Lets a storm happen, with what disturbs it from outside.
fn drive(world: &mut World) {
    let seed = world.seed();
    let mut random = fastrand::Rng::with_seed(stream(seed, &["disturbances"]));
    let stalls = random.u8(0..5) == 0;
    let restarts = random.u8(0..3) == 0;
    let mut reloads = fastrand::Rng::with_seed(stream(seed, &["reloads"]));
    let reloads_settings = reloads.u8(0..3) == 0;
    let mut times: Vec<_> = (0..DISTURBANCES).map(|_| random.u64(0..DISTURBED * 1_000_000)).collect();
    times.sort_unstable();
    for at in times {
        world.run_until(Instant::from_micros(at));
        if !world.violations().is_empty() {
            return;
        }
        if reloads_settings && reloads.bool() {
            world.reload(&reordered(seed, &mut reloads));
        }
        match random.u8(0..14) {
            10..14 if restarts => restart(world, &mut random),
            0 if stalls => world.stall(Duration::from_millis(random.u64(1..8_000))),
            0..5 => world.send(parsed(STRANGER), LISTENER, noise(&mut random)),
            _ => forge(world, &mut random),
        }
    }
    world.run_out(LIMIT);
}

/// An origin loses its state and goes away for some seconds, in silence or with ICMP errors.
fn restart(world: &mut World, random: &mut fastrand::Rng) {
    let Some(&address) = random.choice(&ORIGINS) else { return };
    let address = parsed(address);
    let closes = world.now() + SILENT;
    let opens = closes + Duration::from_millis(random.u64(0..10_000));
    world.restart(address, opens + SILENT);
    if random.bool() {
        world.close(address, closes, opens);
    }
}

/// A header that could be one, and chance behind it.
fn noise(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(2..24)];
    random.fill(&mut bytes);
    bytes[0] = 0x40 | bytes[0] & 0x3F;
    bytes
}

/// What an origin said to the proxy, from elsewhere and perhaps damaged.
fn forge(world: &mut World, random: &mut fastrand::Rng) {
    let said = |sent: &&Sent| sent.to.ip() == LISTENER.ip() && sent.to != LISTENER && !sent.is_error;
    let Some((to, mut bytes)) =
        world.journal().datagrams().iter().rfind(said).map(|sent| (sent.to, sent.bytes.clone()))
    else {
        return;
    };
    if random.bool() {
        let place = random.usize(0..bytes.len());
        bytes[place] ^= 1 << random.u8(0..8);
    }
    world.send(parsed(STRANGER), to, bytes);
}
