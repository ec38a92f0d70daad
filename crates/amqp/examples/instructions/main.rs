//! Messages through connection, engine and log, to count their instructions:
//! `cargo xtask instructions` runs it under callgrind with two counts of messages and prints the
//! difference.
//!
//! `instructions CASE STORE COUNT`, where STORE is `none` or `always`, and CASE one of
//!
//! * `scan`: finds the sections of the message, and nothing else
//! * `in`: a client sends messages to a queue, and is answered
//! * `out`: the same; then another gets and accepts them
//! * `selected`: the same, by a selector that wants all of them
//! * `commit`: a client sends each message in a transaction of its own
//! * `commit-out`: messages as of `in` are accepted in transactions, each in one of its own
//!
//! or the name of a shape in `worst`, of which each of COUNT is 16 KiB.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is a measurement")]

mod client;
mod harness;
mod memory;
mod worst;

use std::hint::black_box;

use amqp::message::Message;
use client::Frames;
use harness::Harness;
use model::StorePolicy;

/// Frames that come in one read.
const BURST: u32 = 16;

/// Qpid JMS' prefetch.
const CREDIT: u32 = 1_000;

const PRODUCER: usize = 0;
const CONSUMER: usize = 1;

/// Handles of links.
const NODE: u32 = 0;
const COORDINATOR: u32 = 1;

const SELECTOR: &str = "colour = 'blue' AND weight > 2500 AND JMSPriority = 4";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [what, store, count] = words[..] else { panic!("instructions WHAT STORE COUNT") };
    let policy = match store {
        "none" => StorePolicy::Memory,
        "always" => StorePolicy::Always,
        _ => panic!("the store is none or always"),
    };
    let count: u32 = count.parse().unwrap();
    let messages = count.next_multiple_of(BURST);
    let harness = &mut Harness::new(policy, 2);
    match what {
        "scan" => scan(messages),
        "in" => produce(harness, messages),
        "out" => consume(harness, messages, None),
        "selected" => consume(harness, messages, Some(SELECTOR)),
        "commit" => commit(harness, messages),
        "commit-out" => commit_out(harness, messages),
        shape => worst::run(shape, count),
    }
}

fn scan(messages: u32) {
    let message = client::message();
    for _ in 0..messages {
        let found = Message::scan(black_box(&message)).unwrap();
        assert_eq!(black_box(found).bytes().len(), message.len());
    }
}

fn produce(harness: &mut Harness, messages: u32) {
    harness.send(PRODUCER, &client::hello("producer"));
    harness.send(PRODUCER, &client::producer(NODE));
    let transfer = client::transfer(NODE, &client::message(), false);
    let mut frames = Frames::of(&transfer, BURST as usize);
    for first in (0..messages).step_by(BURST as usize) {
        let sent = harness.send(PRODUCER, frames.numbered(first));
        assert!(sent > 0, "the broker answers");
    }
    assert_eq!(harness.messages(), u64::from(messages), "all were stored");
}

fn consume(harness: &mut Harness, messages: u32, selector: Option<&str>) {
    open_consumer(harness, selector);
    produce(harness, messages);
    let mut frames = Frames::of(&client::accept(false), BURST as usize);
    take(harness, messages, |harness, first| {
        harness.send(CONSUMER, frames.numbered(first));
    });
}

/// A consumer without credit: a selector's view is there before the messages are.
fn open_consumer(harness: &mut Harness, selector: Option<&str>) {
    harness.send(CONSUMER, &client::hello("consumer"));
    harness.send(CONSUMER, &client::consumer(NODE, selector));
}

/// Lets a consumer get the messages, and settle them in bursts by `settle`, which is told the
/// first delivery.
fn take(harness: &mut Harness, messages: u32, mut settle: impl FnMut(&mut Harness, u32)) {
    let mut granted = 0;
    for first in (0..messages).step_by(BURST as usize) {
        if granted <= first + CREDIT / 2 {
            harness.send(CONSUMER, &client::credit(NODE, first, CREDIT));
            granted = first + CREDIT;
        }
        settle(harness, first);
    }
    assert_eq!(harness.messages(), 0, "all are done with");
}

fn commit(harness: &mut Harness, messages: u32) {
    harness.send(PRODUCER, &client::hello("producer"));
    harness.send(PRODUCER, &client::producer(NODE));
    harness.send(PRODUCER, &client::coordinator(COORDINATOR));
    let mut transactions = Transactions::of(&client::transfer(NODE, &client::message(), true));
    for number in 0..messages {
        transactions.run(harness, PRODUCER, number, number);
    }
    assert_eq!(harness.messages(), u64::from(messages), "all were stored");
}

fn commit_out(harness: &mut Harness, messages: u32) {
    open_consumer(harness, None);
    harness.send(CONSUMER, &client::coordinator(COORDINATOR));
    produce(harness, messages);
    let mut transactions = Transactions::of(&client::accept(true));
    take(harness, messages, |harness, first| {
        for number in first..first + BURST {
            transactions.run(harness, CONSUMER, number, number);
        }
    });
}

/// Transactions with one frame each.
struct Transactions {
    declare: Frames,
    part: Frames,
    commit: Frames,
}

impl Transactions {
    fn of(part: &[u8]) -> Self {
        Self {
            declare: Frames::of(&client::declare(COORDINATOR), 1),
            part: Frames::of(part, 1),
            commit: Frames::of(&client::commit(COORDINATOR), 1),
        }
    }

    /// One transaction of a connection, with its part on `delivery`; each frame waits for the
    /// answer to the one before.
    fn run(&mut self, harness: &mut Harness, connection: usize, transaction: u32, delivery: u32) {
        harness.send(connection, self.declare.numbered(delivery));
        harness.send(connection, self.part.enlisted(delivery, transaction));
        let sent = harness.send(connection, self.commit.enlisted(delivery, transaction));
        assert!(sent > 0, "the broker answers");
    }
}
