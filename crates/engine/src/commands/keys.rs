//! Commands on keys: setting, renaming, deleting, reading.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionCommand, Database, DeadlineRule, KeyCommand, Nanos, QueueName, Refusal, Reply,
    SetRule, StreamCommand, ValueDeadline, limits,
};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::delivery::move_messages::RELOCATION_BYTES_MAX;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::collections::{Awaited, AwaitedEntries, Done, Pop, Work};
use crate::keyspace::deleting::Deletion;
use crate::keyspace::lists::runs::STEPS;
use crate::keyspace::naming::NameQuery;
use crate::keyspace::setting::{DEADLINE_BYTES_MAX, KEY_RECORDS_MAX, Wish, ready_max};
use crate::keyspace::{Key, NamePlace, Value};
use crate::log::DELETED_BYTES_MAX;
use crate::outcome::Outcome;
use crate::store::queue::{ListLifetime, Role};

impl Engine {
    pub(crate) fn key(
        &mut self,
        by: SessionSlot,
        command: KeyCommand,
        effects: &mut Effects,
    ) -> Outcome {
        use KeyCommand::{CountAll, MemoryOf, SetValues};
        match command {
            KeyCommand::Kind { name } => {
                self.keyspace.kind_of_key(&name, &mut self.store, &self.log)
            }
            KeyCommand::CountOf { names } => {
                self.keyspace.count_of_keys(&names, &mut self.store, &self.log)
            }
            KeyCommand::Delete { names } => self.delete_keys(&names, effects),
            KeyCommand::DeleteAll { database } => self.delete_all_keys(database, effects),
            KeyCommand::Rename { from, to, only_new } => {
                self.rename_key(&from, &to, only_new, effects)
            }
            KeyCommand::SetDeadline { name, deadline, rule } => {
                self.change_deadline(&name, Some(deadline), rule, effects)
            }
            KeyCommand::ClearDeadline { name } => {
                self.change_deadline(&name, None, DeadlineRule::IfSome, effects)
            }
            KeyCommand::Lifetime { name } => {
                self.keyspace.lifetime_of_key(&name, &mut self.store, &self.log)
            }
            KeyCommand::Names { database, after, max, kind } => {
                let query = NameQuery { database, after, max, kind };
                let sight = self.sessions.at(by).sight();
                self.keyspace.names_of_keys(query, sight, &mut self.store, &self.log)
            }
            CountAll { database } => self.keyspace.count_keys(database, &mut self.store, &self.log),
            KeyCommand::CountEach => self.keyspace.count_each(&mut self.store, &self.log),
            KeyCommand::AnyName { database, seed } => {
                let sight = self.sessions.at(by).sight();
                self.keyspace.any_key(database, seed, sight, &mut self.store, &self.log)
            }
            MemoryOf { name } => self.keyspace.memory_of_key(&name, &mut self.store, &self.log),
            KeyCommand::Synced => self.log.synced(),
            KeyCommand::SetValue { name, value, deadline, rule, want_old } => {
                self.set_value(&name, Wish { value, deadline, rule, want_old }, effects)
            }
            KeyCommand::Value { name, take } => {
                self.keyspace.value_of_key(&name, take, &mut self.store, &mut self.log, effects)
            }
            SetValues { values, only_new } => self.set_values(values, only_new, effects),
            KeyCommand::ValueUntil { name, deadline } => {
                self.keyspace.value_until(&name, deadline, &mut self.store, &mut self.log, effects)
            }
            KeyCommand::EditValue { name, edit } => {
                let (most, log) = (self.bodies.beside_messages_max(), &mut self.log);
                self.keyspace.edit_value(&name, &edit, most, &mut self.store, log, effects)
            }
            KeyCommand::Collection(command) => self.collection(by, &command, effects),
            KeyCommand::Stream(command) => self.stream(by, &command, effects),
            KeyCommand::ValuesAtOnce { names } => {
                let (show, refusal) = (self.replies.left(), self.replies.refusal());
                self.keyspace.values_at_once(&names, show, refusal, &mut self.store, &self.log)
            }
            KeyCommand::ValueEach { names } => {
                self.keyspace.values_of_keys(names, &mut self.store, &self.log)
            }
        }
    }
}

