//! Contents of a broker that has just recovered, asked for command by command.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{
    AdminCommand, BrokerStatistics, BrowsedMessage, Command, ConsumerMode, DeadReason, Delivery,
    LinkId, ListCommand, MessageId, MessageState, MessageStatistics, Nanos, Output, OwnPolicy,
    Peek, QueueName, Reply, SessionId, Settlement, Subscription, limits,
};

use crate::history::{DEAD_LETTERS, Dead, Found};
use crate::redis_workload::{self, is_list};
use crate::registration::{self, name};
use crate::{Content, Kept, Paged, Standing, keyspace, rules, workload};

/// The contents that were found.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// All messages by their ids, and durable subscriptions by numbers above these.
    pub found: BTreeMap<u64, Found>,
    /// The durable subscriptions, those of one topic in the order in which they get messages.
    pub subscriptions: Vec<Subscription>,
    /// Own rules of queues and topics.
    pub rules: BTreeMap<Rc<str>, OwnPolicy>,
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
    // These are looked at with lists.
    let dead = dead_elements(broker, now);
    let mut found = by_their_ids(broker, now, last_id, &dead);
    for queue in queues() {
        browse(broker, now, queue, &dead, &mut found);
    }
    let subscriptions = subscriptions(broker, now);
    for subscription in &subscriptions {
        take_and_return(broker, now, subscription, &mut found);
        let name = subscription.name.as_ref().expect("invariant: a durable one has a name");
        let kept = registration::kept(subscription);
        found.insert(registration::subject(name), Found::from(kept));
    }
    let rules = rules(broker, now);
    let kept = rules.iter().map(|(name, own)| (rules::subject(name), rules::kept(name, own)));
    found.extend(kept.map(|(subject, kept)| (subject, Found::from(kept))));
    let subscriptions = subscriptions.into_iter().map(registration::without_user).collect();
    Inspection { found, subscriptions, rules, next_id: next_id(broker, now) }
}

/// All that there are, the oldest first.
fn subscriptions<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> Vec<Subscription> {
    let list = Command::Admin(Box::new(AdminCommand::ListSubscriptions));
    let Reply::Subscriptions(mut all) = ask(broker, now, list) else {
        panic!("subscriptions are always listed");
    };
    all.sort_by_key(|it| it.number);
    all.into_iter().map(|it| *it.subscription).collect()
}

/// Rules that queues and topics got while a broker ran.
fn rules<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> BTreeMap<Rc<str>, OwnPolicy> {
    let list = AdminCommand::ListPolicies { after: None, max: limits::OWN_POLICIES_MAX };
    let Reply::OwnPolicies(all) = ask(broker, now, Command::Admin(Box::new(list))) else {
        panic!("rules are always listed");
    };
    all.into_iter().map(|(name, own)| (name.as_str().into(), *own)).collect()
}

fn queues() -> impl Iterator<Item = QueueName> {
    workload::QUEUES.into_iter().chain([DEAD_LETTERS]).map(name)
}

/// Facts about each message that need no delivery.
fn by_their_ids<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    last_id: u64,
    dead: &DeadElements,
) -> BTreeMap<u64, Found> {
    let ids = (1..=last_id + IDS_BEYOND).filter(|id| !dead.contains_key(id));
    let message = |broker: &mut _, id| Some((id, message(broker, now, MessageId(id))?));
    let found = ids.filter_map(|id| message(broker, id));
    // Elements of lists are looked at by their names.
    let found = found.filter(|(_, (content, _))| !is_list(&content.queue));
    let hidden = |(id, kept)| (id, Found { kept, is_hidden: true, place: None });
    let found: BTreeMap<u64, Found> = found.map(hidden).collect();
    let Reply::BrokerStatistics(all) = ask(broker, now, Command::BrokerStatistics) else {
        panic!("statistics are always there");
    };
    let BrokerStatistics { ready, leased, delayed, buried, .. } = *all;
    assert_eq!(leased, 0, "nobody holds a lease after a recovery");
    let count = (found.len() + dead.len()) as u64 + elements(broker, now);
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

/// Browses the ready messages of a queue.
fn browse<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    queue: QueueName,
    dead: &DeadElements,
    found: &mut BTreeMap<u64, Found>,
) {
    let open = Command::OpenConsumer {
        link: LOOKING,
        queue: queue.clone(),
        selector: None,
        mode: ConsumerMode::Browse,
    };
    ask(broker, now, open);
    let all = deliveries(broker, now).into_iter();
    let all = all.filter(|delivery| !dead.contains_key(&delivery.message.0));
    for (place, delivery) in all.enumerate() {
        show(&delivery, place, queue.as_str().into(), found);
    }
    ask(broker, now, Command::CloseConsumer { link: LOOKING });
}

/// Takes the ready messages of a subscription, and gives them back.
fn take_and_return<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    subscription: &Subscription,
    found: &mut BTreeMap<u64, Found>,
) {
    let queue = registration::queue_of(subscription, 0, 0);
    let subscription = Box::new(subscription.clone());
    ask(broker, now, Command::Subscribe { link: LOOKING, subscription });
    let all = deliveries(broker, now);
    ask(broker, now, Command::CloseConsumer { link: LOOKING });
    for (place, delivery) in all.into_iter().enumerate() {
        show(&delivery, place, queue.clone(), found);
        let (message, settlement) = (delivery.message, Settlement::Return);
        let settled = ask(broker, now, Command::Settle { message, settlement, transaction: None });
        assert_eq!(settled, Reply::Done, "{message} was held");
    }
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

fn show(delivery: &Delivery, place: usize, queue: Rc<str>, found: &mut BTreeMap<u64, Found>) {
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
    (seen.is_hidden, seen.place) = (false, Some(place));
}

/// Elements of lists that became dead letters: where from, and their bytes, by their numbers.
type DeadElements = BTreeMap<u64, Rc<[u8]>>;

pub(crate) fn dead_elements<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> DeadElements {
    page(broker, now, name(DEAD_LETTERS)).iter().filter_map(dead).collect()
}

fn dead(shown: &BrowsedMessage) -> Option<(u64, Rc<[u8]>)> {
    let delivery = &shown.delivery;
    let letter = delivery.dead.as_deref().filter(|letter| is_list(letter.from.as_str()))?;
    assert_eq!(letter.reason, DeadReason::Overflow, "nothing else makes dead letters of elements");
    let looks = keyspace::dead_letter(letter.from.as_str(), delivery.payload());
    Some((delivery.message.0, looks))
}

/// The ready messages of a queue, the head first.
pub(crate) fn page<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    queue: QueueName,
) -> Vec<BrowsedMessage> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (state, max) = (Some(MessageState::Ready), limits::PAGE_MESSAGES_MAX);
        let queue = queue.clone();
        let page = AdminCommand::Browse { queue, state, selector: None, after, max };
        let reply = ask(broker, now, Command::Admin(Box::new(page)));
        let Reply::Page(page) = reply else { return all };
        all.extend(page.messages);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
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
