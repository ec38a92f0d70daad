//! Durable subscriptions as records say them.
//!
//! ```text
//! Subscribed  7 · subscription varint · flags · name bytes · topic bytes
//!               · client bytes, selector bytes, without bytes: each when flagged
//! flags       bit 0  it is a client's        bit 1  it has a selector
//!             bit 2  it is without what a client sends        bit 3  it is shared
//! ```
//! All bytes are UTF-8.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{QueueName, Subscription, SubscriptionName};

use crate::codec::{number, queue_name, text};
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes, put_varint};

/// A durable subscription: see [`model::Subscription`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionView<'a> {
    /// What the log knows it by; never used twice.
    pub number: u64,
    /// Its name among those of its client.
    pub name: &'a str,
    /// What it subscribes to.
    pub topic: &'a str,
    /// Whose it is, if it is a client's.
    pub client: Option<&'a str>,
    /// Which messages it takes, if not all.
    pub selector: Option<&'a str>,
    /// Whose messages it does not take.
    pub without: Option<&'a str>,
    /// Several consumers may share it.
    pub shared: bool,
}

impl<'a> SubscriptionView<'a> {
    /// A durable subscription as a record; none for another.
    pub(crate) fn of(number: u64, subscription: &'a Subscription) -> Option<Self> {
        let name = subscription.name.as_ref().filter(|name| name.durable)?;
        Some(Self {
            number,
            name: name.name.as_str(),
            topic: subscription.topic.as_str(),
            client: name.client.as_ref().map(QueueName::as_str),
            selector: subscription.selector.as_deref(),
            without: subscription.without.as_ref().map(QueueName::as_str),
            shared: subscription.shared,
        })
    }

    /// What the record says, its names checked.
    pub(crate) fn subscription(&self) -> Result<Box<Subscription>, RecordError> {
        let name = SubscriptionName {
            client: self.client.map(queue_name).transpose()?,
            name: queue_name(self.name)?,
            durable: true,
        };
        Ok(Box::new(Subscription {
            name: Some(name),
            topic: queue_name(self.topic)?,
            selector: self.selector.map(Arc::from),
            shared: self.shared,
            without: self.without.map(queue_name).transpose()?,
        }))
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        let optional =
            [(self.client, HAS_CLIENT), (self.selector, HAS_SELECTOR), (self.without, HAS_WITHOUT)];
        let flags = optional.iter().filter(|(text, _)| text.is_some()).map(|(_, bit)| bit);
        out.push(flags.sum::<u8>() | if self.shared { SHARED } else { 0 });
        put_bytes(out, self.name.as_bytes());
        put_bytes(out, self.topic.as_bytes());
        for text in optional.iter().filter_map(|(text, _)| *text) {
            put_bytes(out, text.as_bytes());
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let number = number(reader)?;
        let flags = reader.byte()?;
        if flags & !(HAS_CLIENT | HAS_SELECTOR | HAS_WITHOUT | SHARED) != 0 {
            return Err(RecordError::Invalid("flags"));
        }
        let name = text(reader, "name")?;
        let topic = text(reader, "topic")?;
        let mut optional =
            |bit, field| if flags & bit == 0 { Ok(None) } else { text(reader, field).map(Some) };
        Ok(Self {
            number,
            name,
            topic,
            client: optional(HAS_CLIENT, "client")?,
            selector: optional(HAS_SELECTOR, "selector")?,
            without: optional(HAS_WITHOUT, "client")?,
            shared: flags & SHARED != 0,
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
    }
}

const HAS_CLIENT: u8 = 1;
const HAS_SELECTOR: u8 = 1 << 1;
const HAS_WITHOUT: u8 = 1 << 2;
const SHARED: u8 = 1 << 3;
