//! How much one reply shows: the bytes read out of memory, or of the log, for one answer.

use model::{
    Command, ConsumerDescription, Element, Entries, GroupDescription, PendingEntry, Refusal, Reply,
    StreamEntries, StreamReply, limits,
};

use crate::demand::Demand;
use crate::keyspace::setting::shown_bytes;

/// The bytes that the replies to one command, or to all of a batch, have shown.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    bytes: usize,
    bytes_max: usize,
}

impl ReplyBudget {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max }
    }

    /// The next reply is another command's.
    pub(crate) const fn start_anew(&mut self) {
        self.bytes = 0;
    }

    /// The bytes that the replies of a batch show count together.
    pub(crate) fn add(&mut self, reply: &Reply) {
        self.bytes = self.bytes.saturating_add(bytes_of(reply));
    }

    /// How much a reply may show yet.
    pub(crate) const fn left(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// How much one alone may show.
    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) const fn refusal(&self) -> Refusal {
        Refusal::TooManyBytes { max: self.bytes_max }
    }

    /// True if a command of a batch, which shows something, comes too late for that.
    pub(crate) fn is_too_much(&self, command: &Command) -> bool {
        self.left() == 0 && Demand::of(command).shows
    }
}

fn bytes_of(reply: &Reply) -> usize {
    match reply {
        Reply::Elements(elements) => elements.iter().map(shown_bytes_of).sum(),
        Reply::Popped { elements, .. } => elements.iter().map(shown_bytes_of).sum(),
        Reply::Value(value) | Reply::Replaced { old: value, .. } => {
            value.as_ref().map_or(0, |value| value.len())
        }
        Reply::Names { names, .. } => {
            names.iter().map(|name| name.as_str().len() + limits::BESIDE_ELEMENT_BYTES).sum()
        }
        Reply::Values(values) => shown_bytes(&values.found),
        Reply::Entries(entries) => bytes_of_entries(entries),
        Reply::ScoredPopped(popped) => bytes_of_entries(&popped.entries),
        Reply::Stream(reply) => bytes_of_stream(reply),
        Reply::Scores(scores) => scores.len() * limits::BESIDE_ELEMENT_BYTES,
        Reply::Numbers(numbers) => numbers.len() * limits::BESIDE_ELEMENT_BYTES,
        Reply::Places(places) => places.len() * limits::BESIDE_ELEMENT_BYTES,
        _ => 0,
    }
}

fn bytes_of_stream(reply: &StreamReply) -> usize {
    let entries = |entries: &StreamEntries| {
        let elements = 2 * entries.len() + entries.text_count();
        entries.bytes() + elements * limits::BESIDE_ELEMENT_BYTES
    };
    let pending = |pending: &[PendingEntry]| {
        pending.iter().map(|entry| entry.consumer.len() + DESCRIPTION_BYTES).sum::<usize>()
    };
    let consumers = |all: &[ConsumerDescription]| {
        let bytes = |it: &ConsumerDescription| it.name.len() + pending(&it.pending);
        all.iter().map(|it| bytes(it) + DESCRIPTION_BYTES).sum::<usize>()
    };
    let groups = |all: &[GroupDescription]| {
        let bytes = |it: &GroupDescription| it.name.len() + pending(&it.pending);
        all.iter().map(|it| bytes(it) + consumers(&it.consumers) + DESCRIPTION_BYTES).sum::<usize>()
    };
    match reply {
        StreamReply::Id(_) => 0,
        StreamReply::Entries(its) | StreamReply::Claimed { entries: its, .. } => entries(its),
        StreamReply::Read(all) => all.iter().map(|(_, its)| entries(its)).sum(),
        StreamReply::PendingCounts(counts) => {
            counts.consumers.iter().map(|(name, _)| name.len() + DESCRIPTION_BYTES).sum()
        }
        StreamReply::Pending(all) => pending(all),
        StreamReply::Stream(stream) => {
            entries(&stream.entries) + groups(stream.groups.as_deref().unwrap_or_default())
        }
        StreamReply::Groups(all) => groups(all),
        StreamReply::Consumers(all) => consumers(all),
    }
}

/// Bytes for which a thing that is described counts beside its name.
const DESCRIPTION_BYTES: usize = 8 * limits::BESIDE_ELEMENT_BYTES;

fn bytes_of_entries(entries: &Entries) -> usize {
    entries.bytes() + entries.len() * limits::BESIDE_ELEMENT_BYTES
}

/// Bytes of the payload, or as much as it may be, and of the fields beside it.
pub(crate) fn shown_bytes_of(element: &Element) -> usize {
    let bytes = element
        .body
        .paged_out()
        .map_or_else(|| element.payload().len(), |paged_out| paged_out.bytes as usize);
    limits::BESIDE_ELEMENT_BYTES + bytes
}
