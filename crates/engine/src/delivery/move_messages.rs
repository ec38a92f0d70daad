//! Messages that go from one queue to another, as they are, without being stored again.

use model::{MessageId, PageEnd, QueueName, limits};
use records::CHANGED_BYTES_MAX;

use crate::bodies::Bodies;
use crate::delivery::paging::{PageQuery, PageRange};
use crate::directory::Directory;
use crate::directory::targets::is_reserved;
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::store::MessageStore;

/// A request of an operator to move messages.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// The target; `None`: each dead letter to the queue or the subscription it is from.
    pub(crate) to: Option<QueueName>,
    /// Only this one.
    pub(crate) message: Option<MessageId>,
    /// Only those that came to be there before this message's number.
    pub(crate) before: MessageId,
    /// The most to move.
    pub(crate) max: u64,
}

impl MessageStore {
    /// True if there is room to say that a message is in another queue: it is to be said again with
    /// the message when that is stored anew.
    pub(crate) fn may_relocate(&self, id: MessageId, log: &FrameWriter) -> bool {
        !self.message(id).is_journalled() || log.room() >= RELOCATION_BYTES_MAX
    }
}

impl Directory {
    /// The origin of a dead letter; `None`: it is no dead letter, or its subscription is gone.
    pub(crate) fn origin_of(&self, id: MessageId, store: &MessageStore) -> Option<MoveTarget> {
        let dead = store.message(id).dead()?;
        let Some(number) = dead.view().subscription else {
            return (!is_reserved(dead.from())).then(|| MoveTarget::Queue(dead.from().clone()));
        };
        Some(MoveTarget::Subscription(self.subscriptions().get(number)?.queue()))
    }
}

impl Bodies {
    /// This one message, if it is among those that are sought.
    pub(crate) fn page_range_of(
        &self,
        sought: &PageQuery<'_>,
        id: MessageId,
        store: &MessageStore,
    ) -> PageRange {
        let found = store.find(id).filter(|message| {
            let is_there = message.queue() == sought.queue && message.state().holder().is_none();
            is_there && self.is_wanted(sought.selector, message)
        });
        let place = found.map(|message| PageEnd {
            state: message.state().shown().0,
            priority: message.priority(),
            place: message.order(id) as u64,
            message: id,
        });
        PageRange::of(place.map(|place| (place, id)))
    }
}

/// The target of a moved message.
pub(crate) enum MoveTarget {
    Queue(QueueName),
    Subscription(QueueSlot),
}

/// A Changed record, and as much again for the record of the message, which grows by that.
pub(crate) const RELOCATION_BYTES_MAX: u64 = 2 * CHANGED_BYTES_MAX as u64;

const _: () = assert!(RELOCATION_BYTES_MAX < limits::SETTLED_BYTES_ALWAYS as u64);
