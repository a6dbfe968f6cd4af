//! Text as a configuration file, and what follows a NUL as values for `--set`. What is accepted can be
//! dumped, and a proxy with those settings settles a request.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use coapway_config::{Config, Overrides};
use coapway_endpoint::{Local, Seed};
use coapway_fuzz::message::message;
use coapway_message::{Code, MessageType, OptionNumber};
use coapway_proxy::{Input, Listening, Output, Proxy, SocketRole};
use coapway_time::Instant;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let overrides = Overrides { set: parts.map(str::to_owned).collect(), ..Overrides::default() };
    let environment: [(&str, &str); 0] = [];
    match Config::load(Some((Path::new("coapway.toml"), file)), environment, &overrides) {
        Ok(config) => {
            assert!(!config.listen().is_empty());
            assert!(config.dump().lines().count() > 10);
            settles_a_request(&config);
        }
        Err(errors) => assert!(!errors.to_string().trim().is_empty()),
    }
});

/// No settings that were accepted keep a client waiting for ever.
fn settles_a_request(config: &Config) {
    let mut proxy = Proxy::new(config.parameters(), Listening::default(), Seed::from_number(1));
    let local = Local { socket: SocketRole::Listener(0).socket(), address: None };
    let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);
    let option = (OptionNumber::PROXY_URI, &b"coap://127.0.0.1:5700/x"[..]);
    let bytes = message(MessageType::Confirmable, 7, b"\xA1", Code::POST, option, b"x");
    let mut now = Instant::ZERO;
    proxy.handle_input(Input::Datagram { local, remote, bytes: &bytes, truncated: false }, now);
    for _ in 0..10_000 {
        match proxy.poll_output() {
            Output::Transmit(_) | Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
            Output::Wait { until: None } => break,
            Output::Wait { until: Some(until) } => {
                now = now.max(until);
                proxy.handle_input(Input::Wake, now);
                proxy.check_invariants();
            }
        }
    }
    assert!(proxy.is_idle(), "a request is never settled");
}
