//! The oracle: a naive model of the queues, with linear searches for everything.
//!
//! It is told each wish with the engine's reply, in the order in which the engine handled them,
//! and panics, saying why, at the first reply that a queue must not give: a message out of order,
//! to two clients at once, from a paused queue, with another body, an id given twice, a refusal
//! without reason. What is durable of it goes into the [`History`], which judges recoveries.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{
    BrokerStatistics, Durability, MessageState, Nanos, QueueName, QueueStatistics, Reply,
    StorePolicy,
};

use crate::history::Changes;
use crate::{Content, Fall, History, Kept, Nature, Standing, Which, Wish, workload};

/// The model of one broker over all its crashes.
#[derive(Clone, Debug)]
pub struct Oracle {
    messages: BTreeMap<u64, Message>,
    paused: BTreeMap<Rc<str>, Nanos>,
    history: History,
    policy: StorePolicy,
    step: u64,
    /// The last place that was given among the ready.
    last_order: u64,
}

/// How many messages stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    urgent: u64,
    ready: u64,
    leased: u64,
    delayed: u64,
    buried: u64,
}

#[derive(Clone, Debug)]
struct Message {
    content: Content,
    nature: Nature,
    place: Place,
    /// Its newest change in the history.
    change: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Since then.
    Ready(Nanos),
    /// Until then.
    Delayed(Nanos),
    /// By that client until then.
    Leased(u64, Nanos),
    /// As the n-th ever.
    Buried(usize),
}

impl Oracle {
    /// An empty store of that policy; a periodic sync may be late by `lag`.
    #[must_use]
    pub fn new(policy: StorePolicy, lag: Nanos) -> Self {
        let history = History::new(policy, lag);
        let (messages, paused) = (BTreeMap::new(), BTreeMap::new());
        Self { messages, paused, history, policy, step: 0, last_order: 0 }
    }

