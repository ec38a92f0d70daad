//! The records of which frames and snapshots are made, as values; `codec.rs` has their bytes.
//!
//! A Changed record holds all that can change about a message, not a difference. Replaying the same
//! records twice, or on a state that already contains some of them, therefore ends in the same
//! state. A snapshot taken while traffic goes on depends on it.

use core::fmt;

use model::{DeadReason, Durability, Format, Lsn, MessageId, Nanos};

use crate::collection_records::{CollectionView, FieldsView};
use crate::copies::Copies;
use crate::key_records::{DeadlineView, ValueView};
use crate::policy_record::OwnPolicyView;
use crate::registration::SubscriptionView;
use crate::send_id_record::SendIdView;

/// The state of a message as far as the log knows. Leases are not journalled: a leased message is
/// written as ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredState {
    /// Waits for a consumer.
    Ready,
    /// Hidden until then.
    Delayed {
        /// When its delay ends.
        until: Nanos,
    },
    /// Set aside.
    Buried {
        /// Its place among the buried messages of all queues: smaller was buried earlier.
        order: u64,
    },
}

/// The counts of past events of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounters {
    /// Deliveries.
    pub delivered: u32,
    /// Leases that ended by time.
    pub expired: u32,
    /// Times released.
    pub released: u32,
    /// Times buried.
    pub buried: u32,
    /// Times kicked.
    pub kicked: u32,
    /// Deliveries that failed.
    pub failed: u32,
}

/// How a message came to be among the dead letters: see [`model::DeadLetter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadView<'a> {
    /// Why.
    pub reason: DeadReason,
    /// The queue it was taken from.
    pub from: &'a str,
    /// The number of the subscription that it was taken from, if it was one's.
    pub subscription: Option<u64>,
    /// When.
    pub at: Nanos,
    /// How many deliveries had failed.
    pub attempts: u32,
}

/// The place of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In the queue of this name.
    Queue(&'a str),
    /// In the subscription of this number.
    Subscription(u64),
}

/// All that can change about a message while it lives, but its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// Smaller is more urgent.
    pub priority: u32,
    /// The delay that was last asked for it.
    pub delay: Nanos,
    /// Its state.
    pub state: StoredState,
    /// Its place among ready messages of its priority, smallest first: its number unless it was put
    /// elsewhere; below zero in front of all that were not.
    pub order: i64,
    /// The counts of its past events.
    pub counters: MessageCounters,
    /// When its time is over.
    pub expires: Option<Nanos>,
    /// Why it is among the dead letters, if it is.
    pub dead: Option<DeadView<'a>>,
}

/// All about a message but its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredEnvelope<'a> {
    /// Which.
    pub message: MessageId,
    /// Its place.
    pub place: Place<'a>,
    /// The failure that it survives.
    pub durability: Durability,
    /// When it was stored.
    pub created: Nanos,
    /// How long a consumer may hold it.
    pub lease: Nanos,
    /// How its body is to be read.
    pub format: Format,
    /// The number of the first of all messages that one record stored with this body; zero if
    /// the record stored this one alone.
    pub group: u64,
    /// The fingerprint of the name of the user who stored it, seed 0; zero: of no user.
    pub sender: u64,
    /// The part that can change.
    pub standing: Standing<'a>,
}

