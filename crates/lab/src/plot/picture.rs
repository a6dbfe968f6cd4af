//! What is drawn, before it is known how.

/// Red, green and blue.
pub(super) type Colour = (u8, u8, u8);

pub(super) const BLACK: Colour = (32, 32, 32);
pub(super) const GREY: Colour = (120, 120, 120);
pub(super) const PALE: Colour = (225, 225, 225);

/// Colours that are told apart by those who see fewer (Okabe and Ito).
const OF_POLICIES: [Colour; 7] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (90, 60, 20),
];

pub(super) fn colour(place: usize) -> Colour {
    OF_POLICIES[place % OF_POLICIES.len()]
}

/// How wide a letter is, in pixels, and how high.
pub(super) const LETTER: (f64, f64) = (7.0, 14.0);

/// Which end of a text stands where it is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing that is drawn; places are pixels from the upper left corner.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mark {
    Line {
        points: Vec<(f64, f64)>,
        colour: Colour,
        width: f64,
        dashed: bool,
    },
    Dot {
        at: (f64, f64),
        radius: f64,
        colour: Colour,
    },
    Bar {
        at: (f64, f64),
        size: (f64, f64),
        colour: Colour,
    },
    /// `at` is on the base line; a turned one reads upwards.
    Text {
        at: (f64, f64),
        text: String,
        anchor: Anchor,
        colour: Colour,
        bold: bool,
        turned: bool,
    },
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Picture {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) marks: Vec<Mark>,
}

impl Picture {
    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, colour: Colour, width: f64) {
        self.marks.push(Mark::Line { points, colour, width, dashed: false });
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: impl Into<String>, anchor: Anchor) {
        let text = text.into();
        self.marks.push(Mark::Text { at, text, anchor, colour: BLACK, bold: false, turned: false });
    }

    pub(super) fn title(&mut self, at: (f64, f64), text: impl Into<String>) {
        let text = text.into();
        let anchor = Anchor::Start;
        self.marks.push(Mark::Text { at, text, anchor, colour: BLACK, bold: true, turned: false });
    }
}
