//! Name, time, and the way from devices to origin.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::Screen;
use crate::demo::Demo;
use crate::devices::DEVICES;
use crate::place::SLOWNESS;
use crate::words::{clock, time, whole_percent};

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let [first, second] = area.rows().collect::<Vec<_>>()[..] else { return };
    let theme = &screen.theme;
    let mut left = vec![Span::styled(" coapway demo ", theme.name())];
    if area.width >= 90 {
        left.push(Span::styled("  a CoAP proxy on a weak link, simulated in virtual time", theme.faint()));
    }
    Line::from(left).render(first, buffer);
    let mut right = vec![
        Span::styled(clock(demo.elapsed()), theme.strong()),
        Span::raw(format!("  ×{}  ", screen.speed)),
        Span::styled(format!("seed {} ", demo.seed()), theme.faint()),
    ];
    if screen.paused {
        right.insert(0, Span::styled(" paused ", theme.key()));
        right.insert(1, Span::raw("  "));
    }
    Line::from(right).right_aligned().render(first, buffer);
    way(demo, screen, second.width).render(second, buffer);
}

/// The way, drawn as wide as it may be.
fn way(demo: &Demo, screen: &Screen, width: u16) -> Line<'static> {
    let theme = &screen.theme;
    let sky = demo.sky();
    let (what, style, wave): (String, Style, &str) = if sky.outage {
        ("outage: nothing passes".into(), theme.bad(), "╳")
    } else {
        let loss = whole_percent(sky.loss);
        let burst = if sky.burst { "a burst, " } else { "" };
        let style = if sky.loss > 0.0 { theme.care() } else { theme.good() };
        (format!("{burst}{loss} lost each way, 80–140 ms"), style, if sky.loss > 0.0 { "≈" } else { "─" })
    };
    let devices = format!(" {} devices ", DEVICES.len());
    let origin = match demo.origin() {
        (false, false) => " origin".to_owned(),
        (true, false) => format!(" origin, slow: {}", time(SLOWNESS)),
        (false, true) => " forgetful origin".to_owned(),
        (true, true) => format!(" forgetful origin, slow: {}", time(SLOWNESS)),
    };
    let used = devices.len() + " coapway ".len() + origin.chars().count() + what.chars().count() + 3;
    let left = usize::from(width).saturating_sub(used);
    let (short, long) = ((left / 5).clamp(2, 12), (left * 2 / 5).clamp(1, 24));
    let origin_style = if demo.origin() == (false, false) { theme.strong() } else { theme.care() };
    Line::from(vec![
        Span::styled(devices, theme.strong()),
        Span::styled("─".repeat(short), theme.good()),
        Span::styled(" coapway ", theme.title()),
        Span::styled(format!("{} {what} {}", wave.repeat(long), wave.repeat(long)), style),
        Span::styled(origin, origin_style),
    ])
}
