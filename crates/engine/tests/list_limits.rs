//! The limits of lists and batches: a command beyond them is refused whole, or done in parts.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, End, ListCommand, Nanos, Persistence, QueueName, Refusal, Reply, SessionId,
    StorePolicy, limits,
};

const BY: SessionId = SessionId(1);
const NOW: Nanos = Nanos::SECOND;
const PERSISTENCE: Persistence = Persistence::Persistent;

struct Lists {
    engine: Engine,
    effects: Effects,
    capacity: Capacity,
}

impl Lists {
    fn new() -> Self {
        Self::with(EngineOptions::new(StorePolicy::Always))
    }

    fn with(options: EngineOptions) -> Self {
        let mut engine = Engine::new(options);
        engine.open_session(BY);
        Self { engine, effects: Effects::default(), capacity: Capacity::UNBOUNDED }
    }

    /// The reply to a command of a session; `None` if it waits.
    fn run(&mut self, command: Command) -> Option<Reply> {
        self.effects.clear();
        self.engine.handle(NOW, BY, command, self.capacity, &mut self.effects);
        self.effects.outputs.pop().map(|output| output.reply)
    }

    fn list(&mut self, command: ListCommand) -> Reply {
        self.run(Command::List(command)).unwrap()
    }

    fn push(&mut self, count: usize, element: &[u8]) -> Reply {
        let (queue, end, elements) = (name("l"), End::Tail, vec![element.into(); count]);
        let (only_existing, persistence) = (false, PERSISTENCE);
        self.list(ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing,
            persistence,
        })
    }

    fn length(&mut self) -> u64 {
        match self.list(ListCommand::Length { queue: name("l") }) {
            Reply::Count(count) => count,
            other => panic!("{other:?}"),
        }
    }

    fn keep(&mut self, first: i64, last: i64) -> Reply {
        self.list(ListCommand::Keep { queue: name("l"), origin: End::Head, first, last })
    }

    fn pop(&mut self, max: u64) -> usize {
        match self.list(ListCommand::Pop { queue: name("l"), end: End::Head, max }) {
            Reply::Elements(elements) => elements.len(),
            Reply::NotFound => 0,
            other => panic!("{other:?}"),
        }
    }

    fn insert(&mut self, pivot: &[u8]) -> Reply {
        self.insert_element(pivot, b"new")
    }

    fn insert_element(&mut self, pivot: &[u8], element: &[u8]) -> Reply {
        self.list(ListCommand::Insert {
            queue: name("l"),
            origin: End::Head,
            pivot: pivot.into(),
            towards: End::Head,
            element: bytes(element),
            persistence: PERSISTENCE,
        })
    }
}

