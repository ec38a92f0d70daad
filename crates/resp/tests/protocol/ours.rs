//! Session and engine, put together as a server does, on a clock that only the test moves.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions};
use model::{Capacity, Nanos, SessionId, StorePolicy};
use resp::{ListenerState, Options};

use crate::connection::Connection;
use crate::facts;

/// A broker in memory with its connections.
pub(crate) struct Ours {
    engine: Engine,
    effects: Effects,
    shared: ListenerState,
    connections: BTreeMap<u64, Connection>,
    /// Connections that are being served, which look for more themselves.
    serving: Vec<u64>,
    opened: u64,
    now: Nanos,
}

impl Ours {
    pub(crate) fn new(options: Options) -> Self {
        Self::with_engine(options, EngineOptions::new(StorePolicy::Memory))
    }

    pub(crate) fn with_engine(options: Options, engine: EngineOptions) -> Self {
        Self {
            engine: Engine::new(engine),
            effects: Effects::default(),
            shared: facts::shared(options),
            connections: BTreeMap::new(),
            serving: Vec::new(),
            opened: 0,
            now: Nanos::from_secs(1_000_000_000),
        }
    }

    /// The new connection's number.
    pub(crate) fn connect(&mut self) -> u64 {
        self.opened += 1;
        let id = self.opened;
        self.engine.open_session(SessionId(id));
        self.connections.insert(id, Connection::new(id, self.now, &mut self.shared));
        id
    }

    pub(crate) fn send(&mut self, id: u64, bytes: &[u8]) {
        self.connection(id).receive(bytes);
        self.serve(id);
        self.engine.check();
    }

    /// The peer will send no more; once nothing is left to do, the connection is gone.
    pub(crate) fn close(&mut self, id: u64) {
        if let Some(command) = self.connection(id).half_close() {
            self.engine.handle(
                self.now,
                SessionId(id),
                command,
                Capacity::UNBOUNDED,
                &mut self.effects,
            );
            self.deliver();
        }
        self.serve(id);
        let mut connection = self.connections.remove(&id).expect("an opened connection");
        connection.close(&mut self.shared);
        self.engine.close_session(self.now, SessionId(id), Capacity::UNBOUNDED, &mut self.effects);
        self.deliver();
    }

    /// As on SIGUSR1.
    pub(crate) fn drain(&mut self) {
        self.shared.draining.begin();
    }

    /// The engine's steps for all commands.
    pub(crate) fn steps(&self) -> u64 {
        self.engine.steps()
    }

    /// How many connections were opened.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// The connections that are open.
    pub(crate) fn open(&self) -> Vec<u64> {
        self.connections.keys().copied().collect()
    }

    /// Lets time pass, with all that happens meanwhile.
    pub(crate) fn pass_time(&mut self, span: Nanos) {
        let until = self.now + span;
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
        }
        self.now = until;
    }

    /// The next answer that this connection has not yet taken.
    pub(crate) fn answer(&mut self, id: u64) -> Option<Vec<u8>> {
        client::resp::take(self.connection(id).out_mut()).expect("an answer")
    }

    /// All bytes that this connection has not yet taken.
    pub(crate) fn output(&mut self, id: u64) -> Vec<u8> {
        self.connection(id).take_out()
    }

    /// The memory of commands that are not done.
    pub(crate) fn collected_bytes(&mut self, id: u64) -> usize {
        let connection = self.connection(id);
        connection.unread() + connection.session().held_bytes()
    }

    pub(crate) fn wants_close(&mut self, id: u64) -> bool {
        self.connection(id).session().wants_close()
    }

    fn connection(&mut self, id: u64) -> &mut Connection {
        self.connections.get_mut(&id).expect("a connection that was opened")
    }

    /// Steps the engine with the commands that this connection has sent.
    fn serve(&mut self, id: u64) {
        if self.serving.contains(&id) {
            return;
        }
        self.serving.push(id);
        self.step(id);
        self.serving.retain(|other| *other != id);
    }

    fn step(&mut self, id: u64) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let command = connection.poll(self.now, &mut self.shared);
            let more = connection.session().has_more();
            self.end_waits();
            match command {
                Some(command) => {
                    self.now = self.now + Nanos(1_000);
                    self.engine.handle(
                        self.now,
                        SessionId(id),
                        command,
                        Capacity::UNBOUNDED,
                        &mut self.effects,
                    );
                }
                None if more => {}
                None if self.effects.outputs.is_empty() => return,
                None => {}
            }
            self.deliver();
        }
    }

    /// Ends the waits of others that a client has just asked to end.
    fn end_waits(&mut self) {
        while let Some((session, command)) = self.shared.poll_unblocked() {
            self.engine.handle(self.now, session, command, Capacity::UNBOUNDED, &mut self.effects);
        }
    }

    /// Hands replies to their sessions; each may have more to do then.
    fn deliver(&mut self) {
        let outputs = core::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        let mut woken = Vec::new();
        for output in outputs {
            let Some(connection) = self.connections.get_mut(&output.session.0) else { continue };
            connection.reply(output.reply, &mut self.shared);
            self.end_waits();
            woken.push(output.session.0);
        }
        for id in woken {
            self.serve(id);
        }
    }
}
