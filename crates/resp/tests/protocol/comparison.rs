//! The same bytes to both, and the same answers from both.

use client::resp::{command as encoded, take};
use model::Nanos;
use resp::Options;
use testkit::escape;
use testkit::foreign_server::{ByteClient, ForeignServer};

use crate::ours::Ours;
use crate::real::{Observer, answer, arrived};

/// Ours and the real one, with as many connections each.
pub(crate) struct Pair {
    ours: Ours,
    ids: Vec<u64>,
    clients: Vec<ByteClient>,
    observer: Observer,
    /// The latest commands, for the story of a difference.
    story: Vec<String>,
}

/// How the answers of commands are ordered before they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Exact,
    /// An array or a set without an order.
    Sorted,
    /// The same of pairs, flat or not.
    Pairs,
    /// A cursor, and an array without an order.
    Scanned,
    /// The same of pairs.
    ScannedPairs,
    /// Pending entries of a stream, which are not held against each other by their time.
    Pending,
    /// A map, but for the nodes of a tree.
    Described,
}

impl Pair {
    /// A pair that knows nothing, with so many connections.
    pub(crate) fn new(redis: &ForeignServer, options: Options, connections: usize) -> Self {
        let mut ours = Ours::new(options);
        let ids = (0..connections).map(|_| ours.connect()).collect();
        let clients: Vec<ByteClient> = (0..connections).map(|_| redis.connect()).collect();
        let observer = Observer::new(redis, connections);
        let mut pair = Self { ours, ids, clients, observer, story: Vec::new() };
        pair.ask(0, "FLUSHALL");
        pair
    }

    /// Sends one command, and compares the answer.
    pub(crate) fn ask(&mut self, connection: usize, command: &str) -> Vec<u8> {
        self.ask_in(connection, command, Order::Exact)
    }

    pub(crate) fn ask_in(&mut self, connection: usize, command: &str, order: Order) -> Vec<u8> {
        self.send(connection, command);
        let real = ordered(answer(&mut self.clients[connection]), order);
        let ours = self.ours.answer(self.ids[connection]);
        let ours = ours.map(|answer| ordered(answer, order));
        self.compare(connection, ours.as_deref(), Some(&real));
        real
    }

    /// Sends commands in one piece, as libraries send them, and compares all their answers.
    pub(crate) fn ask_all(&mut self, connection: usize, commands: &[Vec<String>]) {
        let bytes: Vec<u8> = commands.iter().flat_map(|words| encoded(words)).collect();
        self.story.push(format!("{connection}: {commands:?}"));
        self.ours.pass_time(Nanos(1_000));
        self.ours.send(self.ids[connection], &bytes);
        self.clients[connection].send(&bytes);
        for _ in commands {
            let real = answer(&mut self.clients[connection]);
            let ours = self.ours.answer(self.ids[connection]);
            self.compare(connection, ours.as_deref(), Some(&real));
        }
    }

    /// Sends one command that may wait, and compares the answers so far; true if it waits.
    pub(crate) fn ask_waiting(&mut self, connection: usize, command: &str) -> bool {
        self.send(connection, command);
        self.settle();
        let real = arrived(&mut self.clients[connection]);
        let ours = self.ours.answer(self.ids[connection]);
        self.compare(connection, ours.as_deref(), real.as_deref());
        real.is_none()
    }

    /// True if a connection that waits has been answered now, by both alike.
    pub(crate) fn is_answered(&mut self, connection: usize) -> bool {
        self.settle();
        let real = arrived(&mut self.clients[connection]);
        let ours = self.ours.answer(self.ids[connection]);
        self.compare(connection, ours.as_deref(), real.as_deref());
        real.is_some()
    }

    /// Sends one command that may bring messages to any client, and compares all answers of each,
    /// in any order.
    pub(crate) fn tell(&mut self, connection: usize, command: &str) {
        self.send(connection, command);
        self.settle();
        for connection in 1..self.ids.len() {
            let id = self.ids[connection];
            let real = std::iter::from_fn(|| arrived(&mut self.clients[connection]));
            let mut real: Vec<_> = real.collect();
            let mut ours: Vec<_> = std::iter::from_fn(|| self.ours.answer(id)).collect();
            real.sort();
            ours.sort();
            self.compare(connection, Some(&ours.concat()), Some(&real.concat()));
        }
    }

