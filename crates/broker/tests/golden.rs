//! Data directories that released versions wrote stay loadable, message by message.
//!
//! `golden/vN` is a directory of format version N, `golden/vN.txt` its content. A new format adds a
//! directory: `GOLDEN=v2 cargo test -p dunlin-broker golden` writes it.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use broker::{Broker, BrokerOptions};
use disk::{File, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    AdminCommand, Command, DeadLetters, DeadReason, Deadline, DeadlineRule, Destination, End,
    Expiry, Format, KeyCommand, KeyKind, LinkId, ListCommand, Matching, MessageId, Nanos,
    NewMessage, Output, OwnPolicy, Peek, Persistence, PolicyChange, QueueName, QueueRule,
    ReleaseOrder, Reply, SessionId, SetRule, Settlement, StorePolicy, Subscription,
    SubscriptionName, SubscriptionOwner, Thousandths, TransactionId, ValueDeadline, WhenFull,
};

use crate::support::{open_disk, small_log, work_once};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);

#[test]
fn released_formats_are_read() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    if let Some(version) = std::env::var_os("GOLDEN") {
        write(&golden.join(version));
    }
    let mut read = 0;
    for entry in fs::read_dir(&golden).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            assert_eq!(contents(&copy(&path, "read")), expected, "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 1, "there is at least version 1");
}

/// A log of an older version is read, gone on with in the newest, and read again: the log holds the
/// old messages and their later changes.
#[test]
fn log_continues_every_released_format() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in fs::read_dir(&golden).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
        let directory = copy(&path, "goes-on");
        for first in [81, 121] {
            let mut store = Store::open(&directory);
            fill(&mut store, first);
            store.broker.check();
        }
        assert!(described(&directory, 1..=80) == expected, "{}", path.display());
        let described = described(&directory, 81..=160);
        let is_message = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
        let messages = described.lines().filter(is_message);
        assert_eq!(messages.count(), 80 - 13, "{}", path.display());
        fs::remove_dir_all(directory).unwrap();
    }
}

/// A broker on a real directory, driven without threads.
struct Store {
    disk: RealDisk,
    broker: Broker<File>,
}

impl Store {
    fn open(path: &Path) -> Self {
        let disk = open_disk(path);
        let policy = StorePolicy::Always;
        let journal = JournalOptions { reserve_bytes: 16 * 1024, ..small_log(policy) };
        let engine = EngineOptions::new(policy);
        let (mut broker, _) = Broker::open(&disk, BrokerOptions { engine, journal }).unwrap();
        broker.open_session(SESSION);
        let mut store = Self { disk, broker };
        store.settle();
        store
    }

    fn run(&mut self, command: Command) -> Reply {
        self.run_all(command).remove(0).reply
    }

    fn run_all(&mut self, command: Command) -> Vec<Output> {
        let mut outputs: Vec<Output> = Vec::new();
        self.broker.handle(NOW, SESSION, command, &mut outputs);
        self.settle();
        // A commit that is a chain waits for room.
        while outputs.is_empty() {
            self.broker.handle_timeout(NOW, &mut outputs);
            self.settle();
        }
        outputs
    }

    fn settle(&mut self) {
        while work_once(&mut self.broker, &self.disk, NOW) {}
    }
}

/// Every kind of record, in a snapshot and behind it.
fn write(path: &Path) {
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path).unwrap();
    let mut store = Store::open(path);
    fill(&mut store, 1);
    store.broker.begin_shutdown();
    store.settle();
    assert!(store.broker.is_idle());
    drop(store);
    let mut store = Store::open(path);
    let story = match path.file_name().and_then(|name| name.to_str()) {
        Some("v2-topics") => Some(publish as fn(&mut Store)),
        Some("v2-keys") => Some(push as fn(&mut Store)),
        Some("v2-policies") => Some(rule as fn(&mut Store)),
        Some("v2-redelivery") => Some(delay_redelivery as fn(&mut Store)),
        Some("v2-fingerprints") => Some(name_twice as fn(&mut Store)),
        Some("v2-patterns") => Some(match_names as fn(&mut Store)),
        _ => None,
    };
    if let Some(story) = story {
        story(&mut store);
        store.broker.begin_shutdown();
        store.settle();
        drop(store);
        story(&mut Store::open(path));
    } else {
        fill(&mut store, 41);
        drop(store);
    }
    fs::remove_file(path.join("lock")).unwrap();
    fs::write(path.with_extension("txt"), contents(&copy(path, "written"))).unwrap();
}

