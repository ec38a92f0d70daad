//! The words that all of Dunlin shares: identities, positions, time, durability, the message, and
//! the values between a protocol session and the engine ([`Command`] in, [`Output`] out).
//!
//! It contains no behaviour beyond its own invariants: no clock, no file, no socket, no thread.
//! Every crate of Dunlin may depend on it, and it depends on none.
#![no_std]

extern crate alloc;

mod administration;
mod body;
mod capacity;
mod chain_room;
mod collection;
mod command;
mod database;
mod draining;
mod durability;
mod edit;
mod envelope;
mod fingerprint;
pub mod glob;
mod ids;
mod key;
pub mod limits;
mod list;
mod live;
mod login;
mod message;
mod mixing;
mod one_or_many;
mod output;
mod policy;
mod quotas;
mod redelivery;
mod refusal;
mod rfc3339;
mod rights;
mod rules;
mod script;
mod secrets;
mod settlement;
mod statistics;
mod stream;
mod subscription;
mod table;
mod time;
mod wall_clock;
pub mod words;

pub use administration::{
    AdminCommand, BrowsedMessage, Holder, Page, PageEnd, SubscriptionStatistics,
};
pub use body::{Body, BodyPlace, PagedOut, Payload, Shows};
pub use capacity::Capacity;
pub use chain_room::ChainRoom;
pub use collection::{
    CollectionCommand, CollectionKind, Combination, CombinationTarget, Direction, Entries,
    FieldAndValue, MemberBound, Presence, Score, ScoreRule, ScoreSum, ScoredPart, ScoredPopped,
    ScoredRange, SetOperation, Texts,
};
pub use command::{Command, ConsumerMode, Peek};
pub use database::{Database, NameSpan};
pub use draining::Draining;
pub use durability::{DependsOn, Durability, Durable, Persistence, StorePolicy};
pub use edit::{
    BitAction, BitField, BitOperation, BitOverflow, DECIMAL_BYTES_MAX, ValueEdit, parse_integer,
};
pub use envelope::{
    Content, Envelope, Envelopes, JMS_PRIORITY_DEFAULT, JMS_PRIORITY_MAX, PRIORITY_STEP,
    TRACE_CONTEXT, jms_of_priority, priority_of_jms,
};
pub use fingerprint::fingerprint;
pub use ids::{
    Destination, LinkId, Lsn, MessageId, NameError, QueueName, SessionId, TransactionId,
};
pub use key::{
    DatabaseStatistics, Deadline, DeadlineRule, KeyCommand, KeyKind, Lifetime, SetRule,
    ValueDeadline, Values,
};
pub use list::{Element, End, ListCommand};
pub use live::LiveRecords;
pub use login::{Introduction, LoginAnswer, LoginOffer, LoginStep, ScramHash, Secret};
pub use message::{
    Death, FingerprintReader, Format, Formats, Found, GroupReader, IndexReader, MessageGroup,
    NewMessage, Outline, OutlineReader, PRIORITY_DEFAULT, PayloadReader, PropertyReader,
    PropertyValue, Subject,
};
pub use mixing::{MIXED_STEP, mixed};
pub use one_or_many::OneOrMany;
pub use output::{Delivery, Output, Reply};
pub use policy::{DeadLetters, QueueBounds, QueuePolicy, ReleaseOrder, WhenFull};
pub use quotas::{Quota, QuotaError, QuotaReached, Quotas};
pub use redelivery::{Redelivery, Thousandths};
pub use refusal::{Bound, NotPermitted, QueueFull, Refusal, StreamRefusal};
pub use rfc3339::Rfc3339;
pub use rights::{Principal, Right, RightSet, Rights, Rule, RuleError, UserRights, rights_limits};
pub use rules::{OwnPolicies, OwnPolicy, PolicyChange, QueueRule, RuleKey, StatedPolicy};
pub use script::{Script, ScriptCommands, ScriptProgram, ScriptValue};
pub use secrets::Secrets;
pub use settlement::{DeadLetter, DeadReason, Settlement};
pub use statistics::{
    BrokerStatistics, DeadLetterStatistics, MessageState, MessageStatistics, QueueStatistics,
};
pub use stream::{
    ClaimTime, ClaimedAs, ConsumerDescription, GroupDescription, GroupName, GroupStart,
    NewStreamId, PendingCounts, PendingEntry, ReadPlace, StreamClaim, StreamCommand,
    StreamDescription, StreamEntries, StreamId, StreamKept, StreamRange, StreamRead, StreamReader,
    StreamReply, StreamTrim,
};
pub use subscription::{
    ClientName, Expiry, Matching, Subscription, SubscriptionName, SubscriptionOwner,
};
pub use table::{Expected, TableAction, TableStep};
pub use time::Nanos;
pub use wall_clock::{ClockLead, WallClock};
