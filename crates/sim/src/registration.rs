//! Subscriptions of topics: their names in the simulation, and durable ones as the history keeps
//! them.
//!
//! The messages of a subscription are in a queue of its own. Its name here consists of the topic
//! and of the client that subscribes. A durable subscription survives crashes like a message: the
//! history knows it by a number above all messages.

use std::rc::Rc;

use model::{Matching, QueueName, Subscription, SubscriptionName};

use crate::history::{SUBSCRIBED, SUBSCRIPTIONS};
use crate::{Content, Kept, Standing};

/// The topics there are.
pub(crate) const TOPICS: [&str; 2] = ["news", "prices"];

/// Topics and patterns that clients subscribe to; a pattern matches one topic or both.
pub(crate) const SUBSCRIBED_TO: [&str; 6] =
    [TOPICS[0], TOPICS[1], TOPICS[0], TOPICS[1], "news.#", "*"];

/// Container names of the clients that connect by AMQP.
pub(crate) const CONTAINERS: [&str; 2] = ["one", "two"];

/// Names that clients give their subscriptions.
pub(crate) const NAMES: [&str; 2] = ["first", "second"];

/// All durable subscriptions that there may be.
pub(crate) fn durable_names() -> Vec<SubscriptionName> {
    let clients = CONTAINERS.iter().map(|client| Some(name(client))).chain([None]);
    let names = |client: Option<QueueName>| NAMES.map(|it| (client.clone(), name(it)));
    let name = |(client, name)| SubscriptionName { user: None, client, name, durable: true };
    clients.flat_map(names).map(name).collect()
}

/// A subscription as clients know it: they do not say its user.
pub(crate) fn without_user(mut subscription: Subscription) -> Subscription {
    if let Some(name) = &mut subscription.name {
        name.user = None;
    }
    subscription
}

/// The number of a durable subscription in the history.
pub(crate) fn subject(name: &SubscriptionName) -> u64 {
    let name = SubscriptionName { user: None, ..name.clone() };
    let index = durable_names().iter().position(|known| *known == name);
    SUBSCRIPTIONS + index.expect("invariant: nobody makes others") as u64
}

/// The name of a subscription's queue here; one without a name is its consumer's.
pub(crate) fn queue_of(subscription: &Subscription, client: u64, link: u32) -> Rc<str> {
    let topic = subscription.topic.as_str();
    let owner = match &subscription.name {
        None => format!("{client}/{link}"),
        Some(SubscriptionName { client, name, durable, .. }) => {
            let client = client.as_ref().map_or("*", QueueName::as_str);
            format!("{client}/{name}/{}", if *durable { "durable" } else { "shared" })
        }
    };
    format!("{topic}{SUBSCRIBED}{owner}").into()
}

/// True if a subscription takes of a topic, which has one word.
pub(crate) fn takes_of(subscription: &Subscription, topic: &str) -> bool {
    let asked = subscription.topic.as_str();
    match subscription.matching {
        Matching::Words => asked == "*" || asked.strip_suffix(".#") == Some(topic),
        Matching::Name | Matching::Glob => asked == topic,
    }
}

/// True if messages that stand there are a subscription's.
pub(crate) fn is_subscription(queue: &str) -> bool {
    queue.contains(SUBSCRIBED)
}

/// A durable subscription as the history keeps it.
pub(crate) fn kept(subscription: &Subscription) -> Kept {
    let says = format!("{:?} {}", subscription.selector, subscription.shared);
    let queue = queue_of(subscription, 0, 0);
    (Content::plain(queue, 0, 0, says.into_bytes().into()), Standing::Ready)
}

pub(crate) fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("invariant: a name")
}
