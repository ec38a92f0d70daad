//! Limits, large numbers, and faults that [`Engine::check`] sees: scripts cannot show these.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;

use model::{
    Capacity, ConsumerMode, Destination, End, KeyCommand, KeyKind, LinkId, ListCommand,
    MessageGroup, NewMessage, OneOrMany, Persistence, QueueName, Script, ScriptCommands,
    ScriptProgram, ScriptValue, Settlement, StorePolicy, TransactionId,
};

use crate::bodies::Stored;
use crate::engine::*;
use crate::ids::{ConsumerKey, QueueSlot};
use crate::store::dispatch::Entry;
use crate::store::message::Message;
use crate::store::message_groups::MessageGroups;
use crate::{FrameEnd, QueuePolicies, RecordView, describe};

extern crate std;

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);

#[test]
fn queue_over_limit_is_refused() {
    let mut pair = Pair::new();
    pair.engine.store.queues.bound(2);
    assert_eq!(pair.watch("b"), Reply::Done);
    let refused = Reply::Refused(Refusal::TooManyQueues { max: 2 });
    assert_eq!(pair.watch("c"), refused);
    assert_eq!(pair.produce("c"), refused);
    assert_eq!(pair.produce("b"), Reply::Done, "those that exist are no more");
    assert_eq!(pair.watch("default"), Reply::Done);
    assert_eq!(pair.unwatch("default"), Reply::Done);
    assert_eq!(pair.watch("c"), Reply::Done, "one went");
}

/// Sets a value, and then would put a list in its place.
#[derive(Debug)]
struct InPlace;

impl ScriptProgram for InPlace {
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue {
        let name = || QueueName::new("v").unwrap();
        let values = vec![(name(), Arc::from(*b"x"))];
        assert_eq!(commands.perform(set(values)), Reply::Done);
        let list = ListCommand::Push {
            queue: name(),
            end: End::Tail,
            elements: OneOrMany::One(Arc::from(*b"x")),
            only_existing: false,
            persistence: Persistence::Persistent,
        };
        let delete = KeyCommand::Delete { names: vec![name()] };
        let refused = commands.perform_all(vec![delete.into(), list.into()]);
        assert_eq!(refused, Err(Refusal::TooManyQueues { max: 1 }));
        let kind = commands.perform(KeyCommand::Kind { name: name() }.into());
        assert_eq!(kind, Reply::Kind(Some(KeyKind::Value)));
        ScriptValue::Status(Vec::new())
    }
}

fn set(values: Vec<(QueueName, Arc<[u8]>)>) -> Command {
    KeyCommand::SetValues { values, only_new: false }.into()
}

#[test]
fn queue_has_room_before_a_script_deletes() {
    let mut pair = Pair::new();
    pair.engine.store.queues.bound(1);
    let reply = pair.run(Command::Script(Script(Arc::new(InPlace))));
    assert_eq!(reply, Reply::Scripted(Box::new(ScriptValue::Status(Vec::new()))));
}

#[test]
fn dead_letter_queue_exceeds_queue_limit() {
    let mut pair = Pair::new();
    pair.engine.store.queues.bound(1);
    let message = NewMessage { expires: Some(Nanos(2)), ..new_message() };
    pair.run(Command::Put { link: LINK, message, transaction: None });
    assert_eq!(pair.produce("another"), Reply::Refused(Refusal::TooManyQueues { max: 1 }));
    pair.engine.handle_timeout(Nanos(2), Capacity::UNBOUNDED, &mut Effects::default());
    pair.engine.check();
    assert_eq!(pair.engine.statistics().queues, 2);
    assert_eq!(pair.produce("DLQ"), Reply::Done, "it is there now");
}

#[test]
fn watched_queue_over_limit_is_refused() {
    let mut pair = Pair::new();
    for number in 1..limits::CONSUMER_QUEUES_MAX {
        assert_eq!(pair.watch(&format!("queue-{number}")), Reply::Done);
    }
    assert_eq!(pair.watch("another"), Reply::Refused(Refusal::TooManyWatched));
    assert_eq!(pair.engine.statistics().queues, limits::CONSUMER_QUEUES_MAX as u64);
    assert_eq!(pair.watch("queue-1"), Reply::Done);
    assert_eq!(pair.unwatch("queue-1"), Reply::Done);
    assert_eq!(pair.watch("another"), Reply::Done);
}