    /// The ids of all live messages.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.messages.keys().copied()
    }

    /// The highest id that was given and not lost.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        self.history.last_id()
    }

    /// The engine answered a client's wish. Returns the changes that the reply reflects, for
    /// [`Oracle::told`].
    ///
    /// # Panics
    /// When a queue must not answer that.
    pub fn answered(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Changes {
        self.step += 1;
        self.expire(now);
        match (wish, reply) {
            (Wish::Put { .. }, Reply::Refused(_)) => NOTHING,
            (Wish::Put { .. }, Reply::Stored { message }) => self.put(now, message.0, wish),
            (Wish::Reserve { watched, .. }, _) => self.reserve(now, client, watched, reply),
            (Wish::Kick { queue, max }, Reply::Count(count)) => self.kick(now, queue, *max, *count),
            (Wish::Pause { queue, seconds }, Reply::Done) => {
                self.paused.insert(queue.clone(), after(now, *seconds));
                NOTHING
            }
            (Wish::Stats, Reply::BrokerStatistics(all)) => {
                let BrokerStatistics { urgent, ready, leased, delayed, buried, .. } = **all;
                self.count(None, Census { urgent, ready, leased, delayed, buried })
            }
            (Wish::StatsQueue { queue }, Reply::QueueStatistics(all)) => {
                let QueueStatistics { urgent, ready, leased, delayed, buried, .. } = **all;
                self.count(Some(queue), Census { urgent, ready, leased, delayed, buried })
            }
            (Wish::StatsMessage { id }, _) => self.describe(now, *id, reply),
            (Wish::ListQueues, Reply::Queues(names)) => {
                let names: BTreeSet<&str> = names.iter().map(QueueName::as_str).collect();
                assert_eq!(names, workload::QUEUES.into(), "the queues, all of them watched");
                self.everything()
            }
            (Wish::Peek { id }, _) => self.show(Some(*id), reply),
            (Wish::PeekQueue { queue, which }, _) => self.show(self.first(queue, *which), reply),
            _ => self.change_one(now, client, wish, reply),
        }
    }

    /// A client has read a reply that reflects these changes.
    pub fn told(&mut self, now: Nanos, changes: Changes) {
        self.history.told(now, changes);
    }

    /// From here on nothing that happened so far may be lost.
    pub fn all_told(&mut self) {
        self.history.told(Nanos::ZERO, self.everything());
    }

    /// Whether these changes are all of messages that memory alone keeps.
    #[must_use]
    pub fn are_in_memory(&self, mut changes: Changes) -> bool {
        let level = |change| self.history.nature(change).map(|nature| nature.level);
        changes.all(|change| level(change) == Some(Durability::None))
    }

    /// A client's connection is gone: what it held is ready.
    pub fn closed(&mut self, now: Nanos, client: u64) {
        self.expire(now);
        for message in self.messages.values_mut() {
            if message.holder() == Some(client) {
                message.place = Place::Ready(now);
            }
        }
    }

    /// The process fell at `fell`; a new one found these messages.
    ///
    /// # Panics
    /// When that fall cannot leave those.
    pub fn recovered(&mut self, fall: Fall, fell: Nanos, now: Nanos, found: &BTreeMap<u64, Kept>) {
        self.history.recover(fall, fell, now, found);
        self.paused.clear();
        let stand = |id: &u64, change| match found.get(id).map(|kept| kept.1) {
            Some(Standing::Delayed(until)) => Place::Delayed(until),
            Some(Standing::Buried) => Place::Buried(change),
            _ => Place::Ready(Nanos::ZERO),
        };
        let message = |(id, (change, kept)): (u64, (usize, &Kept))| {
            let nature = self.history.nature(change).expect("invariant: from the history");
            let place = stand(&id, change);
            (id, Message { content: kept.0.clone(), nature, place, change })
        };
        self.messages = self.history.state().into_iter().map(message).collect();
    }

    fn expire(&mut self, now: Nanos) {
        for message in self.messages.values_mut() {
            if let Place::Delayed(until) | Place::Leased(_, until) = message.place
                && until <= now
            {
                message.place = Place::Ready(until);
            }
        }
    }

    fn put(&mut self, now: Nanos, id: u64, wish: &Wish) -> Changes {
        let Wish::Put { queue, priority, delay, lease, persistence, body } = wish else {
            unreachable!("only puts store");
        };
        assert!(id > self.history.spent_id(), "id {id} was given before");
        self.last_order = self.last_order.max(id);
        let nature = Nature { level: self.policy.durability(*persistence), order: id };
        let (queue, body) = (queue.clone(), body.clone());
        let content = Content { queue, priority: *priority, lease: (*lease).max(1), body };
        let place = Place::Ready(now);
        self.messages.insert(id, Message { content, nature, place, change: 0 });
        self.hide(now, id, *delay)
    }

    fn reserve(
        &mut self,
        now: Nanos,
        client: u64,
        watched: &BTreeSet<Rc<str>>,
        reply: &Reply,
    ) -> Changes {
        // What became ready or was unpaused in this very step may have come after the choice.
        let rank = |message: &Message| {
            let content = &message.content;
            let open = self.paused.get(&content.queue).is_none_or(|until| *until < now);
            let waiting = matches!(message.place, Place::Ready(since) if since < now);
            let eligible = open && waiting && watched.contains(&content.queue);
            eligible.then_some((content.priority, message.nature.order))
        };
        let best = self.messages.values().filter_map(rank).min();
        let Reply::Delivered(delivery) = reply else {
            assert!(matches!(reply, Reply::TimedOut | Reply::LeaseEnding), "{reply:?} to reserve");
            assert_eq!(best, None, "{client} got {reply:?} while (priority, order) was ready");
            return self.everything();
        };
        let id = delivery.message.0;
        let message = self.messages.get(&id).unwrap_or_else(|| panic!("{id} does not exist"));
        let Message { content, place, .. } = message;
        assert!(matches!(place, Place::Ready(_)), "{id} went to {client}, but is {place:?}");
        assert!(watched.contains(&content.queue), "{client} does not watch the queue of {id}");
        let until = self.paused.get(&content.queue).copied().unwrap_or_default();
        assert!(until <= now, "{id} left a queue that is paused until {until}");
        let rank = (content.priority, message.nature.order);
        assert!(best.is_none_or(|best| rank <= best), "{rank:?} was delivered before {best:?}");
        assert_eq!(delivery.body[..], content.body[..], "the body of {id}");
        self.lease(now, client, id)
    }

    fn kick(&mut self, now: Nanos, queue: &str, max: u64, count: u64) -> Changes {
        let begin = self.history.len();
        let which = match self.first(queue, Which::Buried) {
            Some(_) => Which::Buried,
            None => Which::Delayed,
        };
        let mut kicked = 0;
        while let Some(id) = self.first(queue, which).filter(|_| kicked < max) {
            self.stand(id, Place::Ready(now));
            kicked += 1;
        }
        assert_eq!(count, kicked, "so many were kicked in {queue}");
        if kicked == 0 { self.everything() } else { begin..self.history.len() }
    }

    /// The message of a queue that comes first among those that stand so.
    fn first(&self, queue: &str, which: Which) -> Option<u64> {
        let rank = |(id, message): (&u64, &Message)| {
            let rank = match (which, message.place) {
                (Which::Ready, Place::Ready(_)) => {
                    (message.content.priority.into(), message.nature.order)
                }
                (Which::Delayed, Place::Delayed(until)) => (until.0, *id),
                (Which::Buried, Place::Buried(order)) => (order as u64, *id),
                _ => return None,
            };
            (&*message.content.queue == queue).then_some((rank, *id))
        };
        self.messages.iter().filter_map(rank).min().map(|(_, id)| id)
    }

    fn show(&self, id: Option<u64>, reply: &Reply) -> Changes {
        let seen = match reply {
            Reply::Found { message, body } => Some((message.0, &body[..])),
            _ => None,
        };
        let content = |id| Some((id, &self.messages.get(&id)?.content.body[..]));
        assert_eq!(seen, id.and_then(content), "this was shown instead");
        let change = id.filter(|_| seen.is_some()).and_then(|id| self.history.last_change(id));
        change.map_or_else(|| self.everything(), one)
    }

    /// How many messages stand where, in one queue or in all.
    fn count(&self, queue: Option<&str>, counted: Census) -> Changes {
        let mut census = Census::default();
        let here = |message: &&Message| queue.is_none_or(|queue| queue == &*message.content.queue);
        for message in self.messages.values().filter(here) {
            let urgent = message.content.priority < 1024;
            match message.place {
                Place::Ready(_) => {
                    census.ready += 1;
                    census.urgent += u64::from(urgent);
                }
                Place::Delayed(_) => census.delayed += 1,
                Place::Leased(..) => census.leased += 1,
                Place::Buried(_) => census.buried += 1,
            }
        }
        assert_eq!(counted, census, "the messages of {queue:?}");
        self.everything()
    }

    fn describe(&self, now: Nanos, id: u64, reply: &Reply) -> Changes {
        let shown = match reply {
            Reply::MessageStatistics(one) => {
                let end = now + one.time_left;
                let (queue, priority) = (one.queue.as_str().to_owned(), one.priority);
                Some((queue, priority, one.lease.as_secs(), one.state, end))
            }
            _ => None,
        };
        let known = self.messages.get(&id).map(|message| {
            let (state, end) = match message.place {
                Place::Ready(_) => (MessageState::Ready, now),
                Place::Delayed(until) => (MessageState::Delayed, until),
                Place::Leased(_, until) => (MessageState::Leased, until),
                Place::Buried(_) => (MessageState::Buried, now),
            };
            let Content { queue, priority, lease, .. } = &message.content;
            (queue.to_string(), *priority, u64::from(*lease), state, end)
        });
        assert_eq!(shown, known, "message {id}");
        self.everything()
    }

    /// What an absence or a count reflects.
    fn everything(&self) -> Changes {
        0..self.history.len()
    }

    /// A command that names one message.
    fn change_one(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Changes {
        let id = wish.message().unwrap_or_else(|| panic!("{reply:?} to {wish:?}"));
        let may = self.messages.get(&id).is_some_and(|message| {
            let free = message.holder().is_none();
            let mine = message.holder() == Some(client);
            match wish {
                Wish::ReserveJob { .. } => free,
                Wish::Delete { .. } => free || mine,
                Wish::KickJob { .. } => free && !matches!(message.place, Place::Ready(_)),
                _ => mine,
            }
        });
        assert_eq!(may, *reply != Reply::NotFound, "{reply:?} to {wish:?} of {client}");
        if may { self.apply(now, client, id, wish) } else { self.everything() }
    }

    fn apply(&mut self, now: Nanos, client: u64, id: u64, wish: &Wish) -> Changes {
        match wish {
            Wish::ReserveJob { .. } | Wish::Touch { .. } => self.lease(now, client, id),
            Wish::KickJob { .. } => self.stand(id, Place::Ready(now)),
            Wish::Release { priority, delay, .. } => {
                self.message(id).content.priority = *priority;
                self.line_up(id);
                self.hide(now, id, *delay)
            }
            Wish::Bury { priority, .. } => {
                self.message(id).content.priority = *priority;
                self.stand(id, Place::Buried(self.history.len()))
            }
            _ => {
                let message = self.messages.remove(&id).expect("invariant: the caller found it");
                one(self.history.push(self.step, id, message.nature, None))
            }
        }
    }

    /// A released message goes to the end of its line where that is the queue's rule.
    fn line_up(&mut self, id: u64) {
        if workload::releases_to_the_back(&self.message(id).content.queue) {
            self.last_order += 1;
            self.message(id).nature.order = self.last_order;
        }
    }

    fn lease(&mut self, now: Nanos, client: u64, id: u64) -> Changes {
        let message = self.message(id);
        message.place = Place::Leased(client, after(now, message.content.lease));
        let change = message.change;
        self.history.leased(change);
        one(change)
    }

    fn hide(&mut self, now: Nanos, id: u64, delay: u32) -> Changes {
        let hidden = Place::Delayed(after(now, delay));
        self.stand(id, if delay == 0 { Place::Ready(now) } else { hidden })
    }

    /// Notes in the history where a message stands from now on.
    fn stand(&mut self, id: u64, place: Place) -> Changes {
        let standing = match place {
            Place::Ready(_) | Place::Leased(..) => Standing::Ready,
            Place::Delayed(until) => Standing::Delayed(until),
            Place::Buried(_) => Standing::Buried,
        };
        let Message { content, nature, .. } = self.message(id).clone();
        let change = self.history.push(self.step, id, nature, Some((content, standing)));
        let message = self.message(id);
        (message.place, message.change) = (place, change);
        one(change)
    }

    fn message(&mut self, id: u64) -> &mut Message {
        self.messages.get_mut(&id).expect("invariant: the caller found it")
    }
}

impl Message {
    const fn holder(&self) -> Option<u64> {
        match self.place {
            Place::Leased(client, _) => Some(client),
            _ => None,
        }
    }
}

const fn one(change: usize) -> Changes {
    change..change + 1
}

/// What a refusal or a setting reflects.
const NOTHING: Changes = 0..0;

fn after(now: Nanos, seconds: u32) -> Nanos {
    now + Nanos::from_secs(u64::from(seconds))
}

#[cfg(test)]
#[path = "oracle_test.rs"]
mod tests;
