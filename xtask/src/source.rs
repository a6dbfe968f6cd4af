//! Reading Rust source without compiling it: code without comments, texts and tests, and the paths in it.

mod blank;
mod functions;
mod paths;

pub(crate) use blank::product_code;
pub(crate) use functions::test_functions;
pub(crate) use paths::{Mention, mentions};

/// A source file: its path from the package's `src` on, and its text.
pub(crate) struct SourceFile {
    /// With `/`, as in `datagram/endpoint.rs`.
    pub(crate) path: String,
    /// As it is on the disk.
    pub(crate) text: String,
}

/// Whether a byte can be part of an identifier.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The number of the line in which the byte `at` is.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Where `word` stands in `text` as a word of its own.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let after = bytes.get(at + word.len());
        [before, after].into_iter().flatten().all(|byte| !is_word(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whole_words_with_their_lines() {
        let text = "Mutex MutexGuard\nmy_Mutex Mutex<u8>";
        let lines: Vec<usize> = words(text, "Mutex").map(|at| line_of(text, at)).collect();
        assert_eq!(lines, [1, 2]);
    }
}
