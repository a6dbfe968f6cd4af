//! What is worth knowing when nothing else happens, and what follows from a key.

use super::{Line, Scene, Tone, share};
use crate::place::SLOWNESS;
use crate::policy::Policy;
use crate::words::{time, time_or_dash, whole_percent};

/// One after the other.
pub(super) fn tip(number: usize, scene: &Scene<'_>) -> Line {
    match number % 5 {
        0 => compared(scene),
        1 => price_of_a_post(scene),
        2 => speed(scene),
        3 => window(scene),
        _ => keys(),
    }
}

fn compared(scene: &Scene<'_>) -> Line {
    let answered = |policy| share(scene.summary(policy).share_answered());
    let (bare, fixed, learned) = (answered(Policy::Bare), answered(Policy::Fixed), answered(Policy::Learned));
    let silent = scene.summary(Policy::Bare).silent;
    Line::new(
        Tone::Calm,
        format!("Same weather, answered: {bare} without a proxy, {fixed} fixed, {learned} learned."),
        format!("Bare devices were left in silence {silent} times; behind coapway it was never so."),
    )
}

fn price_of_a_post(scene: &Scene<'_>) -> Line {
    let lost = |policy| share(scene.summary(policy).share_posts_unanswered());
    let (once, usual, cured) = (lost(Policy::PostOnce), lost(Policy::Learned), lost(Policy::Deduplicates));
    Line::new(
        Tone::Care,
        format!(
            "POSTs unanswered: {once} with one copy, {usual} with two, {cured} with deduplicates = true."
        ),
        "An origin might execute each copy, so coapway sends two at most, unless you vouch for it.",
    )
}

fn speed(scene: &Scene<'_>) -> Line {
    let (fixed, learned) = (scene.summary(Policy::Fixed), scene.summary(Policy::Learned));
    Line::new(
        Tone::Calm,
        format!(
            "An answer takes {} on average learned, {} fixed.",
            time_or_dash(learned.mean),
            time_or_dash(fixed.mean)
        ),
        format!(
            "It costs {:.2} copies a request instead of {:.2}. What is later than 1 s: POSTs, and outages.",
            learned.copies.unwrap_or(1.0),
            fixed.copies.unwrap_or(1.0)
        ),
    )
}

fn window(scene: &Scene<'_>) -> Line {
    let window = scene.place().learned().map_or(1, |learned| learned.window);
    Line::new(
        Tone::Calm,
        format!("Up to {window} exchanges with the origin at a time: NSTART is learned, too."),
        "It begins with 1 as RFC 7252 asks, grows with clean exchanges, and waits its turn when full.",
    )
}

fn keys() -> Line {
    Line::new(
        Tone::Calm,
        "Your turn: + loses more, o is an outage, s makes the origin slow, e shows the fixed timeout.",
        "f makes the origin forget what it executed: then look at the last column. ? has them all.",
    )
}

pub(super) fn loss(scene: &Scene<'_>) -> Line {
    let loss = scene.usual_loss;
    let through = (1.0 - loss) * (1.0 - loss);
    Line::new(
        Tone::Care,
        format!("The link now loses {} each way.", whole_percent(loss)),
        format!(
            "{} of single copies go unanswered, {} of pairs, {:.1} % of five.",
            whole_percent(1.0 - through),
            whole_percent((1.0 - through).powi(2)),
            (1.0 - through).powi(5) * 100.0
        ),
    )
}

pub(super) fn slow(slow: bool) -> Line {
    if slow {
        Line::new(
            Tone::Care,
            format!("The origin takes {} for each answer.", time(SLOWNESS)),
            "Devices get an empty Acknowledgement first; timeouts follow the origin's Acknowledgements.",
        )
    } else {
        Line::new(
            Tone::Good,
            "The origin answers at once again.",
            "What was learned follows within a few round trips.",
        )
    }
}

pub(super) fn forgetful(forgetful: bool) -> Line {
    if forgetful {
        Line::new(
            Tone::Bad,
            "The origin no longer recognises repeated Message IDs: it executes each copy.",
            "Watch the last column. Here deduplicates = true is a false promise; row 3 sends a POST once.",
        )
    } else {
        Line::new(
            Tone::Good,
            "The origin recognises repeated Message IDs again (RFC 7252 §4.5).",
            "Each copy of a POST has one Message ID: it is executed once, however often it leaves.",
        )
    }
}

pub(super) fn shown(scene: &Scene<'_>) -> Line {
    let timeout = time_or_dash(scene.place().learned().map(|learned| learned.timeout));
    let setting = match scene.shown.setting() {
        "" => "As shipped, without a setting.".to_owned(),
        setting => format!("[[upstreams]] {setting}"),
    };
    Line::new(
        Tone::Calm,
        format!("Now shown: the proxy {}; timeout {timeout}.", scene.shown.in_words()),
        format!("{setting} All of them have run all the time, in the same weather."),
    )
}
