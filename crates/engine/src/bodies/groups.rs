//! Messages that one record of the log stored with one body: the copies for several durable
//! subscriptions.
//!
//! The record is dead when the last of the copies is gone, not before. So the log always counts a
//! whole record as live. Compaction stores all live copies anew, with one body.

use alloc::collections::BTreeMap;

use model::{Lsn, limits};

use crate::bodies::{Bodies, Group, Groups};
use crate::log::{Placed, unrecorded_bytes_max};
use crate::store::MessageStore;
use crate::store::message::Message;
use crate::{Effects, Freed};

impl Group {
    /// The bytes that are counted for the record.
    fn live_bytes(&self) -> u64 {
        u64::from(self.placed.bytes) + self.more_bytes
    }

    fn freed(&self) -> Freed {
        Freed { lsn: self.placed.lsn, bytes: self.live_bytes() }
    }
}

impl Groups {
    /// One more of a group lives.
    fn join(&mut self, number: u64, placed: Placed) {
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
    fn grow(&mut self, number: u64, bytes: u64) {
        let group = self.groups.get_mut(&number).expect("invariant: who lives is counted");
        group.more_bytes += bytes;
    }

    /// One of a group is gone; with the last its record is dead.
    fn part(&mut self, number: u64) -> Option<Freed> {
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
    fn release(&mut self, message: &Message, effects: &mut Effects) {
        if message.is_journalled() {
            let group = message.group();
            let alone = || Freed { lsn: message.location(), bytes: message.live_bytes() };
            effects.freed.extend(if group == 0 { Some(alone()) } else { self.part(group) });
        }
    }

    fn get(&self, number: u64) -> Option<&Group> {
        self.groups.get(&number)
    }

    /// All by their numbers.
    fn iter(&self) -> impl Iterator<Item = (u64, Group)> {
        self.groups.iter().map(|(number, group)| (*number, *group))
    }
}

impl Bodies {
    /// One more message of a group lives.
    pub(crate) fn join_group(&mut self, number: u64, placed: Placed) {
        self.groups.join(number, placed);
    }

    /// A message is in no group any more, if it was; the log is not told.
    pub(crate) fn part_from_group(&mut self, message: &Message) {
        if message.group() != 0 {
            self.groups.part(message.group());
        }
    }

    /// The message's place in the log is dead, unless it shares it with others that live.
    pub(crate) fn release_record(&mut self, message: &Message, effects: &mut Effects) {
        self.groups.release(message, effects);
    }

    /// A message of a group has more to say of itself by so many bytes.
    pub(crate) fn grow_group(&mut self, number: u64, bytes: u64) {
        self.groups.grow(number, bytes);
    }

    /// The bytes that are counted for the record that has stored a message.
    pub(crate) fn live_bytes_of(&self, message: &Message) -> u64 {
        let group = self.groups.get(message.group());
        group.map_or_else(|| message.live_bytes(), Group::live_bytes)
    }

    /// All messages of one group are in one record.
    pub(crate) fn groups_are_whole(&self, store: &MessageStore) -> bool {
        // Mostly there are none, and ten million messages need not be looked at.
        let none = self.groups.groups.is_empty();
        none || store.messages.iter_from(0).all(|(_, message)| {
            let group = self.groups.get(message.group());
            group.is_none_or(|group| group.placed == message.placed())
                && store
                    .messages
                    .get(message.group())
                    .is_none_or(|first| first.group() == message.group())
        })
    }

    /// The place of each group in the log, and the bytes that are counted for it.
    pub(crate) fn live_groups(&self) -> impl Iterator<Item = (Lsn, u64)> {
        self.groups.groups.values().map(|group| (group.placed.lsn, group.live_bytes()))
    }

    /// Checks that each group has so many messages as say so.
    ///
    /// # Panics
    /// When it has not.
    pub(crate) fn check_groups(&self, store: &MessageStore) {
        let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
        let messages = store.messages.iter_from(0).map(|(_, message)| &**message);
        for message in messages.filter(|message| message.group() != 0) {
            assert!(message.is_journalled(), "only what is in the log is in a group");
            let placed = message.placed();
            let first = Group { copies: 0, placed, more_bytes: 0 };
            let group = groups.entry(message.group()).or_insert(first);
            assert_eq!(group.placed, placed, "a group is in one record");
            group.copies += 1;
            group.more_bytes += message.live_bytes() - u64::from(placed.bytes);
        }
        assert_eq!(groups.len(), self.groups.iter().count(), "groups are there for messages");
        for (number, group) in self.groups.iter() {
            let found = groups.get(&number).expect("a group is there for its messages");
            assert_eq!(
                (found.copies, found.placed),
                (group.copies, group.placed),
                "groups count their messages"
            );
            let unrecorded = unrecorded_bytes_max(found.copies);
            assert!(found.more_bytes + unrecorded <= group.more_bytes, "all growth is counted");
        }
    }
}

impl Message {
    /// The place of its record in the log.
    pub(crate) fn placed(&self) -> Placed {
        Placed { lsn: self.location(), bytes: self.record_bytes() }
    }
}

#[cfg(test)]
mod tests {
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
