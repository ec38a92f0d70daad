//! Sends and settlements as one.

use model::StorePolicy;

use crate::client::{Http, http_too};
use crate::common::patience::until;
use crate::common::{Directory, journal, memory, start};

#[test]
fn transaction_sends_and_settles_atomically() {
    let directory = Directory::new("http-transactions");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    http.post("/queues/in/messages", "order").says(201, "");
    let (_, lease) = http.receive("in");
    let body = format!(
        r#"{{"send": [{{"queue": "out", "body": "done", "properties": {{"n": 1}}}},
            {{"queue": "audit", "body_base64": "/w==", "priority": 9}}],
           "settle": [{{"lease": "{lease}"}}]}}"#
    );
    http.post("/transactions", &body).says(200, "{\"sent\":2,\"settled\":1}");
    http.post("/transactions", &body).says(410, "lease-over");
    server.shutdown().unwrap();

    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    assert_eq!(http.ask("GET /queues/in/messages").status, 204);
    http.ask("GET /queues/out/messages?max=9").says(200, "\"body\":\"done\"");
    http.ask("GET /queues/out/messages?max=9").says(200, "[]");
    http.ask("GET /queues/audit/messages?max=9").says(200, "\"body_base64\":\"/w==\"");
}

#[test]
fn transaction_with_ended_lease_does_nothing() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/in/messages?count=2", "m").says(201, "");
    let ((_, first), (_, second)) = (http.receive("in"), http.receive("in"));
    assert_eq!(http.ask(&format!("DELETE /leases/{first}")).status, 204);
    let body = format!(
        r#"{{"send": [{{"queue": "out", "body": "x"}}],
            "settle": [{{"lease": "{second}"}}, {{"lease": "{first}"}}]}}"#
    );
    http.post("/transactions", &body).says(410, &first);
    assert_eq!(http.ask("GET /queues/out").status, 404);
    assert_eq!(http.ask(&format!("DELETE /leases/{second}")).status, 204, "it is still held");
}

#[test]
fn lease_settles_once_per_transaction() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/in/messages", "m").says(201, "");
    let (_, lease) = http.receive("in");
    let body = format!(r#"{{"settle": [{{"lease": "{lease}"}}, {{"lease": "{lease}"}}]}}"#);
    http.post("/transactions", &body).says(400, &lease);
    assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204, "it is still held");
}

#[test]
fn transaction_leases_over_limit_are_refused() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (count, status) in [(10_000, 410), (10_001, 413)] {
        let lease = |number| format!(r#"{{"lease": "{number}-0000000000000001"}}"#);
        let leases: Vec<_> = (1..=count).map(lease).collect();
        let body = format!(r#"{{"settle": [{}]}}"#, leases.join(","));
        http.post("/transactions", &body).says(status, "");
    }
}

#[test]
fn malformed_transactions_are_refused() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for (body, part) in [
        ("", "the body is empty, and has to be a JSON object"),
        (" \n", "the body is empty"),
        ("[]", "no JSON object"),
        ("[[], []]", "no JSON object"),
        ("null", "no JSON object"),
        ("queue=q", "no JSON object"),
        (r#"{"send": ["#, "no JSON object: EOF"),
        (r#"{"sent": []}"#, "the body: unknown field `sent`, expected one of `send`"),
        (r#"{"send": {}}"#, "invalid type: map, expected a sequence"),
        (r#"{"send": [["q", null, "x"]]}"#, "invalid type: sequence, expected a JSON object"),
        (r#"{"send": [], "send": []}"#, "duplicate field `send`"),
        (r#"{"send": [{"body": "x"}]}"#, "queue and topic"),
        (r#"{"send": [{"queue": "q", "topic": "t", "body": "x"}]}"#, "queue and topic"),
        (r#"{"put": [{"table": "t", "key": "k"}]}"#, "one of value and value_base64"),
        (r#"{"put": [{"table": "t", "value": "k"}]}"#, "one of key and key_base64"),
        (r#"{"put": [{"table": "", "key": "k", "value": "v"}]}"#, "name"),
        (r#"{"put": [{"key": "k", "value": "v"}]}"#, "missing field `table`"),
        (r#"{"put": [{"table": "t", "key_base64": "-", "value": "v"}]}"#, "no base64"),
        (r#"{"add": [{"table": "t", "key": "k"}]}"#, "missing field `by`"),
        (r#"{"add": [{"table": "t", "key": "k", "by": 1.5}]}"#, "invalid type"),
        (r#"{"add": [{"table": "t", "key": "k", "by": 9223372036854775808}]}"#, "invalid value"),
        (r#"{"expect": [{"table": "t", "key": "k"}]}"#, "one of value, value_base64 and present"),
        (
            r#"{"expect": [{"table": "t", "key": "k", "value": "v", "present": true}]}"#,
            "one of value, value_base64 and present",
        ),
        (
            r#"{"add": [{"table": "t", "key": "k", "by": 1}],
                "delete": [{"table": "t", "key": "k"}]}"#,
            "of table t is changed twice",
        ),
        (r#"{"settle": [{"lease": "x"}]}"#, "names a lease"),
        (r#"{"settle": [{"lease": "1-0000000000000000", "as": "x"}]}"#, "accept, release"),
    ] {
        http.post("/transactions", body).says(400, part);
    }
}

/// Larger than a frame: its answer comes later than those of others.
#[test]
fn large_concurrent_transactions_are_all_answered() {
    let directory = Directory::new("http-large");
    let server = start(http_too(journal(&directory, StorePolicy::Never)));
    let body = "x".repeat(1_000);
    let mut clients: Vec<Http> = (0..4).map(|_| Http::to(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.begin(&format!("POST /queues/q{number}/messages?count=50000"), &[], &body);
    }
    Http::to(&server).post("/queues/small/messages", "x").says(201, "");
    for (number, client) in clients.iter_mut().enumerate() {
        client.answer().says(201, "{\"count\":50000}");
        client.ask(&format!("GET /queues/q{number}")).says(200, "\"ready\":50000");
    }
}

/// A large commit waits for room in the log, which no other client asks for: the reactors have no
/// connections.
#[test]
fn large_commit_completes_while_server_stops() {
    let directory = Directory::new("http-stop-commit");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    assert_eq!(http.ask("GET /health").status, 200);
    let body = "x".repeat(1024);
    http.begin("POST /queues/many/messages?count=100000", &[], &body);
    // It has come in once the queue is there.
    let mut other = Http::to(&server);
    until("the send has come", || other.ask("GET /queues/many").status == 200);
    drop(other);
    server.shutdown().unwrap();
    assert_eq!(http.answer().status, 201);
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let queue = Http::to(&server).ask("GET /queues/many");
    assert!(queue.body.contains("\"ready\":100000"), "{queue:?}");
    server.shutdown().unwrap();
}
