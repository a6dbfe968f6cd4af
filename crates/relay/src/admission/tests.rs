use super::*;
use crate::parameters::Upstream;

fn listed(allow: &[&str]) -> Parameters {
    Parameters {
        forward: Forward::Listed {
            clients: vec!["10.0.0.0/8".parse().expect("a network")],
            allow: allow.iter().map(|text| text.parse().expect("a pattern")).collect(),
        },
        own: vec!["[::]:5683".parse().expect("an address")],
        own_addresses: vec!["10.9.9.9".parse().expect("an address")],
        own_names: vec!["proxy.example".into()],
        ..Parameters::default()
    }
}

fn open() -> Parameters {
    Parameters {
        forward: Forward::Open,
        own: vec!["127.0.0.1:5683".parse().expect("an address")],
        ..Parameters::default()
    }
}

fn authority(text: &str) -> Authority {
    let uri = format!("coap://{text}/");
    coapway_message::uri::Uri::parse(&uri).unwrap_or_else(|e| panic!("{text}: {e}")).into_authority()
}

fn target(parameters: &Parameters, text: &str) -> Result<UpstreamId, Refusal> {
    admit_target(parameters, &authority(text)).map(|(upstream, _)| upstream)
}

/// Whether a request for `name` may be sent to `address` once that was found.
fn found(parameters: &Parameters, name: &str, address: &str) -> Result<(), Refusal> {
    let address: SocketAddr = address.parse().expect("an address");
    let named = Authority { host: Host::Name(name.into()), port: address.port() };
    let (_, admission) = admit_target(parameters, &named)?;
    admit_address(parameters, admission, address)
}

#[test]
fn open_reaches_unicast_at_usual_ports_but_not_itself() {
    let parameters = open();
    for text in ["10.1.1.1", "127.0.0.1:5700", "[::1]:5683", "10.1.1.1:1024", "name", "10.1.1.1:5684"] {
        assert_eq!(target(&parameters, text), Ok(UpstreamId::DEFAULT), "{text}");
    }
    for text in ["10.1.1.1:53", "name:80", "127.0.0.1", "255.255.255.255", "0.0.0.0", "[::]", "10.1.1.1:0"] {
        assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
    }
    assert_eq!(found(&parameters, "name", "127.0.0.1:5683"), Err(Refusal::TARGET));
    assert_eq!(found(&parameters, "name", "[::ffff:127.0.0.1]:5683"), Err(Refusal::TARGET));
}

#[test]
fn multicast_is_not_implemented_anywhere() {
    for parameters in [open(), listed(&["0.0.0.0/0", "::/0"]), Parameters::default()] {
        for text in ["224.0.1.187", "[ff02::fd]", "[::ffff:224.0.1.187]"] {
            assert_eq!(target(&parameters, text), Err(Refusal::MULTICAST), "{text}");
        }
    }
    let address = "224.0.1.187:5683".parse().expect("an address");
    assert_eq!(admit_address(&open(), Admission::Upstream, address), Err(Refusal::MULTICAST));
}

#[test]
fn only_listed_clients_are_served() {
    let parameters = listed(&[]);
    let client = |text: &str| admit_client(&parameters, text.parse().expect("an address"));
    assert_eq!((client("10.2.3.4"), client("::ffff:10.2.3.4")), (Ok(()), Ok(())));
    assert_eq!((client("11.2.3.4"), client("::1")), (Err(Refusal::FORWARDING), Err(Refusal::FORWARDING)));
    assert_eq!(admit_client(&Parameters::default(), [10, 0, 0, 1].into()), Err(Refusal::FORWARDING));
    assert_eq!(admit_client(&open(), [10, 0, 0, 1].into()), Ok(()));
}

#[test]
fn listed_targets_are_reached_at_their_ports() {
    let parameters = listed(&["10.1.0.0/16", "10.2.0.1:53", "[2001:db8::/32]:5700"]);
    for text in ["10.1.2.3", "10.1.2.3:7000", "10.2.0.1:53", "[2001:db8::1]:5700"] {
        assert!(target(&parameters, text).is_ok(), "{text}");
    }
    for text in ["10.3.0.1", "10.1.2.3:53", "10.2.0.1", "[2001:db8::1]", "10.1.2.3:0"] {
        assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
    }
}

#[test]
fn a_name_is_judged_again_by_its_address() {
    let parameters = listed(&["*.plant.example", "boiler", "10.1.0.0/16:7000"]);
    for text in ["a.plant.example", "A.B.Plant.Example.", "boiler", "other:7000"] {
        assert!(target(&parameters, text).is_ok(), "{text}");
    }
    for text in ["plant.example", "aplant.example", "other", "boiler:53"] {
        assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
    }
    assert_eq!(found(&parameters, "boiler", "192.0.2.1:5683"), Ok(()));
    assert_eq!(found(&parameters, "other", "10.1.2.3:7000"), Ok(()));
    assert_eq!(found(&parameters, "other", "192.0.2.1:7000"), Err(Refusal::TARGET));
    for address in ["127.0.0.1:5683", "[::1]:5683", "169.254.1.1:5683", "[fe80::1]:5683", "10.9.9.9:7000"] {
        assert_eq!(found(&parameters, "boiler", address), Err(Refusal::TARGET), "{address}");
    }
}

