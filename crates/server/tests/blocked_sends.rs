//! A send to a full queue waits for a place, by every protocol, and no other command does.
use std::time::Duration;

use crate::common::patience::until;
use crate::common::{Client, connect, connect_second, memory, redis_too, start};
use engine::{QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{Nanos, QueueName};
use server::{Config, Listen, Protocol, Running, Server};

/// Each queue holds one message.
fn narrow() -> Config {
    let bounds = QueueBounds { messages_max: Some(1), ..QueueBounds::default() };
    let default = QueuePolicy { bounds, ..QueuePolicy::default() };
    let queues = QueuePolicies { default, ..QueuePolicies::default() };
    let mut config = redis_too(Config { queues, ..memory() });
    config.listen.push(Listen { protocol: Protocol::Http, ..config.listen[0].clone() });
    config
}

/// Takes the first message and deletes it.
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
fn put_and_push_wait_in_order() {
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
fn closed_sender_cancels_its_blocked_send() {
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

/// The error of a full queue by the Redis protocol.
const FULL: &str = "-OOM queue default is full: max-messages=1; receive and settle messages of it, \
                    or let it hold more";

#[test]
fn send_past_block_timeout_is_refused() {
    let server = start(Config { block_timeout: Some(Duration::from_millis(1)), ..narrow() });
    let (mut first, mut second) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    assert_eq!(first.put("b"), "OUT_OF_MEMORY");
    assert_eq!(second.ask("RPUSH default c"), FULL);
    assert_eq!(second.ask("MULTI"), "+OK");
    assert_eq!(second.ask("RPUSH default c"), "+QUEUED");
    let aborted = "-EXECABORT Transaction discarded because of: OOM queue default is full";
    assert!(second.ask("EXEC").starts_with(aborted));
}

#[test]
fn half_closed_sender_does_not_wait() {
    let server = start(narrow());
    let (mut first, mut second) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    let rest = |client: &mut Client| String::from_utf8(client.half_close().rest()).unwrap();
    first.send("put 0 0 60 1\r\nb\r\nput 0 0 60 1\r\nc\r\nuse d\r\n");
    assert_eq!(rest(&mut first), "OUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\nUSING d\r\n");
    second.send("RPUSH default b\r\nRPUSH default c\r\nPING\r\n");
    assert_eq!(rest(&mut second), format!("{FULL}\r\n{FULL}\r\n+PONG\r\n"));
}

#[test]
fn blocked_push_can_be_unblocked() {
    let server = start(narrow());
    let (mut first, mut second) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    let mut other = connect_second(&server);
    assert_eq!(second.ask("CLIENT ID"), ":1");
    second.send("RPUSH default b\r\n");
    wait_for_line(&server, 1);
    assert_eq!(other.ask("CLIENT UNBLOCK 1"), ":1");
    assert_eq!(second.line(), FULL);
    assert_eq!(second.ask("RPUSH full b"), ":1");
    second.send("BLMOVE full default LEFT RIGHT 0\r\n");
    wait_for_line(&server, 1);
    assert_eq!(other.ask("CLIENT UNBLOCK 1 ERROR"), ":1");
    assert_eq!(second.line(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    assert_eq!(second.ask("BLMOVE full default LEFT RIGHT 0.01"), "*-1");
    assert_eq!(second.ask("LLEN full"), ":1");
}

#[test]
fn draining_refuses_blocked_sends() {
    let server = start(narrow());
    let mut worker = connect(&server);
    let (mut first, mut second) = senders(&server);
    let mut third = http(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    first.send("put 0 0 60 1\r\nb\r\n");
    second.send("RPUSH default c\r\n");
    third.send(post("d"));
    wait_for_line(&server, 3);
    server.remote().drain();
    assert_eq!(first.line(), "DRAINING");
    assert!(second.line().starts_with("-ERR this server is draining"));
    assert_eq!(third.line(), "HTTP/1.1 503 Service Unavailable");
    assert_eq!(take(&mut worker), "a");
    assert_eq!(worker.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

#[test]
fn stop_ends_blocked_sends() {
    let server = start(narrow());
    let (mut first, _) = senders(&server);
    assert_eq!(first.put("a"), "INSERTED 1");
    first.send("put 0 0 60 1\r\nb\r\n");
    wait_for_line(&server, 1);
    server.shutdown().unwrap();
    assert!(first.is_closed());
}

#[test]
fn target_age_needs_block_or_reject() {
    let age_with = |when_full, name: Option<&str>| {
        let target_age = Some(Nanos::from_secs(2));
        let bounds = QueueBounds { when_full, target_age, ..QueueBounds::default() };
        let policy = QueuePolicy { bounds, ..QueuePolicy::default() };
        let mut queues = QueuePolicies::default();
        match name {
            Some(name) => drop(queues.named.insert(QueueName::new(name).unwrap(), policy)),
            None => queues.default = policy,
        }
        Server::start(Config { queues, ..memory() }).map(drop).map_err(|error| error.to_string())
    };
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        let error = age_with(when_full, Some("mail")).unwrap_err();
        assert!(error.contains("mail:target-age") && error.contains("reject"), "{error}");
        assert!(age_with(when_full, None).unwrap_err().contains("*:target-age"));
    }
    assert_eq!(age_with(WhenFull::Reject, Some("mail")), Ok(()));
}

#[test]
fn http_send_waits_beside_other_answers() {
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
    Client::new(server.addresses()[2].tcp().unwrap())
}

/// Until so many wait for a place in the queue `default`.
fn wait_for_line(server: &Running, count: u64) {
    let asked = "GET /queues/default HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let expected = format!("\"blocked_sends\":{count},");
    until(&format!("{count} wait for a place"), || {
        let answer = http(server).send(asked).rest();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("\"blocked_sends\":"), "{answer}");
        answer.contains(&expected)
    });
}
