//! Who sends to a full queue waits for a place, by every protocol, and nobody else does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{Client, connect, connect_second, memory, redis_too, start};
use engine::{QueueBounds, QueuePolicies, QueuePolicy};
use server::{Config, Listen, Protocol, Running};

/// Each queue holds one message.
fn narrow() -> Config {
    let bounds = QueueBounds { messages_max: Some(1), ..QueueBounds::default() };
    let default = QueuePolicy { bounds, ..QueuePolicy::default() };
    let queues = QueuePolicies { default, ..QueuePolicies::default() };
    let mut config = redis_too(Config { queues, ..memory() });
    config.listen.push(Listen { protocol: Protocol::Http, ..config.listen[0] });
    config
}

/// Takes what is there and deletes it.
fn take(worker: &mut Client) -> String {
    let reserved = worker.ask("reserve-with-timeout 0");
    let id = reserved.split(' ').nth(1).unwrap_or_else(|| panic!("{reserved}")).to_owned();
    let body = worker.line();
    assert_eq!(worker.ask(&format!("delete {id}")), "DELETED");
    body
}

fn senders(server: &Running) -> (Client, Client) {
    (connect(server), connect_second(server))
}

#[test]
fn a_put_and_a_push_wait_in_the_order_of_coming() {
    let server = start(narrow());
    let (mut first, mut second) = senders(&server);
    let mut worker = connect(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    first.send("put 0 0 60 1\r\nb\r\nlist-tube-used\r\n");
    wait_for_line(&server, 1);
    second.send("RPUSH default c\r\nPING\r\n");
    wait_for_line(&server, 2);
    assert_eq!(take(&mut worker), "a");
    assert_eq!(first.line(), "INSERTED 2");
    assert_eq!(first.line(), "USING default");
    assert_eq!(take(&mut worker), "b");
    assert_eq!(second.line(), ":1");
    assert_eq!(second.line(), "+PONG");
    assert_eq!(take(&mut worker), "c");
}

#[test]
fn who_goes_takes_what_waits_along() {
    let server = start(narrow());
    let mut worker = connect(&server);
    let (mut first, mut second) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    first.send("put 0 0 60 1\r\nb\r\n");
    wait_for_line(&server, 1);
    second.send("RPUSH default c\r\n");
    wait_for_line(&server, 2);
    drop(first);
    wait_for_line(&server, 1);
    assert_eq!(take(&mut worker), "a");
    assert_eq!(second.line(), ":1");
    assert_eq!(take(&mut worker), "c");
}

#[test]
fn who_waits_too_long_is_refused_by_name() {
    let server = start(Config { pace_max: Some(Duration::from_millis(1)), ..narrow() });
    let (mut first, mut second) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    assert_eq!(first.put("b"), "OUT_OF_MEMORY");
    let full = "-OOM queue default is full: max-messages=1";
    assert_eq!(second.ask("RPUSH default c"), full);
    assert_eq!(second.ask("MULTI"), "+OK");
    assert_eq!(second.ask("RPUSH default c"), "+QUEUED");
    let aborted = "-EXECABORT Transaction discarded because of: OOM queue default is full";
    assert!(second.ask("EXEC").starts_with(aborted));
}

#[test]
fn a_server_stops_though_somebody_waits() {
    let server = start(narrow());
    let (mut first, _) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    first.send("put 0 0 60 1\r\nb\r\n");
    wait_for_line(&server, 1);
    server.shutdown().unwrap();
    assert!(first.is_closed());
}

#[test]
fn a_request_waits_while_others_are_answered() {
    let server = start(narrow());
    let mut worker = connect(&server);
    let (mut first, mut second) = (http(&server), http(&server));
    first.send(post("a"));
    assert_eq!(first.line(), "HTTP/1.1 201 Created");
    second.send(post("b"));
    wait_for_line(&server, 1);
    assert_eq!(take(&mut worker), "a");
    assert_eq!(second.line(), "HTTP/1.1 201 Created");
    assert_eq!(take(&mut worker), "b");
}

fn post(body: &str) -> String {
    let length = body.len();
    format!(
        "POST /queues/default/messages HTTP/1.1\r\nhost: localhost\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn http(server: &Running) -> Client {
    Client::new(server.addresses()[2].address)
}

/// Until so many wait for a place in the queue `default`.
fn wait_for_line(server: &Running, count: u64) {
    let asked = "GET /queues/default HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let expected = format!("\"paced\":{count},");
    loop {
        let answer = http(server).send(asked).rest();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("\"paced\":"), "{answer}");
        if answer.contains(&expected) {
            return;
        }
    }
}
