//! The names in an attach: destinations, clients and subscriptions.
//!
//! An address is the name of a queue or of a topic. Which of both is told by a prefix, or else by
//! a capability of the terminus; a destination without either is a queue.

use alloc::vec::Vec;

use model::{
    ClientName, Destination, Expiry, Matching, NameError, Nanos, QueueName, Subscription,
    SubscriptionName, SubscriptionOwner, words,
};

use crate::connection::elsewhere;
use crate::encode;
use crate::error::{Error, condition};
use crate::terminus::{DistributionMode, ExpiryPolicy, Source, TerminusDurability};
use crate::types::{Described, Descriptor, Fields, Symbols, Value, code};

const QUEUE_PREFIX: &str = "queue://";
const TOPIC_PREFIX: &str = "topic://";

/// How the engine names topics that go with a session.
const TEMPORARY_TOPIC_PREFIX: &str = "temporary/topic/";

/// The capabilities of queues.
pub(crate) const QUEUE: [&str; 2] = ["queue", "temporary-queue"];
/// The capabilities of topics.
pub(crate) const TOPIC: [&str; 2] = ["topic", "temporary-topic"];
/// The capability of a subscription that several consumers share.
pub(crate) const SHARED: &str = "shared";
/// The container id of a subscription that belongs to no client.
pub(crate) const GLOBAL: &str = "global";

/// The filter that selects messages, by code and name (registered filters of AMQP).
const SELECTOR: (u64, &str) = (0x0000_468c_0000_0004, "apache.org:selector-filter:string");

/// The filter that leaves out messages that the same container sends.
const NO_LOCAL: (u64, &str) = (0x0000_468c_0000_0003, "apache.org:no-local-filter:list");

/// True if capabilities are those of a topic.
pub(crate) fn is_topic(capabilities: &Symbols) -> bool {
    TOPIC.iter().any(|topic| capabilities.contains(topic))
}

/// The destination that an address names.
pub(crate) fn destination(address: &str, capabilities: &Symbols) -> Result<Destination, Error> {
    let known = QUEUE.iter().chain(&TOPIC).any(|name| capabilities.contains(name));
    named(address, known.then(|| is_topic(capabilities)))
}

/// The destination of a message that names its own, of which JMS tells the type: queues are even.
pub(crate) fn destination_of_message(
    to: &str,
    jms_type: Option<Value<'_>>,
) -> Result<Destination, Error> {
    let to = named(to, jms_type.and_then(|code| code.as_i64()).map(|code| code % 2 == 1))?;
    match elsewhere::meaning_of(&to, false) {
        Some(meaning) => Err(elsewhere::refusal(meaning)),
        None => Ok(to),
    }
}

fn named(address: &str, is_topic: Option<bool>) -> Result<Destination, Error> {
    if let Some(topic) = address.strip_prefix(TOPIC_PREFIX) {
        return name(topic).map(Destination::Topic);
    }
    let queue = address.strip_prefix(QUEUE_PREFIX);
    let is_topic = is_topic.unwrap_or(address.starts_with(TEMPORARY_TOPIC_PREFIX));
    let is_topic = queue.is_none() && is_topic;
    let name = name(queue.unwrap_or(address))?;
    Ok(if is_topic { Destination::Topic(name) } else { Destination::Queue(name) })
}

/// Parses the name of a queue, a topic or anything else that has one.
pub(crate) fn name(text: &str) -> Result<QueueName, Error> {
    QueueName::new(text).map_err(|error: NameError| {
        Error::new(condition::INVALID_FIELD, alloc::format!("not a name: {error}"))
    })
}

/// The selector among the filters of a source.
pub(crate) fn selector(source: &Source) -> Option<&str> {
    match source.filter(SELECTOR.0, SELECTOR.1) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// True if a source leaves out its own container's messages.
pub(crate) fn is_without_local(source: &Source) -> bool {
    source.filter(NO_LOCAL.0, NO_LOCAL.1).is_some()
}

/// Leaves those filters that are obeyed: "the sending endpoint sets the filter actually in place"
/// (3.5.3).
pub(crate) fn keep_known_filters(source: &mut Source, without_local: bool) {
    let known = |value: Value<'_>| {
        let Value::Described(described) = value else { return false };
        is(described.descriptor, SELECTOR) && matches!(described.value(), Value::String(_))
            || is(described.descriptor, NO_LOCAL) && without_local
    };
    let mut kept = Fields::default();
    for (key, value) in source.filter.as_map().iter() {
        if let Some(key) = key.as_str().filter(|_| known(value)) {
            kept.insert(key, value);
        }
    }
    source.filter = kept;
}

fn is(descriptor: Descriptor<'_>, (code, symbol): (u64, &str)) -> bool {
    [Descriptor::Code(code), Descriptor::Symbol(symbol)].contains(&descriptor)
}

