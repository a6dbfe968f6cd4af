//! Characters that are drawn: lines of boxes, blocks, and the dots of Braille.

use std::fmt::Write as _;

/// A copy.
const DISC: char = '●';

/// Whether a character is drawn, not written.
pub(super) fn is_drawn(letter: char) -> bool {
    arms(letter).is_some() || block(letter).is_some() || braille(letter).is_some() || letter == DISC
}

/// How a path of [`drawn`] is stroked.
pub(super) fn style(colour: &str) -> String {
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linecap=\"round\"")
}

/// The lines and dots in a text that begins at `x`, `y`, as the data of a path.
pub(super) fn drawn(text: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let mut path = String::new();
    let letters: Vec<char> = text.chars().collect();
    let mut place = 0;
    while place < letters.len() {
        let letter = letters[place];
        let left = x + place as f64 * width;
        let (middle, centre) = (left + width / 2.0, y + height / 2.0);
        // A row of lines is one line. Writing into a String cannot fail.
        let alike = letters[place..].iter().take_while(|&&other| other == letter).count();
        match letter {
            '─' | '━' => {
                let _ = write!(path, "M{left:.1} {centre:.1}h{:.1}", alike as f64 * width);
                place += alike;
                continue;
            }
            _ => {
                if let Some(arms) = arms(letter) {
                    let ends = [(middle, y), (middle, y + height), (left, centre), (left + width, centre)];
                    let ends: Vec<_> =
                        ends.into_iter().zip(arms).filter_map(|(end, there)| there.then_some(end)).collect();
                    if let [one, other] = ends[..] {
                        let _ = write!(
                            path,
                            "M{:.1} {:.1}Q{middle:.1} {centre:.1} {:.1} {:.1}",
                            one.0, one.1, other.0, other.1
                        );
                    }
                }
                for (column, row) in braille(letter).into_iter().flatten() {
                    let dot = (left + (0.25 + 0.5 * column) * width, y + (0.125 + 0.25 * row) * height);
                    let _ = write!(path, "M{:.1} {:.1}h.01", dot.0, dot.1);
                }
            }
        }
        place += 1;
    }
    path
}

/// The places of the discs in a text.
pub(super) fn discs(text: &str) -> impl Iterator<Item = usize> {
    text.chars().enumerate().filter(|&(_, letter)| letter == DISC).map(|(place, _)| place)
}

/// Whether there is a line up, down, left and right.
const fn arms(letter: char) -> Option<[bool; 4]> {
    match letter {
        '─' | '━' => Some([false, false, true, true]),
        '│' => Some([true, true, false, false]),
        '╭' => Some([false, true, false, true]),
        '╮' => Some([false, true, true, false]),
        '╰' => Some([true, false, false, true]),
        '╯' => Some([true, false, true, false]),
        _ => None,
    }
}

/// Which part of the cell is filled, and how much: left, top, width, height.
const fn block(letter: char) -> Option<(&'static str, [f64; 4])> {
    // Bars are not as high as a cell, so that one can be told from the next.
    match letter {
        '█' => Some(("1", [0.0, 0.15, 1.0, 0.7])),
        '▓' => Some(("0.75", [0.0, 0.15, 1.0, 0.7])),
        '░' => Some(("0.55", [0.0, 0.15, 1.0, 0.7])),
        '▌' => Some(("1", [0.0, 0.0, 0.45, 1.0])),
        _ => None,
    }
}

/// The blocks of a text: where each run of equal ones begins, its shade, and its extent in cells.
pub(super) fn blocks(text: &str) -> Vec<(usize, &'static str, [f64; 4])> {
    let letters: Vec<char> = text.chars().collect();
    let mut blocks = Vec::new();
    let mut place = 0;
    for alike in letters.chunk_by(|one, other| one == other) {
        if let Some((shade, [left, top, width, height])) = alike.first().copied().and_then(block) {
            blocks.push((place, shade, [left, top, width * alike.len() as f64, height]));
        }
        place += alike.len();
    }
    blocks
}

/// The dots of a Braille pattern: column 0 or 1, row 0 to 3.
fn braille(letter: char) -> Option<Vec<(f64, f64)>> {
    const PLACES: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let dots = u32::from(letter).checked_sub(0x2800).filter(|&dots| dots < 0x100)?;
    Some((0..8).filter(|bit| dots & 1 << bit != 0).map(|bit| PLACES[bit]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_lines_is_one_line() {
        assert_eq!(drawn("──", (0.0, 0.0), (8.0, 16.0)), "M0.0 8.0h16.0");
        assert_eq!(drawn("a", (0.0, 0.0), (8.0, 16.0)), "");
    }

    #[test]
    fn braille_is_read_by_its_bits() {
        assert_eq!(braille('⠁'), Some(vec![(0.0, 0.0)]));
        assert_eq!(braille('⢀'), Some(vec![(1.0, 3.0)]));
        assert_eq!(braille('a'), None);
    }

    #[test]
    fn runs_of_blocks_are_one_block() {
        let blocks = blocks("██ ░");
        assert_eq!(
            blocks.iter().map(|&(place, _, [_, _, width, _])| (place, width)).collect::<Vec<_>>(),
            [(0, 2.0), (3, 1.0)]
        );
    }
}
