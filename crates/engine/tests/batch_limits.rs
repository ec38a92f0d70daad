//! The size of one frame with many parts: in batches, in transactions, and by lists that end.

use engine::{Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy, RecordView, describe};
use model::{
    Capacity, Command, ConsumerMode, Database, Deadline, DeadlineRule, Destination, End,
    KeyCommand, LinkId, ListCommand, MessageId, Nanos, NewMessage, Persistence, QueueName, Refusal,
    Reply, SessionId, Settlement, StorePolicy, Subscription, TransactionId, limits,
};

const BY: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const LINK: LinkId = LinkId(0);
const TOO_LARGE: Reply = Reply::Refused(Refusal::BatchTooLarge);
const FULL: Reply = Reply::Refused(Refusal::StoreFull);

struct Sessions {
    engine: Engine,
    effects: Effects,
    now: Nanos,
    capacity: Capacity,
}

impl Sessions {
    fn new() -> Self {
        Self::with(QueuePolicy::default())
    }

    fn with(default: QueuePolicy) -> Self {
        let queue_policies = QueuePolicies { default, ..QueuePolicies::default() };
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { queue_policies, ..options });
        engine.open_session(BY);
        engine.open_session(OTHER);
        let capacity = Capacity::UNBOUNDED;
        Self { engine, effects: Effects::default(), now: Nanos::SECOND, capacity }
    }

    /// The first answer to a command of a session; `None` where it waits.
    fn ask(&mut self, by: SessionId, command: Command) -> Option<Reply> {
        self.effects.clear();
        self.engine.handle(self.now, by, command, self.capacity, &mut self.effects);
        self.effects.outputs.first().map(|output| output.reply.clone())
    }

    fn run(&mut self, command: Command) -> Reply {
        self.ask(BY, command).unwrap()
    }

    fn batch(&mut self, commands: Vec<Command>) -> Reply {
        self.run(Command::Batch { commands })
    }

    fn length(&mut self, queue: &str) -> Reply {
        self.run(list(ListCommand::Length { queue: name(queue) }))
    }

    fn records(&self, frame: usize) -> Vec<RecordView<'_>> {
        let ends = [0].into_iter().chain(self.effects.frames.iter().map(|frame| frame.end));
        let ends: Vec<_> = ends.collect();
        let payload = &self.effects.records[ends[frame]..ends[frame + 1]];
        describe(payload).map(Result::unwrap).collect()
    }
}

#[test]
fn renamed_elements_count_for_next_rename() {
    let mut sessions = Sessions::new();
    sessions.run(push("l0", 5_000, 1));
    let names: Vec<_> = (0..60).map(|number| format!("l{number}")).collect();
    let renames = |count: usize| {
        let pairs = names.windows(2).take(count);
        pairs.map(|pair| rename(&pair[0], &pair[1])).collect::<Vec<_>>()
    };
    assert_eq!(sessions.batch(renames(50)), TOO_LARGE);
    assert_eq!(sessions.length("l0"), Reply::Count(5_000));
    assert_eq!(sessions.batch(renames(3)), Reply::Batch(vec![Reply::Done; 3]));
    assert_eq!(sessions.effects.frames.len(), 1);
    assert_eq!(sessions.length("l3"), Reply::Count(5_000));
    // Few elements, however often.
    sessions.run(push("a", 1, 1));
    let few = |_| [rename("a", "c"), rename("c", "a")];
    let commands: Vec<_> = (0..30).flat_map(few).collect();
    assert_eq!(sessions.batch(commands), Reply::Batch(vec![Reply::Done; 60]));
    sessions.engine.check();
}

#[test]
fn immediate_expiries_of_batch_add_up() {
    let mut sessions = Sessions::new();
    let names: Vec<_> = (0..30).map(|number| format!("l{number}")).collect();
    for name in &names {
        sessions.run(push(name, 9_000, 1));
    }
    let end_now = |count| names[..count].iter().map(|name| end_at(name, 0)).collect();
    assert_eq!(sessions.batch(end_now(30)), TOO_LARGE);
    assert_eq!(sessions.batch(end_now(3)), Reply::Batch(vec![Reply::Count(1); 3]));
    assert_eq!(sessions.run(key(KeyCommand::CountAll { database: None })), Reply::Count(27));
    // At a later moment each is a record.
    let later = names[3..].iter().map(|name| end_at(name, Nanos::from_secs(9).0)).collect();
    assert_eq!(sessions.batch(later), Reply::Batch(vec![Reply::Count(1); 27]));
    sessions.engine.check();
}

