//! The tests in a source file, as the test runner prints them.

use super::blank::without_comments_and_texts;
use super::is_word;

/// A test of a source file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestFunction {
    /// Behind the modules written out around it.
    pub(crate) name: String,
    /// Whether the test runner passes it over, always or in some configuration.
    pub(crate) is_ignored: bool,
}

/// Every function under `#[test]` or an attribute that ends in `::test`.
pub(crate) fn test_functions(source: &str) -> Vec<TestFunction> {
    let code = without_comments_and_texts(source);
    let mut reader = Reader::default();
    for word in tokens(&code) {
        reader.take(word);
    }
    reader.found
}

#[derive(Default)]
struct Reader<'c> {
    depth: usize,
    /// The modules around this place, each with the depth of its brace.
    modules: Vec<(usize, &'c str)>,
    /// A module's name was read, and its brace or semicolon comes next.
    module: Option<&'c str>,
    is_test: bool,
    is_ignored: bool,
    before: &'c str,
    found: Vec<TestFunction>,
}

impl<'c> Reader<'c> {
    fn take(&mut self, token: &'c str) {
        // Attributes of a function follow the end of whatever stands before it.
        self.is_ignored &= !matches!(token, "{" | "}" | ";");
        match (self.before, token) {
            (_, "{") => {
                self.depth += 1;
                if let Some(name) = self.module.take() {
                    self.modules.push((self.depth, name));
                }
            }
            (_, "}") => {
                self.modules.retain(|(depth, _)| *depth < self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            (_, ";") => self.module = None,
            ("[" | ":", "test") => self.is_test = true,
            ("[" | ",", "ignore") => self.is_ignored = true,
            ("mod", name) => self.module = Some(name),
            ("fn", name) if std::mem::take(&mut self.is_test) => {
                let modules = self.modules.iter().map(|(_, name)| *name);
                let name = modules.chain([name]).collect::<Vec<_>>().join("::");
                self.found.push(TestFunction { name, is_ignored: self.is_ignored });
            }
            _ => {}
        }
        self.before = token;
    }
}

/// Words and single other characters, without blanks.
fn tokens(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let word = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let (token, behind) = rest.split_at_checked(word.max(first.len_utf8()))?;
        rest = behind;
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_tests_with_the_modules_around_them() {
        let source = "
            fn not_one() { if x {} }
            #[test] fn at_the_top() {}
            mod elsewhere;
            mod inner {
                #[test]
                #[should_panic]
                fn one() { f(\"}\") }
                mod deeper { #[tokio::test] async fn two() {} }
                proptest! { #[test] fn three(x in 0..2) { assert!(x < 2) } }
            }
            // #[test] fn commented() {}
            #[test]
            fn last() {}";
        let expected = ["at_the_top", "inner::one", "inner::deeper::two", "inner::three", "last"];
        assert_eq!(names(source, false), expected);
        assert_eq!(names(source, true), [""; 0]);
    }

    #[test]
    fn knows_which_are_ignored() {
        let source = "
            fn not_one() { g([ignore, 1]); }
            #[test] fn runs() { f(x, ignore) }
            #[test] #[ignore] fn one() {}
            #[ignore = \"takes an hour\"]
            #[test]
            fn two() {}
            #[test] #[cfg_attr(miri, ignore)] fn three() {}
            #[test] fn ignore() {}";
        assert_eq!(names(source, true), ["one", "two", "three"]);
        assert_eq!(names(source, false), ["runs", "ignore"]);
    }

    fn names(source: &str, ignored: bool) -> Vec<String> {
        let found = test_functions(source).into_iter().filter(|test| test.is_ignored == ignored);
        found.map(|test| test.name).collect()
    }

    #[test]
    fn a_configuration_for_tests_is_no_test() {
        assert!(test_functions("#[cfg(test)] mod tests { fn helper() {} }").is_empty());
    }
}
