//! The oracle: a naive model of the queues, with linear searches for everything.
//!
//! It takes each wish with the engine's reply, in the order in which the engine handled them. It
//! panics, with the reason, at the first reply that a queue must not give. Such a reply has a
//! message out of order, to two clients at once, from a paused queue or with another body. Or it
//! has an id given twice, or is a refusal without reason. Durable changes go into the [`History`],
//! which judges recoveries.
//!
//! This file judges wishes of clients of beanstalkd. The files beside judge commands of clients of
//! AMQP: consumers with credit, topics and subscriptions, settlements and transactions.

mod consumers;
mod cutting_off;
mod groups;
mod looking;
pub(crate) mod memory;
mod places;
mod publishing;
mod ruling;
mod send_ids;
mod settling;
mod transactions;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{
    BrokerStatistics, DeadReason, Destination, Durability, MessageId, MessageState, Nanos,
    QueueBounds, QueueName, QueueStatistics, Reply, StorePolicy, TransactionId,
};

use crate::history::{Changes, DEAD_LETTERS, RULES, SCARCE_RETRY, SUBSCRIPTIONS};
use crate::registration::is_subscription;
use crate::{Content, Fall, History, Inspection, Kept, Nature, Standing, Which, Wish, workload};
use consumers::Consumer;
use groups::{Groups, Taker};
use memory::Memory;
use places::{Places, Sent};
use publishing::Registered;
use send_ids::SendIds;
use transactions::Transaction;

pub(crate) use settling::MAX_DELIVERY_ATTEMPTS;

/// The model of one broker over all its crashes.
#[derive(Clone, Debug)]
pub struct Oracle {
    messages: BTreeMap<u64, Message>,
    paused: BTreeMap<Rc<str>, Nanos>,
    history: History,
    policy: StorePolicy,
    step: u64,
    /// The moment of the last step.
    latest: Nanos,
    /// Messages that time has brought back since the engine did all that was due. Waiting clients
    /// may not have been served since: the engine serves them one by one, as the messages come.
    returning: BTreeSet<u64>,
    /// By then the engine had done all that was due.
    caught_up: Nanos,
    /// Time has done something since, or is to do it; the engine may have done it or not.
    is_behind: bool,
    /// The moment of the last command, or of the last late answer.
    moment: Nanos,
    /// The number that the next message gets, or the next that goes to the end of its line.
    next_id: u64,
    /// Destinations of producers, by client and link.
    producers: BTreeMap<(u64, u32), Destination>,
    /// Consumers with credit, by client and link.
    consumers: BTreeMap<(u64, u32), Consumer>,
    /// By the names of their queues.
    subscriptions: BTreeMap<Rc<str>, Registered>,
    /// The place of the next subscription among those of its topic.
    next_age: u64,
    transactions: BTreeMap<(u64, TransactionId), Transaction>,
    /// Messages that went with their subscription while these clients held them.
    orphans: BTreeMap<u64, u64>,
    places: Places,
    memory: Memory,
    send_ids: SendIds,
    groups: Groups,
    /// How many dead letters there may be.
    dead_letters_max: u64,
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
    /// It expired, or was rejected, and waits for room to become a dead letter: it is delayed.
    is_hidden: bool,
    /// It was with a client before; `None`: a crash took the memory of that.
    was_taken: Option<bool>,
    /// So many more deliveries of it may have failed than are known.
    slack: u32,
    /// It is in memory and came with durable changes: a client that sees it must not see a crash
    /// undo those.
    bound: Option<Changes>,
}

/// An effect of time on a message; at one moment in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Its time is over.
    Expires,
    /// Its delay or its lease ends.
    Returns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Since then.
    Ready(Nanos),
    /// Until then.
    Delayed(Nanos),
    /// By that client until then.
    Leased(u64, Nanos),
    /// By that client until it settles it or is gone.
    Held(u64),
    /// The number among all buried so far.
    Buried(usize),
}

impl Oracle {
    /// An empty store of that policy; a periodic sync may be late by `lag`.
    #[must_use]
    pub fn new(policy: StorePolicy, lag: Nanos) -> Self {
        let history = History::new(policy, lag);
        Self {
            messages: BTreeMap::new(),
            paused: BTreeMap::new(),
            history,
            policy,
            step: 0,
            latest: Nanos::ZERO,
            returning: BTreeSet::new(),
            caught_up: Nanos::ZERO,
            is_behind: false,
            moment: Nanos::ZERO,
            next_id: 1,
            producers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            next_age: 1,
            transactions: BTreeMap::new(),
            orphans: BTreeMap::new(),
            places: Places::default(),
            memory: Memory::default(),
            send_ids: SendIds::default(),
            groups: Groups::default(),
            dead_letters_max: u64::MAX,
        }
    }