#[test]
fn body_over_limit_is_refused() {
    let mut pair = Pair::new();
    let body = vec![0; limits::MESSAGE_BYTES_MAX + 1].into();
    let message = NewMessage { body, ..new_message() };
    let refused = Reply::Refused(Refusal::StoreFull);
    assert_eq!(pair.run(Command::Put { link: LINK, message, transaction: None }), refused);
    let body = vec![0; limits::MESSAGE_BYTES_MAX].into();
    let message = NewMessage { body, ..new_message() };
    let stored = Reply::Stored { message: MessageId(1) };
    assert_eq!(pair.run(Command::Put { link: LINK, message, transaction: None }), stored);
}

#[test]
fn large_kick_stops_at_one_frame() {
    let mut pair = Pair::new();
    let count = limits::FRAME_RECORDS_MAX as u64 + 1;
    for _ in 0..count {
        let message = NewMessage { delay: Nanos::SECOND, ..new_message() };
        pair.run(Command::Put { link: LINK, message, transaction: None });
    }
    let kick = Command::Kick { link: LINK, max: u64::MAX };
    assert_eq!(pair.run(kick.clone()), Reply::CountSoFar(count - 1));
    assert_eq!(pair.frames.last().unwrap().1.len(), limits::FRAME_RECORDS_MAX);
    assert_eq!(pair.run(kick), Reply::Count(1));
    pair.engine.check();
}

#[test]
fn timers_due_together_fire_in_turns() {
    let mut pair = Pair::new();
    let in_one_turn = limits::TIMERS_PER_TURN_MAX as u64;
    for _ in 0..in_one_turn + 1 {
        let message = NewMessage { delay: Nanos::SECOND, ..new_message() };
        pair.run(Command::Put { link: LINK, message, transaction: None });
    }
    let later = Nanos::from_secs(10);
    pair.engine.handle_timeout(later, Capacity::UNBOUNDED, &mut Effects::default());
    assert_eq!(pair.engine.statistics().ready, in_one_turn);
    assert!(pair.engine.poll_timeout().is_some_and(|at| at <= later));
    pair.engine.handle_timeout(later, Capacity::UNBOUNDED, &mut Effects::default());
    assert_eq!(pair.engine.statistics().ready, in_one_turn + 1);
    assert_eq!(pair.engine.poll_timeout(), None);
}

#[test]
fn time_does_not_go_back() {
    let mut pair = Pair::new();
    pair.engine.handle_timeout(Nanos::from_secs(10), Capacity::UNBOUNDED, &mut Effects::default());
    pair.run(Command::Put { link: LINK, message: new_message(), transaction: None });
    assert_eq!(pair.engine.latest_time(), Nanos::from_secs(10));
    pair.engine.check();
}

#[test]
fn times_saturate() {
    let mut pair = Pair::new();
    pair.watch("default");
    let message = NewMessage { lease: Nanos::MAX, ..new_message() };
    pair.engine.handle_timeout(Nanos::SECOND, Capacity::UNBOUNDED, &mut Effects::default());
    pair.run(Command::Put { link: LINK, message, transaction: None });
    let receive =
        Command::Receive { link: LINK, wait: Some(Nanos::MAX), margin: Nanos::MAX, lease: None };
    assert!(matches!(pair.run(receive.clone()), Reply::Delivered(_)));
    assert_eq!(pair.run(receive), Reply::LeaseEnding);
    let release =
        Command::Release { message: MessageId(1), priority: u32::MAX, delay: Some(Nanos::MAX) };
    assert_eq!(pair.run(release), Reply::Done);
    assert_eq!(pair.engine.poll_timeout(), Some(Nanos::MAX));
    pair.engine.check();
}

/// A ready message of no group.
fn entry(order: i64) -> Entry {
    Entry::of_none((1024, order))
}

