//! What a batch may come to at most, counted before anything of it is done: it takes effect as one
//! frame, so it must be certain that one holds it and that the log has room.
//!
//! Everything is counted as large as it can become; what one command of a batch adds to lists, each
//! that follows may meet.

use model::{
    Command, Destination, KeyCommand, ListCommand, NewMessage, QueueName, Refusal, limits,
};

use crate::engine::Engine;
use crate::lists::Span;
use crate::log::{CHANGED_BYTES_MAX, DELETED_BYTES_MAX};
use crate::relocating::RELOCATION_BYTES_MAX;
use crate::send_id_record::SendIdView;

/// What commands of a batch may come to.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Bytes of what is stored anew.
    stored_bytes: usize,
    /// Bytes of what is said of messages that are there.
    settled_bytes: usize,
    /// Bytes of room that it uses up without a record of its own.
    reserved: u64,
    records: usize,
    /// Elements that are looked at.
    scanned: u64,
    /// Elements that lists may have got.
    added: u64,
}

impl Load {
    fn store(&mut self, name: &QueueName, bytes: usize) {
        let bytes = RECORD_BYTES_MAX + name.as_str().len() + bytes;
        self.stored_bytes = self.stored_bytes.saturating_add(bytes);
        self.records += 1;
        self.added += 1;
    }

    /// The record of what its sender calls a message.
    fn name(&mut self, to: &QueueName, message: &NewMessage) {
        let Some(id) = &message.send_id else { return };
        let bytes = SendIdView::FIXED_BYTES_MAX + to.as_str().len() + id.len();
        self.stored_bytes = self.stored_bytes.saturating_add(bytes);
        self.records += 1;
    }

    fn delete(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.records = self.records.saturating_add(count);
        let bytes = count.saturating_mul(DELETED_BYTES_MAX);
        self.settled_bytes = self.settled_bytes.saturating_add(bytes);
    }

    /// In one step; else not all of it would be done in the batch.
    fn delete_whole(&mut self, count: u64) -> Result<(), Refusal> {
        self.delete(count);
        let is_whole = count <= limits::FRAME_RECORDS_MAX as u64;
        if is_whole { Ok(()) } else { Err(Refusal::BatchTooLarge) }
    }

    fn change(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.records = self.records.saturating_add(count);
        let bytes = count.saturating_mul(CHANGED_BYTES_MAX);
        self.settled_bytes = self.settled_bytes.saturating_add(bytes);
    }

    fn scan(&mut self, count: u64) {
        self.scanned = self.scanned.saturating_add(count);
    }
}

impl Engine {
    /// Whether a batch may be done: it holds nothing that is not allowed, and one frame and the
    /// room that is left take what it may come to.
    pub(crate) fn check_batch(&self, commands: &[Command]) -> Result<(), Refusal> {
        if commands.len() > limits::BATCH_COMMANDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        let mut load = Load::default();
        for command in commands {
            self.add_load(command, &mut load)?;
        }
        let bytes = load.stored_bytes.saturating_add(load.settled_bytes);
        if load.records > limits::TRANSACTION_RECORDS_MAX
            || bytes > self.log.frame_bytes_max
            || load.scanned > SCANNED_MAX
        {
            return Err(Refusal::BatchTooLarge);
        }
        let stored = (load.stored_bytes as u64).saturating_add(load.reserved);
        let has_room = stored <= self.log.room;
        let settles = bytes as u64 <= self.log.room || self.log.surely_takes(load.settled_bytes);
        if has_room && settles { Ok(()) } else { Err(Refusal::StoreFull) }
    }

    fn add_load(&self, command: &Command, load: &mut Load) -> Result<(), Refusal> {
        match command {
            Command::List(command) => return self.add_list_load(command, load),
            Command::Key(command) => return self.add_key_load(command, load),
            Command::PutTo { to: Destination::Queue(name), message, transaction: None } => {
                load.store(name, message.body.len());
                load.name(name, message);
            }
            Command::PutTo { to: Destination::Topic(name), message, transaction: None }
            | Command::Publish { topic: name, message } => self.add_published(name, message, load),
            _ => return Err(Refusal::NotInBatch),
        }
        Ok(())
    }

