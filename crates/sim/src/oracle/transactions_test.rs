//! Replies to clients of AMQP that the oracle accepts, and those that it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use amqp::message;
use model::{
    DeadReason, Delivery, Durability, LinkId, MessageId, QueueName, StorePolicy, Subscription,
    SubscriptionName,
};

use super::*;

const LINK: LinkId = LinkId(7);
const TRANSACTION: TransactionId = TransactionId(0);

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn new_message() -> NewMessage {
    let mut body = Vec::new();
    message::data(&mut body, b"body");
    NewMessage { format: amqp::FORMAT, ..NewMessage::new(body.into()) }
}

fn put_to(to: Destination, transaction: Option<TransactionId>) -> Command {
    Command::PutTo { to, message: new_message(), transaction }
}

fn settle(id: u64, settlement: Settlement, transaction: Option<TransactionId>) -> Command {
    Command::Settle { message: MessageId(id), settlement, transaction }
}

fn delivery(id: u64, failed: u32) -> Delivery {
    let body: std::sync::Arc<[u8]> = b"body".as_slice().into();
    let durability = Durability::Synced;
    Delivery { link: Some(LINK), failed, durability, ..Delivery::new(MessageId(id), body) }
}

/// An oracle, and the time that passes with each thing that it hears.
#[derive(Clone)]
struct TimedOracle {
    oracle: Oracle,
    now: Nanos,
}

impl TimedOracle {
    /// A client that consumes from the queue `q`, with credit for two.
    fn new() -> Self {
        let oracle = Oracle::new(StorePolicy::Always, Nanos::ZERO);
        let mut timed = Self { oracle, now: Nanos::from_secs(1) };
        let mode = model::ConsumerMode::Take;
        let open = Command::OpenConsumer { link: LINK, queue: name("q"), selector: None, mode };
        timed.hears(1, &open, Some(&Reply::Done));
        timed.hears(
            1,
            &Command::Credit { link: LINK, limit: 2, bytes: u64::MAX, drain: false },
            None,
        );
        timed
    }

    fn hears(&mut self, client: u64, command: &Command, reply: Option<&Reply>) -> Changes {
        self.now = self.now + Nanos(1);
        self.oracle.commanded(self.now, client, command, reply)
    }

    fn puts(&mut self, id: u64) -> Changes {
        let stored = Reply::Stored { message: MessageId(id) };
        self.hears(2, &put_to(Destination::Queue(name("q")), None), Some(&stored))
    }

    fn delivers(&mut self, id: u64, failed: u32) -> Changes {
        self.now = self.now + Nanos(1);
        self.oracle.delivered(self.now, 1, &delivery(id, failed))
    }

    /// True if one thing more may be so.
    fn may(&self, then: impl FnOnce(&mut Self)) -> bool {
        let mut copy = self.clone();
        catch_unwind(AssertUnwindSafe(|| then(&mut copy))).is_ok()
    }
}

#[test]
fn oracle_checks_holding_and_credit() {
    let mut timed = TimedOracle::new();
    for id in 1..=3 {
        timed.puts(id);
    }
    assert!(!timed.may(|it| _ = it.delivers(2, 0)), "the first is ready");
    timed.delivers(1, 0);
    assert!(!timed.may(|it| _ = it.delivers(1, 0)), "it is held");
    assert!(!timed.may(|it| it.oracle.assert_served(it.now + Nanos(1))), "there is credit");
    timed.delivers(2, 0);
    assert!(!timed.may(|it| _ = it.delivers(3, 0)), "there is no credit left");
    assert!(timed.may(|it| it.oracle.assert_served(it.now + Nanos(1))));
}

#[test]
fn oracle_lets_only_holder_settle() {
    let mut timed = TimedOracle::new();
    timed.puts(1);
    timed.delivers(1, 0);
    let accept = settle(1, Settlement::Accept, None);
    assert!(!timed.may(|it| _ = it.hears(2, &accept, Some(&Reply::Done))));
    timed.hears(1, &accept, Some(&Reply::Done));
    assert!(!timed.may(|it| _ = it.delivers(1, 0)));
    assert!(timed.may(|it| _ = it.hears(1, &accept, Some(&Reply::NotFound))));
}

