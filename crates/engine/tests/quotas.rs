//! Quotas: what a user has, and what it gets no more of.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, DeadReason, Destination, End, Format, LinkId, ListCommand, Nanos,
    NewMessage, Persistence, Principal, QueueName, Quota, QuotaReached, Quotas, Refusal, Reply,
    Rights, Rule, SessionId, Settlement, StorePolicy, Subscription, SubscriptionName, TableAction,
    TableStep, TransactionId,
};

use crate::support::log::{Log, Snapshot};

const ANN: SessionId = SessionId(1);
const BOB: SessionId = SessionId(2);
const LINK: LinkId = LinkId(0);
const WORK: TransactionId = TransactionId(1);

struct Harness {
    engine: Engine,
    effects: Effects,
    log: Log,
}

impl Harness {
    /// Ann has these quotas, and Bob has none.
    fn new(quotas: &[(Quota, u64)]) -> Self {
        let engine = Engine::new(EngineOptions::new(StorePolicy::Always));
        let mut harness = Self { engine, effects: Effects::default(), log: Log::default() };
        harness.log_in(quotas);
        harness
    }

    fn log_in(&mut self, quotas: &[(Quota, u64)]) {
        let mut all = Quotas::default();
        quotas.iter().for_each(|(quota, max)| all.set(*quota, Some(*max)));
        for (session, user, quotas) in [(ANN, "ann", all), (BOB, "bob", Quotas::default())] {
            self.engine.open_session(session);
            let rights = Rights::new(user.into(), [&Rule::everything()], []).within(quotas);
            self.engine.act_for(session, Principal::User(Arc::new(rights)));
        }
    }

    fn ask(&mut self, session: SessionId, command: Command) -> Reply {
        let capacity = Capacity::UNBOUNDED;
        self.engine.handle(Nanos::SECOND, session, command, capacity, &mut self.effects);
        let outputs = self.effects.outputs.iter();
        let reply = outputs.rev().find(|output| output.session == session);
        let reply = reply.map_or(Reply::Done, |output| output.reply.clone());
        self.log.absorb(&self.effects);
        self.effects.clear();
        self.engine.check();
        reply
    }

    /// Commands that a quota stood against.
    fn refused(&self) -> u64 {
        self.engine.statistics().over_quota_total
    }

    fn put(&mut self, session: SessionId, queue: &str, body: &[u8]) -> Reply {
        self.ask(session, put(queue, body, None))
    }

    /// The process ends and starts again.
    fn restart(&mut self, snapshot: bool, quotas: &[(Quota, u64)]) {
        let snapshot = snapshot.then(|| Snapshot::whole(&self.engine));
        let options = EngineOptions::new(StorePolicy::Always);
        self.engine = self.log.recover(options, snapshot.as_ref());
        self.engine.check();
        self.log_in(quotas);
    }
}

fn put(queue: &str, body: &[u8], transaction: Option<TransactionId>) -> Command {
    let (to, message) = (Destination::Queue(name(queue)), NewMessage::new(body.into()));
    Command::PutTo { to, message, transaction }
}

fn push(queue: &str, elements: &[&[u8]]) -> Command {
    Command::List(ListCommand::Push {
        queue: name(queue),
        end: End::Tail,
        elements: elements.iter().map(|it| Arc::from(*it)).collect::<Vec<_>>().into(),
        only_existing: false,
        persistence: Persistence::Persistent,
    })
}

