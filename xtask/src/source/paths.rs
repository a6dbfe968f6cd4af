//! The paths that a source file mentions, with those in `use` trees written out.

use super::{is_word, line_of, words};

/// A path and the line it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Counted from 1.
    pub(crate) line: usize,
    /// `std`, `time`, `Instant`; the last one may be `*`.
    pub(crate) path: Vec<String>,
}

/// All paths with two or more segments in code that [`super::product_code`] gave back.
pub(crate) fn mentions(code: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut rest = code.as_bytes().to_vec();
    for at in words(code, "use") {
        let tree = code.get(at + 3..).unwrap_or_default();
        // `use<'a>` in a return type is no import.
        let Some(end) = tree.find(';').filter(|_| !tree.trim_start().starts_with('<')) else { continue };
        let tree = tree.get(..end).unwrap_or_default();
        expand(&tokens(tree), &[], line_of(code, at), &mut found);
        rest.get_mut(at..at + 3 + end).unwrap_or_default().fill(b' ');
    }
    inline(&rest, code, &mut found);
    found.retain(|mention| mention.path.len() > 1);
    found
}

/// Words, `::`, braces, commas and stars of a `use` tree.
fn tokens(tree: &str) -> Vec<String> {
    let mut spaced = tree.replace("::", " :: ");
    for mark in ["{", "}", ",", "*"] {
        spaced = spaced.replace(mark, &format!(" {mark} "));
    }
    spaced.split_whitespace().map(String::from).collect()
}

fn expand(tokens: &[String], prefix: &[String], line: usize, found: &mut Vec<Mention>) {
    for branch in branches(tokens) {
        let mut path = prefix.to_vec();
        let mut at = 0;
        while let Some(token) = branch.get(at) {
            match token.as_str() {
                "::" => {}
                "as" => break,
                // `self` inside of braces is the prefix itself.
                "self" if !path.is_empty() => {}
                "{" => {
                    let inside = branch.get(at + 1..branch.len() - 1).unwrap_or_default();
                    expand(inside, &path, line, found);
                    path.clear();
                    break;
                }
                segment => path.push(segment.to_owned()),
            }
            at += 1;
        }
        if !path.is_empty() {
            found.push(Mention { line, path });
        }
    }
}

/// Splits at the commas that are in no braces.
fn branches(tokens: &[String]) -> Vec<&[String]> {
    let (mut depth, mut start, mut found) = (0_i32, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.extend(tokens.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(tokens.get(start..));
    found
}

/// Paths outside of `use` items: words joined by `::`.
fn inline(bytes: &[u8], code: &str, found: &mut Vec<Mention>) {
    let mut at = 0;
    while at < bytes.len() {
        let (path, end) = path_at(bytes, at);
        if !path.is_empty() {
            found.push(Mention { line: line_of(code, at), path });
        }
        at = end.max(at + 1);
    }
}

fn path_at(bytes: &[u8], start: usize) -> (Vec<String>, usize) {
    let (mut path, mut at) = (Vec::new(), start);
    loop {
        let length = bytes.iter().skip(at).take_while(|byte| is_word(**byte)).count();
        let Some(word) = bytes.get(at..at + length).filter(|word| !word.is_empty()) else { break };
        path.push(String::from_utf8_lossy(word).into_owned());
        at += length;
        match bytes.get(at..at + 2) {
            Some(b"::") => at += 2,
            _ => break,
        }
    }
    (path, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        mentions(code).iter().map(|mention| mention.path.join("::")).collect()
    }

    #[test]
    fn writes_use_trees_out() {
        let code = "use std::{time::{Duration, Instant as I}, net::*, sync};\npub(crate) use crate::peer::{self, Peer};";
        assert_eq!(
            paths(code),
            [
                "std::time::Duration",
                "std::time::Instant",
                "std::net::*",
                "std::sync",
                "crate::peer",
                "crate::peer::Peer"
            ]
        );
    }

    #[test]
    fn finds_paths_in_code_with_their_lines() {
        let code = "fn f() {\n    let x = std::thread::spawn;\n    y::<super::a::B>()\n}";
        let expected = [(2, "std::thread::spawn"), (3, "super::a::B")];
        let found = mentions(code);
        let found: Vec<(usize, String)> =
            found.iter().map(|mention| (mention.line, mention.path.join("::"))).collect();
        assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
    }

    #[test]
    fn lets_words_alone_be() {
        assert!(paths("use self; let because = used; impl Trait + use<'a> ;").is_empty());
    }
}
