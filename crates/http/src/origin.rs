//! The origins that may ask: no page of another site in a user's browser.
//!
//! A browser reaches the broker on behalf of any page that is open, by a form that posts, or an
//! image that receives. It adds the password that its user once gave. By a name that its owner
//! points at the broker's address (DNS rebinding), a page may even read the answers. Hence three
//! rules:
//!
//! * A request names this server by an address, as `localhost`, or by an allowed name.
//! * If a browser says which site asks (`Origin`, `Sec-Fetch-Site`), it is this one.
//! * A `GET` that leases, other than over loopback, has the header `Dunlin-Client`. Browsers tell
//!   the site only to `https` and loopback, and let no page send that header to another site.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Version;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use crate::problem::{Problem, Result};

/// A name by which requests may call this server: `broker.example`, `.example.com` for all names
/// below that, or `*` for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost(String);

/// A text that is no [`AllowedHost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAHost;

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> std::result::Result<Self, NotAHost> {
        let name = text.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(text);
        let labels = name.strip_prefix('.').unwrap_or(name);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_plain);
        let is_name = labels.len() <= HOST_BYTES_MAX && labels.split('.').all(is_label);
        (name == ANY || is_name).then(|| Self(name.to_ascii_lowercase())).ok_or(NotAHost)
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AllowedHost {
    /// True if a name, in lower case, is one of these.
    fn allows(&self, host: &str) -> bool {
        self.0 == ANY || self.0 == host || self.0.starts_with('.') && host.ends_with(&self.0)
    }
}

/// How a request came, as far as it matters to whether it may lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Over loopback, and to a name that browsers know to be loopback.
    is_local: bool,
}

/// Checks the head of a request that came to this machine's loopback (`over_loopback`) or to
/// another address.
///
/// # Errors
/// 400 if the request names no server or two, 403 if a page of another site asks.
pub(crate) fn check(head: &Parts, allowed: &[AllowedHost], over_loopback: bool) -> Result<Caller> {
    let hosts = hosts(head)?;
    if let Some(host) = hosts.iter().find(|host| !is_allowed(host, allowed)) {
        return Err(Problem::forbidden(format!(
            "the request calls this server {host:?}: use an address or localhost, or allow the \
             name with --allowed-hosts"
        )));
    }
    let mut origins = head.headers.get_all(ORIGIN).into_iter().map(text);
    let mut sites = head.headers.get_all(FETCH_SITE).into_iter().map(text);
    let is_own = |origin: &str| hosts.iter().any(|host| is_at(origin, host));
    if !origins.all(is_own) || !sites.all(|site| OWN_SITES.contains(&site)) {
        return Err(Problem::forbidden(
            "a page of another site asks this, by a browser: that is allowed to none",
        ));
    }
    Ok(Caller { is_local: over_loopback && hosts.iter().all(|host| is_loopback(host)) })
}

impl Caller {
    /// Refuses a `GET` that leases if a page of another site could send it unseen, and if a
    /// browser fetches it in advance.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_lease(self, headers: &HeaderMap) -> Result<()> {
        if headers.contains_key(PURPOSE) {
            return Err(Problem::forbidden("a browser fetches this in advance, and it leases"));
        }
        if self.is_local || headers.contains_key(CLIENT) {
            return Ok(());
        }
        Err(Problem::forbidden(
            "a GET that leases needs the header Dunlin-Client, with any value, unless it comes \
             over loopback: a page of another site in a browser cannot send it",
        ))
    }
}

/// The names by which a request calls this server.
fn hosts(head: &Parts) -> Result<Vec<&str>> {
    let of_uri = head.uri.authority().map(Authority::as_str);
    let of_headers: Vec<&str> = head.headers.get_all(HOST).into_iter().map(text).collect();
    if of_headers.len() > 1 {
        return Err(Problem::bad_request("the header Host is given twice"));
    }
    let is_nameless = match head.version {
        Version::HTTP_2 => of_uri.is_none() && of_headers.is_empty(),
        version => version > Version::HTTP_10 && of_headers.is_empty(),
    };
    if is_nameless {
        return Err(Problem::bad_request("a request by HTTP/1.1 or HTTP/2 needs the header Host"));
    }
    let hosts: Vec<&str> = of_uri.into_iter().chain(of_headers).collect();
    // No browser sends an empty one, but health checks do.
    let is_sound = |host: &&str| host.is_empty() || name_of(host).is_some();
    match hosts.iter().find(|host| !is_sound(host)) {
        Some(host) => Err(Problem::bad_request(format!("Host is {host:?}, which is no host"))),
        None => Ok(hosts.into_iter().filter(|host| !host.is_empty()).collect()),
    }
}

/// The name or address in `host:port`, without the brackets of IPv6.
fn name_of(host: &str) -> Option<String> {
    let authority = Authority::from_str(host).ok().filter(|_| !host.contains('@'))?;
    let port = host.get(authority.host().len()..)?.strip_prefix(':');
    if port.is_some_and(|port| !port.is_empty() && port.parse::<u16>().is_err()) {
        return None;
    }
    let name = authority.host();
    let name = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
    Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
}

/// True if no owner of another name could let this one point here.
fn is_allowed(host: &str, allowed: &[AllowedHost]) -> bool {
    let Some(name) = name_of(host) else { return false };
    name == "localhost"
        || IpAddr::from_str(&name).is_ok()
        || allowed.iter().any(|allowed| allowed.allows(&name))
}

