//! Far more small messages than memory has room for, with bodies that cannot be paged out. By each
//! protocol, a sender waits while consumers take. If no consumer takes, it is refused by the
//! limit's name.

use std::ops::Range;
use std::thread;

use amqp::performative::Performative;
use amqp::state::{DeliveryState, Outcome};
use testkit::amqp_peer::{AmqpPeer, sender};

use crate::broker::Broker;
use crate::common::patience::until;
use crate::neighbours::Lines;

/// The least that a server can be given, and a quarter more.
const LIMIT: [&str; 2] = ["--memory-limit", "64M"];
const MEMORY_BYTES: usize = 80 << 20;

const MESSAGES: usize = 500_000;
const BATCH: usize = 500;

/// No message is refused while a consumer takes, though there are more than memory has room for.
#[test]
fn senders_are_slowed_while_others_take() {
    let broker = Broker::in_memory("blocked-by-memory", &LIMIT);
    let mut sender = Lines::new(broker.socket("redis"));
    let mut worker = Lines::new(broker.socket("redis"));
    let sending = thread::spawn(move || {
        for first in (0..MESSAGES).step_by(BATCH) {
            let commands = (first..first + BATCH).map(|number| format!("RPUSH q {number:08}\r\n"));
            sender.send(commands.collect::<String>());
            for _ in 0..BATCH {
                let answer = sender.line();
                assert!(answer.starts_with(':'), "after {first}: {answer}");
            }
        }
    });
    // Memory is full by then.
    await_waits(&broker, 1..2);
    let length = worker.ask("LLEN q")[1..].parse::<usize>().unwrap();
    assert!((MESSAGES / 4..MESSAGES).contains(&length), "{length} messages are there");
    for number in 0..MESSAGES {
        if number % BATCH == 0 {
            // As many as there are, or when they come.
            worker.send("BLPOP q 20\r\n".repeat(BATCH));
        }
        assert_eq!(worker.line(), "*2");
        assert_eq!((worker.line(), worker.line()), ("$1".into(), "q".into()));
        assert_eq!((worker.line(), worker.line()), ("$8".into(), format!("{number:08}")));
    }
    sending.join().unwrap();
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
}

#[test]
fn sends_by_any_protocol_await_memory() {
    let broker = Broker::in_memory("waits-for-memory", &LIMIT);
    let mut worker = Lines::new(broker.socket("redis"));
    let filled = fill(&broker, &mut worker);
    let mut peers = Peers::of(&broker);
    peers.send();
    await_waits(&broker, 7..8);
    // A consumer waits neither to take messages nor to settle them.
    for _ in 0..filled {
        assert_eq!(worker.ask("LPOP fill"), format!("${FILLING_BYTES}"));
        worker.skip(FILLING_BYTES + 2);
    }
    assert!(peers.beanstalkd.line().starts_with("INSERTED "));
    assert_eq!(peers.redis.line(), ":1");
    assert_eq!(peers.exec.line(), "*2");
    assert_eq!((peers.exec.line(), peers.exec.line()), (":1".into(), ":2".into()));
    assert_eq!(peers.http.line(), "HTTP/1.1 201 Created");
    assert_eq!(peers.transaction.line(), "HTTP/1.1 200 OK");
    assert_eq!(peers.lines.line(), "HTTP/1.1 201 Created");
    assert_eq!(peers.amqp.hear(outcome), Ok(()));
    let lengths = ["default", "redis", "exec", "http", "transaction", "lines", "amqp"]
        .map(|queue| worker.ask(&format!("LLEN {queue}")));
    assert_eq!(lengths, [":1", ":1", ":2", ":1", ":2", ":2", ":1"]);
}

#[test]
fn send_past_pace_max_names_limit() {
    let broker =
        Broker::in_memory("memory-refused", &[&LIMIT[..], &["--block-timeout", "1s"]].concat());
    let mut worker = Lines::new(broker.socket("redis"));
    fill(&broker, &mut worker);
    let mut peers = Peers::of(&broker);
    peers.send();
    assert_eq!(peers.beanstalkd.line(), "OUT_OF_MEMORY");
    let named = "--memory-limit";
    let refused = |line: String, with: &str| {
        assert!(line.starts_with(with) && line.contains(named), "{line}");
    };
    refused(peers.redis.line(), "-OOM command not allowed");
    refused(peers.exec.line(), "-EXECABORT Transaction discarded because of: OOM");
    for http in [&mut peers.http, &mut peers.transaction, &mut peers.lines] {
        assert_eq!(http.line(), "HTTP/1.1 507 Insufficient Storage");
    }
    let error = peers.amqp.hear(outcome).unwrap_err();
    assert!(error.starts_with("amqp:resource-limit-exceeded") && error.contains(named), "{error}");
    for queue in ["default", "redis", "exec", "http", "transaction", "lines", "amqp"] {
        assert_eq!(worker.ask(&format!("LLEN {queue}")), ":0", "{queue}");
    }
}

