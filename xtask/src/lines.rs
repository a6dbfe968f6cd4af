//! Files that are due for a second look.

/// Past this, look for the second idea that moved in.
const MOST: usize = 500;

/// A finding if the file is too long.
pub(crate) fn check(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > MOST)
        .then(|| format!("{path} has {lines} lines; past {MOST}, look for the second idea that moved in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_long_files_only() {
        assert_eq!(check("a.rs", &"\n".repeat(MOST)), None);
        let finding = check("a.rs", &"\n".repeat(MOST + 1)).expect("a finding");
        assert!(finding.contains("a.rs has 501 lines"));
    }
}