#[test]
fn a_catch_all_does_not_open_this_host_or_this_link() {
    let everything = listed(&["0.0.0.0/0", "::/0", "10.0.0.0/8", "0.0.0.0/1"]);
    let addresses =
        ["127.0.0.1:7000", "[::1]:7000", "169.254.1.1", "[fe80::1]", "0.0.0.0:7000", "10.9.9.9:7000"];
    for text in addresses.iter().chain(&["255.255.255.255", "[::]:7000"]) {
        assert_eq!(target(&everything, text), Err(Refusal::TARGET), "{text}");
    }
    assert!(target(&everything, "192.0.2.1").is_ok() && target(&everything, "[2001:db8::1]").is_ok());
    assert_eq!(target(&listed(&["::/96"]), "[::]:7000"), Err(Refusal::TARGET), "no address of one host");
    let exact = listed(&["127.0.0.0/8", "::1", "169.254.0.0/16", "0.0.0.0", "10.9.9.9"]);
    for text in addresses.into_iter().filter(|text| *text != "[fe80::1]") {
        assert!(target(&exact, text).is_ok(), "{text}");
    }
}

#[test]
fn what_leads_nowhere_without_a_zone_is_no_target() {
    let mut parameters = listed(&["fe80::/10", "fe80::1", "[fe80::1]:7000", "name"]);
    parameters.upstreams.push(Upstream { name: "a".into(), authority: Some(authority("boiler")) });
    for parameters in [&parameters, &open()] {
        for address in ["[fe80::1]:5683", "[fe80::1]:7000", "[febf:ffff::1]:5683"] {
            assert_eq!(target(parameters, address), Err(Refusal::TARGET), "{address}");
            assert_eq!(found(parameters, "name", address), Err(Refusal::TARGET), "{address}");
        }
    }
    assert_eq!(found(&parameters, "boiler", "[fe80::1]:5683"), Err(Refusal::TARGET), "a named upstream's");
    assert_eq!(found(&parameters, "boiler", "169.254.1.1:5683"), Ok(()), "IPv4 has no zones");
    assert_eq!(target(&listed(&["fec0::/10"]), "[fec0::1]"), Ok(UpstreamId::DEFAULT));
}

#[test]
fn knows_itself_under_each_address_and_name() {
    let parameters = listed(&[]);
    for text in
        ["10.9.9.9", "127.0.0.1", "[::1]", "[::ffff:10.9.9.9]", "0.0.0.0", "Proxy.Example", "proxy.example."]
    {
        assert!(is_own(&parameters, &authority(text)), "{text}");
    }
    for text in ["10.9.9.8", "10.9.9.9:5700", "proxy.example:5700", "example"] {
        assert!(!is_own(&parameters, &authority(text)), "{text}");
    }
    assert!(is_own(&open(), &authority("127.0.0.1")) && !is_own(&open(), &authority("127.0.0.2")));
}

#[test]
fn listeners_of_ours_are_not_reached_even_when_listed() {
    let parameters = listed(&["10.9.9.9", "127.0.0.0/8", "proxy"]);
    for address in ["10.9.9.9:5683", "127.0.0.1:5683"] {
        assert_eq!(found(&parameters, "proxy", address), Err(Refusal::TARGET), "{address}");
    }
    assert_eq!(found(&parameters, "proxy", "127.0.0.1:5700"), Ok(()));
}

#[test]
fn named_upstreams_are_exempt_and_recognised() {
    let mut parameters = listed(&[]);
    parameters.upstreams.push(Upstream { name: "a".into(), authority: Some(authority("127.0.0.1:53")) });
    parameters.upstreams.push(Upstream { name: "b".into(), authority: Some(authority("boiler")) });
    assert_eq!(target(&parameters, "127.0.0.1:53"), Ok(UpstreamId(1)));
    assert_eq!(target(&parameters, "BOILER:5683"), Ok(UpstreamId(2)));
    assert_eq!(target(&parameters, "boiler:5700"), Err(Refusal::TARGET));
    assert_eq!(found(&parameters, "boiler", "10.7.7.7:5683"), Ok(()));
    assert_eq!(found(&parameters, "boiler", "127.0.0.1:5683"), Err(Refusal::TARGET), "that is us");
}

#[test]
fn addresses_a_translator_may_lead_anywhere_are_not_open() {
    for address in [
        "[::127.0.0.1]:5801",
        "[64:ff9b::7f00:1]:5801",
        "[64:ff9b::a01:203]:5683",
        "[64:ff9b:1::7f00:1]:5801",
        "[::ffff:0:127.0.0.1]:5801",
        "[2002:7f00:1::1]:5801",
    ] {
        assert_eq!(target(&open(), address), Err(Refusal::TARGET), "{address}");
    }
    assert_eq!(target(&listed(&["64:ff9b::/96"]), "[64:ff9b::a01:203]:5683"), Ok(UpstreamId::DEFAULT));
}

