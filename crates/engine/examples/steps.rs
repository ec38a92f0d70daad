//! Nanoseconds a step of the engine alone, over a million messages of 100 bytes:
//! `cargo run --release -p dunlin-engine --example steps`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is a measurement")]

use std::time::Instant;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, LinkId, Lsn, MessageId, Nanos, NewMessage, QueueName, Reply,
    SessionId, StorePolicy,
};

const MESSAGES: u64 = 1_000_000;
const LINK: LinkId = LinkId(0);
const SESSION: SessionId = SessionId(1);

struct Bench {
    engine: Engine,
    effects: Effects,
    log: Vec<u8>,
    ends: Vec<usize>,
}

fn main() {
    let mut bench = Bench::new();
    bench.measure("put", |bench, _| bench.put());
    bench.recover();
    bench.measure("receive + delete", |bench, _| bench.receive_delete());
    bench.measure("put + receive + delete", |bench, _| {
        bench.put();
        bench.receive_delete();
    });
    bench.measure("put", |bench, _| bench.put());
    bench.measure("receive, all held", |bench, _| {
        bench.receive();
    });
    let first = bench.receive_none_left();
    bench.measure("release one of all held, and receive it", |bench, number| {
        let message = MessageId(first + number);
        let command = Command::Release { message, priority: 1024, delay: Some(Nanos::ZERO) };
        bench.run(command);
        bench.receive();
    });
    let start = Instant::now();
    bench.engine.close_session(Nanos(0), SESSION, Capacity::UNBOUNDED, &mut bench.effects);
    println!("close a session that holds all: {} ms", start.elapsed().as_millis());
}

impl Bench {
    fn new() -> Self {
        let engine = Engine::new(options());
        let mut bench = Self {
            engine,
            effects: Effects::default(),
            log: Vec::with_capacity(200 << 20),
            ends: Vec::new(),
        };
        bench.engine.open_session(SESSION);
        let queue = QueueName::new("default").unwrap();
        bench.run(Command::OpenProducer { link: LINK, to: Destination::Queue(queue.clone()) });
        bench.run(Command::Watch { link: LINK, queue });
        bench
    }

    fn measure(&mut self, what: &str, mut step: impl FnMut(&mut Self, u64)) {
        let start = Instant::now();
        for number in 0..MESSAGES {
            step(self, number);
        }
        report(what, start);
    }

    fn run(&mut self, command: Command) -> Option<Reply> {
        self.effects.clear();
        self.engine.handle(
            Nanos(self.engine.last_lsn().next().0),
            SESSION,
            command,
            Capacity::UNBOUNDED,
            &mut self.effects,
        );
        self.effects.outputs.pop().map(|output| output.reply)
    }

    fn put(&mut self) {
        let message = NewMessage {
            priority: 1024,
            delay: Nanos::ZERO,
            lease: Nanos::from_secs(60),
            ..NewMessage::new(vec![b'x'; 100].into())
        };
        self.run(Command::Put { link: LINK, message, transaction: None });
        if self.ends.len() < MESSAGES as usize {
            self.log.extend_from_slice(&self.effects.records);
            self.ends.push(self.log.len());
        }
    }

    fn receive(&mut self) -> MessageId {
        let wait = Some(Nanos::ZERO);
        let command = Command::Receive { link: LINK, wait, margin: Nanos::SECOND, lease: None };
        match self.run(command) {
            Some(Reply::Delivered(delivery)) => delivery.message,
            other => panic!("{other:?}"),
        }
    }

    fn receive_delete(&mut self) {
        let message = self.receive();
        self.run(Command::Delete { message });
    }

    fn receive_none_left(&mut self) -> u64 {
        assert_eq!(self.engine.statistics().ready, 0);
        self.engine.live().next().map_or(0, |_| 2 * MESSAGES + 1)
    }

    /// From the log alone, and from a snapshot with bodies from the log.
    fn recover(&self) {
        let start = Instant::now();
        let mut engine = Engine::new(options());
        self.each_frame(|lsn, payload| engine.replay(lsn, payload, false).unwrap());
        engine.finish_recovery(self.engine.last_lsn()).unwrap();
        report("replay", start);

        let mut cursor = engine.snapshot_begin();
        let start = Instant::now();
        let mut chunks = Vec::new();
        while engine.snapshot_chunk(&mut cursor, &mut chunks) {}
        report("snapshot", start);

        let start = Instant::now();
        let mut engine = Engine::new(options());
        engine.load(&chunks).unwrap();
        report("load", start);
        let start = Instant::now();
        self.each_frame(|lsn, payload| engine.restore_body(lsn, payload).unwrap());
        engine.finish_recovery(self.engine.last_lsn()).unwrap();
        report("restore body", start);
    }

    fn each_frame(&self, mut each: impl FnMut(Lsn, &[u8])) {
        let mut begin = 0;
        for (lsn, end) in (1..).zip(&self.ends) {
            each(Lsn(lsn), &self.log[begin..*end]);
            begin = *end;
        }
    }
}

fn report(what: &str, start: Instant) {
    println!("{what}: {} ns", start.elapsed().as_nanos() / u128::from(MESSAGES));
}

fn options() -> EngineOptions {
    EngineOptions::new(StorePolicy::Always)
}