    fn add_list_load(&self, command: &ListCommand, load: &mut Load) -> Result<(), Refusal> {
        let count = |name: &QueueName| self.ready_of(name) + load.added;
        match command {
            ListCommand::Push { queue, elements, .. } => {
                elements.iter().for_each(|element| load.store(queue, element.len()));
            }
            ListCommand::Pop { queue, max, .. } => load.delete(count(queue).min(*max)),
            ListCommand::PopFirst { queues, max, .. } => {
                let most = queues.iter().map(count).max().unwrap_or(0);
                load.delete(most.min(*max));
                load.scan(queues.len() as u64);
            }
            ListCommand::Move { to, .. } => load.store(to, CHANGED_BYTES_MAX),
            ListCommand::CancelPop => return Err(Refusal::NotInBatch),
            ListCommand::Length { .. } => {}
            ListCommand::Range { queue, origin, first, last } => {
                let span = Span { origin: *origin, first: *first, last: *last };
                let wanted = span.within(count(queue));
                load.scan(wanted.end - wanted.start);
            }
            ListCommand::Replace { queue, element, .. } => {
                load.store(queue, element.len());
                load.delete(1);
            }
            ListCommand::Insert { queue, element, .. } => {
                let there = count(queue);
                load.scan(there);
                // Those on the shorter side move.
                load.change((there / 2 + 1).min(limits::FRAME_RECORDS_MAX as u64));
                load.store(queue, element.len());
            }
            ListCommand::Remove { queue, max, .. } => {
                let there = count(queue);
                load.scan(there);
                load.delete(there.min(*max));
            }
            ListCommand::Keep { queue, origin, first, last } => {
                let span = Span { origin: *origin, first: *first, last: *last };
                let parting = span.parting(count(queue));
                load.delete(parting.near + parting.far);
            }
            ListCommand::Locate { queue, scan_max, .. } => {
                load.scan(count(queue).min(scan_max.unwrap_or(u64::MAX)));
            }
        }
        Ok(())
    }

    fn add_key_load(&self, command: &KeyCommand, load: &mut Load) -> Result<(), Refusal> {
        let count = |name: &QueueName| self.ready_of(name) + load.added;
        match command {
            KeyCommand::Delete { names } => {
                let all = names.iter().map(count).fold(0, u64::saturating_add);
                names.iter().for_each(|name| load.store(name, 0));
                load.delete_whole(all.saturating_add(names.len() as u64))?;
            }
            KeyCommand::DeleteAll => {
                let values = self.keys.values.len();
                let value_bytes = values.saturating_mul(limits::QUEUE_NAME_BYTES_MAX);
                load.settled_bytes = load.settled_bytes.saturating_add(value_bytes);
                let lists = self.totals.counts.ready + load.added;
                load.delete_whole(lists.saturating_add(values as u64))?;
            }
            KeyCommand::Rename { from, to, .. } => {
                let (moved, gone) = (count(from), count(to));
                load.change(moved);
                load.delete(gone);
                load.reserved += moved.saturating_mul(RELOCATION_BYTES_MAX);
                load.store(to, limits::VALUE_BYTES_MAX);
                // The old value's end, and the deadlines of both lists.
                for name in [from, from, to] {
                    load.store(name, 0);
                }
            }
            KeyCommand::Value { name, take: true } => load.store(name, 0),
            KeyCommand::SetValue { name, value, .. } => {
                load.delete(count(name));
                load.store(name, value.len());
            }
            KeyCommand::SetDeadline { name, .. } | KeyCommand::ClearDeadline { name } => {
                load.store(name, 0);
            }
            KeyCommand::Kind { .. }
            | KeyCommand::Lifetime { .. }
            | KeyCommand::CountAll
            | KeyCommand::CountOf { .. }
            | KeyCommand::Value { take: false, .. } => {}
            KeyCommand::Names { max, .. } => load.scan(*max as u64),
        }
        Ok(())
    }

    fn add_published(&self, name: &QueueName, message: &NewMessage, load: &mut Load) {
        let topic = self.topics.find(name.as_str()).map(|slot| self.topics.at(slot));
        let takers = topic.map_or(0, |topic| topic.subscriptions.len());
        let envelopes = takers.saturating_mul(RECORD_BYTES_MAX);
        load.scan(takers as u64);
        load.store(name, message.body.len().saturating_add(envelopes));
        load.name(name, message);
    }

    fn ready_of(&self, name: &QueueName) -> u64 {
        let slot = self.queues.find(name.as_str());
        slot.map_or(0, |slot| self.queues.at(slot).counts.ready)
    }
}

/// A record of something new, without names and body.
const RECORD_BYTES_MAX: usize = 128;

/// Elements that a batch may look at: some 40 ms.
const SCANNED_MAX: u64 = 4 * limits::LIST_SCAN_MAX as u64;
