//! Replies to clients of HTTP about queues: messages with a lease as long as they ask for, and
//! pages of everything that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{MessageId, MessageState, Nanos, Page, Reply};

use super::{Message, Oracle, Place};
use crate::history::Changes;

impl Oracle {
    /// A receive from one queue got a message or ended without one, at once or later. Returns the
    /// changes that this reflects.
    ///
    /// # Panics
    /// When it must not end so.
    pub fn received(
        &mut self,
        now: Nanos,
        client: u64,
        queue: &Rc<str>,
        lease: Nanos,
        reply: &Reply,
    ) -> Changes {
        self.begin_step(now);
        let changes = self.reserve(now, client, &BTreeSet::from([queue.clone()]), reply);
        if let Reply::Delivered(delivery) = reply {
            self.message(delivery.message.0).place = Place::Leased(client, now + lease);
        }
        changes
    }

    /// A lease begins anew.
    pub(super) fn renew(
        &mut self,
        now: Nanos,
        client: u64,
        message: MessageId,
        lease: Nanos,
        reply: &Reply,
    ) -> Changes {
        let id = message.0;
        let is_held = self.messages.get(&id).and_then(Message::holder) == Some(client);
        assert_eq!(is_held, *reply == Reply::Done, "{reply:?} to {client}, who extends {id}");
        if !is_held {
            return self.everything();
        }
        self.message(id).place = Place::Leased(client, now + lease);
        self.shown(id)
    }

    /// A client looked through a queue. Ready messages come first, in the order of their delivery.
    /// All others are where they are, and expired ones do not show. Returns the changes that this
    /// reflects.
    ///
    /// # Panics
    /// When it is not so.
    pub fn browsed(&mut self, now: Nanos, queue: &str, page: &Page) -> Changes {
        self.begin_step(now);
        let is_over = |message: &Message| {
            let is_over = message.content.expires.is_some_and(|at| at <= now);
            is_over && message.holder().is_none()
        };
        let is_there = |message: &Message| &*message.content.queue == queue && !is_over(message);
        let here = self.messages.iter().filter(|(_, message)| is_there(message));
        let mut ready = BTreeSet::new();
        let mut others = BTreeMap::new();
        for (id, message) in here {
            let state = match message.place {
                Place::Ready(_) => {
                    ready.insert((message.content.priority, message.nature.order, *id));
                    continue;
                }
                Place::Leased(..) | Place::Held(_) => MessageState::Leased,
                Place::Delayed(_) => MessageState::Delayed,
                Place::Buried(_) => MessageState::Buried,
            };
            others.insert(*id, state);
        }
        let ready: Vec<u64> = ready.into_iter().map(|(.., id)| id).collect();
        let of = |shown: &model::BrowsedMessage| (shown.delivery.message.0, shown.state);
        let (first, rest): (Vec<_>, Vec<_>) =
            page.messages.iter().map(of).partition(|(_, state)| *state == MessageState::Ready);
        let first: Vec<u64> = first.into_iter().map(|(id, _)| id).collect();
        assert_eq!(first, ready, "what is ready in {queue}");
        assert_eq!(rest.len(), others.len(), "all else in {queue} is shown once");
        assert_eq!(BTreeMap::from_iter(rest), others, "what is not ready in {queue}");
        for shown in &page.messages {
            let id = shown.delivery.message.0;
            let message = self.message(id);
            assert_eq!(shown.delivery.payload(), &message.content.body[..], "the body of {id}");
        }
        self.everything()
    }
}
