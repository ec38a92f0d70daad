//! Rules of queues, given while the server runs.

use model::StorePolicy;

use crate::client::{Answer, Http, http_too};
use crate::common::patience::until;
use crate::common::{Directory, connect, journal, memory, start};

impl Http {
    fn rule(&mut self, method: &str, queue: &str, body: &str) -> Answer {
        self.begin(&format!("{method} /queues/{queue}/policy"), &[], body).answer()
    }
}

#[test]
fn rules_hold_immediately_and_over_restarts() {
    let directory = Directory::new("http-policies");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    http.ask("GET /queues/mail/policy").says(200, "\"max_messages\":null");
    let answer = http.rule("PUT", "mail", r#"{"max_messages":1,"when_full":"reject"}"#);
    assert!(answer.body.contains("\"max_messages\":\"own\""), "{}", answer.body);
    answer.says(200, "\"when_full\":\"reject\"");
    http.post("/queues/mail/messages", "1").says(201, "");
    http.post("/queues/mail/messages", "2").says(507, "max-messages=1");
    http.rule("PATCH", "mail", r#"{"max_messages":2,"max_delivery_attempts":0}"#).says(200, "");
    http.post("/queues/mail/messages", "2").says(201, "");
    http.ask("GET /queues/mail").says(200, "\"max_messages\":2");
    http.rule("PUT", "other", r#"{"pop_lease":"30s"}"#).says(200, "\"30s\"");
    server.shutdown().unwrap();

    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    http.post("/queues/mail/messages", "3").says(507, "max-messages=2");
    let own =
        r#""policies":[{"own":{"max_delivery_attempts":0,"max_messages":2,"when_full":"reject"},"#;
    http.ask("GET /policies?max=1").says(200, own);
    http.ask("GET /policies?max=1").says(200, "\"next\":\"mail\"");
    let other = r#"{"next":null,"policies":[{"own":{"pop_lease":"30s"},"queue":"other"}]}"#;
    http.ask("GET /policies?max=1&after=mail").says(200, other);
    assert_eq!(http.ask("DELETE /queues/mail").status, 204);
    http.rule("PATCH", "mail", r#"{"max_delivery_attempts":null}"#).says(200, "\"max_messages\":2");
    let answer = http.rule("DELETE", "mail", "");
    assert!(!answer.body.contains("\"own\""), "{}", answer.body);
    answer.says(200, "\"max_messages\":null");
    for body in ["1", "2", "3"] {
        http.post("/queues/mail/messages", body).says(201, "");
    }
}

#[test]
fn blocked_sends_resume_without_the_bound() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.rule("PUT", "default", r#"{"max_messages":1}"#).says(200, "");
    http.post("/queues/default/messages", "1").says(201, "");
    let mut waiting = Http::to(&server);
    waiting.begin("POST /queues/default/messages", &[], "2");
    let mut worker = connect(&server);
    worker.send("put 0 0 60 1\r\n3\r\n");
    until("two wait for a place", || {
        http.ask("GET /queues/default").body.contains("\"blocked_sends\":2")
    });
    http.rule("DELETE", "default", "").says(200, "");
    waiting.answer().says(201, "message");
    assert!(worker.line().starts_with("INSERTED "));
}

#[test]
fn invalid_rules_change_nothing() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.rule("PUT", "q", r#"{"max_messages":7}"#).says(200, "");
    for (method, body, status, part) in [
        ("PUT", "max-messages=1", 400, "no JSON object"),
        ("PUT", "[]", 400, "no JSON object"),
        ("PUT", "", 400, "the body is empty, and has to be a JSON object"),
        ("PUT", r#"{"max_messages":1,"colour":"red"}"#, 400, "\\\"colour\\\" is no rule"),
        (
            "PATCH",
            r#"{"max_messages":-1}"#,
            400,
            "max_messages is -1 and has to be a number, 0 for any",
        ),
        ("PATCH", r#"{"max_bytes":9223372036854775808}"#, 400, "has to be a number"),
        ("PUT", r#"{"max_messages":1,"max-messages":1}"#, 400, "max_messages is given twice"),
        (
            "PATCH",
            r#"{"when_full":"burn"}"#,
            400,
            "block, reject, drop-oldest, dead-letter or disconnect",
        ),
        ("PATCH", r#"{"target_age":"5s","when_full":"drop-oldest"}"#, 409, "target-age"),
    ] {
        http.rule(method, "q", body).says(status, part);
    }
    let large = format!("{{\"max_messages\":1{}}}", " ".repeat(4 * 1024));
    http.rule("PUT", "q", &large).says(413, "4096 bytes");
    let mut http = Http::to(&server);
    http.rule("PUT", "temporary%2Fq", r#"{"max_messages":1}"#).says(409, "temporary/");
    http.ask("GET /queues/q/policy?own").says(400, "parameter own");
    http.ask("POST /queues/q/policy").says(405, "GET, HEAD, PUT, PATCH, DELETE");
    http.ask("GET /policies?max=1001").says(400, "from 1 to 1000");
    let expected = r#"{"next":null,"policies":[{"own":{"max_messages":7},"queue":"q"}]}"#;
    http.ask("GET /policies").says(200, expected);
}