fn pop(queue: &str) -> Command {
    Command::List(ListCommand::Pop { queue: name(queue), end: End::Head, max: 1 })
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn reached(quota: Quota, max: u64) -> Reply {
    let user = "ann".into();
    Reply::Refused(Refusal::QuotaReached(Box::new(QuotaReached { user, quota, max })))
}

fn is_stored(reply: &Reply) -> bool {
    matches!(reply, Reply::Stored { .. })
}

#[test]
fn message_quota_counts_one_users_messages() {
    let mut engine = Harness::new(&[(Quota::Messages, 2)]);
    assert!(is_stored(&engine.put(ANN, "a", b"1")) && is_stored(&engine.put(ANN, "b", b"2")));
    assert_eq!(engine.put(ANN, "a", b"3"), reached(Quota::Messages, 2));
    assert!(is_stored(&engine.put(BOB, "a", b"3")), "another user has what it had");
    assert_eq!(engine.ask(ANN, push("c", &[b"1"])), reached(Quota::Messages, 2));
    engine.ask(BOB, pop("b"));
    // A message that Bob has popped is still Ann's, until Bob's next command settles it.
    engine.ask(BOB, Command::ListQueues);
    assert!(is_stored(&engine.put(ANN, "a", b"3")));
}

#[test]
fn byte_quota_counts_bodies() {
    let mut engine = Harness::new(&[(Quota::Bytes, 10)]);
    assert!(is_stored(&engine.put(ANN, "a", b"12345678")));
    assert_eq!(engine.put(ANN, "a", b"123"), reached(Quota::Bytes, 10));
    assert!(is_stored(&engine.put(ANN, "a", b"12")) && is_stored(&engine.put(ANN, "a", b"")));
    assert_eq!(engine.ask(ANN, push("c", &[b"", b"x"])), reached(Quota::Bytes, 10));
}

#[test]
fn held_quotas_outlive_restarts() {
    for snapshot in [false, true] {
        let quotas = [(Quota::Messages, 3), (Quota::Bytes, 100), (Quota::Queues, 2)];
        let mut engine = Harness::new(&quotas);
        engine.put(ANN, "a", b"1");
        engine.ask(ANN, push("b", &[b"2"]));
        let mut formatted = NewMessage { format: Format(1), ..NewMessage::new((*b"3").into()) };
        formatted.expires = Some(Nanos::from_secs(1_000));
        let to = Destination::Queue(name("a"));
        engine.ask(ANN, Command::PutTo { to, message: formatted, transaction: None });
        engine.restart(snapshot, &quotas);
        assert_eq!(engine.put(ANN, "a", b"4"), reached(Quota::Messages, 3), "{snapshot}");
        engine.ask(BOB, pop("b"));
        engine.ask(BOB, pop("a"));
        engine.ask(BOB, Command::ListQueues);
        assert!(is_stored(&engine.put(ANN, "b", b"4")));
        assert!(is_stored(&engine.put(ANN, "a", b"5")));
        assert_eq!(engine.put(ANN, "a", &[0; 99]), reached(Quota::Messages, 3));
    }
}

#[test]
fn queue_quota_counts_queues_made() {
    let mut engine = Harness::new(&[(Quota::Queues, 1)]);
    assert!(is_stored(&engine.put(BOB, "bobs", b"1")));
    assert!(is_stored(&engine.put(ANN, "bobs", b"1")), "it is there");
    assert!(is_stored(&engine.put(ANN, "own", b"1")));
    assert_eq!(engine.put(ANN, "more", b"1"), reached(Quota::Queues, 1));
    let watch = Command::Watch { link: LINK, queue: name("more") };
    assert_eq!(engine.ask(ANN, watch), reached(Quota::Queues, 1));
    assert_eq!(engine.refused(), 2);
    engine.ask(ANN, pop("own"));
    engine.ask(ANN, Command::ListQueues);
    assert!(is_stored(&engine.put(ANN, "more", b"1")), "a queue goes with its last message");
}

#[test]
fn link_quota_is_for_one_connection() {
    let mut engine = Harness::new(&[(Quota::Links, 2)]);
    let to = || Destination::Queue(name("a"));
    let open = |link| Command::OpenProducer { link: LinkId(link), to: to() };
    assert_eq!(engine.ask(ANN, open(1)), Reply::Done);
    assert_eq!(engine.ask(ANN, Command::Watch { link: LinkId(2), queue: name("a") }), Reply::Done);
    assert_eq!(engine.ask(ANN, open(3)), reached(Quota::Links, 2));
    assert_eq!(engine.ask(ANN, open(1)), Reply::Done, "it takes the place of the first");
    assert_eq!(engine.ask(ANN, Command::Watch { link: LinkId(2), queue: name("b") }), Reply::Done);
    engine.ask(ANN, Command::CloseProducer { link: LinkId(1) });
    assert_eq!(engine.ask(ANN, open(3)), Reply::Done);
}

#[test]
fn subscription_quota_counts_durable_ones() {
    let mut engine = Harness::new(&[(Quota::Subscriptions, 1)]);
    let subscribe = |link: u32, text: &str, durable: bool| {
        let it = SubscriptionName { user: None, client: None, name: name(text), durable };
        let topic = Subscription { name: Some(it), ..Subscription::new(name("t")) };
        Command::Subscribe { link: LinkId(link), subscription: Box::new(topic) }
    };
    assert_eq!(engine.ask(ANN, subscribe(1, "first", true)), Reply::Done);
    assert_eq!(engine.ask(ANN, subscribe(2, "second", true)), reached(Quota::Subscriptions, 1));
    assert_eq!(engine.ask(ANN, subscribe(3, "third", false)), Reply::Done);
    assert_eq!(engine.ask(BOB, subscribe(2, "second", true)), Reply::Done);
    engine.restart(true, &[(Quota::Subscriptions, 1)]);
    assert_eq!(engine.ask(ANN, subscribe(2, "second", true)), reached(Quota::Subscriptions, 1));
    assert_eq!(engine.ask(ANN, subscribe(1, "first", true)), Reply::Done, "it is there");
    assert_eq!(engine.refused(), 1);
}

#[test]
fn topic_copies_count_to_no_sender() {
    let mut engine = Harness::new(&[(Quota::Messages, 1)]);
    let it = SubscriptionName { user: None, client: None, name: name("s"), durable: true };
    let topic = Subscription { name: Some(it), ..Subscription::new(name("t")) };
    engine.ask(BOB, Command::Subscribe { link: LINK, subscription: Box::new(topic) });
    for _ in 0..3 {
        let message = NewMessage::new((*b"x").into());
        let reply = engine.ask(ANN, Command::Publish { topic: name("t"), message });
        assert!(!matches!(reply, Reply::Refused(_)), "{reply:?}");
    }
}

#[test]
fn transaction_quota_rolls_back() {
    let mut engine = Harness::new(&[(Quota::TransactionMessages, 2)]);
    engine.ask(ANN, Command::Begin { transaction: WORK });
    assert_eq!(engine.ask(ANN, put("a", b"1", Some(WORK))), Reply::Done);
    assert_eq!(engine.ask(ANN, put("a", b"2", Some(WORK))), Reply::Done);
    let third = engine.ask(ANN, put("a", b"3", Some(WORK)));
    assert_eq!(third, reached(Quota::TransactionMessages, 2));
    let end = engine.ask(ANN, Command::Commit { transaction: WORK });
    assert_eq!(end, Reply::Refused(Refusal::TransactionFailed));
    let batch = Command::Batch { commands: vec![push("a", &[b"1", b"2"]), push("b", &[b"3"])] };
    assert_eq!(engine.ask(ANN, batch), reached(Quota::TransactionMessages, 2));
}

#[test]
fn steps_on_tables_count_to_transactions() {
    let mut engine = Harness::new(&[(Quota::TransactionBytes, 1_000)]);
    engine.ask(ANN, Command::Begin { transaction: WORK });
    let step = |bytes: usize| {
        let action = TableAction::Put(vec![b'x'; bytes].into());
        let step = TableStep { table: name("t"), key: (*b"k").into(), action };
        Command::Table { step: Box::new(step), transaction: WORK }
    };
    assert_eq!(engine.ask(ANN, step(500)), Reply::Done);
    assert_eq!(engine.ask(ANN, step(500)), reached(Quota::TransactionBytes, 1_000));
    let end = engine.ask(ANN, Command::Commit { transaction: WORK });
    assert_eq!(end, Reply::Refused(Refusal::TransactionFailed));
    engine.ask(BOB, Command::Begin { transaction: WORK });
    assert_eq!(engine.ask(BOB, step(5_000)), Reply::Done, "nothing bounds him");
}

#[test]
fn commit_counts_what_it_settles() {
    let mut engine = Harness::new(&[(Quota::Messages, 1)]);
    engine.put(ANN, "in", b"1");
    engine.ask(ANN, Command::Watch { link: LINK, queue: name("in") });
    let receive = Command::Receive { link: LINK, wait: None, margin: Nanos::ZERO, lease: None };
    let Reply::Delivered(delivery) = engine.ask(ANN, receive) else { panic!() };
    let turn = |transaction| Command::Begin { transaction };
    engine.ask(ANN, turn(WORK));
    assert_eq!(engine.ask(ANN, put("out", b"2", Some(WORK))), Reply::Done);
    let other = TransactionId(2);
    engine.ask(ANN, turn(other));
    assert_eq!(engine.ask(ANN, put("out", b"3", Some(other))), Reply::Done);
    let commit = engine.ask(ANN, Command::Commit { transaction: other });
    assert_eq!(commit, reached(Quota::Messages, 1));
    let settle = Command::Settle {
        message: delivery.message,
        settlement: Settlement::Accept,
        transaction: Some(WORK),
    };
    engine.ask(ANN, settle);
    assert_eq!(engine.ask(ANN, Command::Commit { transaction: WORK }), Reply::Done);
}

#[test]
fn repeated_send_is_told_so() {
    let mut engine = Harness::new(&[(Quota::Messages, 1)]);
    let sent = || {
        let message = NewMessage { send_id: Some("id".into()), ..NewMessage::new((*b"x").into()) };
        Command::PutTo { to: Destination::Queue(name("a")), message, transaction: None }
    };
    let first = engine.ask(ANN, sent());
    assert!(is_stored(&first));
    assert_eq!(engine.ask(ANN, sent()), first);
}

#[test]
fn moved_element_stays_its_senders() {
    let mut engine = Harness::new(&[(Quota::Messages, 1)]);
    engine.ask(ANN, push("a", &[b"1"]));
    let go = ListCommand::Move {
        from: name("a"),
        from_end: End::Head,
        to: name("b"),
        to_end: End::Tail,
        wait: None,
    };
    engine.ask(BOB, Command::List(go));
    assert_eq!(engine.ask(ANN, push("a", &[b"2"])), reached(Quota::Messages, 1));
    engine.restart(false, &[(Quota::Messages, 1)]);
    assert_eq!(engine.ask(ANN, push("a", &[b"2"])), reached(Quota::Messages, 1));
}

#[test]
fn run_is_refused_command_by_command() {
    let mut engine = Harness::new(&[(Quota::Messages, 2)]);
    let run = |count: usize| {
        let elements = vec![Arc::from(*b"x"); count].into();
        let (queue, persistence) = (name("a"), Persistence::Persistent);
        ListCommand::PushEach { queue, end: End::Tail, elements, persistence }
    };
    assert_eq!(engine.ask(ANN, Command::List(run(2))), Reply::Count(2));
    assert_eq!(engine.ask(ANN, Command::List(run(3))), Reply::NotBatchable(Box::new(run(3))));
}

#[test]
fn waiting_move_is_its_users() {
    for quotas in [[(Quota::Queues, 1)], [(Quota::Queues, 2)]] {
        let mut engine = Harness::new(&quotas);
        assert!(is_stored(&engine.put(ANN, "own", b"1")));
        let wait = |from: &str, to: &str| {
            Command::List(ListCommand::Move {
                from: name(from),
                from_end: End::Head,
                to: name(to),
                to_end: End::Tail,
                wait: None,
            })
        };
        engine.put(BOB, "from", b"1");
        engine.ask(BOB, pop("from"));
        engine.ask(BOB, wait("from", "bobs"));
        let from = || Destination::Queue(name("from"));
        engine.ask(BOB, Command::OpenProducer { link: LinkId(9), to: from() });
        engine.ask(ANN, push("from", &[b"2"]));
        let moved = engine.ask(BOB, Command::QueueStatistics { queue: name("bobs") });
        assert!(!matches!(moved, Reply::NotFound | Reply::Refused(_)), "{moved:?}");
        // The queue is Bob's.
        engine.ask(ANN, pop("own"));
        engine.ask(ANN, Command::ListQueues);
        assert!(is_stored(&engine.put(ANN, "more", b"1")));
    }
}

#[test]
fn waiting_move_is_within_quotas() {
    let mut engine = Harness::new(&[(Quota::Queues, 1)]);
    assert!(is_stored(&engine.put(ANN, "own", b"1")));
    engine.put(BOB, "from", b"1");
    engine.ask(BOB, Command::OpenProducer { link: LINK, to: Destination::Queue(name("from")) });
    engine.ask(BOB, pop("from"));
    let wait = ListCommand::Move {
        from: name("from"),
        from_end: End::Head,
        to: name("more"),
        to_end: End::Tail,
        wait: None,
    };
    engine.ask(ANN, Command::List(wait));
    let capacity = Capacity::UNBOUNDED;
    let pushed = push("from", &[b"2"]);
    engine.engine.handle(Nanos::SECOND, BOB, pushed, capacity, &mut engine.effects);
    let mut told = engine.effects.outputs.iter().filter(|output| output.session == ANN);
    assert_eq!(told.next().map(|output| output.reply.clone()), Some(reached(Quota::Queues, 1)));
    assert_eq!(engine.refused(), 1);
}

#[test]
fn commits_that_wait_are_within_quotas() {
    let options =
        EngineOptions { frame_bytes_max: 3_000, ..EngineOptions::new(StorePolicy::Always) };
    let quotas = [(Quota::Messages, 5)];
    let mut engine = Harness::new(&quotas);
    engine.engine = Engine::new(options);
    engine.log_in(&quotas);
    let works = [WORK, TransactionId(2)];
    for transaction in works {
        engine.ask(ANN, Command::Begin { transaction });
        for _ in 0..4 {
            assert_eq!(engine.ask(ANN, put("a", &[b'x'; 1_000], Some(transaction))), Reply::Done);
        }
    }
    for transaction in works {
        engine.ask(ANN, Command::Commit { transaction });
    }
    let mut replies = Vec::new();
    while engine.engine.awaited_room().is_some() {
        let Harness { engine, effects, log } = &mut engine;
        engine.commit_awaiting(Nanos::SECOND, true, Capacity::UNBOUNDED, effects);
        replies.extend(effects.outputs.iter().map(|output| output.reply.clone()));
        log.absorb(effects);
        effects.clear();
        engine.check();
    }
    assert_eq!(replies, [Reply::Done, reached(Quota::Messages, 5)]);
    assert_eq!(engine.engine.statistics().over_quota_total, 1);
}

#[test]
fn links_of_others_count_to_none() {
    let mut engine = Harness::new(&[(Quota::Links, 1)]);
    engine.engine.share_session(ANN);
    let watch = |link| Command::Watch { link: LinkId(link), queue: name("a") };
    for link in 1..4 {
        assert_eq!(engine.ask(ANN, watch(link)), Reply::Done);
    }
    engine.restart(false, &[(Quota::Links, 0)]);
    engine.engine.share_session(ANN);
    assert_eq!(engine.ask(ANN, watch(1)), reached(Quota::Links, 0));
}

#[test]
fn dead_letters_make_no_ones_queue() {
    let quotas = [(Quota::Queues, 1)];
    for snapshot in [false, true] {
        let mut engine = Harness::new(&quotas);
        engine.put(ANN, "in", b"1");
        engine.ask(BOB, Command::Watch { link: LINK, queue: name("in") });
        let receive = Command::Receive { link: LINK, wait: None, margin: Nanos::ZERO, lease: None };
        let Reply::Delivered(delivery) = engine.ask(BOB, receive) else { panic!() };
        let settlement = Settlement::Park(DeadReason::Rejected);
        let command = Command::Settle { message: delivery.message, settlement, transaction: None };
        engine.ask(BOB, command);
        engine.restart(snapshot, &quotas);
        assert!(is_stored(&engine.put(ANN, "own", b"2")), "{snapshot}");
        assert_eq!(engine.put(ANN, "more", b"3"), reached(Quota::Queues, 1));
    }
}
