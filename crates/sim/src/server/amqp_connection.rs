//! The server's end of a connection of AMQP: each answer waits as an event until its dependency is
//! durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::{Connection, Event, InputBuffer, Options};
use journal::Durable;
use model::{Command, DependsOn, MessageId, Nanos, Reply, SessionId};

use crate::workload::BODY_BYTES_MAX;

pub(super) struct AmqpConnection {
    connection: Connection,
    input: InputBuffer,
    held: Vec<(DependsOn, Event)>,
    output: Vec<u8>,
    /// A command that the broker could not take yet.
    postponed: Option<Command>,
}

impl AmqpConnection {
    pub(super) fn new(id: u64, now: Nanos) -> Self {
        let options = Options {
            max_message_bytes: BODY_BYTES_MAX as u64 + SECTIONS_BYTES_MAX,
            idle_timeout: None,
            ..Options::default()
        };
        Self {
            connection: Connection::new(SessionId(id), Arc::new(options), now),
            input: InputBuffer::new(),
            held: Vec::new(),
            output: Vec::new(),
            postponed: None,
        }
    }

    /// Held deliveries of which the client may have begun to read.
    pub(super) fn begun(&self) -> BTreeSet<MessageId> {
        self.connection.begun()
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.input.append(bytes);
    }

    pub(super) fn poll_command(&mut self, now: Nanos) -> Option<Command> {
        if let Some(postponed) = self.postponed.take() {
            return Some(postponed);
        }
        loop {
            let command = self.connection.poll_command(now, &mut self.input, &mut self.output);
            if command.is_some() || !self.connection.has_more() {
                return command;
            }
        }
    }

    /// The command that was given last comes again as the next.
    pub(super) fn postpone(&mut self, command: Command) {
        self.postponed = Some(command);
    }

    pub(super) fn handle_reply(&mut self, after: DependsOn, reply: Reply) {
        self.held.extend(self.connection.handle_reply(after, reply));
    }

    /// Writes the events that need not wait any more, and returns at most so many of the written
    /// bytes.
    pub(super) fn release(&mut self, durable: Durable, all: bool, bytes_max: usize) -> Vec<u8> {
        for (after, event) in std::mem::take(&mut self.held) {
            if all || durable.covers(after) {
                self.connection.emit(event, &mut self.output);
            } else {
                self.held.push((after, event));
            }
        }
        self.connection.flush(&mut self.output);
        let count = self.output.len().min(bytes_max);
        self.output.drain(..count).collect()
    }

    pub(super) fn unsent(&self) -> usize {
        self.output.len()
    }
}

/// Bytes of the sections around a body.
const SECTIONS_BYTES_MAX: u64 = 512;
