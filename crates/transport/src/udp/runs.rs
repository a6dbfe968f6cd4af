//! Runs: datagrams of one length to one peer that the kernel takes in one piece.

use super::outgoing::Outgoing;

/// The longest datagram that may be one of a run, in bytes: what every IPv6 path carries whole. The
/// kernel cuts a run but never fragments its datagrams.
const LONGEST_DATAGRAM: usize = 1280 - 40 - 8;
/// The most datagrams in a run.
/// Source: Linux, `UDP_MAX_SEGMENTS`.
const MOST: usize = 64;
/// The most bytes in a run: what fits into one IP packet, less all headers.
const LARGEST: usize = 65_535 - 60 - 8;

/// How many datagrams, from the first of `order`, make a run.
pub(super) fn length(outgoing: &[Outgoing], order: &[u32]) -> usize {
    let mut datagrams = order.iter().map_while(|&place| outgoing.get(place as usize));
    let Some(first) = datagrams.next() else { return 0 };
    if first.length > LONGEST_DATAGRAM {
        return 1;
    }
    let (mut bytes, mut count) = (first.length, 1);
    for next in datagrams.take(MOST - 1) {
        bytes += next.length;
        let fits = 0 < next.length && next.length <= first.length && bytes <= LARGEST;
        if !fits || next.way != first.way {
            break;
        }
        count += 1;
        if next.length < first.length {
            // Only the last may be shorter.
            break;
        }
    }
    count
}

/// Sorts datagrams that have no order by way and length, the longest first; others stay where they are.
pub(super) fn sort(outgoing: &[Outgoing], order: &mut [u32], keys: &mut Vec<u64>) {
    let mut section = 0_u64;
    keys.clear();
    for (position, &place) in (0_u64..).zip(&*order) {
        let Some(datagram) = outgoing.get(place as usize) else { return };
        if !datagram.unordered {
            section += 2;
        }
        let shortness = u64::from(u16::MAX - u16::try_from(datagram.length).unwrap_or(u16::MAX));
        // One that has its order is a section by itself.
        let section = if datagram.unordered { section } else { section - 1 };
        keys.push(section << 48 | u64::from(datagram.way & 0xFFFF) << 32 | shortness << 16 | position);
    }
    if keys.is_sorted() {
        return;
    }
    keys.sort_unstable();
    for key in keys.iter_mut() {
        *key = u64::from(order[(*key & 0xffff) as usize]);
    }
    for (place, key) in order.iter_mut().zip(&*keys) {
        *place = *key as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::super::send::SendBatch;
    use crate::control;
    use crate::envelope::Envelope;
    use crate::sockaddr::Family;

    const ORDERED: bool = false;
    const UNORDERED: bool = true;

    /// The runs that datagrams of these lengths make, each to a peer of this number: their lengths, and the
    /// first byte of each datagram, which is its number.
    fn runs(datagrams: &[(bool, u8, usize)]) -> (Vec<usize>, Vec<u8>) {
        let mut batch = SendBatch::new(datagrams.len());
        for (number, &(unordered, peer, length)) in (0..).zip(datagrams) {
            let to = SocketAddr::from(([127, 0, 0, peer], 5683));
            let datagram = vec![number; length];
            if unordered {
                batch.push_unordered(to, None, &datagram);
            } else {
                batch.push(to, None, &datagram);
            }
        }
        let (envelopes, pieces, bytes) = batch.prepare(Family::V4, true, true);
        assert_eq!(pieces.len(), envelopes.iter().map(|envelope| envelope.pieces).sum());
        let mut numbers: Vec<u8> = pieces.iter().flat_map(|piece| bytes[piece.clone()].to_vec()).collect();
        numbers.dedup();
        (envelopes.iter().map(|envelope| envelope.datagrams).collect(), numbers)
    }

    fn ordered(datagrams: &[(u8, usize)]) -> Vec<usize> {
        runs(&datagrams.iter().map(|&(peer, length)| (ORDERED, peer, length)).collect::<Vec<_>>()).0
    }

    #[test]
    fn neighbours_of_one_length_to_one_peer_are_a_run() {
        assert_eq!(ordered(&[(1, 20), (1, 20), (1, 20)]), [3]);
        assert_eq!(ordered(&[(1, 20), (2, 20), (1, 20)]), [1, 1, 1]);
        assert_eq!(ordered(&[(1, 20), (1, 20), (2, 20), (2, 20), (2, 20)]), [2, 3]);
    }

    #[test]
    fn only_the_last_of_a_run_may_be_shorter() {
        assert_eq!(ordered(&[(1, 20), (1, 20), (1, 19), (1, 19), (1, 20)]), [3, 1, 1]);
        assert_eq!(ordered(&[(1, 20), (1, 21), (1, 21)]), [1, 2]);
        assert_eq!(ordered(&[(1, 20), (1, 0), (1, 20)]), [1, 1, 1], "an empty datagram is no part of a run");
    }

    #[test]
    fn a_run_is_no_larger_than_the_kernel_takes() {
        assert_eq!(ordered(&[(1, 1232); 60]), [53, 7]);
        assert_eq!(ordered(&[(1, 1233); 2]), [1, 1], "a router may have to fragment it");
    }

    #[test]
    fn what_has_no_order_is_sorted_by_peer_and_length() {
        let (lengths, numbers) = runs(&[
            (UNORDERED, 1, 20),
            (UNORDERED, 2, 21),
            (UNORDERED, 1, 22),
            (UNORDERED, 2, 21),
            (UNORDERED, 1, 20),
            (UNORDERED, 1, 22),
        ]);
        assert_eq!(numbers, [2, 5, 0, 4, 1, 3], "equal ones keep their order");
        assert_eq!(lengths, [3, 1, 2], "two of 22 and one of 20, one of 20, two of 21");
    }

    #[test]
    fn nothing_moves_across_what_has_its_order() {
        let (lengths, numbers) = runs(&[
            (UNORDERED, 1, 20),
            (UNORDERED, 1, 22),
            (ORDERED, 1, 21),
            (ORDERED, 1, 22),
            (UNORDERED, 1, 20),
            (UNORDERED, 1, 22),
        ]);
        assert_eq!(numbers, [1, 0, 2, 3, 5, 4]);
        assert_eq!(lengths, [2, 1, 3]);
    }

    #[test]
    fn many_peers_are_no_harm() {
        let datagrams: Vec<_> = (0..64).map(|number| (UNORDERED, number % 20, 20)).collect();
        let (lengths, mut numbers) = runs(&datagrams);
        assert_eq!(lengths.iter().sum::<usize>(), 64);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..64));
    }

    #[test]
    fn a_run_leaves_from_one_address() {
        let mut batch = SendBatch::new(3);
        let to = SocketAddr::from(([127, 0, 0, 1], 5683));
        for from in [7, 8, 8] {
            batch.push(to, Some(IpAddr::from([127, 0, 0, from])), b"x");
        }
        let (envelopes, ..) = batch.prepare(Family::V4, true, true);
        assert_eq!(envelopes.iter().map(|envelope| envelope.datagrams).collect::<Vec<_>>(), [1, 2]);
        let told = |envelope: &Envelope| {
            control::messages(&envelope.control[..envelope.control_length])
                .map(|message| (message.level, message.kind, message.data.len()))
                .collect::<Vec<_>>()
        };
        let source = (libc::IPPROTO_IP, libc::IP_PKTINFO, 12);
        assert_eq!(told(&envelopes[0]), [source]);
        assert_eq!(told(&envelopes[1]), [source, (libc::SOL_UDP, libc::UDP_SEGMENT, 2)]);
    }
}
