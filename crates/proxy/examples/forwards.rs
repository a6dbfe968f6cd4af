//! Plain forwards without sockets, for profilers: `forwards [ROUNDS] [CLIENTS]`.

#[path = "../tests/forwards/mod.rs"]
mod forwards;

use std::time::Duration;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let (rounds, clients) = (numbers.next().unwrap_or(1000), numbers.next().unwrap_or(16));
    let mut forwards = forwards::Forwards::new(clients, Duration::from_millis(1), false);
    (0..rounds).for_each(|_| forwards.round());
    println!("{} forwards", forwards.answered);
}
