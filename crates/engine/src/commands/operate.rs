//! Commands of operators: policies, moving messages, deleting queues, looking into sessions.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use model::{
    AdminCommand, BrowsedMessage, Holder, MessageId, MessageState, QueueName, Refusal, Reply,
    limits,
};
use selector::Selector;

use crate::Effects;
use crate::delivery::matching::{parse_selector, reading_steps};
use crate::delivery::move_messages::{MoveTarget, RELOCATION_BYTES_MAX, Transfer};
use crate::delivery::paging::{PageQuery, PageRange};
use crate::delivery::woken::Woken;
use crate::directory::targets::is_reserved;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;
use crate::store::message::State;

impl MessageStore {
    /// A queue and the selector of a command about its messages, or why there is none.
    fn find_to_select(
        &mut self,
        queue: &QueueName,
        selector: Option<&str>,
        log: &FrameWriter,
    ) -> Result<(QueueSlot, Option<Selector>), Outcome> {
        self.took_steps(selector.map_or(0, reading_steps));
        let selector = selector.map(parse_selector).transpose().map_err(Outcome::refused)?;
        let slot = self.queues.find(queue.as_str()).ok_or_else(|| log.not_found())?;
        Ok((slot, selector))
    }
}

impl Engine {
    pub(crate) fn administer(
        &mut self,
        by: SessionSlot,
        command: AdminCommand,
        effects: &mut Effects,
    ) -> Outcome {
        match command {
            AdminCommand::Browse { queue, state, selector, after, max } => {
                let found = self.store.find_to_select(&queue, selector.as_deref(), &self.log);
                let (queue, selector) = match found {
                    Ok(found) => found,
                    Err(outcome) => return outcome,
                };
                let max = max.clamp(1, limits::PAGE_MESSAGES_MAX);
                let selector = selector.as_ref();
                self.page(&PageQuery { queue, state, held: true, selector, after, max })
            }
            AdminCommand::Show { message } => {
                let shown = self.store.find(message).map(|_| vec![self.shown(message)]);
                shown.map_or(self.log.not_found(), |it| self.log.reply_page(it, None))
            }
            AdminCommand::Purge { queue, state, selector, after } => {
                let found = self.store.find_to_select(&queue, selector.as_deref(), &self.log);
                let (queue, selector) = match found {
                    Ok(found) => found,
                    Err(outcome) => return outcome,
                };
                let (selector, max) = (selector.as_ref(), limits::FRAME_RECORDS_MAX);
                let sought = PageQuery { queue, state, held: false, selector, after, max };
                self.purge(&sought, effects)
            }
            AdminCommand::MoveMessages { from, to, message, selector, before, max, after } => {
                let transfer = Transfer { to, message, before, max };
                let found = self.store.find_to_select(&from, selector.as_deref(), &self.log);
                let (queue, selector) = match found {
                    Ok(found) => found,
                    Err(outcome) => return outcome,
                };
                let (selector, max) = (selector.as_ref(), limits::FRAME_RECORDS_MAX);
                let sought = PageQuery { queue, state: None, held: false, selector, after, max };
                self.move_messages(by, &sought, &transfer, effects)
            }
            AdminCommand::Delete { queue } => self.delete_queue(&queue, effects),
            AdminCommand::Policy { queue } => {
                self.directory.stated_policy(&queue, &self.store, &self.log)
            }
            AdminCommand::ChangePolicy { queue, change } => {
                let (store, log) = (&mut self.store, &mut self.log);
                self.directory.change_policy(&queue, &change, store, log, effects)
            }
            AdminCommand::ListPolicies { after, max } => {
                let sight = self.sessions.at(by).sight();
                self.directory.list_policies(after.as_ref(), max, sight, &mut self.store, &self.log)
            }
            AdminCommand::ListQueues { after, max } => {
                let sight = self.sessions.at(by).sight();
                self.store.page_of_queues(after.as_ref(), max, sight, &self.log)
            }
            AdminCommand::ListSubscriptions => {
                let sight = self.sessions.at(by).sight();
                self.directory.list_subscriptions(sight, &mut self.store, &self.log)
            }
            AdminCommand::NextMessage => {
                let message = self.store.next_message();
                Outcome::reply(self.log.after_all(), Reply::Stored { message })
            }
        }
    }

    /// Expired messages are not shown, for no consumer may receive them any more.
    fn page(&mut self, sought: &PageQuery<'_>) -> Outcome {
        let page_range = self.bodies.seek(sought, &mut self.store);
        let mut next = page_range.next();
        let mut messages = Vec::with_capacity(page_range.found().len());
        let mut bytes = 0;
        for &(place, id) in page_range.found() {
            if place.state != MessageState::Leased && self.store.is_over(id) {
                continue;
            }
            messages.push(self.shown(id));
            bytes += self.store.message(id).body().len();
            if bytes >= self.replies.bytes_max() {
                next = Some(place);
                break;
            }
        }
        self.log.reply_page(messages, next)
    }

