//! Commands that look into bodies that left memory. Each comes to an end, whichever others go on.
//! All together keep no more in memory than one may.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy};
use model::{
    Capacity, Command, ConsumerMode, Destination, End, Formats, Found, LinkId, ListCommand, Lsn,
    Nanos, NewMessage, Output, Persistence, PropertyValue, QueueName, Refusal, Reply, SessionId,
    StorePolicy, Subject, limits,
};

const ONE: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const NOW: Nanos = Nanos::SECOND;
const LINK: LinkId = LinkId(0);
const TOO_MANY_BYTES: Refusal = Refusal::TooManyBytes { max: limits::REPLY_BYTES_MAX };

/// An engine that keeps no body which its log has, and the log.
struct Store {
    engine: Engine,
    effects: Effects,
    frames: BTreeMap<Lsn, Vec<u8>>,
    now: Nanos,
}

impl Store {
    fn with(options: EngineOptions) -> Self {
        let bounds = QueueBounds { messages_max: Some(3), ..QueueBounds::default() };
        let narrow = QueuePolicy { bounds, ..QueuePolicy::default() };
        let pop_lease = Some(Nanos::from_secs(60));
        let protected = QueuePolicy { pop_lease, ..QueuePolicy::default() };
        let named = [(name("narrow"), narrow), (name("protected"), protected)].into();
        let queue_policies = QueuePolicies { named, ..QueuePolicies::default() };
        let log_bodies_max = options.log_bodies_max.min(1024 * 1024);
        let mut engine = Engine::new(EngineOptions { log_bodies_max, queue_policies, ..options });
        engine.open_session(ONE);
        engine.open_session(OTHER);
        Self { engine, effects: Effects::default(), frames: BTreeMap::new(), now: NOW }
    }

    /// None of the bodies is kept that can be read back.
    fn bare() -> Self {
        Self::with(EngineOptions { log_bodies_max: 0, ..EngineOptions::new(StorePolicy::Always) })
    }

    /// The immediate replies to a command.
    fn ask(&mut self, by: SessionId, command: Command) -> Vec<Reply> {
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.hear()
    }

    fn list(&mut self, by: SessionId, command: ListCommand) -> Vec<Reply> {
        self.ask(by, Command::List(command))
    }

    /// The replies to a command after all wanted bodies came back.
    fn list_settled(&mut self, by: SessionId, command: ListCommand) -> Vec<Reply> {
        let mut replies = self.list(by, command);
        replies.append(&mut self.settle());
        replies
    }

    fn push(&mut self, list: &str, elements: &[&[u8]]) {
        let elements = elements.iter().map(|element| Arc::from(*element)).collect();
        self.push_all(list, elements);
    }

    fn push_all(&mut self, list: &str, elements: Vec<Arc<[u8]>>) {
        let (queue, end, persistence) = (name(list), End::Tail, Persistence::Persistent);
        let push = ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing: false,
            persistence,
        };
        let replies = self.list(OTHER, push);
        assert!(matches!(replies[..], [Reply::Count(_)]), "{replies:?}");
    }

    /// Bodies leave.
    fn write(&mut self) {
        let written = Some(self.engine.last_lsn());
        self.engine.handle_capacity(Capacity { written, ..Capacity::UNBOUNDED });
    }

    /// One frame comes back, if any is wanted.
    fn fetch(&mut self) -> bool {
        let Some(lsn) = self.engine.bodies().wanted_frame() else { return false };
        self.engine.restore(lsn, &self.frames[&lsn]).unwrap();
        self.engine.check();
        self.write();
        true
    }

    /// Performs all that is due, once.
    fn turn(&mut self) -> Vec<Reply> {
        self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        self.hear()
    }

    /// Everything comes back that is wanted, and goes on.
    fn settle(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        for _ in 0..10_000 {
            let is_due = self.engine.poll_timeout().is_some_and(|at| at <= self.now);
            if is_due {
                replies.append(&mut self.turn());
            } else if !self.fetch() {
                return replies;
            }
        }
        panic!("it comes to no end");
    }

    fn hear(&mut self) -> Vec<Reply> {
        let mut start = 0;
        for frame in &self.effects.frames {
            self.frames.insert(frame.lsn, self.effects.records[start..frame.end].to_vec());
            start = frame.end;
        }
        let outputs = std::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        outputs.into_iter().map(|Output { reply, .. }| reply).collect()
    }
}

