//! The message as its sender hands it over, and how its bytes are read.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU16;
use core::ops::Range;

use crate::{DeadReason, Nanos, Persistence, QueueName, fingerprint, limits};

/// A message on its way in. The engine gives it its identity and its later state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Smaller is more urgent.
    pub priority: u32,
    /// How long it stays hidden; zero: ready at once.
    pub delay: Nanos,
    /// How long a consumer that asks for no other time may hold it before it is ready again.
    pub lease: Nanos,
    /// The moment from which no consumer may receive it any more.
    pub expires: Option<Nanos>,
    /// Its sender's wish for durability.
    pub persistence: Persistence,
    /// Its sender's own name for it. Within the window that the store remembers, the same message
    /// under the same name to the same destination is not stored again: its sender is answered as
    /// the first time. Another message under that name is refused. At most
    /// [`crate::limits::SEND_ID_BYTES_MAX`] bytes.
    pub send_id: Option<Arc<str>>,
    /// The group that it belongs to. It is not stored: [`Formats::group`] finds it in the body
    /// again.
    pub group: Option<MessageGroup>,
    /// How `body` is to be read.
    pub format: Format,
    /// The bytes, opaque to all code but [`Formats`].
    pub body: Arc<[u8]>,
}

impl NewMessage {
    /// A persistent, raw message that is ready at once and may be held for a minute; of the most
    /// urgent priority.
    #[must_use]
    pub fn new(body: Arc<[u8]>) -> Self {
        Self {
            priority: 0,
            delay: Nanos::ZERO,
            lease: Nanos::from_secs(60),
            expires: None,
            persistence: Persistence::Persistent,
            send_id: None,
            group: None,
            format: Format::RAW,
            body,
        }
    }
}

/// The group of a message, JMS's `JMSXGroupID`: one consumer at a time receives the messages of a
/// group, in their order.
///
/// Names are told apart by [`limits::MESSAGE_GROUPS_MAX`] numbers, so that a queue knows few groups
/// however many names there are: groups of one number are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageGroup(NonZeroU16);

impl MessageGroup {
    /// Beside the number, which is counted from 1: the group ends.
    const LAST: u16 = 1 << 15;

    /// The group of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let number = fingerprint(name.as_bytes(), 0) % u64::from(limits::MESSAGE_GROUPS_MAX);
        // It is below the limit, which is far below 16 bits.
        Self(NonZeroU16::MIN.saturating_add(number as u16))
    }

    /// The same, if it ends with this message: later messages of the group may go to another
    /// consumer (`JMSXGroupSeq` is -1).
    #[must_use]
    pub const fn ending(self) -> Self {
        match NonZeroU16::new(self.0.get() | Self::LAST) {
            Some(ending) => Self(ending),
            None => self,
        }
    }

    /// True if the group ends with this message.
    #[must_use]
    pub const fn is_ending(self) -> bool {
        self.0.get() & Self::LAST != 0
    }

    /// Its number, below [`limits::MESSAGE_GROUPS_MAX`].
    #[must_use]
    pub const fn number(self) -> u16 {
        (self.0.get() & !Self::LAST) - 1
    }
}

const _: () = assert!(limits::MESSAGE_GROUPS_MAX < MessageGroup::LAST);

/// The priority of a message if its protocol knows none, or its sender names none: that of JMS
/// messages, and near to the usual one of beanstalkd's clients.
pub const PRIORITY_DEFAULT: u32 = 5 * 256;

/// How the bytes of a body are to be read. It is stored with each message, so a number never
/// changes its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Format(pub u8);

impl Format {
    /// The bytes are the payload, and there are no properties.
    pub const RAW: Self = Self(0);
}

/// How to look into bodies of every format that Dunlin knows: pure functions. The owner of all
/// protocols hands them to the engine. They are total: any bytes have an answer.
#[derive(Clone, Copy)]
pub struct Formats {
    /// A header field or property by the name that selectors use.
    pub property: PropertyReader,
    /// The offsets of the parts of a body, for [`Formats::property`].
    pub outline: OutlineReader,
    /// All properties by their names, sorted by these, but for header fields; none if there are
    /// so few that [`Formats::property`] finds them as soon.
    pub index: IndexReader,
    /// Which of the bytes a consumer of another protocol is to see.
    pub payload: PayloadReader,
    /// Tells a message from one of other content under the same name.
    pub fingerprint: FingerprintReader,
    /// The group that a message belongs to.
    pub group: GroupReader,
}

/// The offsets of the parts of a body, as its format counts them.
pub type Outline = [u32; 8];

/// The known parts of a message, in which properties are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Found<'f, 'm> {
    /// The result of [`Formats::outline`] for the same message.
    pub outline: &'f Outline,
    /// The result of [`Formats::index`] for the same message, or nothing.
    pub index: &'f [(&'m str, PropertyValue<'m>)],
}

/// See [`Formats::property`].
pub type PropertyReader = for<'m> fn(&Subject<'m>, Found<'_, 'm>, &str) -> PropertyValue<'m>;

/// See [`Formats::outline`].
pub type OutlineReader = fn(Format, &[u8]) -> Outline;

/// See [`Formats::index`].
pub type IndexReader = for<'m> fn(Format, &'m [u8]) -> Vec<(&'m str, PropertyValue<'m>)>;

/// See [`Formats::payload`].
pub type PayloadReader = fn(Format, &[u8]) -> Range<usize>;

/// See [`Formats::fingerprint`].
pub type FingerprintReader = fn(Format, &[u8]) -> u64;

/// See [`Formats::group`].
pub type GroupReader = fn(Format, &[u8]) -> Option<MessageGroup>;

/// A message as a selector looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'m> {
    /// How `body` is to be read.
    pub format: Format,
    /// Its bytes.
    pub body: &'m [u8],
    /// Smaller is more urgent.
    pub priority: u32,
    /// It was sent to be kept.
    pub is_persistent: bool,
    /// When it came.
    pub created: Nanos,
    /// The moment from which no consumer may receive it.
    pub expires: Option<Nanos>,
    /// How many attempts to deliver it have failed.
    pub failed: u32,
    /// How it came to be a dead letter, if it is one.
    pub death: Option<Death<'m>>,
}

/// How a message came to be a dead letter: see [`crate::DeadLetter`].
#[derive(Clone, Copy, Debug)]
pub struct Death<'m> {
    /// Why.
    pub reason: DeadReason,
    /// The queue or topic it was taken from.
    pub from: &'m QueueName,
    /// When.
    pub at: Nanos,
    /// How many deliveries had failed.
    pub attempts: u32,
}

impl Formats {
    /// Knows [`Format::RAW`] only.
    pub const RAW: Self = Self {
        property: |_, _, _| PropertyValue::Null,
        outline: |_, _| Outline::default(),
        index: |_, _| Vec::new(),
        payload: |_, body| 0..body.len(),
        fingerprint: |_, body| fingerprint(body, 0),
        group: |_, _| None,
    };
}

impl Default for Formats {
    fn default() -> Self {
        Self::RAW
    }
}

impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Formats")
    }
}

/// The value of a header field or property, as selectors see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PropertyValue<'m> {
    /// There is none, or it is null.
    #[default]
    Null,
    /// There is one, of a type that selectors do not know.
    Opaque,
    /// True or false.
    Boolean(bool),
    /// Any of the integers.
    Integer(i64),
    /// Any of the floating-point numbers.
    Float(f64),
    /// Text.
    String(&'m str),
}
