//! What happens, and why it matters.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::Screen;
use crate::demo::Demo;

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let line = demo.line();
    let tone = theme.tone(line.tone);
    let [bar, text] = Layout::horizontal([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    Paragraph::new(vec![Line::from("▌"); area.height.into()]).style(tone).render(bar, buffer);
    let what = Line::styled(&*line.what, tone.patch(theme.strong()));
    let why = Line::styled(&*line.why, theme.plain());
    let lines = Paragraph::new(vec![what, why]);
    // Two rows are one for each, whatever is cut off.
    let lines = if area.height > 2 { lines.wrap(Wrap { trim: true }) } else { lines };
    lines.render(text, buffer);
}
