//! The oracle: a naive model of the queues, with linear searches for everything.
//!
//! It is told each wish with the engine's reply, in the order in which the engine handled them,
//! and panics, saying why, at the first reply that a queue must not give: a message out of order,
//! to two clients at once, from a paused queue, with another body, an id given twice, a refusal
//! without reason. What is durable of it goes into the [`History`], which judges recoveries.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{Nanos, Reply, StorePolicy};

use crate::{Content, Fall, History, Kept, Standing, Which, Wish};

/// The model of one broker over all its crashes.
#[derive(Clone, Debug)]
pub struct Oracle {
    messages: BTreeMap<u64, Message>,
    paused: BTreeMap<Rc<str>, Nanos>,
    history: History,
    step: u64,
}

#[derive(Clone, Debug)]
struct Message {
    content: Content,
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
    pub const fn new(policy: StorePolicy, lag: Nanos) -> Self {
        let history = History::new(policy, lag);
        Self { messages: BTreeMap::new(), paused: BTreeMap::new(), history, step: 0 }
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

    /// The engine answered a client's wish. Returns the change that the reply depends on, for
    /// [`Oracle::told`].
    ///
    /// # Panics
    /// When a queue must not answer that.
    pub fn answered(
        &mut self,
        now: Nanos,
        client: u64,
        wish: &Wish,
        reply: &Reply,
    ) -> Option<usize> {
        self.step += 1;
        self.expire(now);
        match (wish, reply) {
            (Wish::Put { .. }, Reply::Refused(_)) => None,
            (Wish::Put { .. }, Reply::Stored { message }) => Some(self.put(now, message.0, wish)),
            (Wish::Reserve { watched, .. }, _) => self.reserve(now, client, watched, reply),
            (Wish::Kick { queue, max }, Reply::Count(count)) => self.kick(now, queue, *max, *count),
            (Wish::Pause { queue, seconds }, Reply::Done) => {
                self.paused.insert(queue.clone(), after(now, *seconds));
                None
            }
            (Wish::Peek { id }, _) => self.show(Some(*id), reply),
            (Wish::PeekQueue { queue, which }, _) => self.show(self.first(queue, *which), reply),
            _ => self.change_one(now, client, wish, reply),
        }
    }

    /// A client has read a reply that depends on this change.
    pub fn told(&mut self, now: Nanos, change: usize) {
        self.history.told(now, change);
    }

    /// From here on nothing that happened so far may be lost.
    pub fn all_told(&mut self) {
        (0..self.history.len()).for_each(|change| self.history.told(Nanos::ZERO, change));
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
            let place = stand(&id, change);
            (id, Message { content: kept.0.clone(), place, change })
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

    fn put(&mut self, now: Nanos, id: u64, wish: &Wish) -> usize {
        let Wish::Put { queue, priority, delay, lease, body } = wish else {
            unreachable!("only puts store");
        };
        assert!(id > self.history.spent_id(), "id {id} was given before");
        let (queue, body) = (queue.clone(), body.clone());
        let content = Content { queue, priority: *priority, lease: (*lease).max(1), body };
        self.messages.insert(id, Message { content, place: Place::Ready(now), change: 0 });
        self.hide(now, id, *delay)
    }

    fn reserve(
        &mut self,
        now: Nanos,
        client: u64,
        watched: &BTreeSet<Rc<str>>,
        reply: &Reply,
    ) -> Option<usize> {
        // What became ready or was unpaused in this very step may have come after the choice.
        let rank = |(id, message): (&u64, &Message)| {
            let content = &message.content;
            let open = self.paused.get(&content.queue).is_none_or(|until| *until < now);
            let waiting = matches!(message.place, Place::Ready(since) if since < now);
            let eligible = open && waiting && watched.contains(&content.queue);
            eligible.then_some((content.priority, *id))
        };
        let best = self.messages.iter().filter_map(rank).min();
        let Reply::Delivered(delivery) = reply else {
            assert!(matches!(reply, Reply::TimedOut | Reply::LeaseEnding), "{reply:?} to reserve");
            assert_eq!(best, None, "{client} got {reply:?} while (priority, id) was ready");
            return None;
        };
        let id = delivery.message.0;
        let message = self.messages.get(&id).unwrap_or_else(|| panic!("{id} does not exist"));
        let Message { content, place, .. } = message;
        assert!(matches!(place, Place::Ready(_)), "{id} went to {client}, but is {place:?}");
        assert!(watched.contains(&content.queue), "{client} does not watch the queue of {id}");
        let until = self.paused.get(&content.queue).copied().unwrap_or_default();
        assert!(until <= now, "{id} left a queue that is paused until {until}");
        let rank = (content.priority, id);
        assert!(best.is_none_or(|best| rank <= best), "{rank:?} was delivered before {best:?}");
        assert_eq!(delivery.body[..], content.body[..], "the body of {id}");
        Some(self.lease(now, client, id))
    }

    fn kick(&mut self, now: Nanos, queue: &str, max: u64, count: u64) -> Option<usize> {
        let mut last = None;
        let which = match self.first(queue, Which::Buried) {
            Some(_) => Which::Buried,
            None => Which::Delayed,
        };
        let mut kicked = 0;
        while let Some(id) = self.first(queue, which).filter(|_| kicked < max) {
            last = Some(self.stand(id, Place::Ready(now)));
            kicked += 1;
        }
        assert_eq!(count, kicked, "so many were kicked in {queue}");
        last
    }

    /// The message of a queue that comes first among those that stand so.
    fn first(&self, queue: &str, which: Which) -> Option<u64> {
        let rank = |(id, message): (&u64, &Message)| {
            let rank = match (which, message.place) {
                (Which::Ready, Place::Ready(_)) => u64::from(message.content.priority),
                (Which::Delayed, Place::Delayed(until)) => until.0,
                (Which::Buried, Place::Buried(order)) => order as u64,
                _ => return None,
            };
            (&*message.content.queue == queue).then_some((rank, *id))
        };
        self.messages.iter().filter_map(rank).min().map(|(_, id)| id)
    }

    fn show(&self, id: Option<u64>, reply: &Reply) -> Option<usize> {
        let seen = match reply {
            Reply::Found { message, body } => Some((message.0, &body[..])),
            _ => None,
        };
        let content = |id| Some((id, &self.messages.get(&id)?.content.body[..]));
        assert_eq!(seen, id.and_then(content), "this was shown instead");
        self.history.last_change(id?)
    }

    /// A command that names one message.
    fn change_one(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Option<usize> {
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
        if may { Some(self.apply(now, client, id, wish)) } else { self.history.last_change(id) }
    }

    fn apply(&mut self, now: Nanos, client: u64, id: u64, wish: &Wish) -> usize {
        match wish {
            Wish::ReserveJob { .. } | Wish::Touch { .. } => self.lease(now, client, id),
            Wish::KickJob { .. } => self.stand(id, Place::Ready(now)),
            Wish::Release { priority, delay, .. } => {
                self.message(id).content.priority = *priority;
                self.hide(now, id, *delay)
            }
            Wish::Bury { priority, .. } => {
                self.message(id).content.priority = *priority;
                self.stand(id, Place::Buried(self.history.len()))
            }
            _ => {
                self.messages.remove(&id);
                self.history.push(self.step, id, None)
            }
        }
    }

    fn lease(&mut self, now: Nanos, client: u64, id: u64) -> usize {
        let message = self.message(id);
        message.place = Place::Leased(client, after(now, message.content.lease));
        let change = message.change;
        self.history.leased(change);
        change
    }

    fn hide(&mut self, now: Nanos, id: u64, delay: u32) -> usize {
        let hidden = Place::Delayed(after(now, delay));
        self.stand(id, if delay == 0 { Place::Ready(now) } else { hidden })
    }

    /// Notes in the history where a message stands from now on.
    fn stand(&mut self, id: u64, place: Place) -> usize {
        let standing = match place {
            Place::Ready(_) | Place::Leased(..) => Standing::Ready,
            Place::Delayed(until) => Standing::Delayed(until),
            Place::Buried(_) => Standing::Buried,
        };
        let content = self.message(id).content.clone();
        let change = self.history.push(self.step, id, Some((content, standing)));
        let message = self.message(id);
        (message.place, message.change) = (place, change);
        change
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

fn after(now: Nanos, seconds: u32) -> Nanos {
    now + Nanos::from_secs(u64::from(seconds))
}

#[cfg(test)]
#[path = "oracle_test.rs"]
mod tests;