#[test]
fn push_is_one_frame_or_nothing() {
    let mut lists = Lists::new();
    let too_many = limits::TRANSACTION_RECORDS_MAX + 1;
    assert_eq!(lists.push(too_many, b"x"), Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(lists.length(), 0);
    let most = limits::TRANSACTION_RECORDS_MAX;
    assert_eq!(lists.push(most, b"x"), Reply::Count(most as u64));
    assert_eq!(lists.effects.frames.len(), 1);

    let options = EngineOptions::new(StorePolicy::Always);
    let mut lists = Lists::with(EngineOptions { frame_bytes_max: 1_000, ..options });
    assert_eq!(lists.push(3, &[0; 400]), Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!((lists.length(), lists.engine.last_lsn().0), (0, 0), "nothing is left of it");
    assert_eq!(lists.push(2, &[0; 400]), Reply::Count(2));
    lists.engine.check();
}

#[test]
fn full_device_refuses_pushes_allows_pops() {
    let mut lists = Lists::new();
    assert_eq!(lists.push(20_000, b"x"), Reply::Count(20_000));
    lists.capacity.room_bytes = 100;
    assert_eq!(lists.push(5, b"x"), Reply::Refused(Refusal::StoreFull));
    assert_eq!(lists.length(), 20_000, "not one of five");
    let replace = ListCommand::Replace {
        queue: name("l"),
        origin: End::Head,
        at: 5,
        element: vec![0; 200].into(),
        persistence: PERSISTENCE,
    };
    assert_eq!(lists.list(replace), Reply::Refused(Refusal::StoreFull));
    assert!(lists.effects.is_empty(), "the old one is there as it was");
    lists.engine.check();
    let (from, to, wait) = (name("l"), name("m"), Some(Nanos::ZERO));
    let (from_end, to_end) = (End::Head, End::Tail);
    let moved = lists.list(ListCommand::Move { from, from_end, to, to_end, wait });
    assert_eq!(moved, Reply::Refused(Refusal::StoreFull));
    assert_eq!(lists.pop(u64::MAX), limits::FRAME_RECORDS_MAX);
    assert_eq!(lists.pop(u64::MAX), 20_000 - limits::FRAME_RECORDS_MAX);
    lists.engine.check();
}

#[test]
fn list_scan_over_limit_is_refused() {
    let mut lists = Lists::new();
    let half = limits::LIST_SCAN_MAX / 2 + 1;
    lists.push(half, b"x");
    lists.push(half, b"x");
    let (queue, origin, from) = (name("l"), End::Head, End::Head);
    let locate = |scan_max, max| ListCommand::Locate {
        queue: queue.clone(),
        origin,
        from,
        element: bytes(b"y"),
        skip: 0,
        max,
        scan_max,
    };
    let too_long = Reply::Refused(Refusal::ListTooLong);
    assert_eq!(lists.list(locate(None, 1)), too_long);
    assert_eq!(lists.list(locate(Some(100_000), 1)), Reply::Places(Vec::new()));
    let remove = ListCommand::Remove { queue: name("l"), origin, element: bytes(b"y"), max: 1 };
    assert_eq!(lists.list(remove), too_long);
    assert_eq!(lists.insert(b"y"), too_long);
    let range = |last| ListCommand::Range { queue: name("l"), origin, first: 0, last };
    assert_eq!(lists.list(range(-1)), too_long);
    let most = limits::LIST_SCAN_MAX as i64 - 1;
    assert!(
        matches!(lists.list(range(most)), Reply::Elements(all) if all.len() as i64 == most + 1)
    );
    // Between two that lie close in the middle: too many would have to move.
    let queue = name("l");
    let replace = ListCommand::Replace {
        queue,
        origin,
        at: half as i64,
        element: bytes(b"pivot"),
        persistence: PERSISTENCE,
    };
    assert_eq!(lists.list(replace), Reply::Done);
    assert_eq!(lists.insert(b"pivot"), too_long);
    assert_eq!(lists.length(), 2 * half as u64);
    lists.engine.check();
}

/// Elements that move aside for another go into its frame. They do not use the room that is kept
/// for commands that only settle.
#[test]
fn insertion_needs_room_for_moved_elements() {
    let mut lists = Lists::new();
    lists.push(50, b"x");
    lists.push(1, b"pivot");
    lists.push(49, b"x");
    let element = vec![b'y'; 10_000];
    lists.capacity.room_bytes = 12_000;
    let full = Reply::Refused(Refusal::StoreFull);
    assert_eq!(lists.insert_element(b"pivot", &element), full);
    assert_eq!(lists.length(), 100);
    lists.capacity.room_bytes = 100_000;
    assert_eq!(lists.insert_element(b"pivot", &element), Reply::Count(101));
    lists.engine.check();
}

#[test]
fn range_is_bounded_by_one_reply() {
    let mut lists = Lists::new();
    let element = vec![0; 8 * 1024 * 1024 - limits::BESIDE_ELEMENT_BYTES];
    for _ in 0..9 {
        lists.push(1, &element);
    }
    let range = |last| ListCommand::Range { queue: name("l"), origin: End::Head, first: 0, last };
    let refused = Reply::Refused(Refusal::TooManyBytes { max: limits::REPLY_BYTES_MAX });
    assert_eq!(lists.list(range(8)), refused);
    assert!(matches!(lists.list(range(7)), Reply::Elements(all) if all.len() == 8));
    let list = |command| Command::List(command);
    let batch = Command::Batch { commands: vec![list(range(4)), list(range(4)), list(range(4))] };
    let Some(Reply::Batch(replies)) = lists.run(batch) else { panic!("a batch is answered") };
    assert!(matches!(&replies[0], Reply::Elements(all) if all.len() == 5));
    assert_eq!(replies[1..], [refused.clone(), refused]);
    assert_eq!(lists.pop(100), 8, "so many as one reply holds");
    assert_eq!(lists.pop(100), 1);
}

#[test]
fn trim_goes_in_equivalent_steps() {
    let step = limits::FRAME_RECORDS_MAX as u64;
    for (first, last, kept) in [(0, 99, 100), (-100, -1, 100), (5, 3, 0)] {
        let mut lists = Lists::new();
        lists.push(25_000, b"x");
        assert_eq!(lists.keep(first, last), Reply::CountSoFar(step), "{first} {last}");
        assert_eq!(lists.keep(first, last), Reply::CountSoFar(step), "{first} {last}");
        assert_eq!(lists.keep(first, last), Reply::Count(5_000 - kept));
        assert_eq!(lists.length(), kept);
    }
    // A trim that cannot be asked again with the same places is done at once.
    let mut lists = Lists::new();
    lists.push(25_000, b"x");
    assert_eq!(lists.keep(20_000, -1), Reply::Count(20_000));
    lists.push(25_000, b"x");
    lists.capacity.room_bytes = 0;
    assert_eq!(lists.keep(1, -1), Reply::Count(1));
    lists.capacity.settling_bytes = 100_000;
    assert_eq!(lists.keep(20_000, -1), Reply::Refused(Refusal::ListTooLong));
    lists.engine.check();
}

#[test]
fn batch_has_limits() {
    let mut lists = Lists::new();
    let length = || Command::List(ListCommand::Length { queue: name("l") });
    let batch = |count| Command::Batch { commands: (0..count).map(|_| length()).collect() };
    let too_large = Some(Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(lists.run(batch(limits::BATCH_COMMANDS_MAX + 1)), too_large);
    let reply = lists.run(batch(limits::BATCH_COMMANDS_MAX));
    assert!(matches!(reply, Some(Reply::Batch(all)) if all.len() == limits::BATCH_COMMANDS_MAX));

    // So many deletions, so much that is looked at, and so many bytes.
    lists.push(150_000, b"x");
    let list = |command| Command::List(command);
    let remove = |element: &[u8], max| {
        let (queue, origin) = (name("l"), End::Head);
        list(ListCommand::Remove { queue, origin, element: element.into(), max })
    };
    let removes = |count, max| (0..count).map(|_| remove(b"y", max)).collect::<Vec<_>>();
    assert_eq!(lists.run(Command::Batch { commands: removes(2, u64::MAX) }), too_large);
    assert_eq!(lists.run(Command::Batch { commands: removes(7, 1) }), too_large);
    let reply = lists.run(Command::Batch { commands: removes(6, 1) });
    assert_eq!(reply, Some(Reply::Batch(vec![Reply::Count(0); 6])));
    let push = |bytes| {
        let (queue, end, elements) = (name("l"), End::Tail, vec![vec![0; bytes].into()]);
        let (only_existing, persistence) = (false, PERSISTENCE);
        list(ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing,
            persistence,
        })
    };
    let megabytes = |count| (0..count).map(|_| push(1024 * 1024)).collect::<Vec<_>>();
    assert_eq!(lists.run(Command::Batch { commands: megabytes(33) }), too_large);
    assert!(matches!(lists.run(Command::Batch { commands: megabytes(31) }), Some(Reply::Batch(_))));
    lists.engine.check();
}

#[test]
fn waits_and_watches_are_bounded() {
    let mut lists = Lists::new();
    let names = |count| (0..count).map(|number| name(&format!("q{number}"))).collect::<Vec<_>>();
    let pop = |count| {
        let (queues, end, max, wait) = (names(count), End::Head, 1, None);
        Command::List(ListCommand::PopFirst { queues, end, max, wait })
    };
    let most = limits::CONSUMER_QUEUES_MAX;
    let refused = Some(Reply::Refused(Refusal::TooManyWatched));
    assert_eq!(lists.run(pop(most + 1)), refused);
    assert_eq!(lists.run(pop(most)), None, "it waits");
    lists.engine.check();

    let observe = |count| Command::Observe { names: names(count) };
    let most = limits::SESSION_OBSERVED_MAX;
    assert_eq!(lists.run(observe(most)), Some(Reply::Done));
    assert_eq!(lists.run(observe(most)), Some(Reply::Done), "the same ones");
    let refused = Some(Reply::Refused(Refusal::TooManyObserved));
    assert_eq!(lists.run(observe(most + 1)), refused);
    lists.engine.check();
}

/// Steps bound how long one client keeps the others waiting.
#[test]
fn list_commands_count_their_steps() {
    let mut lists = Lists::new();
    lists.push(100_000, b"x");
    let before = lists.engine.steps();
    let (queue, origin, element) = (name("l"), End::Head, bytes(b"y"));
    lists.list(ListCommand::Remove { queue, origin, element, max: 1 });
    assert!(lists.engine.steps() - before >= 100_000, "each is looked at");
    let before = lists.engine.steps();
    let range = ListCommand::Range { queue: name("l"), origin, first: 50_000, last: 50_000 };
    assert!(matches!(lists.list(range), Reply::Elements(all) if all.len() == 1));
    assert!(lists.engine.steps() - before < 2_000, "whole words are passed by at once");
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn bytes(bytes: &[u8]) -> Arc<[u8]> {
    bytes.into()
}
