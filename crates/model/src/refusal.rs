//! Why the engine refuses a command, in a line that says which limit was reached and how to mend
//! it. A protocol that has words of its own for one of these says those.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use crate::{Nanos, QueueName, QuotaReached, Right, limits};

/// Why the engine refuses a command. Every one leaves the engine as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The journal has no room for another message until space returns; deletes still work.
    StoreFull,
    /// The broker's memory is full of messages that cannot leave it; deletes still work.
    MemoryFull,
    /// There are as many queues, or topics, as there may be.
    TooManyQueues {
        /// The limit: [`limits::QUEUES_MAX`], or of queues and subscriptions together as there is
        /// memory for.
        max: usize,
    },
    /// The session has [`limits::SESSION_TEMPORARY_MAX`] temporary queues and topics.
    TooManyTemporary,
    /// The consumer watches [`limits::CONSUMER_QUEUES_MAX`] queues.
    TooManyWatched,
    /// The link was not opened.
    NoSuchLink,
    /// A temporary destination that is not there any more.
    NoSuchDestination,
    /// A temporary destination that another session made: only that consumes from it.
    OfAnotherSession,
    /// The link is open already.
    LinkInUse,
    /// Another session is this client's.
    ClientInUse,
    /// The subscription has a consumer and is not shared, or not shared in this way.
    SubscriptionInUse,
    /// There are [`limits::SUBSCRIPTIONS_MAX`] subscriptions, or as many as there is memory for,
    /// [`limits::TOPIC_SUBSCRIPTIONS_MAX`] of the topic, or
    /// [`limits::PATTERN_SUBSCRIPTIONS_MAX`] of patterns.
    TooManySubscriptions,
    /// Consumers of the queue use [`limits::QUEUE_SELECTORS_MAX`] different selectors, or those of
    /// the queue, or of the topic's subscriptions, weigh [`limits::SELECTORS_WEIGHT_MAX`].
    TooManySelectors,
    /// Not a selector.
    InvalidSelector {
        /// The byte where it ceases to be one.
        position: usize,
        /// Why.
        reason: Box<str>,
    },
    /// The session has no such transaction.
    NoSuchTransaction,
    /// The session has [`limits::SESSION_TRANSACTIONS_MAX`] transactions, or the number is
    /// in use.
    TooManyTransactions,
    /// The transaction holds more than [`limits::TRANSACTION_RECORDS_MAX`] messages or
    /// [`limits::TRANSACTION_BYTES_MAX`] bytes, would come to more than
    /// [`limits::TRANSACTION_COPIES_MAX`] messages, or all that are open hold more than
    /// [`limits::UNCOMMITTED_BYTES_MAX`] bytes.
    TransactionTooLarge,
    /// A part of the transaction was refused before, so that it can only be rolled back.
    TransactionFailed,
    /// The tables are not as the transaction expects them. It is rolled back, and no delivery
    /// counts as failed.
    TableConflict {
        /// The number of the step among the transaction's steps on tables, from 0.
        step: u32,
    },
    /// The name is a value's although a list is meant, or the other way round.
    WrongKind,
    /// The list has no such place.
    NoSuchPlace,
    /// It would have to look at, or move, more than [`limits::LIST_SCAN_MAX`] elements.
    ListTooLong,
    /// It would have to answer with more than so many bytes, or to compare more that left memory.
    TooManyBytes {
        /// The limit: [`limits::REPLY_BYTES_MAX`], or fewer if there is little memory.
        max: usize,
    },
    /// The commands of a batch may change more than fits into one frame.
    BatchTooLarge,
    /// Not allowed in a batch.
    NotInBatch,
    /// A value is larger than [`limits::VALUE_BYTES_MAX`], or than [`limits::EDITED_BYTES_MAX`]
    /// behind an edit, or all together take more memory than
    /// they may.
    TooManyValues,
    /// The value is no integer of 64 bits, in its one right form.
    NotAnInteger,
    /// The sum is no integer of 64 bits.
    Overflow,
    /// The value, or what is to be added, is no decimal number.
    NotADecimal,
    /// The sum is no number, or has no end.
    NotFinite,
    /// The sum of two scores is no number.
    ScoreNotANumber,
    /// A field or a member is longer than [`limits::FIELD_BYTES_MAX`].
    FieldTooLong,
    /// The session observes [`limits::SESSION_OBSERVED_MAX`] keys.
    TooManyObserved,
    /// The name that a sender gives a message is longer than
    /// [`limits::SEND_ID_BYTES_MAX`] bytes.
    SendIdTooLong,
    /// A sender gives a message the name of another one that says something else.
    SendIdReused,
    /// The queue has consumers, or a session holds messages of it, or it goes with a session.
    QueueInUse,
    /// A queue, or a subscription of a topic, holds as much as its rules allow.
    QueueFull(Box<QueueFull>),
    /// There are [`limits::OWN_POLICIES_MAX`] queues with rules of their own.
    TooManyPolicies,
    /// The rules contradict each other: [`crate::QueueBounds::are_at_odds`].
    PolicyAtOdds,
    /// The server stores nothing more until it is started anew.
    Draining,
    /// The user has no right to do it.
    NotPermitted(Box<NotPermitted>),
    /// The user takes as much as it may.
    QuotaReached(Box<QuotaReached>),
    /// A stream or a group of one is not as the command needs it.
    Stream(StreamRefusal),
}

