//! Text as a URI: taken apart (RFC 7252 §6.4), put together (§6.5), and taken apart again.

#![no_main]

use coapway_message::uri::{self, Authority, Host, HostRef, Scheme, Uri};
use coapway_message::{OptionNumber, Options, OptionsWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(host) = HostRef::parse(bytes).map(Host::from) {
        let text = format!("coap://{host}");
        let uri = Uri::parse(&text).expect("a host is the host of a URI");
        assert_eq!(uri.into_authority().host, host, "{text}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = Uri::parse(text) else { return };
    let options = decompose(&uri);
    let normal = compose(uri.scheme(), uri.authority(), &options);
    assert!(normal.is_ascii());
    let again = Uri::parse(&normal).expect("a normal form is a URI");
    assert_eq!((again.scheme(), again.authority()), (uri.scheme(), uri.authority()));
    assert_eq!(decompose(&again), options, "{normal}");
    assert_eq!(compose(again.scheme(), again.authority(), &options), normal);
});

fn decompose(uri: &Uri<'_>) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    for segment in uri.path_segments() {
        assert!(segment.len() <= 255 && !matches!(&*segment, b"." | b".."));
        writer.push(OptionNumber::URI_PATH, &segment);
    }
    for item in uri.query_items() {
        assert!(item.len() <= 255);
        writer.push(OptionNumber::URI_QUERY, &item);
    }
    encoded
}

fn compose(scheme: Scheme, authority: &Authority, encoded: &[u8]) -> String {
    let (options, _) = Options::parse(encoded).expect("what was written can be read");
    let mut text = format!("{scheme}://{authority}");
    uri::write_path(&options, &mut text);
    uri::write_query(&options, &mut text);
    text
}
