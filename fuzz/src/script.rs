/// An input that is read as a list of commands. Every input is one; it ends where the bytes end.
#[derive(Clone, Copy, Debug)]
pub struct Script<'s> {
    rest: &'s [u8],
}

impl<'s> Script<'s> {
    /// Begins at the first byte.
    pub const fn new(bytes: &'s [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// The next two bytes as a number.
    pub fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// A byte that says how many follow, and those; fewer at the end.
    pub fn text(&mut self) -> Option<&'s [u8]> {
        let length = usize::from(self.byte()?).min(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(text)
    }

    /// All that is left.
    pub const fn rest(&self) -> &'s [u8] {
        self.rest
    }

    /// One of `items`, by the next byte.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        let place = usize::from(self.byte()?);
        items.get(place.checked_rem(items.len())?)
    }
}
