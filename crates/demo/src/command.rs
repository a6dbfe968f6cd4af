//! What whoever watches may ask for.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::policy::Policy;

/// Something whoever watches asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The link loses more.
    MoreLoss,
    /// The link loses less.
    LessLoss,
    /// Nothing passes for a while, or it ends.
    Outage,
    /// The origin takes its time, or no longer.
    SlowOrigin,
    /// The origin no longer recognises repeated Message IDs, or does again.
    ForgetfulOrigin,
    /// Shows the other estimator at work: fixed or learned.
    Estimator,
    /// Shows the proxy that takes the origin to deduplicate, or does not.
    Deduplicates,
    /// Shows this policy at work.
    Show(Policy),
    /// Counts anew.
    Reset,
}

/// What a key asks of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Tell(Command),
    Faster,
    Slower,
    Pause,
    Help,
    Quit,
}

/// What a key means.
#[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing")]
pub(crate) fn wish(key: KeyEvent) -> Option<Wish> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Wish::Quit);
    }
    let wish = match key.code {
        KeyCode::Char('+' | '=') | KeyCode::Up => Wish::Tell(Command::MoreLoss),
        KeyCode::Char('-' | '_') | KeyCode::Down => Wish::Tell(Command::LessLoss),
        KeyCode::Char('o') => Wish::Tell(Command::Outage),
        KeyCode::Char('s') => Wish::Tell(Command::SlowOrigin),
        KeyCode::Char('f') => Wish::Tell(Command::ForgetfulOrigin),
        KeyCode::Char('e') => Wish::Tell(Command::Estimator),
        KeyCode::Char('d') => Wish::Tell(Command::Deduplicates),
        KeyCode::Char('r') => Wish::Tell(Command::Reset),
        KeyCode::Char(digit @ '1'..='4') => Wish::Tell(Command::Show(numbered(digit)?)),
        KeyCode::Char('>' | '.' | ']') | KeyCode::Right => Wish::Faster,
        KeyCode::Char('<' | ',' | '[') | KeyCode::Left => Wish::Slower,
        KeyCode::Char(' ' | 'p') => Wish::Pause,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Wish::Help,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        _ => return None,
    };
    Some(wish)
}

/// The policy in this row; the first row, numbered 0, is no proxy and has nothing to show.
fn numbered(digit: char) -> Option<Policy> {
    Policy::ALL.get(digit.to_digit(10)? as usize).copied()
}