    /// The answers to one command of each side's own, not compared.
    pub(crate) fn ask_apart(&mut self, connection: usize, commands: [&str; 2]) -> [Vec<u8>; 2] {
        let id = self.ids[connection];
        self.ours.send(id, format!("{}\r\n", commands[0]).as_bytes());
        self.clients[connection].send(format!("{}\r\n", commands[1]).as_bytes());
        [self.ours.answer(id).unwrap(), answer(&mut self.clients[connection])]
    }

    /// Sends bytes after which both close, and compares all that they say.
    pub(crate) fn compare_last_words(&mut self, connection: usize, bytes: &[u8]) {
        let id = self.ids[connection];
        self.ours.send(id, bytes);
        self.clients[connection].send(bytes);
        assert!(self.ours.wants_close(id), "{}", escape::text(bytes));
        let (ours, real) = (self.ours.output(id), self.clients[connection].rest());
        assert_eq!(escape::text(&ours), escape::text(&real), "{}", escape::text(bytes));
    }

    /// Waits until all answers of Redis to the commands so far have arrived.
    fn settle(&mut self) {
        self.observer.settle(&mut self.clients);
    }

    fn send(&mut self, connection: usize, command: &str) {
        self.story.push(format!("{connection}: {command}"));
        let bytes = [command.as_bytes(), b"\r\n"].concat();
        self.ours.pass_time(Nanos(1_000));
        self.ours.send(self.ids[connection], &bytes);
        self.clients[connection].send(&bytes);
    }

    fn compare(&self, connection: usize, ours: Option<&[u8]>, real: Option<&[u8]>) {
        if ours == real {
            return;
        }
        let lately = self.story.len().saturating_sub(40);
        let text = |answer: Option<&[u8]>| answer.map_or("nothing".into(), escape::text);
        panic!(
            "{}\nconnection {connection} hears\n  {}\nand from Redis\n  {}",
            self.story[lately..].join("\n"),
            text(ours),
            text(real)
        );
    }
}

fn ordered(answer: Vec<u8>, order: Order) -> Vec<u8> {
    let in_pairs = matches!(order, Order::Pairs | Order::ScannedPairs);
    match order {
        Order::Exact => answer,
        Order::Pending => without_idle(answer),
        Order::Described => without_nodes(answer),
        Order::Sorted | Order::Pairs => sorted(answer, in_pairs),
        Order::Scanned | Order::ScannedPairs => {
            let Some((head, parts)) = parts(&answer) else { return answer };
            let [cursor, found] = parts.try_into().expect("a cursor and an array");
            [head, cursor, sorted(found, in_pairs)].concat()
        }
    }
}

fn without_idle(answer: Vec<u8>) -> Vec<u8> {
    let Some((head, entries)) = parts(&answer) else { return answer };
    let masked = entries.iter().map(|entry| {
        let (line, mut its) = parts(entry).expect("an entry is an array");
        its[2] = b":0\r\n".to_vec();
        [line, its.concat()].concat()
    });
    [head, masked.collect::<Vec<_>>().concat()].concat()
}

fn without_nodes(answer: Vec<u8>) -> Vec<u8> {
    let Some((head, pairs)) = parts(&answer) else { return answer };
    let is_node = |name: &[u8]| name.windows(6).any(|part| part == b"radix-");
    let kept = pairs.chunks(2).filter(|pair| !is_node(&pair[0])).map(<[_]>::concat);
    [head, kept.collect::<Vec<_>>().concat()].concat()
}

fn sorted(answer: Vec<u8>, in_pairs: bool) -> Vec<u8> {
    let Some((head, parts)) = parts(&answer) else { return answer };
    let is_flat = head[0] == b'%' || parts.first().is_some_and(|part| part[0] != b'*');
    let each = if in_pairs && is_flat { 2 } else { 1 };
    let mut entries: Vec<Vec<u8>> = parts.chunks(each).map(<[_]>::concat).collect();
    entries.sort_unstable();
    [head, entries.concat()].concat()
}

/// The line of an array, a set or a map, and the bytes of each of its parts.
fn parts(answer: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    if !matches!(answer.first(), Some(b'*' | b'~' | b'%')) {
        return None;
    }
    let line = answer.windows(2).position(|pair| pair == b"\r\n").expect("a line") + 2;
    let (head, rest) = answer.split_at(line);
    let mut rest = rest.to_vec();
    let parts =
        std::iter::from_fn(|| (!rest.is_empty()).then(|| take(&mut rest).unwrap().unwrap()));
    Some((head.to_vec(), parts.collect()))
}
