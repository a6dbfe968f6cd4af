//! Two keys of which one says how far the other may go.

use coapway_endpoint::Estimator;

use super::Unread;
use crate::error::ConfigError;
use crate::schema::window::{Window, WindowKeys};
use crate::section::{Section, Table};
use crate::sets::{UpstreamSet, upstream_sets};
use crate::settings::Settings;
use crate::units::show_duration;

/// One of two values that contradict each other.
struct Side {
    key: &'static str,
    value: String,
    /// How far it may go beside the other as that is.
    allowed: String,
}

impl Side {
    fn new(key: &'static str, value: impl ToString, allowed: impl ToString) -> Self {
        Self { key, value: value.to_string(), allowed: allowed.to_string() }
    }
}

/// Finds pairs of which one is too large for the other.
pub(super) fn check(settings: &Settings, unread: &Unread, errors: &mut Vec<ConfigError>) {
    let section = &settings.downstream;
    let values = &section.values;
    if values.early_ack_after * 2 > values.client_ack_timeout
        && !unread.has(&["early_ack_after", "client_ack_timeout"])
    {
        let [early, clients] = [values.early_ack_after, values.client_ack_timeout].map(show_duration);
        let large = Side::new("early_ack_after", early, show_duration(values.client_ack_timeout / 2));
        let small = Side::new("client_ack_timeout", clients, show_duration(values.early_ack_after * 2));
        errors.push(
            contradiction(section, &large, &small).hint(
                "later than half of client_ack_timeout clients repeat themselves before they hear of us",
            ),
        );
    }
    errors.extend(window(section, values.window, |key| section.source(key).is_given()));
    for set in upstream_sets(settings) {
        upstream(settings, set, unread, errors);
    }
}

fn upstream(settings: &Settings, set: UpstreamSet<'_>, unread: &Unread, errors: &mut Vec<ConfigError>) {
    let UpstreamSet { section, named } = set;
    let rto = set.set().rto;
    // What a named upstream has from [upstream] is told there.
    let is_own = |key| named.is_none() || section.source(key) != settings.upstream.source(key);
    let is_told = unread.has(&["rto.floor", "rto.cap"]);
    if rto.floor > rto.cap && !is_told && (is_own("rto.floor") || is_own("rto.cap")) {
        let [floor, cap] = [rto.floor, rto.cap].map(show_duration);
        let (large, small) = (Side::new("rto.floor", &floor, &cap), Side::new("rto.cap", &cap, &floor));
        errors.push(contradiction(section, &large, &small));
    }
    // A limit that nobody wrote, or wrote for all origins, makes way for what is said of one.
    let is_given = |key: &str| section.source(key).is_given() && named.is_none_or(|named| named.has_own(key));
    errors.extend(window(section, section.values.window, is_given));
    let first = set.set().transmission.ack_timeout;
    if rto.estimator == Estimator::P95
        && first > rto.cap
        && ["ack_timeout", "rto.cap"].into_iter().all(is_given)
    {
        let [first, cap] = [first, rto.cap].map(show_duration);
        let (large, small) = (Side::new("ack_timeout", &first, &cap), Side::new("rto.cap", &cap, &first));
        let error = contradiction(section, &large, &small);
        errors.push(
            error.hint("the first wait before anything is learned would be above the largest one after"),
        );
    }
}

/// A fixed window above the largest one, where both were written.
fn window<T: Table>(
    section: &Section<T>,
    WindowKeys { window, max }: WindowKeys,
    is_given: impl Fn(&str) -> bool,
) -> Option<ConfigError> {
    let Window::Fixed(window) = window else { return None };
    let is_wrong = window > max && ["nstart", "nstart_max"].into_iter().all(is_given);
    let large = Side::new("nstart", window, max);
    let small = Side::new("nstart_max", max, window);
    is_wrong.then(|| {
        contradiction(section, &large, &small)
            .hint("nstart_max is for nstart = \"auto\"; beside a number it is left out")
    })
}

/// One key is too large for another. Told is the one that was given, or the one that was given last: it is what
/// somebody just wrote, and a default nobody wrote.
fn contradiction<T: Table>(section: &Section<T>, large: &Side, small: &Side) -> ConfigError {
    let told_is_large = section.source(large.key) >= section.source(small.key);
    let (told, other) = if told_is_large { (large, small) } else { (small, large) };
    let (too, limit) = if told_is_large { ("large", "most") } else { ("small", "least") };
    let (key, value) = (section.qualified(other.key), &other.value);
    let reason = format!("too {too} for {key} = {value} ({})", section.source(other.key));
    ConfigError::new(section.qualified(told.key), &section.source(told.key), reason)
        .value(&*told.value)
        .allowed(format!("at {limit} {}", told.allowed))
}
