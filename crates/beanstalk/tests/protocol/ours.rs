//! Session and engine, put together as a server does, on a clock that only the test moves.

use std::collections::{BTreeMap, BTreeSet};

use beanstalk::{ListenerState, default_tube};
use engine::{Effects, Engine, EngineOptions, QueuePolicies};
use model::{Capacity, Nanos, SessionId, StorePolicy};

use crate::answers::{self, Answer};
use crate::connection::Connection;
use crate::facts;

/// A broker in memory with its connections.
pub(crate) struct Ours {
    engine: Engine,
    effects: Effects,
    shared: ListenerState,
    connections: BTreeMap<u64, Connection>,
    /// Those with a last command that is not answered.
    waiting: BTreeSet<u64>,
    opened: u64,
    now: Nanos,
}

impl Ours {
    pub(crate) fn new() -> Self {
        let mut queue_policies = QueuePolicies::default();
        queue_policies.keep(default_tube());
        let options = EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Memory) };
        Self {
            engine: Engine::new(options),
            effects: Effects::default(),
            shared: facts::shared(),
            connections: BTreeMap::new(),
            waiting: BTreeSet::new(),
            opened: 0,
            now: Nanos::from_secs(1_000_000_000),
        }
    }

    /// The new connection's number.
    pub(crate) fn connect(&mut self) -> u64 {
        self.opened += 1;
        let id = self.opened;
        self.engine.open_session(SessionId(id));
        self.connections.insert(id, Connection::new(id, &mut self.shared));
        self.serve(id);
        id
    }

    pub(crate) fn send(&mut self, id: u64, bytes: &[u8]) {
        self.receive(id, bytes);
        self.check();
    }

    /// Serves these bytes, and checks nothing yet.
    pub(crate) fn receive(&mut self, id: u64, bytes: &[u8]) {
        self.connection(id).receive(bytes);
        self.serve(id);
    }

    pub(crate) fn check(&self) {
        self.engine.check();
    }

    /// All that this connection has heard and not yet taken.
    pub(crate) fn output(&mut self, id: u64) -> Vec<u8> {
        self.connection(id).take_out()
    }

    /// The peer will send no more; once nothing is left to do, the connection is gone.
    pub(crate) fn half_close(&mut self, id: u64) {
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
        let connection = self.connections.get_mut(&id).expect("an opened connection");
        connection.close(&mut self.shared);
        self.engine.close_session(self.now, SessionId(id), Capacity::UNBOUNDED, &mut self.effects);
        self.deliver();
    }

    pub(crate) fn drain(&mut self) {
        self.shared.draining.begin();
    }

    /// Moves the clock to the next timer, which must exist.
    pub(crate) fn pass_time(&mut self) {
        self.now = self.engine.poll_timeout().expect("something is to happen").max(self.now);
        self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        self.deliver();
    }

    /// The next answer that this connection has not yet taken.
    pub(crate) fn answer(&mut self, id: u64) -> Option<Answer> {
        answers::take(self.connection(id).out_mut())
    }

    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.waiting.contains(&id)
    }

    fn connection(&mut self, id: u64) -> &mut Connection {
        self.connections.get_mut(&id).expect("a connection that was opened")
    }

    /// Steps the engine with the commands that this connection has sent.
    fn serve(&mut self, id: u64) {
        loop {
            let connection = self.connections.get_mut(&id).expect("an opened connection");
            if !connection.is_open() {
                return;
            }
            let Some(command) = connection.poll(&mut self.shared) else {
                if connection.session().has_more() {
                    continue;
                }
                return;
            };
            self.now = self.now + Nanos(1_000);
            self.waiting.insert(id);
            self.engine.handle(
                self.now,
                SessionId(id),
                command,
                Capacity::UNBOUNDED,
                &mut self.effects,
            );
            self.deliver();
        }
    }

    /// Hands replies to their sessions; one that waited may have sent more meanwhile.
    fn deliver(&mut self) {
        let outputs = core::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        let mut woken = Vec::new();
        for output in outputs {
            let connection =
                self.connections.get_mut(&output.session.0).expect("an opened connection");
            self.waiting.remove(&output.session.0);
            connection.reply(output.reply, &mut self.shared);
            woken.push(output.session.0);
        }
        for id in woken {
            self.serve(id);
        }
    }
}