#[test]
fn loopback_and_trusted_networks_are_verified() {
    let mut parameters = Parameters::default();
    let verified = |parameters: &Parameters, text: &str| {
        is_verified(parameters, text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    };
    for client in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
        assert!(verified(&parameters, client), "{client}");
    }
    let clients = ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"];
    assert!(!clients.iter().any(|client| verified(&parameters, client)));
    parameters.trusted = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("a network")).into();
    assert!(clients.iter().all(|client| verified(&parameters, client)));
    assert!(!verified(&parameters, "11.1.2.3") && !verified(&parameters, "2001:db9::1"));
}

#[test]
fn broadcast_is_reached_only_when_listed_by_itself() {
    let broadcast = "255.255.255.255:7000";
    assert_eq!(target(&open(), broadcast), Err(Refusal::TARGET));
    assert_eq!(target(&listed(&["255.0.0.0/8"]), broadcast), Err(Refusal::TARGET));
    assert!(target(&listed(&["255.255.255.255"]), broadcast).is_ok());
    assert_eq!(found(&open(), "name", broadcast), Err(Refusal::TARGET));
}

#[test]
fn everybody_in_a_network_of_this_host_is_a_broadcast() {
    let own_broadcasts = vec![[10, 1, 0, 255].into(), [127, 255, 255, 255].into()];
    let at = |parameters: Parameters| Parameters { own_broadcasts: own_broadcasts.clone(), ..parameters };
    for broadcast in ["10.1.0.255:7000", "[::ffff:10.1.0.255]:7000", "127.255.255.255:7000"] {
        assert_eq!(target(&at(open()), broadcast), Err(Refusal::TARGET), "{broadcast}");
        assert_eq!(found(&at(open()), "name", broadcast), Err(Refusal::TARGET), "{broadcast}");
        let networks = at(listed(&["10.0.0.0/8", "127.0.0.0/8", "name"]));
        assert_eq!(target(&networks, broadcast), Err(Refusal::TARGET), "{broadcast}");
        assert_eq!(found(&networks, "name", broadcast), Err(Refusal::TARGET), "{broadcast}");
    }
    assert!(target(&at(listed(&["10.1.0.255"])), "10.1.0.255:7000").is_ok(), "listed by itself");
    assert!(target(&at(open()), "10.1.0.254:7000").is_ok());
    for broadcast in ["10.1.0.255:5700", "255.255.255.255:5700"] {
        let address = broadcast.parse().expect("an address");
        assert_eq!(admit_address(&at(open()), Admission::Upstream, address), Err(Refusal::TARGET));
    }
}

#[test]
fn a_name_that_leads_to_a_group_is_not_implemented() {
    for parameters in [open(), listed(&["name", "0.0.0.0/0", "::/0"])] {
        for group in ["224.0.1.187:5683", "[ff02::fd]:5683", "[ff05::fd]:5683", "[::ffff:239.1.1.1]:5683"] {
            assert_eq!(found(&parameters, "name", group), Err(Refusal::MULTICAST), "{group}");
        }
    }
    assert_eq!(Refusal::MULTICAST.code, coapway_message::Code::NOT_IMPLEMENTED);
}

#[test]
fn ports_of_other_protocols_are_out_of_reach_without_being_listed() {
    for port in [1, 22, 53, 80, 123, 161, 443, 1023] {
        let text = format!("192.0.2.1:{port}");
        assert_eq!(target(&open(), &text), Err(Refusal::TARGET), "{text}");
        assert_eq!(target(&listed(&["192.0.2.0/24"]), &text), Err(Refusal::TARGET), "{text}");
        assert!(target(&listed(&[&text]), &text).is_ok(), "{text}");
    }
    for port in [1024, 5683, 5684, 65535] {
        assert!(target(&open(), &format!("192.0.2.1:{port}")).is_ok(), "{port}");
    }
}

#[test]
fn forwarding_is_off_by_default() {
    let closed = Parameters::default();
    assert_eq!(admit_client(&closed, [127, 0, 0, 1].into()), Err(Refusal::FORWARDING));
    for text in ["192.0.2.1", "127.0.0.1", "name", "[2001:db8::1]"] {
        assert_eq!(target(&closed, text), Err(Refusal::TARGET), "{text}");
    }
}

#[test]
fn port_0_of_a_name_is_no_target() {
    let nowhere = Authority { host: Host::Name("boiler".into()), port: 0 };
    let mut parameters = listed(&[]);
    parameters.upstreams.push(Upstream { name: "a".into(), authority: Some(nowhere.clone()) });
    for parameters in [parameters, listed(&["boiler"]), open()] {
        assert_eq!(admit_target(&parameters, &nowhere), Err(Refusal::TARGET));
    }
}

#[test]
fn a_suffix_covers_only_names_that_end_in_it_and_begin_before_it() {
    let parameters = listed(&["*.plant.example"]);
    let reached =
        |name: &str| admit_target(&parameters, &Authority { host: Host::Name(name.into()), port: 5683 });
    assert!(reached("a.plant.example").is_ok());
    for name in ["a.plant.example.org", "a.b.another.example", ".plant.example", "plant.example"] {
        assert_eq!(reached(name), Err(Refusal::TARGET), "{name}");
    }
}
