//! Consumers with a limit and large numbers: no client has to wait long for one command, and work
//! that is left undone is done by time.

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, ConsumerMode, Destination, End, Formats, Found, LinkId, ListCommand,
    MessageId, Nanos, NewMessage, PropertyValue, QueueName, Refusal, Reply, SessionId, Settlement,
    StorePolicy, Subject, limits,
};

const SESSION: SessionId = SessionId(1);
const STEP: u64 = limits::SCAN_MESSAGES_MAX as u64;
const NOW: Nanos = Nanos::SECOND;

#[test]
fn consumer_credit_is_served_in_steps() {
    let mut pair = Pair::new();
    let each = limits::DELIVERIES_PER_STEP_MAX;
    pair.put_many(2 * each as u64 + 1, "n:1");
    pair.open(1, None, ConsumerMode::Take);
    let deliveries = pair.run(credit(1, u64::MAX, true)).len();
    assert_eq!(deliveries, each, "one step, and it is not drained");
    pair.engine.check();
    let replies = pair.finish();
    assert_eq!(replies.len(), each + 2, "the rest, and that this was all");
    assert_eq!(replies.last(), Some(&drained(1, 2 * each as u64 + 1)));
    assert_eq!(pair.engine.poll_timeout(), None);
}

#[test]
fn consumer_byte_credit_bounds_deliveries() {
    let mut pair = Pair::new();
    pair.put_many(5, "12345678");
    pair.open(1, None, ConsumerMode::Take);
    let mut may_have = |limit, bytes, drain| {
        let replies = pair.run(Command::Credit { link: LinkId(1), limit, bytes, drain });
        pair.engine.check();
        replies
    };
    let ids = |range: std::ops::RangeInclusive<u64>| range.map(MessageId).collect::<Vec<_>>();
    assert_eq!(delivered(&may_have(9, 0, false)), []);
    assert_eq!(
        delivered(&may_have(9, 9, false)),
        ids(1..=2),
        "the one that reaches it is the last"
    );
    assert_eq!(delivered(&may_have(9, 16, false)), []);
    let replies = may_have(9, 17, true);
    assert_eq!(delivered(&replies), ids(3..=3));
    assert_eq!(replies.len(), 1, "a drain goes on when it may have more");
    assert_eq!(may_have(9, 24, true), [], "there is more for it");
    let replies = may_have(9, 1_000, true);
    assert_eq!(delivered(&replies), ids(4..=5));
    assert_eq!(replies.last(), Some(&drained(1, 5)));
}

