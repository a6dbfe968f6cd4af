//! Text of numbers, a few digits at a time.

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value as usize] = [b'0' + value / 10, b'0' + value % 10];
        value += 1;
    }
    pairs
};

/// `00` to `ff`.
const HEX: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let digits = b"0123456789abcdef";
    let mut value = 0;
    while value < 256 {
        pairs[value] = [digits[value >> 4], digits[value & 15]];
        value += 1;
    }
    pairs
};

/// `0.` to `255.`, as a number of an IPv4 address stands before a dot, and in the last byte how many
/// bytes that are.
const OCTETS: [u64; 256] = {
    let mut octets = [0; 256];
    let mut value = 0;
    while value < 256 {
        let [a, b, c] = [value / 100, value / 10 % 10, value % 10];
        let [a, b, c] = [b'0' + a as u8, b'0' + b as u8, b'0' + c as u8];
        octets[value] = u64::from_le_bytes(match value {
            0..10 => [c, b'.', 0, 0, 0, 0, 0, 2],
            10..100 => [b, c, b'.', 0, 0, 0, 0, 3],
            _ => [a, b, c, b'.', 0, 0, 0, 4],
        });
        value += 1;
    }
    octets
};

/// Two digits of a number below 100; of a larger one, its last two.
#[inline(always)]
pub(super) const fn pair(value: u32) -> [u8; 2] {
    PAIRS[(value % 100) as usize]
}

/// Four digits of a number below 10 000; of a larger one, its last four.
#[inline(always)]
pub(super) const fn four(value: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (pair(value / 100), pair(value % 100));
    [a, b, c, d]
}

/// Two hexadecimal digits.
#[inline(always)]
pub(super) const fn hex(byte: u8) -> [u8; 2] {
    HEX[byte as usize]
}

/// Two hexadecimal digits of each byte, the lowest byte's first.
#[inline(always)]
pub(super) const fn hex_of_four(bytes: u32) -> [u8; 8] {
    // Each byte moves to the lower half of two, then its upper half to the lower byte of them.
    let bytes = bytes as u64;
    let bytes = (bytes | bytes << 16) & 0x0000_FFFF_0000_FFFF;
    let bytes = (bytes | bytes << 8) & 0x00FF_00FF_00FF_00FF;
    let halves = bytes >> 4 & 0x000F_000F_000F_000F | (bytes & 0x000F_000F_000F_000F) << 8;
    // 1 where a half is above 9 and becomes a letter.
    let letters = (halves + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (halves + 0x3030_3030_3030_3030 + letters * (b'a' - b'9' - 1) as u64).to_le_bytes()
}

/// Two numbers of an IPv4 address with a dot behind each, and how many bytes that are.
#[inline(always)]
pub(super) const fn octets(first: u8, second: u8) -> ([u8; 8], usize) {
    let (first, second) = (OCTETS[first as usize], OCTETS[second as usize]);
    let (before, after) = (first >> 56, second >> 56);
    let text = first as u32 as u64 | (second as u32 as u64) << (8 * before);
    (text.to_le_bytes(), (before + after) as usize)
}
