//! How much keys may be, and how much one command does to them. A command beyond that is refused
//! and leaves all as it was, or goes on when it is asked again.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    BitAction, BitField, BitOperation, BitOverflow, Capacity, Command, Deadline, DeadlineRule,
    DependsOn, Destination, KeyCommand, LinkId, Matching, MessageId, Nanos, NewMessage, Output,
    Persistence, QueueName, Refusal, Reply, SessionId, SetRule, StorePolicy, Subscription,
    ValueDeadline, ValueEdit, limits,
};

const SESSION: SessionId = SessionId(1);

struct Session {
    engine: Engine,
    effects: Effects,
    now: Nanos,
    capacity: Capacity,
}

impl Session {
    fn new(policy: StorePolicy) -> Self {
        Self::of(EngineOptions::new(policy))
    }

    fn with_memory(memory_limit: u64) -> Self {
        Self::of(EngineOptions { memory_limit, ..EngineOptions::new(StorePolicy::Always) })
    }

    fn of(options: EngineOptions) -> Self {
        let mut engine = Engine::new(options);
        engine.open_session(SESSION);
        let capacity = Capacity::UNBOUNDED;
        Self { engine, effects: Effects::default(), now: Nanos::SECOND, capacity }
    }

    fn run(&mut self, command: Command) -> Reply {
        self.effects.clear();
        self.engine.handle(self.now, SESSION, command, self.capacity, &mut self.effects);
        let Output { reply, after, .. } = self.effects.outputs.remove(0);
        let tells = reply == Reply::Refused(Refusal::ListTooLong);
        assert!(
            !tells || after != DependsOn::NOTHING,
            "what tells how long a list is waits for that"
        );
        reply
    }

    fn key(&mut self, command: KeyCommand) -> Reply {
        self.run(Command::Key(command))
    }

    fn set(&mut self, name: &str, bytes: usize) -> Reply {
        self.key(KeyCommand::SetValue {
            name: self::name(name),
            value: vec![b'x'; bytes].into(),
            deadline: ValueDeadline::Never,
            rule: SetRule::Always,
            want_old: false,
        })
    }

    fn delete(&mut self, name: &str) -> Reply {
        self.key(KeyCommand::Delete { names: vec![self::name(name)] })
    }

    fn end_at(&mut self, name: &str, at: u64) -> Reply {
        let (name, deadline) = (self::name(name), Deadline::At(Nanos(at)));
        self.key(KeyCommand::SetDeadline { name, deadline, rule: DeadlineRule::Always })
    }

    fn count(&mut self) -> Reply {
        self.key(KeyCommand::CountAll { database: None })
    }

