//! What each policy brings and costs.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table, Widget as _};

use super::{Screen, panel};
use crate::demo::Demo;
use crate::figures::Summary;
use crate::policy::Policy;
use crate::theme::Theme;
use crate::words::{percent, time_or_dash};

/// The columns there is room for, and how wide they are.
struct Columns {
    name: u16,
    bar: u16,
    mean: bool,
    twice: bool,
    long: bool,
}

impl Columns {
    const fn of(width: u16) -> Self {
        // What the others take, spaces between them included.
        let long = width >= 100;
        let taken = if long { 88 } else { 71 };
        let bar = width.saturating_sub(taken);
        let name = if width < 68 { 16 } else { 22 };
        Self { name, bar: if bar >= 5 { bar } else { 0 }, mean: long, twice: width >= 68, long }
    }

    fn widths(&self) -> Vec<Constraint> {
        let mut widths = vec![self.name];
        widths.extend((self.bar > 0).then_some(self.bar));
        widths.extend([8, 6]);
        widths.extend(self.mean.then_some(6));
        widths.extend([6, 6, if self.long { 15 } else { 9 }]);
        widths.extend(self.twice.then_some(if self.long { 10 } else { 6 }));
        widths.into_iter().map(Constraint::Length).collect()
    }
}

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let summaries = demo.summaries();
    let ended = summaries.iter().map(|(_, summary)| summary.ended).max().unwrap_or(0);
    let title = Line::from(vec![
        Span::styled(" The price of each policy ", theme.title()),
        Span::styled(format!("same weather, {ended} requests "), theme.faint()),
    ]);
    let legend = Line::from(vec![
        Span::styled(" █", theme.good()),
        Span::styled(" answered ", theme.faint()),
        Span::styled("▓", theme.care()),
        Span::styled(" told why not ", theme.faint()),
        Span::styled("░", theme.bad()),
        Span::styled(" silence ", theme.faint()),
    ]);
    let legend = (area.width >= 100).then(|| legend.right_aligned());
    let inner = panel(theme, [Some(title), legend].into_iter().flatten(), area, buffer);
    let columns = Columns::of(inner.width);
    let rows = summaries.iter().map(|(policy, summary)| row(*policy, summary, demo, &columns, theme));
    Table::new(rows, columns.widths())
        .header(header(&columns, theme))
        .column_spacing(1)
        .render(inner, buffer);
}

fn header<'t>(columns: &Columns, theme: &Theme) -> Row<'t> {
    let mut cells = vec![Cell::from("  policy")];
    cells.extend((columns.bar > 0).then(|| Cell::from("")));
    let names = ["answered", "silent"].into_iter().chain(columns.mean.then_some("mean"));
    let names = names.chain(["P95", "copies", if columns.long { "POST unanswered" } else { "POST lost" }]);
    let names = names.chain(columns.twice.then_some(if columns.long { "POST twice" } else { "twice" }));
    cells.extend(names.map(|name| right(name.to_owned(), theme.faint())));
    Row::new(cells).style(theme.faint())
}

fn row<'t>(policy: Policy, summary: &Summary, demo: &Demo, columns: &Columns, theme: &Theme) -> Row<'t> {
    let is_shown = policy == demo.shown();
    let style = if is_shown { theme.strong() } else { theme.plain() };
    let mark = if is_shown { "▶" } else { " " };
    let name = if columns.name < 20 { policy.short_name() } else { policy.name() };
    let name = format!("{mark}{} {name}", policy.index());
    let judged = |share: Option<f64>, bad: f64| match share {
        Some(share) if share >= bad => theme.bad(),
        Some(share) if share > 0.0 => theme.care(),
        Some(_) => theme.good(),
        None => theme.faint(),
    };
    let unanswered = summary.share_answered().map(|share| 1.0 - share);
    let (silent, twice) = (summary.share_silent(), summary.share_posts_twice());
    let posts = summary.share_posts_unanswered();
    let mut cells = vec![Cell::from(Span::styled(name, style))];
    cells.extend((columns.bar > 0).then(|| Cell::from(bar(summary, columns.bar, theme))));
    cells.push(right(percent(summary.share_answered()), judged(unanswered, 0.15).patch(style)));
    cells.push(right(percent(silent), judged(silent, 0.000_001)));
    cells.extend(columns.mean.then(|| right(time_or_dash(summary.mean), style)));
    cells.push(right(time_or_dash(summary.p95), style));
    cells.push(right(summary.copies.map_or("–".into(), |copies| format!("{copies:.2}")), style));
    cells.push(right(percent(posts), judged(posts, 0.15)));
    cells.extend(columns.twice.then(|| right(percent(twice), judged(twice, 0.000_001))));
    Row::new(cells)
}

fn right<'t>(text: String, style: Style) -> Cell<'t> {
    Cell::from(Text::styled(text, style).alignment(Alignment::Right))
}

/// The shares of the three ends; none that there is looks like nothing.
fn bar<'t>(summary: &Summary, width: u16, theme: &Theme) -> Line<'t> {
    let [answered, told, silent] = lengths([summary.answered, summary.told, summary.silent], width.into());
    Line::from(vec![
        Span::styled("█".repeat(answered), theme.good()),
        Span::styled("▓".repeat(told), theme.care()),
        Span::styled("░".repeat(silent), theme.bad()),
    ])
}

/// How `width` is shared out, with at least 1 for what is not 0.
fn lengths(parts: [usize; 3], width: usize) -> [usize; 3] {
    let whole: usize = parts.iter().sum();
    if whole == 0 {
        return [0; 3];
    }
    let least = |part: usize| ((part * width) as f64 / whole as f64).round() as usize;
    let mut lengths = parts.map(|part| if part == 0 { 0 } else { least(part).max(1) });
    while let Some(largest) = lengths.iter().copied().max().filter(|_| lengths.iter().sum::<usize>() > width)
    {
        if let Some(length) = lengths.iter_mut().find(|length| **length == largest) {
            *length -= 1;
        }
    }
    if let Some(largest) = lengths.iter().copied().max() {
        let missing = width - lengths.iter().sum::<usize>();
        if let Some(length) = lengths.iter_mut().find(|length| **length == largest) {
            *length += missing;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_full_and_hide_nothing() {
        assert_eq!(lengths([0, 0, 0], 10), [0, 0, 0]);
        assert_eq!(lengths([1, 0, 0], 10), [10, 0, 0]);
        assert_eq!(lengths([50, 25, 25], 8), [4, 2, 2]);
        assert_eq!(lengths([998, 1, 1], 10), [8, 1, 1]);
        assert_eq!(lengths([1, 1, 1], 10).iter().sum::<usize>(), 10);
    }
}
