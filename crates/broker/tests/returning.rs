//! Replies with bodies that left memory: they wait until these are read back, through all changes
//! of the messages, the log and the sessions meanwhile.

use broker::{Broker, BrokerOptions};
use disk::{File, RealDisk};
use engine::{EngineOptions, QueueBounds, QueuePolicies, QueuePolicy};
use model::{
    Command, Destination, End, ListCommand, MessageId, Nanos, NewMessage, Output, Persistence,
    QueueName, Reply, SessionId, StorePolicy,
};
use testkit::Directory;

use crate::support::{open_disk, small_log, work_once};

const ONE: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const THIRD: SessionId = SessionId(3);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);

struct Store {
    _directory: Directory,
    disk: RealDisk,
    broker: Broker<File>,
}

impl Store {
    /// One that keeps no body which its log has, with so many messages.
    fn with(name: &str, messages: u32) -> Self {
        let directory = Directory::new(name);
        let disk = open_disk(&directory.0);
        let policy = StorePolicy::Always;
        let journal = small_log(policy);
        let one = QueueBounds { messages_max: Some(1), ..QueueBounds::default() };
        let narrow = QueuePolicy { bounds: one, ..QueuePolicy::default() };
        let queue_policies =
            QueuePolicies { named: [(named("narrow"), narrow)].into(), ..QueuePolicies::default() };
        let engine =
            EngineOptions { log_bodies_max: 0, queue_policies, ..EngineOptions::new(policy) };
        let (broker, _) = Broker::open(&disk, BrokerOptions { engine, journal }).unwrap();
        let mut store = Self { _directory: directory, disk, broker };
        store.broker.open_session(ONE);
        store.broker.open_session(OTHER);
        store.broker.open_session(THIRD);
        store.rest();
        for number in 0..messages {
            store.put(number);
        }
        store
    }

    fn put(&mut self, number: u32) {
        let message = NewMessage::new(body(number).into());
        let to = Destination::Queue(queue());
        let outputs = self.ask(OTHER, Command::PutTo { to, message, transaction: None });
        assert!(matches!(outputs.as_slice(), [Output { reply: Reply::Stored { .. }, .. }]));
        self.rest();
    }

    fn ask(&mut self, session: SessionId, command: Command) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.broker.handle(NOW, session, command, &mut outputs);
        self.broker.check();
        outputs
    }

    /// Performs writes and chores until there is nothing to do; reads nothing back.
    fn rest(&mut self) {
        while work_once(&mut self.broker, &self.disk, NOW) {}
    }

    /// The outputs after all requested bodies were read back.
    fn fetch(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Some(fetch) = self.broker.poll_fetch() {
            let done = fetch.perform(&self.disk);
            self.broker.handle_fetch(done, &mut outputs).unwrap();
            self.broker.check();
        }
        while self.broker.goes_on() {
            self.broker.handle_timeout(NOW, &mut outputs);
        }
        outputs
    }
}

fn queue() -> QueueName {
    named("jobs")
}

