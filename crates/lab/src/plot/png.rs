//! A picture as PNG. Letters come as bitmaps, so that no font is needed.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke, StrokeDash,
    Transform,
};

use super::picture::{Anchor, Colour, LETTER, Mark, Picture};

/// The bitmaps stand so much below the base line.
const DESCENT: f64 = 4.0;

pub(super) fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let mut map = Pixmap::new(picture.width as u32, picture.height as u32)
        .ok_or("the picture is too large for PNG; ask for fewer scenarios, or for SVG")?;
    map.fill(Color::WHITE);
    picture.marks.iter().for_each(|mark| draw(&mut map, mark));
    map.encode_png().map_err(|error| error.to_string())
}

fn paint((red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn draw(map: &mut Pixmap, mark: &Mark) {
    match mark {
        Mark::Line { points, colour, width, dashed } => {
            let mut builder = PathBuilder::new();
            for (place, (x, y)) in points.iter().enumerate() {
                match place {
                    0 => builder.move_to(*x as f32, *y as f32),
                    _ => builder.line_to(*x as f32, *y as f32),
                }
            }
            let dash = if *dashed { StrokeDash::new(vec![6.0, 4.0], 0.0) } else { None };
            let stroke =
                Stroke { width: *width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() };
            if let Some(path) = builder.finish() {
                map.stroke_path(&path, &paint(*colour), &stroke, Transform::identity(), None);
            }
        }
        Mark::Dot { at: (x, y), radius, colour } => {
            if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                map.fill_path(&path, &paint(*colour), FillRule::Winding, Transform::identity(), None);
            }
        }
        Mark::Bar { at: (x, y), size: (width, height), colour } => {
            if let Some(rect) = Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32) {
                map.fill_rect(rect, &paint(*colour), Transform::identity(), None);
            }
        }
        Mark::Text { at, text, anchor, colour, bold, turned } => {
            write(map, *at, text, *anchor, *colour, *bold, *turned);
        }
    }
}

fn write(
    map: &mut Pixmap,
    (x, y): (f64, f64),
    text: &str,
    anchor: Anchor,
    colour: Colour,
    bold: bool,
    turned: bool,
) {
    let weight = if bold { FontWeight::Bold } else { FontWeight::Regular };
    let length = text.chars().count() as f64 * LETTER.0;
    let along = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -length / 2.0,
        Anchor::End => -length,
    };
    for (place, letter) in text.chars().enumerate() {
        let raster = |letter| get_raster(letter, weight, RasterHeight::Size16);
        let Some(raster) = raster(letter).or_else(|| raster(plain(letter))) else { continue };
        let start = (along + place as f64 * LETTER.0).round();
        for (row, line) in raster.rows().enumerate() {
            let above = row as f64 - 16.0 + DESCENT;
            for (column, &shade) in line.iter().enumerate() {
                let right = start + column as f64;
                let (px, py) = if turned { (x + above, y - right) } else { (x + right, y + above) };
                blend(map, px, py, colour, shade);
            }
        }
    }
}

/// A letter that there is a bitmap of.
const fn plain(letter: char) -> char {
    match letter {
        '–' | '—' | '−' => '-',
        '±' => '~',
        '…' => '.',
        'µ' => 'u',
        _ => '?',
    }
}

/// Lays a shade of a colour over one pixel; the picture itself is opaque.
fn blend(map: &mut Pixmap, x: f64, y: f64, (red, green, blue): Colour, shade: u8) {
    if x < 0.0 || y < 0.0 || x >= f64::from(map.width()) || y >= f64::from(map.height()) || shade == 0 {
        return;
    }
    let place = y as usize * map.width() as usize + x as usize;
    let Some(pixel) = map.pixels_mut().get_mut(place) else { return };
    let over = |below: u8, above: u8| {
        let (below, above, shade) = (u32::from(below), u32::from(above), u32::from(shade));
        ((below * (255 - shade) + above * shade) / 255) as u8
    };
    let mixed = PremultipliedColorU8::from_rgba(
        over(pixel.red(), red),
        over(pixel.green(), green),
        over(pixel.blue(), blue),
        255,
    );
    *pixel = mixed.unwrap_or(*pixel);
}
