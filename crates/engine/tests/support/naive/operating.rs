//! Commands of operators, told a second time.

use model::{
    AdminCommand, BrowsedMessage, Delivery, Holder, MessageId, MessageState, Nanos, Page, PageEnd,
    QueueName, Refusal, Reply,
};

use super::{Answer, Message, Naive, State, refused};

/// A place of a walk, and whether it is of a message that is looked for.
type Passed = (PageEnd, bool);

impl Naive {
    pub(super) fn administer(&mut self, command: AdminCommand) -> Answer {
        match command {
            AdminCommand::Browse { queue, state, selector: None, after, max } => {
                self.page(&queue, state, after, max)
            }
            AdminCommand::Show { message } if self.messages.contains_key(&message) => {
                self.reflect(Reply::Page(Box::new(Page {
                    messages: vec![self.shown(message)],
                    next: None,
                })))
            }
            AdminCommand::Show { .. } => self.not_found(),
            AdminCommand::Purge { queue, state, selector: None, after } => {
                let Some(chosen) = self.unheld(&queue, state, after) else {
                    return self.not_found();
                };
                self.delete_all(&chosen);
                self.reflect(Reply::Count(chosen.len() as u64))
            }
            AdminCommand::MoveMessages {
                from,
                to,
                message,
                selector: None,
                before,
                max,
                after,
            } => {
                let after = after.filter(|_| message.is_none());
                let Some(mut chosen) = self.unheld(&from, None, after) else {
                    return self.not_found();
                };
                if let Some(message) = message {
                    chosen.retain(|id| *id == message);
                    if chosen.is_empty() {
                        return self.not_found();
                    }
                }
                chosen.retain(|id| *id < before && self.messages[id].order < before.0);
                let count = self.move_all(&chosen, to.as_ref(), max);
                self.reflect(Reply::Count(count))
            }
            AdminCommand::Delete { queue } => self.delete_queue(&queue),
            AdminCommand::NextMessage => {
                self.reflect(Reply::Stored { message: MessageId(self.next_message) })
            }
            other => panic!("{other:?} is not of the workload"),
        }
    }

    fn page(
        &self,
        queue: &QueueName,
        state: Option<MessageState>,
        after: Option<PageEnd>,
        max: usize,
    ) -> Answer {
        if !self.queues.contains_key(queue) {
            return self.not_found();
        }
        let (mut messages, mut next) = (Vec::new(), None);
        for (place, is_found) in self.places(queue, state, after) {
            if messages.len() == max {
                return self.reflect(Reply::Page(Box::new(Page { messages, next })));
            }
            next = Some(place);
            messages.extend(is_found.then(|| self.shown(place.message)));
        }
        self.reflect(Reply::Page(Box::new(Page { messages, next: None })))
    }

    /// All places in their order, and which are of the queue: held messages are among all messages.
    fn places(
        &self,
        queue: &QueueName,
        state: Option<MessageState>,
        after: Option<PageEnd>,
    ) -> Vec<Passed> {
        let holds = self.messages.values().any(|it| it.queue == *queue && is_held(it));
        let mut places = Vec::new();
        for (id, message) in &self.messages {
            let is_its = message.queue == *queue;
            if holds {
                let place =
                    PageEnd { state: MessageState::Leased, priority: 0, place: id.0, message: *id };
                places.push((place, is_its && is_held(message)));
            }
            if is_its && !is_held(message) {
                places.push((place_of(*id, message), true));
            }
        }
        places.sort_by_key(|(place, _)| key(place));
        places.retain(|(place, _)| state.is_none_or(|state| state == place.state));
        places.retain(|(place, _)| after.is_none_or(|after| key(&after) < key(place)));
        places
    }

    fn unheld(
        &self,
        queue: &QueueName,
        state: Option<MessageState>,
        after: Option<PageEnd>,
    ) -> Option<Vec<MessageId>> {
        self.queues.get(queue)?;
        let places = self.places(queue, state, after).into_iter();
        let unheld = places.filter(|(place, _)| place.state != MessageState::Leased);
        Some(unheld.map(|(place, _)| place.message).collect())
    }

    fn delete_all(&mut self, chosen: &[MessageId]) {
        for id in chosen {
            self.journal(*id);
            let message = self.messages.remove(id).unwrap();
            self.queues.get_mut(&message.queue).unwrap().deleted_total += 1;
        }
    }

    fn move_all(&mut self, chosen: &[MessageId], to: Option<&QueueName>, max: u64) -> u64 {
        let Some(to) = to else { return 0 };
        let chosen = &chosen[..chosen.len().min(usize::try_from(max).unwrap_or(usize::MAX))];
        for id in chosen {
            let order = self.next_message;
            self.next_message += 1;
            let message = self.message(*id);
            (message.queue, message.order, message.state) = (to.clone(), order, State::Ready);
            self.queues.entry(to.clone()).or_default().messages_total += 1;
            self.journal(*id);
        }
        chosen.len() as u64
    }

    fn delete_queue(&mut self, queue: &QueueName) -> Answer {
        let Some(chosen) = self.unheld(queue, None, None) else { return self.not_found() };
        let mut consumers = self.sessions.values().flat_map(|session| session.consumers.values());
        let is_watched = consumers.any(|consumer| consumer.watched.contains(queue));
        if is_watched || self.messages.values().any(|it| it.queue == *queue && is_held(it)) {
            return refused(Refusal::QueueInUse);
        }
        self.delete_all(&chosen);
        self.reflect(Reply::Done)
    }

    fn shown(&self, id: MessageId) -> BrowsedMessage {
        let message = &self.messages[&id];
        let (state, until) = shown_state(message);
        let delivery = Delivery {
            count: message.counters.delivered,
            priority: message.priority,
            created: message.created,
            durability: message.durability,
            ..Delivery::new(id, message.body.clone())
        };
        BrowsedMessage {
            queue: message.queue.clone(),
            state,
            time_left: until.since(self.now),
            holder: holder(message),
            delivery: Box::new(delivery),
        }
    }

    fn reflect(&self, reply: Reply) -> Answer {
        Some((self.after_all(), reply))
    }
}

fn is_held(message: &Message) -> bool {
    matches!(message.state, State::Leased(..))
}

fn holder(message: &Message) -> Option<Box<Holder>> {
    let State::Leased(session, _) = message.state else { return None };
    Some(Box::new(Holder { session, name: None, client: None, held: None }))
}

fn shown_state(message: &Message) -> (MessageState, Nanos) {
    match message.state {
        State::Ready => (MessageState::Ready, Nanos::ZERO),
        State::Delayed(until) => (MessageState::Delayed, until),
        State::Leased(_, until) => (MessageState::Leased, until),
        State::Buried(_) => (MessageState::Buried, Nanos::ZERO),
    }
}

fn place_of(message: MessageId, of: &Message) -> PageEnd {
    let (state, until) = shown_state(of);
    let (priority, place) = match of.state {
        State::Ready => (of.priority, of.order),
        State::Buried(place) => (0, place),
        _ => (0, until.0),
    };
    PageEnd { state, priority, place, message }
}

/// The key that sorts places.
fn key(place: &PageEnd) -> (usize, u32, u64, MessageId) {
    let order =
        [MessageState::Ready, MessageState::Leased, MessageState::Delayed, MessageState::Buried];
    let section = order.iter().position(|state| *state == place.state).unwrap();
    (section, place.priority, place.place, place.message)
}