/// A check that sees nothing proves nothing: each of these breaks one thing.
#[test]
fn check_sees_what_is_wrong() {
    type Damage = fn(&mut Engine);
    let damages: [(&str, Damage); 24] = [
        ("messages by state", |engine| engine.store.miscount_ready()),
        ("ready in default", |engine| engine.queue().miscount_ready()),
        ("is in the index of its state", |engine| {
            engine.queue().delivery.dispatch.remove(entry(3));
        }),
        ("is leased by who holds it", |engine| {
            let session = engine.sessions.at_mut(SessionSlot(0));
            session.lease(MessageId(3), Nanos::MAX);
        }),
        ("lies in a frame that exists", |engine| engine.message(3).misplace(Lsn(99))),
        ("is in the log as it should", |engine| engine.message(3).misplace(Lsn::ZERO)),
        ("has its body", |engine| engine.message(3).misplace_body()),
        ("bodies are counted", |engine| {
            let bytes = engine.message(3).body_bytes() as u32;
            engine.message(3).set_body(Stored::paged_out(bytes));
        }),
        ("bodies that may leave are counted", |engine| engine.bodies.miscount()),
        ("no timer is set for nothing", |engine| {
            engine.store.timers.change(Timer::Pause(QueueSlot(0)), None, Some(Nanos::SECOND));
        }),
        ("is set for", |engine| {
            let (at, timer) = engine.store.timers.first().unwrap();
            engine.store.timers.change(timer, Some(at), None);
        }),
        ("nobody waits for queue default while it has a message to give", |engine| {
            let key = ConsumerKey { session: SessionSlot(0), link: LINK };
            engine.queue().delivery.dispatch.wait(1, key);
        }),
        ("consumers that wait", |engine| engine.store.miscount_waiting()),
        ("has a number given out", |engine| engine.store.misnumber(3)),
        ("is held by who holds it", |engine| {
            engine.sessions.at_mut(SessionSlot(0)).hold(MessageId(3));
        }),
        ("what expires in default", |engine| {
            engine.queue().misexpire(Nanos::MAX, MessageId(3));
        }),
        ("nobody gets more than it may", |engine| engine.credit_consumer(1).exceed_limit()),
        ("who may have more waits", |engine| {
            engine.credit_consumer(1).allow(Allowance { messages: 0, bytes: u64::MAX }, false);
        }),
        ("who drains is known", |engine| {
            engine.credit_consumer(1).allow(Allowance { messages: 9, bytes: u64::MAX }, true);
        }),
        ("shows all that matches", |engine| {
            engine.view().dispatch_mut().remove(entry(3));
        }),
        ("shows ready messages", |engine| {
            engine.view().dispatch_mut().insert(entry(4));
        }),
        ("who looks on is known", |engine| engine.queue().delivery.browsers.clear()),
        ("group 7 of default", |engine| {
            engine.queue().delivery.groups = Some(MessageGroups::held_once(7).into());
        }),
        ("the ready messages of each group", |engine| {
            engine.queue().delivery.dispatch.begin_groups();
            engine.message(3).set_message_group(Some(MessageGroup::named("a")));
            engine.queue().delivery.groups = Some(MessageGroups::default().into());
        }),
    ];
    for (expected, damage) in damages {
        let mut pair = Pair::new();
        pair.watch("default");
        for _ in 0..3 {
            pair.run(Command::Put { link: LINK, message: new_message(), transaction: None });
        }
        pair.run(Command::Receive { link: LINK, wait: None, margin: Nanos::ZERO, lease: None });
        pair.run(Command::Lease { message: MessageId(2) });
        pair.consume(1, Some("n IS NOT NULL"), ConsumerMode::Take, 9);
        pair.consume(2, Some("n IS NULL"), ConsumerMode::Take, 0);
        pair.consume(3, None, ConsumerMode::Browse, 9);
        pair.engine.check();
        damage(&mut pair.engine);
        let seen = catch_unwind(AssertUnwindSafe(|| pair.engine.check()));
        let panic = seen.expect_err(expected);
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| String::from(*said)));
        assert!(said.unwrap_or_default().contains(expected), "{expected}");
    }
}

/// A full device keeps room for settlements, but not for any number in one frame.
#[test]
fn full_device_bounds_settlements_per_transaction() {
    let mut pair = Pair::new();
    let count = limits::SETTLED_BYTES_ALWAYS as u64 / 16 + 1;
    let transaction = Some(TransactionId(1));
    for _ in 0..2 {
        pair.run(Command::Begin { transaction: TransactionId(1) });
        for number in 1..=count {
            let message = MessageId(number);
            if pair.engine.store.messages.get(number).is_none() {
                let message = new_message();
                pair.run(Command::Put { link: LINK, message, transaction: None });
            }
            assert!(matches!(pair.run(Command::Lease { message }), Reply::Delivered(_)));
            let settle = Command::Settle { message, settlement: Settlement::Accept, transaction };
            assert_eq!(pair.run(settle), Reply::Done);
        }
        let frames = pair.frames.len();
        let room = if frames as u64 == count { 0 } else { u64::MAX };
        pair.capacity.room_bytes = room;
        let committed = pair.run(Command::Commit { transaction: TransactionId(1) });
        pair.engine.check();
        if room == 0 {
            assert_eq!(committed, Reply::Refused(Refusal::StoreFull));
            assert_eq!(pair.frames.len(), frames, "nothing is written that may find no room");
            assert_eq!(pair.engine.statistics().ready, count);
        } else {
            assert_eq!(committed, Reply::Done);
            assert_eq!(pair.frames.len(), frames + 1);
            assert_eq!(pair.engine.statistics().ready, 0);
        }
        pair.capacity.room_bytes = u64::MAX;
    }
}

