//! A line in words.

use std::time::Duration;

/// A word: bare, or with a quoted part in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// What stands before the quotation mark; the whole word when there is none.
    pub(super) bare: String,
    /// What is quoted.
    pub(super) quoted: Option<String>,
    /// What stands behind it.
    pub(super) behind: String,
}

impl Word {
    /// The word, if nothing in it is quoted.
    pub(super) fn plain(&self) -> Option<&str> {
        self.quoted.is_none().then_some(&self.bare[..])
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.plain() == Some(word)
    }
}

/// Splits a line; what follows a `#` at the beginning of a word is a comment.
pub(super) fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let mut word = Word { bare: String::new(), quoted: None, behind: String::new() };
        while let Some(character) = characters.next_if(|character| !character.is_whitespace()) {
            match (character, &mut word.quoted) {
                ('"', Some(_)) => return Err("two quotations in one word".to_owned()),
                ('"', quoted @ None) => *quoted = Some(quotation(&mut characters)?),
                (character, Some(_)) => word.behind.push(character),
                (character, None) => word.bare.push(character),
            }
        }
        words.push(word);
    }
}

fn quotation(characters: &mut impl Iterator<Item = char>) -> Result<String, String> {
    let mut quoted = String::new();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Ok(quoted),
            '\\' => quoted.push(characters.next().ok_or("nothing behind the backslash")?),
            character => quoted.push(character),
        }
    }
    Err("a quotation without an end".to_owned())
}

/// `250ms`, `2s`, `1.5s`, `0s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').ok_or_else(|| format!("{text} has no unit, s or ms"))?, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text} is no duration"))?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| format!("{text} is no duration"))
}

/// Hexadecimal digits in pairs.
pub(super) fn hexadecimal(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("{text} is not hexadecimal");
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_blanks_outside_of_quotations() {
        let split = words("a  b=\"c # d\"... \"e\\\"\" # rest").expect("valid");
        let parts: Vec<_> = split.iter().map(|w| (&w.bare[..], w.quoted.as_deref(), &w.behind[..])).collect();
        assert_eq!(parts, [("a", None, ""), ("b=", Some("c # d"), "..."), ("", Some("e\""), "")]);
        assert!(words("\"a").is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("5").is_err() && duration("-1s").is_err());
    }

    #[test]
    fn digits_come_in_pairs() {
        assert_eq!(hexadecimal("00fF"), Ok(vec![0, 255]));
        assert_eq!(hexadecimal(""), Ok(vec![]));
        assert!(hexadecimal("0").is_err() && hexadecimal("zz").is_err());
    }
}
