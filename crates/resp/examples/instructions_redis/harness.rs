//! A broker and the end of one connection, turned as the server turns them.

use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::{Gate, JournalOptions};
use model::{DependsOn, Nanos, Output, Principal, Rights, Rule, SessionId, StorePolicy};
use resp::{InputBuffer, ListenerState, Options, Session};

use crate::memory::{File, Memory};

/// A broker with its log, and a connection to it.
pub(crate) struct Harness {
    broker: Broker<File>,
    disk: Memory,
    shared: ListenerState,
    session: Session,
    input: InputBuffer,
    gate: Gate,
    /// The bytes that the connection has to send.
    out: Vec<u8>,
    /// How many bytes it has sent before those.
    sent: u64,
    outputs: Vec<Output>,
}

const LOG_BYTES: u64 = 64 << 20;

const NOW: Nanos = Nanos::from_secs(1_000_000);

const CLIENT: SessionId = SessionId(0);

impl Harness {
    /// A broker with a connection that has not begun to speak.
    pub(crate) fn new(policy: StorePolicy) -> Self {
        let engine = EngineOptions::new(policy);
        let disk = Memory::default();
        let mut broker = if policy == StorePolicy::Memory {
            Broker::in_memory(engine)
        } else {
            // A log that is made ready at the start and never full. To fill it with zeros is dear,
            // and comes in large steps, which some commands would pay for all.
            let journal = JournalOptions {
                segment_bytes: LOG_BYTES,
                extent_bytes: LOG_BYTES,
                ..JournalOptions::new(policy)
            };
            Broker::open(&disk, BrokerOptions { engine, journal }).unwrap().0
        };
        broker.open_session(CLIENT);
        let mut shared = ListenerState::new(Options { policy, ..Options::default() }, Box::new(()));
        let session = Session::new(CLIENT, None, NOW, &mut shared);
        let mut harness = Self {
            broker,
            disk,
            shared,
            session,
            input: InputBuffer::new(),
            gate: Gate::default(),
            out: Vec::new(),
            sent: 0,
            outputs: Vec::new(),
        };
        harness.run_chores();
        harness
    }

    /// The client is a user with so many rules, of which the last one allows all.
    pub(crate) fn limit(&mut self, rules: usize) {
        let rule = |number| Rule::parse(&format!("send,receive,look team-{number}.*")).unwrap();
        let all = Rule::parse("send,receive,look,manage *").unwrap();
        let rules: Vec<_> = (1..rules).map(rule).chain([all]).collect();
        let rights = Rights::new("ann".into(), &rules, []);
        self.broker.act_for(CLIENT, Principal::User(rights.into()));
    }

    /// The client's bytes arrive, and all is done that follows from them. Gives how many bytes the
    /// connection sent.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> usize {
        self.input.append(bytes);
        self.poll();
        self.run_chores();
        let end = self.gate.released(self.broker.durable());
        assert_eq!(end, self.sent + self.out.len() as u64, "all that was said may leave");
        self.sent = end;
        let sent = self.out.len();
        self.out.clear();
        sent
    }

    /// How many messages the broker holds.
    pub(crate) fn messages(&self) -> u64 {
        self.broker.statistics().ready
    }

    fn poll(&mut self) {
        loop {
            let Self { broker, shared, session, input, out, outputs, .. } = self;
            let Some(command) = session.poll_command(NOW, input, shared, out) else { break };
            assert!(broker.takes(CLIENT, &command), "the log is never full");
            broker.handle(NOW, CLIENT, command, outputs);
            for output in outputs.drain(..) {
                session.handle_reply(output.reply, shared, out);
                self.gate.push(output.after, self.sent + out.len() as u64);
            }
        }
        // An answer without the engine waits for nothing more.
        self.gate.push(DependsOn::NOTHING, self.sent + self.out.len() as u64);
    }

    fn run_chores(&mut self) {
        while let Some(chore) = self.broker.poll_chore(NOW) {
            let done = chore.perform(&self.disk);
            self.broker.handle_chore(NOW, done).unwrap();
        }
        while let Some(write) = self.broker.poll_write(NOW) {
            let result = write.perform(&self.disk);
            self.broker.handle_write(NOW, write, result).unwrap();
        }
    }
}