/// One record, borrowed from the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordView<'a> {
    /// In a frame: a message was stored, or is stored anew by compaction.
    Message {
        /// All but the body.
        envelope: StoredEnvelope<'a>,
        /// The body.
        body: &'a [u8],
    },
    /// In a frame: a message was released, buried, kicked or leased out of its turn.
    Changed {
        /// Which.
        message: MessageId,
        /// How it stands now.
        standing: Standing<'a>,
        /// The place it was moved to, if it was moved since it was stored.
        moved: Option<Place<'a>>,
    },
    /// In a frame: a message is gone.
    Deleted {
        /// Which.
        message: MessageId,
    },
    /// In a frame: messages of one body were stored, or are stored anew by compaction.
    Shared {
        /// All but the body, of each.
        copies: Copies<'a>,
        /// The body.
        body: &'a [u8],
    },
    /// In a frame: there is a new durable subscription. In a snapshot: there is one.
    Subscribed(SubscriptionView<'a>),
    /// In a frame: a durable subscription is gone, and all messages that wait in it.
    Unsubscribed {
        /// Its number.
        number: u64,
    },
    /// In a snapshot: where the engine's own numbers stood.
    Sequence {
        /// The next message's number.
        next_message: u64,
        /// The next buried message's place.
        next_buried: u64,
        /// The latest moment the engine knew.
        latest: Nanos,
    },
    /// In a snapshot, unless it is 1: where the numbers of subscriptions stood.
    Subscriptions {
        /// The next one's number.
        next: u64,
    },
    /// In a frame, before all others: the frame is part of a chain of frames, which takes effect
    /// with its last.
    Chained {
        /// The first frame of the chain.
        first: Lsn,
        /// The next frame is of the chain too.
        more: bool,
    },
    /// In a frame: a small value was set. In a snapshot: there is one.
    ValueSet(ValueView<'a>),
    /// In a frame: a small value is gone.
    ValueDeleted {
        /// Its name.
        name: &'a str,
    },
    /// In a frame: when a key is to go from now on. In a snapshot, of a list: when it is to go.
    KeyDeadline(DeadlineView<'a>),
    /// In a frame: a name stands for this collection from now on. In a snapshot: it does.
    Collection(CollectionView<'a>),
    /// In a frame: fields of a collection were set. In a snapshot: there are these.
    FieldsSet(FieldsView<'a>),
    /// In a frame: fields of a collection are gone, and it still has some.
    FieldsGone(FieldsView<'a>),
    /// In a snapshot, unless it is 1: where the numbers of collections stood.
    Collections {
        /// The next one's number.
        next: u64,
    },
    /// In the frame or chain of a message: its sender's id for it. In a snapshot: the same of those
    /// that are remembered.
    SendId(SendIdView<'a>),
    /// In a frame: a queue has these rules of its own from now on. In a snapshot: it has them.
    OwnPolicy(OwnPolicyView<'a>),
    /// In a snapshot: a message with its body in the log.
    Located {
        /// All but the body.
        envelope: StoredEnvelope<'a>,
        /// The frame with its Message or Shared record.
        location: Lsn,
        /// The size of that record.
        record_bytes: u32,
    },
}

impl RecordView<'_> {
    /// The kind of record, in one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Changed { .. } => "changed",
            Self::Deleted { .. } => "deleted",
            Self::Sequence { .. } => "sequence",
            Self::Located { .. } => "located",
            Self::Shared { .. } => "shared",
            Self::Subscribed(_) => "subscribed",
            Self::Unsubscribed { .. } => "unsubscribed",
            Self::Subscriptions { .. } => "subscriptions",
            Self::Chained { .. } => "chained",
            Self::SendId(_) => "send_id",
            Self::OwnPolicy(_) => "own_policy",
            Self::ValueSet(_) => "value_set",
            Self::ValueDeleted { .. } => "value_deleted",
            Self::KeyDeadline(_) => "key_deadline",
            Self::Collection(_) => "collection",
            Self::FieldsSet(_) => "fields_set",
            Self::FieldsGone(_) => "fields_gone",
            Self::Collections { .. } => "collections",
        }
    }

    /// Names and values of all its fields but the kind, in the order of the byte tables. For a
    /// record of several messages, the fields of the first.
    pub fn fields(&self, mut each: impl FnMut(&'static str, FieldValue<'_>)) {
        match *self {
            Self::Message { envelope, body } => {
                envelope.fields(&mut each);
                each("body", FieldValue::Bytes(body));
            }
            Self::Changed { message, standing, moved } => {
                each("message", FieldValue::Number(message.0));
                standing.fields(&mut each);
                match moved {
                    Some(Place::Queue(queue)) => each("moved", FieldValue::Text(queue)),
                    Some(Place::Subscription(number)) => {
                        each("moved_to_subscription", FieldValue::Number(number));
                    }
                    None => {}
                }
            }
            Self::Deleted { message } => each("message", FieldValue::Number(message.0)),
            Self::Shared { copies, body } => {
                each("copies", FieldValue::Number(copies.count().into()));
                if let Some(first) = copies.iter().next() {
                    first.fields(&mut each);
                }
                each("body", FieldValue::Bytes(body));
            }
            Self::Subscribed(subscription) => subscription.fields(&mut each),
            Self::Unsubscribed { number } => each("subscription", FieldValue::Number(number)),
            Self::Subscriptions { next } => each("next_subscription", FieldValue::Number(next)),
            Self::Chained { first, more } => {
                each("first", FieldValue::Number(first.0));
                each("more", FieldValue::Number(more.into()));
            }
            Self::SendId(sent) => sent.fields(&mut each),
            Self::OwnPolicy(policy) => policy.fields(&mut each),
            Self::ValueSet(value) => value.fields(&mut each),
            Self::ValueDeleted { name } => each("name", FieldValue::Text(name)),
            Self::KeyDeadline(deadline) => deadline.fields(&mut each),
            Self::Collection(collection) => collection.fields(&mut each),
            Self::FieldsSet(fields) | Self::FieldsGone(fields) => fields.fields(&mut each),
            Self::Collections { next } => each("next_collection", FieldValue::Number(next)),
            Self::Sequence { next_message, next_buried, latest } => {
                each("next_message", FieldValue::Number(next_message));
                each("next_buried", FieldValue::Number(next_buried));
                each("latest_ns", FieldValue::Number(latest.0));
            }
            Self::Located { envelope, location, record_bytes } => {
                envelope.fields(&mut each);
                each("location", FieldValue::Number(location.0));
                each("record_bytes", FieldValue::Number(record_bytes.into()));
            }
        }
    }
}

/// The value of one field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number; names ending in `_ns` are nanoseconds.
    Number(u64),
    /// A number that may be below zero.
    Signed(i64),
    /// A word or a name.
    Text(&'a str),
    /// A body.
    Bytes(&'a [u8]),
}

/// One line: the kind, then `name=value`; of a body its size and its beginning.
impl fmt::Display for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        let mut result = Ok(());
        self.fields(|name, value| {
            result = result.and_then(|()| write!(f, " {name}={value}"));
        });
        result
    }
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Text(text) => fmt::Debug::fmt(text, f),
            Self::Bytes(bytes) => {
                let shown = bytes.get(..BODY_BYTES_SHOWN).unwrap_or(bytes);
                let more = if shown.len() < bytes.len() { "…" } else { "" };
                write!(f, "{}:\"{}\"{more}", bytes.len(), shown.escape_ascii())
            }
        }
    }
}

const BODY_BYTES_SHOWN: usize = 32;

impl StoredEnvelope<'_> {
    fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("message", FieldValue::Number(self.message.0));
        self.standing.fields(each);
        each("durability", FieldValue::Text(durability_word(self.durability)));
        each("created_ns", FieldValue::Number(self.created.0));
        each("lease_ns", FieldValue::Number(self.lease.0));
        match self.place {
            Place::Queue(queue) => each("queue", FieldValue::Text(queue)),
            Place::Subscription(number) => each("subscription", FieldValue::Number(number)),
        }
        if self.format != Format::RAW {
            each("format", FieldValue::Number(self.format.0.into()));
        }
        if self.group != 0 {
            each("group", FieldValue::Number(self.group));
        }
    }
}

