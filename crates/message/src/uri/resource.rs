//! What a URI says behind its authority.

use std::borrow::Cow;

use fluent_uri::pct_enc::EStr;
use fluent_uri::pct_enc::encoder::Query;

use crate::{OptionNumber, OptionsWriter};

/// The path and the query of a URI, without dot segments.
#[derive(Clone, Debug)]
pub struct PathAndQuery<'a> {
    path: Cow<'a, [u8]>,
    query: Option<&'a [u8]>,
    /// Whether nothing in them is percent-encoded.
    is_plain: bool,
    /// Where the slashes of the path are, if that is known.
    slashes: Slashes,
}

impl<'a> PathAndQuery<'a> {
    /// Of one without percent-encoding, whose slashes are known.
    pub(super) const fn known(path: &'a [u8], query: Option<&'a [u8]>, slashes: Slashes) -> Self {
        Self { path: Cow::Borrowed(path), query, is_plain: true, slashes }
    }

    /// Of a URI that was checked.
    pub(super) fn checked(path: Cow<'a, [u8]>, query: Option<&'a [u8]>) -> Self {
        let is_plain = !path.contains(&b'%') && !query.is_some_and(|query| query.contains(&b'%'));
        Self { path, query, is_plain, slashes: Slashes::default() }
    }

    /// Its path as text, where it is in normal form: that of RFC 7252 §6.5.
    pub const fn normal_path(&self) -> Option<&'a [u8]> {
        match self.path {
            Cow::Borrowed([]) => Some(b"/"),
            Cow::Borrowed(path) if self.is_plain => Some(path),
            Cow::Borrowed(_) | Cow::Owned(_) => None,
        }
    }

    /// The values of its Uri-Path options.
    ///
    /// Source: RFC 7252 §6.4 step 8 with erratum 4895: an empty one for the slash behind a path,
    /// none for a path that is only a slash.
    pub fn path_segments(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let segments = self.path.strip_prefix(b"/").filter(|rest| !rest.is_empty());
        let segments = segments.into_iter().flat_map(|rest| rest.split(|&byte| byte == b'/'));
        let is_plain = self.is_plain;
        segments.map(move |segment| decoded(segment, is_plain))
    }

    /// The values of its Uri-Query options; a `?` alone makes an empty one.
    ///
    /// Source: RFC 7252 §6.4 step 9.
    pub fn query_items(&self) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
        let items = self.query.into_iter().flat_map(|query| query.split(|&byte| byte == b'&'));
        let is_plain = self.is_plain;
        items.map(move |item| decoded(item, is_plain))
    }

    /// Appends its Uri-Path options.
    pub fn write_path(&self, options: &mut OptionsWriter<'_>) {
        match self.slashes.known() {
            Some(slashes @ [_, ..]) if self.path.len() > 1 => {
                options.push_parts(OptionNumber::URI_PATH, &self.path, slashes);
            }
            _ => self.path_segments().for_each(|segment| options.push(OptionNumber::URI_PATH, &segment)),
        }
    }

    /// Appends its Uri-Query options.
    pub fn write_query(&self, options: &mut OptionsWriter<'_>) {
        if self.query.is_some() {
            self.query_items().for_each(|item| options.push(OptionNumber::URI_QUERY, &item));
        }
    }
}

/// Places of slashes, up to so many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slashes {
    places: [u8; 8],
    count: usize,
}

impl Slashes {
    /// Notes the next one.
    #[inline]
    pub(super) fn note(&mut self, place: usize) {
        if let Some(free) = self.places.get_mut(self.count) {
            // The whole path is shorter than 256 bytes, or not read at all.
            *free = place as u8;
        }
        self.count += 1;
    }

    /// All of them; `None` also where there are too many.
    #[inline]
    fn known(&self) -> Option<&[u8]> {
        self.places.get(..self.count)
    }
}

/// A component without its percent-encoding, whose form was checked.
fn decoded(component: &[u8], is_plain: bool) -> Cow<'_, [u8]> {
    if is_plain {
        return Cow::Borrowed(component);
    }
    let component = std::str::from_utf8(component).unwrap_or_default();
    EStr::<Query>::new(component).map_or_else(Default::default, |component| component.decode().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::Uri;

    /// What a URI has behind its authority.
    fn resource(text: &str) -> PathAndQuery<'_> {
        let uri = Uri::from_option(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        uri.resource().clone()
    }

    fn written(write: impl FnOnce(&mut OptionsWriter<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut OptionsWriter::new(&mut bytes));
        bytes
    }

    #[test]
    fn its_options_are_its_segments_and_items_one_by_one() {
        for text in [
            "coap://h",
            "coap://h/",
            "coap://h//",
            "coap://h/a",
            "coap://h/a/",
            "coap://h/a//b?c=d&&e",
            "coap://h/a%2Fb/c?%26",
            "coap://h/1/2/3/4/5/6/7/8",
            "coap://h/1/2/3/4/5/6/7/8/9",
            "coap://h/a/sixteen-and-more-bytes-in-one/b?",
            "coap://H/./a/../b",
        ] {
            let resource = resource(text);
            let path = written(|options| {
                resource.path_segments().for_each(|value| options.push(OptionNumber::URI_PATH, &value));
            });
            let query = written(|options| {
                resource.query_items().for_each(|value| options.push(OptionNumber::URI_QUERY, &value));
            });
            assert_eq!(written(|options| resource.write_path(options)), path, "{text}");
            assert_eq!(written(|options| resource.write_query(options)), query, "{text}");
            assert_eq!(path.is_empty(), ["coap://h", "coap://h/"].contains(&text), "{text}");
            assert_eq!(query.is_empty(), !text.contains('?'), "{text}");
        }
    }

    #[test]
    fn its_text_is_there_where_it_is_in_normal_form() {
        for (text, expected) in [
            ("coap://h", Some("/")),
            ("coap://h/", Some("/")),
            ("coap://h/a/b?c", Some("/a/b")),
            ("coap://H/a", Some("/a")),
            ("coap://h/%61", None),
            ("coap://h/a?%61", None),
            ("coap://h/b/../a", None),
        ] {
            assert_eq!(resource(text).normal_path(), expected.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn slashes_are_known_up_to_eight() {
        let mut slashes = Slashes::default();
        assert_eq!(slashes.known(), Some(&[][..]));
        (1..=8).for_each(|place| slashes.note(10 * place));
        assert_eq!(slashes.known(), Some(&[10, 20, 30, 40, 50, 60, 70, 80][..]));
        slashes.note(90);
        assert_eq!(slashes.known(), None);
    }
}
