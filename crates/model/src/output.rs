//! The engine's replies to a protocol session.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::{
    Body, BrokerStatistics, DatabaseStatistics, DeadLetter, DependsOn, Destination, Durability,
    Element, Entries, Format, KeyKind, Lifetime, LinkId, ListCommand, MessageId, MessageStatistics,
    Nanos, OneOrMany, OwnPolicies, Page, PageEnd, Payload, QueueFull, QueueName, QueueStatistics,
    Refusal, Score, ScoredPopped, ScoredRange, ScriptValue, SessionId, Shows, StatedPolicy,
    StreamReply, Subscription, SubscriptionStatistics, Values, WallClock,
};

/// A reply on its way to a session, and the position that must be durable before the session's peer
/// may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The session that it is for.
    pub session: SessionId,
    /// The gate holds it until then.
    pub after: DependsOn,
    /// The reply.
    pub reply: Reply,
}

/// The answer to one [`crate::Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is as asked.
    Done,
    /// A transaction was committed that adds to keys of tables.
    Committed {
        /// The value of each behind its addition, in their order.
        sums: Vec<i64>,
    },
    /// A message was stored.
    Stored {
        /// Its new identity.
        message: MessageId,
    },
    /// The engine will not, and nothing changed.
    Refused(Refusal),
    /// A message was leased to the session, or shown to a consumer that browses.
    Delivered(Box<Delivery>),
    /// No message came in time.
    TimedOut {
        /// The consumer that waited; `None`: a command on lists did.
        link: Option<LinkId>,
    },
    /// Nothing is ready, and a lease of this session is about to end.
    LeaseEnding,
    /// No such message or queue, or not in a state or by a session that allows it.
    NotFound,
    /// A message was looked at.
    Found {
        /// Which.
        message: MessageId,
        /// It.
        element: Box<Element>,
    },
    /// A consumer was to use up its credit: nothing more is there for it.
    Drained {
        /// The consumer.
        link: LinkId,
        /// How many messages it got since it was opened, which is its limit now.
        delivered: u64,
    },
    /// The source of a consumer is gone, and the consumer with it. Answers no command.
    ConsumerClosed {
        /// The consumer.
        link: LinkId,
    },
    /// A subscription holds more than its rules allow, for this consumer did not take it in time:
    /// the consumer is gone. Answers no command.
    ConsumerCutOff {
        /// The consumer.
        link: LinkId,
        /// The topic, and the bound.
        full: Box<QueueFull>,
    },
    /// A temporary destination was made.
    Created(Destination),
    /// A named subscription as it is.
    Subscription(Box<Subscription>),
    /// The number of changed messages.
    Count(u64),
    /// The number of changed messages, as many as one command may change
    /// ([`crate::limits::FRAME_RECORDS_MAX`]), and there are more of the same kind: ask again.
    CountSoFar(u64),
    /// The changed messages; there may be more of the same kind behind this place: ask again from
    /// there.
    CountUntil {
        /// How many.
        count: u64,
        /// The end of this page.
        next: PageEnd,
    },
    /// See [`MessageStatistics`].
    MessageStatistics(Box<MessageStatistics>),
    /// See [`QueueStatistics`].
    QueueStatistics(Box<QueueStatistics>),
    /// See [`BrokerStatistics`].
    BrokerStatistics(Box<BrokerStatistics>),
    /// The names of all queues, ascending.
    Queues(Vec<QueueName>),
    /// Some queues, ascending by name.
    QueuePage {
        /// They.
        queues: Vec<QueueStatistics>,
        /// The last one that was looked at; `None`: there are no more.
        next: Option<QueueName>,
    },
    /// Elements of a list.
    Elements(OneOrMany<Element>),
    /// Elements taken from one of several lists.
    Popped {
        /// Which.
        queue: QueueName,
        /// They, at least one.
        elements: Vec<Element>,
    },
    /// The places of elements in a list.
    Places(Vec<u64>),
    /// The kind of a key; `None`: no such key.
    Kind(Option<KeyKind>),
    /// When a key is to go.
    Lifetime(Lifetime),
    /// Some names.
    Names {
        /// They, ascending.
        names: Vec<QueueName>,
        /// The last one that was looked at; `None`: there are no more.
        next: Option<QueueName>,
    },
    /// The keys of each database that has any, ascending.
    Databases(Vec<DatabaseStatistics>),
    /// A small value; `None`: there is no such key.
    Value(Option<Arc<[u8]>>),
    /// The values that a run has found, or all that were asked for.
    Values(Box<Values>),
    /// The number that a value is now.
    Integer(i64),
    /// The numbers in the bits of a value; `None`: a field could not hold it.
    Numbers(Vec<Option<i64>>),
    /// The number of a picture.
    Picture(u64),
    /// Fields or members of a collection.
    Entries(Box<Entries>),
    /// The scores of members; `None`: there is no such member, or its score was not set.
    Scores(Vec<Option<Score>>),
    /// The number of removed members, as many as one step removes, and the part of the range that
    /// is left: ask again for that.
    RangeLeft {
        /// How many.
        count: u64,
        /// The rest.
        rest: ScoredRange,
    },
    /// The place of a member in a sorted set, and its score.
    Rank {
        /// How many stand before it.
        before: u64,
        /// Its score.
        score: Score,
    },
    /// Members that were taken out of one of several sorted sets.
    ScoredPopped(Box<ScoredPopped>),
    /// See [`StreamReply`].
    Stream(Box<StreamReply>),
    /// A value was set, or was to be set only under a condition.
    Replaced {
        /// True if it is set now.
        set: bool,
        /// The old value, if that was asked for.
        old: Option<Arc<[u8]>>,
    },
    /// Messages that were looked at.
    Page(Box<Page>),
    /// All subscriptions, by topic and name.
    Subscriptions(Vec<SubscriptionStatistics>),
    /// The rules of a queue.
    Policy(Box<StatedPolicy>),
    /// Rules that queues were given while the broker ran, by name.
    OwnPolicies(OwnPolicies),
    /// A run is to be asked for command by command, for others might come between them. Nothing
    /// was done; this was asked.
    NotBatchable(Box<ListCommand>),
    /// The result of a script.
    Scripted(Box<ScriptValue>),
    /// The answers to the commands of a batch.
    Batch(Vec<Self>),
    /// An observed key has changed: the batch was not done.
    Stale,
    /// A queue has no place yet for a send, or memory no room: the answer comes later, as `Late`.
    Waits {
        /// Which of the sends that wait it is.
        ticket: u64,
    },
    /// The answer to a command that waited.
    Late {
        /// Which.
        ticket: u64,
        /// The reply.
        reply: Box<Self>,
    },
}

