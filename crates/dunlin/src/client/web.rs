//! Requests to a broker, and the exit status for each of its refusals.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use ureq::http::header::{AUTHORIZATION, EXPECT, HeaderValue};
use ureq::http::{Request, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Timeout};

use crate::cli::ServerAt;
use crate::client::credentials::authorization;
use crate::exit::Error;

/// A broker that listens to HTTP.
pub(crate) struct Web {
    agent: Agent,
    url: String,
    /// The user that asks.
    authorization: Option<HeaderValue>,
}

/// A broker's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Web {
    /// The broker of a command, which asks as its user.
    ///
    /// # Errors
    /// No password or token; no roots.
    pub(crate) fn of(server: &ServerAt) -> Result<Self, Error> {
        Self::asked(server, None)
    }

    /// The same, and no answer within this time is an error.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn answering_within(server: &ServerAt, timeout: Duration) -> Result<Self, Error> {
        Self::asked(server, Some(timeout))
    }

    /// A broker that is asked as no user.
    pub(crate) fn new(url: &str) -> Self {
        Self::trusting(url, RootCerts::WebPki, None)
    }

    fn asked(server: &ServerAt, timeout: Option<Duration>) -> Result<Self, Error> {
        let roots = server.ca.as_deref().map_or(Ok(RootCerts::WebPki), roots)?;
        let web = Self::trusting(&server.url, roots, timeout);
        let authorization = authorization(server, &web.url)?;
        Ok(Self { authorization, ..web })
    }

    fn trusting(url: &str, roots: RootCerts, timeout: Option<Duration>) -> Self {
        // Most commands have no time limit for answers: a receive waits as long as it was asked to.
        // None for reading also lets a signal pass without breaking a request off. No proxy: a
        // broker listens on loopback, which is another machine's to a proxy that the environment
        // names.
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_global(timeout)
            .user_agent(CLIENT)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        let url = url.trim_end_matches('/');
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        Self { agent: config.new_agent(), url, authorization: None }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Error> {
        self.answer(self.agent.run(self.request("GET", path, &[], ())?), LOOK)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, Error> {
        self.answer(self.agent.run(self.request("DELETE", path, &[], ())?), CHANGE)
    }

    pub(crate) fn post(
        &self,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Answer, Error> {
        self.give("POST", path, headers, body)
    }

    fn give(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Answer, Error> {
        let mut request = self.request(method, path, headers, body)?;
        if body.len() > UNASKED_BYTES_MAX {
            request.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
        self.answer(self.agent.run(request), CHANGE)
    }

    pub(crate) fn put(
        &self,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Answer, Error> {
        self.give("PUT", path, headers, body)
    }

    pub(crate) fn patch(&self, path: &str, body: &Json) -> Result<Answer, Error> {
        let headers = [("content-type".to_owned(), "application/merge-patch+json".to_owned())];
        let body = body.to_string();
        let request = self.request("PATCH", path, &headers, body.as_bytes())?;
        self.answer(self.agent.run(request), CHANGE)
    }

    fn request<B>(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: B,
    ) -> Result<Request<B>, Error> {
        let given = headers.iter().map(|(name, value)| name.len() + value.len() + BESIDE_HEADER);
        let login = self.authorization.as_ref().map_or(0, |value| value.len() + OWN_HEADER_BYTES);
        let head_bytes =
            path.len() + self.url.len() + OWN_HEAD_BYTES + login + given.sum::<usize>();
        if head_bytes > HEAD_BYTES_MAX {
            return Err(Error::Settings(format!(
                "properties, key, selector and names are {head_bytes} bytes of a request, and \
                 {HEAD_BYTES_MAX} are taken (12 KiB): what is larger belongs into the message"
            )));
        }
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        // A broker that is not on loopback leases only to a client that sends this.
        request = request.header("dunlin-client", CLIENT);
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(body).map_err(|error| {
            Error::Settings(format!("{error}: check --url {} and what goes into headers", self.url))
        })
    }

    /// The broker's answer. If none came, `unknown` says how the user should go on.
    fn answer(
        &self,
        result: Result<Response<Body>, ureq::Error>,
        unknown: &str,
    ) -> Result<Answer, Error> {
        let url = &self.url;
        let failed = |error: ureq::Error| match error {
            ureq::Error::BadUri(_) | ureq::Error::TlsRequired => Error::Settings(format!(
                "{error}: --url is {url} and has to be such as http://127.0.0.1:8422"
            )),
            error if is_untrusted(&error) => Error::Settings(format!(
                "{error}: if {url} is your broker, give the root of its certificate by --ca FILE, \
                 and the name that is in it by --url"
            )),
            error if is_unreachable(&error) => Error::Unreachable(format!(
                "{error} at {url}: start it with `dunlin serve`, or give the URL where it listens"
            )),
            error => match other_protocol(url) {
                Some(protocol) => Error::Settings(format!(
                    "{url} speaks {protocol}, not HTTP, and nothing was done: give --url the HTTP \
                     listener, as http://127.0.0.1:8422"
                )),
                None => Error::Unanswered(format!("no answer came from {url}, {error}: {unknown}")),
            },
        };
        let mut response = result.map_err(failed)?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec();
        Ok(Answer { status, body: body.map_err(failed)? })
    }
}

/// The roots of `--ca`.
fn roots(file: &Path) -> Result<RootCerts, Error> {
    let failed = |cause: String| Error::Settings(format!("--ca {}: {cause}", file.display()));
    let text = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    let mut all = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(root) = item.map_err(|error| failed(error.to_string()))? {
            all.push(root);
        }
    }
    if all.is_empty() {
        return Err(failed("there is no certificate in it, a block BEGIN CERTIFICATE".into()));
    }
    Ok(RootCerts::new_with_certs(&all))
}

impl Answer {
    /// True if it is the refusal of a queue that had no place for all that was sent together.
    pub(crate) fn is_queue_full(&self) -> bool {
        let problem = || serde_json::from_slice::<Map<String, Json>>(&self.body).ok();
        self.status == FULL
            && problem().is_some_and(|problem| text(&problem, "type").ends_with(":queue-full"))
    }

    /// The bytes of the answer, or the refusal as an error.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, Error> {
        if (200..=299).contains(&self.status) {
            Ok(self.body)
        } else {
            self.object().map(|_| Vec::new())
        }
    }

    /// The JSON object of the answer, or the refusal as an error.
    pub(crate) fn object(self) -> Result<Map<String, Json>, Error> {
        let found = serde_json::from_slice::<Map<String, Json>>(&self.body);
        match (self.status, found) {
            (200..=299, Ok(object)) => Ok(object),
            (204, _) => Ok(Map::new()),
            (status, Ok(problem)) => Err(refusal(status, &problem)),
            (status, Err(_)) => {
                Err(Error::Other(format!("status {status} and no JSON: is this a Dunlin server?")))
            }
        }
    }
}

/// The other protocol that a server speaks which gave no answer by HTTP: each says something to two
/// lines that are a command of one, and no greeting of another.
fn other_protocol(url: &str) -> Option<&'static str> {
    let authority = url.parse::<ureq::http::Uri>().ok()?.authority()?.clone();
    let host = authority.host().trim_matches(['[', ']']);
    let address = (host, authority.port_u16()?).to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE_MAX).ok()?;
    stream.set_read_timeout(Some(PROBE_MAX)).ok()?;
    stream.set_write_timeout(Some(PROBE_MAX)).ok()?;
    stream.write_all(b"PING\r\nPING\r\n").ok()?;
    let mut word = [0; 4];
    stream.read_exact(&mut word).ok()?;
    match &word {
        b"+PON" | b"-NOA" | b"-ERR" => Some("Redis' protocol"),
        b"UNKN" => Some("beanstalkd's protocol"),
        b"AMQP" => Some("AMQP"),
        _ => None,
    }
}

/// True if the server's certificate is signed by no known root, or is for another name.
fn is_untrusted(error: &ureq::Error) -> bool {
    // The library wraps the cause in errors of input and output, whose types it does not show.
    matches!(error, ureq::Error::Io(_)) && error.to_string().contains("invalid peer certificate")
}

/// True if the request was not sent, since no server was reached.
fn is_unreachable(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(timeout) => matches!(timeout, Timeout::Resolve | Timeout::Connect),
        ureq::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::AddrNotAvailable
        ),
        _ => false,
    }
}

