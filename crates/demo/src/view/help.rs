//! What is shown, and all keys.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget as _, Wrap};

use super::{Screen, panel};
use crate::demo::Demo;

const KEYS: [(&str, &str); 10] = [
    ("+ -", "the link loses 5 % more, or less, each way"),
    ("o", "an outage of 7.5 s; again: ends it"),
    ("s", "the origin takes 2.5 s for an answer"),
    ("f", "the origin forgets what it executed: it does not recognise repeats"),
    ("e d 1-4", "which policy is shown at work: estimator, deduplicates, by number"),
    ("< >", "slower, faster"),
    ("space", "pause"),
    ("r", "count anew"),
    ("?", "this page"),
    ("q Esc ^C", "quit"),
];

const TEXT: &str = "Five worlds run side by side in virtual time, with the same devices, origin and weather, so \
that what differs is the policy alone. Row 0 has no proxy: devices ask the origin once and listen for 7 s. The \
others run the proxy as it is shipped, with max_wait = 6s instead of 30s, so that you need not wait. Each row of \
the list is a forward: ● a copy that left, a the device's empty Acknowledgement, ✓ the origin's answer, ✗ word \
of what is known instead. In the chart the dotted line is RFC 7252's ACK_TIMEOUT, a red one an outage; window 2/4 means: 2 exchanges outstanding, 4 allowed.";

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let width = 84.min(area.width);
    let text = if width >= 70 { TEXT } else { "" };
    let mut lines: Vec<_> = KEYS
        .iter()
        .map(|(key, meaning)| {
            Line::from(vec![Span::styled(format!(" {key:<9}"), theme.title()), Span::raw(*meaning)])
        })
        .collect();
    if !text.is_empty() {
        lines.extend([Line::default(), Line::from(text), Line::default()]);
        let setting = match demo.shown().setting() {
            "" => "none".to_owned(),
            setting => format!("[[upstreams]] {setting}"),
        };
        let shown = [Span::styled("Shown: ", theme.title()), Span::raw(demo.shown().in_words())];
        let setting = [Span::styled("  setting: ", theme.faint()), Span::raw(setting)];
        lines.push(Line::from([shown, setting].concat()));
    }
    let height = if text.is_empty() { KEYS.len() as u16 + 2 } else { 24 };
    let popup = area.centered(Constraint::Length(width), Constraint::Length(height.min(area.height)));
    Clear.render(popup, buffer);
    let inner = panel(theme, [Line::styled(" Help ", theme.title())], popup, buffer);
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(inner, buffer);
}
