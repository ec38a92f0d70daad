//! The resources of paths, and their methods.

use hyper::Method;
use model::{MessageId, QueueName, words};

use crate::gateway::Settling;
use crate::problem::{Problem, Result};
use crate::query::{decode, decode_text};
use crate::tables::Octets;
use crate::token::Token;

/// The resource of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Index,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Journal,
    Queues,
    Queue(QueueName),
    Messages(QueueName),
    Purge(QueueName),
    Move(QueueName),
    Policy(QueueName),
    Policies,
    Message(MessageId),
    Lease(Token),
    LeaseAction(Token, Action),
    Topics,
    TopicMessages(QueueName),
    TopicEvents(QueueName),
    Subscriptions,
    Subscription(QueueName),
    Tables,
    Table(QueueName),
    TableKey(TableKey),
    Transactions,
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableKey {
    pub(crate) table: QueueName,
    /// Any bytes, also none.
    pub(crate) key: Octets,
}

/// The actions on a lease, beside the one that accepts its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Release,
    Extend,
    Bury,
    Fail,
}

impl Resource {
    /// The resource of a path, of which these are the parts if all of it is text. A key of a table
    /// need not be.
    pub(crate) fn of_path(path: &str, segments: Result<Vec<String>>) -> Result<Self> {
        let mut parts = path.strip_prefix("/tables/").into_iter().flat_map(|rest| rest.split('/'));
        match (parts.next(), parts.next(), parts.next()) {
            (Some(table), Some(key), None) => {
                let (table, key) = (decode_text(table, "the path")?, decode(key, "the path")?);
                Ok(Self::TableKey(TableKey { table: name(&table)?, key: key.into() }))
            }
            _ => Self::of(&segments?),
        }
    }

    /// The resource with the parts of a path.
    pub(crate) fn of(segments: &[String]) -> Result<Self> {
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        Ok(match *segments.as_slice() {
            [] => Self::Index,
            ["health"] => Self::Health,
            ["ready"] => Self::Ready,
            ["metrics"] => Self::Metrics,
            ["openapi.json"] => Self::OpenApi,
            ["journal"] => Self::Journal,
            ["queues"] => Self::Queues,
            ["queues", queue] => Self::Queue(name(queue)?),
            ["queues", queue, "messages"] => Self::Messages(name(queue)?),
            ["queues", queue, "messages", lease] => {
                name(queue)?;
                Self::Lease(token(lease)?)
            }
            ["queues", queue, "messages", lease, action] => {
                name(queue)?;
                Self::LeaseAction(token(lease)?, Action::named(action)?)
            }
            ["queues", queue, "purge"] => Self::Purge(name(queue)?),
            ["queues", queue, "move"] => Self::Move(name(queue)?),
            ["queues", queue, "policy"] => Self::Policy(name(queue)?),
            ["policies"] => Self::Policies,
            ["messages", id] => Self::Message(message(id)?),
            ["leases", lease] => Self::Lease(token(lease)?),
            ["leases", lease, action] => Self::LeaseAction(token(lease)?, Action::named(action)?),
            ["topics"] => Self::Topics,
            ["topics", topic, "messages"] => Self::TopicMessages(topic_to_send(topic)?),
            ["topics", topic, "events"] => Self::TopicEvents(topic_to_follow(topic)?),
            ["subscriptions"] => Self::Subscriptions,
            ["subscriptions", subscription] => Self::Subscription(name(subscription)?),
            ["tables"] => Self::Tables,
            ["tables", table] => Self::Table(name(table)?),
            ["transactions"] => Self::Transactions,
            _ => return Err(Problem::not_found("nothing is at this path; / lists what there is")),
        })
    }

    /// Its methods, as a header `Allow` lists them.
    pub(crate) const fn methods(&self) -> &'static str {
        match self {
            Self::Index
            | Self::Health
            | Self::Ready
            | Self::Metrics
            | Self::OpenApi
            | Self::Journal
            | Self::Queues
            | Self::Policies
            | Self::Message(_)
            | Self::Topics
            | Self::Subscriptions
            | Self::Tables
            | Self::Table(_) => "GET, HEAD, OPTIONS",
            Self::TableKey(_) => "GET, HEAD, PUT, POST, DELETE, OPTIONS",
            Self::Queue(_) => "GET, HEAD, DELETE, OPTIONS",
            Self::Policy(_) => "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
            // A receive leases and a stream has no end: nothing to be asked for its head alone.
            Self::Messages(_) => "GET, POST, OPTIONS",
            Self::TopicEvents(_) => "GET, OPTIONS",
            Self::Lease(_) | Self::Subscription(_) => "DELETE, OPTIONS",
            Self::Purge(_)
            | Self::Move(_)
            | Self::LeaseAction(..)
            | Self::TopicMessages(_)
            | Self::Transactions => "POST, OPTIONS",
        }
    }

    /// Refuses a method that it does not allow.
    pub(crate) fn check(&self, method: &Method) -> Result<()> {
        let allowed = self.methods();
        if allowed.split(", ").any(|allowed| allowed == method.as_str()) {
            return Ok(());
        }
        Err(Problem::method_not_allowed(allowed))
    }
}

impl Action {
    fn named(name: &str) -> Result<Self> {
        match name {
            "release" => Ok(Self::Release),
            "extend" => Ok(Self::Extend),
            "bury" => Ok(Self::Bury),
            "fail" => Ok(Self::Fail),
            _ => Err(Problem::not_found("with a lease can be done: release, extend, bury, fail")),
        }
    }
}

/// The settlement of a lease, by its word in a transaction.
pub(crate) fn settling(word: &str) -> Result<Settling> {
    match word {
        "accept" => Ok(Settling::Accept),
        "release" => Ok(Settling::Release { delay: None, priority: None }),
        "fail" => Ok(Settling::Fail),
        _ => Err(Problem::bad_request(format!(
            "as is {word:?} and has to be accept, release or fail"
        ))),
    }
}

/// The name of a queue or topic.
pub(crate) fn name(text: &str) -> Result<QueueName> {
    QueueName::new(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The name of one topic.
pub(crate) fn topic_to_send(text: &str) -> Result<QueueName> {
    let topic = name(text)?;
    if words::is_pattern(text) {
        return Err(Problem::bad_request(format!(
            "{text} is a pattern of topics, since *, # or > is one of its words: send to a topic \
             by its name"
        )));
    }
    Ok(topic)
}

/// The name of a topic, or a pattern of topics.
fn topic_to_follow(text: &str) -> Result<QueueName> {
    let topic = name(text)?;
    if words::parts(text).is_none() {
        return Err(Problem::bad_request(
            "in a pattern of topics > is the last word: * is any word, # any number",
        ));
    }
    Ok(topic)
}

fn message(text: &str) -> Result<MessageId> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if plain { text.parse().ok() } else { None };
    number.map(MessageId).ok_or_else(|| Problem::not_found("a message has a number"))
}

/// Reads a token. A text that is none was never a lease.
fn token(text: &str) -> Result<Token> {
    let unknown = || Problem::not_found("no such lease; Dunlin-Lease of a received message is one");
    text.parse().map_err(|_| unknown())
}