fn locate(list: &str, from: End, element: &[u8]) -> ListCommand {
    ListCommand::Locate {
        queue: name(list),
        origin: End::Head,
        from,
        element: element.into(),
        skip: 0,
        max: 1,
        scan_max: None,
    }
}

fn remove(list: &str, origin: End, element: &[u8]) -> ListCommand {
    ListCommand::Remove { queue: name(list), origin, element: element.into(), max: 1 }
}

fn transfer(from: &str, from_end: End, to: &QueueName) -> ListCommand {
    let (from, to, wait) = (name(from), to.clone(), Some(Nanos::ZERO));
    ListCommand::Move { from, from_end, to, to_end: End::Tail, wait }
}

fn insert(list: &str, pivot: &[u8], element: &[u8]) -> ListCommand {
    ListCommand::Insert {
        queue: name(list),
        origin: End::Head,
        pivot: pivot.into(),
        towards: End::Tail,
        element: element.into(),
        persistence: Persistence::Persistent,
    }
}

fn batch(commands: Vec<ListCommand>) -> Command {
    let commands = commands.into_iter().map(Command::List).collect();
    Command::Batch { commands }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// More elements than one command looks at, the last of them another.
fn fill_long(store: &mut Store, list: &str) {
    let half = limits::LIST_SCAN_MAX / 2 + 1_000;
    store.push_all(list, vec![b"x"[..].into(); half]);
    store.push_all(list, vec![b"x"[..].into(); half]);
    store.push(list, &[b"z"]);
    store.write();
}

#[test]
fn long_list_compared_from_named_end() {
    let mut store = Store::bare();
    fill_long(&mut store, "l");
    let last = 2 * (limits::LIST_SCAN_MAX as u64 / 2 + 1_000);
    let located = store.list_settled(ONE, locate("l", End::Tail, b"z"));
    assert_eq!(located, [Reply::Places(vec![last])]);
    let removed = store.list_settled(ONE, remove("l", End::Tail, b"z"));
    assert_eq!(removed, [Reply::Count(1)]);
    let removed = store.list_settled(ONE, remove("l", End::Tail, b"z"));
    assert_eq!(removed, [Reply::Refused(Refusal::ListTooLong)]);
}

/// As many elements are fetched as it looks at.
#[test]
fn locate_fetches_only_scanned_elements() {
    let mut store = Store::bare();
    (0..100).for_each(|_| store.push("l", &[b"x"]));
    store.write();
    let ListCommand::Locate { queue, origin, from, element, skip, .. } =
        locate("l", End::Tail, b"x")
    else {
        unreachable!()
    };
    let scan_max = Some(3);
    let few = ListCommand::Locate { queue, origin, from, element, skip, max: 9, scan_max };
    assert_eq!(store.list(ONE, few), []);
    let mut fetched = 0;
    while store.fetch() {
        fetched += 1;
    }
    // The last one has not left.
    assert!(fetched <= 3, "{fetched} frames");
    assert_eq!(store.settle(), [Reply::Places(vec![99, 98, 97])]);
}

#[test]
fn batch_compares_elements_it_moved() {
    let mut store = Store::bare();
    fill_long(&mut store, "l");
    let commands = vec![
        transfer("l", End::Tail, &name("m")),
        remove("m", End::Head, b"z"),
        remove("m", End::Head, b"z"),
    ];
    store.ask(ONE, batch(commands));
    let replies = store.settle();
    let [Reply::Batch(replies)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(replies[1..], [Reply::Count(1), Reply::Count(0)]);
}

/// Elements that a batch uncovers deep in a list were not fetched for it: the command is refused,
/// and nothing breaks.
#[test]
fn batch_refuses_comparison_of_unfetched_bodies() {
    let mut store = Store::bare();
    fill_long(&mut store, "l");
    fill_long(&mut store, "l");
    let pop = || ListCommand::Pop { queue: name("l"), end: End::Head, max: 10_000 };
    let mut commands: Vec<_> = (0..5).map(|_| pop()).collect();
    commands.push(remove("l", End::Head, b"y"));
    store.ask(ONE, batch(commands));
    let replies = store.settle();
    let [Reply::Batch(replies)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(replies[5], Reply::Refused(Refusal::ListTooLong));
}

/// A command that has waited for bodies first, and then for a place, finds the bodies gone again.
#[test]
fn blocked_insertion_fetches_bodies_again() {
    let mut store = Store::bare();
    store.push("narrow", &[b"a"]);
    store.push("narrow", &[b"b"]);
    store.push("narrow", &[b"c"]);
    store.write();
    store.list(ONE, insert("narrow", b"b", b"new"));
    assert_eq!(store.settle(), [Reply::Waits { ticket: 1 }]);
    // Another one looks, and all leave again.
    store.push("other", &[b"x"]);
    store.push("other", &[b"y"]);
    store.write();
    store.list(OTHER, locate("other", End::Head, b"x"));
    store.settle();
    store.list(OTHER, ListCommand::Pop { queue: name("narrow"), end: End::Head, max: 1 });
    let reply = Box::new(Reply::Count(3));
    assert_eq!(store.settle(), [Reply::Late { ticket: 1, reply }]);
    store.engine.check();
}

/// No send takes its place while its bodies come; and if its session goes, the next goes on.
#[test]
fn send_behind_blocked_insertion_resumes() {
    for leaves in [false, true] {
        let mut store = Store::bare();
        for element in [b"a", b"b", b"c"] {
            store.push("narrow", &[element]);
        }
        store.write();
        store.list(ONE, insert("narrow", b"b", b"new"));
        assert_eq!(store.settle(), [Reply::Waits { ticket: 1 }]);
        let push = ListCommand::Push {
            queue: name("narrow"),
            end: End::Tail,
            elements: model::OneOrMany::Many(vec![b"behind"[..].into()]),
            only_existing: false,
            persistence: Persistence::Persistent,
        };
        assert_eq!(store.list(OTHER, push), [Reply::Waits { ticket: 2 }]);
        store.push("other", &[b"x"]);
        store.push("other", &[b"y"]);
        store.write();
        store.list(OTHER, locate("other", End::Head, b"x"));
        store.settle();
        let pop = || ListCommand::Pop { queue: name("narrow"), end: End::Head, max: 1 };
        store.list(OTHER, pop());
        assert_eq!(store.turn(), [], "its bodies are away, and the other is behind it");
        assert!(store.engine.bodies().wanted_frame().is_some());
        store.engine.check();
        if leaves {
            store.engine.close_session(store.now, ONE, Capacity::UNBOUNDED, &mut store.effects);
        }
        let (ticket, reply) = (1 + u64::from(leaves), Box::new(Reply::Count(3)));
        assert_eq!(store.settle(), [Reply::Late { ticket, reply }]);
        store.list(OTHER, pop());
        let reply = Box::new(Reply::Count(3));
        let behind = if leaves { vec![] } else { vec![Reply::Late { ticket: 2, reply }] };
        assert_eq!(store.settle(), behind);
    }
}

/// The first byte of a body is its property.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, _: &str) -> PropertyValue<'m> {
    let body = seen.body;
    PropertyValue::Integer(i64::from(body[0]))
}

/// More bodies come back at once than one step of a view looks into.
#[test]
fn view_resumes_with_many_restored_bodies() {
    let formats = Formats { property, ..Formats::RAW };
    let mut store = Store::with(EngineOptions {
        formats,
        log_bodies_max: 1,
        ..EngineOptions::new(StorePolicy::Always)
    });
    for number in 0..3_000_u64 {
        let message = NewMessage::new(vec![u8::from(number == 2_999)].into());
        let to = Destination::Queue(name("q"));
        store.ask(OTHER, Command::PutTo { to, message, transaction: None });
        store.write();
    }
    let selector = Some("kind = 1".into());
    let (link, queue, mode) = (LINK, name("q"), ConsumerMode::Take);
    store.ask(ONE, Command::OpenConsumer { link, queue, selector, mode });
    store.ask(ONE, Command::Credit { link, limit: 1, bytes: u64::MAX, drain: true });
    let mut replies = Vec::new();
    for _ in 0..100 {
        while store.engine.poll_timeout().is_some_and(|at| at <= store.now) {
            replies.append(&mut store.turn());
        }
        let Some(lsn) = store.engine.bodies().wanted_frame() else { break };
        // A piece of the log, as it is read ahead; the last frame first.
        let ahead: Vec<_> = store.frames.range(lsn..).take(2_000).collect();
        for (lsn, payload) in ahead.into_iter().rev() {
            store.engine.restore(*lsn, payload).unwrap();
        }
    }
    store.engine.check();
    assert!(matches!(replies[..], [Reply::Delivered(_), Reply::Drained { .. }]), "{replies:?}");
}

/// Time passes for others while several commands wait for bodies, and no work is done for these
/// meanwhile.
#[test]
fn timers_fire_while_commands_await_bodies() {
    let mut store = Store::bare();
    for list in ["l", "m", "n"] {
        (0..3).for_each(|_| store.push(list, &[b"x"]));
    }
    store.write();
    for (list, by) in [("l", 3), ("m", 4), ("n", 5)] {
        let by = SessionId(by);
        store.engine.open_session(by);
        assert_eq!(store.list(by, locate(list, End::Head, b"y")), []);
    }
    let (queues, wait) = (vec![name("nothing")], Some(Nanos::SECOND));
    let pop = ListCommand::PopFirst { queues, end: End::Head, max: 1, wait };
    assert_eq!(store.list(ONE, pop), []);
    assert!(store.fetch());
    for _ in 0..10 {
        if store.engine.poll_timeout() <= Some(store.now) {
            assert_eq!(store.turn(), []);
        }
    }
    let due = store.engine.poll_timeout().unwrap();
    assert_eq!(due, NOW + Nanos::SECOND, "nobody goes on before a body has come");
    store.now = due;
    // Whichever others go on, a command that has waited long enough is told so at once.
    while store.fetch() {
        let replies = store.turn();
        if replies.contains(&Reply::TimedOut { link: None }) {
            let places = store.settle();
            assert_eq!(places, vec![Reply::Places(Vec::new()); 3]);
            return;
        }
        assert_eq!(replies, [], "time is over for one who waits, before others go on");
    }
    panic!("it was never told");
}

/// Each may keep as much as one reply holds; together they keep no more than one does.
#[test]
fn body_waits_share_one_reply_budget() {
    const ELEMENT_BYTES: usize = 10_000;
    // With the element that it looks for.
    const COMMAND_BYTES: u64 = 512 + ELEMENT_BYTES as u64 + 32;
    let mut store = Store::bare();
    let lists: Vec<_> = (0..20).map(|number| format!("l{number}")).collect();
    for list in &lists {
        (0..10).for_each(|_| store.push(list, &[&[b'x'; ELEMENT_BYTES]]));
    }
    store.write();
    // Messages and queues: the memory without any body.
    let resting = store.engine.memory_bytes();
    assert!(resting < 100_000, "all bodies are away: {resting} bytes");
    for (list, by) in lists.iter().zip(10..) {
        store.engine.open_session(SessionId(by));
        let absent = [b'y'; ELEMENT_BYTES];
        assert_eq!(store.list(SessionId(by), locate(list, End::Head, &absent)), []);
    }
    let (mut replies, mut most) = (Vec::new(), 0);
    while store.fetch() {
        let waiting = (lists.len() - replies.len()) as u64 * COMMAND_BYTES;
        most = most.max(store.engine.memory_bytes() - resting - waiting);
        while store.engine.bodies().is_disturbed() {
            replies.append(&mut store.turn());
        }
    }
    assert_eq!(replies, vec![Reply::Places(Vec::new()); lists.len()]);
    assert!(store.engine.memory_bytes() <= resting + most, "they are counted no more");
    let one = 11 * (ELEMENT_BYTES as u64 + 32);
    assert!(most <= one, "{most} bytes at most, of {one} that one command needs");
}

/// All elements moved to a queue that journals nothing have to be in memory, not only the first.
#[test]
fn batch_moves_paged_out_elements() {
    let mut store = Store::bare();
    for element in [b"a", b"b", b"c", b"d"] {
        store.push("l", &[element]);
    }
    store.write();
    let replies = store.ask(ONE, Command::CreateTemporary { topic: false, secret: 1 });
    let [Reply::Created(Destination::Queue(temporary))] = &replies[..] else {
        panic!("{replies:?}")
    };
    let temporary = temporary.clone();
    let commands = vec![
        ListCommand::Pop { queue: name("l"), end: End::Head, max: 1 },
        transfer("l", End::Head, &temporary),
        transfer("l", End::Head, &name("m")),
        transfer("m", End::Head, &temporary),
    ];
    assert_eq!(store.ask(ONE, batch(commands)), []);
    let replies = store.settle();
    let [Reply::Batch(replies)] = &replies[..] else { panic!("{replies:?}") };
    let is_moved = |reply: &Reply| matches!(reply, Reply::Elements(all) if all.len() == 1);
    assert!(replies.iter().all(is_moved), "{replies:?}");
}

/// The log moves records about while a command waits for the body of one.
#[test]
fn restated_body_ends_its_wait() {
    let mut store = Store::bare();
    store.push("l", &[b"x"]);
    store.push("l", &[b"y"]);
    store.write();
    assert_eq!(store.list(ONE, locate("l", End::Head, b"x")), []);
    let lsn = store.engine.bodies().wanted_frame().unwrap();
    store.engine.restate(lsn, &store.frames[&lsn], &mut store.effects).unwrap();
    store.hear();
    store.engine.check();
    assert_ne!(store.engine.bodies().wanted_frame(), Some(lsn), "it is not there any more");
    assert_eq!(store.settle(), [Reply::Places(vec![0])]);
}

/// A session's next command says that the element it popped has arrived, though the command waits.
#[test]
fn body_wait_confirms_last_protected_pop() {
    let mut store = Store::bare();
    store.push("protected", &[b"taken"]);
    store.push("list", &[b"one", b"other"]);
    store.write();
    let pop = ListCommand::Pop { queue: name("protected"), end: End::Head, max: 1 };
    let popped = store.list(ONE, pop);
    assert!(matches!(&popped[..], [Reply::Elements(elements)] if elements.len() == 1));
    assert_eq!(store.list(ONE, locate("list", End::Head, b"other")), [], "it waits");
    store.engine.close_session(store.now, ONE, Capacity::UNBOUNDED, &mut store.effects);
    store.settle();
    let length = ListCommand::Length { queue: name("protected") };
    assert_eq!(store.list(OTHER, length), [Reply::Count(0)]);
}

#[test]
fn batch_over_body_limit_clears_watch() {
    let mut store = Store::bare();
    for _ in 0..70 {
        store.push("l", &[&[b'x'; 1_000_000]]);
    }
    store.write();
    assert_eq!(store.ask(ONE, Command::Observe { names: vec![name("w")] }), [Reply::Done]);
    let mut asked = store.ask(ONE, batch(vec![remove("l", End::Head, &[b'y'; 10])]));
    asked.append(&mut store.settle());
    assert_eq!(asked, [Reply::Refused(TOO_MANY_BYTES)]);
    store.push("w", &[b"changed"]);
    // A transaction that watches nothing.
    let mut replies = store.ask(ONE, batch(vec![ListCommand::Length { queue: name("w") }]));
    replies.append(&mut store.settle());
    assert_eq!(replies, [Reply::Batch(vec![Reply::Count(1)])]);
}

/// As for a batch that fits: after a look at the changes, the client's next batch may fit.
#[test]
fn batch_over_body_limit_stale_first() {
    let mut store = Store::bare();
    for _ in 0..70 {
        store.push("l", &[&[b'x'; 1_000_000]]);
    }
    store.write();
    assert_eq!(store.ask(ONE, Command::Observe { names: vec![name("w")] }), [Reply::Done]);
    store.push("w", &[b"changed"]);
    let too_much = || batch(vec![remove("l", End::Head, &[b'y'; 10])]);
    assert_eq!(store.ask(ONE, too_much()), [Reply::Stale]);
    assert_eq!(store.ask(ONE, too_much()), [Reply::Refused(TOO_MANY_BYTES)], "once");
}