impl Engine {
    pub(crate) fn set_value(
        &mut self,
        name: &QueueName,
        wish: Wish,
        effects: &mut Effects,
    ) -> Outcome {
        let (place, there) = self.keyspace.values().find(name);
        let there = there.filter(|value| value.is_there(self.store.latest));
        let (kind, old) = (there.map(|it| it.kind()), there.filter(|_| wish.want_old));
        let Ok(old) = old.map(|value| value.shared()).transpose() else {
            return self.log.refuse(Refusal::WrongKind);
        };
        let is_value = kind.is_some();
        let list = if is_value { None } else { self.keyspace.find_list(name, &mut self.store) };
        if wish.want_old && list.is_some() {
            return self.log.refuse(Refusal::WrongKind);
        }
        let key = list.map(Key::List).or(kind.map(Key::Value));
        let allowed = match wish.rule {
            SetRule::Always => true,
            SetRule::IfNone => key.is_none(),
            SetRule::IfSome => key.is_some(),
        };
        if !allowed {
            let replaced = Reply::Replaced { set: false, old };
            let reply = if wish.want_old { replaced } else { Reply::NotFound };
            return Outcome::reply(self.log.after_all(), reply);
        }
        let at = match wish.deadline {
            ValueDeadline::Never => None,
            // Of any key of the name: a list's as well.
            ValueDeadline::Kept => {
                key.and_then(|key| self.keyspace.deadline_of(name, key, &self.store))
            }
            ValueDeadline::New(deadline) => Some(self.store.moment_of(deadline)),
        };
        let most = self.bodies.beside_messages_max();
        let value = Value::of_text(wish.value, at);
        let fits =
            self.keyspace.takes_instead(name, list, value.bytes(), most, &self.store, &self.log);
        match fits.and_then(|()| self.replace_key(name, place, list, value, effects)) {
            Ok(()) => Outcome::reply(self.log.after_all(), Reply::Replaced { set: true, old }),
            Err(refusal) => self.log.refuse(refusal),
        }
    }

    /// Sets all of these or none, as one frame.
    pub(crate) fn set_values(
        &mut self,
        values: Vec<(QueueName, Arc<[u8]>)>,
        only_new: bool,
        effects: &mut Effects,
    ) -> Outcome {
        self.store.took_steps(STEPS * values.len());
        let is_key = |name| self.keyspace.find_key(name, &mut self.store).is_some();
        if only_new && values.iter().map(|(name, _)| name).any(is_key) {
            return Outcome::reply(self.log.after_all(), Reply::Count(0));
        }
        let values: BTreeMap<_, _> = values.into_iter().collect();
        debug_assert!(!values.is_empty(), "a command sets something");
        let load = self.keyspace.load_of_values(&values, &self.store);
        let fits = load
            .and_then(|load| self.log.takes_batch(&load))
            .and_then(|()| self.keyspace.takes_all(&values, self.bodies.beside_messages_max()));
        if let Err(refusal) = fits {
            return self.log.refuse(refusal);
        }
        // A batch around it is one frame already.
        let is_alone = !self.log.is_whole();
        if is_alone {
            self.log.begin_batch();
        }
        for (name, bytes) in values {
            let list = match self.keyspace.find_key(&name, &mut self.store) {
                Some(Key::List(slot)) => Some(slot),
                Some(Key::Value(_)) | None => None,
            };
            let (place, _) = self.keyspace.values().find(&name);
            self.replace_key(&name, place, list, Value::of_text(bytes, None), effects)
                .expect("invariant: there is room for all of them");
        }
        if is_alone {
            self.log.end_batch();
        }
        debug_assert!(self.keyspace.values().memory_bytes() > 0, "values take memory");
        Outcome::reply(self.log.after_all(), Reply::Done)
    }

    /// Stores a value in place of the key of that name: a value, or this list, which is deleted. It
    /// was checked that it fits: see `Keyspace::takes_instead`.
    pub(crate) fn replace_key(
        &mut self,
        name: &QueueName,
        place: NamePlace,
        list: Option<QueueSlot>,
        value: Value,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.log.store_value(name, &value, effects)?;
        if let Some(slot) = list {
            self.delete_list(slot, effects);
        }
        self.keyspace.insert_value_at(place, name, value, &mut self.store);
        debug_assert!(self.keyspace.values().holds(name), "the value is set");
        debug_assert!(list.is_none_or(|slot| self.store.has_no_ready(slot)), "no list beside it");
        Ok(())
    }
}

