//! Connections on the real engine and a log in memory, turn by turn as a server drives them.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::{Connection, Event, InputBuffer, Options};
use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, DependsOn, Destination, LinkId, Lsn, MessageId, Nanos, NewMessage,
    QueueName, Reply, SessionId, StorePolicy,
};

use crate::peer::{self, Words};
use crate::words;

/// A broker with its clients.
pub(crate) struct Pair {
    pub(crate) engine: Engine,
    effects: Effects,
    pub(crate) now: Nanos,
    /// The synced part of the log.
    pub(crate) durable: Lsn,
    pub(crate) ends: Vec<End>,
    /// The latest message of the client of another protocol.
    reserved: MessageId,
}

const STRANGER: SessionId = SessionId(1_000_000);

/// The broker's end of one connection.
pub(crate) struct End {
    pub(crate) session: SessionId,
    connection: Option<Connection>,
    input: InputBuffer,
    held: VecDeque<(DependsOn, Event)>,
    pub(crate) out: Vec<u8>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let formats = amqp::formats();
        let options = EngineOptions { formats, ..EngineOptions::new(StorePolicy::Always) };
        let mut engine = Engine::new(options);
        engine.open_session(STRANGER);
        let now = Nanos::from_secs(1_000_000);
        Self {
            engine,
            effects: Effects::default(),
            now,
            durable: Lsn::ZERO,
            ends: Vec::new(),
            reserved: MessageId(0),
        }
    }

    /// One more client; gives its number.
    pub(crate) fn connect(&mut self) -> usize {
        self.connect_with(Options::default())
    }

    /// The same if the broker has decided otherwise.
    pub(crate) fn connect_with(&mut self, options: Options) -> usize {
        let session = SessionId(self.ends.len() as u64 + 1);
        self.engine.open_session(session);
        let options = Options { max_message_bytes: 4_000, ..options };
        self.ends.push(End {
            session,
            connection: Some(Connection::new(session, Arc::new(options), self.now)),
            input: InputBuffer::new(),
            held: VecDeque::new(),
            out: Vec::new(),
        });
        self.ends.len() - 1
    }

    /// A line of the script language.
    pub(crate) fn say(&mut self, end: usize, line: &str) {
        self.send(end, &peer::bytes(line).expect("a peer's line"));
    }

    pub(crate) fn send(&mut self, end: usize, bytes: &[u8]) {
        self.ends[end].input.append(bytes);
        self.turn();
    }

    /// The client is gone without a word.
    pub(crate) fn lose(&mut self, end: usize) {
        if let Some(connection) = self.ends[end].connection.take() {
            let session = self.ends[end].session;
            self.engine.note_begun(session, connection.begun());
            self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
            self.turn();
        }
    }

    /// Bytes that a connection holds, as a server asks it.
    pub(crate) fn held_bytes(&self, end: usize) -> usize {
        self.ends[end].connection.as_ref().map_or(0, Connection::held_bytes)
    }

    pub(crate) fn is_lost(&self, end: usize) -> bool {
        self.ends[end].connection.is_none()
    }

    /// Everything is synced.
    pub(crate) fn sync(&mut self) {
        self.durable = self.engine.last_lsn();
        self.turn();
    }

    /// Until nothing happens any more.
    pub(crate) fn turn(&mut self) {
        for end in 0..self.ends.len() {
            self.poll(end);
        }
        while (0..self.ends.len()).any(|end| self.emit(end)) {
            (0..self.ends.len()).for_each(|end| self.poll(end));
        }
        self.engine.check();
        for end in 0..self.ends.len() {
            if self.ends[end].connection.as_ref().is_some_and(Connection::wants_close) {
                self.lose(end);
            }
        }
    }

    fn poll(&mut self, end: usize) {
        loop {
            let it = &mut self.ends[end];
            let Some(connection) = &mut it.connection else { return };
            let Some(command) = connection.poll_command(self.now, &mut it.input, &mut it.out)
            else {
                return;
            };
            let session = it.session;
            self.engine.handle(self.now, session, command, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
        }
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, time: Nanos) {
        self.now = self.now + time;
        while self.engine.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
        }
        for end in &mut self.ends {
            let Some(connection) = &mut end.connection else { continue };
            while connection.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
                connection.handle_timeout(self.now, &mut end.out);
            }
        }
        self.turn();
    }

    fn deliver(&mut self) {
        for output in self.effects.outputs.drain(..) {
            let end = self.ends.iter_mut().find(|end| end.session == output.session).unwrap();
            if let Some(connection) = &mut end.connection {
                end.held.extend(connection.handle_reply(output.after, output.reply));
            }
        }
        self.effects.clear();
    }

    /// Gives whether there is more to poll.
    fn emit(&mut self, end: usize) -> bool {
        let end = &mut self.ends[end];
        let Some(connection) = &mut end.connection else { return false };
        for (after, event) in std::mem::take(&mut end.held) {
            if after.lsn <= self.durable {
                connection.emit(event, &mut end.out);
            } else {
                end.held.push_back((after, event));
            }
        }
        connection.flush(&mut end.out);
        connection.has_more()
    }

    /// A client of another protocol does something: its answers.
    pub(crate) fn stranger(&mut self, words: &Words<'_>) -> String {
        let link = LinkId(0);
        let queue = || QueueName::new(words.at(1)).unwrap();
        let to = || Destination::Queue(queue());
        let commands = match words.at(0) {
            "put" => {
                let body = words.at(3).as_bytes().into();
                let message = NewMessage { priority: words.number(2), ..NewMessage::new(body) };
                vec![Command::PutTo { to: to(), message, transaction: None }]
            }
            "reserve" => vec![
                Command::Watch { link, queue: queue() },
                Command::Receive {
                    link,
                    wait: Some(Nanos::ZERO),
                    margin: Nanos::ZERO,
                    lease: None,
                },
                Command::Unwatch { link, queue: queue() },
            ],
            "bury" => vec![Command::Bury { message: self.reserved, priority: 0 }],
            "delete" => vec![Command::Delete { message: self.reserved }],
            _ => vec![Command::OpenProducer { link, to: to() }, Command::Kick { link, max: 9 }],
        };
        for command in commands {
            self.engine.handle(self.now, STRANGER, command, Capacity::UNBOUNDED, &mut self.effects);
        }
        let mut lines = String::new();
        for output in self.effects.outputs.extract_if(.., |output| output.session == STRANGER) {
            if let Reply::Delivered(delivery) = output.reply {
                self.reserved = delivery.message;
                let payload = String::from_utf8_lossy(delivery.payload());
                lines += &format!("{payload:?} priority={}\n", delivery.priority);
            }
        }
        self.deliver();
        lines
    }

    /// The frames that a client got, in words.
    pub(crate) fn hear(&mut self, end: usize, frame_bytes_max: u32) -> String {
        words::sent(&std::mem::take(&mut self.ends[end].out), frame_bytes_max)
    }
}

