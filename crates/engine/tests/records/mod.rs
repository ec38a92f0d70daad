//! Recovery from records that no engine wrote: see `hostile.rs`.
//!
//! `SEEDS=FOLDER cargo test -p dunlin-engine --test integration records` writes the inputs that the
//! fuzzer begins with.

mod hostile;

use engine::{Effects, Engine, EngineOptions};
use hostile::{FUZZY, LOAD, LSN_SHIFT, REPLAY, RESTORE};
use model::{
    AdminCommand, Capacity, Command, DeadReason, Deadline, DeadlineRule, Destination, End, Format,
    KeyCommand, LinkId, ListCommand, MessageId, Nanos, NewMessage, OwnPolicy, Persistence,
    PolicyChange, QueueName, QueueRule, SessionId, SetRule, Settlement, StorePolicy, Subscription,
    SubscriptionName, TransactionId, ValueDeadline, WhenFull,
};
use testkit::Rng;

use crate::support::log::{Log, Snapshot};

const SESSION: SessionId = SessionId(1);
const ROUNDS: usize = 20_000;

/// Bytes that mean something at many places.
const PIECES: [u8; 7] = [0, 1, 2, 3, 0x7f, 0x80, 0xff];

#[test]
fn fuzz_corpus_breaks_nothing() {
    testkit::replay("engine_records", |bytes| {
        hostile::recovery(bytes);
    });
}

#[test]
fn seeds_and_damaged_seeds_break_nothing() {
    let seeds: Vec<Vec<u8>> = (0..COMMANDS).step_by(4).map(seed).collect();
    testkit::write_seeds(&seeds);
    let mut rng = Rng::new(0x5eed);
    for _ in 0..ROUNDS {
        let mut seed = rng.pick(&seeds);
        for _ in 0..=rng.below(4) {
            testkit::damage(&mut seed, &seeds, &PIECES, &mut rng);
        }
        hostile::recovery(&seed);
    }
}

/// The log of a short story, with a snapshot that was begun after so many commands. Recovery
/// accepts it, so the inputs tried above are more than refusals.
fn seed(after: usize) -> Vec<u8> {
    let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
    let capacity = Capacity { room_bytes: 1 << 20, ..Capacity::UNBOUNDED };
    engine.open_session(SESSION);
    let (mut effects, mut log) = (Effects::default(), Log::default());
    let mut snapshot = None;
    for (number, command) in story().into_iter().enumerate() {
        if number == after {
            snapshot = Some(Snapshot::begin(&engine, 3));
        }
        let now = Nanos::from_secs(1_000 + number as u64);
        engine.handle(now, SESSION, command, capacity, &mut effects);
        log.absorb(&effects);
        effects.clear();
        if let Some(snapshot) = snapshot.as_mut().filter(|snapshot| snapshot.end.is_none()) {
            snapshot.step(&engine);
        }
    }
    let snapshot = snapshot.expect("it is begun within the story");
    let end = snapshot.end.unwrap_or(engine.last_lsn());
    let mut out = vec![snapshot.begin.0 as u8];
    for chunk in &snapshot.chunks {
        put(&mut out, LOAD, chunk);
    }
    for (frame, payload) in log.frames.iter().filter(|(frame, _)| frame.lsn > snapshot.begin) {
        put(&mut out, if frame.lsn <= end { REPLAY | FUZZY } else { REPLAY }, payload);
    }
    for (frame, payload) in log.frames.iter().filter(|(frame, _)| frame.lsn <= snapshot.begin) {
        put(&mut out, RESTORE | (frame.lsn.0 as u8) << LSN_SHIFT, payload);
    }
    assert!(hostile::recovery(&out), "the seed after {after} commands is sound");
    out
}

fn put(out: &mut Vec<u8>, how: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).expect("short pieces");
    out.extend([how, length]);
    out.extend_from_slice(payload);
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn to(text: &str) -> Destination {
    Destination::Queue(name(text))
}

fn message(number: u64) -> NewMessage {
    NewMessage { lease: Nanos::SECOND, ..NewMessage::new(number.to_le_bytes()[..].into()) }
}

