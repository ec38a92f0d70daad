//! How much one reply shows: a command beyond it is refused, and the elements stay.

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, DependsOn, End, KeyCommand, ListCommand, Nanos, OneOrMany, Output,
    Persistence, QueueName, Refusal, Reply, SessionId, SetRule, StorePolicy, ValueDeadline, limits,
};

const NOW: Nanos = Nanos::SECOND;
const BY: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);

/// So much may be shown: four elements of this size.
const SHOWN_MAX: usize = 4 * (ELEMENT_BYTES + limits::BESIDE_ELEMENT_BYTES);
const ELEMENT_BYTES: usize = 1_000;
const REFUSED: Reply = Reply::Refused(Refusal::TooManyBytes { max: SHOWN_MAX });

struct Harness {
    engine: Engine,
    effects: Effects,
}

impl Harness {
    fn new() -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { reply_bytes_max: SHOWN_MAX, ..options });
        engine.open_session(BY);
        engine.open_session(OTHER);
        Self { engine, effects: Effects::default() }
    }

    /// The replies to this command and to all that waited.
    fn all(&mut self, by: SessionId, command: Command) -> Vec<(SessionId, Reply)> {
        self.effects.clear();
        self.engine.handle(NOW, by, command, Capacity::UNBOUNDED, &mut self.effects);
        let outputs = self.effects.outputs.drain(..);
        let judged = outputs.map(|Output { session, after, reply }| {
            assert!(reply != REFUSED || after != DependsOn::NOTHING, "it tells what is there");
            (session, reply)
        });
        judged.collect()
    }

    fn run(&mut self, command: Command) -> Reply {
        let [(BY, reply)] = &self.all(BY, command)[..] else { panic!("it is answered once") };
        reply.clone()
    }

    fn batch(&mut self, commands: Vec<Command>) -> Vec<Reply> {
        let Reply::Batch(replies) = self.run(Command::Batch { commands }) else {
            panic!("a batch is answered")
        };
        replies
    }

    fn with_elements(count: usize, bytes: usize) -> Self {
        let mut house = Self::new();
        for _ in 0..count {
            house.run(push("l", bytes));
        }
        house
    }

    fn length(&mut self, list: &str) -> Reply {
        self.run(Command::List(ListCommand::Length { queue: name(list) }))
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn push(list: &str, bytes: usize) -> Command {
    Command::List(ListCommand::Push {
        queue: name(list),
        end: End::Tail,
        elements: OneOrMany::One(vec![b'x'; bytes].into()),
        only_existing: false,
        persistence: Persistence::Persistent,
    })
}

fn pop(max: u64) -> Command {
    Command::List(ListCommand::Pop { queue: name("l"), end: End::Head, max })
}

fn range() -> Command {
    let queue = name("l");
    Command::List(ListCommand::Range { queue, origin: End::Head, first: 0, last: -1 })
}

fn shift(from: &str, wait: Option<Nanos>) -> Command {
    let (from_end, to, to_end) = (End::Head, name("l"), End::Tail);
    Command::List(ListCommand::Move { from: name(from), from_end, to, to_end, wait })
}

fn set(want_old: bool) -> Command {
    Command::Key(KeyCommand::SetValue {
        name: name("v"),
        value: vec![b'v'; ELEMENT_BYTES].into(),
        deadline: ValueDeadline::Never,
        rule: SetRule::Always,
        want_old,
    })
}

fn get() -> Command {
    Command::Key(KeyCommand::Value { name: name("v"), take: false })
}

fn elements_of(reply: &Reply) -> usize {
    match reply {
        Reply::Elements(elements) => elements.len(),
        Reply::Popped { elements, .. } => elements.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pop_takes_only_what_reply_holds() {
    let mut house = Harness::with_elements(6, ELEMENT_BYTES);
    assert_eq!(house.run(range()), REFUSED);
    assert_eq!(elements_of(&house.run(pop(100))), 4);
    assert_eq!(elements_of(&house.run(range())), 2);
    assert_eq!(elements_of(&house.run(pop(100))), 2);
    house.engine.check();
}

/// Without this a transaction of some KiB is answered with as many GiB as it likes.
#[test]
fn batch_replies_share_one_budget() {
    let mut house = Harness::with_elements(3, ELEMENT_BYTES);
    let wait = Some(Nanos::ZERO);
    let replies = house.batch((0..7).map(|_| shift("l", wait)).collect());
    assert_eq!(replies[..4].iter().map(elements_of).sum::<usize>(), 4);
    assert_eq!(replies[4..], [REFUSED; 3]);
    assert_eq!(house.length("l"), Reply::Count(3));

    house.run(set(false));
    let replies = house.batch((0..7).map(|_| get()).collect());
    let shown = replies.iter().take_while(|reply| matches!(reply, Reply::Value(Some(_)))).count();
    assert_eq!(shown, SHOWN_MAX.div_ceil(ELEMENT_BYTES), "the last one may go beyond");
    assert!(replies[shown..].iter().all(|reply| *reply == REFUSED), "{replies:?}");

    let replies = house.batch((0..7).map(|_| set(true)).collect());
    assert_eq!(replies[shown..], [REFUSED; 2]);
    let silent = house.batch((0..7).map(|_| set(false)).collect());
    assert!(!silent.contains(&REFUSED), "what shows nothing goes on");
    house.engine.check();
}

#[test]
fn batch_elements_over_budget_stay() {
    let mut house = Harness::with_elements(6, ELEMENT_BYTES);
    let replies = house.batch(vec![pop(3), pop(3), pop(3), push("l", 1), pop(1)]);
    assert_eq!((elements_of(&replies[0]), elements_of(&replies[1])), (3, 1));
    assert_eq!((&replies[2], &replies[4]), (&REFUSED, &REFUSED));
    assert_eq!(house.length("l"), Reply::Count(3));
    assert_eq!(elements_of(&house.run(pop(1))), 1, "the next command shows as much as ever");
    house.engine.check();
}

/// From a time with more memory, or by a protocol that shows it piece by piece.
#[test]
fn element_over_reply_budget_stays() {
    let mut house = Harness::with_elements(1, SHOWN_MAX);
    let wait = Some(Nanos::ZERO);
    for command in [pop(1), pop(100), range(), shift("l", wait)] {
        assert_eq!(house.run(command), REFUSED);
    }
    let queues = vec![name("l")];
    let first = Command::List(ListCommand::PopFirst { queues, end: End::Head, max: 1, wait });
    assert_eq!(house.run(first), REFUSED);
    assert_eq!(house.length("l"), Reply::Count(1));
    house.engine.check();
}

#[test]
fn waiting_pop_of_oversized_element_refused() {
    let mut house = Harness::new();
    let queues = vec![name("l")];
    let command = ListCommand::PopFirst { queues, end: End::Head, max: 1, wait: None };
    assert_eq!(house.all(OTHER, Command::List(command)), []);
    let answers = house.all(BY, push("l", SHOWN_MAX));
    assert_eq!(answers, [(BY, Reply::Count(1)), (OTHER, REFUSED)]);

    assert_eq!(house.all(OTHER, shift("m", None)), []);
    let answers = house.all(BY, push("m", SHOWN_MAX));
    assert_eq!(answers, [(BY, Reply::Count(1)), (OTHER, REFUSED)]);
    assert_eq!((house.length("l"), house.length("m")), (Reply::Count(1), Reply::Count(1)));
    house.engine.check();
}
