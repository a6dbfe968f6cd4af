//! The value of a Block1 or Block2 option (RFC 7959 §2.2).

use coapway_message::options::uint;
use coapway_message::{OptionNumber, OptionsWriter};

/// One block of a body: which, how large, and whether more follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its number, at most 2^20 - 1.
    pub num: u32,
    /// Whether further blocks follow.
    pub more: bool,
    /// The exponent of its size, 0 to 6.
    pub szx: u8,
}

impl Block {
    /// The largest size exponent: blocks of 1 024 bytes.
    pub const MAX_SZX: u8 = 6;

    /// Reads an option value; `None` for the reserved size exponent 7, which means something on
    /// reliable transports only (RFC 8323 §6), and above 3 bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = uint(value).filter(|_| value.len() <= 3)?;
        let szx = (value & 7) as u8;
        (szx <= Self::MAX_SZX).then_some(Self { num: value >> 4, more: value & 8 != 0, szx })
    }

    /// How many bytes a block has that is not the last.
    pub const fn size(self) -> usize {
        16 << self.szx
    }

    /// Where it begins in the body.
    pub const fn offset(self) -> usize {
        (self.num as usize) << (self.szx + 4)
    }

    /// Appends it as the option `number`.
    pub fn write(self, number: OptionNumber, options: &mut OptionsWriter<'_>) {
        options.push_uint(number, self.num << 4 | u32::from(self.more) << 3 | u32::from(self.szx));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_number_more_and_size() {
        for (value, block) in [
            (&[][..], Block { num: 0, more: false, szx: 0 }),
            (&[0x06], Block { num: 0, more: false, szx: 6 }),
            (&[0x0E], Block { num: 0, more: true, szx: 6 }),
            (&[0x12, 0x32], Block { num: 0x123, more: false, szx: 2 }),
            (&[0xFF, 0xFF, 0xF6], Block { num: 0xF_FFFF, more: false, szx: 6 }),
        ] {
            assert_eq!(Block::parse(value), Some(block));
        }
        assert_eq!((Block::parse(&[0x07]), Block::parse(&[0; 4])), (None, None));
    }

    #[test]
    fn writes_what_it_reads() {
        let mut buffer = Vec::new();
        let block = Block { num: 9, more: true, szx: 2 };
        let mut writer = OptionsWriter::new(&mut buffer);
        block.write(OptionNumber::BLOCK2, &mut writer);
        assert_eq!(writer.finish().first(OptionNumber::BLOCK2).and_then(Block::parse), Some(block));
        assert_eq!((block.size(), block.offset()), (64, 576));
    }
}
