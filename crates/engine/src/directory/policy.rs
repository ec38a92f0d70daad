//! The choices of an operator: the store's policy, and the rules of queues.

use alloc::collections::BTreeMap;

use model::{Formats, Nanos, QueueName, QueuePolicy, StorePolicy, limits};

/// The options that an engine is made with; fixed for its life.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The meaning of "persistent" here.
    pub policy: StorePolicy,
    /// The rules of queues.
    pub queue_policies: QueuePolicies,
    /// How to look into bodies.
    pub formats: Formats,
    /// The queue of dead letters. Created on demand, even beyond [`model::limits::QUEUES_MAX`].
    pub dead_letter_queue: QueueName,
    /// How much the queue of dead letters may hold of them, where its own rules do not say.
    pub dead_letters_max: DeadLettersMax,
    /// Bytes of the largest frame that the journal takes: a command that needs a larger one is
    /// refused.
    pub frame_bytes_max: usize,
    /// How long the names that senders give their messages are remembered; zero: not at all.
    pub dedup_window: Nanos,
    /// How many of them; the oldest are forgotten first.
    pub dedup_max_ids: usize,
    /// How long a send waits for a place in a queue while no send that waits there goes on.
    pub block_timeout: Nanos,
    /// Bytes that one reply may show: [`model::limits::REPLY_BYTES_MAX`], or fewer.
    pub reply_bytes_max: usize,
    /// Bytes of memory that messages may take. Beyond it, bodies that the log has leave memory, and
    /// commands that would still not fit are refused.
    pub memory_limit: u64,
    /// Bytes of these that bodies may take which can leave, however much else is free.
    pub log_bodies_max: u64,
    /// True if bodies that no log has can leave as well: see [`crate::Engine::poll_spill`].
    pub spills: bool,
}

impl EngineOptions {
    /// No queue has rules of its own, and bodies are raw.
    #[must_use]
    pub fn new(policy: StorePolicy) -> Self {
        Self {
            policy,
            queue_policies: QueuePolicies::default(),
            formats: Formats::RAW,
            dead_letter_queue: QueueName::new(DEAD_LETTER_QUEUE)
                .expect("invariant: this is a name"),
            dead_letters_max: DeadLettersMax::default(),
            frame_bytes_max: FRAME_BYTES_MAX,
            dedup_window: DEDUP_WINDOW,
            dedup_max_ids: DEDUP_MAX_IDS,
            block_timeout: BLOCK_TIMEOUT,
            reply_bytes_max: limits::REPLY_BYTES_MAX,
            memory_limit: u64::MAX,
            log_bodies_max: u64::MAX,
            spills: false,
        }
    }
}

/// How many dead letters there may be. Beyond that the oldest are deleted, so that they block no
/// sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettersMax {
    /// How many.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Default for DeadLettersMax {
    fn default() -> Self {
        Self { messages: u64::MAX, bytes: u64::MAX }
    }
}

/// The rules of every queue: some by name, one for all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuePolicies {
    /// For queues that are not named; one that is kept is so from its first use on.
    pub default: QueuePolicy,
    /// For these queues, whole: nothing is inherited from `default`. Those that are kept exist
    /// from the start.
    pub named: BTreeMap<QueueName, QueuePolicy>,
}

impl QueuePolicies {
    /// The rules of this queue.
    #[must_use]
    pub fn of(&self, queue: &QueueName) -> QueuePolicy {
        self.named.get(queue).copied().unwrap_or(self.default)
    }

    /// True if any queue has bounds.
    pub(crate) fn are_bounded(&self) -> bool {
        let mut all = self.named.values().chain([&self.default]);
        all.any(|policy| policy.bounds.is_bounded())
    }

    /// Keeps this queue, whichever other rules it has.
    pub fn keep(&mut self, queue: QueueName) {
        self.named.entry(queue).or_insert(self.default).kept = true;
    }

    /// The queues that exist from the start.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (&QueueName, QueuePolicy)> {
        let named = self.named.iter().map(|(name, policy)| (name, *policy));
        named.filter(|(_, policy)| policy.kept)
    }
}

/// Enough for the largest body beside the envelopes of as many copies as a topic may have
/// subscriptions.
const FRAME_BYTES_MAX: usize = 2 * limits::MESSAGE_BYTES_MAX;

/// Longer than any client goes on trying to send one message again.
const DEDUP_WINDOW: Nanos = Nanos::from_secs(5 * 60);

/// As many as are sent in the window at 333 messages/s; some 40 MB where a name has 36 bytes.
const DEDUP_MAX_IDS: usize = 100_000;

/// Shorter than most clients wait for an answer, longer than most consumers stand still.
const BLOCK_TIMEOUT: Nanos = Nanos::from_secs(30);

/// As in Artemis.
const DEAD_LETTER_QUEUE: &str = "DLQ";
