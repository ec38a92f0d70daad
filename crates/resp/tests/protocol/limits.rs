//! The cost of one command: it is bounded, and a larger one is refused in words.

use client::resp::command as encoded;
use model::{
    Command, Element, KeyCommand, Nanos, OneOrMany, PRIORITY_DEFAULT, QueueName, Reply, Values,
};
use resp::Options;

use crate::connection::Connection;
use crate::facts;
use crate::ours::Ours;

/// The answer to one line.
fn heard(line: &str) -> String {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    ours.send(client, format!("{line}\r\n").as_bytes());
    String::from_utf8(ours.output(client)).unwrap()
}

/// The engine's command of one line.
fn asked(line: &str) -> Command {
    let mut shared = facts::shared(Options::default());
    let mut connection = Connection::new(1, Nanos::ZERO, &mut shared);
    connection.receive(format!("{line}\r\n").as_bytes());
    let command = connection.poll(Nanos::ZERO, &mut shared).expect("a question");
    connection.close(&mut shared);
    command
}

#[test]
fn pattern_length_is_bounded() {
    let long = "a".repeat(1_025);
    for command in ["KEYS", "SCAN 0 MATCH", "PUBSUB CHANNELS", "CONFIG GET x"] {
        let refusal = "-ERR a pattern has 1024 bytes at most here\r\n";
        assert_eq!(heard(&format!("{command} {long}")), refusal, "{command}");
        assert_ne!(heard(&format!("{command} {}", &long[1..])), refusal, "{command}");
    }
    assert!(heard(&format!("COMMAND LIST FILTERBY PATTERN {long}")).starts_with("-ERR a pattern"));
    assert!(heard(&format!("CONFIG GET {}", "a ".repeat(101))).starts_with("-ERR too many"));
}

#[test]
fn longer_patterns_scan_fewer_names() {
    let names = |line: String| match asked(&line) {
        Command::Key(command) => match command {
            KeyCommand::Names { max, .. } => max,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(names("KEYS *".into()), 1_000);
    assert_eq!(names(format!("KEYS {}", "?".repeat(1_024))), 62);
    assert_eq!(names(format!("SCAN 0 COUNT 500 MATCH {}", "?".repeat(1_024))), 62);
    assert_eq!(names("SCAN 0 COUNT 5000".into()), 1_000);
}

#[test]
fn command_info_of_many_names_refused() {
    for command in ["COMMAND INFO", "COMMAND DOCS"] {
        let answer = heard(&format!("{command} {}", "get ".repeat(1_000)));
        assert!(answer.starts_with("-ERR too many names"), "{answer}");
    }
}

#[test]
fn publish_uses_default_priority() {
    let Command::Publish { message, .. } = asked("PUBLISH topic message") else { panic!() };
    assert_eq!(message.priority, PRIORITY_DEFAULT);
}

/// The answer to these lines, the last of which asks the engine, if it replies so; and the memory
/// that it takes.
fn answered(lines: &str, reply: Reply) -> (usize, usize) {
    let mut shared = facts::shared(Options::default());
    let mut connection = Connection::new(1, Nanos::ZERO, &mut shared);
    connection.receive(lines.as_bytes());
    connection.poll(Nanos::ZERO, &mut shared).expect("a question");
    let queued = connection.take_out().len();
    connection.reply(reply, &mut shared);
    assert!(connection.poll(Nanos::ZERO, &mut shared).is_none(), "{queued} bytes were said before");
    let out = connection.take_out();
    connection.close(&mut shared);
    (out.len(), out.capacity())
}

#[test]
fn names_of_pending_values_are_held() {
    let mut shared = facts::shared(Options::default());
    let mut connection = Connection::new(1, Nanos::ZERO, &mut shared);
    for number in 0..64 {
        connection.receive(&encoded(&["GET", &format!("{number:0200}")]));
    }
    let asked = connection.poll(Nanos::ZERO, &mut shared);
    let Some(Command::Key(KeyCommand::ValueEach { mut names })) = asked else { panic!() };
    assert_eq!((names.len(), connection.unread()), (64, 0), "all were read");
    let rest = names.split_off(1);
    let found = vec![Ok(None)];
    connection.reply(Reply::Values(Box::new(Values { found, rest })), &mut shared);
    let held = connection.session().held_bytes();
    assert!(held > 63 * 200, "{held} bytes of names");
    let asked = connection.poll(Nanos::ZERO, &mut shared);
    let Some(Command::Key(KeyCommand::ValueEach { names })) = asked else { panic!() };
    assert_eq!(names.len(), 63, "these are asked for next");
    assert!(connection.session().held_bytes() < 200);
}

/// Grown by and by they would take up to twice their bytes.
#[test]
fn answers_reserve_exactly_their_bytes() {
    let elements = |count: usize, bytes: usize| {
        let element = |_| Element::raw(vec![b'x'; bytes].into());
        (0..count).map(element).collect::<Vec<_>>()
    };
    let shown = |count, bytes| Reply::Elements(OneOrMany::Many(elements(count, bytes)));
    let name = |number: usize| QueueName::new(&format!("name-{number}")).unwrap();
    let names = || Reply::Names { names: (0..1_000).map(name).collect(), next: None };
    let popped = Reply::Popped { queue: name(1), elements: elements(1_000, 9) };
    let transaction = format!("MULTI\r\n{}EXEC\r\n", "LRANGE l 0 -1\r\n".repeat(100));
    let values = format!("MULTI\r\n{}EXEC\r\n", "GET k\r\n".repeat(100));
    let value = || Reply::Value(Some(vec![b'x'; 1_000].into()));
    let looks = String::from_utf8(encoded(&["GET", "k"]).repeat(64)).unwrap();
    let found = Some(vec![b'x'; 1_000].into());
    let cases = [
        ("LRANGE l 0 -1\r\n", shown(1_000, 1)),
        ("LRANGE l 0 -1\r\n", shown(1_025, 1_025)),
        ("LPOP l 9\r\n", shown(99, 10_000)),
        ("LMPOP 1 l LEFT COUNT 1000\r\n", popped),
        ("LPOS l x COUNT 0\r\n", Reply::Places((0..10_000).collect())),
        ("KEYS *\r\n", names()),
        (&transaction, Reply::Batch((0..100).map(|_| shown(1, 1_000)).collect())),
        (&transaction, Reply::Batch((0..100).map(|_| shown(100, 10)).collect())),
        (&values, Reply::Batch((0..100).map(|_| value()).collect())),
        (&looks, Reply::Values(Box::new(Values { found: vec![Ok(found); 64], rest: vec![] }))),
    ];
    for (asked, reply) in cases {
        let (bytes, capacity) = answered(asked, reply);
        assert!(bytes > 2_000 && capacity == bytes, "{asked}: {capacity} for {bytes}");
    }
}
