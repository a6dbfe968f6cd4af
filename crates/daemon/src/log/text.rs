//! How the fields of a line look: nobody's control characters reach a terminal.

use std::fmt;
use std::io;

use coapway_config::escaped;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};

/// `message name=value name=value`, on one line whatever is in it.
pub(super) fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| match field.name() {
        "message" => write!(writer, "{}", escaped(format_args!("{value:?}"))),
        name => write!(writer, "{name}={}", escaped(format_args!("{value:?}"))),
    })
    .delimited(" ")
}

/// Writers of lines of JSON, where a text may hold any character from U+0020 on: the other control characters
/// are written out.
pub(super) struct Visible<M>(pub(super) M);

impl<'w, M: MakeWriter<'w>> MakeWriter<'w> for Visible<M> {
    type Writer = VisibleWriter<M::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        VisibleWriter(self.0.make_writer())
    }
}

pub(super) struct VisibleWriter<W>(W);

impl<W: io::Write> io::Write for VisibleWriter<W> {
    /// All of it at once: a line stays one.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let is_hidden = |symbol: char| symbol.is_control() && symbol != '\n';
        if text.contains(is_hidden) {
            let visible = text.chars().map(|symbol| match is_hidden(symbol) {
                true => format!("\\u{:04x}", u32::from(symbol)),
                false => symbol.to_string(),
            });
            self.0.write_all(visible.collect::<String>().as_bytes())?;
        } else {
            self.0.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_line_of_json_says_the_same_without_control_characters() {
        let line = format!("{}\n", serde_json::json!({ "a": "\u{1b}[1m\u{9b}1m\u{7f}\n\t é" }));
        assert!(line.contains('\u{9b}') && line.contains('\u{7f}'));
        let mut written = VisibleWriter(Vec::new());
        written.write_all(line.as_bytes()).expect("memory takes it");
        let visible = String::from_utf8(written.0).expect("text");
        assert!(!visible.trim_end().contains(char::is_control), "{visible:?}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&visible), read(&line));
    }
}
