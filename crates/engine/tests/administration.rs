//! Limits of operators' commands: of the messages that one call looks at, shows or changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    AdminCommand, Capacity, Command, Destination, Formats, Found, LinkId, MessageId, MessageState,
    Nanos, NewMessage, OwnPolicy, Page, PageEnd, PolicyChange, PropertyValue, QueueName, QueueRule,
    Refusal, Reply, SessionId, StorePolicy, Subject, limits,
};
use testkit::Rng;

const SESSION: SessionId = SessionId(1);

struct Harness {
    engine: Engine,
    effects: Effects,
}

impl Harness {
    fn new() -> Self {
        let formats = Formats { property, ..Formats::RAW };
        let options = EngineOptions { formats, ..EngineOptions::new(StorePolicy::Always) };
        let mut engine = Engine::new(options);
        engine.open_session(SESSION);
        Self { engine, effects: Effects::default() }
    }

    /// The reply to a command; it changed at most as many messages as fit into one frame.
    fn ask(&mut self, command: Command) -> Reply {
        self.engine.handle(Nanos::SECOND, SESSION, command, Capacity::UNBOUNDED, &mut self.effects);
        assert!(self.effects.frames.len() <= 1, "a command is a frame");
        let reply = self.effects.outputs.pop().unwrap().reply;
        assert!(self.effects.outputs.is_empty(), "a command has one reply");
        self.effects.clear();
        reply
    }

    fn admin(&mut self, command: AdminCommand) -> Reply {
        self.ask(Command::Admin(Box::new(command)))
    }

    fn put(&mut self, queue: &str, body: &[u8]) {
        let to = Destination::Queue(name(queue));
        let message = NewMessage::new(body.into());
        self.ask(Command::PutTo { to, message, transaction: None });
    }

    /// Puts a message that is ready, delayed or buried, urgent or not.
    fn put_random(&mut self, random: &mut Rng, body: &[u8]) -> MessageId {
        let delay = random.pick(&[Nanos::ZERO, Nanos::ZERO, Nanos::SECOND, Nanos::from_secs(2)]);
        let priority = random.below(3) as u32;
        let message = NewMessage { priority, delay, ..NewMessage::new(body.into()) };
        let to = Destination::Queue(name("mail"));
        let reply = self.ask(Command::PutTo { to, message, transaction: None });
        let Reply::Stored { message } = reply else { panic!("{reply:?}") };
        if random.one_in(4) {
            self.ask(Command::Lease { message });
            self.ask(Command::Bury { message, priority });
        }
        message
    }

    fn page(&mut self, queue: &str, selector: Option<&str>, after: Option<PageEnd>) -> Page {
        let (selector, max) = (selector.map(Arc::from), usize::MAX);
        let queue = name(queue);
        match self.admin(AdminCommand::Browse { queue, state: None, selector, after, max }) {
            Reply::Page(page) => *page,
            other => panic!("{other:?}"),
        }
    }

    /// All pages of a queue: how many messages each has.
    fn pages(&mut self, queue: &str, selector: Option<&str>) -> Vec<usize> {
        let (mut counts, mut after) = (Vec::new(), None);
        loop {
            let page = self.page(queue, selector, after);
            counts.push(page.messages.len());
            after = page.next;
            if after.is_none() {
                return counts;
            }
        }
    }

    fn purge(&mut self, selector: Option<&str>, after: Option<PageEnd>) -> Reply {
        let (queue, selector) = (name("mail"), selector.map(Arc::from));
        self.admin(AdminCommand::Purge { queue, state: None, selector, after })
    }
}

/// Every hundredth message is wanted.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, _: &str) -> PropertyValue<'m> {
    let body = seen.body;
    PropertyValue::Boolean(body.first() == Some(&b'0'))
}

