//! Messages that one record of the log stored with one body: the copies for several durable
//! subscriptions.
//!
//! The record is dead when the last of the copies is gone, not before. So the log always counts a
//! whole record as live. Compaction stores all live copies anew, with one body.

use model::limits;

use crate::bodies::{Group, Groups};
use crate::log::Placed;
use crate::store::message::Message;
use crate::{Effects, Freed};

impl Group {
    /// The bytes that are counted for the record.
    pub(crate) fn live_bytes(&self) -> u64 {
        u64::from(self.placed.bytes) + self.more_bytes
    }

    fn freed(&self) -> Freed {
        Freed { lsn: self.placed.lsn, bytes: self.live_bytes() }
    }
}

impl Groups {
    /// One more of a group lives.
    pub(crate) fn join(&mut self, number: u64, placed: Placed) {
        assert!(number > 0, "a message without group joins none");
        let first = Group { copies: 0, placed, more_bytes: 0 };
        let group = self.groups.entry(number).or_insert(first);
        group.copies += 1;
        if group.copies > 1 {
            group.more_bytes += limits::UNRECORDED_BYTES_MAX as u64;
        }
        // In recovery compaction may have moved some of them before others are met.
        group.placed = placed;
    }

    /// One of a group has more to say of itself by so many bytes.
    pub(crate) fn grow(&mut self, number: u64, bytes: u64) {
        let group = self.groups.get_mut(&number).expect("invariant: who lives is counted");
        group.more_bytes += bytes;
    }

    /// One of a group is gone; with the last its record is dead.
    pub(crate) fn part(&mut self, number: u64) -> Option<Freed> {
        let group = self.groups.get_mut(&number).expect("invariant: who lives is counted");
        assert!(group.copies > 0, "a group lives as long as its messages");
        group.copies -= 1;
        if group.copies > 0 {
            return None;
        }
        let freed = group.freed();
        self.groups.remove(&number);
        Some(freed)
    }

    /// The message's place in the log is dead, unless it shares it with others that live.
    pub(crate) fn release(&mut self, message: &Message, effects: &mut Effects) {
        if message.is_journalled() {
            let group = message.group();
            let alone = || Freed { lsn: message.location, bytes: message.live_bytes() };
            effects.freed.extend(if group == 0 { Some(alone()) } else { self.part(group) });
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

impl Message {
    /// The place of its record in the log.
    pub(crate) fn placed(&self) -> Placed {
        Placed { lsn: self.location, bytes: self.record_bytes }
    }
}

#[cfg(test)]
mod tests {
    use model::Lsn;

    use super::*;

    #[test]
    fn group_ends_with_last_copy() {
        let placed = Placed { lsn: Lsn(3), bytes: 100 };
        let mut groups = Groups::default();
        groups.join(7, placed);
        groups.join(7, placed);
        let more_bytes = limits::UNRECORDED_BYTES_MAX as u64;
        assert!(groups.iter().eq([(7, Group { copies: 2, placed, more_bytes })]));
        groups.grow(7, 30);
        assert_eq!(groups.part(7), None);
        let freed = Freed { lsn: Lsn(3), bytes: 100 + more_bytes + 30 };
        assert_eq!(groups.part(7), Some(freed), "all that was counted");
        assert!(groups.get(7).is_none());
    }
}
