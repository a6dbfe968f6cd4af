//! What makes two requests ask for one resource.

use std::hash::{BuildHasher as _, Hash, Hasher as _};

use ahash::RandomState;
use coapway_message::{Content, OptionNumber};

use crate::forward::URI_PATH_ABBREV;

/// A keyed hash of `target` and of the options in `content`, as sent to the origin, that name a
/// resource there: Uri-Host, Uri-Path, Uri-Query, and Uri-Path-Abbrev, which stands for a path.
///
/// `target` is what else tells resources apart for the caller: the origin, the method, a client.
pub fn resource_key(hasher: &RandomState, target: impl Hash, content: &Content<'_>) -> u64 {
    let mut state = hasher.build_hasher();
    target.hash(&mut state);
    for (number, value) in content.options {
        match number {
            OptionNumber::URI_HOST | OptionNumber::URI_PATH | OptionNumber::URI_QUERY | URI_PATH_ABBREV => {
                // The length keeps `a`, `b` apart from `ab`.
                state.write_u64(u64::from(number.0) << 32 | value.len() as u64);
                state.write(value);
            }
            _ => {}
        }
    }
    state.finish()
}

#[cfg(test)]
mod tests {
    use coapway_message::{Code, OptionsWriter};

    use super::*;

    fn key(target: u32, list: &[(u16, &[u8])]) -> u64 {
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
        let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
        resource_key(&RandomState::with_seeds(1, 2, 3, 4), target, &content)
    }

    #[test]
    fn only_options_that_name_a_resource_count() {
        let plain = key(1, &[(3, b"h"), (11, b"a"), (15, b"q")]);
        assert_eq!(key(1, &[(3, b"h"), (4, b"e"), (11, b"a"), (15, b"q"), (17, &[0]), (65000, b"")]), plain);
    }

    #[test]
    fn other_resources_have_other_keys() {
        let lists: &[&[(u16, &[u8])]] = &[
            &[],
            &[(3, b"a")],
            &[(11, b"a")],
            &[(11, b"a"), (11, b"")],
            &[(11, b""), (11, b"a")],
            &[(11, b"a"), (11, b"b")],
            &[(11, b"ab")],
            &[(11, b"b"), (11, b"a")],
            &[(11, b"a"), (15, b"b")],
            &[(15, b"a")],
            &[(15, b"")],
            &[(13, &[0])],
        ];
        let mut keys: Vec<_> = lists.iter().map(|list| key(1, list)).collect();
        keys.push(key(2, &[]));
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(one), "{index}");
        }
    }
}
