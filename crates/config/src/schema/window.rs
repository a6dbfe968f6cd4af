//! How many exchanges may be outstanding, in either direction.

use coapway_endpoint::Nstart;

use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Value, count};

/// The most exchanges outstanding with one peer.
pub(super) const MOST_OUTSTANDING: u64 = 65536;
pub(super) const ALLOWED: &str = "\"auto\" or 1 to 65536";
pub(super) const WHY: &str = "with none outstanding nothing is sent; one port has 65536 Message IDs";

/// Whether the window is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Auto,
    Fixed(u32),
}

impl Value for Window {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        if raw.as_text() == Some("auto") {
            return Ok(Self::Auto);
        }
        let window = count(raw, 1, MOST_OUTSTANDING)?;
        Ok(Self::Fixed(u32::try_from(window).unwrap_or(u32::MAX)))
    }

    fn show(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Fixed(window) => window.to_string(),
        }
    }
}

/// The keys `nstart` and `nstart_max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowKeys {
    pub(crate) window: Window,
    pub(crate) max: u32,
}

impl WindowKeys {
    /// What the core is told.
    pub(crate) const fn nstart(self) -> Nstart {
        match self.window {
            Window::Auto => Nstart::Auto { max: self.max },
            Window::Fixed(window) => Nstart::Fixed(window),
        }
    }
}

impl From<Nstart> for WindowKeys {
    fn from(nstart: Nstart) -> Self {
        match nstart {
            Nstart::Auto { max } => Self { window: Window::Auto, max },
            Nstart::Fixed(window) => Self { window: Window::Fixed(window), max: window },
        }
    }
}
