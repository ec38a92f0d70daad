//! The messages of a queue from one place to the next, looked at without touching them.
//!
//! A place is a [`PageEnd`]: the state, and the key that orders the messages of that state. So a
//! client that goes on from a place later meets no message twice and skips none that stayed,
//! whichever came and went meanwhile. Held messages are in no order of their queue: they are looked
//! for among all messages, by their numbers.

use alloc::vec::Vec;
use core::ops::Bound;

use model::{MessageId, MessageState, PageEnd, Refusal, Reply, limits};
use selector::Selector;

use crate::bodies::Bodies;
use crate::context::Context;
use crate::delivery::matching::Seen;
use crate::ids::QueueSlot;
use crate::store::message::Message;

/// Which messages are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageQuery<'s> {
    pub(crate) queue: QueueSlot,
    /// Only those in this state; `None`: in any.
    pub(crate) state: Option<MessageState>,
    /// Also those that a session holds.
    pub(crate) held: bool,
    pub(crate) selector: Option<&'s Selector>,
    /// Only those behind this place.
    pub(crate) after: Option<PageEnd>,
    /// The most to find.
    pub(crate) max: usize,
}

/// The findings of one step.
#[derive(Debug, Default)]
pub(crate) struct PageRange {
    /// Each with its place.
    pub(crate) found: Vec<(PageEnd, MessageId)>,
    /// The end of the step; `None`: there is nothing behind it.
    pub(crate) next: Option<PageEnd>,
    /// The body that is away and ended the step, if one did.
    pub(crate) unseen: Option<Unseen>,
}

/// A message that was to be looked into while its body was away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pub(crate) message: MessageId,
    /// Nothing was looked at before.
    pub(crate) is_first: bool,
}

impl PageRange {
    /// This one message, or nothing.
    pub(crate) fn of(found: Option<(PageEnd, MessageId)>) -> Self {
        Self { found: found.into_iter().collect(), ..Self::default() }
    }

    /// The answer once the first so many of these have been changed.
    pub(crate) fn reply(&self, count: usize) -> Reply {
        let last = count.checked_sub(1).and_then(|last| self.found.get(last));
        let next = match last {
            _ if count == self.found.len() => self.next,
            Some((place, _)) => Some(*place),
            // Not even one fits, which a log that is not stalled has room for.
            None => return Reply::Refused(Refusal::StoreFull),
        };
        let count = count as u64;
        next.map_or(Reply::Count(count), |next| Reply::CountUntil { count, next })
    }
}

impl Bodies {
    pub(crate) fn is_wanted(
        &self,
        selector: Option<&Selector>,
        message: &Message,
        context: &Context,
    ) -> bool {
        selector.is_none_or(|selector| {
            let body = self.sharing.here(message);
            let body = body.expect("invariant: who looks into a body awaits it");
            Seen::of(message, body, &context.formats).matches(selector)
        })
    }
}

pub(crate) fn behind<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

pub(crate) fn place(state: MessageState, place: u64, message: MessageId) -> PageEnd {
    PageEnd { state, priority: 0, place, message }
}

/// Messages passed by in one walk, where each that is held against a selector counts for several:
/// so many of these as one step of a consumer that selects.
pub(crate) const COST_MAX: usize = limits::SCAN_MESSAGES_MAX * COST_OF_SELECTOR;

pub(crate) const COST_OF_SELECTOR: usize = 16;

const _: () = assert!(limits::FRAME_RECORDS_MAX <= COST_MAX, "what fits a frame is found at once");