#[test]
fn closed_sessions_receive_no_returned_messages() {
    let mut pair = Pair::new();
    let mut effects = Effects::default();
    pair.put("n:1");
    let gone: Vec<_> = (2..40).map(SessionId).collect();
    for session in &gone {
        pair.engine.open_session(*session);
        for command in [open(1, None, ConsumerMode::Take), credit(1, 100, false)] {
            pair.engine.handle(NOW, *session, command, Capacity::UNBOUNDED, &mut effects);
        }
    }
    assert_eq!(pair.engine.statistics().leased, 1);
    gone.iter().for_each(|session| pair.engine.stop_serving(*session));
    pair.engine.check();
    for session in gone {
        pair.engine.close_session(NOW, session, Capacity::UNBOUNDED, &mut effects);
        pair.engine.check();
    }
    pair.open(1, None, ConsumerMode::Take);
    let replies = pair.run(credit(1, 1, false));
    let [Reply::Delivered(delivery)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(delivery.failed, 1, "only the first held it");
}

#[test]
fn closed_session_pops_nothing() {
    let mut pair = Pair::new();
    let mut effects = Effects::default();
    let gone = SessionId(2);
    pair.engine.open_session(gone);
    let pop = ListCommand::PopFirst { queues: vec![queue()], end: End::Head, max: 1, wait: None };
    pair.engine.handle(NOW, gone, Command::List(pop), Capacity::UNBOUNDED, &mut effects);
    assert_eq!(pair.engine.statistics().waiting, 1);
    pair.engine.stop_serving(gone);
    pair.engine.check();
    pair.put("n:1");
    assert_eq!(pair.engine.statistics().ready, 1, "nobody took it");
    pair.engine.close_session(NOW, gone, Capacity::UNBOUNDED, &mut effects);
    pair.engine.check();
}

#[test]
fn view_is_built_in_steps() {
    let mut pair = Pair::new();
    pair.put_many(2 * STEP, "n:0");
    let first = pair.put("n:1");
    let before = pair.engine.steps();
    pair.open(1, Some("n = 1"), ConsumerMode::Take);
    assert!(pair.engine.steps() - before <= STEP + 2 * limits::COMMAND_STEPS as u64);
    assert_eq!(pair.run(credit(1, 9, true)), [], "it is not drained before all is looked at");
    let second = pair.put("n:1");
    pair.engine.check();
    let replies = pair.finish();
    assert_eq!(delivered(&replies), [first, second]);
    assert_eq!(replies.last(), Some(&drained(1, 2)));
}

#[test]
fn nonmatching_messages_are_checked_once() {
    let mut pair = Pair::new();
    pair.put_many(20 * STEP, "n:0");
    pair.open(1, Some("n = 1"), ConsumerMode::Take);
    pair.run(credit(1, u64::MAX, false));
    pair.finish();
    for count in 1..=3 {
        let before = pair.engine.steps();
        pair.put("n:1");
        let steps = pair.engine.steps() - before;
        assert!(steps < 2 * limits::COMMAND_STEPS as u64, "delivery {count} took {steps} steps");
    }
    assert_eq!(pair.engine.statistics().leased, 3);
    let before = pair.engine.steps();
    pair.open(2, Some("n = 1"), ConsumerMode::Take);
    let steps = pair.engine.steps() - before;
    assert!(steps < 2 * limits::COMMAND_STEPS as u64, "a view is shared: {steps} steps");
}

#[test]
fn browser_scans_in_steps() {
    let mut pair = Pair::new();
    pair.put_many(2 * STEP, "n:0");
    let wanted = pair.put("n:1");
    pair.open(1, Some("n = 1"), ConsumerMode::Browse);
    let before = pair.engine.steps();
    assert_eq!(pair.run(credit(1, 9, true)), []);
    assert!(pair.engine.steps() - before <= STEP + 2 * limits::COMMAND_STEPS as u64);
    pair.engine.check();
    let replies = pair.finish();
    assert_eq!(delivered(&replies), [wanted]);
    assert_eq!(replies.last(), Some(&drained(1, 1)));
    assert_eq!(pair.engine.statistics().leased, 0);
}

#[test]
fn closed_consumer_ends_its_scan() {
    for mode in [ConsumerMode::Take, ConsumerMode::Browse] {
        let mut pair = Pair::new();
        pair.put_many(3 * STEP, "n:0");
        pair.open(1, Some("n = 1"), mode);
        pair.run(credit(1, 9, true));
        pair.run(Command::CloseConsumer { link: LinkId(1) });
        pair.engine.check();
        assert_eq!(pair.finish(), []);
    }
}

#[test]
fn selector_over_limit_is_refused() {
    let mut pair = Pair::new();
    for number in 0..limits::QUEUE_SELECTORS_MAX {
        let text = format!("n = {number}");
        pair.open(number as u32, Some(&text), ConsumerMode::Take);
    }
    let refused = [Reply::Refused(Refusal::TooManySelectors)];
    assert_eq!(pair.run(open(1_000, Some("n = -1"), ConsumerMode::Take)), refused);
    pair.open(1_000, Some("n = 0"), ConsumerMode::Take);
    pair.open(1_001, Some("n = -1"), ConsumerMode::Browse);
    pair.run(Command::CloseConsumer { link: LinkId(7) });
    pair.open(1_002, Some("n = -1"), ConsumerMode::Take);
    pair.engine.check();
}

#[test]
fn expired_messages_go_in_turns() {
    let mut pair = Pair::new();
    let in_one_turn = limits::TIMERS_PER_TURN_MAX as u64;
    for _ in 0..in_one_turn + 1 {
        let message = NewMessage { expires: Some(Nanos(2)), ..new_message("n:0") };
        pair.run(Command::Put { link: LinkId(0), message, transaction: None });
    }
    let fresh = pair.put("n:1");
    pair.open(1, None, ConsumerMode::Take);
    assert_eq!(pair.run(credit(1, 9, true)), [], "nothing before what is over has gone");
    let mut effects = Effects::default();
    pair.engine.handle_timeout(NOW, Capacity::UNBOUNDED, &mut effects);
    assert_eq!(effects.frames.len(), 1, "a turn is one frame");
    assert_eq!(effects.outputs, []);
    pair.engine.check();
    let replies = pair.finish();
    assert_eq!(delivered(&replies), [fresh]);
    assert_eq!(replies.last(), Some(&drained(1, 1)));
}

#[test]
fn lost_session_fails_deliveries_in_turns() {
    let mut pair = Pair::new();
    let in_one_turn = limits::TIMERS_PER_TURN_MAX as u64;
    pair.put_many(in_one_turn + 1, "n:0");
    pair.open(1, None, ConsumerMode::Take);
    pair.run(credit(1, u64::MAX, false));
    pair.finish();
    pair.engine.close_session(NOW, SESSION, Capacity::UNBOUNDED, &mut Effects::default());
    pair.engine.check();
    assert_eq!(pair.engine.statistics().ready, in_one_turn);
    pair.finish();
    assert_eq!(pair.engine.statistics().leased, 0);
    pair.engine.open_session(SESSION);
    pair.open(1, None, ConsumerMode::Take);
    let replies = pair.run(credit(1, 1, false));
    let [Reply::Delivered(delivery)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((delivery.message, delivery.failed), (MessageId(1), 1));
}

#[test]
fn settling_costs_moved_messages() {
    let mut pair = Pair::new();
    pair.put_many(1_000, "n:0");
    pair.open(1, None, ConsumerMode::Take);
    pair.run(credit(1, 3, false));
    for (message, settlement) in
        [(1, Settlement::Accept), (2, Settlement::Release), (3, Settlement::Fail)]
    {
        let before = pair.engine.steps();
        let message = MessageId(message);
        pair.run(Command::Settle { message, settlement, transaction: None });
        assert!(pair.engine.steps() - before <= limits::COMMAND_STEPS as u64 + 1);
    }
}

/// An engine and a session with a producer for one queue.
struct Pair {
    engine: Engine,
}

impl Pair {
    fn new() -> Self {
        let formats = Formats { property, ..Formats::RAW };
        let options = EngineOptions { formats, ..EngineOptions::new(StorePolicy::Always) };
        let mut pair = Self { engine: Engine::new(options) };
        pair.engine.open_session(SESSION);
        let to = Destination::Queue(queue());
        assert_eq!(pair.run(Command::OpenProducer { link: LinkId(0), to }), [Reply::Done]);
        pair
    }

    fn run(&mut self, command: Command) -> Vec<Reply> {
        let mut effects = Effects::default();
        self.engine.handle(NOW, SESSION, command, Capacity::UNBOUNDED, &mut effects);
        effects.outputs.into_iter().map(|output| output.reply).collect()
    }

    /// Lets all happen that is due now.
    fn finish(&mut self) -> Vec<Reply> {
        let mut effects = Effects::default();
        while self.engine.poll_timeout().is_some_and(|at| at <= NOW) {
            self.engine.handle_timeout(NOW, Capacity::UNBOUNDED, &mut effects);
        }
        self.engine.check();
        effects.outputs.into_iter().map(|output| output.reply).collect()
    }

    fn open(&mut self, link: u32, selector: Option<&str>, mode: ConsumerMode) {
        assert_eq!(self.run(open(link, selector, mode)), [Reply::Done]);
    }

    fn put(&mut self, body: &str) -> MessageId {
        let message = new_message(body);
        let put = Command::Put { link: LinkId(0), message, transaction: None };
        match self.run(put)[0] {
            Reply::Stored { message } => message,
            ref other => panic!("{other:?}"),
        }
    }

    fn put_many(&mut self, count: u64, body: &str) {
        for _ in 0..count {
            self.put(body);
        }
    }
}

fn open(link: u32, selector: Option<&str>, mode: ConsumerMode) -> Command {
    let selector = selector.map(Into::into);
    Command::OpenConsumer { link: LinkId(link), queue: queue(), selector, mode }
}

fn credit(link: u32, limit: u64, drain: bool) -> Command {
    Command::Credit { link: LinkId(link), limit, bytes: u64::MAX, drain }
}

fn drained(link: u32, delivered: u64) -> Reply {
    Reply::Drained { link: LinkId(link), delivered }
}

fn delivered(replies: &[Reply]) -> Vec<MessageId> {
    let messages = replies.iter().filter_map(|reply| match reply {
        Reply::Delivered(delivery) => Some(delivery.message),
        _ => None,
    });
    messages.collect()
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn new_message(body: &str) -> NewMessage {
    NewMessage::new(body.as_bytes().into())
}

/// A body like `n:1` has a property.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    let body = seen.body;
    let text = std::str::from_utf8(body).unwrap_or_default();
    let value = text.split_once(':').filter(|(key, _)| *key == name).map(|(_, value)| value);
    value.and_then(|value| value.parse().ok()).map_or(PropertyValue::Null, PropertyValue::Integer)
}
