//! A frame as a picture: the same cells as on a terminal, as SVG.
//!
//! Text is text. Lines, blocks and dots are drawn, so that they join whatever font there is.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use coapway_time::Instant;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::arguments::Arguments;
use crate::demo::Demo;
use crate::theme::Theme;
use crate::view::{self, Screen};

mod glyphs;

/// A cell, in pixels: as wide as monospaced letters of this size are.
const CELL: (f64, f64) = (8.4, 18.0);
const LETTERS: f64 = 14.0;
/// Where letters stand within a cell.
const BASELINE: f64 = 13.5;
const MARGIN: f64 = 14.0;
const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#d7dde5";

/// Writes the frame of the moment that is asked for.
pub(crate) fn write(arguments: &Arguments, file: &Path) -> io::Result<()> {
    std::fs::write(file, svg(&frame(arguments)))
}

/// The frame at that moment.
fn frame(arguments: &Arguments) -> Buffer {
    let mut demo = Demo::new(arguments.seed);
    demo.run_until(Instant::ZERO + arguments.at);
    let (columns, rows) = arguments.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    let screen = Screen { theme: Theme::COLOURS, speed: 1.0, paused: false, help: false };
    view::draw(&demo, &screen, buffer.area, &mut buffer);
    buffer
}

/// The cells of a buffer as SVG.
fn svg(buffer: &Buffer) -> String {
    let Rect { width, height, .. } = buffer.area;
    let (wide, high) = (f64::from(width) * CELL.0 + 2.0 * MARGIN, f64::from(height) * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.0}\" height=\"{high:.0}\" \
         viewBox=\"0 0 {wide:.0} {high:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"{LETTERS}\">\n<title>coapway demo</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\" style=\"white-space: pre\">\n"
    );
    for row in 0..height {
        let mut column = 0;
        while column < width {
            let look = Look::of(&buffer[(column, row)]);
            let mut text = String::new();
            let first = column;
            while column < width && Look::of(&buffer[(column, row)]) == look {
                text.push_str(buffer[(column, row)].symbol());
                column += 1;
            }
            run(&mut svg, &text, &look, (first, row));
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// How cells look that can be drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    foreground: &'static str,
    background: Option<&'static str>,
    bold: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut foreground, mut background) = (colour(cell.fg).unwrap_or(FOREGROUND), colour(cell.bg));
        if cell.modifier.contains(Modifier::REVERSED) {
            (foreground, background) = (background.unwrap_or(BACKGROUND), Some("#8b97a6"));
        }
        Self { foreground, background, bold: cell.modifier.contains(Modifier::BOLD) }
    }
}

/// Shades of the colours in use that read well on a dark ground.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are not in use")]
const fn colour(colour: Color) -> Option<&'static str> {
    match colour {
        Color::Black => Some("#0d1117"),
        Color::DarkGray => Some("#6b7785"),
        Color::Red => Some("#ff6b63"),
        Color::Green => Some("#4fc46a"),
        Color::Yellow => Some("#e3b341"),
        Color::Blue => Some("#7ea6ff"),
        Color::Cyan => Some("#4fd0d8"),
        _ => None,
    }
}

/// Cells side by side that look the same.
fn run(svg: &mut String, text: &str, look: &Look, (column, row): (u16, u16)) {
    let (x, y) = (f64::from(column) * CELL.0, f64::from(row) * CELL.1);
    let count = text.chars().count();
    // Writing into a String cannot fail.
    if let Some(background) = look.background {
        let width = count as f64 * CELL.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{background}\"/>",
            CELL.1
        );
    }
    let drawn = glyphs::drawn(text, (x, y), CELL);
    if !drawn.is_empty() {
        let _ = writeln!(svg, "<path d=\"{drawn}\" {}/>", glyphs::style(look.foreground));
    }
    for (place, shade, glyph) in glyphs::blocks(text) {
        let [left, top, width, height] = glyph;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" fill-opacity=\"{shade}\"/>",
            x + place as f64 * CELL.0 + left * CELL.0,
            y + top * CELL.1,
            width * CELL.0,
            height * CELL.1,
            look.foreground,
        );
    }
    for place in glyphs::discs(text) {
        let (x, y) = (x + (place as f64 + 0.5) * CELL.0, y + CELL.1 / 2.0);
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{}\"/>", look.foreground);
    }
    words(svg, text, look, (x, y));
}

/// What is left are letters. Words far apart are put in their places one by one, so that no font moves them.
fn words(svg: &mut String, text: &str, look: &Look, (x, y): (f64, f64)) {
    let letters: Vec<char> =
        text.chars().map(|letter| if glyphs::is_drawn(letter) { ' ' } else { letter }).collect();
    let mut place = 0;
    while place < letters.len() {
        if letters[place] == ' ' {
            place += 1;
            continue;
        }
        // A word ends before two blanks.
        let rest = &letters[place..];
        let length = (1..rest.len())
            .find(|&end| rest[end] == ' ' && rest.get(end + 1).is_none_or(|next| *next == ' '));
        let length = length.unwrap_or(rest.len());
        let word: String = rest[..length].iter().collect();
        let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{weight}>{}</text>",
            x + place as f64 * CELL.0,
            y + BASELINE,
            length as f64 * CELL.0,
            look.foreground,
            escaped(&word),
        );
        place += length;
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn arguments(seconds: u64) -> Arguments {
        Arguments {
            seed: 7,
            speed: 1.0,
            plain: false,
            duration: None,
            picture: None,
            at: Duration::from_secs(seconds),
            size: (112, 33),
        }
    }

    #[test]
    fn one_seed_and_moment_are_one_picture() {
        let picture = svg(&frame(&arguments(12)));
        assert_eq!(picture, svg(&frame(&arguments(12))));
        assert_ne!(picture, svg(&frame(&arguments(13))));
        assert!(picture.len() < 100_000, "{}", picture.len());
    }

    #[test]
    fn the_documented_picture_is_one_of_these() {
        let documented = include_str!("../../../docs/demo.svg");
        let head = |svg: &str| svg.lines().next().map(str::to_owned);
        assert_eq!(head(documented), head(&svg(&frame(&arguments(1)))));
        assert!(documented.len() < 100_000 && documented.contains("coapway demo"), "{}", documented.len());
    }

    #[test]
    fn nothing_breaks_the_markup() {
        assert_eq!(escaped("<a & b>"), "&lt;a &amp; b&gt;");
        let picture = svg(&frame(&arguments(3)));
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert_eq!(picture.matches("<text ").count(), picture.matches("</text>").count());
    }
}
