//! The server's end of a connection of Redis: bytes behind the gate, as beanstalkd's are.

use journal::{Durable, Gate};
use model::{Command, DependsOn, Nanos, Reply, SessionId, StorePolicy};
use resp::{InputBuffer, ListenerState, Options, Session};

use crate::workload::BODY_BYTES_MAX;

pub(super) struct RedisConnection {
    session: Session,
    input: InputBuffer,
    gate: Gate,
    /// Bytes that were encoded and not yet taken; the first byte is at `taken` of the stream.
    output: Vec<u8>,
    taken: u64,
    /// So many bytes of `output` are not judged yet.
    unjudged: usize,
    /// A command that the broker could not take yet.
    postponed: Option<Command>,
}

impl RedisConnection {
    pub(super) fn new(id: u64, now: Nanos, shared: &mut ListenerState) -> Self {
        Self {
            session: Session::new(SessionId(id), None, now, shared),
            input: InputBuffer::default(),
            gate: Gate::default(),
            output: Vec::new(),
            taken: 0,
            unjudged: 0,
            postponed: None,
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.input.append(bytes);
    }

    pub(super) fn poll_command(
        &mut self,
        now: Nanos,
        shared: &mut ListenerState,
    ) -> Option<Command> {
        if let Some(command) = self.postponed.take() {
            return Some(command);
        }
        let before = self.output.len();
        let Self { session, input, output, .. } = self;
        let command = session.poll_command(now, input, shared, output);
        self.push(DependsOn::NOTHING, before);
        command
    }

    /// The command that was given last comes again as the next.
    pub(super) fn postpone(&mut self, command: Command) {
        self.postponed = Some(command);
    }

    /// True if a command waits that was given already.
    pub(super) const fn is_postponed(&self) -> bool {
        self.postponed.is_some()
    }

    pub(super) fn handle_reply(
        &mut self,
        after: DependsOn,
        reply: Reply,
        shared: &mut ListenerState,
    ) {
        let before = self.output.len();
        self.session.handle_reply(reply, shared, &mut self.output);
        self.push(after, before);
    }

    /// Bytes that were encoded since the last call.
    pub(super) fn said(&mut self) -> Vec<u8> {
        let unjudged = std::mem::take(&mut self.unjudged);
        let begin = self.output.len() - unjudged;
        self.output.get(begin..).unwrap_or_default().to_vec()
    }

    /// Bytes that the gate lets the client have, or all.
    pub(super) fn release(&mut self, durable: Durable, all: bool, bytes_max: usize) -> Vec<u8> {
        let released = self.gate.released(durable) - self.taken;
        let released = usize::try_from(released).unwrap_or(usize::MAX).min(bytes_max);
        let count = if all { self.output.len() } else { released };
        self.taken += count as u64;
        self.output.drain(..count).collect()
    }

    pub(super) fn unsent(&self) -> usize {
        self.output.len()
    }

    pub(super) fn close(self, shared: &mut ListenerState) {
        self.session.close(shared);
    }

    fn push(&mut self, after: DependsOn, before: usize) {
        self.unjudged += self.output.len() - before;
        self.gate.push(after, self.taken + self.output.len() as u64);
    }
}

/// State that all such connections share.
pub(super) fn shared(policy: StorePolicy) -> ListenerState {
    let options = Options { message_bytes_max: BODY_BYTES_MAX, policy, ..Options::default() };
    ListenerState::new(options, Box::new(()))
}