    /// The same, where there are no more dead letters than that.
    #[must_use]
    pub fn with_dead_letters(mut self, most: Option<u64>) -> Self {
        self.dead_letters_max = most.unwrap_or(u64::MAX);
        self.history.evict_dead_letters(most.is_some());
        self
    }

    /// The same with bounds: queues of the workload and subscriptions of its topics hold no more
    /// than that, and no line stands still for longer.
    #[must_use]
    pub fn bounded(self, queues: QueueBounds, topics: QueueBounds, block_timeout: Nanos) -> Self {
        Self { places: Places::new(queues, topics, block_timeout), ..self }
    }

    /// The same, where the device is full at times or never.
    #[must_use]
    pub fn short_of_room(mut self, at_times: bool) -> Self {
        self.history.lack_room(at_times);
        self
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

    /// The next message gets this number: some numbers went to things that do not concern the
    /// oracle.
    ///
    /// # Panics
    /// When it was given before.
    pub fn skip_to(&mut self, next_id: u64) {
        assert!(next_id >= self.next_id, "id {next_id} was given before");
        self.next_id = next_id;
    }

    /// The engine answered a client's wish. Returns the changes that the reply reflects, for
    /// [`Oracle::told`].
    ///
    /// # Panics
    /// When a queue must not answer that.
    pub fn answered(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Changes {
        self.begin_step(now);
        self.judge_place(now, client, &Sent::Wish(wish.clone()), reply, None);
        let changes = self.perform_wish(now, client, wish, reply);
        self.shed(now);
        changes
    }

    fn perform_wish(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Changes {
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
                let all = workload::QUEUES.into_iter().chain([DEAD_LETTERS]).collect();
                assert_eq!(names, all, "the queues, all of them watched");
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

    /// True if these changes are all of messages that memory alone keeps.
    #[must_use]
    pub fn are_in_memory(&self, mut changes: Changes) -> bool {
        let level = |change| self.history.nature(change).map(|nature| nature.level);
        changes.all(|change| level(change) == Some(Durability::None))
    }

    /// A client's connection is gone: messages that it leased or held are ready. Those that it can
    /// have begun to read have one failure more. Its transactions never were.
    pub fn closed(&mut self, now: Nanos, client: u64, begun: &BTreeSet<MessageId>) {
        // Behind a stall a session ends before the things that were due meanwhile.
        self.forget_owners();
        self.step += 1;
        self.moment = now;
        self.transactions.retain(|(of, _), _| *of != client);
        self.producers.retain(|(of, _), _| *of != client);
        self.orphans.retain(|_, holder| *holder != client);
        self.places.forget(client);
        let own = |(id, message): (&u64, &Message)| match message.place {
            Place::Leased(holder, until) if holder == client => Some((until, *id)),
            Place::Held(holder) if holder == client => Some((Nanos::MAX, *id)),
            _ => None,
        };
        let mut own: Vec<_> = self.messages.iter().filter_map(own).collect();
        own.sort_unstable();
        for (_, id) in own {
            // So many as a frame takes return at a time.
            self.step += 1;
            match self.message(id).place {
                Place::Held(_) if begun.contains(&MessageId(id)) => _ = self.fail(now, id),
                _ => self.return_ready(now, id),
            }
            self.shed_all(now);
        }
        self.evict();
        self.close_consumers(client);
    }

    /// The process fell at `fell`; a new one found this.
    ///
    /// # Panics
    /// When that fall cannot leave it.
    pub fn recovered(&mut self, fall: Fall, fell: Nanos, now: Nanos, found: &Inspection) {
        let Inspection { found, subscriptions, rules, next_id } = found;
        // Due things may have happened, though no client heard of them.
        self.pass(fell);
        let gone = self.names_without_messages();
        let cut = self.history.recover(fall, fell, now, found);
        self.forget_names(cut, &gone);
        assert!(*next_id > self.history.spent_id(), "id {next_id} was given before");
        self.next_id = *next_id;
        self.step += 1;
        self.history.age(self.step, now, found);
        self.paused.clear();
        self.producers.clear();
        self.consumers.clear();
        self.transactions.clear();
        self.orphans.clear();
        self.places.clear();
        self.memory.clear();
        self.groups.clear();
        let stand = |id: &u64, change| match found.get(id).map(|found| found.kept.1) {
            Some(Standing::Delayed(until)) => Place::Delayed(until),
            Some(Standing::Buried) => Place::Buried(change),
            _ => Place::Ready(Nanos::ZERO),
        };
        let message = |(id, (change, kept)): (u64, (usize, &Kept))| {
            let nature = self.history.nature(change).expect("invariant: from the history");
            let place = stand(&id, change);
            let is_over = kept.0.expires.is_some_and(|at| at <= now);
            let is_hidden = matches!(place, Place::Delayed(_)) && is_over;
            let slack = self.history.slack(change);
            let content = kept.0.clone();
            let (was_taken, bound) = (None, None);
            (id, Message { content, nature, place, change, is_hidden, was_taken, slack, bound })
        };
        self.messages = self.history.state().into_iter().map(message).collect();
        let mut registrations = self.messages.split_off(&SUBSCRIPTIONS);
        drop(registrations.split_off(&RULES));
        self.restore_subscriptions(subscriptions, &registrations);
        self.restore_rules(rules);
        self.spare_what_is_there();
    }

    /// The engine has done all that is due by now, some of it later than it was.
    pub fn timed(&mut self, now: Nanos) {
        self.pass(now);
        self.returning.clear();
        self.caught_up = now;
        self.is_behind = false;
        self.evict();
    }

    /// Something is asked for, after all that is due by now.
    fn begin_step(&mut self, now: Nanos) {
        self.pass(now);
        self.step += 1;
        self.moment = now;
    }

    /// Things that are due by now happen, each for itself. They do so once, since things that a
    /// step makes due come next.
    fn pass(&mut self, now: Nanos) {
        self.forget_owners();
        if std::mem::replace(&mut self.latest, now) != now {
            self.fire(now);
        }
    }

    fn fire(&mut self, now: Nanos) {
        while let Some((_, due, id)) = self.first_due().filter(|(at, ..)| *at <= now) {
            self.is_behind = true;
            self.step += 1;
            match due {
                Due::Expires => _ = self.die(now, id, DeadReason::Expired),
                Due::Returns => {
                    self.return_ready(now, id);
                    self.returning.insert(id);
                }
            }
            self.shed(now);
        }
    }

    /// The next effect of time on a message.
    fn first_due(&self) -> Option<(Nanos, Due, u64)> {
        let due = |(id, message): (&u64, &Message)| {
            let may_expire = |at: &Nanos| message.holder().is_none() && !message.was_over(*at);
            let expires = message.content.expires.filter(may_expire);
            let expires = expires.map(|at| (at, Due::Expires, *id));
            let returns = match message.place {
                Place::Delayed(until) | Place::Leased(_, until) => Some(until),
                _ => None,
            };
            expires.into_iter().chain(returns.map(|at| (at, Due::Returns, *id))).min()
        };
        self.messages.iter().filter_map(due).min()
    }

    fn put(&mut self, now: Nanos, id: u64, wish: &Wish) -> Changes {
        let Wish::Put { queue, priority, delay, lease, persistence, body } = wish else {
            unreachable!("only puts store");
        };
        assert_eq!(id, self.next_id, "the id of a new message");
        self.next_id += 1;
        let level = self.policy.durability(*persistence);
        let nature = Nature::new(level, id, body.len() as u64);
        let content = Content::plain(queue.clone(), *priority, (*lease).max(1), body.clone());
        self.comes_into(queue);
        self.messages.insert(id, Message::new(content, nature, now));
        self.hide(now, id, *delay)
    }

    fn reserve(
        &mut self,
        now: Nanos,
        client: u64,
        watched: &BTreeSet<Rc<str>>,
        reply: &Reply,
    ) -> Changes {
        // A message that became ready, or a queue that was unpaused, in this very step may have
        // come after the choice. If the engine is behind, so may effects of time: each of them
        // serves waiting clients then.
        let rank = |(id, message): (&u64, &Message)| {
            let content = &message.content;
            let pause = self.paused.get(&content.queue);
            let open = pause.is_none_or(|until| *until < now && *until <= self.caught_up);
            let waiting = matches!(message.place, Place::Ready(since) if since < now);
            let waiting = waiting && !self.returning.contains(id);
            let free = self.surely_may_take(message, Taker::Receiver, now);
            let eligible = open && waiting && free && watched.contains(&content.queue);
            eligible.then_some((content.priority, message.nature.order_max))
        };
        let best = self.messages.iter().filter_map(rank).min();
        let Reply::Delivered(delivery) = reply else {
            assert!(
                matches!(reply, Reply::TimedOut { .. } | Reply::LeaseEnding),
                "{reply:?} to reserve"
            );
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
        assert_eq!(delivery.payload(), &content.body[..], "the body of {id}");
        self.assert_may_take(id, Taker::Receiver);
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
            Reply::Found { message, element } => Some((message.0, element.payload())),
            _ => None,
        };
        let content = |id| Some((id, &self.messages.get(&id)?.content.body[..]));
        assert_eq!(seen, id.and_then(content), "this was shown instead");
        match id.filter(|_| seen.is_some()) {
            Some(id) => self.shown(id),
            None => self.everything(),
        }
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
                Place::Leased(..) | Place::Held(_) => census.leased += 1,
                Place::Buried(_) => census.buried += 1,
            }
        }
        if queue.is_none() {
            census.leased += self.orphans.len() as u64;
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
                Place::Held(_) => (MessageState::Leased, now),
                Place::Buried(_) => (MessageState::Buried, now),
            };
            let Content { priority, lease, .. } = &message.content;
            let queue = message.content.destination().to_owned();
            (queue, *priority, u64::from(*lease), state, end)
        });
        assert_eq!(shown, known, "message {id}");
        self.everything()
    }

