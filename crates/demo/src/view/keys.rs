//! The keys there are.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::Screen;

/// The most important ones first; what does not fit is in the help.
const KEYS: [(&str, &str); 10] = [
    ("q", "quit"),
    ("?", "help"),
    ("+-", "loss"),
    ("o", "outage"),
    ("s", "slow origin"),
    ("e", "estimator"),
    ("d", "dedup"),
    ("f", "forgetful"),
    ("<>", "speed"),
    ("space", "pause"),
];

pub(super) fn draw(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let mut spans = Vec::new();
    let mut left = usize::from(area.width);
    for (key, meaning) in KEYS {
        let width = key.len() + meaning.len() + 3;
        if width > left {
            break;
        }
        left -= width;
        spans.push(Span::styled(format!(" {key}"), theme.title()));
        spans.push(Span::styled(format!(" {meaning} "), theme.plain()));
    }
    Line::from(spans).render(area, buffer);
}
