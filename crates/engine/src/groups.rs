//! Messages that one record of the log stored with one body: the copies for several durable
//! subscriptions.
//!
//! Their place in the log is dead when the last of them is gone, not before: so what the log
//! counts as live is always a whole record. Compaction stores anew all that live, with one body.

use alloc::collections::BTreeMap;

use crate::log::Placed;
use crate::message::Message;
use crate::{Effects, Freed};

/// The groups that live, by the number of the first message that their record stored.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<u64, Group>,
}

/// What all messages of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// How many of them live.
    pub(crate) copies: u32,
    /// Their record.
    pub(crate) placed: Placed,
}

impl Groups {
    /// One more of a group lives.
    pub(crate) fn join(&mut self, number: u64, placed: Placed) {
        assert!(number > 0, "a message without group joins none");
        let group = self.groups.entry(number).or_insert(Group { copies: 0, placed });
        group.copies += 1;
        // In recovery compaction may have moved some of them before others are met.
        group.placed = placed;
    }

    /// One of a group is gone; true for the last.
    pub(crate) fn part(&mut self, number: u64) -> bool {
        let group = self.groups.get_mut(&number).expect("invariant: who lives is counted");
        assert!(group.copies > 0, "a group lives as long as its messages");
        group.copies -= 1;
        let is_last = group.copies == 0;
        if is_last {
            self.groups.remove(&number);
        }
        is_last
    }

    /// The message's place in the log is dead, unless it shares it with others that live.
    pub(crate) fn release(&mut self, message: &Message, effects: &mut Effects) {
        let group = message.group();
        if message.is_journalled() && (group == 0 || self.part(group)) {
            effects.freed.push(message.placed().freed());
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Group> {
        self.groups.get(&number)
    }

    /// All by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Group)> {
        self.groups.iter().map(|(number, group)| (*number, *group))
    }
}

impl Placed {
    /// It is dead.
    pub(crate) fn freed(self) -> Freed {
        Freed { lsn: self.lsn, bytes: self.bytes.into() }
    }
}

impl Message {
    /// Where its record is.
    pub(crate) fn placed(&self) -> Placed {
        Placed { lsn: self.location, bytes: self.record_bytes }
    }

    /// Its record is there now, and has stored it as one of this group.
    pub(crate) fn set_placed(&mut self, group: u64, placed: Placed) {
        (self.location, self.record_bytes) = (placed.lsn, placed.bytes);
        if group != self.group() {
            self.history_mut().group = group;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Lsn;

    use super::*;

    #[test]
    fn a_group_ends_with_its_last_copy() {
        let placed = Placed { lsn: Lsn(3), bytes: 100 };
        let mut groups = Groups::default();
        groups.join(7, placed);
        groups.join(7, placed);
        assert!(groups.iter().eq([(7, Group { copies: 2, placed })]));
        assert!(!groups.part(7));
        assert!(groups.part(7));
        assert!(groups.get(7).is_none());
    }
}
