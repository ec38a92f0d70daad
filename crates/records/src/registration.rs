//! Durable subscriptions as records say them.
//!
//! ```text
//! Subscribed  7 · subscription varint · flags · name bytes · topic bytes
//!               · client bytes, selector bytes, without bytes, after varint: each when flagged
//! flags       bit 0  it is a client's        bit 1  it has a selector
//!             bit 2  it is without what a client sends        bit 3  it is shared
//!             bit 4  its topic is a pattern of words
//!             bit 5  it ends so many milliseconds after its last consumer
//!             bit 6  not that, but after the last consumer's session (not without bit 5)
//!             bit 7  it is a user's: bytes of the name, at the end
//! ```
//! All bytes are UTF-8. The same subscription may be stated again, with another end.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Expiry, Matching, Nanos, QueueName, Subscription, SubscriptionName, SubscriptionOwner, words,
};

use crate::codec::{number, put_number, queue_name, text};
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes, put_varint};

/// A durable subscription: see [`model::Subscription`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionView<'a> {
    /// Its number in the log; never used twice.
    pub number: u64,
    /// Its name among those of its client.
    pub name: &'a str,
    /// The topic that it subscribes to.
    pub topic: &'a str,
    /// Its client, if it is a client's.
    pub client: Option<&'a str>,
    /// Which messages it takes, if not all.
    pub selector: Option<&'a str>,
    /// The client that it takes no messages of.
    pub without: Option<&'a str>,
    /// Several consumers may share it.
    pub shared: bool,
    /// Its topic is a pattern of words.
    pub is_pattern: bool,
    /// When it ends by itself, if it does.
    pub expiry: Option<Expiry>,
    /// Its user, if it is a user's.
    pub user: Option<&'a str>,
}

impl<'a> SubscriptionView<'a> {
    /// A durable subscription as a record; none for another.
    #[must_use]
    pub fn of(number: u64, subscription: &'a Subscription) -> Option<Self> {
        let name = subscription.name.as_ref().filter(|name| name.durable)?;
        Some(Self {
            number,
            name: name.name.as_str(),
            topic: subscription.topic.as_str(),
            client: name.client.as_ref().map(QueueName::as_str),
            selector: subscription.selector.as_deref(),
            without: subscription.without.as_ref().map(QueueName::as_str),
            shared: subscription.shared,
            is_pattern: subscription.matching == Matching::Words,
            expiry: subscription.expiry,
            user: name.user.as_deref(),
        })
    }

