//! One frame: what is drawn where, by the size of the screen.
//!
//! ```text
//! coapway demo                    0:23  ×1  seed 7     header
//! 4 devices ── coapway ≈≈ 10 % lost each way ≈≈ origin
//! ▌ what happens                                       story
//! ▌ why it matters
//! ╭ timeout, round trips ─╮╭ forwards ───────────────╮
//! ╰───────────────────────╯╰─────────────────────────╯
//! ╭ the price of each policy ────────────────────────╮
//! ╰──────────────────────────────────────────────────╯
//! + - loss  o outage  s slow …                         keys
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Widget as _};

use crate::demo::Demo;
use crate::theme::Theme;

mod chart;
mod forwards;
mod header;
mod help;
mod keys;
mod policies;
mod story;

/// Narrower screens have no chart.
const CHART_FROM: u16 = 76;
/// Narrower screens break the lines of the story.
const LINES_FROM: u16 = 104;
/// Flatter screens have no table.
const TABLE_FROM: u16 = 17;
const TABLE: u16 = 8;

/// What the screen adds to the demo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) theme: Theme,
    pub(crate) speed: f64,
    pub(crate) paused: bool,
    pub(crate) help: bool,
}

/// Draws a frame.
pub(crate) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let table = if area.height >= TABLE_FROM { TABLE } else { 0 };
    // Where a line is too long for the screen, it gets two.
    let story = if area.width < LINES_FROM && area.height >= TABLE_FROM { 4 } else { 2 };
    let rows = [
        Constraint::Length(2),
        Constraint::Length(story),
        Constraint::Fill(1),
        Constraint::Length(table),
        Constraint::Length(1),
    ];
    let [header, story, middle, policies, keys] = Layout::vertical(rows).areas(area);
    header::draw(demo, screen, header, buffer);
    story::draw(demo, screen, story, buffer);
    if area.width >= CHART_FROM {
        let [chart, forwards] =
            Layout::horizontal([Constraint::Percentage(39), Constraint::Fill(1)]).areas(middle);
        chart::draw(demo, screen, chart, buffer);
        forwards::draw(demo, screen, forwards, buffer);
    } else {
        forwards::draw(demo, screen, middle, buffer);
    }
    if table > 0 {
        policies::draw(demo, screen, policies, buffer);
    }
    keys::draw(screen, keys, buffer);
    if screen.help {
        help::draw(demo, screen, area, buffer);
    }
}

/// A frame with a title; what is inside of it is returned.
fn panel<'t>(
    theme: &Theme,
    titles: impl IntoIterator<Item = Line<'t>>,
    area: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(theme.faint());
    let block = titles.into_iter().fold(block, |block, title| block.title(title));
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

#[cfg(test)]
mod tests;
