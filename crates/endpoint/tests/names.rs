//! What seeds make, what is printed of secrets, and the words people read.

use std::collections::HashSet;

use coapway_endpoint::matching::Tokens;
use coapway_endpoint::{AnswerKind, Local, Peer, Seed, SocketId};

#[test]
fn each_word_of_a_seed_is_eight_of_its_bytes() {
    let seed = Seed(std::array::from_fn(|byte| byte as u8));
    assert_eq!(seed.word(0), 0x0001_0203_0405_0607);
    assert_eq!(seed.word(1), 0x0809_0A0B_0C0D_0E0F);
    assert_eq!(seed.word(3), 0x1819_1A1B_1C1D_1E1F);
    assert_eq!(seed.word(4), seed.word(0), "there are four");
}

#[test]
fn each_part_of_whatever_a_seed_is_for_has_a_seed_of_its_own() {
    let seeds = [Seed([0; 32]), Seed([0xFF; 32]), Seed::from_number(1), Seed::from_number(2)];
    let parts = seeds.iter().flat_map(|seed| (0..100).map(|number| seed.part(number)));
    let different: HashSet<[u8; 32]> = parts.chain(seeds).map(|seed| seed.0).collect();
    assert_eq!(different.len(), 404);
    // Half of the bits differ between any two.
    let ones = |seed: Seed| seed.0.iter().map(|byte| byte.count_ones()).sum::<u32>();
    assert!((0..100).all(|number| (80..176).contains(&ones(Seed([0xFF; 32]).part(number)))));
    assert_eq!(Seed::from_number(7).part(3), Seed::from_number(7).part(3));
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?}", Seed([7; 32])), "Seed");
    assert_eq!(format!("{:?}", Tokens::new([7; 16])), "Tokens");
}

#[test]
fn people_read_who_it_was_and_how_it_answered() {
    let local = Local { socket: SocketId(3), address: None };
    let peer = Peer { local, remote: ([192, 0, 2, 1], 5683).into() };
    assert_eq!(peer.to_string(), "192.0.2.1:5683");
    let kinds = [AnswerKind::Piggybacked, AnswerKind::Separate, AnswerKind::NonConfirmable];
    assert_eq!(kinds.map(AnswerKind::name), ["piggybacked", "separate", "non"]);
}
