//! From arguments to whom to ask and what to send (RFC 7252 §5.7.2, §6.4).

use coapway_message::uri::{Authority, Host, Scheme, Uri, UriError};
use coapway_message::{Content, Method, OptionNumber, OptionsWriter, OwnedContent};

use super::Trouble;
use super::arguments::AskingArguments;

/// The longest Proxy-Uri (RFC 7252 §5.10).
const MAX_PROXY_URI: usize = 1034;

/// What the endpoint that is asked is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Origin,
    Proxy,
    /// Of a ping.
    Endpoint,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Proxy => "proxy",
            Self::Endpoint => "endpoint",
        }
    }
}

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) authority: Authority,
    pub(super) role: Role,
}

impl Destination {
    /// Reads the URI of an endpoint; its path does not matter.
    pub(super) fn parse(text: &str, role: Role) -> Result<Self, Trouble> {
        let uri = Uri::parse(text).map_err(|error| wrong_uri(text, error))?;
        Self::of(uri, text, role)
    }

    fn of(uri: Uri<'_>, text: &str, role: Role) -> Result<Self, Trouble> {
        let scheme = uri.scheme();
        if scheme != Scheme::Coap {
            let hint = match role {
                Role::Origin => "--proxy URI asks a proxy that does",
                Role::Proxy | Role::Endpoint => "",
            };
            return Err(Trouble::wrong_use(format!("this version speaks coap over UDP, not {scheme}"), hint));
        }
        let authority = uri.into_authority();
        if let Host::Address(address) = authority.host
            && address.is_multicast()
        {
            let what = format!("{text}: multicast requests are not there yet");
            return Err(Trouble::wrong_use(what, "name one endpoint"));
        }
        Ok(Self { authority, role })
    }
}

/// Whom to ask and what to send.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) destination: Destination,
    pub(super) content: OwnedContent,
}

impl Request {
    /// Builds a request.
    ///
    /// Shape:  `number` is an option that the verb brings along.
    /// Source: RFC 7252 §5.10.2 with a proxy; §6.4 without: Uri-Host for names only, and no Uri-Port,
    /// which is the port the request goes to.
    pub(super) fn new(
        method: Method,
        arguments: &AskingArguments,
        number: Option<(OptionNumber, u16)>,
        payload: &[u8],
    ) -> Result<Self, Trouble> {
        if !payload.is_empty() && !method.has_payload() {
            let what = format!("a {} has no payload", method.name());
            return Err(Trouble::wrong_use(what, "put, post, fetch, patch and ipatch carry one"));
        }
        let mut options = Vec::new();
        let destination = match &arguments.proxy {
            Some(proxy) => {
                push_proxy_uri(&arguments.uri, &mut options)?;
                parse_proxy(proxy)?
            }
            None => {
                let uri = Uri::parse(&arguments.uri).map_err(|error| wrong_uri(&arguments.uri, error))?;
                push_uri(&uri, &mut options);
                Destination::of(uri, &arguments.uri, Role::Origin)?
            }
        };
        let accept = arguments.accept.map(|format| (OptionNumber::ACCEPT, format));
        for (number, value) in number.into_iter().chain(accept) {
            // The shortest form: no byte for zero.
            options.push((number, value.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect()));
        }
        options.extend(arguments.options.iter().map(|option| (option.number, option.value.clone())));
        // Stable: repeated options stay in the order they were given.
        options.sort_by_key(|&(number, _)| number);

        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        for (number, value) in &options {
            writer.push(*number, value);
        }
        let content = Content { code: method.code(), options: writer.finish(), payload };
        Ok(Self { destination, content: content.into() })
    }
}

fn push_uri(uri: &Uri<'_>, options: &mut Vec<(OptionNumber, Vec<u8>)>) {
    if let Host::Name(name) = &uri.authority().host {
        options.push((OptionNumber::URI_HOST, name.as_bytes().into()));
    }
    options.extend(uri.path_segments().map(|segment| (OptionNumber::URI_PATH, segment.into_owned())));
    options.extend(uri.query_items().map(|item| (OptionNumber::URI_QUERY, item.into_owned())));
}

fn push_proxy_uri(text: &str, options: &mut Vec<(OptionNumber, Vec<u8>)>) -> Result<(), Trouble> {
    match Uri::parse(text) {
        // What the proxy makes of a scheme is up to the proxy.
        Ok(_) | Err(UriError::UnknownScheme) => {}
        Err(error) => return Err(wrong_uri(text, error)),
    }
    if text.len() > MAX_PROXY_URI {
        let what = format!("the URI has {} bytes; Proxy-Uri carries at most {MAX_PROXY_URI}", text.len());
        return Err(Trouble::wrong_use(what, ""));
    }
    options.push((OptionNumber::PROXY_URI, text.into()));
    Ok(())
}

