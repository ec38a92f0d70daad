//! Numbers by which the parts name things of each other.

use model::LinkId;

/// The slot of a queue. Used again after the queue went, when nothing points to it: a queue
/// lives as long as a message, a producer or a consumer does, or as its role or policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueSlot(pub(crate) u32);

/// The slot of a session. Used again after the session closed, when nothing points to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionSlot(pub(crate) u32);

/// A consumer of all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConsumerKey {
    pub(crate) session: SessionSlot,
    pub(crate) link: LinkId,
}

/// The consumer of every session that commands on lists wait as.
pub(crate) const LIST_LINK: LinkId = LinkId(u32::MAX);
