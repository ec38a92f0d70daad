//! The reason why the log keeps each of its files: the messages that need it.

use std::collections::BTreeMap;

use engine::{Engine, EngineOptions, Logged};
use journal::{Disk, OpenError, SegmentUse};
use model::{Lsn, MessageId, Nanos, QueueName};

use crate::recovery::Replay;

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The log's account of the file.
    pub segment: SegmentUse,
    /// The queues with messages that need it: those with the oldest ones, at most
    /// [`QUEUES_EXPLAINED_MAX`].
    pub queues: Vec<QueueShare>,
    /// How many queues there are of which messages need it.
    pub queues_count: usize,
}

/// Messages of one queue, or of all subscriptions of one topic, that need a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueShare {
    /// The queue, or the topic.
    pub queue: QueueName,
    /// True if it is a topic.
    pub of_topic: bool,
    /// How many.
    pub messages: u64,
    /// The oldest.
    pub oldest: MessageId,
    /// When that was stored.
    pub created: Nanos,
}

/// Looks into a log that no process uses, as a recovering process would find it; changes nothing.
/// Reports bytes that were read. The live messages of the log are in memory meanwhile, without
/// bodies.
///
/// # Errors
/// [`OpenError`]: its bytes are not as they were written.
pub fn explain<D: Disk>(
    disk: &D,
    options: EngineOptions,
    read: &mut dyn FnMut(usize),
) -> Result<Vec<Explained>, OpenError> {
    let options = EngineOptions { log_bodies_max: 0, ..options };
    let mut replay = Replay::new(Engine::new(options), read);
    let mut explaining = Explaining::new(journal::explain(disk, &mut replay)?, Lsn(u64::MAX));
    while explaining.go_on(replay.engine()) {}
    Ok(explaining.end())
}

/// The reason why the log keeps each file, found in portions while the broker goes on.
///
/// It describes the files as they were when this began. It omits messages that were settled before
/// the look at them, and messages stored or moved since the begin.
#[derive(Debug)]
pub struct Explaining {
    segments: Vec<SegmentUse>,
    /// Files by their first frames.
    by_first: BTreeMap<Lsn, usize>,
    /// The shares of each file.
    shares: Vec<BTreeMap<(bool, QueueName), QueueShare>>,
    /// The last frame when this began.
    last: Lsn,
    /// The message to go on from.
    next: Option<MessageId>,
}

impl Explaining {
    pub(crate) fn new(segments: Vec<SegmentUse>, last: Lsn) -> Self {
        let first = |(index, segment): (usize, &SegmentUse)| Some((segment.first?, index));
        let by_first = segments.iter().enumerate().filter_map(first).collect();
        let shares = vec![BTreeMap::new(); segments.len()];
        Self { segments, by_first, shares, last, next: Some(MessageId(0)) }
    }

    /// Looks at some more messages; false when it has seen all.
    pub(crate) fn go_on(&mut self, engine: &Engine) -> bool {
        let Some(next) = self.next else { return false };
        self.next = engine.logged(next, MESSAGES_AT_ONCE, |logged| {
            if logged.lsn > self.last {
                return;
            }
            let holding = self.by_first.range(..=logged.lsn).next_back();
            if let Some(shares) = holding.and_then(|(_, index)| self.shares.get_mut(*index)) {
                add(shares, &logged);
            }
        });
        self.next.is_some()
    }

    /// The findings, file by file.
    #[must_use]
    pub fn end(self) -> Vec<Explained> {
        let explained = self.segments.into_iter().zip(self.shares).map(|(segment, shares)| {
            let mut queues: Vec<QueueShare> = shares.into_values().collect();
            let queues_count = queues.len();
            queues.sort_unstable_by_key(|share| share.oldest);
            queues.truncate(QUEUES_EXPLAINED_MAX);
            Explained { segment, queues, queues_count }
        });
        explained.collect()
    }
}

fn add(shares: &mut BTreeMap<(bool, QueueName), QueueShare>, logged: &Logged<'_>) {
    let Logged { message, created, queue, of_topic, .. } = *logged;
    let share = shares.entry((of_topic, queue.clone())).or_insert_with(|| QueueShare {
        queue: queue.clone(),
        of_topic,
        messages: 0,
        oldest: message,
        created,
    });
    share.messages += 1;
    if message < share.oldest {
        (share.oldest, share.created) = (message, created);
    }
}

/// Queues that are told of one file.
pub const QUEUES_EXPLAINED_MAX: usize = 10;

/// Messages that are looked at before others have their turn.
const MESSAGES_AT_ONCE: usize = 4096;
