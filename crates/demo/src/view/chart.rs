//! Round trips and the timeout over the last seconds, on a logarithmic scale.

use std::time::Duration;

use coapway_time::Instant;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget as _};

use super::{Screen, panel};
use crate::demo::Demo;
use crate::history::SPAN;
use crate::policy::Policy;
use crate::words::{time, time_or_dash};

/// The ends and the middle of the scale, in seconds.
const SCALE: [f64; 3] = [0.05, 0.5, 5.0];
/// ACK_TIMEOUT of RFC 7252.
const FIXED: f64 = 2.0;

pub(super) fn draw(demo: &Demo, screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let theme = &screen.theme;
    let (place, now) = (demo.place(), demo.now());
    let learned = if demo.shown() == Policy::Fixed { "fixed timeout" } else { "learned timeout" };
    let title = Line::from(vec![
        Span::styled(" • ", theme.measured()),
        Span::styled("RTT  ", theme.strong()),
        Span::styled("━ ", theme.learned()),
        Span::styled(format!("{learned}  "), theme.strong()),
        Span::styled("··· RFC 7252 ", theme.faint()),
    ]);
    let inner = panel(theme, [title], area, buffer);
    let [vitals_row, chart_area] = {
        let height = inner.height.saturating_sub(1);
        [
            Rect { height: inner.height.min(1), ..inner },
            Rect { y: inner.y + inner.height.min(1), height, ..inner },
        ]
    };
    vitals(demo, screen, vitals_row.width).render(vitals_row, buffer);

    let x = |at: Instant| -now.since(at).as_secs_f64();
    let y = |duration: Duration| duration.as_secs_f64().clamp(SCALE[0], SCALE[2]).log10();
    let round_trips: Vec<_> =
        place.history().round_trips().iter().map(|&(at, round_trip)| (x(at), y(round_trip))).collect();
    let timeouts: Vec<_> =
        place.history().timeouts().iter().map(|&(at, timeout)| (x(at), y(timeout))).collect();
    let span = SPAN.as_secs_f64();
    let fixed: Vec<_> = (0..=30).map(|step| (-f64::from(step) * span / 30.0, FIXED.log10())).collect();
    let outages: Vec<_> = demo
        .outages()
        .iter()
        .map(|&(from, until)| {
            [(x(from).max(-span), SCALE[0].log10()), (until.map_or(0.0, x), SCALE[0].log10())]
        })
        .collect();
    let dots = |data, style| Dataset::default().marker(Marker::Braille).style(style).data(data);
    let mut datasets = vec![
        dots(&fixed, theme.faint()),
        dots(&round_trips, theme.measured()),
        dots(&timeouts, theme.learned()).graph_type(GraphType::Line),
    ];
    datasets.extend(outages.iter().map(|outage| dots(outage, theme.bad()).graph_type(GraphType::Line)));
    let labels = ["50 ms", "500 ms", "5 s"].map(|label| Span::styled(label, theme.faint()));
    let ago = ["30 s ago", "15 s", "now"].map(|label| Span::styled(label, theme.faint()));
    Chart::new(datasets)
        .x_axis(Axis::default().bounds([-span, 0.0]).labels(ago).style(theme.faint()))
        .y_axis(
            Axis::default().bounds([SCALE[0].log10(), SCALE[2].log10()]).labels(labels).style(theme.faint()),
        )
        .legend_position(None)
        .render(chart_area, buffer);
}

/// What is learned at the moment, as far as there is room for it.
pub(super) fn vitals(demo: &Demo, screen: &Screen, width: u16) -> Line<'static> {
    let theme = &screen.theme;
    let place = demo.place();
    let Some(learned) = place.learned() else { return Line::default() };
    let queue = (learned.queued > 0).then(|| ("queue", learned.queued.to_string()));
    let window = ("window", format!("{}/{}", learned.outstanding, learned.window));
    let round_trip = ("RTT", time_or_dash(place.history().usual_round_trip()));
    let vitals = [Some(("timeout", time(learned.timeout))), Some(window), queue, Some(round_trip)];
    let mut line = Line::default();
    for (name, value) in vitals.into_iter().flatten() {
        let longer = line.width() + name.len() + value.len() + 2;
        if longer < width.into() {
            line.push_span(Span::styled(format!(" {name} "), theme.faint()));
            line.push_span(Span::styled(value, theme.strong()));
        }
    }
    line
}
