//! Text from outside on its way to people.

use std::fmt::{self, Write as _};

/// A value with its control characters written out: what others wrote neither moves a cursor, nor paints, nor
/// ends a line.
pub fn escaped(value: impl fmt::Display) -> impl fmt::Display {
    fmt::from_fn(move |formatter| write!(Escaping(formatter), "{value}"))
}

struct Escaping<'f, 'g>(&'f mut fmt::Formatter<'g>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|symbol| match symbol.is_control() {
            true => write!(self.0, "{}", symbol.escape_default()),
            false => self.0.write_char(symbol),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        let value = "a\x1b[31m\r\nb\u{9b}\x7f\0 é";
        assert_eq!(escaped(value).to_string(), "a\\u{1b}[31m\\r\\nb\\u{9b}\\u{7f}\\u{0} é");
    }
}
