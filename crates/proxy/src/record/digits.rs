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

/// `0.` to `255.`, as a number of an IPv4 address stands before its dot.
const OCTETS: [[u8; 4]; 256] = {
    let mut octets = [*b".   "; 256];
    let mut value = 0;
    while value < 256 {
        let digits = [b'0' + (value / 100) as u8, b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8];
        octets[value] = match value {
            0..10 => [digits[2], b'.', b' ', b' '],
            10..100 => [digits[1], digits[2], b'.', b' '],
            _ => [digits[0], digits[1], digits[2], b'.'],
        };
        value += 1;
    }
    octets
};

/// Two digits of a number below 100; of a larger one, its last two.
#[inline]
pub(super) const fn pair(value: u32) -> [u8; 2] {
    PAIRS[(value % 100) as usize]
}

/// Four digits of a number below 10 000; of a larger one, its last four.
#[inline]
pub(super) const fn four(value: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (pair(value / 100), pair(value % 100));
    [a, b, c, d]
}

/// Two hexadecimal digits.
#[inline]
pub(super) const fn hex(byte: u8) -> [u8; 2] {
    HEX[byte as usize]
}

/// The number and a dot, with spaces behind them, and the number's length.
#[inline]
pub(super) const fn octet(byte: u8) -> ([u8; 4], usize) {
    (OCTETS[byte as usize], 1 + (byte > 9) as usize + (byte > 99) as usize)
}
