//! A broker and the ends of its connections, turned as the server turns them.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::{Connection, Event, InputBuffer, Options};
use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{DependsOn, Nanos, Output, SessionId, StorePolicy};

use crate::memory::{File, Memory};

/// A broker with its log, and connections to it.
pub(crate) struct Harness {
    broker: Broker<File>,
    disk: Memory,
    ends: Vec<End>,
    outputs: Vec<Output>,
}

/// The broker's end of one connection.
struct End {
    connection: Connection,
    input: InputBuffer,
    held: VecDeque<(DependsOn, Event)>,
    out: Vec<u8>,
}

const LOG_BYTES: u64 = 64 << 20;

const NOW: Nanos = Nanos::from_secs(1_000_000);

impl Harness {
    /// A broker with so many connections that have not begun to speak.
    pub(crate) fn new(policy: StorePolicy, connections: u64) -> Self {
        let formats = amqp::formats();
        let engine = EngineOptions { formats, ..EngineOptions::new(policy) };
        let disk = Memory::default();
        let mut broker = if policy == StorePolicy::Memory {
            Broker::in_memory(engine)
        } else {
            // A log that is made ready at the start and never full. To fill it with zeros is dear,
            // and comes in large steps, which some messages would pay for all.
            let journal = JournalOptions {
                segment_bytes: LOG_BYTES,
                extent_bytes: LOG_BYTES,
                ..JournalOptions::new(policy)
            };
            Broker::open(&disk, BrokerOptions { engine, journal }).unwrap().0
        };
        let options = Arc::new(Options::default());
        let ends = (0..connections).map(|number| {
            broker.open_session(SessionId(number));
            End {
                connection: Connection::new(SessionId(number), options.clone(), NOW),
                input: InputBuffer::new(),
                held: VecDeque::new(),
                out: Vec::new(),
            }
        });
        let ends = ends.collect();
        let mut harness = Self { broker, disk, ends, outputs: Vec::new() };
        harness.turn();
        harness
    }

    /// A client's bytes arrive, and all is done that follows from them. Gives the bytes that its
    /// connection sent.
    pub(crate) fn send(&mut self, connection: usize, bytes: &[u8]) -> usize {
        self.ends[connection].input.append(bytes);
        self.turn();
        let out = &mut self.ends[connection].out;
        let sent = out.len();
        out.clear();
        sent
    }

    /// True if the connection goes on.
    pub(crate) fn is_open(&self, connection: usize) -> bool {
        !self.ends[connection].connection.wants_close()
    }

    /// How many messages the broker holds.
    pub(crate) fn messages(&self) -> u64 {
        let count = self.broker.statistics();
        count.ready + count.leased + count.delayed + count.buried
    }

    fn turn(&mut self) {
        loop {
            (0..self.ends.len()).for_each(|end| self.poll(end));
            self.work_for_the_log();
            let durable = self.broker.durable();
            let more = self.ends.iter_mut().map(|end| end.emit(durable));
            if !more.fold(false, |any, more| any | more) {
                return;
            }
        }
    }

    fn poll(&mut self, index: usize) {
        loop {
            let End { connection, input, out, .. } = &mut self.ends[index];
            let Some(command) = connection.poll_command(NOW, input, out) else { return };
            let session = connection.id();
            self.broker.handle(NOW, session, command, &mut self.outputs);
            for output in self.outputs.drain(..) {
                let end = &mut self.ends[output.session.0 as usize];
                end.held.extend(end.connection.handle_reply(output.after, output.reply));
            }
        }
    }

    fn work_for_the_log(&mut self) {
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

impl End {
    /// Emits the events that are durable. True if that made more to do.
    fn emit(&mut self, durable: broker::Durable) -> bool {
        while let Some((after, _)) = self.held.front()
            && durable.covers(*after)
            && let Some((_, event)) = self.held.pop_front()
        {
            self.connection.emit(event, &mut self.out);
        }
        self.connection.flush(&mut self.out);
        self.connection.has_more()
    }
}
