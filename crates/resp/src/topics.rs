//! PUBLISH and PUBSUB. A subscriber's messages are in `subscriptions`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use model::{
    AdminCommand, Command, Matching, NewMessage, PRIORITY_DEFAULT, Persistence, QueueName,
    SubscriptionStatistics, glob,
};

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::key_names::channel_of;
use crate::query::Query;
use crate::reply_format::ReplyFormat;

type QueryResult = Result<Query, Fault>;

/// PUBLISH. Later subscribers do not get the message, so memory is enough for it.
pub(crate) fn publish(arguments: Arguments<'_>) -> QueryResult {
    let message = NewMessage {
        persistence: Persistence::NonPersistent,
        priority: PRIORITY_DEFAULT,
        ..NewMessage::new(arguments.element(2))
    };
    let command = Command::Publish { topic: arguments.topic(1)?, message };
    Ok(Query { command, format: ReplyFormat::Count })
}

/// PUBSUB CHANNELS
pub(crate) fn channels(arguments: Arguments<'_>) -> QueryResult {
    let pattern = match arguments.len() {
        2 => &b"*"[..],
        3 => arguments.pattern(2)?,
        _ => {
            return Err(Fault::of(
                "ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB \
                 HELP.",
            ));
        }
    };
    Ok(list_subscriptions(ReplyFormat::Channels(pattern.into())))
}

/// PUBSUB NUMSUB
pub(crate) fn subscribers(arguments: Arguments<'_>) -> QueryResult {
    Ok(list_subscriptions(ReplyFormat::Subscribers(arguments.topics(2)?)))
}

fn list_subscriptions(format: ReplyFormat) -> Query {
    Query { command: Command::Admin(Box::new(AdminCommand::ListSubscriptions)), format }
}

/// The topics that have subscribers and match a pattern.
pub(crate) fn say_channels(
    pattern: &[u8],
    all: &[SubscriptionStatistics],
    answer: &mut Answer<'_>,
) {
    let counts = counts(all);
    let matches = |topic: &QueueName| glob::matches(pattern, &channel_of(topic));
    let topics = || counts.keys().filter(|topic| matches(topic));
    answer.array(topics().count());
    topics().for_each(|topic| answer.bulk(&channel_of(topic)));
}

/// How many subscribers each of these topics has.
pub(crate) fn say_subscribers(
    names: &[QueueName],
    all: &[SubscriptionStatistics],
    answer: &mut Answer<'_>,
) {
    let counts = counts(all);
    answer.array(names.len() * 2);
    for name in names {
        answer.bulk(&channel_of(name));
        answer.count(counts.get(name).copied().unwrap_or(0));
    }
}

/// Subscriptions of each topic, whichever protocol made them.
fn counts(all: &[SubscriptionStatistics]) -> BTreeMap<&QueueName, u64> {
    let mut counts = BTreeMap::new();
    for subscription in all.iter().filter(|it| it.subscription.matching == Matching::Name) {
        *counts.entry(&subscription.subscription.topic).or_default() += 1;
    }
    counts
}
