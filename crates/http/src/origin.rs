//! Who may ask: no page of another site in somebody's browser.
//!
//! Nobody is asked who they are, and the listener is on loopback. A browser on the same machine
//! reaches it there on behalf of whatever page is open: by a form that posts, or an image that
//! receives; and by a name that its owner lets point to 127.0.0.1, it may even read the answers.
//! Hence a request has to name this server by an address or as `localhost`, and where a browser
//! says which site asks, it has to be this one.

use std::net::IpAddr;
use std::str::FromStr as _;

use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use crate::problem::{Problem, Result};

/// Refuses what a page of another site asks. With `any_host` the server may have any name.
pub(crate) fn check(head: &Parts, any_host: bool) -> Result<()> {
    let of_uri = head.uri.authority().map(Authority::as_str);
    let of_headers = head.headers.get_all(HOST).into_iter().map(text);
    let hosts: Vec<&str> = of_uri.into_iter().chain(of_headers).collect();
    if !any_host && !hosts.iter().all(|host| is_nobodys_name(host)) {
        return Err(Problem::forbidden(
            "the request names this server neither by an address nor as localhost: do so, or let \
             it listen with --insecure",
        ));
    }
    let mut origins = head.headers.get_all(ORIGIN).into_iter().map(text);
    let mut sites = head.headers.get_all(FETCH_SITE).into_iter().map(text);
    let is_own = |origin: &str| hosts.iter().any(|host| is_at(origin, host));
    if !origins.all(is_own) || !sites.all(|site| OWN_SITES.contains(&site)) {
        return Err(Problem::forbidden(
            "a page of another site asks this, by a browser: that is allowed to none",
        ));
    }
    Ok(())
}

/// What is no text is nobody's name and nobody's page.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

/// Whether no owner of a name could let it point here.
fn is_nobodys_name(host: &str) -> bool {
    let Ok(authority) = Authority::from_str(host) else { return false };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || IpAddr::from_str(address).is_ok()
}

fn is_at(origin: &str, host: &str) -> bool {
    let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    site.is_some_and(|site| site.eq_ignore_ascii_case(host))
}

/// Where browsers say how the page that asks is related to whom it asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// This server's own pages, and who types the address.
const OWN_SITES: [&str; 2] = ["same-origin", "none"];

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn is_let_in(uri: &str, headers: &[(&str, &str)], any_host: bool) -> bool {
        let request = Request::builder().uri(uri);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        check(&request.body(()).unwrap().into_parts().0, any_host).is_ok()
    }

    #[test]
    fn a_name_that_somebody_may_own_is_not_this_servers() {
        for host in ["127.0.0.1", "127.0.0.1:8422", "[::1]:8422", "localhost:8422", "LocalHost"] {
            assert!(is_let_in("/", &[("host", host)], false), "{host}");
        }
        for host in ["evil.example", "evil.example:8422", "localhost.evil.example", "", "a b"] {
            assert!(!is_let_in("/", &[("host", host)], false), "{host}");
            assert!(is_let_in("/", &[("host", host)], true), "{host}");
        }
        assert!(is_let_in("/", &[], false), "no browser leaves it out");
        assert!(!is_let_in("http://evil.example/", &[("host", "localhost")], false));
        assert!(!is_let_in("/", &[("host", "localhost"), ("host", "evil.example")], false));
    }

    #[test]
    fn a_page_of_another_site_is_not_let_in() {
        let from = |name, value| [("host", "127.0.0.1:8422"), (name, value)];
        for own in [("origin", "http://127.0.0.1:8422"), ("sec-fetch-site", "none")] {
            assert!(is_let_in("/", &from(own.0, own.1), false), "{own:?}");
        }
        for other in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:3000"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!is_let_in("/", &from(other.0, other.1), false), "{other:?}");
            assert!(!is_let_in("/", &from(other.0, other.1), true), "{other:?}");
        }
    }
}
