//! The named limits of Dunlin. A limit that a peer can reach has a tested refusal where it is
//! enforced; docs/reference/limits.md lists them.

use crate::Nanos;

/// Bytes of a queue's name. beanstalkd allows 200; AMQP and Redis users write longer ones.
pub const QUEUE_NAME_BYTES_MAX: usize = 255;

/// Bytes of one message's body unless configured otherwise (beanstalkd's `-z` default).
pub const MESSAGE_BYTES_DEFAULT: usize = 65_535;

/// The largest body that may be configured: one frame must fit into one segment.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Databases of Redis that may be configured.
pub const REDIS_DATABASES_MAX: usize = 128;

/// Queues that may exist at once, and topics.
pub const QUEUES_MAX: usize = 1_000_000;

/// Queues that one consumer may watch at once.
pub const CONSUMER_QUEUES_MAX: usize = 10_000;

/// Messages that one frame may hold or one command may change; a larger command is cut into
/// several frames or refused.
pub const FRAME_RECORDS_MAX: usize = 10_000;

/// The cost of a command's parsing, lookups, frame and reply, in steps of some 50 ns. Each message
/// that it moves and each queue that it looks at is one step more.
pub const COMMAND_STEPS: usize = 16;

/// Steps after which a turn of a server begins nothing more and a call that fires timers ends: some
/// 3 ms. A begun command is finished, so one command may exceed it.
pub const STEPS_PER_TURN_MAX: usize = 65_536;

/// Timers that fire in one call; the rest fire in the next, so that a hundred thousand leases that
/// end at once stall no client.
pub const TIMERS_PER_TURN_MAX: usize = 1_024;

/// Subscriptions that may exist at once, durable or not.
pub const SUBSCRIPTIONS_MAX: usize = 100_000;

/// Subscriptions of one topic: a message for all of them is one record.
pub const TOPIC_SUBSCRIPTIONS_MAX: usize = 10_000;

/// Subscriptions of patterns: a message for all of them is one record, beside those of its topic.
pub const PATTERN_SUBSCRIPTIONS_MAX: usize = 4_096;

/// The weight of all patterns of words together, and of all globs: steps that each message to any
/// topic takes at most to find those that match, some 10 ms.
pub const PATTERNS_WEIGHT_MAX: usize = 262_144;

/// Different selectors of the consumers of one queue: each message is held against each.
pub const QUEUE_SELECTORS_MAX: usize = 256;

/// Steps of all selectors of one queue's consumers, or of one topic's subscriptions, each counted
/// by its weight: each message is held against all, in some 10 ms.
pub const SELECTORS_WEIGHT_MAX: usize = 262_144;

/// Bytes of a text that selectors see; a longer one is there for them, and no more.
pub const SELECTED_TEXT_BYTES_MAX: usize = 4 * 1024;

/// Bytes of memory that a selector takes for each of its text: two, and ten if it is full of
/// LIKE. Measured.
pub const SELECTOR_MEMORY_FACTOR: usize = 10;

/// Message groups of one queue that are told apart; more names than that share them.
pub const MESSAGE_GROUPS_MAX: u16 = 1_024;

/// Temporary queues and topics that one session may have.
pub const SESSION_TEMPORARY_MAX: usize = 1_024;

/// The prefix of the names of temporary queues and topics; no other queue or topic may have such a
/// name.
pub const TEMPORARY_PREFIX: &str = "temporary/";

/// Transactions that one session may have open.
pub const SESSION_TRANSACTIONS_MAX: usize = 1_024;

/// Messages that one transaction may store or settle.
pub const TRANSACTION_RECORDS_MAX: usize = 200_000;

/// Bytes of the messages that one transaction may store, and of the records of its settlements.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The same of all transactions that are open at once.
pub const UNCOMMITTED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Messages that come of one transaction, if topics make several of one.
pub const TRANSACTION_COPIES_MAX: usize = 1_000_000;

/// Messages that one step gives to the consumers of one queue. It goes on in the next, so a
/// consumer that asks for a million stalls no other.
pub const DELIVERIES_PER_STEP_MAX: usize = 1_024;

/// Sends that wait for a place in a queue or for memory, in all.
pub const BLOCKED_SENDS_MAX: usize = 100_000;

/// Bytes of the bodies of all sends that wait for a place in a queue or for memory.
pub const BLOCKED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of settlements that the log takes in one command also when the device is full.
pub const SETTLED_BYTES_ALWAYS: usize = 512 * 1024;

/// Bytes that the counts in memory alone may add to a message's record. Five new counters take 5,
/// of which two take four bytes more (8); failures take 6, and the end of the time for which it is
/// hidden takes 8.
pub const UNRECORDED_BYTES_MAX: usize = 5 + 2 * 4 + 6 + 8;

/// Ready messages that one step looks at for a consumer that browses or selects.
pub const SCAN_MESSAGES_MAX: usize = 1_024;

/// Elements of a list that one command looks at or moves aside: some 10 ms.
pub const LIST_SCAN_MAX: usize = 250_000;

/// Bytes of the elements, values and names in one reply, and of the bodies that left memory and
/// that one command compares; fewer if there is little memory.
pub const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes for which an element of a reply counts beside its own.
pub const BESIDE_ELEMENT_BYTES: usize = 16;

/// Bytes of one value: those of the largest message.
pub const VALUE_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Bytes of a value behind an edit. Each edit copies the value, and the log has the whole result.
pub const EDITED_BYTES_MAX: usize = 64 * 1024;

/// Fields or members that one command sets or takes out: some 100 ms.
pub const COMMAND_ENTRIES_MAX: usize = 50_000;

/// Bytes of a field of a hash, or of a member of a set.
pub const FIELD_BYTES_MAX: usize = 24 * 1024;

/// Bytes of the name of a stream's group, or of a consumer.
pub const STREAM_NAME_BYTES_MAX: usize = 1_024;

/// Groups of one stream.
pub const STREAM_GROUPS_MAX: usize = 1_000;

/// Keys that one session may observe.
pub const SESSION_OBSERVED_MAX: usize = 1_024;

/// Pictures of collections, for clients that read them page by page.
pub const PICTURES_MAX: usize = 64;

/// How long a picture is kept after its last page.
pub const PICTURE_TIME_MAX: Nanos = Nanos::from_secs(60);

/// Commands of one batch.
pub const BATCH_COMMANDS_MAX: usize = 10_000;

/// Messages that one page shows.
pub const PAGE_MESSAGES_MAX: usize = 1_000;

/// Names that senders gave their messages, as many as may be configured to be remembered.
pub const DEDUP_MAX_IDS: usize = 1_000_000;

/// Bytes of the name that a sender gives a message.
pub const SEND_ID_BYTES_MAX: usize = 255;

/// Names of queues that may have rules of their own, given while the broker runs: all are in memory
/// and in every snapshot.
pub const OWN_POLICIES_MAX: usize = 10_000;

/// Names that are looked at to list all queues for a user who sees only some of them.
pub const LISTED_NAMES_MAX: usize = 100_000;

/// Names that a page of queues passes over at most, since the user may not see them.
pub const PAGE_LOOKS_MAX: usize = 4_096;
