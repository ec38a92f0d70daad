//! Names that senders give their messages. A message that comes again under the same name within
//! the window is not stored again, by any protocol. It is answered as the first time; over crashes
//! too.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Command, Destination, Durability, Nanos, NewMessage, Refusal, Reply};

use super::places::Sent;
use super::publishing::payload;
use super::{NOTHING, Oracle};
use crate::history::Changes;

/// The names that were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct SendIds {
    window: Nanos,
    seen: BTreeMap<Key, Seen>,
}

const MEMORY_FULL: Reply = Reply::Refused(Refusal::MemoryFull);

/// A sender's name for a message, at its destination.
type Key = (Destination, Arc<str>);

/// The outcome of the first message of a name.
#[derive(Clone, Debug)]
struct Seen {
    at: Nanos,
    /// The number of the first that was stored, and of the next after the last.
    ids: (u64, u64),
    /// Its payload.
    payload: Vec<u8>,
    /// The changes that its answer reflected.
    changes: Changes,
    /// A crash may have undone it, and nothing that was found tells.
    is_unsure: bool,
    /// It has survived one, if it was ever there, and so it survives all that follow.
    is_recovered: bool,
}

impl Seen {
    /// True if it is this one that was sent before.
    fn is_same(&self, message: &NewMessage) -> bool {
        self.payload == payload(message)
    }
}

impl Oracle {
    /// The same, where names are remembered for so long.
    #[must_use]
    pub fn remembering(mut self, window: Nanos) -> Self {
        self.send_ids.window = window;
        self
    }

    /// True if no answer so far tells if a message of that name was stored.
    #[must_use]
    pub fn is_unsure_of(&self, to: &Destination, send_id: &str) -> bool {
        let seen = self.send_ids.seen.get(&(to.clone(), send_id.into()));
        seen.is_some_and(|seen| seen.is_unsure)
    }

    /// The outcome of a message when it was sent before, as far as that is certain.
    fn sent_before(&self, to: &Destination, message: &NewMessage) -> Option<&Seen> {
        let key = (to.clone(), message.send_id.clone()?);
        let seen = self.send_ids.seen.get(&key).filter(|seen| !seen.is_unsure)?;
        (self.moment < seen.at + self.send_ids.window).then_some(seen)
    }

    pub(super) fn is_repeated(&self, to: &Destination, message: &NewMessage) -> bool {
        self.sent_before(to, message).is_some()
    }

    /// True if it was sent before and need not be stored.
    pub(super) fn repeats(&self, sent: &Sent) -> bool {
        let Sent::Command(Command::PutTo { to, message, transaction: None }) = sent else {
            return false;
        };
        self.is_repeated(to, message)
    }

    /// The changes that the answer reflects to a message that was sent before.
    pub(super) fn answered_before(
        &self,
        to: &Destination,
        message: &NewMessage,
    ) -> Option<Changes> {
        self.sent_before(to, message).map(|seen| seen.changes.clone())
    }

    /// Looks among these messages, stored as one, for a name of a message with another payload.
    /// Returns the changes that prove one for certain, and if one is possible.
    pub(super) fn conflict(&self, puts: &[(Destination, NewMessage)]) -> (Option<Changes>, bool) {
        let (mut certain, mut is_possible) = (None, false);
        let mut names: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        for (to, message) in puts {
            let Some(send_id) = message.send_id.clone() else { continue };
            let key = (to.clone(), send_id);
            if let Some(seen) = self.sent_before(to, message) {
                if !seen.is_same(message) {
                    certain.get_or_insert(seen.changes.clone());
                }
                continue;
            }
            is_possible |= self.send_ids.seen.get(&key).is_some_and(|it| !it.is_same(message));
            let first = names.entry(key).or_insert_with(|| payload(message));
            if *first != payload(message) {
                certain.get_or_insert(NOTHING);
            }
        }
        (certain, is_possible)
    }

