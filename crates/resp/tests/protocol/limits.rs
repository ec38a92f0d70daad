//! What one command may cost: each is bounded, and what is beyond is refused in words.

use model::{Command, KeyCommand, Nanos, PRIORITY_DEFAULT};
use resp::Options;

use crate::connection::Connection;
use crate::facts;
use crate::ours::Ours;

/// What is heard of one line.
fn heard(line: &str) -> String {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    ours.send(client, format!("{line}\r\n").as_bytes());
    String::from_utf8(ours.output(client)).unwrap()
}

/// What the engine is asked by one line.
fn asked(line: &str) -> Command {
    let mut shared = facts::shared(Options::default());
    let mut connection = Connection::new(1, Nanos::ZERO, &mut shared);
    connection.receive(format!("{line}\r\n").as_bytes());
    let command = connection.poll(Nanos::ZERO, &mut shared).expect("a question");
    connection.close(&mut shared);
    command
}

#[test]
fn patterns_are_not_so_long_that_names_cannot_be_held_against_them() {
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
fn the_longer_the_pattern_the_fewer_names_are_looked_at_in_one_step() {
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
fn an_answer_about_commands_is_not_longer_than_all_of_them() {
    for command in ["COMMAND INFO", "COMMAND DOCS"] {
        let answer = heard(&format!("{command} {}", "get ".repeat(1_000)));
        assert!(answer.starts_with("-ERR too many names"), "{answer}");
    }
}

#[test]
fn what_is_published_is_as_urgent_as_what_names_no_priority() {
    let Command::Publish { message, .. } = asked("PUBLISH topic message") else { panic!() };
    assert_eq!(message.priority, PRIORITY_DEFAULT);
}