fn fill(store: &mut Store, first: u64) {
    for id in first..first + 40 {
        let queue = QueueName::new(["default", "mail", "größer"][id as usize % 3]).unwrap();
        store.run(Command::OpenProducer { link: LINK, to: Destination::Queue(queue) });
        let delay = if id.is_multiple_of(7) { Nanos::from_secs(id) } else { Nanos::ZERO };
        let message = NewMessage {
            priority: (id % 5) as u32,
            delay,
            lease: Nanos::from_secs(60 + id),
            ..NewMessage::new(vec![id as u8; id as usize].into())
        };
        assert_eq!(
            store.run(Command::Put { link: LINK, message, transaction: None }),
            Reply::Stored { message: MessageId(id) }
        );
        settle_some(store, MessageId(id));
    }
}

/// Every kind of record of topics: two durable subscriptions, one of them made anew, a message of
/// both settled in a transaction, one among the dead letters, and one that failed.
fn publish(store: &mut Store) {
    store.run(Command::Unsubscribe { name: golden("b").name.unwrap() });
    for (link, name) in [(LINK, "a"), (LinkId(1), "b")] {
        let subscription = golden(name);
        assert_eq!(store.run(Command::Subscribe { link, subscription }), Reply::Done);
    }
    for number in 1..=10 {
        let message = NewMessage {
            format: Format(number),
            expires: (number == 10).then(|| NOW + Nanos::from_secs(60)),
            ..NewMessage::new(vec![number; 10].into())
        };
        let to = Destination::Topic(QueueName::new("prices").unwrap());
        let put = Command::PutTo { to, message, transaction: None };
        assert!(matches!(store.run(put), Reply::Stored { .. }));
    }
    let delivered =
        store.run_all(Command::Credit { link: LINK, limit: 3, bytes: u64::MAX, drain: false });
    let transaction = TransactionId(1);
    assert_eq!(store.run(Command::Begin { transaction }), Reply::Done);
    let how = [Settlement::Accept, Settlement::Fail, Settlement::Park(DeadReason::Rejected)];
    for (output, settlement) in delivered.into_iter().zip(how) {
        let Reply::Delivered(delivery) = output.reply else { panic!("{output:?}") };
        let (message, transaction) = (delivery.message, Some(transaction));
        let settle = Command::Settle { message, settlement, transaction };
        assert_eq!(store.run(settle), Reply::Done);
    }
    assert_eq!(store.run(Command::Commit { transaction }), Reply::Done);
    for link in [LINK, LinkId(1)] {
        assert_eq!(store.run(Command::CloseConsumer { link }), Reply::Done);
    }
}

/// Subscriptions of patterns, and with an end: one that is stated again and one made anew, with 20
/// numbers of messages.
fn match_names(store: &mut Store) {
    let number = next_message(store);
    let hours = |hours| Nanos::from_secs(hours * 3_600);
    let expiries = [
        Some(Expiry { with: SubscriptionOwner::Consumers, after: Nanos::ZERO }),
        Some(Expiry { with: SubscriptionOwner::Session, after: hours(number) }),
    ];
    let subscribe = |store: &mut Store, link, name, topic, expiry| {
        let subscription = Box::new(Subscription {
            topic: QueueName::new(topic).unwrap(),
            matching: Matching::Words,
            selector: None,
            expiry,
            ..*golden(name)
        });
        let reply = store.run(Command::Subscribe { link, subscription });
        assert_eq!(reply, Reply::Done);
    };
    subscribe(store, LinkId(2), "a", "news.#", None);
    store.run(Command::Unsubscribe { name: golden("b").name.unwrap() });
    for (link, expiry) in [LINK, LinkId(1)].into_iter().zip(expiries) {
        subscribe(store, link, "b", "*.eu.>", expiry);
    }
    let to = || Destination::Topic(QueueName::new("news.eu.sport").unwrap());
    while next_message(store) < number + 20 {
        let message = NewMessage::new(b"published"[..].into());
        let put = Command::PutTo { to: to(), message, transaction: None };
        assert!(matches!(store.run(put), Reply::Stored { .. }));
    }
    for link in 0..3 {
        assert_eq!(store.run(Command::CloseConsumer { link: LinkId(link) }), Reply::Done);
    }
}