impl Reply {
    /// Tells moments by the machine's clock, for a client.
    #[inline]
    pub fn tell_by(&mut self, clock: &WallClock) {
        let tells_moments = matches!(
            self,
            Self::Delivered(_)
                | Self::Page(_)
                | Self::Lifetime(_)
                | Self::Stream(_)
                | Self::Batch(_)
                | Self::Late { .. }
        );
        if tells_moments {
            self.tell_moments_by(clock);
        }
    }

    fn tell_moments_by(&mut self, clock: &WallClock) {
        match self {
            Self::Delivered(delivery) => delivery.tell_by(clock),
            Self::Page(page) => {
                page.messages.iter_mut().for_each(|shown| shown.delivery.tell_by(clock));
            }
            Self::Stream(reply) => reply.tell_by(clock),
            Self::Lifetime(lifetime) => lifetime.at = lifetime.at.map(|at| clock.wall_time(at)),
            Self::Batch(replies) => replies.iter_mut().for_each(|reply| reply.tell_by(clock)),
            Self::Late { reply, .. } => reply.tell_by(clock),
            _ => {}
        }
    }

    /// Lets see all bodies that it shows.
    pub fn each_shown(&mut self, see: &mut dyn FnMut(Shows<'_>)) {
        match self {
            Self::Delivered(delivery) => see(delivery.shows()),
            Self::Found { element, .. } => see(element.shows()),
            Self::Elements(elements) => {
                elements.iter_mut().for_each(|element| see(element.shows()));
            }
            Self::Popped { elements, .. } => {
                elements.iter_mut().for_each(|element| see(element.shows()));
            }
            Self::Page(page) => {
                page.messages.iter_mut().for_each(|shown| see(shown.delivery.shows()));
            }
            Self::Batch(replies) => replies.iter_mut().for_each(|reply| reply.each_shown(see)),
            Self::Late { reply, .. } => reply.each_shown(see),
            _ => {}
        }
    }
}

/// A leased or browsed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The consumer that received it; `None` if it was leased by its identity.
    pub link: Option<LinkId>,
    /// Which.
    pub message: MessageId,
    /// How many times it has been delivered, with this one.
    pub count: u32,
    /// How many deliveries before this one failed.
    pub failed: u32,
    /// Smaller is more urgent.
    pub priority: u32,
    /// When it was stored.
    pub created: Nanos,
    /// The moment from which no consumer may receive it.
    pub expires: Option<Nanos>,
    /// The failure that it survives.
    pub durability: Durability,
    /// The topic that it was published to, if the consumer subscribed to a pattern.
    pub topic: Option<QueueName>,
    /// Why it is among the dead letters, if it is.
    pub dead: Option<Box<DeadLetter>>,
    /// How the body is to be read.
    pub format: Format,
    /// Which of the body's bytes are for a protocol that does not know the format.
    pub payload: Payload,
    /// Its body.
    pub body: Body,
    /// Bytes of it as they count for its consumer's credit ([`crate::Command::Credit`]): where it
    /// had left memory maybe more than they are.
    pub charge: u64,
}

impl Delivery {
    /// Tells its moments by the machine's clock.
    pub fn tell_by(&mut self, clock: &WallClock) {
        self.created = clock.wall_time(self.created);
        self.expires = self.expires.map(|at| clock.wall_time(at));
        if let Some(dead) = &mut self.dead {
            dead.at = clock.wall_time(dead.at);
        }
    }

    /// The first delivery of a raw message that lives in memory.
    #[must_use]
    pub fn new(message: MessageId, body: Arc<[u8]>) -> Self {
        Self {
            link: None,
            message,
            count: 1,
            failed: 0,
            priority: 0,
            created: Nanos::ZERO,
            expires: None,
            durability: Durability::None,
            topic: None,
            dead: None,
            format: Format::RAW,
            payload: Payload::WHOLE,
            charge: body.len() as u64,
            body: Body::Here(body),
        }
    }

    /// See [`Shows`].
    pub fn shows(&mut self) -> Shows<'_> {
        Shows { body: &mut self.body }
    }

    /// The bytes for a protocol that does not know the format.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.body.get(self.payload_range()).unwrap_or_default()
    }

    /// Which bytes of the body that is.
    ///
    /// # Panics
    /// When the body is away: no session meets that.
    #[must_use]
    pub fn payload_range(&self) -> Range<usize> {
        self.payload.range(self.format, &self.body)
    }
}
