//! Refusals, and that they cost other clients nothing.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use server::Limits;

use crate::client::{Http, http_too};
use crate::common::patience::until;
use crate::common::{memory, start};

#[test]
fn oversized_body_is_not_read() {
    let limits = Limits { message_bytes: Some(1000), ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", &"x".repeat(1000)).says(201, "");
    // The answer comes although the body never does.
    http.send(
        "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1001\r\n\r\n",
    );
    http.answer().says(413, "1000 bytes");
    let mut http = Http::to(&server);
    http.send(
        "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    http.send(&format!("3e9\r\n{}\r\n", "x".repeat(1001)));
    http.answer().says(413, "too-large");
    let mut http = Http::to(&server);
    let big = format!("dunlin-property-x: {}", "x".repeat(990));
    http.post_with("/queues/q/messages", &[&big], "body").says(413, "with its properties");
}

#[test]
fn half_sent_body_times_out() {
    let limits = Limits { half_sent: Some(Duration::from_millis(50)), ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    http.send("POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nab");
    http.answer().says(408, "nothing of it was stored");
    let mut http = Http::to(&server);
    http.send("POST /queues/q");
    assert_eq!(http.line(), "", "it is closed");
}

#[test]
fn stalled_connection_is_closed() {
    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &str = "\0\0\0\x04\0\0\0\0\0";
    const PING: &str = "\0\0\x08\x06\0\0\0\0\0pingpong";
    let limits = Limits { half_sent: Some(Duration::from_millis(50)), ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    for half in [
        String::new(),
        "P".into(),
        "G".into(),
        PREFACE[..10].into(),
        PREFACE.into(),
        [PREFACE, SETTINGS, &PING[..12]].concat(),
        // The head of a request, without its end.
        [PREFACE, SETTINGS, "\0\0\x01\x01\0\0\0\0\x01A"].concat(),
    ] {
        let mut http = Http::to(&server);
        http.send(&half);
        let mut heard = Vec::new();
        // A reset is an end as well.
        let _ = http.socket.read_to_end(&mut heard).inspect_err(|error| {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{half:?}: {heard:?}");
        });
    }
}

/// Its windows say that it takes nothing, and it pings the server again and again.
#[test]
fn http2_peer_without_window_is_closed() {
    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const NO_WINDOW: &str = "\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
    const PING: &str = "\0\0\x08\x06\0\0\0\0\0pingpong";
    let get = b"\0\0\x16\x01\x05\0\0\0\x01\x82\x86\x04\x07/health\x01\x09localhost";
    let limits = Limits { half_sent: Some(Duration::from_millis(50)), ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    http.send(PREFACE).send(NO_WINDOW);
    http.socket.get_mut().write_all(get).unwrap();
    let mut heard = 0;
    // A reset is an end as well.
    while http.socket.get_mut().write_all(PING.as_bytes()).is_ok() {
        let count = http.socket.read(&mut [0; 1024]).unwrap_or(0);
        heard += count;
        assert!(heard < 100_000_000, "it is served for ever");
        if count == 0 {
            break;
        }
    }
    assert!(heard > 0);
}

#[test]
fn wrong_requests_are_named() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (what, status, part) in [
        ("GET /nothing", 404, "/ lists"),
        ("GET /queues/", 400, "must not be empty"),
        ("GET /queues/%ff", 400, "percent"),
        ("GET /queues/q%0a", 400, "control"),
        ("PUT /queues", 405, "GET"),
        ("GET /queues?colour=red", 400, "colour"),
        ("GET /queues?max=0", 400, "from 1"),
        ("GET /queues/q/messages?wait=5", 400, "20s"),
        ("GET /queues/q/messages?wait=2h", 400, "3600 s"),
        ("GET /queues/q/messages?lease=0", 400, "lease"),
        ("GET /queues/q/messages?browse", 404, "no queue q"),
        ("GET /queues/default/messages?browse&selector=%3D", 400, "selector"),
        ("GET /queues/default/messages?browse&after=x", 400, "next"),
        ("GET /queues/default/messages?browse&state=gone", 400, "buried"),
        ("DELETE /leases/x", 404, "Dunlin-Lease"),
        ("DELETE /leases/1-0000000000000000", 410, "receive again"),
        ("GET /messages/7", 404, "no message 7"),
        ("GET /messages/x", 404, "number"),
        ("POST /queues/default/move", 400, "to_origin"),
        ("POST /queues/default/move?to=x&message=77", 404, "message 77 is not in default, or"),
        ("DELETE /subscriptions/x", 404, "subscription"),
        ("DELETE /subscriptions/x?durable=False", 400, "true or false"),
        ("POST /queues/default/purge?selector=", 400, "leave it out"),
        ("POST /queues/default/purge?state=leased", 400, "until the lease ends"),
        ("POST /queues/default/move?to=x&selector=%20", 400, "leave it out"),
        ("GET /queues/default/messages?browse&selector=", 400, "leave it out"),
    ] {
        let answer = http.ask(what);
        answer.says(status, part);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
    }
}

/// Beside the usual headers of clients.
#[test]
fn hundred_properties_go_as_headers() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let properties: Vec<_> = (0..101).map(|n| format!("dunlin-property-k{n}: v{n}")).collect();
    let mut headers: Vec<_> = properties.iter().map(String::as_str).collect();
    http.post_with("/queues/q/messages", &headers, "m").says(400, "100 properties");
    headers.pop();
    http.post_with("/queues/q/messages", &headers, "m").says(201, "1");
    let body = http.ask("GET /queues/q/messages?max=1").body;
    assert!(body.contains("\"k99\":\"v99\""), "{body}");
    let many = ["a: b"; 170];
    assert_eq!(http.post_with("/queues/q/messages", &many, "m").status, 431);
}

#[test]
fn properties_make_no_message_unreadable() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (count, bytes, in_list, in_headers) in [
        (5, 100, true, true),
        (100, 8, true, false),
        (5, 1215, true, false),
        (50, 2000, false, false),
    ] {
        let text = "v".repeat(bytes);
        let properties: Vec<_> = (0..count).map(|n| format!("\"k{n}\":\"{text}\"")).collect();
        let message = format!(
            "{{\"queue\":\"q\",\"body\":\"m\",\"properties\":{{{}}}}}",
            properties.join(",")
        );
        http.post("/transactions", &format!("{{\"send\":[{message}]}}")).says(200, "1");
        let answer = http.ask("GET /queues/q/messages");
        assert_eq!((answer.status, answer.body.as_str()), (200, "m"));
        let read: usize = answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(read < 14 * 1024 && answer.headers.len() < 90, "{count} of {bytes}: {read}");
        let found = (answer.header("dunlin-properties"), answer.header("dunlin-property-k0"));
        assert_eq!((found.0.is_some(), found.1.is_some()), (in_list, in_headers), "{count}");
        let at = answer.header("dunlin-properties-at");
        assert_eq!(at.is_some(), !in_list);
        if let Some(at) = at {
            http.ask(&format!("GET {at}")).says(200, &text);
        }
        let lease = answer.header("dunlin-lease").unwrap();
        assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
    }
}

#[test]
fn unsupported_headers_are_refused() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (header, part) in [
        ("Dunlin-Persistance: synced", "dunlin-persistence"),
        ("Dunlin-Durability: synced", "dunlin-durability"),
        ("Content-Encoding: gzip", "gzip"),
    ] {
        http.post_with("/queues/q/messages", &[header], "m").says(400, part);
    }
    let transaction = r#"{"send":[{"queue":"q","body":"m"}]}"#;
    for header in ["Idempotency-Key: k", "Dunlin-Delay: 5s"] {
        http.post_with("/transactions", &[header], transaction).says(400, "each of send");
    }
    http.ask("GET /queues/q").says(404, "no queue q");
}

#[test]
fn head_answers_have_no_body() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", "m").says(201, "");
    for path in ["/", "/health", "/ready", "/metrics", "/queues", "/queues/q", "/queues/q/policy"] {
        let head = http.begin(&format!("HEAD {path}"), &[], "").head();
        let whole = http.ask(&format!("GET {path}"));
        assert_eq!(head.status, 200, "{path}");
        assert_eq!(head.header("content-type"), whole.header("content-type"), "{path}");
        assert!(head.header("content-length").is_some_and(|length| length != "0"), "{path}");
    }
    assert_eq!(http.begin("HEAD /queues/x", &[], "").head().status, 404);
    for path in ["/queues/q/messages", "/topics/t/events", "/transactions"] {
        assert_eq!(http.begin(&format!("HEAD {path}"), &[], "").head().status, 405, "{path}");
    }
    http.ask("GET /queues/q").says(200, "\"ready\":1");
}

