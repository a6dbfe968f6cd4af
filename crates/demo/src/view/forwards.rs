//! The newest forwards, each with its copies on a line of time.

use std::time::Duration;

use coapway_message::Evidence;
use coapway_time::Instant;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::{CHART_FROM, Screen, chart, panel};
use crate::demo::Demo;
use crate::devices::DEVICES;
use crate::forwards::Forward;
use crate::words::{clock, time};

/// As long as the line of time is: `max_wait`.
const SPAN: Duration = Duration::from_secs(6);

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let title = match buffer.area.width >= CHART_FROM {
        true => Line::from(vec![
            Span::styled(" Forwards ", theme.title()),
            Span::styled(format!("{} ", demo.shown().in_words()), theme.faint()),
        ]),
        // There is no chart that says it.
        false => chart::vitals(demo, screen, area.width.saturating_sub(3)),
    };
    let inner = panel(theme, [title], area, buffer);
    let forwards = demo.place().forwards();
    let open: Vec<_> = forwards.newest().filter(|forward| forward.end.is_none()).collect();
    // What is under way leaves half of the room to what has ended, and the oldest of it is shown.
    let hidden = open.len().saturating_sub(usize::from(inner.height).div_ceil(2));
    let mut rows = inner.rows();
    if hidden > 0
        && let Some(row) = rows.next()
    {
        let newer = format!("… and {} newer ones", hidden + 1);
        Span::styled(newer, theme.faint()).render(row, buffer);
    }
    let shown = open.into_iter().skip(if hidden > 0 { hidden + 1 } else { 0 });
    for (forward, row) in shown.chain(forwards.ended()).zip(rows) {
        draw_row(forward, demo.now(), screen, row, buffer);
    }
}

fn draw_row(forward: &Forward, now: Instant, screen: &Screen, row: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let device = &DEVICES[forward.device];
    let wide = row.width >= 60;
    let columns = [
        Constraint::Length(if wide { 5 } else { 0 }),
        Constraint::Length(16),
        Constraint::Fill(1),
        Constraint::Length(if wide { 20 } else { 7 }),
        Constraint::Length(6),
    ];
    let [since, asks, copies, result, took] = Layout::horizontal(columns).spacing(1).areas(row);
    Span::styled(clock(forward.received.since(Instant::ZERO)), theme.faint()).render(since, buffer);
    let asked = if device.confirmable { device.asks() } else { format!("NON {}", device.asks()) };
    Span::styled(asked, theme.plain()).render(asks, buffer);
    draw_copies(forward, now, screen, copies, buffer);
    let (text, style) = outcome(forward, screen, wide);
    Span::styled(text, style).render(result, buffer);
    let took_style = if forward.end.is_some() { theme.plain() } else { theme.faint() };
    Line::styled(time(forward.took(now)), took_style).right_aligned().render(took, buffer);
}

/// Answers say their code, failures what is known; what is under way says how it stands.
fn outcome(forward: &Forward, screen: &Screen, wide: bool) -> (String, Style) {
    let theme = &screen.theme;
    let again = match forward.copies.len() {
        0 | 1 => String::new(),
        copies => format!(" ×{copies}"),
    };
    match forward.end {
        Some(end) if end.code.is_success() => (format!("{}{again}", end.code), theme.good()),
        Some(end) => {
            let evidence = end.evidence.map_or("", Evidence::name);
            let text = if wide { format!("{} {evidence}", end.code) } else { format!("{}{again}", end.code) };
            (text, theme.bad())
        }
        None if forward.copies.is_empty() => ("waits".to_owned(), theme.faint()),
        None if wide && forward.early_ack.is_some() => (format!("ACK sent{again}"), theme.care()),
        None => (format!("…{again}"), theme.faint()),
    }
}

/// A mark for each copy, the empty Acknowledgement and the end, none over another.
fn draw_copies(forward: &Forward, now: Instant, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    if area.is_empty() {
        return;
    }
    let last = area.width - 1;
    let column = |at: Instant| {
        let share = at.since(forward.received).as_secs_f64() / SPAN.as_secs_f64();
        ((share * f64::from(last)).round() as u16).min(last)
    };
    let mut marks: Vec<_> = forward
        .copies
        .iter()
        .enumerate()
        .map(|(place, &at)| (at, "●", if place == 0 { theme.measured() } else { theme.care() }))
        .collect();
    marks.extend(forward.early_ack.map(|at| (at, "a", theme.faint())));
    marks.sort_by_key(|&(at, ..)| at);
    marks.extend(forward.end.map(|end| match end.code.is_success() {
        true => (end.at, "✓", theme.good()),
        false => (end.at, "✗", theme.bad()),
    }));
    let until = column(forward.end.map_or(now, |end| end.at));
    for x in 0..=until {
        buffer[(area.x + x, area.y)].set_symbol("─").set_style(theme.faint());
    }
    let mut free = 0;
    for (at, symbol, style) in marks {
        let x = column(at).max(free).min(last);
        buffer[(area.x + x, area.y)].set_symbol(symbol).set_style(style);
        free = x + 1;
    }
}
