//! The engine's rules, told a second time in the plainest way: lists that are searched. Slow, but
//! there is nothing in it to get wrong except the rules themselves.

mod operating;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{MessageCounters, ReleaseOrder};
use model::{
    BrokerStatistics, Command, Delivery, DependsOn, Destination, Durability, LinkId, Lsn,
    MessageId, MessageState, MessageStatistics, Nanos, NewMessage, Output, Peek, Persistence,
    QueueName, QueueStatistics, Refusal, Reply, SessionId, StorePolicy,
};

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) queue: QueueName,
    pub(crate) priority: u32,
    pub(crate) order: u64,
    pub(crate) state: State,
    pub(crate) delay: Nanos,
    pub(crate) lease: Nanos,
    pub(crate) created: Nanos,
    pub(crate) durability: Durability,
    pub(crate) changed: Lsn,
    pub(crate) counters: MessageCounters,
    pub(crate) body: Arc<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Delayed(Nanos),
    Leased(SessionId, Nanos),
    Buried(u64),
}

#[derive(Clone, Debug, Default)]
struct Queue {
    pause: Option<(Nanos, Nanos)>,
    messages_total: u64,
    deleted_total: u64,
    paused_total: u64,
}

#[derive(Clone, Debug, Default)]
struct Session {
    producers: BTreeMap<LinkId, QueueName>,
    consumers: BTreeMap<LinkId, Consumer>,
}

#[derive(Clone, Debug, Default)]
struct Consumer {
    watched: BTreeSet<QueueName>,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    ticket: u64,
    until: Option<Nanos>,
    margin: Nanos,
    lease: Option<Nanos>,
}

#[derive(Clone, Debug)]
pub(crate) struct Naive {
    policy: StorePolicy,
    release_order: ReleaseOrder,
    pub(crate) messages: BTreeMap<MessageId, Message>,
    queues: BTreeMap<QueueName, Queue>,
    sessions: BTreeMap<SessionId, Session>,
    now: Nanos,
    pub(crate) next_message: u64,
    pub(crate) next_buried: u64,
    next_ticket: u64,
    pub(crate) last: Lsn,
    after_last: DependsOn,
    frame: Durability,
    expired_total: u64,
    messages_total: u64,
    outputs: Vec<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Delay(MessageId),
    Pause(usize),
    Lease(MessageId),
    Margin(SessionId, LinkId),
    Wait(SessionId, LinkId),
}

type Answer = Option<(DependsOn, Reply)>;

impl Naive {
    pub(crate) fn new(policy: StorePolicy, release_order: ReleaseOrder) -> Self {
        Self {
            policy,
            release_order,
            messages: BTreeMap::new(),
            queues: BTreeMap::new(),
            sessions: BTreeMap::new(),
            now: Nanos::ZERO,
            next_message: 1,
            next_buried: 1,
            next_ticket: 1,
            last: Lsn::ZERO,
            after_last: DependsOn::new(Lsn::ZERO, policy.durability(Persistence::Persistent)),
            frame: Durability::None,
            expired_total: 0,
            messages_total: 0,
            outputs: Vec::new(),
        }
    }

    pub(crate) fn open_session(&mut self, session: SessionId) {
        self.sessions.entry(session).or_default();
    }

