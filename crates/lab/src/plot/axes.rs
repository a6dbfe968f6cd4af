//! A frame with two scales.

use super::picture::{Anchor, BLACK, Colour, GREY, LETTER, Mark, PALE, Picture};

/// From values to a length.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    title: String,
    least: f64,
    most: f64,
    logarithmic: bool,
    /// Where there is a mark, and what it says.
    ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Even steps from `least` to about `most`.
    pub(super) fn linear(title: &str, least: f64, most: f64) -> Self {
        let most = if most > least { most } else { least + 1.0 };
        let step = nice((most - least) / 5.0);
        let first = (least / step).floor() as i64;
        let last = (most / step).ceil() as i64;
        let decimals = (-libm::floor(libm::log10(step))).max(0.0) as usize;
        let tick = |place: i64| (place as f64 * step, format!("{:.decimals$}", place as f64 * step));
        Self {
            title: title.to_owned(),
            least: first as f64 * step,
            most: last as f64 * step,
            logarithmic: false,
            ticks: (first..=last).map(tick).collect(),
        }
    }

    /// Powers of ten around `least` and `most`, written by `show`.
    pub(super) fn logarithmic(title: &str, least: f64, most: f64, show: fn(f64) -> String) -> Self {
        let least = if least.is_finite() && least > 0.0 { least } else { 1e-3 };
        let most = if most.is_finite() && most > least { most } else { least * 10.0 };
        let first = libm::floor(libm::log10(least) + 1e-9) as i32;
        let last = (libm::ceil(libm::log10(most) - 1e-9) as i32).max(first + 1);
        let power = |exponent: i32| libm::pow(10.0, exponent.into());
        let ticks = (first..=last).map(|exponent| (power(exponent), show(power(exponent)))).collect();
        Self { title: title.to_owned(), least: power(first), most: power(last), logarithmic: true, ticks }
    }

    /// Marks of its own choice, evenly from `least` to `most`.
    pub(super) fn marked(title: &str, least: f64, most: f64, ticks: Vec<(f64, String)>) -> Self {
        Self { title: title.to_owned(), least, most, logarithmic: false, ticks }
    }

    /// Where a value lies, 0 to 1; what lies outside is at the border.
    fn place(&self, value: f64) -> f64 {
        let place = match self.logarithmic {
            true if value <= 0.0 => 0.0,
            true => {
                (libm::log10(value) - libm::log10(self.least))
                    / (libm::log10(self.most) - libm::log10(self.least))
            }
            false => (value - self.least) / (self.most - self.least),
        };
        place.clamp(0.0, 1.0)
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn nice(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// Seconds in the unit that suits them.
pub(super) fn time(seconds: f64) -> String {
    if seconds < 0.999e-3 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 0.999 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.0} s")
    }
}

/// A share as percents, however small.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.999 { format!("{percent:.0}") } else { format!("{}", (percent * 1e6).round() / 1e6) }
}

/// A frame in a picture.
#[derive(Debug)]
pub(super) struct Axes {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x: Scale,
    y: Scale,
}

impl Axes {
    /// Room for what stands beside the frame: left, above, right, below.
    pub(super) const MARGIN: [f64; 4] = [78.0, 34.0, 26.0, 46.0];

    /// Draws frame, marks and titles into the given place of the picture.
    pub(super) fn draw(
        picture: &mut Picture,
        (left, top): (f64, f64),
        (width, height): (f64, f64),
        title: &str,
        x: Scale,
        y: Scale,
    ) -> Self {
        let [before, above, behind, below] = Self::MARGIN;
        let axes = Self {
            left: left + before,
            top: top + above,
            width: width - before - behind,
            height: height - above - below,
            x,
            y,
        };
        picture.title((axes.left, top + above - 12.0), title);
        axes.ticks(picture);
        let (right, bottom) = (axes.left + axes.width, axes.top + axes.height);
        let frame = [(axes.left, axes.top), (axes.left, bottom), (right, bottom)];
        picture.line(frame.to_vec(), BLACK, 1.0);
        picture.text((axes.left + axes.width / 2.0, bottom + 38.0), &*axes.x.title, Anchor::Middle);
        picture.marks.push(Mark::Text {
            at: (left + 16.0, axes.top + axes.height / 2.0),
            text: axes.y.title.clone(),
            anchor: Anchor::Middle,
            colour: BLACK,
            bold: false,
            turned: true,
        });
        axes
    }

    fn ticks(&self, picture: &mut Picture) {
        let bottom = self.top + self.height;
        for (value, text) in &self.x.ticks {
            let x = self.left + self.x.place(*value) * self.width;
            picture.line(vec![(x, self.top), (x, bottom)], PALE, 1.0);
            picture.text((x, bottom + 18.0), &**text, Anchor::Middle);
        }
        for (value, text) in &self.y.ticks {
            let y = bottom - self.y.place(*value) * self.height;
            picture.line(vec![(self.left, y), (self.left + self.width, y)], PALE, 1.0);
            picture.text((self.left - 6.0, y + LETTER.1 / 3.0), &**text, Anchor::End);
        }
    }

    /// Where two values lie in the picture.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (right, up) = (self.x.place(x), self.y.place(y));
        (self.left + right * self.width, self.top + (1.0 - up) * self.height)
    }

    /// A line through these values.
    pub(super) fn line(
        &self,
        picture: &mut Picture,
        points: impl Iterator<Item = (f64, f64)>,
        colour: Colour,
    ) {
        let points: Vec<_> = points.map(|(x, y)| self.at(x, y)).collect();
        if points.len() > 1 {
            picture.line(points, colour, 2.0);
        }
    }

    /// A column from the bottom to `y`, `width` pixels wide and `shift` to the right of `x`.
    pub(super) fn column(
        &self,
        picture: &mut Picture,
        (x, y): (f64, f64),
        shift: f64,
        width: f64,
        colour: Colour,
    ) {
        let (left, top) = self.at(x, y);
        let height = self.top + self.height - top;
        if height > 0.0 {
            picture.marks.push(Mark::Bar { at: (left + shift, top), size: (width, height), colour });
        }
    }

    /// Says that there is nothing to see.
    pub(super) fn nothing(&self, picture: &mut Picture, text: &str) {
        picture.marks.push(Mark::Text {
            at: (self.left + self.width / 2.0, self.top + self.height / 2.0),
            text: text.to_owned(),
            anchor: Anchor::Middle,
            colour: GREY,
            bold: false,
            turned: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers_and_hold_all_values() {
        let scale = Scale::linear("x", 0.0, 1.37);
        let texts: Vec<_> = scale.ticks.iter().map(|(_, text)| &**text).collect();
        assert_eq!(texts, ["0.0", "0.5", "1.0", "1.5"]);
        let scale = Scale::logarithmic("y", 0.02, 3.0, time);
        let texts: Vec<_> = scale.ticks.iter().map(|(_, text)| &**text).collect();
        assert_eq!(texts, ["10 ms", "100 ms", "1 s", "10 s"]);
        assert_eq!(
            [0.0, 0.01, 0.1, 10.0, 99.0].map(|value| (scale.place(value) * 300.0).round()),
            [0.0, 0.0, 100.0, 300.0, 300.0]
        );
    }

    #[test]
    fn strange_ranges_are_frames_too() {
        for (least, most) in [(f64::NAN, f64::NAN), (1.0, 1.0), (0.0, 0.0)] {
            assert!(Scale::logarithmic("y", least, most, percent).ticks.len() > 1);
        }
        assert!(Scale::linear("y", 1.0, 1.0).ticks.len() > 1);
    }
}
