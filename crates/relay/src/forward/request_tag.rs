//! A Request-Tag of ours (RFC 9175 §3).

use coapway_message::{Content, Method, OptionNumber};

use super::insertion::insert;

/// The request with a Request-Tag of `tag`, in `scratch`, which is cleared.
///
/// It is meant for origins that are known to tell equal POST and PATCH requests apart by it, which is
/// outside the option's own meaning. So a request of another method stays as it is, and so does one
/// that has the option, that is a block of an upload, which a tag of its own would tear out of it, or
/// whose real method is hidden by OSCORE.
/// Shape:  `tag` has at most 8 bytes.
pub fn with_request_tag<'s>(content: &Content<'s>, tag: &[u8], scratch: &'s mut Vec<u8>) -> Content<'s> {
    let is_meant = Method::from_code(content.code).is_some_and(|method| !method.is_idempotent());
    let keeps = [OptionNumber::OSCORE, OptionNumber::BLOCK1, OptionNumber::REQUEST_TAG];
    if !is_meant || content.options.iter().any(|(number, _)| keeps.contains(&number)) {
        return *content;
    }
    insert(content, OptionNumber::REQUEST_TAG, tag, scratch)
}
