//! The cost of peers, and the refusals for those that want more.
use std::time::Duration;

use crate::common::patience::until_some;
use crate::common::{Client, connect, memory, start};
use server::{Config, Limits, Running, Server, StartError};
use testkit::resident_bytes;

fn limited(limits: impl FnOnce(&mut Limits)) -> Config {
    let mut config = memory();
    limits(&mut config.limits);
    config
}

/// Connects until the server admits a connection.
fn admitted(server: &Running) -> Client {
    until_some("it lets somebody in", || {
        let mut client = connect(server);
        // A refused connection may be reset before the question is sent.
        let used = client.try_ask("list-tube-used");
        (used == Some("USING default".into())).then_some(client)
    })
}

#[test]
fn connection_over_limit_is_closed() {
    let server = start(limited(|limits| limits.connections = 2));
    let (mut first, second) = (admitted(&server), admitted(&server));
    assert!(connect(&server).is_closed());
    assert_eq!(first.ask("list-tube-used"), "USING default");
    drop(second);
    admitted(&server);
}

#[test]
fn oversized_put_keeps_connection_in_step() {
    let server = start(limited(|limits| limits.message_bytes = Some(10)));
    let mut client = connect(&server);
    assert_eq!(client.put("0123456789"), "INSERTED 1");
    assert_eq!(client.put("0123456789a"), "JOB_TOO_BIG");
    assert_eq!(client.ask("list-tube-used"), "USING default");
}

#[test]
fn half_sent_command_ends_its_connection() {
    let server = start(limited(|limits| limits.half_sent = Some(Duration::from_millis(30))));
    let mut waiting = connect(&server);
    waiting.send("reserve\r\n");
    let mut quiet = connect(&server);
    assert_eq!(quiet.ask("list-tube-used"), "USING default");
    for half in ["put 0 0 60 10\r\nabc", "list-tu", "put 0 0 60 3\r\nabc"] {
        let mut client = connect(&server);
        assert!(client.send(half).is_closed(), "{half}");
    }
    assert_eq!(quiet.put("x"), "INSERTED 1");
    assert_eq!(waiting.line(), "RESERVED 1 1");
}

#[test]
fn idle_limit_ends_silent_connection() {
    let server = start(limited(|limits| limits.idle = Some(Duration::from_millis(1))));
    let mut client = connect(&server);
    assert_eq!(client.ask("list-tube-used"), "USING default");
    assert!(client.is_closed());
}

#[test]
fn unread_answers_cost_little_stall_none() {
    const BODY_BYTES: usize = 60_000;
    const PEEKS: usize = 2_000;
    let server = start(limited(|limits| limits.output_bytes = 256 * 1024));
    let mut other = connect(&server);
    assert_eq!(other.put(&"x".repeat(BODY_BYTES)), "INSERTED 1");

    let before = resident_bytes();
    let mut greedy = connect(&server);
    greedy.send("peek 1\r\n".repeat(PEEKS));
    for index in 2..=200 {
        assert_eq!(other.put("y"), format!("INSERTED {index}"));
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "120 MB of answers are not kept: {grown} bytes more");

    for _ in 0..PEEKS {
        assert_eq!(greedy.line(), format!("FOUND 1 {BODY_BYTES}"));
        assert_eq!(greedy.line().len(), BODY_BYTES);
    }
    assert_eq!(greedy.ask("list-tube-used"), "USING default");
}

#[test]
fn unread_answers_do_not_delay_stop() {
    let server = start(limited(|limits| {
        limits.output_bytes = 256 * 1024;
        limits.stop = Duration::from_millis(50);
    }));
    let mut other = connect(&server);
    assert_eq!(other.put(&"x".repeat(60_000)), "INSERTED 1");
    let mut greedy = connect(&server);
    greedy.send("peek 1\r\n".repeat(2_000));
    assert_eq!(greedy.line(), "FOUND 1 60000");
    server.shutdown().unwrap();
    assert!(greedy.rest().len() < 2_000 * 60_000, "it was given up");
}

#[test]
fn input_behind_waiting_reserve_is_bounded() {
    let server = start(memory());
    let mut client = connect(&server);
    client.send("reserve\r\n");
    // Far more than the server takes in and the kernel holds: the rest waits at the sender.
    let mut sender = client.twin();
    let flood = std::thread::spawn(move || {
        for _ in 0..2_000 {
            sender.send("list-tube-used\r\n".repeat(500));
        }
    });
    let mut other = connect(&server);
    assert_eq!(other.put("x"), "INSERTED 1");
    assert_eq!(client.line(), "RESERVED 1 1");
    assert_eq!(client.line(), "x");
    for _ in 0..1_000_000 {
        assert_eq!(client.line(), "USING default");
    }
    flood.join().unwrap();
}

#[test]
fn impossible_settings_do_not_start() {
    let asked = |threads| Server::start(Config { threads, ..memory() }).map(drop);
    assert!(matches!(asked(0), Err(StartError::Threads { asked: 0 })));
    assert!(matches!(asked(65), Err(StartError::Threads { asked: 65 })));
    let huge = Server::start(limited(|limits| limits.message_bytes = Some(1 << 30))).map(drop);
    let error = huge.unwrap_err();
    assert!(matches!(error, StartError::MessageBytes { .. }));
    assert!(error.to_string().contains("16777216"), "{error}");
    let (memory_limit, most) = (Some(64 << 20), 2 << 20);
    let with = |bytes| {
        let limits = Limits { message_bytes: Some(bytes), ..Limits::default() };
        Server::start(Config { memory_limit, limits, ..memory() }).map(drop)
    };
    let error = with(most + 1).unwrap_err();
    assert!(matches!(error, StartError::LargeMessages { .. }));
    let text = error.to_string();
    let least = 32 * (most + 1);
    assert!(text.contains(&format!("--max-message-bytes {most} at most")), "{text}");
    assert!(text.contains(&format!("--memory-limit {least} at least")), "{text}");
    with(most).unwrap();
}
