//! Requests that pages in browsers may make, and the headers of each answer for browsers.

use server::Config;

use crate::client::{Answer, Http, await_follows, http_too};
use crate::common::{memory, start};

const PATH: &str = "/queues/q/messages";

#[test]
fn other_sites_are_refused() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post_with(PATH, &["origin: http://evil.example"], "m").says(403, "another site");
    http.post_with(PATH, &["sec-fetch-site: cross-site"], "m").says(403, "another site");
    http.send("GET /queues HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    http.answer().says(403, "--allowed-hosts");
    http.ask("GET /queues/q").says(404, "no queue q");
}

/// Also if it listens to all the world.
#[test]
fn only_allowed_names_are_served() {
    let allowed_hosts = vec!["broker.example".parse().unwrap()];
    let server = start(http_too(Config { insecure: true, allowed_hosts, ..memory() }));
    let mut http = Http::to(&server);
    for (host, status) in [("broker.example", 200), ("10.1.2.3:80", 200), ("evil.example", 403)] {
        http.send(&format!("GET /queues HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        assert_eq!(http.answer().status, status, "{host}");
    }
    http.post_with(PATH, &["origin: http://evil.example"], "m").says(403, "another site");
}

/// An image of a page far away would lease, and no browser would say that it is one.
#[test]
fn lease_by_name_needs_header() {
    let allowed_hosts = vec!["broker.example".parse().unwrap()];
    let server = start(http_too(Config { allowed_hosts, ..memory() }));
    let mut http = Http::to(&server);
    http.post(PATH, "m").says(201, "");
    let named = "HTTP/1.1\r\nhost: broker.example\r\n";
    http.send(&format!("GET {PATH} {named}\r\n")).answer().says(403, "Dunlin-Client");
    http.send(&format!("GET {PATH}?max=5 {named}\r\n")).answer().says(403, "Dunlin-Client");
    http.send(&format!("GET {PATH}?browse {named}\r\n")).answer().says(200, "\"m\"");
    http.send(&format!("GET {PATH} {named}sec-purpose: prefetch\r\n\r\n")).answer().says(403, "");
    http.ask("GET /queues/q").says(200, "\"ready\":1");
    http.send(&format!("GET {PATH} {named}dunlin-client: x\r\n\r\n")).answer().says(200, "m");
    http.post_with(PATH, &["dunlin-client: x"], "m").says(201, "");
}

#[test]
fn answers_run_nothing_in_browsers() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let page = ["content-type: text/html"];
    http.post_with(PATH, &page, "<script>alert(1)</script>").says(201, "");
    http.post_with(PATH, &page, "<script>alert(2)</script>").says(201, "");
    for (what, carries) in [
        (format!("GET {PATH}?browse"), true),
        ("GET /messages/1".into(), true),
        (format!("GET {PATH}"), true),
        (format!("GET {PATH}?max=1"), true),
        (format!("GET {PATH}"), false),
        ("GET /%3Cscript%3E".into(), false),
        ("GET /queues?%3Cscript%3E=1".into(), false),
        ("GET /metrics".into(), false),
        ("GET /".into(), false),
        ("OPTIONS /".into(), false),
        ("DELETE /queues".into(), false),
    ] {
        assert_guarded(&http.ask(&what), carries);
    }
    assert_guarded(&http.post_with(PATH, &["origin: null"], "m"), false);
    http.begin("GET /topics/t/events", &[], "");
    let events = http.head();
    assert_guarded(&events, true);
    assert_eq!(events.header("x-accel-buffering"), Some("no"));
    await_follows(&mut http);
}

fn assert_guarded(answer: &Answer, carries: bool) {
    let policy = "sandbox; default-src 'none'; frame-ancestors 'none'";
    assert_eq!(answer.header("content-security-policy"), Some(policy), "{answer:?}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{answer:?}");
    let disposition = carries.then_some("attachment");
    assert_eq!(answer.header("content-disposition"), disposition, "{answer:?}");
}

#[test]
fn options_tell_what_may_be_done() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (path, allow) in [
        ("*", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("/", "GET, HEAD, OPTIONS"),
        ("/queues/q/messages", "GET, POST, OPTIONS"),
        ("/queues/q/policy", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        ("/leases/1-0000000000000000", "DELETE, OPTIONS"),
    ] {
        let answer = http.ask(&format!("OPTIONS {path}"));
        assert_eq!((answer.status, answer.header("allow")), (204, Some(allow)), "{path}");
    }
    assert_eq!(http.ask("OPTIONS /nothing").status, 404);
    http.send("OPTIONS / HTTP/1.0\r\n\r\n");
    assert_eq!(http.answer().status, 204);
}

#[test]
fn host_and_codings_are_checked() {
    let server = start(http_too(memory()));
    for (head, status) in [
        ("GET /health HTTP/1.1\r\n\r\n", 400),
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n", 400),
        ("GET /health HTTP/1.1\r\nhost: a b\r\n\r\n", 400),
        ("GET /health HTTP/1.0\r\n\r\n", 200),
        (
            "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n\
             transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
        ),
    ] {
        assert_eq!(Http::to(&server).send(head).answer().status, status, "{head}");
    }
}
