//! The real beanstalkd, and a client of it.

use std::process::Command;
use std::time::Duration;

use testkit::foreign_server::{ByteClient, ForeignServer, PATIENCE};

use crate::answers::{self, Answer};

/// The signal is pending when this returns, so it comes before all later commands.
pub(crate) fn drain(server: &ForeignServer) {
    let status = Command::new("kill").args(["-USR1", &server.pid().to_string()]).status();
    assert!(status.unwrap().success(), "beanstalkd could not be signalled");
}

/// Waits for the next answer; an error says that none came.
pub(crate) fn answer(client: &mut ByteClient) -> Result<Answer, String> {
    loop {
        if let Some(answer) = answers::take(&mut client.received) {
            return Ok(answer);
        }
        if !client.receive(PATIENCE)? {
            return Err("beanstalkd does not answer".into());
        }
    }
}

/// Waits a moment for the next answer, and leaves it to be taken.
pub(crate) fn is_answered(client: &mut ByteClient) -> bool {
    let arrived = client.receive(Duration::from_millis(100)).expect("an open connection");
    arrived && answers::take(&mut client.received.clone()).is_some()
}