/// One more is refused, and changes nothing; those that have some may have others, and one that
/// has none any more makes way.
#[test]
fn own_queue_policies_have_a_limit() {
    let mut house = Harness::new();
    let mut rules = |queue: String, max: Option<u64>| {
        let mut set = OwnPolicy::default();
        max.into_iter().for_each(|max| set.set(QueueRule::MessagesMax(Some(max))));
        let (queue, change) = (name(&queue), Box::new(PolicyChange::to(set)));
        house.admin(AdminCommand::ChangePolicy { queue, change })
    };
    for number in 0..limits::OWN_POLICIES_MAX {
        let reply = rules(number.to_string(), Some(1));
        assert!(matches!(reply, Reply::Policy(_)), "{reply:?}");
    }
    assert_eq!(rules("more".into(), Some(1)), Reply::Refused(Refusal::TooManyPolicies));
    assert!(matches!(rules("7".into(), Some(2)), Reply::Policy(_)));
    assert!(matches!(rules("8".into(), None), Reply::Policy(_)));
    assert!(matches!(rules("more".into(), Some(1)), Reply::Policy(_)));
    let list = |after: &str| AdminCommand::ListPolicies { after: Some(name(after)), max: 2 };
    let Reply::OwnPolicies(page) = house.admin(list("9998")) else { panic!() };
    let names: Vec<_> = page.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["9999", "more"]);
    let most = house.engine.snapshot_bytes_max();
    let mut cursor = house.engine.snapshot_begin();
    let mut bytes = Vec::new();
    while house.engine.snapshot_chunk(&mut cursor, &mut bytes) {}
    assert!(bytes.len() as u64 <= most, "{} of {most} bytes", bytes.len());
    house.engine.check();
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// All are listed once, by name, and a page looks at no queue but its own.
#[test]
fn queue_page_visits_no_other_queues() {
    const PAGE: usize = 100;
    let mut house = Harness::new();
    let names: Vec<_> = (0..2_500).map(|number| format!("{number:04}")).collect();
    names.iter().rev().for_each(|name| house.put(name, b"m"));
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let before = house.engine.steps();
        let listing = AdminCommand::ListQueues { after, max: PAGE };
        let Reply::QueuePage { queues: page, next } = house.admin(listing) else { panic!() };
        let steps = house.engine.steps() - before;
        assert_eq!(steps, (limits::COMMAND_STEPS + page.len()) as u64);
        assert!(page.len() <= PAGE && page.iter().all(|queue| queue.ready == 1));
        listed.extend(page);
        after = next;
        if after.is_none() {
            break;
        }
    }
    let listed: Vec<_> = listed.iter().map(|queue| queue.queue.as_str()).collect();
    assert_eq!(listed, names);
}

#[test]
fn message_page_and_selector_scan_bounded() {
    let mut house = Harness::new();
    for number in 0..2_500 {
        house.put("mail", &[if number % 100 == 99 { b'0' } else { b'1' }]);
    }
    assert_eq!(house.pages("mail", None), [limits::PAGE_MESSAGES_MAX, 1_000, 500]);
    assert_eq!(limits::SCAN_MESSAGES_MAX, 1_024);
    assert_eq!(house.pages("mail", Some("wanted")), [10, 10, 5]);
    assert_eq!(house.pages("mail", Some("nothing = 1")), [0, 0, 0]);
}

#[test]
fn page_bytes_are_bounded() {
    let mut house = Harness::new();
    let body = vec![0; limits::MESSAGE_BYTES_MAX];
    for _ in 0..6 {
        house.put("mail", &body);
    }
    assert_eq!(limits::REPLY_BYTES_MAX / limits::MESSAGE_BYTES_MAX, 4);
    assert_eq!(house.pages("mail", None), [4, 2]);
}

/// Held messages are looked for among all messages, in steps.
#[test]
fn held_messages_are_found_among_many() {
    let mut house = Harness::new();
    for _ in 0..20_000 {
        house.put("other", b"x");
    }
    house.put("mail", b"0");
    house.ask(Command::Watch { link: LinkId(0), queue: name("mail") });
    let (wait, margin) = (Some(Nanos::ZERO), Nanos::ZERO);
    house.ask(Command::Receive { link: LinkId(0), wait, margin, lease: None });
    let before = house.engine.steps();
    let first = house.page("mail", None, None);
    assert!(house.engine.steps() - before < 5_000, "it was a step");
    assert_eq!(first.messages.len(), 0);
    assert_eq!(first.next.map(|next| next.state), Some(MessageState::Leased));
    let second = house.page("mail", None, first.next);
    assert_eq!(second.messages[0].delivery.message, MessageId(20_001));
    assert_eq!(house.pages("mail", None), [0, 1]);
    assert_eq!(house.pages("other", None).len(), 20, "nobody holds any of these");
}