impl Engine {
    /// Does a command on collections.
    fn collection(
        &mut self,
        by: SessionSlot,
        command: &CollectionCommand,
        effects: &mut Effects,
    ) -> Outcome {
        let memory_max = self.bodies.beside_messages_max();
        let work = Work::taking(&mut self.store, &mut self.log, effects, &self.replies);
        let mut work = Work { memory_max, ..work };
        let done = match self.keyspace.do_collection(command, &mut work) {
            Ok(Done::Told(reply)) => Ok(reply),
            Ok(Done::ToStore(to, kind, members)) => {
                let stored = self.keyspace.store_in_place(to, kind, &members, &mut work);
                stored.map(|list| {
                    if let Some(list) = list {
                        self.delete_list(list, effects);
                    }
                    Reply::Count(members.len() as u64)
                })
            }
            Err(refusal) => Err(refusal),
        };
        match (done, command) {
            (
                Ok(Reply::TimedOut { .. }),
                CollectionCommand::PopScored { names, highest, max, wait },
            ) if *wait != Some(Nanos::ZERO) => {
                self.stop_waiting(by, effects);
                let what = Awaited::Members(Pop { highest: *highest, max: *max });
                self.keyspace.wait_for(by, names.clone(), what, *wait, &mut self.store)
            }
            (Ok(reply), _) => Outcome::reply(self.log.after_all(), reply),
            (Err(refusal), _) => self.log.refuse(refusal),
        }
    }

    /// Does a command on streams.
    fn stream(
        &mut self,
        by: SessionSlot,
        command: &StreamCommand,
        effects: &mut Effects,
    ) -> Outcome {
        let memory_max = self.bodies.beside_messages_max();
        let work = Work::taking(&mut self.store, &mut self.log, effects, &self.replies);
        let mut work = Work { memory_max, ..work };
        match (self.keyspace.do_stream(command, &mut work), command) {
            (Ok(Reply::TimedOut { .. }), StreamCommand::Read(read))
                if read.wait != Some(Nanos::ZERO) =>
            {
                let read = self.keyspace.waiting_read(read, &mut work);
                self.stop_waiting(by, effects);
                let names = read.places.iter().map(|(name, _)| name.clone()).collect();
                let (wait, what) = (read.wait, Awaited::Entries(AwaitedEntries::of(read)));
                self.keyspace.wait_for(by, names, what, wait, &mut self.store)
            }
            (Ok(reply), _) => Outcome::reply(self.log.after_all(), reply),
            (Err(refusal), _) => self.log.refuse(refusal),
        }
    }
}

impl Engine {
    pub(crate) fn rename_key(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        only_new: bool,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(key) = self.keyspace.find_key(from, &mut self.store) else {
            return self.log.not_found();
        };
        if only_new && self.keyspace.find_key(to, &mut self.store).is_some() {
            return Outcome::reply(self.log.after_all(), Reply::Count(0));
        }
        if from == to {
            return Outcome::reply(self.log.after_all(), Reply::Done);
        }
        let renamed = match key {
            Key::Value(_) => self.rename_value(from, to, effects).map(|()| None),
            Key::List(slot) => self.rename_list(slot, from, to, effects).map(Some),
        };
        let done = || Outcome::reply(self.log.after_all(), Reply::Done);
        match renamed {
            Ok(Some(slot)) => done().waking(slot),
            Ok(None) => done(),
            Err(refusal) => self.log.refuse(refusal),
        }
    }

    fn rename_value(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let value = self.keyspace.values().get(from, self.store.latest);
        let value = value.expect("invariant: it was just found").to_value();
        let list = match self.keyspace.find_key(to, &mut self.store) {
            Some(Key::List(slot)) => Some(slot),
            Some(Key::Value(_)) | None => None,
        };
        let (bytes, most) = (value.bytes(), self.bodies.beside_messages_max());
        self.keyspace.takes_instead(to, list, bytes, most, &self.store, &self.log)?;
        let (place, _) = self.keyspace.values().find(to);
        self.replace_key(to, place, list, value, effects)?;
        self.keyspace.leave_name(from, &mut self.store, &mut self.log, effects);
        debug_assert!(!self.keyspace.values().holds(from), "the value has its new name alone");
        Ok(())
    }