/// Every kind of record of lists and keys, with 20 numbers of messages: places at both ends and in
/// between, moves, deadlines, values. Also a name that a sender gave, and a commit as a chain of
/// frames.
fn push(store: &mut Store) {
    let next = next_message(store);
    let queue = || QueueName::new("key-a").unwrap();
    let to = || QueueName::new("key-b").unwrap();
    let list = |command| Command::List(command);
    let key = |command| Command::Key(command);
    let persistence = Persistence::Persistent;
    for (end, element) in [(End::Tail, b"tail"), (End::Head, b"head")] {
        let (queue, elements) = (queue(), vec![element[..].into(), element[..].into()]);
        let only_existing = false;
        let push = ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing,
            persistence,
        };
        assert!(matches!(store.run(list(push)), Reply::Count(_)));
    }
    let (origin, towards, pivot) = (End::Head, End::Head, b"tail"[..].into());
    let element = b"inserted"[..].into();
    let insert =
        ListCommand::Insert { queue: queue(), origin, pivot, towards, element, persistence };
    assert!(matches!(store.run(list(insert)), Reply::Count(_)));
    let (at, element) = (-1, b"replaced"[..].into());
    let replace = ListCommand::Replace { queue: queue(), origin, at, element, persistence };
    assert_eq!(store.run(list(replace)), Reply::Done);
    for to_end in [End::Head, End::Tail] {
        let (from, from_end, to) = (queue(), End::Tail, to());
        let wait = Some(Nanos::ZERO);
        let moved = ListCommand::Move { from, from_end, to, to_end, wait };
        assert!(matches!(store.run(list(moved)), Reply::Elements(_)));
    }
    let deadline = Deadline::At(NOW + Nanos::from_secs(3_600));
    let set = KeyCommand::SetDeadline { name: to(), deadline, rule: DeadlineRule::Always };
    assert_eq!(store.run(key(set)), Reply::Count(1));
    for name in ["key-v", "key-w"] {
        let name = QueueName::new(name).unwrap();
        let (value, rule) = (next.to_le_bytes()[..].into(), SetRule::Always);
        let deadline = ValueDeadline::New(deadline);
        let set = KeyCommand::SetValue { name, value, deadline, rule, want_old: false };
        assert!(matches!(store.run(key(set)), Reply::Replaced { set: true, .. }));
    }
    let names = vec![QueueName::new("key-w").unwrap()];
    assert_eq!(store.run(key(KeyCommand::Delete { names })), Reply::Count(1));
    send_named(store);
    let transaction = TransactionId(1);
    assert_eq!(store.run(Command::Begin { transaction }), Reply::Done);
    while next_message(store) < next + 12 {
        pad(store, None);
    }
    for _ in 0..8 {
        pad(store, Some(transaction));
    }
    assert_eq!(store.run(Command::Commit { transaction }), Reply::Done);
    assert_eq!(next_message(store), next + 20, "the numbers of one round");
}

/// Rules of queues, with 20 numbers of messages: one has others in the end and one has none, the
/// second time one gets others.
fn rule(store: &mut Store) {
    let number = next_message(store);
    for (queue, rules) in [
        (
            "rules-a",
            &[QueueRule::MessagesMax(Some(number)), QueueRule::WhenFull(WhenFull::Reject)][..],
        ),
        (
            "rules-b",
            &[QueueRule::MaxDeliveryAttempts(0), QueueRule::TargetAge(Some(Nanos::SECOND))],
        ),
        ("rules-b", &[QueueRule::PopLease(Some(Nanos::SECOND)), QueueRule::BytesMax(None)]),
        ("rules-c", &[QueueRule::ReleaseOrder(ReleaseOrder::Back)]),
        ("rules-c", &[]),
        ("rules-d", &[QueueRule::DeadLetters(DeadLetters::Drop)]),
    ] {
        let mut set = OwnPolicy::default();
        rules.iter().for_each(|rule| set.set(*rule));
        let queue = QueueName::new(queue).unwrap();
        let change = Box::new(PolicyChange::to(set));
        let change = AdminCommand::ChangePolicy { queue, change };
        assert!(matches!(store.run(Command::Admin(Box::new(change))), Reply::Policy(_)));
    }
    while next_message(store) < number + 20 {
        pad(store, None);
    }
}

