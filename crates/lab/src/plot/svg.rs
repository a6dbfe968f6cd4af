//! A picture as SVG.

use std::fmt::Write as _;

use super::picture::{Anchor, Colour, LETTER, Mark, Picture};

pub(super) fn encode(picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"{:.1}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <title>coapway simulate</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        LETTER.0 / 0.602,
    );
    picture.marks.iter().for_each(|mark| write(&mut svg, mark));
    svg.push_str("</svg>\n");
    svg
}

fn hex((red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Writing into a String cannot fail.
fn write(svg: &mut String, mark: &Mark) {
    let _ = match mark {
        Mark::Line { points, colour, width, dashed } => {
            let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let dashes = if *dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}/>",
                points.join(" "),
                hex(*colour),
            )
        }
        Mark::Dot { at: (x, y), radius, colour } => {
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>", hex(*colour))
        }
        Mark::Bar { at: (x, y), size: (width, height), colour } => writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{}\"/>",
            hex(*colour),
        ),
        Mark::Text { at: (x, y), text, anchor, colour, bold, turned } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            let turned =
                if *turned { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{}\"{weight}{turned}>{}</text>",
                hex(*colour),
                escaped(text),
            )
        }
    };
}

/// As XML has it: some letters are none in any document (XML 1.0 §2.2), however they are written.
fn escaped(text: &str) -> String {
    let text = coapway_config::escaped(text).to_string();
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