    /// The changes that an absence or a count reflects.
    fn everything(&self) -> Changes {
        0..self.history.len()
    }

    /// A command that names one message.
    fn change_one(&mut self, now: Nanos, client: u64, wish: &Wish, reply: &Reply) -> Changes {
        let id = wish.message().unwrap_or_else(|| panic!("{reply:?} to {wish:?}"));
        let may = self.messages.get(&id).is_some_and(|message| {
            let of_queue = !is_subscription(&message.content.queue);
            let free = message.holder().is_none() && of_queue;
            let mine = message.holder() == Some(client);
            match wish {
                Wish::ReserveJob { .. } => {
                    free && message.content.expires.is_none_or(|at| at > now)
                }
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
            _ => self.remove(id),
        }
    }

    /// A released message goes to the end of its line where that is the queue's rule.
    fn line_up(&mut self, id: u64) {
        if workload::releases_to_the_back(&self.message(id).content.queue) {
            let order = self.next_id;
            let message = self.message(id);
            message.nature = message.nature.at(order);
            self.next_id += 1;
        }
    }

    fn lease(&mut self, now: Nanos, client: u64, id: u64) -> Changes {
        self.group_changed(id);
        let message = self.message(id);
        message.was_taken = Some(true);
        message.place = Place::Leased(client, after(now, message.content.lease));
        let change = message.change;
        self.history.leased(change);
        self.shown(id)
    }

    /// The changes that a sight of a message reflects.
    fn shown(&self, id: u64) -> Changes {
        let message = self.messages.get(&id).expect("invariant: the caller found it");
        message.bound.clone().unwrap_or_else(|| one(message.change))
    }

    fn hide(&mut self, now: Nanos, id: u64, delay: u32) -> Changes {
        let hidden = Place::Delayed(after(now, delay));
        self.stand(id, if delay == 0 { Place::Ready(now) } else { hidden })
    }

    /// A message is ready again, as far as the history knows it always was.
    fn return_ready(&mut self, now: Nanos, id: u64) {
        self.group_changed(id);
        let message = self.message(id);
        (message.place, message.is_hidden) = (Place::Ready(now), false);
        let queue = message.content.queue.clone();
        self.places.overfull.remove(&queue);
    }

    /// Notes in the history where a message stands from now on.
    fn stand(&mut self, id: u64, place: Place) -> Changes {
        self.group_changed(id);
        let standing = match place {
            Place::Ready(_) | Place::Leased(..) | Place::Held(_) => Standing::Ready,
            Place::Delayed(until) => Standing::Delayed(until),
            Place::Buried(_) => Standing::Buried,
        };
        let Message { content, nature, slack, .. } = self.message(id).clone();
        self.places.overfull.remove(&content.queue);
        let change = self.history.push(self.step, id, nature, Some((content, standing)));
        self.history.allow(change, slack);
        let message = self.message(id);
        (message.place, message.change, message.is_hidden) = (place, change, false);
        self.shown(id)
    }

    fn message(&mut self, id: u64) -> &mut Message {
        self.messages.get_mut(&id).expect("invariant: the caller found it")
    }
}

impl Message {
    /// One that has just come, and is ready.
    const fn new(content: Content, nature: Nature, now: Nanos) -> Self {
        let place = Place::Ready(now);
        let (is_hidden, was_taken, bound) = (false, Some(false), None);
        Self { content, nature, place, change: 0, is_hidden, was_taken, slack: 0, bound }
    }

    const fn holder(&self) -> Option<u64> {
        match self.place {
            Place::Leased(client, _) | Place::Held(client) => Some(client),
            _ => None,
        }
    }

    /// True if it is hidden, and expired at this time, before that. A message that was rejected
    /// can expire while it is hidden.
    fn was_over(&self, expires: Nanos) -> bool {
        let Place::Delayed(until) = self.place else { return false };
        self.is_hidden && expires + SCARCE_RETRY <= until
    }
}

const fn one(change: usize) -> Changes {
    change..change + 1
}

/// The changes that a refusal or a setting reflects.
const NOTHING: Changes = 0..0;

fn after(now: Nanos, seconds: u32) -> Nanos {
    now + Nanos::from_secs(u64::from(seconds))
}

#[cfg(test)]
#[path = "oracle_test.rs"]
mod tests;