#[test]
fn purge_is_one_frame_and_resumes() {
    let mut house = Harness::new();
    for number in 0..limits::FRAME_RECORDS_MAX + 5 {
        house.put("mail", if number % 2 == 0 { b"0" } else { b"1" });
    }
    let (mut count, mut calls, mut after) = (0, 0, None);
    loop {
        calls += 1;
        match house.purge(Some("wanted"), after) {
            Reply::CountUntil { count: so_many, next } => {
                count += so_many;
                after = Some(next);
            }
            Reply::Count(rest) => break count += rest,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((count, calls), (5_003, 10), "{} are looked at a call", limits::SCAN_MESSAGES_MAX);
    for _ in 0..limits::FRAME_RECORDS_MAX {
        house.put("mail", b"0");
    }
    let Reply::CountUntil { count, next } = house.purge(None, None) else { panic!("too many") };
    assert_eq!(count, limits::FRAME_RECORDS_MAX as u64);
    assert_eq!(house.purge(None, Some(next)), Reply::Count(5_002));
    assert_eq!(house.admin(AdminCommand::Delete { queue: name("mail") }), Reply::NotFound);
}

#[test]
fn move_ends_at_its_maximum() {
    let mut house = Harness::new();
    for number in 0..2_500 {
        house.put("mail", &[if number % 100 == 99 { b'0' } else { b'1' }]);
    }
    let mut relocate = |max, after| {
        house.admin(AdminCommand::MoveMessages {
            from: name("mail"),
            to: Some(name("post")),
            message: None,
            selector: Some("wanted".into()),
            before: MessageId(u64::MAX),
            max,
            after,
        })
    };
    let Reply::CountUntil { count: 10, next } = relocate(12, None) else { panic!("2 are left") };
    assert_eq!(relocate(2, Some(next)), Reply::Count(2));
    assert!(matches!(relocate(9, None), Reply::CountUntil { count: 0, .. }), "they are gone");
    assert_eq!(relocate(8, Some(next)), Reply::Count(8), "as many as there are in this stretch");
    assert_eq!(house.pages("post", None), [20]);
}

#[test]
fn queue_is_deleted_in_frames() {
    let mut house = Harness::new();
    for _ in 0..limits::FRAME_RECORDS_MAX + 1 {
        house.put("mail", b"0");
    }
    let command = || AdminCommand::Delete { queue: name("mail") };
    assert_eq!(house.admin(command()), Reply::CountSoFar(limits::FRAME_RECORDS_MAX as u64));
    assert_eq!(house.admin(command()), Reply::Done);
    assert_eq!(house.admin(command()), Reply::NotFound);
}

/// Messages come, go, are taken and come back while pages follow one another. No message is shown
/// twice, and none that keeps its place is skipped.
#[test]
fn pages_survive_concurrent_changes() {
    for seed in 0..200 {
        let mut random = Rng::new(seed);
        let mut house = Harness::new();
        house.ask(Command::Watch { link: LinkId(0), queue: name("mail") });
        let stays: BTreeSet<_> = (0..40).map(|_| house.put_random(&mut random, b"0")).collect();
        let (mut shown, mut after, mut passing) = (BTreeMap::new(), None, Vec::new());
        loop {
            let (queue, selector) = (name("mail"), None);
            let max = 1 + random.below(5) as usize;
            let command = AdminCommand::Browse { queue, state: None, selector, after, max };
            let Reply::Page(page) = house.admin(command) else { panic!("no page") };
            for message in &page.messages {
                *shown.entry(message.delivery.message).or_insert(0) += 1;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
            passing.push(house.put_random(&mut random, b"1"));
            if random.one_in(2) {
                let message = random.pick(&passing);
                house.ask(Command::Delete { message });
            }
        }
        assert!(shown.values().all(|count| *count == 1), "nothing is shown twice: {shown:?}");
        let found: BTreeSet<_> = shown.into_keys().collect();
        assert!(found.is_superset(&stays), "nothing is skipped");
        house.engine.check();
    }
}

/// Any place that a peer names is good.
#[test]
fn page_ends_of_no_message_work() {
    let mut house = Harness::new();
    for delay in [0, 5] {
        let message =
            NewMessage { delay: Nanos::from_secs(delay), ..NewMessage::new((*b"0").into()) };
        let to = Destination::Queue(name("mail"));
        house.ask(Command::PutTo { to, message, transaction: None });
    }
    for state in
        [MessageState::Ready, MessageState::Leased, MessageState::Delayed, MessageState::Buried]
    {
        for (priority, place) in [(0, 0), (0, u64::MAX), (u32::MAX, 1 << 63), (u32::MAX, u64::MAX)]
        {
            let message = MessageId(place);
            let after = PageEnd { state, priority, place, message };
            let page = house.page("mail", None, Some(after));
            assert!(page.messages.len() <= 2 && page.next.is_none());
        }
    }
}
