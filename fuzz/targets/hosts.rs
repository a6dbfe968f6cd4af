//! Text as a hosts file: every address found stands in the text, under a name that does too.

#![no_main]

use coapway_transport::resolver::parse_hosts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let addresses = parse_hosts(text);
    let lower = text.to_ascii_lowercase();
    for (name, addresses) in &addresses {
        assert!(lower.contains(name.as_str()) && !name.contains('#') && !addresses.is_empty(), "{name:?}");
        assert!(!name.contains(char::is_whitespace), "{name:?}");
        assert_eq!(*name, name.to_ascii_lowercase());
    }
    assert!(addresses.values().map(Vec::len).sum::<usize>() <= text.len() / 2);
});
