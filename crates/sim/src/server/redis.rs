//! Serving clients of Redis: their commands go to the broker, their answers to the oracle.

use journal::Disk;
use model::{Command, KeyCommand, ListCommand, Nanos, Output, Reply, SessionId};

use super::elements::bytes_brought;
use super::redis_connection::RedisConnection;
use super::{OUTPUT_BYTES_MAX, Outside, Server, brief};

impl<D: Disk> Server<D> {
    /// A client of Redis has connected.
    pub fn connect_redis(&mut self, id: u64) {
        self.open_session(id);
        let connection = RedisConnection::new(id, self.now, &mut self.redis_shared);
        self.redis_connections.insert(id, connection);
    }

    /// The machine's clock shows so many milliseconds more than the broker's.
    pub fn set_clock(&mut self, ahead: i64) {
        let wall = Nanos(self.now.0.saturating_add_signed(ahead * 1_000_000));
        self.redis_shared.wall_clock.set(self.now, wall);
    }

    /// True if no earlier command waits: its moments are by the clock as it was then.
    pub fn may_set_clock(&self) -> bool {
        let postpones = self.redis_connections.values().any(RedisConnection::is_postponed);
        self.broker.memory_waits() == 0 && !postpones
    }

    pub(super) fn serve_redis(&mut self, id: u64, outside: &mut Outside) {
        loop {
            self.hurry(outside);
            let is_serving = self.is_serving();
            let Some(connection) = self.redis_connections.get_mut(&id) else { return };
            if !is_serving || connection.unsent() > OUTPUT_BYTES_MAX {
                return;
            }
            let now = self.now;
            let command = connection.poll_command(now, &mut self.redis_shared);
            outside.hear(now, id, &connection.said());
            let Some(command) = command else { return };
            if !self.broker.takes(SessionId(id), &command) {
                connection.postpone(command);
                return;
            }
            let now = self.tick(outside);
            self.stepped_at = now;
            self.ids_given = true;
            outside.keys.commanded(now, id);
            let may_wait = command.may_wait();
            let is_run = is_run(&command);
            outside.trace(now, || format!("for {id}: {}", brief(&command)));
            if let Some(bytes) = bytes_brought(&command) {
                self.bringing.insert(id, bytes);
            }
            self.tell_room(outside);
            let memory = self.broker.memory_bytes();
            let outputs = self.step_redis(now, SessionId(id), command);
            self.tell_memory(memory, outside);
            let is_apart = |output: &Output| matches!(output.reply, Reply::NotBatchable(_));
            self.runs += u64::from(is_run && !outputs.iter().any(is_apart));
            let is_answered = outputs.iter().any(|output| output.session.0 == id);
            self.route(Some(id), outputs, outside);
            if may_wait && !is_answered {
                outside.wait(now, id);
            }
            let is_due = |at| at <= now;
            if self.broker.stalled() || self.broker.poll_timeout().is_some_and(is_due) {
                outside.keys.serves_later();
            } else {
                outside.keys.assert_served();
            }
        }
    }

    fn step_redis(&mut self, now: Nanos, session: SessionId, command: Command) -> Vec<Output> {
        if let Some(defect) = self.list_defect {
            return defect.handle(&mut self.broker, now, session, command);
        }
        let mut outputs = Vec::new();
        self.broker.handle(now, session, command, &mut outputs);
        outputs
    }

    /// Hands a reply to a session of Redis, and the bytes that it makes of it to the oracle.
    pub(super) fn route_redis(&mut self, output: Output, outside: &mut Outside) {
        let Output { session: SessionId(id), after, reply } = output;
        outside.trace(self.now, || format!("for {id}: {}", brief(&reply)));
        let Some(connection) = self.redis_connections.get_mut(&id) else { return };
        if let Reply::Waits { ticket } = reply {
            outside.line_up(self.now, id, ticket, self.bringing.get(&id).copied());
        } else if let Some(bytes) = self.bringing.remove(&id)
            && !matches!(reply, Reply::NotBatchable(_))
        {
            outside.judge_elements(self.now, id, bytes, &reply);
        }
        if matches!(reply, Reply::Late { .. }) {
            self.ids_given = true;
        }
        outside.keys.hears(&reply);
        connection.handle_reply(after, reply, &mut self.redis_shared);
        outside.hear(self.now, id, &connection.said());
        outside.keys.has_heard();
    }
}

impl Outside {
    /// The server said something to a client of Redis.
    fn hear(&mut self, now: Nanos, id: u64, bytes: &[u8]) {
        let Self { redis_clients, keys, .. } = self;
        let client = redis_clients.get_mut(&id).expect("invariant: a connection has a client");
        client.hear(bytes, |asked, waited, value| {
            if waited { keys.served(now, id, value) } else { keys.answered(now, id, asked, value) }
        });
    }

    /// The engine lets a client of Redis wait for a place.
    fn line_up(&mut self, now: Nanos, id: u64, ticket: u64, brings: Option<u64>) {
        let client = self.redis_clients.get_mut(&id);
        let client = client.expect("invariant: a connection has a client");
        let is_for_memory = brings.filter(|_| self.keys.is_cramped());
        if let Some(bytes) = is_for_memory {
            let lacks = self.keys.shortage_of_place(now, client.asking());
            self.oracle.elements_wait(now, id, ticket, bytes, lacks);
        }
        self.keys.lines_up(now, id, ticket, client.asking(), is_for_memory.is_some());
        client.line_up();
    }

    /// The outcome of elements that a client of Redis brought, as far as memory decided.
    fn judge_elements(&mut self, now: Nanos, id: u64, bytes: u64, reply: &Reply) {
        let (ticket, reply) = match reply {
            Reply::Late { ticket, reply } => (Some(*ticket), &**reply),
            reply => (None, reply),
        };
        if self.keys.is_cramped() && *reply != Reply::Stale {
            self.oracle.elements_answered(now, id, ticket, bytes, reply);
        }
    }

    /// The engine lets a client of Redis wait.
    fn wait(&mut self, now: Nanos, id: u64) {
        let client = self.redis_clients.get_mut(&id);
        let client = client.expect("invariant: a connection has a client");
        self.keys.waits(now, id, &client.asking().words);
        client.wait();
    }
}

/// True if it is several commands, alike, at once.
fn is_run(command: &Command) -> bool {
    matches!(
        command,
        Command::List(ListCommand::PushEach { .. } | ListCommand::PopEach { .. })
            | Command::Key(KeyCommand::ValueEach { .. })
    )
}