/// The right that a user lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPermitted {
    /// The user; `None`: the client has not logged in.
    pub user: Option<Arc<str>>,
    /// The right.
    pub right: Right,
    /// The name for which it lacks the right, unless that is for the broker as a whole.
    pub name: Option<QueueName>,
}

/// Which bound of which queue is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// The queue, or the topic of the subscription.
    pub queue: QueueName,
    /// Its bound.
    pub bound: Bound,
}

/// The bound of a queue, as its rules say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The number of messages.
    Messages(u64),
    /// The bytes of bodies.
    Bytes(u64),
    /// The number of messages that are taken out of it in this time.
    Age(Nanos),
}

/// The reason for which the engine refuses a command on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRefusal {
    /// The id of a new entry is not greater than all that the stream has had.
    IdTooSmall,
    /// The stream has had the greatest id.
    IdsExhausted,
    /// The stream has to be there.
    NoSuchStream,
    /// This stream has no such group, or is not there.
    NoSuchGroup(QueueName),
    /// The stream has such a group.
    GroupExists,
    /// The stream has [`limits::STREAM_GROUPS_MAX`] groups.
    TooManyGroups,
    /// The name of a group or consumer has more than [`limits::STREAM_NAME_BYTES_MAX`] bytes.
    NameTooLong,
    /// An entry has a greater id.
    BeforeLastEntry,
    /// An entry with a greater id was taken out.
    BeforeRemoved,
    /// There are more entries than were added.
    FewerThanThere,
}

impl From<StreamRefusal> for Refusal {
    fn from(refusal: StreamRefusal) -> Self {
        Self::Stream(refusal)
    }
}

impl StreamRefusal {
    const fn state(&self) -> &'static str {
        match self {
            Self::IdTooSmall => "the stream has had an entry with that id or a greater one",
            Self::IdsExhausted => "the stream has had the greatest id: no entry follows it",
            Self::NoSuchStream => "there is no such stream: add an entry, or let the group make it",
            Self::NoSuchGroup(_) => "the stream has no such group: create it",
            Self::GroupExists => "the stream has such a group",
            Self::TooManyGroups => {
                "the stream has 1000 groups, as many as it may: remove some, or use another stream"
            }
            Self::NameTooLong => "the name of a group or consumer has more than 1 KiB",
            Self::BeforeLastEntry => "an entry of the stream has a greater id",
            Self::BeforeRemoved => "an entry with a greater id was taken out of the stream",
            Self::FewerThanThere => "the stream has more entries than that",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreFull => f.write_str(
                "the store is full (the device, --disk-limit, or open files by `ulimit -n`): \
                 settle or delete messages, or give it more",
            ),
            Self::MemoryFull => f.write_str(
                "the broker's memory is full (--memory-limit): receive and settle messages, or \
                 give it more",
            ),
            Self::TooManyQueues { max } => too_many_queues(*max, f),
            Self::TooManyTemporary => write!(
                f,
                "a connection has {} temporary queues and topics at most: delete some",
                limits::SESSION_TEMPORARY_MAX
            ),
            Self::TooManyWatched => write!(
                f,
                "one consumer waits for {} queues at most: name fewer, or use several connections",
                limits::CONSUMER_QUEUES_MAX
            ),
            Self::TooManySubscriptions => write!(
                f,
                "there are {} subscriptions at most, {} of one topic and {} of patterns, fewer \
                 with a small --memory-limit: end some, or raise that",
                limits::SUBSCRIPTIONS_MAX,
                limits::TOPIC_SUBSCRIPTIONS_MAX,
                limits::PATTERN_SUBSCRIPTIONS_MAX
            ),
            Self::TooManySelectors => write!(
                f,
                "consumers of one queue have {} different selectors at most, and those, or those \
                 of a topic's subscriptions, {} literals, names and operators together (LIKE \
                 counts for 64); patterns of topics weigh {} together: close some, let them use \
                 the same, or shorten them",
                limits::QUEUE_SELECTORS_MAX,
                limits::SELECTORS_WEIGHT_MAX,
                limits::PATTERNS_WEIGHT_MAX
            ),
            Self::TooManyTransactions => write!(
                f,
                "a connection has {} open transactions at most: commit or roll back some",
                limits::SESSION_TRANSACTIONS_MAX
            ),
            Self::QueueFull(full) => {
                write!(f, "{full}; receive and settle messages of it, or let it hold more")
            }
            Self::InvalidSelector { position, reason } => {
                write!(f, "selector, at byte {position}: {reason}")
            }
            Self::NotPermitted(lack) => lack.fmt(f),
            Self::QuotaReached(reached) => reached.fmt(f),
            other => other.too_much(f),
        }
    }
}