    /// A message was sent again, and answered.
    pub(super) fn send_again(
        &self,
        to: &Destination,
        message: &NewMessage,
        reply: &Reply,
    ) -> Option<Changes> {
        let seen = self.sent_before(to, message)?;
        let Seen { ids: (first, next), changes, .. } = seen;
        match reply {
            Reply::Refused(Refusal::SendIdReused) => {
                assert!(!seen.is_same(message), "it says the same again: {message:?}");
            }
            _ if !seen.is_same(message) => {
                assert_eq!(*reply, MEMORY_FULL, "{message:?} says something else");
                return Some(NOTHING);
            }
            Reply::Stored { message } if first < next => {
                assert_eq!(message.0, *first, "it was stored before");
            }
            Reply::Done => assert_eq!(first, next, "it was stored before"),
            // It waited for memory as if it was to be stored, or its client gave up waiting for a
            // place.
            Reply::Refused(Refusal::MemoryFull | Refusal::QueueFull(_)) => return Some(NOTHING),
            _ => panic!("{reply:?} to {:?}, which was sent before", message.send_id),
        }
        Some(changes.clone())
    }

    /// Facts about a message that was just stored, known from here on.
    pub(super) fn remember(
        &mut self,
        to: &Destination,
        message: &NewMessage,
        first_id: u64,
        changes: Changes,
    ) {
        if let Some(send_id) = message.send_id.clone() {
            let ids = (first_id, self.next_id);
            let (at, payload) = (self.moment, payload(message));
            let (is_unsure, is_recovered) = (false, false);
            let seen = Seen { at, ids, payload, changes, is_unsure, is_recovered };
            self.send_ids.seen.insert((to.clone(), send_id), seen);
        }
    }

    /// The changes that its answer reflects, if it was stored with others.
    pub(super) fn know_changes(&mut self, to: &Destination, message: &NewMessage, all: Changes) {
        let key = message.send_id.clone().map(|send_id| (to.clone(), send_id));
        if let Some(seen) = key.and_then(|key| self.send_ids.seen.get_mut(&key)) {
            seen.changes = all;
        }
    }

    /// The outcome of an unsure name.
    pub(super) fn learn(&mut self, sent: &Sent, reply: &Reply) {
        let Sent::Command(Command::PutTo { to, message, transaction: None }) = sent else { return };
        let Some(send_id) = message.send_id.clone() else { return };
        let key = (to.clone(), send_id);
        // A crash that undid the first makes its number the next to be given.
        let is_given = |id| id < self.next_id;
        let Some(seen) = self.send_ids.seen.get_mut(&key).filter(|seen| seen.is_unsure) else {
            return;
        };
        let is_same = seen.is_same(message);
        match reply {
            Reply::Refused(Refusal::SendIdReused) => {
                assert!(!is_same, "it says the same again: {message:?}");
                seen.is_unsure = false;
            }
            Reply::Stored { message } if message.0 == seen.ids.0 && is_given(message.0) => {
                assert!(is_same, "{message} says something else");
                seen.is_unsure = false;
            }
            Reply::Waits { .. } | Reply::Refused(_) => {}
            _ => _ = self.send_ids.seen.remove(&key),
        }
    }

    /// The process fell: a name is kept with the messages stored under it. The first `cut` changes
    /// are there for certain. A name behind them is there only if its messages were deleted as
    /// well.
    pub(super) fn forget_names(&mut self, cut: usize, gone: &[Key]) {
        self.send_ids.seen.retain(|key, seen| {
            seen.is_unsure |= seen.changes.end > cut;
            (seen.changes, seen.is_recovered) = (NOTHING, true);
            !seen.is_unsure || gone.contains(key)
        });
    }

    /// Names of which all messages are deleted by now; those of messages in memory alone are gone.
    pub(super) fn names_without_messages(&mut self) -> Vec<Key> {
        let Self { send_ids, history, .. } = self;
        let is_kept = |id| history.last_change(id).and_then(|change| history.nature(change));
        let is_kept = |id: &u64| is_kept(*id).is_some_and(|it| it.level > Durability::None);
        send_ids
            .seen
            .retain(|_, seen| seen.is_recovered || (seen.ids.0..seen.ids.1).any(|id| is_kept(&id)));
        let all = send_ids.seen.iter();
        let is_gone = |seen: &Seen| {
            let mut kept = (seen.ids.0..seen.ids.1).filter(is_kept);
            seen.is_recovered || kept.all(|id| history.is_deleted(id))
        };
        all.filter(|(_, seen)| is_gone(seen)).map(|(key, _)| key.clone()).collect()
    }
}
