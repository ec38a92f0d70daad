//! Leases: their owners, their ends, and that no client loses a message by going away.

use crate::client::{Http, await_waiting, http_too};
use crate::common::{connect, memory, start};

#[test]
fn lease_is_settled_once_by_any() {
    let server = start(http_too(memory()));
    let (mut http, mut other) = (Http::to(&server), Http::to(&server));
    http.post("/queues/q/messages", "m").says(201, "");
    let (_, first) = http.receive("q");
    assert_eq!(other.post(&format!("/leases/{first}/release"), "").status, 204);
    let (_, second) = other.receive("q");
    assert_ne!(first, second);
    for path in ["", "/release", "/extend", "/bury", "/fail"] {
        let method = if path.is_empty() { "DELETE" } else { "POST" };
        http.ask(&format!("{method} /leases/{first}{path}")).says(410, "lease-over");
    }
    assert_eq!(http.post(&format!("/leases/{second}/extend?lease=60s"), "").status, 204);
    assert_eq!(http.ask(&format!("DELETE /queues/q/messages/{second}")).status, 204);
}

#[test]
fn lease_ended_by_time_is_over() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", "m").says(201, "");
    let short = http.ask("GET /queues/q/messages?lease=1ms");
    // Comes when the lease has ended.
    let again = http.ask("GET /queues/q/messages?wait=20s");
    assert_eq!((again.status, again.header("dunlin-deliveries")), (200, Some("2")));
    let lease = |answer: &crate::client::Answer| answer.header("dunlin-lease").unwrap().to_owned();
    http.ask(&format!("DELETE /leases/{}", lease(&short))).says(410, "ended by time");
    assert_eq!(http.ask(&format!("DELETE /leases/{}", lease(&again))).status, 204);
}

#[test]
fn lease_buries_delays_and_fails_message() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/q/messages", "m").says(201, "");
    let (_, lease) = http.receive("q");
    assert_eq!(http.post(&format!("/leases/{lease}/fail"), "").status, 204);
    let failed = http.ask("GET /queues/q/messages?wait=20s");
    assert_eq!(failed.header("dunlin-failed"), Some("1"));
    let lease = failed.header("dunlin-lease").unwrap();
    assert_eq!(http.post(&format!("/leases/{lease}/release?delay=1ms&priority=9"), "").status, 204);
    let released = http.ask("GET /queues/q/messages?wait=20s");
    assert_eq!(released.header("dunlin-priority"), Some("9"));
    let lease = released.header("dunlin-lease").unwrap();
    assert_eq!(http.post(&format!("/leases/{lease}/bury"), "").status, 204);
    http.ask("GET /queues/q/messages?browse&state=buried").says(200, "\"state\":\"buried\"");
}

#[test]
fn disconnected_waiting_receive_takes_nothing() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for _ in 0..20 {
        let mut leaving = Http::to(&server);
        leaving.begin("GET /queues/q/messages?wait=1h", &[], "");
        await_waiting(&mut http, "q", 1);
        drop(leaving);
        http.post("/queues/q/messages", "m").says(201, "");
        let (_, lease) = http.receive("q");
        assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
    }
}

#[test]
fn released_lease_reaches_beanstalkd_worker() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/queues/default/messages", "m").says(201, "");
    let (_, lease) = http.receive("default");
    let mut worker = connect(&server);
    worker.send("reserve\r\n");
    await_waiting(&mut http, "default", 1);
    assert_eq!(http.post(&format!("/leases/{lease}/release"), "").status, 204);
    assert_eq!(worker.line(), "RESERVED 1 1");
    worker.line();
    assert_eq!(worker.ask("delete 1"), "DELETED");
}

#[test]
fn stop_answers_waiting_receives() {
    let server = start(http_too(memory()));
    let (mut waiting, mut http) = (Http::to(&server), Http::to(&server));
    waiting.begin("GET /queues/q/messages?wait=1h", &[], "");
    await_waiting(&mut http, "q", 1);
    server.shutdown().unwrap();
    assert_eq!(waiting.answer().status, 204);
}
