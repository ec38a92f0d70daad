//! The cost of selectors: the work for one message is bounded, and long work is done in steps.

use std::cell::Cell;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, ConsumerMode, Destination, Format, Formats, Found, LinkId, Nanos,
    NewMessage, PropertyValue, QueueName, Refusal, Reply, SessionId, StorePolicy, Subject,
    Subscription, limits,
};
use selector::Selector;

const SESSION: SessionId = SessionId(1);
const NOW: Nanos = Nanos::SECOND;

thread_local! {
    /// How often a property was looked for, and how often all were.
    static ASKED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Harness {
    engine: Engine,
}

impl Harness {
    fn new() -> Self {
        let formats = Formats { property, index, ..Formats::RAW };
        let options = EngineOptions { formats, ..EngineOptions::new(StorePolicy::Memory) };
        let mut house = Self { engine: Engine::new(options) };
        house.engine.open_session(SESSION);
        house
    }

    fn ask(&mut self, command: Command) -> Vec<Reply> {
        let mut effects = Effects::default();
        self.engine.handle(NOW, SESSION, command, Capacity::UNBOUNDED, &mut effects);
        self.engine.check();
        effects.outputs.into_iter().map(|output| output.reply).collect()
    }

    fn consume(&mut self, link: u32, selector: &str, mode: ConsumerMode) -> Reply {
        let selector = Some(selector.into());
        let command =
            Command::OpenConsumer { link: LinkId(link), queue: name("q"), selector, mode };
        self.ask(command).remove(0)
    }

    fn subscribe(&mut self, link: u32, selector: &str) -> Reply {
        let selector = Some(selector.into());
        let subscription = Subscription { selector, ..Subscription::new(name("t")) };
        let subscription = Box::new(subscription);
        self.ask(Command::Subscribe { link: LinkId(link), subscription }).remove(0)
    }

    fn send(&mut self, to: Destination, body: &str) -> Vec<Reply> {
        let message = NewMessage::new(body.as_bytes().into());
        self.ask(Command::PutTo { to, message, transaction: None })
    }

    fn close(&mut self, link: u32) {
        self.ask(Command::CloseConsumer { link: LinkId(link) });
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// `x` is the whole body, of any content.
fn property<'m>(seen: &Subject<'m>, found: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    let (looked, all) = ASKED.get();
    ASKED.set((looked + usize::from(found.index.is_empty()), all));
    match name {
        "x" => PropertyValue::String(std::str::from_utf8(seen.body).unwrap()),
        _ => PropertyValue::Null,
    }
}

fn index(_: Format, body: &[u8]) -> Vec<(&str, PropertyValue<'_>)> {
    let (looked, all) = ASKED.get();
    ASKED.set((looked, all + 1));
    vec![("x", PropertyValue::String(std::str::from_utf8(body).unwrap()))]
}

/// One of those that weigh some 4,000, all of them different.
fn heavy(number: u32) -> String {
    let likes = (0..59).map(|like| format!("x LIKE '{number}-{like}%'"));
    likes.collect::<Vec<_>>().join(" OR ")
}

#[test]
fn queue_selectors_have_a_total_weight() {
    let mut house = Harness::new();
    let weight = Selector::parse(&heavy(0)).unwrap().weight();
    let most = limits::SELECTORS_WEIGHT_MAX / weight;
    assert!((50..limits::QUEUE_SELECTORS_MAX).contains(&most), "{weight} each");
    let most = u32::try_from(most).unwrap();
    for link in 0..most {
        assert_eq!(house.consume(link, &heavy(link), ConsumerMode::Take), Reply::Done);
    }
    let refused = Reply::Refused(Refusal::TooManySelectors);
    assert_eq!(house.consume(most, &heavy(most), ConsumerMode::Take), refused);
    assert_eq!(house.consume(most, &heavy(1), ConsumerMode::Take), Reply::Done, "it is there");
    house.close(0);
    assert_eq!(house.consume(most + 1, &heavy(most), ConsumerMode::Take), Reply::Done);
}

#[test]
fn topic_selectors_have_a_total_weight() {
    let mut house = Harness::new();
    let weight = Selector::parse(&heavy(0)).unwrap().weight();
    let most = u32::try_from(limits::SELECTORS_WEIGHT_MAX / weight).unwrap();
    for link in 0..most {
        assert_eq!(house.subscribe(link, &heavy(1)), Reply::Done);
    }
    assert_eq!(house.subscribe(most, &heavy(1)), Reply::Refused(Refusal::TooManySelectors));
    house.close(0);
    assert_eq!(house.subscribe(most, &heavy(1)), Reply::Done);
    let steps = house.engine.steps();
    house.send(Destination::Topic(name("t")), "y");
    let took = house.engine.steps() - steps;
    let least = u64::try_from(most as usize * weight / 4).unwrap();
    assert!(took > least, "{took} steps are counted");
}

/// Names are looked up in an index once many were asked for, which is made once a message.
#[test]
fn subscriptions_share_one_index() {
    let mut house = Harness::new();
    for link in 0..100 {
        assert_eq!(house.subscribe(link, "a = 1 OR b = 2 OR x = 'y'"), Reply::Done);
    }
    ASKED.set((0, 0));
    house.send(Destination::Topic(name("t")), "y");
    assert_eq!(ASKED.get(), (8, 1));
    // Few names need none.
    let mut house = Harness::new();
    assert_eq!(house.consume(0, "a = 1 OR x = 'y'", ConsumerMode::Take), Reply::Done);
    ASKED.set((0, 0));
    house.send(Destination::Queue(name("q")), "y");
    // Once when it comes, and once for the check of the view.
    assert_eq!(ASKED.get(), (4, 0));
}

/// A long text is there, and no more can be said of it.
#[test]
fn long_texts_are_opaque() {
    for (bytes, seen) in
        [(limits::SELECTED_TEXT_BYTES_MAX, true), (limits::SELECTED_TEXT_BYTES_MAX + 1, false)]
    {
        let mut house = Harness::new();
        let text = "y".repeat(bytes);
        for (link, selector) in ["x LIKE 'y%'", "x IS NOT NULL", "x <> 'z'"].into_iter().enumerate()
        {
            let link = u32::try_from(link).unwrap();
            assert_eq!(house.subscribe(link, selector), Reply::Done);
        }
        house.send(Destination::Topic(name("t")), &text);
        assert_eq!(house.engine.statistics().ready, if seen { 3 } else { 1 }, "{bytes} bytes");
    }
}

/// A browser with a selector that takes long looks at few messages in a step, and many browsers
/// take turns.
#[test]
fn browsers_take_turns() {
    let mut house = Harness::new();
    for _ in 0..100 {
        house.send(Destination::Queue(name("q")), "y");
    }
    let weight = Selector::parse(&heavy(0)).unwrap().weight() as u64;
    let credit = |link| {
        let (limit, bytes) = (u64::MAX, u64::MAX);
        Command::Credit { link: LinkId(link), limit, bytes, drain: false }
    };
    for link in 0..100 {
        assert_eq!(house.consume(link, &heavy(link), ConsumerMode::Browse), Reply::Done);
        let before = house.engine.steps();
        house.ask(credit(link));
        let took = house.engine.steps() - before;
        assert!(took > 4 * weight && took < 16 * weight, "{took} steps, {weight} each");
    }
    let mut finish = || {
        let mut most = 0;
        while house.engine.poll_timeout().is_some_and(|at| at <= NOW) {
            let before = house.engine.steps();
            house.engine.handle_timeout(NOW, Capacity::UNBOUNDED, &mut Effects::default());
            most = most.max(house.engine.steps() - before);
        }
        house.engine.check();
        most
    };
    finish();
    let before = house.engine.steps();
    house.send(Destination::Queue(name("q")), "y");
    let took = house.engine.steps() - before;
    assert!(took < 20_000, "{took} steps for one message that a hundred look at");
}