/// A session that no longer waits is not unblocked, not even by itself. A session that waits is
/// unblocked at once.
#[test]
fn late_transaction_unblocks_only_blocked_clients() {
    let broker = Broker::in_memory("unblocked-late", &LIMIT);
    let mut worker = Lines::new(broker.socket("redis"));
    let filled = fill(&broker, &mut worker);
    let mut blocked = Lines::new(broker.socket("redis"));
    let mut sender = Lines::new(broker.socket("redis"));
    let ids = [&mut blocked, &mut sender].map(|peer| peer.ask("CLIENT ID")[1..].to_owned());
    blocked.send("BLPOP empty 0\r\n");
    until("it is blocked", || {
        worker.send("INFO clients\r\n");
        let lines = std::iter::repeat_with(|| worker.line()).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().contains(&"blocked_clients:1".to_owned())
    });
    let unblock = ids.map(|id| format!("CLIENT UNBLOCK {id}\r\n")).concat();
    sender.send(format!("MULTI\r\nRPUSH late x\r\n{unblock}EXEC\r\nPING\r\n"));
    await_waits(&broker, 1..2);
    for _ in 0..filled {
        worker.ask("LPOP fill");
        worker.skip(FILLING_BYTES + 2);
    }
    let answers = ["+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3", ":1", ":1", ":0", "+PONG"];
    assert_eq!(answers.map(|_| sender.line()), answers);
    assert_eq!(blocked.line(), "*-1");
    assert_eq!(worker.ask("PING"), "+PONG");
}

/// A sender by each protocol, and in each way of it.
struct Peers {
    beanstalkd: Lines,
    redis: Lines,
    exec: Lines,
    http: Lines,
    transaction: Lines,
    lines: Lines,
    amqp: AmqpPeer,
}

impl Peers {
    fn of(broker: &Broker) -> Self {
        let lines = |protocol| Lines::new(broker.socket(protocol));
        let mut amqp = AmqpPeer::with_session(broker.socket("amqp"));
        amqp.say(&sender(0, "amqp"), &[]);
        amqp.hear(|heard| matches!(heard, Performative::Flow(_)).then_some(()));
        Self {
            beanstalkd: lines("beanstalkd"),
            redis: lines("redis"),
            exec: lines("redis"),
            http: lines("http"),
            transaction: lines("http"),
            lines: lines("http"),
            amqp,
        }
    }

    fn send(&mut self) {
        self.beanstalkd.send("put 0 0 60 1\r\nx\r\n");
        self.redis.send("RPUSH redis x\r\n");
        for answer in ["+OK", "+QUEUED", "+QUEUED"] {
            let command = if answer == "+OK" { "MULTI" } else { "RPUSH exec x" };
            assert_eq!(self.exec.ask(command), answer);
        }
        self.exec.send("EXEC\r\n");
        self.http.send(post("/queues/http/messages", "text/plain", "x"));
        let each = r#"{"queue": "transaction", "body": "x"}"#;
        let body = format!(r#"{{"send": [{each}, {each}]}}"#);
        self.transaction.send(post("/transactions", "application/json", &body));
        let body = "{\"body\": \"x\"}\n{\"body\": \"y\"}\n";
        self.lines.send(post("/queues/lines/messages", "application/x-ndjson", body));
        self.amqp.transfer(b"x", false);
    }
}

const FILLING_BYTES: usize = 1 << 20;

/// Pushes until nothing more is taken; says how many were.
fn fill(broker: &Broker, worker: &mut Lines) -> usize {
    let body = "x".repeat(FILLING_BYTES);
    let mut filler = Lines::new(broker.socket("redis"));
    for count in 0.. {
        filler.send(format!("*3\r\n$5\r\nRPUSH\r\n$4\r\nfill\r\n${FILLING_BYTES}\r\n{body}\r\n"));
        let stored = |worker: &mut Lines| worker.ask("LLEN fill") != format!(":{count}");
        let mut is_full = false;
        until("it is stored, or waits", || {
            is_full = waits(broker) > 0;
            is_full || stored(worker)
        });
        if is_full {
            // The send that waits goes with its client.
            drop(filler);
            await_waits(broker, 0..1);
            return count;
        }
    }
    unreachable!("memory is not without limit")
}

fn post(path: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// The outcome of a message sent by AMQP, with the reason of a refusal.
fn outcome(heard: Performative<'_>) -> Option<Result<(), String>> {
    let Performative::Disposition(told) = heard else { return None };
    Some(match told.state {
        Some(DeliveryState::Outcome(Outcome::Accepted)) => Ok(()),
        Some(DeliveryState::Outcome(Outcome::Rejected(Some(error)))) => {
            let description = error.description.unwrap_or_default();
            Err(format!("{}: {description}", error.condition))
        }
        other => panic!("{other:?}"),
    })
}

/// Until so many wait for memory.
fn await_waits(broker: &Broker, counts: Range<u64>) {
    until(&format!("{counts:?} wait"), || counts.contains(&waits(broker)));
}

fn waits(broker: &Broker) -> u64 {
    let mut http = Lines::new(broker.socket("http"));
    let (status, _, metrics) = http.request("GET", "/metrics", "");
    assert_eq!(status, 200);
    let line = metrics.lines().find_map(|line| line.strip_prefix("dunlin_memory_waits "));
    line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}
