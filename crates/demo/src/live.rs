//! The demo on a screen, paced by the clock.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::command::{Wish, wish};
use crate::demo::Demo;
use crate::plain;
use crate::signals::Signals;
use crate::terminal::{self, Borrowed};
use crate::theme::Theme;
use crate::view::{self, Screen};

/// Between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// The speeds that keys lead to.
const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Runs until a key, a signal or the time ends it.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let signals = Signals::listen(terminal::give_back)?;
    let Ok(mut borrowed) = Borrowed::take() else {
        drop(signals);
        return plain::run(arguments);
    };
    let theme = Theme::from_environment();
    let mut screen = Screen { theme, speed: arguments.speed, paused: false, help: false };
    let mut demo = Demo::new(arguments.seed);
    let mut clock = Clock::start();
    while !signals.say_stop() && arguments.duration.is_none_or(|duration| demo.elapsed() < duration) {
        demo.set_speed(screen.speed);
        borrowed.terminal.draw(|frame| view::draw(&demo, &screen, frame.area(), frame.buffer_mut()))?;
        crash_if_asked_to(&demo);
        let has_keys = terminal::has_keys(FRAME)?;
        while has_keys && event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else { continue };
            let Some(wish) = wish(key).filter(|_| key.kind != KeyEventKind::Release) else { continue };
            if wish == Wish::Quit && !std::mem::take(&mut screen.help) {
                return Ok(());
            }
            fulfil(wish, &mut demo, &mut screen);
        }
        let lap = clock.lap();
        if !screen.paused && !screen.help {
            demo.run_until(demo.now() + lap.mul_f64(screen.speed));
        }
    }
    Ok(())
}

fn fulfil(wish: Wish, demo: &mut Demo, screen: &mut Screen) {
    match wish {
        Wish::Tell(command) => demo.perform(command),
        Wish::Faster => {
            screen.speed = SPEEDS.into_iter().find(|&speed| speed > screen.speed).unwrap_or(screen.speed);
        }
        Wish::Slower => {
            screen.speed = SPEEDS.into_iter().rfind(|&speed| speed < screen.speed).unwrap_or(screen.speed);
        }
        Wish::Pause => screen.paused = !screen.paused,
        Wish::Help => screen.help = !screen.help,
        Wish::Quit => {}
    }
}

/// A test sees what a crash leaves behind; no release can be asked to.
fn crash_if_asked_to(demo: &Demo) {
    if cfg!(debug_assertions)
        && let Some(seconds) =
            std::env::var("COAPWAY_TEST_DEMO_CRASHES_AT").ok().and_then(|at| at.parse().ok())
    {
        assert!(demo.elapsed() < Duration::from_secs(seconds), "the demo was asked to crash");
    }
}