/// A world of several clients: each line begins with the letter of its client, or is one of `sync`,
/// `pass <ms>`, `lose <client>`. A client of another protocol has the lines `put <queue> <priority>
/// <body>`, `reserve <queue>`, `bury`, `delete` and `kick <queue>`.
pub(crate) fn clients() -> impl FnMut(&str) -> String {
    let mut pair = Pair::new();
    let mut names = Vec::new();
    move |line| {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut lines = String::new();
        match first {
            "put" | "reserve" | "bury" | "delete" | "kick" => {
                lines = pair.stranger(&Words::new(line));
                pair.turn();
            }
            "sync" => pair.sync(),
            "pass" => pair.pass(Nanos::from_millis(rest.parse().unwrap())),
            "lose" => {
                let gone = names.iter().rposition(|name| name == rest).unwrap();
                pair.lose(gone);
                names[gone] = String::new();
            }
            client => {
                let end = names.iter().rposition(|name| name == client);
                let end = end.unwrap_or_else(|| {
                    names.push(client.to_owned());
                    pair.connect()
                });
                pair.say(end, rest);
            }
        }
        for (end, name) in names.iter().enumerate() {
            for heard in pair.hear(end, u32::MAX).lines() {
                lines += &format!("{name} {heard}\n");
            }
        }
        lines
    }
}
