//! Colours, by what they mean. The sixteen that every terminal has, in its owner's own shades; with
//! NO_COLOR none at all, and everything is still told apart by its glyph.

use ratatui::style::{Color, Modifier, Style};

use crate::story::Tone;

/// What styles there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    has_colours: bool,
}

impl Theme {
    pub(crate) const COLOURS: Self = Self { has_colours: true };

    /// As the environment wants it (no-color.org).
    pub(crate) fn from_environment() -> Self {
        Self { has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(crate) const fn plain(&self) -> Style {
        Style::new()
    }

    pub(crate) const fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn faint(&self) -> Style {
        if self.has_colours {
            Style::new().fg(Color::DarkGray)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        }
    }

    pub(crate) fn title(&self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn name(&self) -> Style {
        let style = if self.has_colours { Style::new().fg(Color::Black).bg(Color::Cyan) } else { self.key() };
        style.add_modifier(Modifier::BOLD)
    }

    pub(crate) fn key(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn good(&self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn care(&self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(crate) fn bad(&self) -> Style {
        self.colour(Color::Red)
    }

    /// Round trips.
    pub(crate) fn measured(&self) -> Style {
        self.colour(Color::Blue)
    }

    /// What was learned from them.
    pub(crate) fn learned(&self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(crate) fn tone(&self, tone: Tone) -> Style {
        match tone {
            Tone::Calm => self.learned(),
            Tone::Good => self.good(),
            Tone::Care => self.care(),
            Tone::Bad => self.bad(),
        }
    }
}
