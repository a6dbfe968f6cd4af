//! SPDX licence expressions, as far as Cargo.toml files use them.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Whether one can choose licences from the expression so that all of them are allowed.
///
/// `allowed` is asked for a licence, with its exception if there is one: `Apache-2.0 WITH LLVM-exception`.
/// Errors: what is no expression, in words.
pub(crate) fn is_satisfied(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut parser = Parser { tokens: tokens(expression).into_iter().peekable(), allowed };
    let outcome = parser.any()?;
    match parser.tokens.next() {
        None => Ok(outcome),
        Some(token) => Err(format!("`{token}` where the expression should end")),
    }
}

struct Parser<F> {
    tokens: Peekable<IntoIter<String>>,
    allowed: F,
}

impl<F: Fn(&str) -> bool> Parser<F> {
    /// AND binds closer than OR.
    fn any(&mut self) -> Result<bool, String> {
        let mut outcome = self.all()?;
        while self.takes("OR") {
            // Both sides are read, whatever the first one says.
            outcome |= self.all()?;
        }
        Ok(outcome)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut outcome = self.one()?;
        while self.takes("AND") {
            outcome &= self.one()?;
        }
        Ok(outcome)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let outcome = self.any()?;
            return if self.takes(")") { Ok(outcome) } else { Err("a `)` is missing".into()) };
        }
        let mut licence = self.identifier()?;
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.identifier()?);
        }
        Ok((self.allowed)(&licence))
    }

    fn identifier(&mut self) -> Result<String, String> {
        match self.tokens.next() {
            Some(token) if !["(", ")", "AND", "OR", "WITH"].contains(&token.as_str()) => Ok(token),
            Some(token) => Err(format!("`{token}` where a licence should be")),
            None => Err("a licence is missing at the end".into()),
        }
    }

    fn takes(&mut self, token: &str) -> bool {
        self.tokens.next_if(|next| next == token).is_some()
    }
}

/// Words and parentheses; the old `/` of crates.io means OR.
fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(expression: &str) -> Result<bool, String> {
        is_satisfied(expression, |licence| {
            ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].contains(&licence)
        })
    }

    #[test]
    fn chooses_what_is_allowed() {
        for expression in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "MIT/GPL-2.0",
            "(MIT OR GPL-3.0-only) AND Unicode-3.0",
            "GPL-3.0-only AND GPL-2.0-only OR MIT",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(satisfied(expression), Ok(true), "{expression}");
        }
    }

    #[test]
    fn refuses_what_is_not() {
        for expression in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "MIT AND (GPL-3.0-only OR LGPL-2.1-or-later)",
            "GPL-2.0-only WITH LLVM-exception",
            "MIT WITH Strange-exception",
            "mit",
        ] {
            assert_eq!(satisfied(expression), Ok(false), "{expression}");
        }
    }

    #[test]
    fn tells_what_is_no_expression() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT MIT", "AND", "MIT WITH"] {
            assert!(satisfied(expression).is_err(), "{expression}");
        }
    }
}
