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
mod house;
mod memory;
mod worst;

use std::hint::black_box;

use amqp::message::Message;
use client::Frames;
use house::Harness;
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
    let house = &mut Harness::new(policy, 2);
    match what {
        "scan" => scan(messages),
        "in" => produce(house, messages),
        "out" => consume(house, messages, None),
        "selected" => consume(house, messages, Some(SELECTOR)),
        "commit" => commit(house, messages),
        "commit-out" => commit_out(house, messages),
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

fn produce(house: &mut Harness, messages: u32) {
    house.send(PRODUCER, &client::hello("producer"));
    house.send(PRODUCER, &client::producer(NODE));
    let transfer = client::transfer(NODE, &client::message(), false);
    let mut frames = Frames::of(&transfer, BURST as usize);
    for first in (0..messages).step_by(BURST as usize) {
        let sent = house.send(PRODUCER, frames.numbered(first));
        assert!(sent > 0, "the broker answers");
    }
    assert_eq!(house.messages(), u64::from(messages), "all were stored");
}

fn consume(house: &mut Harness, messages: u32, selector: Option<&str>) {
    open_consumer(house, selector);
    produce(house, messages);
    let mut frames = Frames::of(&client::accept(false), BURST as usize);
    take(house, messages, |house, first| {
        house.send(CONSUMER, frames.numbered(first));
    });
}

/// A consumer without credit: a selector's view is there before the messages are.
fn open_consumer(house: &mut Harness, selector: Option<&str>) {
    house.send(CONSUMER, &client::hello("consumer"));
    house.send(CONSUMER, &client::consumer(NODE, selector));
}

/// Lets a consumer get the messages, and settle them in bursts by `settle`, which is told the
/// first delivery.
fn take(house: &mut Harness, messages: u32, mut settle: impl FnMut(&mut Harness, u32)) {
    let mut granted = 0;
    for first in (0..messages).step_by(BURST as usize) {
        if granted <= first + CREDIT / 2 {
            house.send(CONSUMER, &client::credit(NODE, first, CREDIT));
            granted = first + CREDIT;
        }
        settle(house, first);
    }
    assert_eq!(house.messages(), 0, "all are done with");
}

fn commit(house: &mut Harness, messages: u32) {
    house.send(PRODUCER, &client::hello("producer"));
    house.send(PRODUCER, &client::producer(NODE));
    house.send(PRODUCER, &client::coordinator(COORDINATOR));
    let mut transactions = Transactions::of(&client::transfer(NODE, &client::message(), true));
    for number in 0..messages {
        transactions.run(house, PRODUCER, number, number);
    }
    assert_eq!(house.messages(), u64::from(messages), "all were stored");
}

fn commit_out(house: &mut Harness, messages: u32) {
    open_consumer(house, None);
    house.send(CONSUMER, &client::coordinator(COORDINATOR));
    produce(house, messages);
    let mut transactions = Transactions::of(&client::accept(true));
    take(house, messages, |house, first| {
        for number in first..first + BURST {
            transactions.run(house, CONSUMER, number, number);
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
    fn run(&mut self, house: &mut Harness, connection: usize, transaction: u32, delivery: u32) {
        house.send(connection, self.declare.numbered(delivery));
        house.send(connection, self.part.enlisted(delivery, transaction));
        let sent = house.send(connection, self.commit.enlisted(delivery, transaction));
        assert!(sent > 0, "the broker answers");
    }
}