impl Refusal {
    /// The command asks for more than is allowed at once.
    fn too_much(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TransactionTooLarge => write!(
                f,
                "a transaction takes at most {} messages, {} with the copies for subscriptions, \
                 and {} MiB, all that are open {} MiB, or half of the memory for messages where \
                 that is less (--memory-limit): send it in parts",
                limits::TRANSACTION_RECORDS_MAX,
                limits::TRANSACTION_COPIES_MAX,
                limits::TRANSACTION_BYTES_MAX >> 20,
                limits::UNCOMMITTED_BYTES_MAX >> 20
            ),
            Self::ListTooLong => write!(
                f,
                "the list is too long for that: one command looks at {} elements at most, removes \
                 {} and moves {}; do it in parts, or nearer to an end",
                limits::LIST_SCAN_MAX,
                limits::TRANSACTION_RECORDS_MAX,
                limits::FRAME_RECORDS_MAX
            ),
            Self::TooManyBytes { max } => write!(
                f,
                "too large for one reply: a command, or a transaction, answers with {max} bytes \
                 at most, and compares no more that left memory; ask for fewer elements, or give \
                 the server more memory (--memory-limit)"
            ),
            Self::BatchTooLarge => write!(
                f,
                "too much at once: a push, or the {} commands or values of a transaction at most, \
                 may store and delete {} elements, and bytes as one frame of the journal takes \
                 (--segment-bytes); do it in parts",
                limits::BATCH_COMMANDS_MAX,
                limits::TRANSACTION_RECORDS_MAX
            ),
            Self::TooManyValues => write!(
                f,
                "no room for this value: a value has {} MiB at most here, {} KiB behind an edit, \
                 and all take an eighth of the memory for messages; delete some, or raise \
                 --memory-limit",
                limits::VALUE_BYTES_MAX >> 20,
                limits::EDITED_BYTES_MAX >> 10
            ),
            Self::FieldTooLong => write!(
                f,
                "a field or a member has {} KiB at most here: use a shorter one, and put the rest \
                 into a value",
                limits::FIELD_BYTES_MAX >> 10
            ),
            Self::TooManyObserved => write!(
                f,
                "a connection watches {} keys at most: watch fewer",
                limits::SESSION_OBSERVED_MAX
            ),
            Self::SendIdTooLong => write!(
                f,
                "a deduplication id has {} bytes at most: use a shorter one",
                limits::SEND_ID_BYTES_MAX
            ),
            Self::SendIdReused => f.write_str(
                "another message was sent under this name, with another body or properties: give \
                 each message a name of its own, and send only the same again",
            ),
            Self::TooManyPolicies => write!(
                f,
                "{} queues have rules of their own, as many as may: take those of some away",
                limits::OWN_POLICIES_MAX
            ),
            other => f.write_str(other.state()),
        }
    }

    /// The obstacle, if that is no limit.
    const fn state(&self) -> &'static str {
        match self {
            Self::Stream(refusal) => refusal.state(),
            Self::NoSuchDestination | Self::NoSuchLink => "the destination is gone",
            Self::OfAnotherSession => "the temporary destination is another connection's",
            Self::ClientInUse => "the container id is in use",
            Self::SubscriptionInUse => "the subscription is in use",
            Self::NoSuchTransaction => "no such transaction",
            Self::TransactionFailed => {
                "a part of the transaction was refused, so that it can only be rolled back"
            }
            Self::TableConflict { .. } => {
                "a key of a table is not as the transaction expects it: read it again, and retry"
            }
            Self::NotAnInteger => "the value is no integer of 64 bits: set another one",
            Self::Overflow => "the sum would be no integer of 64 bits: add less",
            Self::NotADecimal => "the value, or what is to be added, is no decimal number",
            Self::ScoreNotANumber => "the sum of both scores is no number",
            Self::NotFinite => "the sum would be no number, or without end",
            Self::WrongKind => "the name stands for a key of another kind",
            Self::NoSuchPlace => "the list has no such place",
            Self::QueueInUse => {
                "the queue has consumers, somebody holds messages of it, or it is temporary: end \
                 them, or purge it"
            }
            Self::PolicyAtOdds => {
                "target-age holds senders off, so that when-full has to be block or reject: say \
                 that as well, or target-age as none"
            }
            Self::Draining => {
                "the server is draining and stores nothing more until it is started anew"
            }
            _ => "the broker does not allow it in this state",
        }
    }
}