/// Rules of redelivery, with 20 numbers of messages, the first of which a consumer failed.
fn delay_redelivery(store: &mut Store) {
    let number = next_message(store);
    let mut set = OwnPolicy::default();
    set.set(QueueRule::RedeliveryDelay(Some(Nanos::SECOND)));
    set.set(QueueRule::RedeliveryFactor(Thousandths(1_500)));
    set.set(QueueRule::RedeliveryMax(None));
    set.set(QueueRule::RedeliveryJitter(Thousandths(250)));
    let queue = QueueName::new("padding").unwrap();
    let change = Box::new(PolicyChange::to(set));
    let change = AdminCommand::ChangePolicy { queue, change };
    assert!(matches!(store.run(Command::Admin(Box::new(change))), Reply::Policy(_)));
    while next_message(store) < number + 20 {
        pad(store, None);
    }
    let message = MessageId(number);
    assert!(matches!(store.run(Command::Lease { message }), Reply::Delivered(_)));
    let (settlement, transaction) = (Settlement::Fail, None);
    assert_eq!(store.run(Command::Settle { message, settlement, transaction }), Reply::Done);
}

/// The rules of [`rule`].
fn describe_rules(store: &mut Store, text: &mut String) {
    let all = AdminCommand::ListPolicies { after: None, max: 100 };
    let Reply::OwnPolicies(all) = store.run(Command::Admin(Box::new(all))) else {
        panic!("they are listed")
    };
    for (name, own) in all {
        let rules = own.iter().map(|rule| format!(" {}={rule}", rule.key().word()));
        writeln!(text, "Rules of {name}:{}", rules.collect::<String>()).unwrap();
    }
}

/// A name and its fingerprint, with 20 numbers of messages.
fn name_twice(store: &mut Store) {
    let number = next_message(store);
    send_named(store);
    while next_message(store) < number + 20 {
        pad(store, None);
    }
}

/// Twice under one name: it is stored once.
fn send_named(store: &mut Store) {
    for _ in 0..2 {
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        let message = NewMessage { send_id: send_id(), ..NewMessage::new(b"named"[..].into()) };
        let reply = store.run(Command::PutTo { to, message, transaction: None });
        assert!(matches!(reply, Reply::Stored { .. }));
    }
}

fn send_id() -> Option<std::sync::Arc<str>> {
    Some("order 1".into())
}

/// The answers to the same message again, and to another, under the name of [`send_named`]. A
/// message of older versions cannot be told from another.
fn describe_names(store: &mut Store, text: &mut String) {
    let next = next_message(store);
    let mut ask = |body: &[u8]| {
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        let message = NewMessage { send_id: send_id(), ..NewMessage::new(body.into()) };
        store.run(Command::PutTo { to, message, transaction: None })
    };
    let again = ask(b"named");
    if again != (Reply::Stored { message: MessageId(next) }) {
        writeln!(text, "Name order 1: again {again:?}, otherwise {:?}", ask(b"other")).unwrap();
    }
}

fn pad(store: &mut Store, transaction: Option<TransactionId>) {
    let to = Destination::Queue(QueueName::new("padding").unwrap());
    let message = NewMessage::new(vec![b'x'; 1_000].into());
    let reply = store.run(Command::PutTo { to, message, transaction });
    assert!(matches!(reply, Reply::Stored { .. } | Reply::Done));
}

fn next_message(store: &mut Store) -> u64 {
    let command = Command::Admin(Box::new(AdminCommand::NextMessage));
    let Reply::Stored { message } = store.run(command) else { panic!("it has no number") };
    message.0
}