impl Standing<'_> {
    fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("priority", FieldValue::Number(self.priority.into()));
        each("delay_ns", FieldValue::Number(self.delay.0));
        match self.state {
            StoredState::Ready => each("state", FieldValue::Text("ready")),
            StoredState::Delayed { until } => {
                each("state", FieldValue::Text("delayed"));
                each("until_ns", FieldValue::Number(until.0));
            }
            StoredState::Buried { order } => {
                each("state", FieldValue::Text("buried"));
                each("buried_order", FieldValue::Number(order));
            }
        }
        each("order", FieldValue::Signed(self.order));
        self.counters.fields(each);
        if let Some(expires) = self.expires {
            each("expires_ns", FieldValue::Number(expires.0));
        }
        if let Some(dead) = self.dead {
            dead.fields(each);
        }
    }
}

impl MessageCounters {
    fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        for (name, count) in [
            ("delivered", self.delivered),
            ("expired", self.expired),
            ("released", self.released),
            ("buried", self.buried),
            ("kicked", self.kicked),
            ("failed", self.failed),
        ] {
            each(name, FieldValue::Number(count.into()));
        }
    }
}

impl DeadView<'_> {
    fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("dead_reason", FieldValue::Text(self.reason.word()));
        each("dead_from", FieldValue::Text(self.from));
        if let Some(number) = self.subscription {
            each("dead_from_subscription", FieldValue::Number(number));
        }
        each("dead_at_ns", FieldValue::Number(self.at.0));
        each("dead_attempts", FieldValue::Number(self.attempts.into()));
    }
}