    /// The subscription of the record, its names checked.
    ///
    /// # Errors
    /// A name is none, or the topic is no pattern.
    pub fn subscription(&self) -> Result<Box<Subscription>, RecordError> {
        let name = SubscriptionName {
            user: self.user.map(Arc::from),
            client: self.client.map(queue_name).transpose()?,
            name: queue_name(self.name)?,
            durable: true,
        };
        let matching = if self.is_pattern { Matching::Words } else { Matching::Name };
        if self.is_pattern && words::parts(self.topic).is_none() {
            return Err(RecordError::Invalid("topic"));
        }
        Ok(Box::new(Subscription {
            name: Some(name),
            matching,
            selector: self.selector.map(Arc::from),
            shared: self.shared,
            without: self.without.map(queue_name).transpose()?,
            expiry: self.expiry,
            ..Subscription::new(queue_name(self.topic)?)
        }))
    }

    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        put_number(out, self.number);
        let optional =
            [(self.client, HAS_CLIENT), (self.selector, HAS_SELECTOR), (self.without, HAS_WITHOUT)];
        let flags = optional.iter().filter(|(text, _)| text.is_some()).map(|(_, bit)| bit);
        let with_session =
            self.expiry.is_some_and(|expiry| expiry.with == SubscriptionOwner::Session);
        let others = [
            (self.shared, SHARED),
            (self.is_pattern, IS_PATTERN),
            (self.expiry.is_some(), HAS_EXPIRY),
            (with_session, WITH_SESSION),
            (self.user.is_some(), HAS_USER),
        ];
        let others = others.into_iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit);
        out.push(flags.sum::<u8>() | others.sum::<u8>());
        put_bytes(out, self.name.as_bytes());
        put_bytes(out, self.topic.as_bytes());
        for text in optional.iter().filter_map(|(text, _)| *text) {
            put_bytes(out, text.as_bytes());
        }
        if let Some(expiry) = self.expiry {
            let after = expiry.after.0;
            debug_assert!(after.is_multiple_of(NANOS_PER_MILLI), "the rest would be lost");
            put_varint(out, after / NANOS_PER_MILLI);
        }
        if let Some(user) = self.user {
            put_bytes(out, user.as_bytes());
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let number = number(reader)?;
        let flags = reader.byte()?;
        let is_odd = flags & (HAS_EXPIRY | WITH_SESSION) == WITH_SESSION;
        if is_odd {
            return Err(RecordError::Invalid("flags"));
        }
        let name = text(reader, "name")?;
        let topic = text(reader, "topic")?;
        let mut optional =
            |bit, field| if flags & bit == 0 { Ok(None) } else { text(reader, field).map(Some) };
        let client = optional(HAS_CLIENT, "client")?;
        let selector = optional(HAS_SELECTOR, "selector")?;
        let without = optional(HAS_WITHOUT, "client")?;
        let expiry = if flags & HAS_EXPIRY == 0 { None } else { Some(expiry(reader, flags)?) };
        let user = if flags & HAS_USER == 0 { None } else { Some(text(reader, "user")?) };
        let (shared, is_pattern) = (flags & SHARED != 0, flags & IS_PATTERN != 0);
        Ok(Self {
            number,
            name,
            topic,
            client,
            selector,
            without,
            shared,
            is_pattern,
            expiry,
            user,
        })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("subscription", FieldValue::Number(self.number));
        each("name", FieldValue::Text(self.name));
        each("topic", FieldValue::Text(self.topic));
        for (field, text) in
            [("client", self.client), ("selector", self.selector), ("without", self.without)]
        {
            if let Some(text) = text {
                each(field, FieldValue::Text(text));
            }
        }
        each("shared", FieldValue::Number(self.shared.into()));
        if self.is_pattern {
            each("pattern", FieldValue::Number(1));
        }
        if let Some(Expiry { with, after }) = self.expiry {
            let field = match with {
                SubscriptionOwner::Consumers => "ends_millis_after_consumers",
                SubscriptionOwner::Session => "ends_millis_after_session",
            };
            each(field, FieldValue::Number(after.0 / NANOS_PER_MILLI));
        }
        if let Some(user) = self.user {
            each("user", FieldValue::Text(user));
        }
    }
}

fn expiry(reader: &mut Reader<'_>, flags: u8) -> Result<Expiry, RecordError> {
    let millis = reader.varint()?;
    let after = millis.checked_mul(NANOS_PER_MILLI).ok_or(RecordError::Invalid("after"))?;
    let with = if flags & WITH_SESSION == 0 {
        SubscriptionOwner::Consumers
    } else {
        SubscriptionOwner::Session
    };
    Ok(Expiry { with, after: Nanos(after) })
}

const HAS_CLIENT: u8 = 1;
const HAS_SELECTOR: u8 = 1 << 1;
const HAS_WITHOUT: u8 = 1 << 2;
const SHARED: u8 = 1 << 3;
const IS_PATTERN: u8 = 1 << 4;
const HAS_EXPIRY: u8 = 1 << 5;
const WITH_SESSION: u8 = 1 << 6;
const HAS_USER: u8 = 1 << 7;

const _: () = assert!(
    HAS_CLIENT
        | HAS_SELECTOR
        | HAS_WITHOUT
        | SHARED
        | IS_PATTERN
        | HAS_EXPIRY
        | WITH_SESSION
        | HAS_USER
        == !0,
    "each bit has one meaning"
);

const NANOS_PER_MILLI: u64 = 1_000_000;
