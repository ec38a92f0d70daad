//! What operators ask: to look at messages and subscriptions without touching them, and to clear
//! up. What deletes is in `purging.rs`, what moves in `move_messages.rs`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use model::{
    AdminCommand, Holder, MessageId, MessageState, Page, PageEnd, QueueName, Reply, Shown,
    SubscriptionStatistics, limits,
};
use selector::Selector;

use crate::Effects;
use crate::engine::{Directory, Engine, MessageStore, Outcome};
use crate::log::Log;
use crate::matching::{parse_selector, reading_steps};
use crate::message::State;
use crate::move_messages::Transfer;
use crate::paging::{PageQuery, Stretch};
use crate::queue::QueueSlot;
use crate::session::Identity;

impl Engine {
    pub(crate) fn administer(&mut self, command: AdminCommand, effects: &mut Effects) -> Outcome {
        match command {
            AdminCommand::Browse { queue, state, selector, after, max } => {
                self.with_queue(&queue, selector.as_deref(), |engine, queue, selector| {
                    let max = max.clamp(1, limits::PAGE_MESSAGES_MAX);
                    engine.page(&PageQuery { queue, state, held: true, selector, after, max })
                })
            }
            AdminCommand::Show { message } => self.show_one(message),
            AdminCommand::Purge { queue, state, selector, after } => {
                self.with_queue(&queue, selector.as_deref(), |engine, queue, selector| {
                    let max = limits::FRAME_RECORDS_MAX;
                    let sought = PageQuery { queue, state, held: false, selector, after, max };
                    engine.purge(&sought, effects)
                })
            }
            AdminCommand::MoveMessages { from, to, message, selector, before, max, after } => {
                let transfer = Transfer { to, message, before, max };
                self.with_queue(&from, selector.as_deref(), |engine, queue, selector| {
                    let (state, max) = (None, limits::FRAME_RECORDS_MAX);
                    let sought = PageQuery { queue, state, held: false, selector, after, max };
                    engine.move_messages(&sought, &transfer, effects)
                })
            }
            AdminCommand::Delete { queue } => self.delete_queue(&queue, effects),
            AdminCommand::Policy { queue } => {
                self.directory.stated_policy(&queue, &self.store, &self.log)
            }
            AdminCommand::ChangePolicy { queue, change } => {
                self.change_policy(&queue, &change, effects)
            }
            AdminCommand::ListPolicies { after, max } => {
                self.directory.list_policies(after.as_ref(), max, &mut self.store, &self.log)
            }
            AdminCommand::ListQueues { after, max } => {
                self.store.page_of_queues(after.as_ref(), max, &self.log)
            }
            AdminCommand::ListSubscriptions => {
                self.directory.list_subscriptions(&mut self.store, &self.log)
            }
            AdminCommand::NextMessage => {
                let message = MessageId(self.store.next.message);
                Outcome::reply(self.log.after_all(), Reply::Stored { message })
            }
        }
    }

    /// Does something with a queue and a selector, if both are good.
    pub(crate) fn with_queue(
        &mut self,
        queue: &QueueName,
        selector: Option<&str>,
        act: impl FnOnce(&mut Self, QueueSlot, Option<&Selector>) -> Outcome,
    ) -> Outcome {
        self.store.took_steps(selector.map_or(0, reading_steps));
        let selector = match selector.map(parse_selector).transpose() {
            Ok(selector) => selector,
            Err(refusal) => return Outcome::refused(refusal),
        };
        match self.store.queues.find(queue.as_str()) {
            Some(slot) => act(self, slot, selector.as_ref()),
            None => self.log.not_found(),
        }
    }

    /// What is over is not shown, for nobody may receive it any more.
    fn page(&mut self, sought: &PageQuery<'_>) -> Outcome {
        let Stretch { found, mut next, .. } = self.seek(sought);
        let mut messages = Vec::with_capacity(found.len());
        let mut bytes = 0;
        for (place, id) in found {
            if place.state != MessageState::Leased && self.store.is_over(id) {
                continue;
            }
            messages.push(self.shown(id));
            bytes += self.store.living(id).body.len();
            if bytes >= self.replies.bytes_max() {
                next = Some(place);
                break;
            }
        }
        self.log.reply_page(messages, next)
    }

    fn show_one(&self, id: MessageId) -> Outcome {
        if self.store.find(id).is_none() {
            return self.log.not_found();
        }
        self.log.reply_page(vec![self.shown(id)], None)
    }

    fn shown(&self, id: MessageId) -> Shown {
        let message = self.store.living(id);
        let (state, until) = message.state().shown();
        let held = |holder| {
            let Identity { id, name, client } = &self.sessions.at(holder).identity;
            let held = match message.state() {
                State::Held { since, .. } => Some(self.store.latest.since(since)),
                _ => None,
            };
            let (session, name, client) = (*id, name.clone(), client.clone());
            Box::new(Holder { session, name, client, held })
        };
        Shown {
            queue: self.store.queues.at(message.queue).name.clone(),
            state,
            time_left: until.since(self.store.latest),
            holder: message.state().holder().map(held),
            delivery: Box::new(self.delivery_of(None, id)),
        }
    }
}

impl Log {
    fn reply_page(&self, messages: Vec<Shown>, next: Option<PageEnd>) -> Outcome {
        let page = Box::new(Page { messages, next });
        Outcome::reply(self.after_all(), Reply::Page(page))
    }
}

impl Directory {
    fn list_subscriptions(&self, store: &mut MessageStore, log: &Log) -> Outcome {
        store.took_steps(2 * self.subscriptions.len());
        let all = self.subscriptions.iter_from(0);
        let listed = all.filter(|(_, entry)| self.owner_of_source(entry.source).is_none());
        let mut all: Vec<_> = listed.collect();
        all.sort_by(|(_, a), (_, b)| {
            (&a.asks.topic, &a.asks.name).cmp(&(&b.asks.topic, &b.asks.name))
        });
        let all = all.into_iter().map(|(number, entry)| {
            let queue = store.queues.at(entry.queue);
            SubscriptionStatistics {
                subscription: entry.asks.clone(),
                number,
                ready: queue.index.counts.ready,
                leased: queue.index.counts.leased,
                consumers: queue.delivery.consumers.len() as u64,
            }
        });
        Outcome::reply(log.after_all(), Reply::Subscriptions(all.collect()))
    }
}