    pub(crate) fn close_session(&mut self, now: Nanos, session: SessionId) -> Vec<Output> {
        self.now = now;
        if self.sessions.remove(&session).is_some() {
            let mut held = self.held(session);
            held.sort_unstable();
            for (_, id) in &held {
                self.message(*id).state = State::Ready;
            }
            // Each queue for itself, in the order in which they got something back.
            for (_, id) in held {
                let queue = self.message(id).queue.clone();
                self.serve_among(|it| it == &queue);
            }
        }
        self.drop_idle_queues();
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn handle(
        &mut self,
        now: Nanos,
        session: SessionId,
        command: &Command,
    ) -> Vec<Output> {
        self.now = now;
        let answer = if self.sessions.contains_key(&session) {
            self.answer(session, command)
        } else {
            refused(Refusal::NoSuchLink)
        };
        if let Some((after, reply)) = answer {
            self.outputs.push(Output { session, after, reply });
        }
        self.serve();
        self.drop_idle_queues();
        if self.frame != Durability::None {
            self.last = self.last.next();
            self.after_last = DependsOn::new(self.last, self.frame);
            self.frame = Durability::None;
        }
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn timeout(&mut self, now: Nanos) -> Vec<Output> {
        self.now = now;
        while let Some((at, due)) = self.due().into_iter().min() {
            if at > now {
                break;
            }
            self.fire(due);
            self.serve();
        }
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.due().into_iter().min().map(|(at, _)| at)
    }

    /// Performs a crash, which leaves journalled messages, without leases.
    pub(crate) fn crash(&mut self) {
        self.sessions.clear();
        self.messages.retain(|_, message| message.durability != Durability::None);
        for message in self.messages.values_mut() {
            message.changed = Lsn::ZERO;
            if let State::Leased(..) = message.state {
                message.state = State::Ready;
            }
        }
        self.queues.clear();
        for message in self.messages.values() {
            self.queues.entry(message.queue.clone()).or_default();
        }
        (self.expired_total, self.messages_total) = (0, 0);
        self.after_last =
            DependsOn::new(Lsn::ZERO, self.policy.durability(Persistence::Persistent));
    }

    /// Compaction made this frame: only answers that depend on all frames wait for it.
    pub(crate) fn restated(&mut self, frame: Option<engine::FrameEnd>) {
        let Some(frame) = frame else { return };
        self.last = frame.lsn;
        self.after_last = DependsOn::new(frame.lsn, frame.level);
    }

    fn answer(&mut self, by: SessionId, command: &Command) -> Answer {
        match command.clone() {
            Command::OpenProducer { link, to: Destination::Queue(queue) } => {
                self.queues.entry(queue.clone()).or_default();
                self.session(by).producers.insert(link, queue);
                done(DependsOn::NOTHING)
            }
            Command::Put { link, message, .. } => self.put(by, link, message),
            Command::Watch { link, queue } => {
                self.queues.entry(queue.clone()).or_default();
                self.session(by).consumers.entry(link).or_default().watched.insert(queue);
                done(DependsOn::NOTHING)
            }
            Command::Unwatch { link, queue } => {
                if let Some(consumer) = self.session(by).consumers.get_mut(&link) {
                    consumer.watched.remove(&queue);
                }
                done(DependsOn::NOTHING)
            }
            Command::Receive { link, wait, margin, lease } => {
                self.receive(by, link, wait, margin, lease)
            }
            Command::CancelReceive { link } => {
                let consumer = self.session(by).consumers.get_mut(&link)?;
                consumer.wait.take()?;
                Some((self.after_all(), Reply::TimedOut { link: Some(link) }))
            }
            Command::Lease { message } => self.lease_by_id(by, message),
            Command::Delete { message } => self.delete(by, message),
            Command::Release { message, priority, delay } => {
                self.release(by, message, priority, delay.unwrap())
            }
            Command::Bury { message, priority } => self.bury(by, message, priority),
            Command::Renew { message, lease } => {
                if !self.holds(by, message) {
                    return self.not_found();
                }
                let until = self.now + lease.unwrap_or(self.messages[&message].lease);
                self.message(message).state = State::Leased(by, until);
                done(self.after(message))
            }
            Command::Kick { link, max } => self.kick(by, link, max),
            Command::KickMessage { message } => self.kick_message(message),
            Command::Pause { queue, duration } => self.pause(&queue, duration),
            Command::Peek(which) => self.peek(by, which),
            Command::MessageStatistics { message } => self.message_statistics(message),
            Command::QueueStatistics { queue } => self.queue_statistics(&queue),
            Command::BrokerStatistics => {
                let statistics = self.broker_statistics();
                Some((self.after_all(), Reply::BrokerStatistics(Box::new(statistics))))
            }
            Command::ListQueues => {
                let names = self.queues.keys().cloned().collect();
                Some((self.after_all(), Reply::Queues(names)))
            }
            Command::Admin(command) => self.administer(*command),
            other => panic!("{other:?} is not of the workload"),
        }
    }

    fn put(&mut self, by: SessionId, link: LinkId, new: NewMessage) -> Answer {
        let Some(queue) = self.session(by).producers.get(&link).cloned() else {
            return refused(Refusal::NoSuchLink);
        };
        let id = MessageId(self.next_message);
        self.next_message += 1;
        let message = Message {
            queue: queue.clone(),
            priority: new.priority,
            order: id.0,
            state: self.ready_or_delayed(new.delay),
            delay: new.delay,
            lease: new.lease,
            created: self.now,
            durability: self.policy.durability(new.persistence),
            changed: Lsn::ZERO,
            counters: MessageCounters::default(),
            body: new.body,
        };
        self.messages.insert(id, message);
        self.queues.get_mut(&queue).unwrap().messages_total += 1;
        self.messages_total += 1;
        self.journal(id);
        Some((self.after(id), Reply::Stored { message: id }))
    }

    fn receive(
        &mut self,
        by: SessionId,
        link: LinkId,
        wait: Option<Nanos>,
        margin: Nanos,
        lease: Option<Nanos>,
    ) -> Answer {
        let Some(consumer) = self.session(by).consumers.get_mut(&link) else {
            return refused(Refusal::NoSuchLink);
        };
        let watched = consumer.watched.clone();
        if consumer.wait.take().is_some() {
            let output = Output {
                session: by,
                after: self.after_all(),
                reply: Reply::TimedOut { link: Some(link) },
            };
            self.outputs.push(output);
        }
        if let Some(id) = self.best(|message| watched.contains(&message.queue)) {
            return Some(self.deliver(by, Some(link), id, lease));
        }
        let soonest = self.held(by).into_iter().min().map(|(until, _)| until);
        if margin > Nanos::ZERO && soonest.is_some_and(|until| until <= self.now + margin) {
            return Some((self.after_all(), Reply::LeaseEnding));
        }
        if wait == Some(Nanos::ZERO) {
            return Some((self.after_all(), Reply::TimedOut { link: Some(link) }));
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let until = wait.map(|wait| self.now + wait);
        let consumer = self.session(by).consumers.get_mut(&link).unwrap();
        consumer.wait = Some(Wait { ticket, until, margin, lease });
        None
    }

    fn lease_by_id(&mut self, by: SessionId, id: MessageId) -> Answer {
        let state = self.messages.get(&id).map(|message| message.state);
        match state {
            None | Some(State::Leased(..)) => self.not_found(),
            Some(State::Ready) => Some(self.deliver(by, None, id, None)),
            Some(State::Delayed(_) | State::Buried(_)) => {
                self.journal(id);
                Some(self.deliver(by, None, id, None))
            }
        }
    }

    fn delete(&mut self, by: SessionId, id: MessageId) -> Answer {
        match self.messages.get(&id).map(|message| message.state) {
            None => return self.not_found(),
            Some(State::Leased(holder, _)) if holder != by => return self.not_found(),
            _ => {}
        }
        self.journal(id);
        let after = self.after(id);
        let message = self.messages.remove(&id).unwrap();
        self.queues.get_mut(&message.queue).unwrap().deleted_total += 1;
        done(after)
    }

    fn release(&mut self, by: SessionId, id: MessageId, priority: u32, delay: Nanos) -> Answer {
        if !self.holds(by, id) {
            return self.not_found();
        }
        if self.release_order == ReleaseOrder::Back {
            self.message(id).order = self.next_message;
            self.next_message += 1;
        }
        let state = self.ready_or_delayed(delay);
        let message = self.message(id);
        (message.priority, message.delay, message.state) = (priority, delay, state);
        message.counters.released += 1;
        self.journal(id);
        done(self.after(id))
    }

    fn bury(&mut self, by: SessionId, id: MessageId, priority: u32) -> Answer {
        if !self.holds(by, id) {
            return self.not_found();
        }
        let place = self.next_buried;
        self.next_buried += 1;
        let message = self.message(id);
        (message.priority, message.state) = (priority, State::Buried(place));
        message.counters.buried += 1;
        self.journal(id);
        done(self.after(id))
    }

    fn kick(&mut self, by: SessionId, link: LinkId, max: u64) -> Answer {
        let Some(queue) = self.session(by).producers.get(&link).cloned() else {
            return refused(Refusal::NoSuchLink);
        };
        let mut chosen = self.buried(&queue);
        if chosen.is_empty() {
            chosen = self.delayed(&queue);
        }
        chosen.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        for &(_, id) in &chosen {
            self.make_ready(id);
        }
        Some((self.after_all(), Reply::Count(chosen.len() as u64)))
    }

    fn kick_message(&mut self, id: MessageId) -> Answer {
        match self.messages.get(&id).map(|message| message.state) {
            Some(State::Buried(_) | State::Delayed(_)) => {
                self.make_ready(id);
                done(self.after(id))
            }
            _ => self.not_found(),
        }
    }

    fn pause(&mut self, name: &QueueName, duration: Nanos) -> Answer {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(name) else { return self.not_found() };
        queue.pause = (duration > Nanos::ZERO).then_some((duration, now + duration));
        queue.paused_total += 1;
        done(DependsOn::NOTHING)
    }

    fn peek(&mut self, by: SessionId, which: Peek) -> Answer {
        let link = match which {
            Peek::Message(id) => return self.found(Some(id)),
            Peek::Ready(link) | Peek::Delayed(link) | Peek::Buried(link) => link,
        };
        let Some(queue) = self.session(by).producers.get(&link).cloned() else {
            return refused(Refusal::NoSuchLink);
        };
        let id = match which {
            Peek::Delayed(_) => self.delayed(&queue).first().map(|(_, id)| *id),
            Peek::Buried(_) => self.buried(&queue).first().map(|(_, id)| *id),
            _ => self.first_ready(|message| message.queue == queue),
        };
        self.found(id)
    }

    fn found(&self, id: Option<MessageId>) -> Answer {
        let Some(message) = id.and_then(|id| self.messages.get(&id)) else {
            return self.not_found();
        };
        let reply = Reply::Found {
            message: id?,
            element: Box::new(model::Element::raw(message.body.clone())),
        };
        Some((self.after(id?), reply))
    }

    fn message_statistics(&self, id: MessageId) -> Answer {
        let Some(message) = self.messages.get(&id) else { return self.not_found() };
        let (state, until) = match message.state {
            State::Ready => (MessageState::Ready, Nanos::ZERO),
            State::Delayed(until) => (MessageState::Delayed, until),
            State::Leased(_, until) => (MessageState::Leased, until),
            State::Buried(_) => (MessageState::Buried, Nanos::ZERO),
        };
        let statistics = MessageStatistics {
            message: id,
            queue: message.queue.clone(),
            state,
            priority: message.priority,
            age: self.now.since(message.created),
            delay: message.delay,
            lease: message.lease,
            time_left: until.since(self.now),
            delivered: message.counters.delivered,
            expired: message.counters.expired,
            released: message.counters.released,
            buried: message.counters.buried,
            kicked: message.counters.kicked,
        };
        Some((self.after_all(), Reply::MessageStatistics(Box::new(statistics))))
    }

    fn queue_statistics(&self, name: &QueueName) -> Answer {
        let Some(queue) = self.queues.get(name) else { return self.not_found() };
        let counts = self.counts(|message| message.queue == *name);
        let consumers = || self.sessions.values().flat_map(|session| session.consumers.values());
        let watching = || consumers().filter(|consumer| consumer.watched.contains(name));
        let producers = self.sessions.values().flat_map(|session| session.producers.values());
        let (pause, until) = queue.pause.unwrap_or_default();
        let bodies = self.messages.values().filter(|message| message.queue == *name);
        let statistics = QueueStatistics {
            queue: name.clone(),
            urgent: counts.urgent,
            ready: counts.ready,
            leased: counts.leased,
            delayed: counts.delayed,
            buried: counts.buried,
            messages_total: queue.messages_total,
            producers: producers.filter(|queue| *queue == name).count() as u64,
            consumers: watching().count() as u64,
            waiting: watching().filter(|consumer| consumer.wait.is_some()).count() as u64,
            deleted_total: queue.deleted_total,
            paused_total: queue.paused_total,
            pause,
            pause_left: until.since(self.now),
            blocked_sends: 0,
            body_bytes: bodies.map(|message| message.body.len() as u64).sum(),
        };
        Some((self.after_all(), Reply::QueueStatistics(Box::new(statistics))))
    }

    pub(crate) fn broker_statistics(&self) -> BrokerStatistics {
        let consumers = self.sessions.values().flat_map(|session| session.consumers.values());
        BrokerStatistics {
            expired_total: self.expired_total,
            messages_total: self.messages_total,
            queues: self.queues.len() as u64,
            waiting: consumers.filter(|consumer| consumer.wait.is_some()).count() as u64,
            ..self.counts(|_| true)
        }
    }

    fn counts(&self, which: impl Fn(&Message) -> bool) -> BrokerStatistics {
        let mut counts = BrokerStatistics::default();
        for message in self.messages.values().filter(|message| which(message)) {
            match message.state {
                State::Ready => {
                    counts.ready += 1;
                    counts.urgent += u64::from(message.priority < 1024);
                }
                State::Delayed(_) => counts.delayed += 1,
                State::Leased(..) => counts.leased += 1,
                State::Buried(_) => counts.buried += 1,
            }
        }
        counts
    }

    /// The longest wait first: serves each consumer that could be served.
    fn serve(&mut self) {
        self.serve_among(|_| true);
    }

    fn serve_among(&mut self, which: impl Fn(&QueueName) -> bool) {
        while let Some((session, link, id)) = self.next_match(&which) {
            let wait = self.session(session).consumers.get_mut(&link).unwrap().wait.take();
            let lease = wait.unwrap().lease;
            let (after, reply) = self.deliver(session, Some(link), id, lease);
            self.outputs.push(Output { session, after, reply });
        }
    }

    fn next_match(
        &self,
        which: impl Fn(&QueueName) -> bool,
    ) -> Option<(SessionId, LinkId, MessageId)> {
        let mut waiting = Vec::new();
        for (session, links) in &self.sessions {
            for (link, consumer) in &links.consumers {
                waiting.extend(consumer.wait.map(|wait| (wait.ticket, *session, *link)));
            }
        }
        waiting.sort_unstable();
        waiting.into_iter().find_map(|(_, session, link)| {
            let watched = &self.sessions[&session].consumers[&link].watched;
            let is_its = |message: &Message| watched.contains(&message.queue);
            let id = self.best(|message| which(&message.queue) && is_its(message))?;
            Some((session, link, id))
        })
    }

    fn deliver(
        &mut self,
        to: SessionId,
        link: Option<LinkId>,
        id: MessageId,
        lease: Option<Nanos>,
    ) -> (DependsOn, Reply) {
        let until = self.now + lease.unwrap_or(self.messages[&id].lease);
        let message = self.message(id);
        message.state = State::Leased(to, until);
        message.counters.delivered += 1;
        let delivery = Delivery {
            link,
            count: message.counters.delivered,
            priority: message.priority,
            created: message.created,
            durability: message.durability,
            ..Delivery::new(id, message.body.clone())
        };
        (self.after(id), Reply::Delivered(Box::new(delivery)))
    }

    fn due(&self) -> Vec<(Nanos, Due)> {
        let mut due = Vec::new();
        for (id, message) in &self.messages {
            match message.state {
                State::Delayed(until) => due.push((until, Due::Delay(*id))),
                State::Leased(_, until) => due.push((until, Due::Lease(*id))),
                _ => {}
            }
        }
        for (index, queue) in self.queues.values().enumerate() {
            due.extend(queue.pause.map(|(_, until)| (until, Due::Pause(index))));
        }
        for (id, session) in &self.sessions {
            let soonest = self.held(*id).into_iter().min().map(|(until, _)| until);
            for (link, consumer) in &session.consumers {
                let Some(wait) = consumer.wait else { continue };
                due.extend(wait.until.map(|until| (until, Due::Wait(*id, *link))));
                if let Some(soonest) = soonest.filter(|_| wait.margin > Nanos::ZERO) {
                    let begins = Nanos(soonest.since(wait.margin).0);
                    due.push((begins, Due::Margin(*id, *link)));
                }
            }
        }
        due
    }

    fn fire(&mut self, due: Due) {
        match due {
            Due::Delay(id) => self.message(id).state = State::Ready,
            Due::Pause(index) => self.queues.values_mut().nth(index).unwrap().pause = None,
            Due::Lease(id) => {
                self.expired_total += 1;
                let message = self.message(id);
                message.state = State::Ready;
                message.counters.expired += 1;
            }
            Due::Margin(session, link) => self.give_up(session, link, Reply::LeaseEnding),
            Due::Wait(session, link) => {
                self.give_up(session, link, Reply::TimedOut { link: Some(link) })
            }
        }
    }

    fn give_up(&mut self, session: SessionId, link: LinkId, reply: Reply) {
        self.session(session).consumers.get_mut(&link).unwrap().wait = None;
        self.outputs.push(Output { session, after: self.after_all(), reply });
    }

    fn make_ready(&mut self, id: MessageId) {
        let message = self.message(id);
        message.state = State::Ready;
        message.counters.kicked += 1;
        self.journal(id);
    }

    /// A change of this message goes into the frame of this command.
    fn journal(&mut self, id: MessageId) {
        let next = self.last.next();
        let message = self.messages.get_mut(&id).unwrap();
        if message.durability != Durability::None {
            message.changed = next;
            self.frame = self.frame.max(message.durability);
        }
    }

    fn drop_idle_queues(&mut self) {
        let mut used: BTreeSet<QueueName> =
            self.messages.values().map(|message| message.queue.clone()).collect();
        for session in self.sessions.values() {
            used.extend(session.producers.values().cloned());
            used.extend(session.consumers.values().flat_map(|c| c.watched.iter().cloned()));
        }
        self.queues.retain(|name, _| used.contains(name));
    }

    /// The most urgent ready message of unpaused queues.
    fn best(&self, which: impl Fn(&Message) -> bool) -> Option<MessageId> {
        self.first_ready(|message| which(message) && self.queues[&message.queue].pause.is_none())
    }

    fn first_ready(&self, which: impl Fn(&Message) -> bool) -> Option<MessageId> {
        let ready = self.messages.iter().filter(|(_, message)| message.state == State::Ready);
        let chosen = ready.filter(|(_, message)| which(message));
        let key = |message: &Message| (message.priority, message.order);
        chosen.min_by_key(|(_, message)| key(message)).map(|(id, _)| *id)
    }

    fn delayed(&self, queue: &QueueName) -> Vec<(u64, MessageId)> {
        self.sorted(queue, |state| match state {
            State::Delayed(until) => Some(until.0),
            _ => None,
        })
    }

    fn buried(&self, queue: &QueueName) -> Vec<(u64, MessageId)> {
        self.sorted(queue, |state| match state {
            State::Buried(place) => Some(place),
            _ => None,
        })
    }

    fn sorted(
        &self,
        queue: &QueueName,
        key: impl Fn(State) -> Option<u64>,
    ) -> Vec<(u64, MessageId)> {
        let of_queue = self.messages.iter().filter(|(_, message)| message.queue == *queue);
        let mut chosen: Vec<_> =
            of_queue.filter_map(|(id, message)| Some((key(message.state)?, *id))).collect();
        chosen.sort_unstable();
        chosen
    }

    fn held(&self, by: SessionId) -> Vec<(Nanos, MessageId)> {
        let of = |message: &Message| match message.state {
            State::Leased(holder, until) if holder == by => Some(until),
            _ => None,
        };
        self.messages.iter().filter_map(|(id, message)| Some((of(message)?, *id))).collect()
    }

    fn holds(&self, by: SessionId, id: MessageId) -> bool {
        self.held(by).iter().any(|(_, held)| *held == id)
    }

    fn ready_or_delayed(&self, delay: Nanos) -> State {
        if delay == Nanos::ZERO { State::Ready } else { State::Delayed(self.now + delay) }
    }

    fn message(&mut self, id: MessageId) -> &mut Message {
        self.messages.get_mut(&id).unwrap()
    }

    fn session(&mut self, id: SessionId) -> &mut Session {
        self.sessions.get_mut(&id).unwrap()
    }

    fn not_found(&self) -> Answer {
        Some((self.after_all(), Reply::NotFound))
    }

    fn after(&self, id: MessageId) -> DependsOn {
        let message = &self.messages[&id];
        DependsOn::new(message.changed, message.durability)
    }

    fn after_all(&self) -> DependsOn {
        match self.frame {
            Durability::None => self.after_last,
            level => DependsOn::new(self.last.next(), level),
        }
    }
}

fn done(after: DependsOn) -> Answer {
    Some((after, Reply::Done))
}

fn refused(refusal: Refusal) -> Answer {
    Some((DependsOn::NOTHING, Reply::Refused(refusal)))
}