const fn durability_word(durability: Durability) -> &'static str {
    match durability {
        Durability::None => "none",
        Durability::Written => "written",
        Durability::Synced => "synced",
    }
}

/// Why bytes are not the records that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// They end inside a record.
    Truncated,
    /// A record begins with this unknown kind.
    UnknownKind(u8),
    /// A field holds a value that is not allowed; names the field.
    Invalid(&'static str),
    /// A record of this kind does not belong here: a frame's in a snapshot or the reverse.
    Misplaced(&'static str),
    /// A change of a message that does not exist.
    UnknownMessage(MessageId),
    /// A message of a subscription that does not exist, or the end of one.
    UnknownSubscription(u64),
    /// A small value or a collection is changed that does not exist.
    UnknownValue,
    /// A number or a name is that of two subscriptions.
    DuplicateSubscription(u64),
    /// A snapshot holds this message twice.
    DuplicateMessage(MessageId),
    /// Two messages claim one place in the order.
    DuplicateOrder(i64),
    /// No frame brought the body of this message.
    MissingBody(MessageId),
    /// The Message record of this message is not the one its location promises.
    WrongBody(MessageId),
    /// The frame is not after the one replayed before it.
    OutOfOrder(Lsn),
}

impl RecordError {
    /// A record names a message, subscription or value that is not there.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::UnknownMessage(_) | Self::UnknownSubscription(_) | Self::UnknownValue)
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside a record"),
            Self::UnknownKind(kind) => write!(f, "unknown kind of record {kind}"),
            Self::Invalid(field) => write!(f, "a record's {field} is not valid"),
            Self::Misplaced(kind) => write!(f, "a {kind} record does not belong here"),
            Self::UnknownMessage(id) => write!(f, "message {id} is changed but does not exist"),
            Self::UnknownSubscription(number) => {
                write!(f, "subscription {number} is used but does not exist")
            }
            Self::UnknownValue => f.write_str("a value is changed but does not exist"),
            Self::DuplicateSubscription(number) => {
                write!(f, "subscription {number} or one of its name is there twice")
            }
            Self::DuplicateMessage(id) => write!(f, "message {id} is there twice"),
            Self::DuplicateOrder(order) => write!(f, "place {order} is taken twice"),
            Self::MissingBody(id) => write!(f, "the body of message {id} is nowhere in the log"),
            Self::WrongBody(id) => write!(f, "the body of message {id} is not the one expected"),
            Self::OutOfOrder(lsn) => write!(f, "frame {lsn} is not after the one before it"),
        }
    }
}

impl core::error::Error for RecordError {}
