//! Sets of members.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::collections::Entries;
use super::{Content, Keyspace, text, too_large};
use crate::redis_client::Value;

type Members = BTreeSet<Rc<[u8]>>;

impl Keyspace {
    pub(super) fn add_members(&mut self, key: &[u8], more: &[&[u8]]) -> Value {
        self.change(key, |members: &mut Members| {
            Value::count(more.iter().filter(|member| members.insert((**member).into())).count())
        })
    }

    pub(super) fn remove_members(&mut self, key: &[u8], gone: &[&[u8]]) -> Value {
        self.change(key, |members: &mut Members| {
            Value::count(gone.iter().filter(|member| members.remove(**member)).count())
        })
    }

    pub(super) fn has_member(&self, key: &[u8], member: &[u8]) -> Value {
        self.look(key, |members| Value::Integer(i64::from(members.contains(member))))
    }

    pub(super) fn members_count(&self, key: &[u8]) -> Value {
        self.look(key, |members| Value::count(members.len()))
    }

    pub(super) fn members(&self, key: &[u8]) -> Value {
        self.look(key, |members| {
            let bytes = members.iter().map(|member| member.len()).sum();
            if !self.answer.has_room_for_entries(members.len(), bytes) {
                return too_large();
            }
            Value::Array(members.into_iter().map(Value::Bulk).collect())
        })
    }

    /// Which members are picked is up to chance: it must be all of them.
    ///
    /// # Panics
    /// When it is not.
    pub(super) fn pick(&mut self, key: &[u8], max: i64, take: bool) -> Value {
        let value = self.members(key);
        if let Value::Array(all) = &value {
            assert!(all.len() as u64 <= max.unsigned_abs(), "all are picked");
            if take {
                self.keys.remove(text(key));
            }
        }
        value
    }

    pub(super) fn move_member(&mut self, from: &[u8], to: &[u8], member: &[u8]) -> Value {
        let has = |members: Members| members.contains(member);
        let is_there = match self.entries(from).map(has) {
            Err(error) => return error,
            Ok(_) if !self.keys.contains_key(text(from)) => return Value::Integer(0),
            Ok(is_there) => is_there,
        };
        if let Err(error) = self.entries::<Members>(to) {
            return error;
        }
        if is_there && from != to {
            self.remove_members(from, &[member]);
            self.add_members(to, &[member]);
        }
        Value::Integer(i64::from(is_there))
    }

    fn look(&self, key: &[u8], look: impl FnOnce(Members) -> Value) -> Value {
        self.entries(key).map_or_else(|error| error, look)
    }
}

impl Entries for Members {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::Set(members) = content { Some(members) } else { None }
    }

    fn of_mut(content: &mut Content) -> Option<&mut Self> {
        if let Content::Set(members) = content { Some(members) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn into_content(self) -> Content {
        Content::Set(self)
    }
}