impl Engine {
    fn queue(&mut self) -> &mut crate::store::queue::Queue {
        self.store.queues.at_mut(QueueSlot(0))
    }

    fn view(&mut self) -> &mut crate::delivery::View {
        self.queue().delivery.views.get_mut("n IS NULL").unwrap()
    }

    fn credit_consumer(&mut self, link: u32) -> &mut crate::delivery::CreditConsumer {
        let key = ConsumerKey { session: SessionSlot(0), link: LinkId(link) };
        self.sessions.credit_consumer_mut(key).unwrap()
    }

    fn message(&mut self, number: u64) -> &mut Message {
        self.store.messages.get_mut(number).unwrap()
    }
}

/// An engine and a session with a producer for `default`.
struct Pair {
    engine: Engine,
    capacity: Capacity,
    /// Each frame with the kinds of its records.
    frames: Vec<(FrameEnd, Vec<&'static str>)>,
}

impl Pair {
    fn new() -> Self {
        let queue_policies = QueuePolicies::default();
        let engine = Engine::new(EngineOptions {
            queue_policies,
            ..EngineOptions::new(StorePolicy::Always)
        });
        let mut pair = Self { engine, capacity: Capacity::UNBOUNDED, frames: Vec::new() };
        pair.engine.open_session(SESSION);
        assert_eq!(pair.produce("default"), Reply::Done);
        assert_eq!(pair.watch("default"), Reply::Done);
        pair
    }

    fn run(&mut self, command: Command) -> Reply {
        let mut effects = Effects::default();
        self.engine.handle(Nanos(1), SESSION, command, self.capacity, &mut effects);
        let mut begin = 0;
        for frame in effects.frames {
            let records = describe(&effects.records[begin..frame.end]);
            let kinds = records.map(|record| record.as_ref().map(RecordView::kind).unwrap());
            self.frames.push((frame, kinds.collect()));
            begin = frame.end;
        }
        effects.outputs.pop().expect("every command here is answered at once").reply
    }

    fn consume(&mut self, link: u32, selector: Option<&str>, mode: ConsumerMode, limit: u64) {
        let link = LinkId(link);
        let queue = QueueName::new("default").unwrap();
        let selector = selector.map(Into::into);
        let opened = self.run(Command::OpenConsumer { link, queue, selector, mode });
        assert_eq!(opened, Reply::Done);
        let credit = Command::Credit { link, limit, bytes: u64::MAX, drain: false };
        self.engine.handle(Nanos(1), SESSION, credit, Capacity::UNBOUNDED, &mut Effects::default());
    }

    fn steps_of(&mut self, command: Command) -> u64 {
        let before = self.engine.steps();
        self.run(command);
        self.engine.steps() - before
    }

    fn watch(&mut self, queue: &str) -> Reply {
        self.run(Command::Watch { link: LINK, queue: QueueName::new(queue).unwrap() })
    }

    fn unwatch(&mut self, queue: &str) -> Reply {
        self.run(Command::Unwatch { link: LINK, queue: QueueName::new(queue).unwrap() })
    }