fn named(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn body(number: u32) -> Vec<u8> {
    format!("{number:04}").repeat(200).into_bytes()
}

fn pop(max: u64) -> Command {
    Command::List(ListCommand::Pop { queue: queue(), end: End::Head, max })
}

fn popped(output: &Output) -> Vec<Vec<u8>> {
    match &output.reply {
        Reply::Elements(elements) => elements.iter().map(|it| it.payload().to_vec()).collect(),
        other => panic!("{other:?} is no pop"),
    }
}

#[test]
fn replies_keep_order_within_their_session() {
    let mut store = Store::with("order", 3);
    assert_eq!(store.broker.paged_out(), 2, "all but the last have left");
    assert_eq!(store.ask(ONE, pop(1)), []);
    assert_eq!(store.ask(ONE, Command::BrokerStatistics), []);
    let others = store.ask(OTHER, Command::BrokerStatistics);
    assert!(matches!(others.as_slice(), [Output { reply: Reply::BrokerStatistics(_), .. }]));
    let outputs = store.fetch();
    assert_eq!(popped(outputs.first().unwrap()), [body(0)]);
    assert!(matches!(outputs.get(1).unwrap().reply, Reply::BrokerStatistics(_)));
    assert_eq!(outputs.len(), 2);
}

#[test]
fn replies_overtake_where_allowed() {
    let mut store = Store::with("overtake", 3);
    store.broker.let_overtake(ONE);
    assert_eq!(store.ask(ONE, pop(2)), []);
    let later = store.ask(ONE, Command::BrokerStatistics);
    assert!(matches!(later.as_slice(), [Output { reply: Reply::BrokerStatistics(_), .. }]));
    let outputs = store.fetch();
    assert_eq!(popped(outputs.first().unwrap()), [body(0), body(1)]);
}

/// Its record is dead, a snapshot covers that, and the log goes round several times.
#[test]
fn popped_bodies_stay_until_replied() {
    let mut store = Store::with("pinned", 40);
    assert_eq!(store.ask(ONE, pop(20)), []);
    for number in 40..600 {
        store.put(number);
        store.ask(THIRD, Command::Delete { message: MessageId(u64::from(number) - 19) });
        store.rest();
    }
    assert!(store.broker.counters().segments_recycled > 4, "segments were used again");
    let outputs = store.fetch();
    let told: Vec<_> = outputs.iter().flat_map(popped).collect();
    assert_eq!(told, (0..20).map(body).collect::<Vec<_>>());
}

#[test]
fn closed_session_gets_no_fetched_reply() {
    let mut store = Store::with("gone", 5);
    let lease = Command::Lease { message: MessageId(1) };
    assert_eq!(store.ask(ONE, lease.clone()), []);
    let fetch = store.broker.poll_fetch().unwrap();
    let mut outputs = Vec::new();
    store.broker.close_session(NOW, ONE, &mut outputs);
    let done = fetch.perform(&store.disk);
    store.broker.handle_fetch(done, &mut outputs).unwrap();
    assert_eq!(outputs, []);
    store.broker.check();
    // It is ready again, and the next client that asks gets it, from memory or from the log.
    let mut outputs = store.ask(OTHER, lease);
    outputs.append(&mut store.fetch());
    let [Output { reply: Reply::Delivered(delivery), .. }] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    assert_eq!(delivery.payload(), body(0));
}

/// A command that compares waits whole, and its session may go meanwhile.
#[test]
fn body_comparison_resumes_after_fetch() {
    let mut store = Store::with("compare", 10);
    let element = |number: u32| -> std::sync::Arc<[u8]> { body(number).into() };
    let locate = |number| {
        Command::List(ListCommand::Locate {
            queue: queue(),
            origin: End::Head,
            from: End::Head,
            element: element(number),
            skip: 0,
            max: 1,
            scan_max: None,
        })
    };
    assert_eq!(store.ask(ONE, locate(7)), []);
    assert_eq!(store.ask(OTHER, locate(3)), []);
    let mut outputs = Vec::new();
    store.broker.close_session(NOW, OTHER, &mut outputs);
    let outputs = store.fetch();
    assert!(
        matches!(outputs.as_slice(), [Output { session: ONE, reply: Reply::Places(places), .. }]
        if places == &[7])
    );
}

/// The shown body of a moved element comes back also if the move had to wait.
#[test]
fn late_move_returns_whole_body() {
    let mut store = Store::with("moved", 3);
    let transfer = || {
        let (from, from_end, to, to_end) = (queue(), End::Head, named("narrow"), End::Tail);
        let wait = Some(Nanos::ZERO);
        Command::List(ListCommand::Move { from, from_end, to, to_end, wait })
    };
    let mut outputs = store.ask(ONE, transfer());
    outputs.append(&mut store.fetch());
    assert_eq!(outputs.iter().flat_map(popped).collect::<Vec<_>>(), [body(0)]);
    let outputs = store.ask(ONE, transfer());
    assert!(matches!(outputs.as_slice(), [Output { reply: Reply::Waits { .. }, .. }]));
    store.rest();
    let pop = ListCommand::Pop { queue: named("narrow"), end: End::Head, max: 1 };
    let mut outputs = store.ask(OTHER, Command::List(pop));
    store.broker.handle_timeout(NOW, &mut outputs);
    assert!(!outputs.iter().any(|output| output.session == ONE), "its body has to come first");
    outputs.append(&mut store.fetch());
    let late = outputs.iter().find_map(|output| match &output.reply {
        Reply::Late { reply, .. } => Some((**reply).clone()),
        _ => None,
    });
    let Some(Reply::Elements(elements)) = late else { panic!("{outputs:?}") };
    assert!(elements.iter().map(|it| it.payload().to_vec()).eq([body(1)]));
}

/// Many bodies of few frames, in replies that wait side by side: each gets its own, in its order.
#[test]
fn replies_get_their_own_fetched_bodies() {
    const ELEMENTS: u32 = 3_000;
    let mut store = Store::with("thousands", 0);
    store.broker.let_overtake(ONE);
    let elements: Vec<_> = (0..ELEMENTS).map(|number| number.to_be_bytes().into()).collect();
    for elements in elements.chunks(50).map(<[_]>::to_vec) {
        let (end, only_existing, persistence) = (End::Tail, false, Persistence::Persistent);
        let push = ListCommand::Push {
            queue: queue(),
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing,
            persistence,
        };
        let pushed = store.ask(OTHER, Command::List(push));
        assert!(matches!(&pushed[..], [Output { reply: Reply::Count(_), .. }]), "{pushed:?}");
        store.rest();
    }
    let range = ListCommand::Range { queue: queue(), origin: End::Head, first: 0, last: -1 };
    let range = Command::List(range);
    for session in [ONE, ONE, OTHER, THIRD] {
        assert_eq!(store.ask(session, range.clone()), [], "{} are away", store.broker.paged_out());
    }
    let pops = [ONE, OTHER, ONE, OTHER].map(|session| store.ask(session, pop(10)));
    assert_eq!(pops, [vec![], vec![], vec![], vec![]]);
    let mut outputs = Vec::new();
    store.broker.close_session(NOW, THIRD, &mut outputs);
    let outputs = store.fetch();
    let told = |session| {
        let its = outputs.iter().filter(move |output| output.session == session);
        its.map(|output| popped(output).iter().map(|it| number_of(it)).collect::<Vec<_>>())
    };
    let all: Vec<_> = (0..ELEMENTS).collect();
    let mut of_one: Vec<_> = told(ONE).collect();
    of_one.sort_by_key(|numbers| (numbers.len(), numbers.first().copied()));
    let (first, third): (Vec<_>, Vec<_>) = ((0..10).collect(), (20..30).collect());
    assert_eq!(of_one, [first, third, all.clone(), all.clone()]);
    let (second, fourth): (Vec<_>, Vec<_>) = ((10..20).collect(), (30..40).collect());
    assert_eq!(told(OTHER).collect::<Vec<_>>(), [all, second, fourth]);
    assert_eq!(outputs.len(), 7, "who is gone is told nothing");
}

fn number_of(body: &[u8]) -> u32 {
    u32::from_be_bytes(body.try_into().unwrap())
}
