//! Properties that hold for any bytes of a client by HTTP, with an engine behind it: run by the
//! fuzzer in `fuzz/`, and by a test.

use http_api::{Options, serve_stream};
use model::LoginOffer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::{Builder, Runtime};

use crate::gateway::Ours;

/// The first byte says whether the others are a connection as it is, or requests, and whether
/// clients log in.
pub(crate) fn connection(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let (first, offer) = (first & !LOGIN, (first & LOGIN != 0).then_some(EVERY_WAY));
    let ours = Ours::new();
    RUNTIME.with(|runtime| {
        if first == RAW {
            runtime.block_on(converse(&ours, bytes, true, offer));
            return;
        }
        let mut rest = bytes;
        while let Some(request) = request(&mut rest) {
            let answer = runtime.block_on(converse(&ours, &request, false, offer));
            check(&request, &answer);
            ours.check();
        }
    });
    ours.check();
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().unwrap();
}

/// How the bytes of a client come.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sent {
    Whole,
    /// One at a time.
    InPieces,
}

/// The answers to a client that logs in by this offer and sends no more.
pub(crate) fn answers(ours: &Ours, bytes: &[u8], offer: Option<LoginOffer>, sent: Sent) -> Vec<u8> {
    RUNTIME.with(|runtime| runtime.block_on(converse_as(ours, bytes, true, offer, sent)))
}

/// A connection of its own, on which all is sent and all is read. A client that ends it by itself
/// may not get everything.
async fn converse(ours: &Ours, bytes: &[u8], ends: bool, offer: Option<LoginOffer>) -> Vec<u8> {
    converse_as(ours, bytes, ends, offer, Sent::Whole).await
}

async fn converse_as(
    ours: &Ours,
    bytes: &[u8],
    ends: bool,
    offer: Option<LoginOffer>,
    sent: Sent,
) -> Vec<u8> {
    let (client, server) = duplex(1 << 20);
    let options = Options {
        message_bytes_max: 1_000,
        buffered_bytes: 1 << 20,
        block_timeout: std::time::Duration::ZERO,
        half_sent: None,
        idle: None,
        stop: std::time::Duration::ZERO,
        allowed_hosts: vec!["*".parse().unwrap()],
        envelopes: amqp::envelopes(),
        held_bytes: std::sync::Arc::default(),
    };
    let (mut answers, mut requests) = tokio::io::split(client);
    let ask = async {
        // The server has answered before it leaves bytes unread.
        let piece = if sent == Sent::Whole { bytes.len().max(1) } else { 1 };
        for piece in bytes.chunks(piece) {
            let _ = requests.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        if ends {
            let _ = requests.shutdown().await;
        }
        let mut heard = Vec::new();
        let _ = answers.read_to_end(&mut heard).await;
        heard
    };
    let serving = serve_stream(server, ours.offering(offer), options);
    tokio::pin!(ask, serving);
    tokio::select! {
        biased;
        () = &mut serving => ask.await,
        heard = &mut ask => heard,
    }
}

/// A sound request with any words in it: of each of its four parts a byte says how long it is.
fn request(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (route, bytes) = rest.split_first()?;
    *rest = bytes;
    let (method, path) = ROUTES[usize::from(*route) % ROUTES.len()];
    let (name, query, headers, body) = (part(rest), part(rest), part(rest), part(rest));
    let path = path.replace("{}", &encoded(name));
    let mut request = format!("{method} {path}?{} HTTP/1.1\r\nhost: h\r\n", printable(query));
    for line in headers.split(|byte| *byte == b'\n') {
        let line = printable(line);
        // These lines must not set the end of the body.
        let framing = ["content-length", "transfer-encoding", "connection", "expect", "upgrade"];
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if line.contains(':') && !framing.contains(&name.trim()) {
            request.push_str(&format!("{line}\r\n"));
        }
    }
    request.push_str(&format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()));
    Some([request.as_bytes(), body].concat())
}

fn part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let Some((length, bytes)) = rest.split_first() else { return &[] };
    let (part, bytes) = bytes.split_at(usize::from(*length).min(bytes.len()));
    *rest = bytes;
    part
}

fn encoded(bytes: &[u8]) -> String {
    let encode = |byte: &u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    bytes.iter().map(encode).collect()
}

/// Without bytes that would end the line.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().filter(|byte| (b'!'..=b'~').contains(byte)).map(|byte| *byte as char).collect()
}

/// A whole answer, which may blame only the client.
fn check(request: &[u8], answer: &[u8]) {
    let shown = || format!("{} → {}", request.escape_ascii(), answer.escape_ascii());
    let end = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let body = request[end..].trim_ascii_start();
    if answer.is_empty() && body.starts_with(PREFACE) {
        // hyper refuses the head, sees the preface of HTTP/2 in the bytes behind it and ends of
        // lines, and closes. It would answer before any other body.
        return;
    }
    let status = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = status.and_then(|digits| str::from_utf8(digits).ok()?.parse::<u16>().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {}", shown()));
    assert!((200..500).contains(&status) || status == 503 || status == 507, "{}", shown());
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
    assert!(head.is_some(), "a whole head: {}", shown());
}

/// The first byte of an input that is a connection as it is.
pub(crate) const RAW: u8 = 0;

/// In the first byte: clients log in.
pub(crate) const LOGIN: u8 = 64;

/// A request without a login is that of a certificate.
const EVERY_WAY: LoginOffer = LoginOffer {
    password: true,
    certificate: true,
    anonymous: true,
    token: true,
    ..LoginOffer::NOTHING
};

/// How a connection of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// All that can be asked.
const ROUTES: [(&str, &str); 45] = [
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/journal"),
    ("GET", "/queues"),
    ("GET", "/queues/{}"),
    ("DELETE", "/queues/{}"),
    ("POST", "/queues/{}/messages"),
    ("GET", "/queues/{}/messages"),
    ("POST", "/queues/{}/purge"),
    ("POST", "/queues/{}/move"),
    ("GET", "/messages/{}"),
    ("DELETE", "/messages/{}"),
    ("DELETE", "/leases/{}"),
    ("POST", "/leases/{}/release"),
    ("POST", "/leases/{}/extend"),
    ("POST", "/leases/{}/bury"),
    ("POST", "/leases/{}/fail"),
    ("POST", "/queues/q/messages"),
    ("GET", "/queues/q/messages"),
    ("DELETE", "/queues/q/messages/{}"),
    ("POST", "/queues/q/messages/{}/release"),
    ("GET", "/topics"),
    ("POST", "/topics/{}/messages"),
    ("GET", "/topics/{}/events"),
    ("GET", "/subscriptions"),
    ("DELETE", "/subscriptions/{}"),
    ("POST", "/transactions"),
    ("POST", "/transactions"),
    ("PUT", "/queues/{}"),
    ("GET", "/{}"),
    ("PUT", "/queues/q/policy"),
    ("PATCH", "/queues/{}/policy"),
    ("DELETE", "/queues/{}/policy"),
    ("GET", "/queues/{}/policy"),
    ("GET", "/policies"),
    ("GET", "/tables"),
    ("GET", "/tables/{}"),
    ("GET", "/tables/t/{}"),
    ("PUT", "/tables/t/{}"),
    ("PUT", "/tables/{}/k"),
    ("POST", "/tables/t/k?add={}"),
    ("DELETE", "/tables/t/{}"),
];