/// The keys of [`push`], each whole.
fn describe_keys(store: &mut Store, text: &mut String) {
    for name in ["key-a", "key-b", "key-v", "key-w"] {
        let name = || QueueName::new(name).unwrap();
        let kind = store.run(Command::Key(KeyCommand::Kind { name: name() }));
        let what = match kind {
            Reply::Kind(Some(KeyKind::List)) => {
                let (origin, first, last) = (End::Head, 0, -1);
                let range = ListCommand::Range { queue: name(), origin, first, last };
                let Reply::Elements(elements) = store.run(Command::List(range)) else {
                    panic!("{} is no list", name());
                };
                let elements = elements.iter().map(|it| it.payload().escape_ascii().to_string());
                elements.collect::<Vec<_>>().join(" ")
            }
            Reply::Kind(Some(KeyKind::Value)) => {
                let value =
                    store.run(Command::Key(KeyCommand::Value { name: name(), take: false }));
                format!("{value:?}")
            }
            _ => continue,
        };
        let lifetime = store.run(Command::Key(KeyCommand::Lifetime { name: name() }));
        writeln!(text, "Key {}: {what}; {lifetime:?}", name()).unwrap();
    }
}

fn golden(name: &str) -> Box<Subscription> {
    let client = Some(QueueName::new("client").unwrap());
    let name = QueueName::new(name).unwrap();
    Box::new(Subscription {
        name: Some(SubscriptionName { user: None, client: client.clone(), name, durable: true }),
        selector: Some("missing IS NULL".into()),
        shared: true,
        without: Some(QueueName::new("other").unwrap()),
        ..Subscription::new(QueueName::new("prices").unwrap())
    })
}

fn settle_some(store: &mut Store, message: MessageId) {
    let id = message.0;
    if id.is_multiple_of(4) {
        assert!(matches!(store.run(Command::Lease { message }), Reply::Delivered(_)));
        let priority = 1000 + id as u32;
        let settle = match id % 3 {
            0 => Command::Bury { message, priority },
            1 => Command::Release { message, priority, delay: Some(Nanos::ZERO) },
            _ => Command::Release { message, priority, delay: Some(Nanos::from_secs(id)) },
        };
        assert_eq!(store.run(settle), Reply::Done);
    }
    if id % 6 == 5 {
        assert_eq!(store.run(Command::Delete { message }), Reply::Done);
    }
}

fn contents(path: &Path) -> String {
    let text = described(path, 1..=80);
    fs::remove_dir_all(path).unwrap();
    text
}

fn described(path: &Path, ids: RangeInclusive<u64>) -> String {
    let mut store = Store::open(path);
    let mut text = String::new();
    for id in ids {
        let message = MessageId(id);
        let Reply::MessageStatistics(job) = store.run(Command::MessageStatistics { message })
        else {
            continue;
        };
        let Reply::Found { element, .. } = store.run(Command::Peek(Peek::Message(message))) else {
            panic!("{id} has no body");
        };
        writeln!(
            text,
            "{id} {} {:?} priority {} delay {} lease {} body {} of {:?}",
            job.queue,
            job.state,
            job.priority,
            job.delay,
            job.lease,
            element.payload().len(),
            element.payload().first()
        )
        .unwrap();
    }
    for name in ["a", "b"] {
        let name = golden(name).name.unwrap();
        let found = store.run(Command::FindSubscription { name });
        if let Reply::Subscription(subscription) = found {
            describe_subscription(&subscription, &mut text);
        }
    }
    describe_keys(&mut store, &mut text);
    describe_rules(&mut store, &mut text);
    describe_names(&mut store, &mut text);
    store.broker.check();
    text
}

fn describe_subscription(subscription: &Subscription, text: &mut String) {
    let Subscription { name, topic, matching, selector, shared, without, expiry } = subscription;
    write!(
        text,
        "Subscription {{ name: {name:?}, topic: {topic:?}, selector: {selector:?}, \
         shared: {shared}, without: {without:?} }}"
    )
    .unwrap();
    if *matching != Matching::Name {
        write!(text, " by {matching:?}").unwrap();
    }
    if let Some(expiry) = expiry {
        write!(text, " ends {expiry:?}").unwrap();
    }
    text.push('\n');
}

/// Opening a directory writes to it.
fn copy(path: &Path, purpose: &str) -> PathBuf {
    let version = path.file_name().unwrap().display();
    let name = format!("dunlin-golden-{}-{purpose}-{version}", std::process::id());
    let target = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
    target
}