fn parse_proxy(text: &str) -> Result<Destination, Trouble> {
    let uri = Uri::parse(text).map_err(|error| wrong_uri(text, error))?;
    if uri.path_segments().next().is_some() || uri.query_items().next().is_some() {
        let what = format!("--proxy {text}: a proxy has no path");
        return Err(Trouble::wrong_use(what, "--proxy coap://HOST:PORT, and the resource as the argument"));
    }
    Destination::of(uri, text, Role::Proxy)
}

fn wrong_uri(text: &str, error: UriError) -> Trouble {
    let hint = match error {
        UriError::Fragment => "a server never sees a fragment; leave out # and what follows",
        UriError::ZoneId => "a zone has no place in a URI",
        UriError::PercentEncoding => "% itself is written %25",
        UriError::NotAbsolute
        | UriError::UnknownScheme
        | UriError::UserInfo
        | UriError::EmptyHost
        | UriError::Port
        | UriError::SegmentTooLong
        | UriError::Syntax => "write coap://HOST[:PORT]/PATH?QUERY, an IPv6 address as [::1]",
    };
    Trouble::wrong_use(format!("{text}: {error}"), hint)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Exit;
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: super::super::RequestArguments,
    }

    fn build(method: Method, line: &[&str], payload: &[u8]) -> Result<Request, Trouble> {
        let line = Line::try_parse_from(["coapway"].iter().chain(line)).expect("clap takes it");
        let format = line.arguments.content_format.map(|format| (OptionNumber::CONTENT_FORMAT, format));
        Request::new(method, &line.arguments.asking, format, payload)
    }

    fn options(request: &Request) -> Vec<(u16, String)> {
        let show = |value| String::from_utf8(<[u8]>::to_vec(value)).expect("text");
        request.content.as_content().options.iter().map(|(number, value)| (number.0, show(value))).collect()
    }

    fn list(options: &[(u16, &str)]) -> Vec<(u16, String)> {
        options.iter().map(|&(number, value)| (number, value.to_owned())).collect()
    }

    #[test]
    fn a_uri_becomes_options() {
        let request = build(Method::Get, &["coap://Host.example:99/a%2Fb/c?x=1&y"], b"").expect("a request");
        assert_eq!(
            options(&request),
            list(&[(3, "host.example"), (11, "a/b"), (11, "c"), (15, "x=1"), (15, "y")])
        );
        assert_eq!(request.destination.authority.to_string(), "host.example:99");
        let request = build(Method::Get, &["coap://[::1]/"], b"").expect("a request");
        assert_eq!(options(&request), []);
        assert_eq!(request.destination.authority.to_string(), "[::1]:5683");
    }

    #[test]
    fn a_proxy_gets_the_uri_whole() {
        for uri in ["coap://h/a?b", "coaps+tcp://h/a", "mqtt://h/a"] {
            let request = build(Method::Get, &[uri, "--proxy", "coap://127.0.0.1:99"], b"").expect("one");
            assert_eq!(options(&request), list(&[(35, uri)]));
            let Destination { authority, role } = request.destination;
            assert_eq!((authority.to_string(), role), ("127.0.0.1:99".to_owned(), Role::Proxy));
        }
    }

    #[test]
    fn options_are_sorted_and_keep_the_order_they_were_given_in() {
        let line = ["coap://h/a", "--option", "Uri-Path=b", "--option", "ETag=0x32", "--option", "4=1"];
        let line = [&line[..], &["--content-format", "0", "--accept", "50"]].concat();
        let request = build(Method::Put, &line, b"payload").expect("a request");
        let expected = [(3, "h"), (4, "2"), (4, "1"), (11, "a"), (11, "b"), (12, ""), (17, "2")];
        assert_eq!(options(&request), list(&expected));
        let content = request.content.as_content();
        assert_eq!((content.code, content.payload), (Method::Put.code(), &b"payload"[..]));
    }

    #[test]
    fn wrong_use_is_told_with_a_hint() {
        let long = format!("coap://h/{}", "a/".repeat(600));
        for (line, payload) in [
            (&["127.0.0.1/x"][..], &b""[..]),
            (&["coap://h/#x"], b""),
            (&["coaps://h/"], b""),
            (&["coap://224.0.1.187/"], b""),
            (&["coap://[ff02::fd]/"], b""),
            (&["coap://h/"], b"payload"),
            (&["coap://h/", "--proxy", "coap://p/path"], b""),
            (&["coap://h/", "--proxy", "p"], b""),
            (&["nonsense", "--proxy", "coap://p"], b""),
            (&[&long, "--proxy", "coap://p"], b""),
        ] {
            let trouble = build(Method::Get, line, payload).expect_err("nothing to send");
            assert_eq!(trouble.exit, Exit::WrongUse, "{line:?}");
        }
    }
}