    /// Moves the ready messages of one queue to another, in their order, and the list's deadline.
    /// All is one frame.
    fn rename_list(
        &mut self,
        from_slot: QueueSlot,
        from: &QueueName,
        to: &QueueName,
        effects: &mut Effects,
    ) -> Result<QueueSlot, Refusal> {
        let there = self.keyspace.find_list(to, &mut self.store);
        let deleted = there.map_or(0, |slot| self.store.ready_count(slot));
        let moved = self.store.ready_count(from_slot);
        if moved.saturating_add(deleted) > ready_max(KEY_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        let record_bytes = CHANGED_BYTES_MAX - limits::QUEUE_NAME_BYTES_MAX + to.as_str().len();
        let bytes = moved * record_bytes + deleted * DELETED_BYTES_MAX + 2 * DEADLINE_BYTES_MAX;
        if bytes > self.log.frame_bytes_max() {
            return Err(Refusal::ListTooLong);
        }
        let room = moved as u64 * RELOCATION_BYTES_MAX;
        if !self.log.surely_takes(bytes) || room > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        let to_slot = self.directory.find_or_create(to.clone(), &mut self.store)?;
        if self.store.queues.at(to_slot).role != Role::Named {
            return Err(Refusal::NoSuchDestination);
        }
        // Or else it might go when it is empty.
        self.store.queues.at_mut(to_slot).keep();
        self.keyspace.delete_value(to, &mut self.store, &mut self.log, effects);
        self.delete_list(to_slot, effects);
        let at = self.store.queues.at(from_slot).lifetime().at;
        while let Some((_, order)) = self
            .store
            .queues
            .get(from_slot)
            .and_then(|queue| queue.delivery.dispatch.ready().first())
        {
            let id = self.store.message_of(order);
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            let order = self.store.last_place();
            self.relocate(id, to_slot, order, effects);
        }
        debug_assert!(self.store.has_no_ready(from_slot), "the list has its new name alone");
        self.store.end_drains_later(from_slot);
        self.store.queues.at_mut(to_slot).let_go();
        if at.is_some() {
            let over = self.store.queues.at(to_slot).lifetime().over;
            self.keyspace.change_lifetime(to_slot, ListLifetime { at, over }, &mut self.store);
            self.keyspace.state_lifetime(from, &mut self.store, &mut self.log, effects);
            self.keyspace.state_lifetime(to, &mut self.store, &mut self.log, effects);
        }
        Ok(to_slot)
    }
}

impl Engine {
    pub(crate) fn delete_keys(&mut self, names: &[QueueName], effects: &mut Effects) -> Outcome {
        self.store.took_steps(names.len());
        let mut deletion = Deletion::begin();
        for name in names {
            let Some(key) = self.keyspace.find_key(name, &mut self.store) else { continue };
            if !self.delete_key(name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys()), deletion);
            }
        }
        self.log.deleted(Reply::Count(deletion.keys()), deletion)
    }

    pub(crate) fn delete_all_keys(
        &mut self,
        database: Option<Database>,
        effects: &mut Effects,
    ) -> Outcome {
        self.store.took_steps(self.store.queues.count());
        let mut deletion = Deletion::begin();
        // One more than it may delete: then there is more.
        let at_once = deletion.left() + 1;
        let values = self.keyspace.values().iter_of(database).take(at_once);
        let values: Vec<_> = values.map(|(name, value)| (name, Key::Value(value.kind()))).collect();
        // Those that are over are no keys any more, and go by themselves.
        let is_over = |slot| self.store.queues.at(slot).is_ended(self.store.latest);
        let lists = self.store.queues.lists_of(database);
        let lists = lists.filter(|(slot, _)| !is_over(*slot)).take(at_once);
        let lists: Vec<_> = lists.map(|(slot, name)| (name.clone(), Key::List(slot))).collect();
        for (name, key) in values.into_iter().chain(lists) {
            if !self.delete_key(&name, key, &mut deletion, effects) {
                return self.log.deleted(Reply::CountSoFar(deletion.keys()), deletion);
            }
        }
        self.log.deleted(Reply::Done, deletion)
    }

    /// Deletes all ready messages of a queue, which are known to fit into the frame.
    pub(crate) fn delete_list(&mut self, slot: QueueSlot, effects: &mut Effects) {
        while self.delete_first(slot, effects) {}
        debug_assert!(self.store.has_no_ready(slot), "the list is no key any more");
        self.store.end_drains_later(slot);
    }

    /// False where there is more of it than one command may delete.
    fn delete_key(
        &mut self,
        name: &QueueName,
        key: Key,
        deletion: &mut Deletion,
        effects: &mut Effects,
    ) -> bool {
        match key {
            Key::Value(_) => {
                if !deletion.takes_one() || !self.log.takes_change() {
                    return false;
                }
                self.keyspace.delete_value(name, &mut self.store, &mut self.log, effects);
            }
            Key::List(slot) => {
                deletion.touch(slot);
                while self.store.queues.get(slot).is_some_and(|queue| queue.counts().ready() > 0) {
                    if !deletion.takes_one() || !self.log.takes_change() {
                        return false;
                    }
                    self.delete_first(slot, effects);
                }
            }
        }
        deletion.count_key();
        true
    }

    /// Deletes the first ready message; false where there is none. The queue may go with it.
    fn delete_first(&mut self, slot: QueueSlot, effects: &mut Effects) -> bool {
        let first =
            self.store.queues.get(slot).and_then(|queue| queue.delivery.dispatch.ready().first());
        let Some((_, order)) = first else { return false };
        let id = self.store.message_of(order);
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        self.finish(id, effects);
        true
    }
}