    fn produce(&mut self, queue: &str) -> Reply {
        self.run(Command::OpenProducer {
            link: LINK,
            to: Destination::Queue(QueueName::new(queue).unwrap()),
        })
    }
}

fn new_message() -> NewMessage {
    NewMessage {
        priority: 1024,
        delay: Nanos::ZERO,
        lease: Nanos::from_secs(60),
        ..NewMessage::new((*b"body").into())
    }
}

#[test]
fn closed_session_returns_leases_in_turns() {
    let mut pair = Pair::new();
    let in_one_turn = limits::TIMERS_PER_TURN_MAX as u64;
    let count = 2 * in_one_turn + 1;
    for _ in 0..count {
        pair.run(Command::Put { link: LINK, message: new_message(), transaction: None });
        let receive = Command::Receive { link: LINK, wait: None, margin: Nanos::ZERO, lease: None };
        assert!(matches!(pair.run(receive), Reply::Delivered(_)));
    }
    let mut effects = Effects::default();
    pair.engine.close_session(Nanos::ZERO, SESSION, Capacity::UNBOUNDED, &mut effects);
    for turn in 1..=3 {
        pair.engine.check();
        let ready = (turn * in_one_turn).min(count);
        assert_eq!(pair.engine.statistics().ready, ready);
        assert_eq!(pair.engine.poll_timeout().is_some(), ready < count);
        pair.engine.handle_timeout(Nanos::ZERO, Capacity::UNBOUNDED, &mut effects);
    }
    assert_eq!(pair.engine.statistics().expired_total, 0, "a return is no expiry");
}

#[test]
fn steps_count_looks_and_moves() {
    const WATCHED: u64 = 1_000;
    let mut pair = Pair::new();
    let per_command = limits::COMMAND_STEPS as u64;
    let put = Command::Put { link: LINK, message: new_message(), transaction: None };
    let receive =
        Command::Receive { link: LINK, wait: Some(Nanos::ZERO), margin: Nanos::ZERO, lease: None };
    assert_eq!(pair.steps_of(put.clone()), per_command + 1);
    assert_eq!(pair.steps_of(receive.clone()), per_command + 1 + 1);
    for index in 1..WATCHED {
        pair.watch(&format!("q{index}"));
    }
    assert_eq!(pair.steps_of(put), per_command + 1);
    assert_eq!(pair.steps_of(receive.clone()), per_command + WATCHED + 1);
    assert_eq!(pair.steps_of(receive), per_command + WATCHED, "nothing was there to move");
    assert_eq!(pair.steps_of(Command::ListQueues), per_command + WATCHED);
    let before = pair.engine.steps();
    let mut effects = Effects::default();
    pair.engine.close_session(Nanos(1), SESSION, Capacity::UNBOUNDED, &mut effects);
    let closing = per_command + 1 + WATCHED + 2;
    let what = "a producer, each queue, and two leases returned";
    assert_eq!(pair.engine.steps() - before, closing, "{what}");
}

#[test]
fn expired_waits_end_in_bounded_turns() {
    const WATCHED: usize = 5_000;
    const WAITING: u64 = 40;
    let mut pair = Pair::new();
    let mut effects = Effects::default();
    for index in 1..=WAITING {
        let session = SessionId(SESSION.0 + index);
        pair.engine.open_session(session);
        for queue in 0..WATCHED {
            let queue = QueueName::new(&format!("q{queue}")).unwrap();
            let watch = Command::Watch { link: LINK, queue };
            pair.engine.handle(Nanos(1), session, watch, Capacity::UNBOUNDED, &mut effects);
        }
        let receive =
            Command::Receive { link: LINK, wait: Some(Nanos(9)), margin: Nanos::ZERO, lease: None };
        pair.engine.handle(Nanos(1), session, receive, Capacity::UNBOUNDED, &mut effects);
    }
    effects.clear();
    let mut calls = 0;
    while pair.engine.poll_timeout().is_some() {
        let before = pair.engine.steps();
        pair.engine.handle_timeout(Nanos(10), Capacity::UNBOUNDED, &mut effects);
        let steps = (pair.engine.steps() - before) as usize;
        assert!(steps <= limits::STEPS_PER_TURN_MAX + 2 * WATCHED, "{steps} steps");
        calls += 1;
    }
    assert_eq!(effects.outputs.len() as u64, WAITING, "each is told");
    assert!(calls >= 3, "{calls} calls");
}

/// Any command takes along the names with a window that is over.
#[test]
fn old_names_go_with_any_commands() {
    let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
    let (session, mut effects) = (SessionId(1), Effects::default());
    engine.open_session(session);
    let empty = engine.snapshot_bytes_max();
    for number in 0..100_u64 {
        let send_id = Some(format!("{number}").into());
        let message = NewMessage { send_id, ..NewMessage::new([].into()) };
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        let put = Command::PutTo { to, message, transaction: None };
        engine.handle(Nanos(1), session, put, Capacity::UNBOUNDED, &mut effects);
        let message = MessageId(number + 1);
        engine.handle(
            Nanos(1),
            session,
            Command::Delete { message },
            Capacity::UNBOUNDED,
            &mut effects,
        );
    }
    assert!(engine.snapshot_bytes_max() > empty + 100 * 20);
    let later = Nanos(1) + EngineOptions::new(StorePolicy::Always).dedup_window;
    for _ in 0..100 / 8 + 1 {
        engine.handle(later, session, Command::BrokerStatistics, Capacity::UNBOUNDED, &mut effects);
    }
    assert_eq!(engine.snapshot_bytes_max(), empty);
    engine.check();
}
