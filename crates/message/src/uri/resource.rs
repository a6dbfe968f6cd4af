//! What a URI says behind its authority.

use std::borrow::Cow;

use fluent_uri::pct_enc::EStr;
use fluent_uri::pct_enc::encoder::Query;

use super::plain;
use crate::{OptionNumber, OptionsWriter};

/// The path and the query of a URI, without dot segments.
#[derive(Clone, Debug)]
pub struct PathAndQuery<'a> {
    path: Cow<'a, [u8]>,
    query: Option<&'a [u8]>,
    /// Whether nothing in them is percent-encoded.
    is_plain: bool,
}

impl<'a> PathAndQuery<'a> {
    /// Reads what stands behind an authority; `None` also where something is percent-encoded, or may be a
    /// dot segment.
    pub fn plain(text: &'a [u8]) -> Option<Self> {
        let (path, query) = plain::path_and_query(text)?;
        Some(Self { path: Cow::Borrowed(path), query, is_plain: true })
    }

    /// Of a URI that was checked.
    pub(super) fn checked(path: Cow<'a, [u8]>, query: Option<&'a [u8]>) -> Self {
        let is_plain = !path.contains(&b'%') && !query.is_some_and(|query| query.contains(&b'%'));
        Self { path, query, is_plain }
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
        match &*self.path {
            [] | [b'/'] => {}
            [b'/', path @ ..] if self.is_plain => options.push_parts(OptionNumber::URI_PATH, path, b'/'),
            _ => self.path_segments().for_each(|segment| options.push(OptionNumber::URI_PATH, &segment)),
        }
    }

    /// Appends its Uri-Query options.
    pub fn write_query(&self, options: &mut OptionsWriter<'_>) {
        match self.query {
            None => {}
            Some(query) if self.is_plain => options.push_parts(OptionNumber::URI_QUERY, query, b'&'),
            Some(_) => self.query_items().for_each(|item| options.push(OptionNumber::URI_QUERY, &item)),
        }
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
