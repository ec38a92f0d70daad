//! What one command comes to, and what it may cost: what is beyond is refused in words.

use model::{Command, Nanos, PRIORITY_DEFAULT};
use resp::Options;

use crate::connection::Connection;
use crate::facts;

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
fn what_is_published_is_as_urgent_as_what_names_no_priority() {
    let Command::Publish { message, .. } = asked("PUBLISH topic message") else { panic!() };
    assert_eq!(message.priority, PRIORITY_DEFAULT);
}