#[test]
fn oracle_counts_failures_to_dead_letter() {
    let mut timed = TimedOracle::new();
    timed.hears(1, &Command::Credit { link: LINK, limit: 9, bytes: u64::MAX, drain: false }, None);
    timed.puts(1);
    for failed in 0..crate::oracle::MAX_DELIVERY_ATTEMPTS {
        assert!(!timed.may(|it| _ = it.delivers(1, failed + 1)), "not so often");
        timed.delivers(1, failed);
        timed.hears(1, &settle(1, Settlement::Fail, None), Some(&Reply::Done));
    }
    assert!(!timed.may(|it| _ = it.delivers(1, 3)), "it is in another queue");
    let content = timed.oracle.messages.get(&1).unwrap().content.clone();
    let dead = content.dead.unwrap();
    assert_eq!((&*content.queue, dead.reason, dead.attempts), ("DLQ", DeadReason::Attempts, 3));
}

#[test]
fn transaction_is_one_step_at_commit() {
    let mut timed = TimedOracle::new();
    timed.puts(1);
    timed.delivers(1, 0);
    timed.hears(1, &Command::Begin { transaction: TRANSACTION }, Some(&Reply::Done));
    let put = put_to(Destination::Queue(name("q")), Some(TRANSACTION));
    let accept = settle(1, Settlement::Accept, Some(TRANSACTION));
    assert_eq!(timed.hears(1, &put, Some(&Reply::Done)), NOTHING);
    assert_eq!(timed.hears(1, &accept, Some(&Reply::Done)), NOTHING);
    assert!(!timed.may(|it| _ = it.delivers(2, 0)), "it is not there");
    assert!(!timed.may(|it| _ = it.hears(1, &accept, Some(&Reply::Done))), "it is settled once");

    let mut undone = timed.clone();
    let rollback = Command::Rollback { transaction: TRANSACTION };
    undone.hears(1, &rollback, Some(&Reply::Done));
    assert!(undone.may(|it| _ = it.delivers(1, 1)), "as before, and one attempt more");
    assert!(!undone.may(|it| _ = it.delivers(1, 0)));

    let commit = Command::Commit { transaction: TRANSACTION };
    assert_eq!(timed.hears(1, &commit, Some(&Reply::Done)).len(), 2);
    assert!(timed.may(|it| _ = it.delivers(2, 0)));
    assert!(!timed.may(|it| _ = it.hears(1, &commit, Some(&Reply::Done))), "it is over");
}

#[test]
fn topic_copies_end_with_their_subscription() {
    let mut timed = TimedOracle::new();
    let owned = |text| SubscriptionName {
        user: None,
        client: Some(name("one")),
        name: name(text),
        durable: true,
    };
    for (link, text) in [(8, "first"), (9, "second")] {
        let subscription =
            Subscription { name: Some(owned(text)), ..Subscription::new(name("news")) };
        let (link, subscription) = (LinkId(link), Box::new(subscription));
        let subscribe = Command::Subscribe { link, subscription };
        timed.hears(1, &subscribe, Some(&Reply::Done));
        timed.hears(1, &Command::CloseConsumer { link }, Some(&Reply::Done));
    }
    let put = put_to(Destination::Topic(name("news")), None);
    let stored = Reply::Stored { message: MessageId(1) };
    assert!(!timed.may(|it| _ = it.hears(2, &put, Some(&Reply::Done))), "there are takers");
    assert_eq!(timed.hears(2, &put, Some(&stored)).len(), 2);
    let end = Command::Unsubscribe { name: owned("first") };
    assert_eq!(timed.hears(2, &end, Some(&Reply::Done)).len(), 2, "itself and its message");
    assert!(!timed.may(|it| _ = it.hears(2, &end, Some(&Reply::Done))), "it is gone");
    assert_eq!(timed.oracle.ids().collect::<Vec<_>>(), [2]);
}