fn rule(queue: &str, rule: QueueRule) -> Command {
    let mut set = OwnPolicy::default();
    set.set(rule);
    let (queue, change) = (name(queue), Box::new(PolicyChange::to(set)));
    Command::Admin(Box::new(AdminCommand::ChangePolicy { queue, change }))
}

const COMMANDS: usize = 31;

/// Something of each kind of record.
fn story() -> Vec<Command> {
    let client = Some(name("c"));
    let subscription = Subscription {
        name: Some(SubscriptionName {
            user: Some("ann".into()),
            client: client.clone(),
            name: name("s"),
            durable: true,
        }),
        selector: Some("x IS NULL".into()),
        shared: true,
        without: Some(name("o")),
        ..Subscription::new(name("t"))
    };
    let other = Subscription {
        name: Some(SubscriptionName { user: None, client, name: name("u"), durable: true }),
        selector: None,
        without: None,
        ..subscription.clone()
    };
    let put = |to: Destination, message| Command::PutTo { to, message, transaction: None };
    let transaction = TransactionId(1);
    let within = |to, message| Command::PutTo { to, message, transaction: Some(transaction) };
    let at = Deadline::At(Nanos::from_secs(100_000));
    let persistence = Persistence::Persistent;
    let list = |command| Command::List(command);
    let key = |command| Command::Key(command);
    let push = |end| ListCommand::Push {
        queue: name("l"),
        end,
        elements: model::OneOrMany::Many(vec![b"e"[..].into(), b"f"[..].into()]),
        only_existing: false,
        persistence,
    };
    let topic = || Destination::Topic(name("t"));
    let value = |text: &str| KeyCommand::SetValue {
        name: name(text),
        value: b"v"[..].into(),
        deadline: ValueDeadline::New(at),
        rule: SetRule::Always,
        want_old: false,
    };
    let settle = |message, settlement| Command::Settle {
        message: MessageId(message),
        settlement,
        transaction: None,
    };
    vec![
        put(to("q"), message(1)),
        put(to("q"), NewMessage { priority: 7, delay: Nanos::SECOND, ..message(2) }),
        put(to("q"), NewMessage { send_id: Some("i".into()), ..message(3) }),
        put(to("q"), NewMessage { format: Format(1), ..message(4) }),
        Command::Lease { message: MessageId(1) },
        Command::Bury { message: MessageId(1), priority: 5 },
        Command::Lease { message: MessageId(3) },
        Command::Release { message: MessageId(3), priority: 5, delay: Some(Nanos::SECOND) },
        Command::Subscribe { link: LinkId(1), subscription: Box::new(subscription) },
        Command::Subscribe { link: LinkId(2), subscription: Box::new(other) },
        put(topic(), NewMessage { expires: Some(Nanos::from_secs(100_000)), ..message(5) }),
        put(topic(), message(7)),
        Command::Credit { link: LinkId(1), limit: 2, bytes: u64::MAX, drain: false },
        settle(5, Settlement::Fail),
        settle(7, Settlement::Park(DeadReason::Rejected)),
        Command::CloseConsumer { link: LinkId(2) },
        Command::Unsubscribe {
            name: SubscriptionName {
                user: None,
                client: Some(name("c")),
                name: name("u"),
                durable: true,
            },
        },
        list(push(End::Tail)),
        list(push(End::Head)),
        list(ListCommand::Move {
            from: name("l"),
            from_end: End::Tail,
            to: name("m"),
            to_end: End::Head,
            wait: Some(Nanos::ZERO),
        }),
        key(value("v")),
        key(value("w")),
        key(KeyCommand::Delete { names: vec![name("w")] }),
        key(KeyCommand::SetDeadline { name: name("l"), deadline: at, rule: DeadlineRule::Always }),
        rule("q", QueueRule::MessagesMax(Some(300))),
        rule("r", QueueRule::WhenFull(WhenFull::DropOldest)),
        Command::Admin(Box::new(AdminCommand::ChangePolicy {
            queue: name("r"),
            change: Box::new(PolicyChange::to(OwnPolicy::default())),
        })),
        Command::Begin { transaction },
        within(to("q"), message(20)),
        within(topic(), message(21)),
        Command::Commit { transaction },
    ]
}