/// A problem in the words of the server: its detail says all that its title does.
fn refusal(status: u16, problem: &Map<String, Json>) -> Error {
    let known = ["detail", "title"].map(|name| text(problem, name));
    let what = match known.into_iter().find(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => format!("status {status}, and no word why"),
    };
    match status {
        // A stopping server still performs some of the requests that are under way.
        503 if text(problem, "type").ends_with(":stopping") => Error::Unanswered(what),
        503 => Error::Unreachable(what),
        400 => Error::Settings(what),
        401 => Error::Settings(format!("{what}; give --user and --password-file, or --token-file")),
        404 => Error::Nothing(what),
        _ => Error::Other(what),
    }
}

fn text<'p>(problem: &'p Map<String, Json>, name: &str) -> &'p str {
    problem.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// A part of a path or a value of a query: all but unreserved characters percent-encoded.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A path with a query of those parameters that are given.
pub(crate) fn with_query(path: String, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
}

/// The name of this client in requests.
const CLIENT: &str = concat!("dunlin/", env!("CARGO_PKG_VERSION"));

/// How long a server that may speak another protocol is given.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// The status of a refusal for lack of any kind of room.
const FULL: u16 = 507;

/// Bytes of a body that is sent without asking. A refusal that comes while a larger one is on its
/// way would be lost with the connection.
const UNASKED_BYTES_MAX: usize = 4 * 1024;

/// Advice after a read request without an answer.
const LOOK: &str = "ask again";

/// Advice after a change request without an answer.
const CHANGE: &str = "it may have been done, in whole or in part; look before you ask again";

/// Bytes of a request before its body that a broker takes. It refuses more while they are on their
/// way, and its refusal is lost with the connection.
const HEAD_BYTES_MAX: usize = 12 * 1024;

/// Of these at most so many for the rest: the method, the length, the client's name.
const OWN_HEAD_BYTES: usize = 256;

/// Bytes of the header of a login beside its value.
const OWN_HEADER_BYTES: usize = 17;

/// Bytes between the name and the value of a header, and behind it.
const BESIDE_HEADER: usize = 4;

const CONNECT_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_encoded() {
        assert_eq!(encoded("a/b c.ü"), "a%2Fb%20c.%C3%BC");
        let query = [("max", Some("5".to_owned())), ("to", None), ("s", Some("a = 'b'".into()))];
        assert_eq!(with_query("/q".into(), &query), "/q?max=5&s=a%20%3D%20%27b%27");
        assert_eq!(with_query("/q".into(), &[("to", None)]), "/q");
    }
}