    fn put(&mut self, queue: &str, count: usize) {
        for _ in 0..count {
            let to = Destination::Queue(name(queue));
            let message = NewMessage::new(b"x"[..].into());
            let reply = self.run(Command::PutTo { to, message, transaction: None });
            assert!(matches!(reply, Reply::Stored { .. }), "{reply:?}");
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Reply {
        self.key(KeyCommand::Rename { from: name(from), to: name(to), only_new: false })
    }
}

#[test]
fn value_size_is_limited() {
    let mut session = Session::new(StorePolicy::Always);
    let set = Reply::Replaced { set: true, old: None };
    assert_eq!(session.set("a", limits::VALUE_BYTES_MAX), set);
    let refused = Reply::Refused(Refusal::TooManyValues);
    assert_eq!(session.set("a", limits::VALUE_BYTES_MAX + 1), refused);
    assert_eq!(session.set("b", limits::VALUE_BYTES_MAX + 1), refused);
    assert_eq!(session.count(), Reply::Count(1));
    session.engine.check();
}

/// Bytes of memory in a session with little; values may take an eighth.
const LITTLE_MEMORY: u64 = 16 * 1024 * 1024;

#[test]
fn values_are_bounded_by_memory() {
    let mut session = Session::with_memory(LITTLE_MEMORY);
    let (set, refused) =
        (Reply::Replaced { set: true, old: None }, Reply::Refused(Refusal::TooManyValues));
    let all = (0..100).map(|number| session.set(&format!("{number:04}"), limits::EDITED_BYTES_MAX));
    let fit = all.take_while(|reply| *reply == set).count();
    let eighth = (LITTLE_MEMORY / 8) as usize / limits::EDITED_BYTES_MAX;
    assert!((eighth - 1..=eighth).contains(&fit), "{fit} of {eighth}");
    assert_eq!(session.set("more", limits::EDITED_BYTES_MAX), refused);
    let values =
        ["0000", "more"].map(|it| (name(it), vec![0; limits::EDITED_BYTES_MAX].into())).to_vec();
    assert_eq!(session.key(KeyCommand::SetValues { values, only_new: false }), refused);
    let bytes = vec![0; limits::EDITED_BYTES_MAX].into();
    let edit = KeyCommand::EditValue { name: name("more"), edit: ValueEdit::Append(bytes) };
    assert_eq!(session.key(edit), refused);
    // In place of another there is room, and once one is gone.
    assert_eq!(session.set("0000", limits::EDITED_BYTES_MAX), set);
    assert_eq!(session.delete("0000"), Reply::Count(1));
    assert_eq!(session.set("more", limits::EDITED_BYTES_MAX), set);
    session.engine.check();
}

#[test]
fn several_values_are_set_whole_or_not() {
    let mut session = Session::new(StorePolicy::Always);
    let bytes = |count: usize| Arc::<[u8]>::from(vec![b'x'; count]);
    let pairs = |names: &[&str], count| names.iter().map(|it| (name(it), bytes(count))).collect();
    let set = |values| KeyCommand::SetValues { values, only_new: false };
    // The list is as long as one frame takes by itself; the last value of a name stays.
    session.put("l", limits::FRAME_RECORDS_MAX);
    let mut values: Vec<_> = pairs(&["l", "a", "l"], 1);
    values.push((name("a"), bytes(2)));
    assert_eq!(session.key(set(values)), Reply::Done);
    assert_eq!(session.effects.frames.len(), 1, "all of it is one frame");
    let shown = session.key(KeyCommand::ValuesAtOnce { names: vec![name("a"), name("l")] });
    let Reply::Values(shown) = shown else { panic!("{shown:?}") };
    let found = shown.found.into_iter().map(|it| it.unwrap().unwrap().len());
    assert_eq!(found.collect::<Vec<_>>(), [2, 1]);
    session.put("long", limits::FRAME_RECORDS_MAX + 1);
    assert_eq!(session.key(set(pairs(&["long", "b"], 1))), Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(session.key(KeyCommand::DeleteAll { database: None }), Reply::CountSoFar(2));
    assert_eq!(session.key(KeyCommand::DeleteAll { database: None }), Reply::Done);
    session.set("a", 1);
    session.set("d", 1);
    // Too large for a frame, too many of them, and all too large for the memory.
    let too_large = pairs(&["b", "c"], limits::VALUE_BYTES_MAX + 1);
    assert_eq!(session.key(set(too_large)), Reply::Refused(Refusal::BatchTooLarge));
    let numbers: Vec<_> = (0..=limits::BATCH_COMMANDS_MAX).map(|it| it.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let too_many = pairs(&numbers, 0);
    assert_eq!(session.key(set(too_many)), Reply::Refused(Refusal::BatchTooLarge));
    let names = numbers.iter().map(|it| name(it)).collect();
    let shown = session.key(KeyCommand::ValuesAtOnce { names });
    assert_eq!(shown, Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(session.count(), Reply::Count(2), "nothing else was set");
    assert_eq!(
        session.key(KeyCommand::SetValues { values: pairs(&["b", "a"], 1), only_new: true }),
        Reply::Count(0)
    );
    assert_eq!(session.count(), Reply::Count(2));
    session.engine.check();
}

#[test]
fn batch_stays_whole_behind_several_values() {
    let mut session = Session::new(StorePolicy::Always);
    session.put("l", 5_000);
    let value = |number: usize| (name(&number.to_string()), vec![b'x'; 60_000].into());
    let set = KeyCommand::SetValues { values: (0..12).map(value).collect(), only_new: false };
    let delete = KeyCommand::Delete { names: vec![name("l")] };
    let commands = [set, delete].map(Command::Key).to_vec();
    let expected = Reply::Batch(vec![Reply::Done, Reply::Count(1)]);
    assert_eq!(session.run(Command::Batch { commands }), expected);
    assert_eq!(session.effects.frames.len(), 1, "it is one frame");
    session.engine.check();
}

/// A step is some 50 ns; others wait no longer than a turn's worth of them.
#[test]
fn costly_edits_are_charged_in_steps() {
    let mut session = Session::new(StorePolicy::Always);
    let mut steps = |edit: ValueEdit| {
        session.delete("n");
        let before = session.engine.steps();
        session.key(KeyCommand::EditValue { name: name("n"), edit });
        session.engine.steps() - before
    };
    let decimal = |text: &str| ValueEdit::AddDecimal(Arc::from(text.as_bytes()));
    assert!(steps(decimal("1")) < 100, "a short number is cheap");
    assert!(steps(decimal("1e4932")) > 20_000, "4,933 digits are written");
    assert!(steps(decimal(&format!("0.{}", "7".repeat(5_000)))) > 1_000, "5,000 are read");
    let field = BitField { is_signed: true, bits: 64, offset: 0 };
    let (action, overflow) = (BitAction::Add(1), BitOverflow::Wrap);
    let operation = BitOperation { field, action, overflow };
    assert!(steps(ValueEdit::Bits(vec![operation; 1_000])) > 4_000);
    assert!(steps(ValueEdit::Append(Arc::from(vec![b'x'; 60_000]))) > 100);
}

#[test]
fn many_values_are_deleted_stepwise() {
    const COUNT: usize = 3 * limits::FRAME_RECORDS_MAX;
    let mut session = Session::new(StorePolicy::Memory);
    let set = Reply::Replaced { set: true, old: None };
    for number in 0..COUNT {
        assert_eq!(session.set(&number.to_string(), 0), set);
    }
    // All are deleted in steps of a frame.
    let at_once = limits::FRAME_RECORDS_MAX as u64;
    for _ in 1..COUNT / limits::FRAME_RECORDS_MAX {
        assert_eq!(
            session.key(KeyCommand::DeleteAll { database: None }),
            Reply::CountSoFar(at_once)
        );
    }
    assert_eq!(session.key(KeyCommand::DeleteAll { database: None }), Reply::Done);
    assert_eq!(session.count(), Reply::Count(0));
    session.engine.check();
}

#[test]
fn long_list_is_deleted_in_steps() {
    let mut session = Session::new(StorePolicy::Always);
    session.put("l", limits::FRAME_RECORDS_MAX + 1);
    let too_long = Reply::Refused(Refusal::ListTooLong);
    assert_eq!(session.set("l", 1), too_long);
    assert_eq!(session.rename("l", "m"), too_long);
    session.put("m", 1);
    assert_eq!(session.rename("m", "l"), too_long);
    assert_eq!(session.count(), Reply::Count(2));
    session.engine.check();
    assert_eq!(session.delete("l"), Reply::CountSoFar(0));
    assert_eq!(session.effects.frames.len(), 1, "what fits into one");
    assert_eq!(session.delete("l"), Reply::Count(1));
    assert_eq!(session.count(), Reply::Count(1));
    session.engine.check();
}

#[test]
fn batch_deletes_whole_list_or_fails() {
    let mut session = Session::new(StorePolicy::Always);
    session.put("l", limits::FRAME_RECORDS_MAX);
    let names = vec![name("l")];
    let batch = || Command::Batch {
        commands: vec![
            Command::Key(KeyCommand::Delete { names: names.clone() }),
            Command::Key(KeyCommand::CountOf { names: names.clone() }),
        ],
    };
    assert_eq!(session.run(batch()), Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(session.count(), Reply::Count(1));
    session.run(Command::Delete { message: MessageId(1) });
    let expected = Reply::Batch(vec![Reply::Count(1), Reply::Count(0)]);
    assert_eq!(session.run(batch()), expected);
    assert_eq!(session.effects.frames.len(), 1, "it is one frame");
    session.engine.check();
}

#[test]
fn list_expires_at_once_deletes_stepwise() {
    let mut session = Session::new(StorePolicy::Always);
    let count = 3 * limits::TIMERS_PER_TURN_MAX;
    session.put("l", count);
    assert_eq!(session.end_at("l", 2 * Nanos::SECOND.0), Reply::Count(1));
    session.now = Nanos::from_secs(2);
    assert_eq!(session.count(), Reply::Count(0));
    session.put("l", 1);
    let mut steps = 0;
    while session.engine.poll_timeout().is_some_and(|at| at <= session.now) {
        session.effects.clear();
        session.engine.handle_timeout(session.now, Capacity::UNBOUNDED, &mut session.effects);
        session.engine.check();
        assert_eq!(session.count(), Reply::Count(1), "the new list is there all the while");
        steps += 1;
    }
    assert!(steps >= 3, "{steps} steps");
    let statistics = session.engine.statistics();
    assert_eq!(statistics.ready, 1, "of {count} old ones none is left");
}

#[test]
fn long_list_expiring_now_is_gone() {
    let mut session = Session::new(StorePolicy::Always);
    session.put("l", limits::FRAME_RECORDS_MAX);
    assert_eq!(session.end_at("l", 1), Reply::Count(1));
    session.now = session.now + Nanos(1);
    assert_eq!(session.count(), Reply::Count(0));
    session.engine.check();
}

#[test]
fn keys_on_full_device_only_delete() {
    let mut session = Session::new(StorePolicy::Always);
    session.set("a", 10);
    session.put("l", 2);
    session.capacity.room_bytes = 0;
    let full = Reply::Refused(Refusal::StoreFull);
    assert_eq!(session.set("b", 10), full);
    assert_eq!(session.set("a", 10), full);
    assert_eq!(session.set("l", 10), full);
    assert_eq!(session.rename("a", "b"), full);
    assert_eq!(session.rename("l", "b"), full);
    assert_eq!(session.end_at("a", u64::MAX), full);
    assert_eq!(session.end_at("l", u64::MAX), full);
    assert_eq!(session.count(), Reply::Count(2));
    session.engine.check();
    assert_eq!(session.end_at("a", 1), Reply::Count(1), "to go now is to be deleted");
    assert_eq!(session.delete("l"), Reply::Count(1));
    assert_eq!(session.count(), Reply::Count(0));
    session.engine.check();
}

#[test]
fn publish_on_full_device_refused_whole() {
    let mut session = Session::new(StorePolicy::Always);
    let subscription = Subscription::of_glob(name("*")).into();
    let reply = session.run(Command::Subscribe { link: LinkId(1), subscription });
    assert_eq!(reply, Reply::Done);
    let subscription = Subscription {
        name: Some(model::SubscriptionName {
            user: None,
            client: None,
            name: name("s"),
            durable: true,
        }),
        ..Subscription::new(name("news"))
    };
    let subscription = Box::new(subscription);
    let reply = session.run(Command::Subscribe { link: LinkId(2), subscription });
    assert_eq!(reply, Reply::Done);
    session.capacity.room_bytes = 0;
    let publish = |persistence| Command::Publish {
        topic: name("news"),
        message: NewMessage { persistence, ..NewMessage::new(b"x"[..].into()) },
    };
    let reply = session.run(publish(Persistence::Persistent));
    assert_eq!(reply, Reply::Refused(Refusal::StoreFull));
    assert_eq!(session.run(publish(Persistence::NonPersistent)), Reply::Count(2));
    session.engine.check();
}

#[test]
fn pattern_subscriptions_have_a_limit() {
    let mut session = Session::new(StorePolicy::Memory);
    let subscribe = |number: usize| Command::Subscribe {
        link: LinkId(number as u32),
        subscription: Subscription::of_glob(name("a*b*c*d")).into(),
    };
    for number in 0..limits::PATTERN_SUBSCRIPTIONS_MAX {
        assert_eq!(session.run(subscribe(number)), Reply::Done);
    }
    let refused = Reply::Refused(Refusal::TooManySubscriptions);
    assert_eq!(session.run(subscribe(limits::PATTERN_SUBSCRIPTIONS_MAX)), refused);
    let before = session.engine.steps();
    let message = NewMessage::new(b"x"[..].into());
    let reply = session.run(Command::Publish { topic: name("other"), message });
    assert_eq!(reply, Reply::Count(0));
    let steps = session.engine.steps() - before;
    assert!(steps >= limits::PATTERN_SUBSCRIPTIONS_MAX as u64, "each was looked at: {steps}");
    let reply = session.run(Command::CloseConsumer { link: LinkId(0) });
    assert_eq!(reply, Reply::Done);
    assert_eq!(session.run(subscribe(limits::PATTERN_SUBSCRIPTIONS_MAX)), Reply::Done);
    session.engine.check();
}

/// The cost of a publication is that of all patterns that may match it. All patterns together are
/// bounded by the most that one publication may cost.
#[test]
fn word_patterns_are_bounded_and_cheap() {
    let mut session = Session::new(StorePolicy::Memory);
    let subscribe = |number: usize, pattern: &str| Command::Subscribe {
        link: LinkId(number as u32),
        subscription: Box::new(Subscription {
            matching: Matching::Words,
            ..Subscription::new(name(pattern))
        }),
    };
    for number in 0..limits::PATTERN_SUBSCRIPTIONS_MAX {
        let pattern = format!("shop.{number}.*");
        assert_eq!(session.run(subscribe(number, &pattern)), Reply::Done);
    }
    let refused = Reply::Refused(Refusal::TooManySubscriptions);
    assert_eq!(session.run(subscribe(limits::PATTERN_SUBSCRIPTIONS_MAX, "*")), refused);
    let before = session.engine.steps();
    let message = NewMessage::new(b"x"[..].into());
    let reply = session.run(Command::Publish { topic: name("shop.7.shoes"), message });
    assert_eq!(reply, Reply::Count(1));
    let steps = session.engine.steps() - before;
    assert!(steps < 50, "{steps} steps");
    for number in 0..limits::PATTERN_SUBSCRIPTIONS_MAX {
        let link = LinkId(number as u32);
        assert_eq!(session.run(Command::CloseConsumer { link }), Reply::Done);
    }
    // Those that a name may be at several places of weigh more.
    let weighing = limits::PATTERNS_WEIGHT_MAX / (2 * 128);
    for number in 0..weighing {
        assert_eq!(session.run(subscribe(number, &format!("#.{number}"))), Reply::Done);
    }
    let refused = Reply::Refused(Refusal::TooManySelectors);
    assert_eq!(session.run(subscribe(weighing, "*")), refused);
    assert_eq!(session.run(Command::CloseConsumer { link: LinkId(0) }), Reply::Done);
    assert_eq!(session.run(subscribe(weighing, "*")), Reply::Done);
    session.engine.check();
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}
