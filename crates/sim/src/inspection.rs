//! What a broker that has just recovered holds, asked for command by command.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{
    AdminCommand, BrokerStatistics, Command, ConsumerMode, Delivery, Destination, LinkId,
    ListCommand, MessageId, MessageState, MessageStatistics, Nanos, NewMessage, Output, Peek,
    Persistence, QueueName, Reply, SessionId, Settlement, Subscription,
};

use crate::history::{DEAD_LETTERS, Dead, Found};
use crate::redis_workload::{self, is_list};
use crate::registration::{self, name};
use crate::{Content, Kept, Paged, Standing, workload};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// All messages by their ids, and durable subscriptions by numbers above these.
    pub found: BTreeMap<u64, Found>,
    /// The durable subscriptions, those of one topic in the order in which they get messages.
    pub subscriptions: Vec<Subscription>,
    /// The id that the next message gets.
    pub next_id: u64,
}

/// All that a broker holds, as of `now`; looks for ids up to a few beyond `last_id`. Leaves a
/// session behind that watches every queue, so that none ends while it is empty.
///
/// # Panics
/// When the broker holds something that no id leads to, or a reply is held back.
pub fn inspect<F: Clone>(broker: &mut Paged<F>, now: Nanos, last_id: u64) -> Inspection {
    let mut outputs = Vec::new();
    broker.handle_timeout(now, &mut outputs);
    assert!(outputs.is_empty(), "nobody is there to hear of a delay's end: {outputs:?}");
    broker.check();
    broker.open_session(ANCHOR);
    for queue in queues() {
        ask(broker, now, Command::Watch { link: LinkId(0), queue });
    }
    let mut found = by_their_ids(broker, now, last_id);
    for queue in queues() {
        browse(broker, now, queue, &mut found);
    }
    let subscriptions: Vec<_> = registration::durable_names()
        .into_iter()
        .filter_map(|name| match ask(broker, now, Command::FindSubscription { name }) {
            Reply::Subscription(subscription) => Some(*subscription),
            _ => None,
        })
        .collect();
    // Where nobody subscribes nothing need be stored, for which there may be no memory.
    let topics = registration::TOPICS.into_iter().filter(|_| !subscriptions.is_empty());
    for topic in topics.map(name) {
        let reply = probe(broker, now, Destination::Topic(topic));
        assert!(!matches!(reply, Reply::Waits { .. }), "too little memory to look around in");
    }
    let mut by_age = BTreeMap::new();
    for subscription in subscriptions {
        let probe = take_and_return(broker, now, &subscription, &mut found);
        let name = subscription.name.as_ref().expect("invariant: it was looked for by its name");
        let subject = registration::subject(name);
        found.insert(subject, Found::from(registration::kept(&subscription)));
        by_age.insert(probe, subscription);
    }
    let subscriptions = by_age.into_values().collect();
    Inspection { found, subscriptions, next_id: next_id(broker, now) }
}

fn queues() -> impl Iterator<Item = QueueName> {
    workload::QUEUES.into_iter().chain([DEAD_LETTERS]).map(name)
}

/// What is known of each message without its being delivered.
fn by_their_ids<F: Clone>(broker: &mut Paged<F>, now: Nanos, last_id: u64) -> BTreeMap<u64, Found> {
    let ids = 1..=last_id + IDS_BEYOND;
    let message = |broker: &mut _, id| Some((id, message(broker, now, MessageId(id))?));
    let found = ids.filter_map(|id| message(broker, id));
    // Elements of lists are looked at by their names.
    let found = found.filter(|(_, (content, _))| !is_list(&content.queue));
    let hidden = |(id, kept)| (id, Found { kept, is_hidden: true });
    let found: BTreeMap<u64, Found> = found.map(hidden).collect();
    let Reply::BrokerStatistics(all) = ask(broker, now, Command::BrokerStatistics) else {
        panic!("statistics are always there");
    };
    let BrokerStatistics { ready, leased, delayed, buried, .. } = *all;
    assert_eq!(leased, 0, "nobody holds a lease after a recovery");
    let count = found.len() as u64 + elements(broker, now);
    assert_eq!(ready + delayed + buried, count, "messages that no id leads to");
    found
}

fn elements<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> u64 {
    let mut length = |name: &str| {
        let command = ListCommand::Length { queue: registration::name(name) };
        match ask(broker, now, Command::List(command)) {
            Reply::Count(count) => count,
            // A value.
            _ => 0,
        }
    };
    redis_workload::names().map(&mut length).sum()
}

fn message<F: Clone>(broker: &mut Paged<F>, now: Nanos, message: MessageId) -> Option<Kept> {
    let statistics = match ask(broker, now, Command::MessageStatistics { message }) {
        Reply::MessageStatistics(statistics) => statistics,
        Reply::NotFound => return None,
        other => panic!("{other:?} is no statistics"),
    };
    let Reply::Found { element, .. } = ask(broker, now, Command::Peek(Peek::Message(message)))
    else {
        panic!("{message} has statistics and no body");
    };
    let MessageStatistics { queue, state, priority, lease, time_left, .. } = *statistics;
    let standing = match state {
        MessageState::Ready | MessageState::Leased => Standing::Ready,
        MessageState::Delayed if time_left == Nanos::ZERO => Standing::Ready,
        MessageState::Delayed => Standing::Delayed(now + time_left),
        MessageState::Buried => Standing::Buried,
    };
    let lease = u32::try_from(lease.as_secs()).expect("invariant: clients ask for 32 bits");
    let content =
        Content::plain(queue.as_str().into(), priority, lease, Rc::from(element.payload()));
    Some((content, standing))
}

