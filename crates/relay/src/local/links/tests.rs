use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::parameters::UpstreamId;
use crate::route::tests::is_for_host;

fn route(host: Option<&str>, path: &[&str]) -> Route {
    Route {
        host: host.map(Into::into),
        path: path.iter().map(|segment| segment.as_bytes().into()).collect(),
        upstream: UpstreamId(1),
        strip: true,
    }
}

fn whole(body: &Body<'_>) -> String {
    let mut buffer = Vec::new();
    body.write(0, body.len(), &mut buffer);
    String::from_utf8(buffer).expect("links are ASCII")
}

/// The same by looking at each route.
fn looked_up(routes: &[Route], host: Option<HostRef<'_>>, filters: &[&str]) -> String {
    let passes = |route: &&Route| {
        let target = target(route);
        filters.iter().all(|filter| match filter.split_once('=') {
            None => true,
            Some(("href", pattern)) => match pattern.strip_suffix('*') {
                Some(start) => target.starts_with(start.as_bytes()),
                None => target == pattern.as_bytes(),
            },
            Some(_) => false,
        })
    };
    let mut links: Vec<_> = routes
        .iter()
        .filter(|route| is_for_host(route, host))
        .filter(passes)
        .map(|route| (target(route), format!("<{}>", reference(route))))
        .collect();
    links.sort();
    links.dedup();
    links.into_iter().map(|(_, link)| link).collect::<Vec<_>>().join(",")
}

fn routes() -> impl Strategy<Value = Vec<Route>> {
    let host = prop::sample::select(vec![None, None, Some("a"), Some("B."), Some("10.1.2.3"), Some("[::1]")]);
    let path = prop::collection::vec(prop::sample::select(vec!["", "a", "b", "a/b", "é"]), 0..4);
    prop::collection::vec((host, path).prop_map(|(host, path)| route(host, &path)), 0..24)
}

fn hosts() -> impl Strategy<Value = Option<HostRef<'static>>> {
    let address = |text: &str| Some(HostRef::Address(text.parse().expect("an address")));
    let name = |text| Some(HostRef::Name(text));
    prop::sample::select(vec![
        None,
        name("A"),
        name("a."),
        name("b"),
        name("c"),
        address("10.1.2.3"),
        address("::1"),
        address("::2"),
    ])
}

fn filters() -> impl Strategy<Value = Vec<&'static str>> {
    let all = [
        "",
        "x",
        "rt=a",
        "href",
        "href=",
        "href=*",
        "href=/",
        "href=/a",
        "href=/a*",
        "href=/a/b",
        "href=/b*",
    ];
    prop::collection::vec(prop::sample::select(all.to_vec()), 0..=MOST_FILTERS)
}

proptest! {
    #[test]
    fn a_body_is_what_looking_at_each_route_finds(
        routes in routes(), host in hosts(), filters in filters(), offset in 0..80_usize, most in 0..40_usize,
    ) {
        let expected = looked_up(&routes, host, &filters);
        let links = Links::new(&routes);
        let mut body = links.under(host);
        filters.iter().for_each(|filter| body.filter(filter.as_bytes()).expect("not too many"));
        prop_assert_eq!(body.len(), expected.len());
        prop_assert_eq!(whole(&body), &*expected);
        let mut part = b"before".to_vec();
        body.write(offset, most, &mut part);
        let rest = expected.as_bytes().get(offset..).unwrap_or_default();
        prop_assert_eq!(part.strip_prefix(b"before"), rest.get(..most).or(Some(rest)));
    }

    #[test]
    fn a_body_has_the_etag_of_another_only_where_it_is_the_same(
        routes in routes(), hosts in [hosts(), hosts()], filters in [filters(), filters()],
    ) {
        let links = Links::new(&routes);
        let [one, other] = [0, 1].map(|index| {
            let mut body = links.under(hosts[index]);
            filters[index].iter().for_each(|filter| body.filter(filter.as_bytes()).expect("not too many"));
            (body.etag(), whole(&body))
        });
        prop_assert!(one.0 != other.0 || one.1 == other.1);
    }
}

#[test]
fn a_filter_costs_steps_as_the_logarithm_of_what_there_is() {
    let list = |count: usize| {
        let links =
            (0..count).map(|number| (format!("/route-{number:05}").into_bytes(), format!("/{number}")));
        List::new(links.collect(), &[])
    };
    let steps = |list: &List, filter: &[u8]| {
        let (steps, filter) = (Cell::new(0), Filter::read(filter));
        let found = list.find(|target| {
            steps.set(steps.get() + 1);
            filter.order(target)
        });
        (found.len(), steps.get())
    };
    let [few, many] = [30, 30_000].map(list);
    for (filter, found) in
        [("href=/route-00007", [1, 1]), ("href=/route-0000*", [10, 10]), ("href=/route-*", [30, 30_000])]
    {
        let of_few = steps(&few, filter.as_bytes());
        let of_many = steps(&many, filter.as_bytes());
        assert_eq!([of_few.0, of_many.0], found, "{filter}");
        // A thousand times as many are ten more halvings, for each end.
        assert!(of_many.1 <= of_few.1 + 2 * 11, "{filter}: {} and {}", of_few.1, of_many.1);
    }
}

#[test]
fn a_block_costs_steps_as_the_logarithm_of_what_there_is() {
    let steps = Cell::new(0);
    let found = halve(30_000, |number| {
        steps.set(steps.get() + 1);
        number < 12_345
    });
    assert_eq!((found, halve(0, |_| true), halve(5, |_| true), halve(5, |_| false)), (12_345, 0, 5, 0));
    assert!(steps.get() <= 15, "{}", steps.get());
    let of_host = |number: usize| route(number.is_multiple_of(2).then_some("v"), &[&format!("{number:05}")]);
    let links = Links::new(&(0..20_000).map(of_host).collect::<Vec<_>>());
    let body = links.under(Some(HostRef::Name("v")));
    assert_eq!(body.len(), 20_000 * "</00000>,".len() - 1);
    let mut end = Vec::new();
    body.write(body.len() - 17, 1024, &mut end);
    assert_eq!(end, b"</19998>,</19999>");
    // All texts are there before anybody asks, and only what is asked for is copied.
    assert!(end.capacity() < 64, "{}", end.capacity());
}
