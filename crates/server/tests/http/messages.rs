//! Sending and receiving, over restarts and between protocols.

use model::StorePolicy;

use crate::client::{Http, await_waiting, http_too};
use crate::common::{Directory, connect, journal, memory, start};

#[test]
fn sent_message_is_received_and_acknowledged() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/mail/messages", "hello").says(201, "{\"message\":1}");
    let (body, lease) = http.receive("mail");
    assert_eq!(body, "hello");
    assert_eq!(http.ask("GET /queues/mail/messages").status, 204, "it is leased");
    assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
    http.ask(&format!("DELETE /leases/{lease}")).says(410, "lease-over");
    http.ask("GET /queues/mail").says(404, "no queue mail");
}

#[test]
fn receive_awaits_messages_of_any_protocol() {
    let server = start(http_too(memory()));
    let mut waiting = Http::to(&server);
    waiting.begin("GET /queues/default/messages?wait=20s", &[], "");
    let mut http = Http::to(&server);
    await_waiting(&mut http, "default", 1);
    connect(&server).put("by beanstalkd");
    assert_eq!(waiting.answer().body, "by beanstalkd");
    http.post("/queues/default/messages", "by HTTP").says(201, "message");
    assert_eq!(connect(&server).ask("reserve"), "RESERVED 2 7");
}

#[test]
fn confirmed_messages_survive_restart_leases_end() {
    let directory = Directory::new("http-restart");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    let headers =
        ["content-type: text/plain", "dunlin-property-region: EU", "dunlin-property-n: 5"];
    http.post_with("/queues/mail/messages", &headers, "kept").says(201, "message");
    http.post_with("/queues/mail/messages", &["dunlin-persistence: none"], "lost").says(201, "");
    let (_, lease) = http.receive("mail");
    server.shutdown().unwrap();

    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    http.ask(&format!("DELETE /leases/{lease}")).says(410, "receive again");
    let answer = http.ask("GET /queues/mail/messages?wait=20s");
    assert_eq!((answer.status, answer.body.as_str()), (200, "kept"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("dunlin-property-region"), Some("EU"));
    assert_eq!(answer.header("dunlin-property-n"), Some("5"));
    assert_eq!(answer.header("dunlin-failed"), Some("0"), "a restart is nobody's failure");
    assert_eq!(http.ask("GET /queues/mail/messages").status, 204);
}

#[test]
fn names_of_properties_keep_their_case() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let properties = r#"{"Color":"red","n":5}"#;
    let header = format!("dunlin-properties: {properties}");
    http.post_with("/queues/q/messages", &[&header], "m").says(201, "");
    let browse = |selector| format!("GET /queues/q/messages?browse&selector={selector}");
    http.ask(&browse("Color%3D%27red%27%20AND%20n%3D5")).says(200, "\"m\"");
    http.ask(&browse("color%3D%27red%27")).says(200, "\"messages\":[]");
    let answer = http.ask("GET /queues/q/messages");
    assert_eq!(answer.header("dunlin-properties"), Some(properties));
}

#[test]
fn events_and_traces_keep_their_headers() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let event = [
        "idempotency-key: k",
        "ce-id: 7",
        "ce-type: order.paid",
        "ce-subject: gr%C3%BCn",
        "content-type: application/json",
        "tracestate: a=1",
    ];
    let traced = |trace| [&event[..], &[trace]].concat();
    http.post_with("/queues/q/messages", &traced(trace), "{}").says(201, "");
    let again = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01";
    http.post_with("/queues/q/messages", &traced(again), "{}").says(201, "");
    let selector = "%22cloudEvents_type%22%3D%27order.paid%27";
    let seen = "\"cloudEvents_subject\":\"grün\"";
    http.ask(&format!("GET /queues/q/messages?browse&selector={selector}")).says(200, seen);
    let answer = http.ask("GET /queues/q/messages");
    for header in event.iter().skip(1).chain([&trace]) {
        let (name, value) = header.split_once(": ").unwrap();
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("dunlin-property-traceparent"), None);
    assert_eq!(http.ask("GET /queues/q/messages").status, 204, "one key, whatever its trace");

    let none = "{\"send\":[]}";
    http.post_with("/transactions", &["ce-id: 7"], none).says(400, "ce-id");
    http.post_with("/transactions", &[trace], none).says(200, "");
    let twice = ["ce-id: 7", "dunlin-properties: {\"cloudEvents_id\":\"8\"}"];
    http.post_with("/queues/q/messages", &twice, "m").says(400, "cloudEvents_id is given twice");
}

#[test]
fn properties_serve_selectors_body_serves_all() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for n in 1..=3 {
        let property = format!("dunlin-property-n: {n}");
        http.post_with("/queues/default/messages", &[&property], "body").says(201, "");
    }
    let found = http.ask("GET /queues/default/messages?browse&selector=n%20%3E%202");
    found.says(200, "\"n\":3");
    assert!(!found.body.contains("\"n\":2"), "{found:?}");
    assert_eq!(connect(&server).ask("reserve"), "RESERVED 1 4");
}

#[test]
fn lines_in_parts_have_own_keys() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let key = ["idempotency-key: k"];
    for _ in 0..2 {
        for (first, lines) in [(1, "a\n\nb\n"), (4, "c\nd\n")] {
            let path = format!("/queues/q/messages?lines&first_line={first}");
            http.post_with(&path, &key, lines).says(201, "{\"count\":2}");
        }
    }
    http.ask("GET /queues/q").says(200, "\"ready\":4");
}

#[test]
fn accept_json_receives_a_list() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let receive = "GET /queues/q/messages?lease=30s";
    let json = ["accept: application/json, application/problem+json"];
    http.begin(receive, &json, "").answer().says(200, "{\"messages\":[]}");
    http.post("/queues/q/messages", "m").says(201, "");
    http.post("/queues/q/messages", "n").says(201, "");
    let answer = http.begin(receive, &json, "").answer();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body.matches("\"lease\"").count(), 1, "{}", answer.body);
    answer.says(200, "\"body\":\"m\"");
    let any = ["accept: application/json, text/plain, */*"];
    assert_eq!(http.begin(receive, &any, "").answer().body, "n");
    assert_eq!(http.begin(receive, &any, "").answer().status, 204);
}

#[test]
fn send_of_many_is_atomic() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages?count=1000", "x").says(201, "{\"count\":1000}");
    let ndjson = ["content-type: application/x-ndjson"];
    http.post_with("/queues/q/messages", &ndjson, "{\"a\":1}\n\n[2]\n").says(201, "{\"count\":2}");
    http.post_with("/queues/q/messages", &ndjson, "{}\n{\n").says(400, "line 2");
    http.post("/queues/q/messages?lines", "a\r\nb").says(201, "{\"count\":2}");
    http.post("/queues/q/messages?first_line=2", "a").says(400, "first_line is for lines");
    http.ask("GET /queues/q").says(200, "\"ready\":1004");
    let got = http.ask("GET /queues/q/messages?max=1000");
    assert_eq!(got.body.matches("\"lease\"").count(), 1000);
    let rest = http.ask("GET /queues/q/messages?max=1000");
    let bodies: Vec<_> = rest.body.match_indices("\"body\":\"").map(|(at, _)| at).collect();
    assert_eq!(bodies.len(), 4, "{rest:?}");
    rest.says(200, "\"content_type\":\"application/json\"");
    http.ask("GET /queues/q/messages?max=5").says(200, "{\"messages\":[]}");
}
