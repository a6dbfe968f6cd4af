//! One option: its number and what follows from it (RFC 7252 §5.4, §5.10, §12.2).

use std::fmt;

/// An option number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionNumber(pub u16);

struct Definition {
    number: OptionNumber,
    name: &'static str,
    repeatable: bool,
    shortest: u16,
    longest: u16,
}

macro_rules! options {
    ($($constant:ident $number:literal $name:literal $repeatable:literal $shortest:literal $longest:literal)*) => {
        impl OptionNumber {
            $(
                #[doc = $name]
                pub const $constant: Self = Self($number);
            )*
        }

        static DEFINITIONS: &[Definition] = &[$(Definition {
            number: OptionNumber($number),
            name: $name,
            repeatable: $repeatable,
            shortest: $shortest,
            longest: $longest,
        }),*];
    };
}

options! {
    IF_MATCH 1 "If-Match" true 0 8
    URI_HOST 3 "Uri-Host" false 1 255
    ETAG 4 "ETag" true 1 8
    IF_NONE_MATCH 5 "If-None-Match" false 0 0
    OBSERVE 6 "Observe" false 0 3
    URI_PORT 7 "Uri-Port" false 0 2
    LOCATION_PATH 8 "Location-Path" true 0 255
    OSCORE 9 "OSCORE" false 0 255
    URI_PATH 11 "Uri-Path" true 0 255
    CONTENT_FORMAT 12 "Content-Format" false 0 2
    MAX_AGE 14 "Max-Age" false 0 4
    URI_QUERY 15 "Uri-Query" true 0 255
    HOP_LIMIT 16 "Hop-Limit" false 1 1
    ACCEPT 17 "Accept" false 0 2
    LOCATION_QUERY 20 "Location-Query" true 0 255
    BLOCK2 23 "Block2" false 0 3
    BLOCK1 27 "Block1" false 0 3
    SIZE2 28 "Size2" false 0 4
    PROXY_URI 35 "Proxy-Uri" false 1 1034
    PROXY_SCHEME 39 "Proxy-Scheme" false 1 255
    SIZE1 60 "Size1" false 0 4
    ECHO 252 "Echo" false 1 40
    NO_RESPONSE 258 "No-Response" false 0 1
    REQUEST_TAG 292 "Request-Tag" true 0 8
}

/// One more than where a number's definition stands, 0 for none: every option of every message is
/// looked up.
static PLACES: [u8; 300] = {
    let mut places = [0; 300];
    let mut place = 0;
    while place < DEFINITIONS.len() {
        places[DEFINITIONS[place].number.0 as usize] = place as u8 + 1;
        place += 1;
    }
    places
};

fn definition(number: OptionNumber) -> Option<&'static Definition> {
    let place = *PLACES.get(usize::from(number.0))?;
    DEFINITIONS.get(usize::from(place).wrapping_sub(1))
}

impl OptionNumber {
    /// Whether an endpoint that does not know it must reject the message.
    pub const fn is_critical(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether a proxy that does not know it must not forward it.
    pub const fn is_unsafe(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether it stays out of the Cache-Key; has a meaning only when safe to forward.
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1e == 0x1c
    }

    /// Its registered name, where this project knows it.
    pub fn name(self) -> Option<&'static str> {
        definition(self).map(|definition| definition.name)
    }

    /// The number of the option with this registered name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        DEFINITIONS.iter().find(|d| d.name.eq_ignore_ascii_case(name)).map(|d| d.number)
    }

    /// Whether a second occurrence has a meaning; unknown options may repeat.
    pub fn is_repeatable(self) -> bool {
        definition(self).is_none_or(|definition| definition.repeatable)
    }

    /// Whether a value of `length` bytes is inside the definition's range. One that is not makes
    /// the option count as unrecognised (RFC 7252 §5.4.3).
    pub fn allows_length(self, length: usize) -> bool {
        definition(self).is_none_or(|d| usize::from(d.shortest) <= length && length <= usize::from(d.longest))
    }

    /// The longest value its definition allows, in bytes; `None` where this project does not know it.
    pub fn longest(self) -> Option<u16> {
        definition(self).map(|definition| definition.longest)
    }
}

impl fmt::Display for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_say_what_the_registry_says() {
        let table =
            [(1, true, false), (3, true, true), (6, false, true), (14, false, true), (60, false, false)];
        for (number, critical, unsafe_to_forward) in table {
            assert_eq!(OptionNumber(number).is_critical(), critical, "{number}");
            assert_eq!(OptionNumber(number).is_unsafe(), unsafe_to_forward, "{number}");
        }
        assert!(OptionNumber::SIZE1.is_no_cache_key() && OptionNumber::ECHO.is_no_cache_key());
        assert!(!OptionNumber::ACCEPT.is_no_cache_key());
    }

    #[test]
    fn each_definition_is_found_by_its_number() {
        for number in 0..=u16::MAX {
            let listed = DEFINITIONS.iter().find(|definition| definition.number.0 == number);
            assert_eq!(OptionNumber(number).name(), listed.map(|definition| definition.name), "{number}");
        }
    }

    #[test]
    fn names_lead_back_to_numbers() {
        assert_eq!(OptionNumber::from_name("uri-path"), Some(OptionNumber::URI_PATH));
        assert_eq!(OptionNumber::from_name("nope"), None);
    }

    #[test]
    fn people_read_a_name_where_there_is_one() {
        let (known, unknown) = (OptionNumber::URI_PATH, OptionNumber(65001));
        assert_eq!((known.to_string(), unknown.to_string()), ("Uri-Path".into(), "65001".into()));
        assert_eq!((format!("{known:?}"), format!("{unknown:?}")), ("11".into(), "65001".into()));
    }
}
