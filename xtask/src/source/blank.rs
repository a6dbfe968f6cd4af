//! Blanks out what is not product code, and keeps every line where it is.

use super::is_word;

/// The source with spaces in place of comments, texts and everything under `#[cfg(test)]` or `#[test]`.
pub(crate) fn product_code(source: &str) -> String {
    let mut bytes = source.as_bytes().to_vec();
    blank_comments_and_texts(&mut bytes);
    blank_tests(&mut bytes);
    // What was blanked was blanked byte by byte; the rest is untouched UTF-8 or a single byte.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The source with spaces in place of comments and texts.
pub(crate) fn without_comments_and_texts(source: &str) -> String {
    let mut bytes = source.as_bytes().to_vec();
    blank_comments_and_texts(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn blank_comments_and_texts(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let starts_word = at == 0 || bytes.get(at - 1).is_none_or(|byte| !is_word(*byte));
        let (length, kept) = match rest {
            [b'/', b'/', ..] => (line_comment(rest), 0),
            [b'/', b'*', ..] => (block_comment(rest), 0),
            [b'"', ..] => (text(rest), 1),
            [b'r' | b'b' | b'c', ..] if starts_word => (raw_text(rest).unwrap_or(1), 1),
            [b'\'', ..] => (character(rest), 1),
            _ => (1, 1),
        };
        blank(bytes, at + kept.min(length), at + length);
        at += length;
    }
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        let step = match tail {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += step.0;
        at += step.1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn text(rest: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            Some(_) => at += 1,
            None => return rest.len(),
        }
    }
}

/// `r"…"`, `br#"…"#` and the like; other prefixed texts end as plain ones do.
fn raw_text(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take_while(|byte| b"rbc".contains(byte)).count();
    if !rest.get(..prefix)?.contains(&b'r') {
        return None;
    }
    let hashes = rest.get(prefix..)?.iter().take_while(|byte| **byte == b'#').count();
    let start = prefix + hashes;
    if rest.get(start) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = rest.get(start + 1..)?;
    let length = body.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    Some(start + 1 + length.unwrap_or(body.len()))
}

/// A character, or the single quote of a lifetime.
fn character(rest: &[u8]) -> usize {
    let escaped = rest.get(1) == Some(&b'\\');
    let from = if escaped { 3 } else { 2 };
    // The longest are '\u{10ffff}' and four bytes of UTF-8.
    let longest = if escaped { 12 } else { 6 };
    let end = rest.iter().take(longest).skip(from).position(|byte| *byte == b'\'').map(|at| at + from);
    match end {
        Some(end) if escaped || is_one_character(rest.get(1..end)) => end + 1,
        _ => 1,
    }
}

fn is_one_character(bytes: Option<&[u8]>) -> bool {
    bytes.and_then(|bytes| str::from_utf8(bytes).ok()).is_some_and(|text| text.chars().count() == 1)
}

fn blank_tests(bytes: &mut [u8]) {
    const MARKS: [&[u8]; 4] = [b"#[cfg(test)]", b"#![cfg(test)]", b"#[cfg(all(test", b"#[test]"];
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            // The inner attribute is for the whole file.
            Some(mark) if mark.starts_with(b"#!") => rest.len(),
            Some(mark) => mark.len() + item(rest.get(mark.len()..).unwrap_or_default()),
            None => {
                at += 1;
                continue;
            }
        };
        blank(bytes, at, at + length);
        at += length;
    }
}

/// The length of the item at the start: up to its `;` or the brace that closes it.
fn item(rest: &[u8]) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn blank(bytes: &mut [u8], from: usize, to: usize) {
    let end = to.min(bytes.len());
    for byte in bytes.get_mut(from..end).unwrap_or_default() {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_comments() {
        let code = product_code("a // Mutex\nb /* Mutex /* nested */ Mutex */ c");
        assert!(!code.contains("Mutex") && !code.contains("nested"));
        assert!(code.starts_with("a ") && code.contains("\nb ") && code.ends_with(" c"));
    }

    #[test]
    fn blanks_texts_of_every_kind() {
        for text in
            [r#""Mutex \" Mutex""#, r##"r#"Mutex " Mutex"#"##, r#"b"Mutex""#, r#"br"Mutex\""#, r#"c"Mutex""#]
        {
            let code = product_code(&format!("x({text}, y)"));
            assert!(!code.contains("Mutex"), "{text}: {code}");
            assert!(code.ends_with(", y)"), "{text}: {code}");
        }
    }

    #[test]
    fn tells_characters_from_lifetimes() {
        let code =
            product_code(r#"fn f<'a>(x: &'a str) { g('"', '\'', '\u{1F}', 'é', "Mutex"); h::<'a>() }"#);
        assert!(!code.contains("Mutex"), "{code}");
        assert!(code.contains("fn f<'a>(x: &'a str)") && code.contains("h::<'a>()"), "{code}");
    }

    #[test]
    fn blanks_tests_and_nothing_after_them() {
        let source = "a();\n#[cfg(test)]\nmod tests {\n    fn t() { Mutex }\n}\n#[cfg(test)]\nuse x::Mutex;\n\
                      #[cfg(test)]\nfn n() -> [u8; 3] { Mutex }\n#[test]\nfn t() { Mutex }\nb();\n";
        let code = product_code(source);
        assert!(!code.contains("Mutex"), "{code}");
        assert!(code.contains("a();") && code.contains("\nb();"), "{code}");
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn a_field_of_tests_ends_with_its_struct() {
        let code = product_code("struct S {\n    #[cfg(test)]\n    probe: u8,\n}\nfn kept() {}\n");
        assert!(code.contains("}\nfn kept() {}"), "{code}");
    }

    #[test]
    fn a_file_of_tests_is_empty() {
        assert!(product_code("#![cfg(test)]\nuse std::sync::Mutex;\n").trim().is_empty());
    }
}