/// Looks at what is ready in a queue.
fn browse<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    queue: QueueName,
    found: &mut BTreeMap<u64, Found>,
) {
    let open = Command::OpenConsumer {
        link: LOOKING,
        queue: queue.clone(),
        selector: None,
        mode: ConsumerMode::Browse,
    };
    ask(broker, now, open);
    for delivery in deliveries(broker, now) {
        show(&delivery, queue.as_str().into(), found);
    }
    ask(broker, now, Command::CloseConsumer { link: LOOKING });
}

/// Takes what is ready in a subscription, and gives it back, but for the probe, whose number it
/// says.
fn take_and_return<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    subscription: &Subscription,
    found: &mut BTreeMap<u64, Found>,
) -> MessageId {
    let queue = registration::queue_of(subscription, 0, 0);
    let subscription = Box::new(subscription.clone());
    ask(broker, now, Command::Subscribe { link: LOOKING, subscription });
    let all = deliveries(broker, now);
    ask(broker, now, Command::CloseConsumer { link: LOOKING });
    let mut probe = None;
    for delivery in all {
        let message = delivery.message;
        let settlement = if found.contains_key(&message.0) {
            show(&delivery, queue.clone(), found);
            Settlement::Release
        } else {
            assert_eq!(probe.replace(message), None, "{message} was not there");
            Settlement::Accept
        };
        let settled = ask(broker, now, Command::Settle { message, settlement, transaction: None });
        assert_eq!(settled, Reply::Done, "{message} was held");
    }
    probe.expect("each subscription gets what is sent to its topic")
}

/// All that a consumer that was just opened gets.
fn deliveries<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> Vec<Delivery> {
    let mut outputs = Vec::new();
    let credit = Command::Credit { link: LOOKING, limit: u64::MAX, bytes: u64::MAX, drain: false };
    broker.handle(now, ANCHOR, credit, &mut outputs);
    while broker.poll_timeout().is_some_and(|due| due <= now) {
        let before = broker.poll_timeout();
        broker.handle_timeout(now, &mut outputs);
        if broker.poll_timeout() == before {
            break;
        }
    }
    let delivery = |Output { session, after, reply }| {
        let Reply::Delivered(delivery) = reply else { panic!("{reply:?} to nobody's wish") };
        assert_eq!(session, ANCHOR, "there is nobody else");
        assert!(broker.durable().covers(after), "what was recovered is durable: {after:?}");
        *delivery
    };
    outputs.into_iter().map(delivery).collect()
}

fn show(delivery: &Delivery, queue: Rc<str>, found: &mut BTreeMap<u64, Found>) {
    let seen = found.get_mut(&delivery.message.0);
    let seen = seen.unwrap_or_else(|| panic!("{} is delivered and not there", delivery.message));
    assert_eq!(&seen.kept.0.body[..], delivery.payload(), "it looks as it is delivered");
    assert_eq!(seen.kept.1, Standing::Ready, "{} is delivered", delivery.message);
    assert!(seen.is_hidden, "{} is in two queues", delivery.message);
    let content = &mut seen.kept.0;
    content.queue = queue;
    content.failed = delivery.failed;
    content.expires = delivery.expires;
    content.dead = delivery.dead.as_deref().map(Dead::from);
    seen.is_hidden = false;
}

/// The id that the next message gets. It is asked for: where memory is full nothing can be stored
/// to find it out.
pub(crate) fn next_id<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> u64 {
    let mut outputs = Vec::new();
    let command = Command::Admin(Box::new(AdminCommand::NextMessage));
    broker.handle(now, ANCHOR, command, &mut outputs);
    match outputs.pop() {
        Some(Output { session: ANCHOR, reply: Reply::Stored { message }, .. }) => message.0,
        other => panic!("{other:?} is no id"),
    }
}

fn probe<F: Clone>(broker: &mut Paged<F>, now: Nanos, to: Destination) -> Reply {
    let message = NewMessage {
        persistence: Persistence::NonPersistent,
        ..NewMessage::new(b"probe".as_slice().into())
    };
    ask(broker, now, Command::PutTo { to, message, transaction: None })
}

pub(crate) fn ask<F: Clone>(broker: &mut Paged<F>, now: Nanos, command: Command) -> Reply {
    let mut outputs = Vec::new();
    broker.handle(now, ANCHOR, command, &mut outputs);
    let Some(Output { session: ANCHOR, after, reply }) = outputs.pop() else {
        panic!("a command is answered at once");
    };
    assert!(outputs.is_empty(), "one command, one reply");
    assert!(broker.durable().covers(after), "what was recovered is durable: {after:?}");
    reply
}

/// No client's session has this number.
const ANCHOR: SessionId = SessionId(0);

/// The consumer that looks.
const LOOKING: LinkId = LinkId(1);

/// Ids beyond those known that are looked for.
const IDS_BEYOND: u64 = 40;
