//! Lines in memory.

/// A buffer with this many bytes is handed over.
pub(super) const FULL: usize = 64 << 10;
/// What a buffer holds without growing: a full one and room for the line that fills it.
const CAPACITY: usize = FULL + (4 << 10);

/// Whole lines, and room for more.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Lines, and behind them what is left of earlier ones.
    bytes: Vec<u8>,
    used: usize,
}

impl Buffer {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; CAPACITY], used: 0 }
    }

    /// Room for `length` bytes, of which [`Buffer::add`] then keeps some.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.used..]
    }

    /// The first `length` bytes of the room are a line now.
    pub(super) fn add(&mut self, length: usize) {
        self.used = (self.used + length).min(self.bytes.len());
    }

    pub(super) fn lines(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(super) const fn is_full(&self) -> bool {
        self.used >= FULL
    }

    /// Empties it for use again. One that had to grow gives back what it took.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        if self.bytes.len() > CAPACITY {
            self.bytes.truncate(CAPACITY);
            self.bytes.shrink_to_fit();
        }
    }
}

/// How many lines there are.
pub(super) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}