#[test]
fn deleted_database_is_one_frame_by_its_own_keys() {
    let mut sessions = Sessions::new();
    sessions.run(push("l", 20_000, 1));
    sessions.run(push("\u{f101}l", 9_000, 1));
    let value = (name("\u{f102}v"), [b'x'].into());
    sessions.run(key(KeyCommand::SetValues { values: vec![value], only_new: false }));
    let flush = |number| key(KeyCommand::DeleteAll { database: Database::new(number) });
    let counts = |sessions: &mut Sessions| match sessions.run(key(KeyCommand::CountEach)) {
        Reply::Databases(all) => {
            all.iter().map(|it| (it.database.number(), it.keys)).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(sessions.batch(vec![flush(0)]), TOO_LARGE);
    assert_eq!(sessions.batch(vec![flush(2), flush(3)]), Reply::Batch(vec![Reply::Done; 2]));
    assert_eq!(counts(&mut sessions), [(0, 1), (1, 1)]);
    sessions.engine.check();
    assert_eq!(sessions.run(flush(1)), Reply::Done);
    assert_eq!(counts(&mut sessions), [(0, 1)]);
    assert_eq!(sessions.length("l"), Reply::Count(20_000));
    sessions.engine.check();
}

#[test]
fn batch_leases_settle_in_one_frame() {
    let pop_lease = Some(Nanos::from_secs(60));
    let mut sessions = Sessions::with(QueuePolicy { pop_lease, ..QueuePolicy::default() });
    let most = limits::FRAME_RECORDS_MAX;
    sessions.run(push("l", 3 * most, 1));
    assert_eq!(sessions.batch(vec![pop("l", most), pop("l", 1)]), TOO_LARGE);
    let Reply::Batch(replies) = sessions.batch(vec![pop("l", most - 1), pop("l", 1)]) else {
        panic!("a batch is answered")
    };
    assert!(replies.iter().all(|reply| matches!(reply, Reply::Elements(_))));
    assert_eq!(sessions.length("l"), Reply::Count(2 * most as u64));
    assert_eq!(sessions.records(0).len(), most);
    sessions.engine.check();
}

#[test]
fn pattern_subscription_copies_count() {
    let mut sessions = Sessions::new();
    for number in 0..1_000 {
        let pattern = name("n?ws");
        sessions.run(Command::Subscribe {
            link: LinkId(number),
            subscription: Subscription::of_glob(pattern).into(),
        });
    }
    let publish = |count| {
        let message = NewMessage::new(b"x"[..].into());
        vec![Command::Publish { topic: name("news"), message }; count]
    };
    assert_eq!(sessions.batch(publish(1_001)), TOO_LARGE);
    assert_eq!(sessions.batch(publish(2)), Reply::Batch(vec![Reply::Count(1_000); 2]));
    sessions.engine.check();
}

/// Stored and settled messages are one frame, so the room is to hold both.
#[test]
fn room_covers_whole_frame_of_batch() {
    let mut sessions = Sessions::new();
    sessions.run(push("l", 1_000, 1));
    let both = || vec![push("m", 1, 10_000), pop("l", 100)];
    sessions.capacity.room_bytes = 11_000;
    assert_eq!(sessions.batch(both()), FULL);
    sessions.capacity.room_bytes = 12_000;
    assert!(matches!(sessions.batch(both()), Reply::Batch(_)));
    // A batch that only settles needs none.
    sessions.capacity.room_bytes = 0;
    let delete = key(KeyCommand::Delete { names: vec![name("l")] });
    assert_eq!(sessions.batch(vec![delete]), Reply::Batch(vec![Reply::Count(1)]));
    sessions.engine.check();
}

#[test]
fn room_covers_whole_frame_of_transaction() {
    for (room, expected) in [(11_000, FULL), (13_000, Reply::Done)] {
        let mut sessions = Sessions::new();
        let (queue, selector, mode) = (name("l"), None, ConsumerMode::Take);
        sessions.run(push("l", 100, 1));
        sessions.run(Command::OpenConsumer { link: LINK, queue, selector, mode });
        sessions.run(Command::Credit { link: LINK, limit: 100, bytes: u64::MAX, drain: false });
        let transaction = TransactionId(1);
        sessions.run(Command::Begin { transaction });
        let transaction = Some(transaction);
        for number in 1..=100 {
            let (message, settlement) = (MessageId(number), Settlement::Accept);
            let settle = Command::Settle { message, settlement, transaction };
            assert_eq!(sessions.run(settle), Reply::Done);
        }
        let to = Destination::Queue(name("m"));
        let message = NewMessage::new(vec![0; 10_000].into());
        assert_eq!(sessions.run(Command::PutTo { to, message, transaction }), Reply::Done);
        sessions.capacity.room_bytes = room;
        assert_eq!(sessions.run(Command::Commit { transaction: TransactionId(1) }), expected);
        sessions.engine.check();
    }
}

#[test]
fn expired_messages_are_skipped_and_counted() {
    let mut sessions = Sessions::new();
    for _ in 0..2_000 {
        let to = Destination::Queue(name("l"));
        let expires = Some(Nanos::from_secs(2));
        let message = NewMessage { expires, ..NewMessage::new(b"x"[..].into()) };
        sessions.run(Command::PutTo { to, message, transaction: None });
    }
    sessions.run(push("l", 2_000, 1));
    sessions.now = Nanos::from_secs(2);
    let before = sessions.engine.steps();
    let Reply::Elements(elements) = sessions.run(pop("l", 2_000)) else { panic!("none popped") };
    assert_eq!(elements.len(), 2_000);
    let steps = sessions.engine.steps() - before;
    assert!((4_000..20_000).contains(&steps), "{steps}");
    sessions.engine.check();
}

/// A list that begins anew has no deadline, and a crash must not give it that of the one before. So
/// the log is told in the frame of its first message, however much waiting consumers take then.
#[test]
fn list_and_deadline_are_one_frame() {
    let mut sessions = Sessions::new();
    sessions.run(push("l", 1, 1));
    sessions.run(end_at("l", Nanos::from_secs(100).0));
    let (queues, end, max, wait) = (vec![name("a")], End::Head, 200, None);
    let waiting = list(ListCommand::PopFirst { queues, end, max, wait });
    assert_eq!(sessions.ask(OTHER, waiting), None);
    let delete = key(KeyCommand::Delete { names: vec![name("l")] });
    let most = limits::TRANSACTION_RECORDS_MAX - 100;
    let reply = sessions.batch(vec![push("a", most, 1), delete, push("l", 1, 1)]);
    assert!(matches!(reply, Reply::Batch(_)), "{reply:?}");
    assert_eq!(sessions.effects.frames.len(), 2, "who waits takes in another frame");
    let deadline = |record: &RecordView<'_>| matches!(record, RecordView::KeyDeadline(_));
    assert!(sessions.records(0).iter().any(deadline));
    sessions.engine.check();
}

/// A full device keeps room for the messages that one command settles. Lists that end by the
/// command need more records than the ends of their messages.
#[test]
fn list_deletion_fits_a_full_device() {
    let mut sessions = Sessions::new();
    let names: Vec<_> = (0..9_000).map(|number| format!("{number:0>250}")).collect();
    for name in &names {
        sessions.run(push(name, 1, 1));
        sessions.run(end_at(name, Nanos::from_secs(100).0));
    }
    sessions.capacity.room_bytes = 0;
    let all = names.iter().map(|text| name(text)).collect();
    let reply = sessions.run(key(KeyCommand::Delete { names: all }));
    assert_eq!(reply, Reply::Count(9_000));
    let bytes = sessions.effects.records.len();
    assert!(bytes <= limits::SETTLED_BYTES_ALWAYS, "{bytes} bytes");
    sessions.engine.check();
    // The next list of such a name has none of it.
    sessions.capacity.room_bytes = u64::MAX;
    let last = names.last().unwrap();
    sessions.run(push(last, 1, 1));
    let records = sessions.records(0);
    assert!(matches!(records[..], [RecordView::KeyDeadline(view)] if view.at.is_none()));
    assert!(matches!(sessions.records(1)[..], [RecordView::Message { .. }]));
    sessions.engine.check();
}

fn list(command: ListCommand) -> Command {
    Command::List(command)
}

fn key(command: KeyCommand) -> Command {
    Command::Key(command)
}

fn push(queue: &str, count: usize, bytes: usize) -> Command {
    let (queue, end, elements) = (name(queue), End::Tail, vec![vec![b'x'; bytes].into(); count]);
    let (only_existing, persistence) = (false, Persistence::Persistent);
    list(ListCommand::Push {
        queue,
        end,
        elements: model::OneOrMany::Many(elements),
        only_existing,
        persistence,
    })
}

fn pop(queue: &str, max: usize) -> Command {
    list(ListCommand::Pop { queue: name(queue), end: End::Head, max: max as u64 })
}

fn rename(from: &str, to: &str) -> Command {
    key(KeyCommand::Rename { from: name(from), to: name(to), only_new: false })
}

fn end_at(of: &str, at: u64) -> Command {
    let (deadline, rule) = (Deadline::At(Nanos(at)), DeadlineRule::Always);
    key(KeyCommand::SetDeadline { name: name(of), deadline, rule })
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}