/// True if browsers hold it for trustworthy, and so say which site asks.
fn is_loopback(host: &str) -> bool {
    let Some(name) = name_of(host) else { return false };
    name == "localhost" || IpAddr::from_str(&name).is_ok_and(|it| it.to_canonical().is_loopback())
}

/// The text of a header, or U+FFFD if it is none: that is no name and no page of this server.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}

fn is_at(origin: &str, host: &str) -> bool {
    let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    site.is_some_and(|site| site.eq_ignore_ascii_case(host))
}

/// The header by which a client says that it is no page of another site.
pub(crate) const CLIENT: HeaderName = HeaderName::from_static("dunlin-client");

/// The header in which browsers say how the page that asks is related to this server.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The header in which browsers say that the user has not asked for it yet.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

/// This server's own pages, and addresses that people type.
const OWN_SITES: [&str; 2] = ["same-origin", "none"];

/// Any name is allowed.
const ANY: &str = "*";

/// The longest name of the domain name system.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const LOOPBACK: bool = true;

    fn caller(
        uri: &str,
        headers: &[(&str, &str)],
        allowed: &[&str],
        local: bool,
    ) -> Result<Caller> {
        let request = Request::builder().uri(uri);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let allowed: Vec<AllowedHost> = allowed.iter().map(|it| it.parse().unwrap()).collect();
        check(&request.body(()).unwrap().into_parts().0, &allowed, local)
    }

    fn status(uri: &str, headers: &[(&str, &str)], allowed: &[&str]) -> u16 {
        caller(uri, headers, allowed, LOOPBACK).map_or_else(|it| it.status.as_u16(), |_| 200)
    }

    #[test]
    fn host_names_of_others_are_refused() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8422",
            "[::1]:8422",
            "192.0.2.7:8422",
            "localhost:8422",
            "LocalHost",
            "localhost.",
            "",
        ] {
            assert_eq!(status("/", &[("host", host)], &[]), 200, "{host}");
        }
        for host in ["evil.example", "evil.example:8422", "localhost.evil.example", "127.0.0.1.x"] {
            assert_eq!(status("/", &[("host", host)], &[]), 403, "{host}");
            assert_eq!(status("/", &[("host", host)], &["*"]), 200, "{host}");
        }
        for host in ["a b", "evil.example@localhost", "localhost:x", "localhost:99999", "\u{e4}"] {
            assert_eq!(status("/", &[("host", host)], &["*"]), 400, "{host}");
        }
        assert_eq!(status("http://evil.example/", &[("host", "localhost")], &[]), 403);
    }

    #[test]
    fn allowed_hosts_are_names_or_domains() {
        let allowed = ["broker.example", "*.Lan", ".corp.example"];
        for host in ["broker.example:8422", "BROKER.example.", "a.lan", "a.b.corp.example"] {
            assert_eq!(status("/", &[("host", host)], &allowed), 200, "{host}");
        }
        for host in ["x.broker.example", "lan", "corp.example", "evilcorp.example", "broker"] {
            assert_eq!(status("/", &[("host", host)], &allowed), 403, "{host}");
        }
        for wrong in ["", ".", "*.", "a..b", "a:80", "http://a", "a b", "*a", &"a".repeat(254)] {
            assert_eq!(wrong.parse::<AllowedHost>(), Err(NotAHost), "{wrong}");
        }
    }

    #[test]
    fn host_is_given_once() {
        assert_eq!(status("/", &[], &[]), 400);
        assert_eq!(status("http://localhost/", &[], &[]), 400, "by HTTP/1.1 it is needed");
        assert_eq!(status("/", &[("host", "localhost"), ("host", "localhost")], &[]), 400);
        for (version, uri, expected) in [
            (Version::HTTP_10, "/", true),
            (Version::HTTP_2, "http://localhost/", true),
            (Version::HTTP_2, "/", false),
        ] {
            let request = Request::builder().version(version).uri(uri).body(()).unwrap();
            let checked = check(&request.into_parts().0, &[], LOOPBACK);
            assert_eq!(checked.is_ok(), expected, "{version:?} {uri}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let from = |name, value| [("host", "127.0.0.1:8422"), (name, value)];
        for own in [("origin", "http://127.0.0.1:8422"), ("sec-fetch-site", "none")] {
            assert_eq!(status("/", &from(own.0, own.1), &[]), 200, "{own:?}");
        }
        for other in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:3000"),
            ("origin", "null"),
            ("origin", ""),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(status("/", &from(other.0, other.1), &["*"]), 403, "{other:?}");
        }
    }

    #[test]
    fn leases_off_loopback_need_a_header() {
        let leases = |host, local, header: Option<HeaderName>| {
            let caller = caller("/", &[("host", host)], &["*"], local).unwrap();
            let value = HeaderValue::from_static("x");
            let headers = header.into_iter().map(|name| (name, value.clone())).collect();
            caller.check_lease(&headers).is_ok()
        };
        for (host, local) in [
            ("localhost", true),
            ("127.0.0.1:8422", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost", false),
            ("192.0.2.7", true),
            ("broker.example", true),
        ] {
            let needs = !local || host == "192.0.2.7" || host == "broker.example";
            assert_eq!(leases(host, local, None), !needs, "{host} {local}");
            assert!(leases(host, local, Some(CLIENT)), "{host}");
            assert!(!leases(host, local, Some(PURPOSE)), "{host}");
        }
    }
}