#[test]
fn draining_refuses_sends_and_readiness() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", "m").says(201, "");
    http.ask("GET /ready").says(200, "ready");
    server.remote().drain();
    http.post("/queues/q/messages", "m").says(503, "draining");
    http.ask("GET /ready").says(503, "draining");
    http.ask("GET /health").says(200, "ok");
    let (_, lease) = http.receive("q");
    assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
}

/// Ten connections are for operators, which ask by HTTP from this machine.
#[test]
fn too_many_connections_are_closed() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut all = Vec::new();
    for _ in 0..12 {
        let mut http = Http::to(&server);
        http.ask("GET /health").says(200, "");
        all.push(http);
    }
    let mut another = Http::to(&server);
    assert_eq!(another.line(), "", "it is closed");
    drop(all);
    until("they are closed", || server.counters().connections == 0);
    Http::to(&server).ask("GET /health").says(200, "");
}

/// Lines beyond the limit are not even looked at: they would cost memory first.
#[test]
fn lines_over_limit_are_unread() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let ndjson = ["content-type: application/x-ndjson"];
    let lines = format!("{}no JSON\n", "1\n".repeat(200_000));
    http.post_with("/queues/q/messages", &ndjson, &lines).says(413, "in parts");
}

#[test]
fn claimed_body_leaves_room_for_others() {
    let limits = Limits { buffered_bytes: 64 * 1024, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut slow = Http::to(&server);
    slow.send("POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n");
    slow.send("content-length: 16000\r\n\r\n");
    assert_eq!(slow.line(), "HTTP/1.1 100 Continue", "its body is being read");
    Http::to(&server).post("/queues/q/messages", "m").says(201, "");
}

/// The bytes that have come of their bodies have all the room that there is for sends.
#[test]
fn half_sent_bodies_leave_others_room() {
    let limits = Limits { buffered_bytes: 64 * 1024, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let half = "x".repeat(8_000);
    let mut stopped: Vec<Http> = (0..20).map(|_| Http::to(&server)).collect();
    for stopped in &mut stopped {
        stopped.send("POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n");
        stopped.send(&format!("content-length: 16000\r\n\r\n{half}"));
    }
    let mut http = Http::to(&server);
    for _ in 0..20 {
        http.post("/queues/q/messages", "m").says(201, "");
    }
}

/// Senders that wait have all the room that there is for sends. A later sender waits for it. A
/// settlement does not wait: by that they go on.
#[test]
fn settling_does_not_wait_behind_senders() {
    let limits = Limits { buffered_bytes: 64 * 1024, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    http.begin("PUT /queues/q/policy", &[], r#"{"max_messages":1}"#).answer().says(200, "");
    http.post("/queues/q/messages", "m").says(201, "");
    let body = "x".repeat(16_000);
    let mut senders: Vec<Http> = (0..5).map(|_| Http::to(&server)).collect();
    for sender in &mut senders {
        sender.begin("POST /queues/q/messages", &[], &body);
    }
    let mut other = Http::to(&server);
    for _ in 0..=senders.len() {
        let (_, lease) = other.receive("q");
        let settle = format!(r#"{{"settle":[{{"lease":"{lease}"}}]}}"#);
        other.post("/transactions", &settle).says(200, r#""settled":1"#);
    }
    for sender in &mut senders {
        sender.answer().says(201, "");
    }
}

#[test]
fn transaction_is_measured_as_parsed() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let objects = "{\"a\":0},".repeat(1_000_000);
    let body = format!("{{\"send\":[{{\"body\":\"\",\"x\":[{objects}0]}}]}}");
    http.post("/transactions", &body).says(413, "in parts");
}

/// Unread answers hold up only other clients with large answers.
#[test]
fn unread_answers_take_bounded_room() {
    let limits = Limits { buffered_bytes: 32 << 20, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", &"x".repeat(8 << 20)).says(201, "");
    // Far more than fits into the buffers of a socket.
    let mut silent: Vec<Http> = (0..4).map(|_| Http::to(&server)).collect();
    let statuses: Vec<u16> = silent
        .iter_mut()
        .map(|peer| {
            let browse = "GET /queues/q/messages?browse&max=1";
            peer.begin(browse, &[], "").head().status
        })
        .collect();
    assert!(statuses.contains(&200) && statuses.contains(&503), "{statuses:?}");
    http.ask("GET /queues/q").says(200, "\"ready\":1");
    drop(silent);
    until("it is shown", || http.ask("GET /queues/q/messages?browse").status != 503);
}