    fn shown(&self, id: MessageId) -> BrowsedMessage {
        let message = self.store.message(id);
        let (state, until) = message.state().shown();
        let held = |holder| {
            let session = self.sessions.at(holder);
            let held = match message.state() {
                State::Held { since, .. } => Some(self.store.latest.since(since)),
                _ => None,
            };
            let (name, client) = (session.name().cloned(), session.client().cloned());
            Box::new(Holder { session: session.id(), name, client, held })
        };
        BrowsedMessage {
            queue: self.store.queues.at(message.queue()).name.clone(),
            state,
            time_left: until.since(self.store.latest),
            holder: message.state().holder().map(held),
            delivery: Box::new(self.directory.delivery_of(None, id, &self.bodies, &self.store)),
        }
    }
}

impl Engine {
    /// Puts a message that is in no index into a queue, where it is ready at this place among those
    /// of its priority. A queue that it has left may go.
    pub(crate) fn relocate(
        &mut self,
        id: MessageId,
        to: QueueSlot,
        order: i64,
        effects: &mut Effects,
    ) {
        let from = self.store.message(id).queue();
        self.store.reorder(id, order);
        self.bodies.change_queue(id, to, &mut self.store);
        self.store.amend(id, |message| message.mark_moved());
        self.store.queues.at_mut(to).came_one();
        self.keyspace.index(id, State::Ready, &self.bodies, &mut self.store);
        self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        if self.store.message(id).is_journalled() {
            self.log.use_room(RELOCATION_BYTES_MAX);
        }
        self.store.drained_one(from);
        self.directory.remove_if_idle(from, &mut self.sessions, &mut self.store);
    }

    /// Moves messages that no session holds, as many as fit into one frame.
    pub(crate) fn move_messages(
        &mut self,
        by: SessionSlot,
        sought: &PageQuery<'_>,
        transfer: &Transfer,
        effects: &mut Effects,
    ) -> Outcome {
        assert!(!sought.held, "what somebody holds stays");
        if transfer.to.as_ref().is_some_and(is_reserved) {
            return Outcome::refused(Refusal::NoSuchDestination);
        }
        let page_range = match transfer.message {
            Some(id) => self.bodies.page_range_of(sought, id, &self.store),
            None => self.bodies.seek(sought, &mut self.store),
        };
        if transfer.message.is_some() && page_range.found().is_empty() {
            return self.log.not_found();
        }
        let mut woken = Woken::of(sought.queue);
        let reply = self.move_found(by, &page_range, transfer, &mut woken, effects);
        self.log.outcome_of(reply).waking_just(woken)
    }

    fn move_found(
        &mut self,
        by: SessionSlot,
        page_range: &PageRange,
        transfer: &Transfer,
        woken: &mut Woken,
        effects: &mut Effects,
    ) -> Reply {
        let mut count = 0;
        let mut last = None;
        for (place, id) in page_range.found() {
            if count == transfer.max {
                break;
            }
            match self.move_one(by, *id, transfer, effects) {
                Ok(to) => {
                    count += u64::from(to.is_some());
                    woken.extend(to);
                }
                Err(refusal) => {
                    let until = |next| Reply::CountUntil { count, next };
                    return last.filter(|_| count > 0).map_or(Reply::Refused(refusal), until);
                }
            }
            last = Some(*place);
        }
        let next = page_range.next().filter(|_| count < transfer.max);
        next.map_or(Reply::Count(count), |next| Reply::CountUntil { count, next })
    }

    /// Moves one message, unless it stays. Says where it is now.
    fn move_one(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        transfer: &Transfer,
        effects: &mut Effects,
    ) -> Result<Option<QueueSlot>, Refusal> {
        let message = self.store.message(id);
        let end = i64::try_from(transfer.before.0).unwrap_or(i64::MAX);
        let came_before = id < transfer.before && message.order(id) < end;
        let to = transfer
            .to
            .clone()
            .map(MoveTarget::Queue)
            .or_else(|| self.directory.origin_of(id, &self.store));
        let Some(to) = to.filter(|_| came_before && !self.store.is_over(id)) else {
            return Ok(None);
        };
        if transfer.to.is_none() && !self.judge(by).may_return_to(&to) {
            return Ok(None);
        }
        if !self.log.takes_change() || !self.store.may_relocate(id, &self.log) {
            return Err(Refusal::StoreFull);
        }
        let slot = match to {
            MoveTarget::Queue(name) => self.directory.find_or_create(name, &mut self.store)?,
            MoveTarget::Subscription(slot) => slot,
        };
        let order = self.store.last_place();
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        self.store.amend(id, |message| message.revive());
        self.relocate(id, slot, order, effects);
        Ok(Some(slot))
    }
}

impl Engine {
    /// Forgets a message of a queue that is leaving, or of a list that is over, by time.
    pub(crate) fn forget_next(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let queue = self.store.queues.at(slot);
        if let Some((_, order)) = queue.first_expired_member() {
            let id = self.store.message_of(order);
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            self.finish(id, effects);
            return;
        }
        let ready =
            queue.delivery.dispatch.ready().first().map(|(_, order)| self.store.message_of(order));
        let delayed = || queue.first_delayed().map(|(_, id)| id);
        let buried = || queue.first_buried();
        let id = ready.or_else(delayed).or_else(buried);
        let id = id.expect("invariant: the timer is set while there is something to forget");
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        let message = self.bodies.take(id, &mut self.store);
        self.bodies.release_record(&message, effects);
        self.directory.remove_if_idle(slot, &mut self.sessions, &mut self.store);
    }
}