/// The subscription that a consumer of a topic asks for. `link` is the name of its link, which
/// names the subscription up to the first `|` if that is shared.
pub(crate) fn subscription(
    source: &Source,
    link: &str,
    topic: QueueName,
    client: Option<&ClientName>,
) -> Result<Subscription, Error> {
    let durable = source.durable != TerminusDurability::None;
    let shared = source.capabilities.contains(SHARED);
    let name = match (durable || shared, shared) {
        (false, _) => None,
        (true, false) => Some(owned(link, client, durable)?),
        (true, true) if source.capabilities.contains(GLOBAL) => Some(SubscriptionName {
            user: None,
            client: None,
            name: name(shared_name(link))?,
            durable,
        }),
        (true, true) => Some(owned(shared_name(link), client, durable)?),
    };
    let without = client.filter(|_| is_without_local(source)).cloned();
    let selector = selector(source).map(Into::into);
    let matching = matching(&topic)?;
    let expiry = expiry(source).filter(|_| durable);
    Ok(Subscription { name, topic, matching, selector, shared, without, expiry })
}

/// Reads a topic as a name or a pattern, by its words.
fn matching(topic: &QueueName) -> Result<Matching, Error> {
    if !words::is_pattern(topic.as_str()) {
        return Ok(Matching::Name);
    }
    if words::parts(topic.as_str()).is_none() {
        let description = "in a pattern `>` is the last word: `*` is any word, `#` any number";
        return Err(Error::new(condition::INVALID_FIELD, description));
    }
    Ok(Matching::Words)
}

/// When a durable subscription ends by itself, if the peer asked for that. `session-end` asks for
/// nothing: it is the default of the field, also for clients that count on `durable` alone.
fn expiry(source: &Source) -> Option<Expiry> {
    let with = match source.expiry_policy {
        ExpiryPolicy::LinkDetach => SubscriptionOwner::Consumers,
        ExpiryPolicy::ConnectionClose => SubscriptionOwner::Session,
        ExpiryPolicy::SessionEnd | ExpiryPolicy::Never => return None,
    };
    Some(Expiry { with, after: Nanos::from_secs(source.timeout.into()) })
}

/// The fields that tell when a durable subscription ends by itself.
pub(crate) fn expiry_fields(expiry: Option<Expiry>) -> (ExpiryPolicy, u32) {
    let Some(Expiry { with, after }) = expiry else { return (ExpiryPolicy::Never, 0) };
    let policy = match with {
        SubscriptionOwner::Consumers => ExpiryPolicy::LinkDetach,
        SubscriptionOwner::Session => ExpiryPolicy::ConnectionClose,
    };
    (policy, u32::try_from(after.0 / Nanos::from_secs(1).0).unwrap_or(u32::MAX))
}

/// The durable subscription that is looked for by its link's name alone.
pub(crate) fn wanted_subscription(
    link: &str,
    desired: &Symbols,
    client: Option<&ClientName>,
) -> Result<SubscriptionName, Error> {
    if desired.contains(GLOBAL) {
        return Ok(SubscriptionName {
            user: None,
            client: None,
            name: name(shared_name(link))?,
            durable: true,
        });
    }
    let link = if desired.contains(SHARED) { shared_name(link) } else { link };
    owned(link, client, true)
}

fn owned(
    link: &str,
    client: Option<&ClientName>,
    durable: bool,
) -> Result<SubscriptionName, Error> {
    let Some(client) = client else {
        let description = "a subscription with a name needs a container id that is one";
        return Err(Error::new(condition::INVALID_FIELD, description));
    };
    Ok(SubscriptionName { user: None, client: Some(client.clone()), name: name(link)?, durable })
}

/// The source of a subscription that was looked for.
pub(crate) fn source(subscription: &Subscription) -> Source {
    let is_global = subscription.name.as_ref().is_some_and(|name| name.client.is_none());
    let shared = subscription.shared.then_some(SHARED);
    let global = (is_global && subscription.shared).then_some(GLOBAL);
    let mut filter = Fields::default();
    if let Some(selector) = &subscription.selector {
        insert_selector(&mut filter, selector);
    }
    let (expiry_policy, timeout) = expiry_fields(subscription.expiry);
    Source {
        address: Some(subscription.topic.as_str().into()),
        durable: TerminusDurability::UnsettledState,
        expiry_policy,
        timeout,
        distribution_mode: Some(DistributionMode::Copy),
        filter,
        capabilities: ["topic"].into_iter().chain(shared).chain(global).collect(),
        ..Source::default()
    }
}

fn insert_selector(filter: &mut Fields, selector: &str) {
    let mut encoded = Vec::new();
    encode::value(&mut encoded, Value::String(selector));
    let (code, content) = encoded.split_first().unwrap_or((&code::NULL, &[]));
    let described = Described { descriptor: Descriptor::Code(SELECTOR.0), code: *code, content };
    filter.insert("jms-selector", Value::Described(described));
}

fn shared_name(link: &str) -> &str {
    link.split_once('|').map_or(link, |(name, _)| name)
}
