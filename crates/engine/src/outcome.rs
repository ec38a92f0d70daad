//! The result of a command or a timer.

use model::{DependsOn, Refusal, Reply};

use crate::delivery::woken::Woken;
use crate::ids::QueueSlot;

/// The result of a command or a timer: the answer, and the queues that got a ready message or a
/// consumer that could take one. The caller hears first, then the waiting consumers are served.
#[derive(Debug)]
pub(crate) struct Outcome {
    answer: Option<(DependsOn, Reply)>,
    woken: Woken,
}

impl Outcome {
    pub(crate) const NOTHING: Self = Self { answer: None, woken: Woken::NONE };

    pub(crate) const fn reply(after: DependsOn, reply: Reply) -> Self {
        Self { answer: Some((after, reply)), woken: Woken::NONE }
    }

    /// A refusal that reflects nothing that could be undone: it never waits.
    pub(crate) const fn refused(refusal: Refusal) -> Self {
        Self::reply(DependsOn::NOTHING, Reply::Refused(refusal))
    }

    /// The deduplication id of a message is that of another message. This answer tells its sender.
    pub(crate) const fn reused(after: DependsOn) -> Self {
        Self::reply(after, Reply::Refused(Refusal::SendIdReused))
    }

    pub(crate) fn waking(mut self, queue: QueueSlot) -> Self {
        self.woken.add(queue);
        self
    }

    /// The answer, if it answers now.
    pub(crate) fn into_answer(self) -> Option<(DependsOn, Reply)> {
        self.answer
    }

    /// The answer, if it answers now, and the queues to serve after it.
    pub(crate) fn into_parts(self) -> (Option<(DependsOn, Reply)>, Woken) {
        (self.answer, self.woken)
    }

    /// It wakes the queues that another wakes.
    pub(crate) fn waking_as(self, other: &Self) -> Self {
        self.waking_all(other.woken.iter())
    }

    /// The answer, which is left to the caller.
    pub(crate) fn take_answer(&mut self) -> Option<(DependsOn, Reply)> {
        self.answer.take()
    }

    /// It answers so.
    pub(crate) fn answering(self, after: DependsOn, reply: Reply) -> Self {
        Self { answer: Some((after, reply)), ..self }
    }

    pub(crate) fn waking_all(mut self, queues: impl IntoIterator<Item = QueueSlot>) -> Self {
        self.woken.extend(queues);
        self
    }

    /// Nothing was woken before.
    pub(crate) fn waking_just(self, woken: Woken) -> Self {
        assert_eq!(self.woken.count(), 0, "what is woken is told once");
        Self { woken, ..self }
    }
}