fn too_many_queues(max: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let one_goes = "one goes with its last message, producer and consumer";
    if max < limits::QUEUES_MAX {
        write!(
            f,
            "there are {max} queues and subscriptions, as many as --memory-limit has room for: \
             raise it, or let some go; {one_goes}"
        )
    } else {
        write!(f, "there are {max} queues, or topics, as many as may be: let some go; {one_goes}")
    }
}

impl fmt::Display for NotPermitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, right, name } = self;
        let Some(user) = user else { return f.write_str("log in first: the server has users") };
        let right = right.word();
        match name {
            Some(name) => write!(
                f,
                "user {user} may not {right} here: {name} (an operator can allow it: dunlin user \
                 grant)"
            ),
            None => write!(
                f,
                "user {user} may not {right} (an operator can allow it: dunlin user grant)"
            ),
        }
    }
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} is full: {}", self.queue, self.bound)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages(count) => write!(f, "max-messages={count}"),
            Self::Bytes(bytes) => write!(f, "max-bytes={bytes}"),
            Self::Age(age) => write!(f, "target-age={}ms", age.0 / 1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::Quota;

    #[test]
    fn refusals_name_limit_and_mend() {
        let full = QueueFull { queue: QueueName::new("jobs").unwrap(), bound: Bound::Bytes(9) };
        let name = QueueName::new("jobs").ok();
        let lack = NotPermitted { user: Some("ann".into()), right: Right::Send, name };
        let reached = QuotaReached { user: "ann".into(), quota: Quota::Messages, max: 5 };
        let cases = [
            (Refusal::StoreFull, "--disk-limit", "settle or delete"),
            (Refusal::MemoryFull, "--memory-limit", "receive and settle"),
            (Refusal::TooManyQueues { max: 1_000_000 }, "1000000 queues", "let some go"),
            (Refusal::TooManyQueues { max: 17_000 }, "17000 queues", "raise it"),
            (Refusal::TooManyTemporary, "1024 temporary", "delete some"),
            (Refusal::TooManyWatched, "10000 queues", "name fewer"),
            (Refusal::TooManySubscriptions, "100000 subscriptions", "end some"),
            (Refusal::TooManySelectors, "256 different", "close some"),
            (Refusal::TooManyTransactions, "1024 open", "commit or roll back"),
            (Refusal::TransactionTooLarge, "200000 messages", "in parts"),
            (Refusal::ListTooLong, "250000 elements", "in parts"),
            (Refusal::TooManyBytes { max: 7 }, "7 bytes", "ask for fewer"),
            (Refusal::BatchTooLarge, "200000 elements", "in parts"),
            (Refusal::TooManyValues, "64 KiB", "delete some"),
            (Refusal::FieldTooLong, "24 KiB", "a shorter one"),
            (Refusal::TooManyObserved, "1024 keys", "watch fewer"),
            (Refusal::SendIdTooLong, "255 bytes", "a shorter one"),
            (Refusal::SendIdReused, "another body", "a name of its own"),
            (Refusal::QueueFull(Box::new(full)), "queue jobs is full: max-bytes=9", "hold more"),
            (Refusal::TooManyPolicies, "10000 queues", "away"),
            (Refusal::NotPermitted(Box::new(lack)), "may not send here: jobs", "user grant"),
            (Refusal::QuotaReached(Box::new(reached)), "the quota messages=5", "settled, or"),
        ];
        for (refusal, limit, mend) in cases {
            let text = refusal.to_string();
            assert!(text.contains(limit) && text.contains(mend), "{text}");
            assert!(!text.contains("  ") && text.chars().all(|it| !it.is_control()), "{text}");
        }
    }
}
