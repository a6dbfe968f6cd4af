//! Lines that are not TOML: the parser says what its grammar expected, and here is what people mostly mean.

/// What to write instead of a line, as far as that can be guessed from what stands there.
pub(crate) fn hint(line: &str) -> Option<String> {
    let line = line.trim();
    if line.starts_with('[') && !line.contains('=') {
        return Some("a table is [name], and one of several [[name]]".to_owned());
    }
    let Some((key, value)) = line.split_once('=') else {
        return Some(match line.split_once([':', ' ']) {
            Some((key, value)) if is_key(key) => format!("write {key} = {}", suggested(value)),
            _ => "a line is key = value or [table]".to_owned(),
        });
    };
    let (key, value) = (key.trim(), value.trim());
    if !is_key(key) {
        return None;
    }
    match value.chars().next() {
        None | Some('#') => Some("a value is missing".to_owned()),
        Some('[') => Some(format!("write {key} = [\"…\", \"…\"]: each text is quoted")),
        Some('"' | '\'') if !is_closed(value) => Some("a quote is missing at the end".to_owned()),
        Some('"' | '\'' | '{') => None,
        Some(first) if first.is_ascii_digit() && is_several(value) => Some("one value in a line".to_owned()),
        Some(_) => Some(format!("write {key} = {}", suggested(value))),
    }
}

fn is_several(value: &str) -> bool {
    value.split('#').next().unwrap_or_default().trim().contains([' ', ','])
}

fn is_key(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !key.is_empty() && key.chars().all(is_part)
}

/// A value as TOML wants it.
fn suggested(value: &str) -> String {
    let value = value.split(" #").next().unwrap_or_default().trim();
    match value.to_ascii_lowercase().as_str() {
        word @ ("true" | "false") => word.to_owned(),
        "yes" | "on" => "true".to_owned(),
        "no" => "false".to_owned(),
        _ if value.starts_with('"') || value.parse::<f64>().is_ok() => value.to_owned(),
        _ => format!("\"{}\"", value.replace('"', "")),
    }
}

fn is_closed(value: &str) -> bool {
    let mut chars = value.chars();
    let quote = chars.next();
    let mut is_escaped = false;
    for c in chars {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == Some('"') => is_escaped = true,
            c if Some(c) == quote => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_told() {
        for (line, expected) in [
            ("max_wait = 30s", Some("write max_wait = \"30s\"")),
            ("uri = coap://10.1.2.3:5683 # boiler", Some("write uri = \"coap://10.1.2.3:5683\"")),
            ("rto.estimator = p95", Some("write rto.estimator = \"p95\"")),
            ("queue = 3 4", Some("one value in a line")),
            ("queue 5", Some("write queue = 5")),
            ("max_wait: 30s", Some("write max_wait = \"30s\"")),
            ("deduplicates = True", Some("write deduplicates = true")),
            ("enabled = no", Some("write enabled = false")),
            ("max_wait =", Some("a value is missing")),
            ("max_wait = # later", Some("a value is missing")),
            ("max_wait = \"30s", Some("a quote is missing at the end")),
            ("max_wait = '30s", Some("a quote is missing at the end")),
            ("clients = [10.0.0.0/8]", Some("write clients = [\"…\", \"…\"]: each text is quoted")),
            ("[[[listen]]]", Some("a table is [name], and one of several [[name]]")),
            ("[upstream", Some("a table is [name], and one of several [[name]]")),
            ("???", Some("a line is key = value or [table]")),
            ("rto = { window = 1 window = 2 }", None),
            ("max_wait = \"30s\" \"40s\"", None),
            ("max wait = 3", None),
        ] {
            assert_eq!(hint(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_quote_that_is_escaped_ends_nothing() {
        assert!(is_closed("\"a\\\"b\"") && !is_closed("\"a\\\"") && is_closed("'a\\'"));
    }
}
