//! Text from outside on its way to people.

use std::fmt::{self, Write as _};

/// A value with its control characters written out: what others wrote neither moves a cursor, nor paints, nor
/// ends a line.
pub fn escaped(value: impl fmt::Display) -> impl fmt::Display {
    fmt::from_fn(move |formatter| write!(Escaping { formatter, keeps_lines: false }, "{value}"))
}

/// The same of several lines, which stay apart.
pub fn escaped_lines(text: impl fmt::Display) -> impl fmt::Display {
    fmt::from_fn(move |formatter| write!(Escaping { formatter, keeps_lines: true }, "{text}"))
}

struct Escaping<'f, 'g> {
    formatter: &'f mut fmt::Formatter<'g>,
    keeps_lines: bool,
}

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self { formatter, keeps_lines } = self;
        text.chars().try_for_each(|symbol| match symbol {
            '\n' if *keeps_lines => formatter.write_char(symbol),
            _ if symbol.is_control() => write!(formatter, "{}", symbol.escape_default()),
            _ => formatter.write_char(symbol),
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
        assert_eq!(escaped_lines("a\r\nb\t").to_string(), "a\\r\nb\\t");
    }
}
