//! Clients of the real Redis, and an observer of how far it is.

use std::time::Instant;

use client::resp::take;
use testkit::foreign_server::{ByteClient, ForeignServer, PATIENCE};

/// Bytes as Redis counts them: read ones, and written ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    input: usize,
    output: usize,
}

/// A connection that asks how far Redis is.
pub(crate) struct Observer {
    client: ByteClient,
    /// The traffic of earlier connections before.
    before: Traffic,
}

/// `None` if the comparison is not wanted.
pub(crate) fn start() -> Option<ForeignServer> {
    ForeignServer::unless_skipped("DUNLIN_SKIP_REDIS", ForeignServer::redis)
}

/// Waits for the next answer.
pub(crate) fn answer(client: &mut ByteClient) -> Vec<u8> {
    loop {
        if let Some(answer) = take(&mut client.received).expect("an answer") {
            return answer;
        }
        assert_eq!(client.receive(PATIENCE), Ok(true), "Redis answers");
    }
}

/// The next answer if it has arrived already.
pub(crate) fn arrived(client: &mut ByteClient) -> Option<Vec<u8>> {
    client.receive_all();
    take(&mut client.received).expect("an answer")
}

impl Observer {
    /// Observes so many connections, which have said nothing yet, once Redis has let go of all
    /// earlier ones. Until then one of those may wait, and be served.
    pub(crate) fn new(redis: &ForeignServer, connections: usize) -> Self {
        let mut observer = Self { client: redis.connect(), before: Traffic::default() };
        let deadline = Instant::now() + PATIENCE;
        while number(&observer.info(), "connected_clients") != connections + 1 {
            assert!(Instant::now() < deadline, "earlier connections do not end");
        }
        let output = observer.client.received_total;
        let now = observer.traffic();
        let input = now.input - observer.client.sent_total;
        observer.before = Traffic { input, output: now.output - output };
        observer
    }

    /// Waits until Redis has read all that these clients sent, and they all that it wrote to them.
    pub(crate) fn settle(&mut self, clients: &mut [ByteClient]) {
        let deadline = Instant::now() + PATIENCE;
        let sent: usize = clients.iter().map(|client| client.sent_total).sum();
        while self.traffic().input != self.before.input + self.client.sent_total + sent {
            assert!(Instant::now() < deadline, "Redis does not read");
        }
        // It writes at the end of the turn in which it reads, and the next question comes later.
        let own = self.client.received_total;
        let written = self.traffic().output - self.before.output - own;
        while clients.iter().map(|client| client.received_total).sum::<usize>() != written {
            assert!(Instant::now() < deadline, "what Redis wrote does not arrive");
            clients.iter_mut().for_each(ByteClient::receive_all);
        }
    }

    /// The bytes that Redis had read up to and with this question, and those it had written.
    fn traffic(&mut self) -> Traffic {
        let stats = self.info();
        let input = number(&stats, "total_net_input_bytes");
        Traffic { input, output: number(&stats, "total_net_output_bytes") }
    }

    fn info(&mut self) -> String {
        self.client.send(b"INFO\r\n");
        String::from_utf8(answer(&mut self.client)).unwrap()
    }
}

/// The value of a line `name:value`.
fn number(info: &str, name: &str) -> usize {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("INFO has no {name}")).parse().unwrap()
}
