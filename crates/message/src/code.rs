//! Method and response codes (RFC 7252 §5.2, §5.8, §12.1; RFC 8132; RFC 8516; RFC 8768).

use std::fmt;

/// The code byte of a message: class and detail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

macro_rules! codes {
    ($($name:ident $class:literal $detail:literal $text:literal)*) => {
        impl Code {
            $(
                #[doc = $text]
                pub const $name: Self = Self::new($class, $detail);
            )*
        }
    };
}

codes! {
    EMPTY 0 0 "0.00"
    GET 0 1 "0.01"
    POST 0 2 "0.02"
    PUT 0 3 "0.03"
    DELETE 0 4 "0.04"
    FETCH 0 5 "0.05"
    PATCH 0 6 "0.06"
    IPATCH 0 7 "0.07"
    CREATED 2 1 "2.01"
    DELETED 2 2 "2.02"
    VALID 2 3 "2.03"
    CHANGED 2 4 "2.04"
    CONTENT 2 5 "2.05"
    CONTINUE 2 31 "2.31"
    BAD_REQUEST 4 0 "4.00"
    UNAUTHORIZED 4 1 "4.01"
    BAD_OPTION 4 2 "4.02"
    FORBIDDEN 4 3 "4.03"
    NOT_FOUND 4 4 "4.04"
    METHOD_NOT_ALLOWED 4 5 "4.05"
    NOT_ACCEPTABLE 4 6 "4.06"
    REQUEST_ENTITY_INCOMPLETE 4 8 "4.08"
    CONFLICT 4 9 "4.09"
    PRECONDITION_FAILED 4 12 "4.12"
    REQUEST_ENTITY_TOO_LARGE 4 13 "4.13"
    UNPROCESSABLE_ENTITY 4 22 "4.22"
    TOO_MANY_REQUESTS 4 29 "4.29"
    INTERNAL_SERVER_ERROR 5 0 "5.00"
    NOT_IMPLEMENTED 5 1 "5.01"
    BAD_GATEWAY 5 2 "5.02"
    SERVICE_UNAVAILABLE 5 3 "5.03"
    GATEWAY_TIMEOUT 5 4 "5.04"
    PROXYING_NOT_SUPPORTED 5 5 "5.05"
    HOP_LIMIT_REACHED 5 8 "5.08"
}

impl Code {
    /// The code `class.detail`; both are cut to 3 and 5 bits.
    pub const fn new(class: u8, detail: u8) -> Self {
        Self((class & 7) << 5 | (detail & 31))
    }

    /// The part before the dot.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// The part after the dot.
    pub const fn detail(self) -> u8 {
        self.0 & 31
    }

    /// Whether this is a method code, 0.01 to 0.31, known or not.
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.detail() != 0
    }

    /// Whether this is a response code of class 2, 4 or 5.
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }

    /// Whether this is 2.xx.
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.detail())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A method this project knows (RFC 7252 §5.8, RFC 8132 §2, §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// 0.01
    Get,
    /// 0.02
    Post,
    /// 0.03
    Put,
    /// 0.04
    Delete,
    /// 0.05
    Fetch,
    /// 0.06
    Patch,
    /// 0.07
    IPatch,
}

impl Method {
    /// All of them, by code.
    pub const ALL: [Self; 7] =
        [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Fetch, Self::Patch, Self::IPatch];

    /// The method with this code.
    pub const fn from_code(code: Code) -> Option<Self> {
        match code.0 {
            1..=7 => Some(Self::ALL[code.0 as usize - 1]),
            _ => None,
        }
    }

    /// Its code.
    pub const fn code(self) -> Code {
        Code(self as u8 + 1)
    }

    /// Whether it changes nothing at the origin: GET and FETCH.
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Fetch)
    }

    /// Whether doing it twice is like doing it once: all but POST and PATCH.
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }

    /// Whether its definition gives a request payload a meaning.
    pub const fn has_payload(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }

    /// Its name as the RFCs spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Fetch => "FETCH",
            Self::Patch => "PATCH",
            Self::IPatch => "iPATCH",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_as_the_registry_prints_them() {
        assert_eq!(Code::GATEWAY_TIMEOUT.0, 0xA4);
        assert_eq!(Code::CONTENT.to_string(), "2.05");
        assert_eq!(Code::new(4, 4).to_string(), "4.04");
    }

    #[test]
    fn methods_keep_their_codes() {
        for method in Method::ALL {
            assert_eq!(Method::from_code(method.code()), Some(method));
        }
        assert_eq!(Method::from_code(Code(8)), None);
        assert_eq!(Method::from_code(Code::EMPTY), None);
        assert_eq!(Method::IPatch.code(), Code::IPATCH);
    }
}
