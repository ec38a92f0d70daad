//! One link of a client: the messages that it sent or received, and the limit of its credit.

use model::Destination;

/// A link as the client knows it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) standing: Standing,
    pub(super) end: End,
    /// The client has sent its detach.
    pub(super) has_detached: bool,
}

/// How far a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was asked for.
    Attaching,
    /// The broker agrees.
    Open,
    /// The broker does not; its detach follows.
    Refused,
    /// The broker or the client wants it gone; messages that come by it go back.
    Detaching,
}

/// The role of the client's end.
#[derive(Debug)]
pub(super) enum End {
    /// Sends messages there, or where each says.
    Producer { to: Option<Destination>, sent: u32, limit: u32 },
    /// Begins and ends transactions.
    Coordinator { sent: u32, limit: u32 },
    /// Receives, up to a limit counted from the attach.
    Consumer { received: u32, limit: u32, drains: bool },
    /// Looks for a subscription.
    Lookup,
}

impl Link {
    pub(super) const fn new(name: String, end: End) -> Self {
        Self { name, standing: Standing::Attaching, end, has_detached: false }
    }

    /// True if nothing is awaited of it.
    pub(super) fn is_settled(&self) -> bool {
        let drains = matches!(self.end, End::Consumer { drains: true, .. });
        self.standing == Standing::Open && !drains
    }

    /// True if it may send one message more.
    pub(super) fn has_credit(&self) -> bool {
        let (End::Producer { sent, limit, .. } | End::Coordinator { sent, limit }) = self.end
        else {
            return false;
        };
        self.standing == Standing::Open && sent < limit
    }

    /// One message more is sent.
    pub(super) fn count(&mut self) {
        if let End::Producer { sent, .. } | End::Coordinator { sent, .. } = &mut self.end {
            *sent += 1;
        }
    }
}
