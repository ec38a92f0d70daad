//! Session and engine, put together as a server does, on a clock that only the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{Capacity, LoginAnswer, LoginOffer, LoginStep, Nanos, SessionId, StorePolicy};
use resp::{Interpreter, ListenerState, Options};

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
    /// Clients have to log in from now on.
    offer: Option<LoginOffer>,
    /// Steps of logins that wait for their answer; `None`: each is answered at once.
    logins: Option<Vec<(u64, LoginStep)>>,
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
            offer: None,
            logins: None,
        }
    }

    /// Clients may run scripts.
    pub(crate) fn set_interpreter(&mut self, interpreter: Arc<dyn Interpreter>) {
        self.shared.set_interpreter(interpreter);
    }

    /// Clients that connect from now on have to log in: see [`answer`].
    pub(crate) fn offer(&mut self, offer: LoginOffer) {
        self.offer = Some(offer);
    }

    /// Answers no login any more.
    pub(crate) fn hold_logins(&mut self) {
        self.logins = Some(Vec::new());
    }

    /// Answers those that wait.
    pub(crate) fn answer_logins(&mut self) {
        for (id, step) in self.logins.take().unwrap_or_default() {
            self.answer_login(id, &step);
            self.serve(id);
        }
    }

    /// The new connection's number.
    pub(crate) fn connect(&mut self) -> u64 {
        self.opened += 1;
        let id = self.opened;
        self.engine.open_session(SessionId(id));
        let mut connection = Connection::new(id, self.now, &mut self.shared);
        if let Some(offer) = self.offer {
            connection.offer(offer, &mut self.shared);
        }
        self.connections.insert(id, connection);
        self.serve(id);
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
            let login = connection.poll_login();
            let more = connection.session().has_more() || login.is_some();
            self.end_waits();
            if let Some(step) = login {
                assert!(command.is_none(), "a client that logs in asks for nothing");
                self.take_login(id, step);
            }
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

    fn take_login(&mut self, id: u64, step: LoginStep) {
        match &mut self.logins {
            Some(logins) => logins.push((id, step)),
            None => self.answer_login(id, &step),
        }
    }

    fn answer_login(&mut self, id: u64, step: &LoginStep) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.answer_login(answer(step), &mut self.shared);
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

/// Every name is a user with the password `secret`, `busy` has failed too often, and certificates
/// are of the user `carol`.
fn answer(step: &LoginStep) -> LoginAnswer {
    let granted = |user: &str| LoginAnswer::Granted {
        rights: model::Rights::everything(user).into(),
        proof: Vec::new(),
    };
    match step {
        LoginStep::Password { user, .. } if &**user == "busy" => LoginAnswer::Busy,
        LoginStep::Password { user, password } if password.expose() == b"secret" => granted(user),
        LoginStep::Certificate { user } if user.is_empty() => granted("carol"),
        LoginStep::Anonymous => granted("guest"),
        LoginStep::UnixUser { user } if user.is_empty() => granted("local"),
        LoginStep::ListenerUser => granted("jobs"),
        _ => LoginAnswer::Refused,
    }
}
