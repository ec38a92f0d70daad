//! Consumers with a limit: each is given messages until it has had as many as it allows.
//!
//! Such a consumer holds its messages without a lease, until it settles them or its session ends.
//! The consumers of one queue take turns: the one that was served least recently is served first. A
//! consumer keeps its place while it has no credit, so that one which polls loses no turn by it.
//! They wait at the queue, or at the view of their selector. Consumers that receive one by one wait
//! in the same line, each with the place of the moment at which it began to wait.
//!
//! A consumer that drains its credit is told once no message is there for it. It is not told before
//! expired messages have gone and its view is made, for until then there may be one.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{ConsumerMode, LinkId, Nanos, Refusal, Reply};
use selector::Selector;

use crate::Effects;
use crate::bodies::Bodies;
use crate::delivery::{Allowance, Browsing, CreditConsumer, Interest, Turn};
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::dispatch::DispatchList;
use crate::store::queue::Queue;
use crate::store::timers::Timer;

impl CreditConsumer {
    /// Of this queue, without credit.
    pub(crate) const fn new(queue: QueueSlot, interest: Interest) -> Self {
        Self {
            queue,
            interest,
            limit: 0,
            delivered: 0,
            bytes_limit: u64::MAX,
            bytes: 0,
            draining: false,
        }
    }

    pub(crate) const fn queue(&self) -> QueueSlot {
        self.queue
    }

    pub(crate) const fn interest(&self) -> &Interest {
        &self.interest
    }

    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(crate) const fn draining(&self) -> bool {
        self.draining
    }

    /// True if it takes messages, and does not only look at them.
    pub(crate) const fn takes(&self) -> bool {
        matches!(self.interest, Interest::Take { .. })
    }

    /// It may have had so many messages and bytes. If it drains, it is told when there are no more.
    pub(crate) fn allow(&mut self, allowance: Allowance, drain: bool) {
        self.limit = allowance.messages.max(self.delivered);
        self.bytes_limit = allowance.bytes;
        self.draining = drain;
    }

    /// It has had all that it may.
    fn end_credit(&mut self) {
        self.draining = false;
        self.limit = self.delivered;
    }

    /// It got more than it may, for a test of [`Engine::check`].
    #[cfg(test)]
    pub(crate) fn exceed_limit(&mut self) {
        self.delivered = self.limit + 1;
    }

    /// It may have more.
    pub(crate) fn has_credit(&self) -> bool {
        self.delivered < self.limit && self.bytes < self.bytes_limit
    }

    /// It may have more messages, and is given none before it may have more bytes.
    pub(crate) fn is_held_back(&self) -> bool {
        self.delivered < self.limit && self.bytes >= self.bytes_limit
    }

    /// Its place among the consumers that wait.
    pub(crate) fn ticket(&self) -> Option<u64> {
        match self.interest {
            Interest::Take { turn, .. } => turn.ticket,
            Interest::Browse(_) => None,
        }
    }

    fn turn_mut(&mut self) -> Option<&mut Turn> {
        match &mut self.interest {
            Interest::Take { turn, .. } => Some(turn),
            Interest::Browse(_) => None,
        }
    }

    /// The selector by which it takes messages.
    pub(crate) fn view(&self) -> Option<&Arc<str>> {
        match &self.interest {
            Interest::Take { view, .. } => view.as_ref(),
            Interest::Browse(_) => None,
        }
    }
}

impl Bodies {
    /// Opens a consumer of this queue under a link that is not in use.
    pub(crate) fn open_credit_consumer(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        selector: Option<Selector>,
        mode: ConsumerMode,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Result<(), Refusal> {
        assert!(!sessions.is_consumer(key), "a link is opened once");
        let queue = store.queues.at_mut(slot);
        let interest = match mode {
            ConsumerMode::Browse => Interest::Browse(Browsing::new(selector)),
            ConsumerMode::Take => {
                let view = selector.map(|selector| queue.join_view(selector)).transpose()?;
                Interest::Take { view, turn: Turn::default() }
            }
        };
        queue.let_catch_up();
        queue.delivery.consumers.insert(key);
        self.scan_views(slot, store);
        let credit_consumer = CreditConsumer::new(slot, interest);
        let takes = credit_consumer.takes();
        sessions.at_mut(key.session).open_credit_consumer(key.link, credit_consumer);
        if takes {
            sessions.inherit_groups(key, slot, store);
        }
        Ok(())
    }
}

impl Queue {
    /// The list of the consumers that want messages of this view.
    fn dispatch_of(&mut self, view: Option<&Arc<str>>) -> &mut DispatchList {
        let Some(text) = view else { return &mut self.delivery.dispatch };
        let view =
            self.delivery.views.get_mut(text).expect("invariant: a view stays with its consumers");
        &mut view.dispatch
    }
}

impl Sessions {
    /// True if this link is open as a consumer of either kind.
    pub(crate) fn is_consumer(&self, key: ConsumerKey) -> bool {
        self.credit_consumer(key).is_some() || self.consumer(key).is_some()
    }

    /// Ends the credit of a session's consumers at the messages that they have had. No client is
    /// told.
    pub(crate) fn stop_consumers(&mut self, by: SessionSlot, store: &mut MessageStore) {
        let links: Vec<LinkId> = self.at(by).credit_consumers().keys().copied().collect();
        store.took_steps(links.len());
        for link in links {
            let key = ConsumerKey { session: by, link };
            let Some(credit_consumer) = self.credit_consumer_mut(key) else { continue };
            credit_consumer.end_credit();
            let slot = credit_consumer.queue;
            self.line_up(key, store);
            store.queues.at_mut(slot).delivery.draining.remove(&key);
        }
    }

    /// A consumer got a message, which counts for so many bytes: the others are before it now.
    pub(crate) fn record_delivery(
        &mut self,
        key: ConsumerKey,
        charge: u64,
        store: &mut MessageStore,
        log: &FrameWriter,
        effects: &mut Effects,
    ) {
        let Some(credit_consumer) = self.credit_consumer_mut(key) else { return };
        assert!(credit_consumer.has_credit(), "a consumer gets no more than it may");
        credit_consumer.delivered += 1;
        credit_consumer.bytes += charge;
        if let Some(turn) = credit_consumer.turn_mut() {
            turn.place = Some(store.ticket());
        }
        if credit_consumer.has_credit() {
            self.line_up_behind(key, store);
        } else {
            self.line_up(key, store);
            self.end_drain(key, store, log, effects);
        }
    }

    /// Lets a consumer wait if it may have more and be gone from the line if not.
    pub(crate) fn line_up(&mut self, key: ConsumerKey, store: &mut MessageStore) {
        let Some(credit_consumer) = self.credit_consumer_mut(key) else { return };
        let (has_credit, slot) = (credit_consumer.has_credit(), credit_consumer.queue);
        let Interest::Take { view, turn } = &mut credit_consumer.interest else { return };
        match turn.ticket {
            None if has_credit => {
                let place = *turn.place.get_or_insert_with(|| store.ticket());
                turn.ticket = turn.place;
                let view = view.clone();
                self.seat_lone(slot, store);
                store.queues.at_mut(slot).dispatch_of(view.as_ref()).wait(place, key);
                store.count_waiting();
            }
            Some(ticket) if !has_credit => {
                let dispatch = store.queues.at_mut(slot).dispatch_of(view.as_ref());
                let was_in_list = dispatch.stop_waiting(ticket);
                assert!(was_in_list, "a waiting consumer is in its list");
                turn.ticket = None;
                store.uncount_waiting();
            }
            _ => {}
        }
    }

    /// Lets a consumer that waits do so at its new place, behind all others. One that waits alone
    /// need not move before another comes.
    fn line_up_behind(&mut self, key: ConsumerKey, store: &mut MessageStore) {
        let Some(credit_consumer) = self.credit_consumer_mut(key) else { return };
        let Interest::Take { view, turn: Turn { place: Some(place), ticket: Some(ticket) } } =
            &mut credit_consumer.interest
        else {
            return;
        };
        let queue = store.queues.at_mut(credit_consumer.queue);
        if queue.delivery.views.is_empty() && queue.delivery.dispatch.waiting().len() == 1 {
            return;
        }
        let dispatch = queue.dispatch_of(view.as_ref());
        let was_in_list = dispatch.stop_waiting(*ticket);
        assert!(was_in_list, "a waiting consumer is in its list");
        dispatch.wait(*place, key);
        *ticket = *place;
    }

    /// Another consumer is about to wait at this queue: one that waits there alone takes its own
    /// place.
    pub(crate) fn seat_lone(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let dispatch = &mut store.queues.at_mut(slot).delivery.dispatch;
        let waiting = dispatch.waiting();
        let Some((ticket, key)) = waiting.first_key_value().filter(|_| waiting.len() == 1) else {
            return;
        };
        let (ticket, key) = (*ticket, *key);
        let turn = self.credit_consumer_mut(key).and_then(CreditConsumer::turn_mut);
        if let Some(turn) = turn
            && let Some(place) = turn.place.filter(|place| *place != ticket)
        {
            turn.ticket = Some(place);
            dispatch.stop_waiting(ticket);
            dispatch.wait(place, key);
        }
    }

    /// Tells draining consumers that nothing more is there for them, if that is certain.
    pub(crate) fn end_drains(
        &mut self,
        slot: QueueSlot,
        store: &mut MessageStore,
        log: &FrameWriter,
        effects: &mut Effects,
    ) {
        let Some(queue) = store.queues.get(slot) else { return };
        let is_unsure = queue.is_expiring(store.latest) && queue.delivery.pause.is_none();
        if queue.delivery.draining.is_empty() || is_unsure {
            return;
        }
        let draining: Vec<_> = queue.delivery.draining.iter().copied().collect();
        store.took_steps(draining.len());
        for key in draining {
            self.end_drain(key, store, log, effects);
        }
    }

    /// Tells a draining consumer that it has had all; its limit is now the count that it had. As at
    /// the end of a wait, a change that is not durable yet may have emptied the queue.
    pub(crate) fn end_drain(
        &mut self,
        key: ConsumerKey,
        store: &mut MessageStore,
        log: &FrameWriter,
        effects: &mut Effects,
    ) {
        let Some(credit_consumer) = self.credit_consumer_mut(key) else { return };
        // A consumer that is held back is told when it may have more again, or there is no more.
        if !credit_consumer.draining || credit_consumer.is_held_back() {
            return;
        }
        credit_consumer.end_credit();
        let (slot, delivered) = (credit_consumer.queue, credit_consumer.delivered);
        self.line_up(key, store);
        store.queues.at_mut(slot).delivery.draining.remove(&key);
        let reply = Reply::Drained { link: key.link, delivered };
        effects.reply(self.at(key.session).id(), log.after_all(), reply);
    }
}

impl Sessions {
    /// Forgets a consumer with a limit; the messages that it holds stay held. Gives the queue it
    /// was at, which may now be idle; `None` when it was not there.
    pub(crate) fn close_credit_consumer(
        &mut self,
        key: ConsumerKey,
        store: &mut MessageStore,
    ) -> Option<QueueSlot> {
        let credit_consumer = self.credit_consumer_mut(key)?;
        credit_consumer.limit = credit_consumer.delivered;
        self.line_up(key, store);
        let credit_consumer = self.at_mut(key.session).close_credit_consumer(key.link)?;
        let queue = store.queues.at_mut(credit_consumer.queue);
        queue.delivery.draining.remove(&key);
        queue.delivery.browsers.remove(&key);
        let was_known = queue.delivery.consumers.remove(&key);
        assert!(was_known, "a queue knows its consumers");
        match credit_consumer.interest {
            Interest::Take { view: Some(view), .. } => queue.part_view(&view),
            Interest::Take { view: None, .. } => {}
            Interest::Browse(browsing) => {
                store.timers.change(Timer::Browse(key), browsing.resumes, None);
            }
        }
        self.release_groups(key, credit_consumer.queue, store);
        store.may_have_caught_up(credit_consumer.queue);
        Some(credit_consumer.queue)
    }
}

impl MessageStore {
    /// Expired messages went otherwise than by time: draining consumers are told soon if no message
    /// is left.
    pub(crate) fn end_drains_later(&mut self, slot: QueueSlot) {
        if self.queues.get(slot).is_some_and(|queue| !queue.delivery.draining.is_empty()) {
            self.resume_later(slot);
        }
    }

    /// A step left something to do, a delivery or a view: the queue goes on with it, by time, at
    /// once.
    pub(crate) fn resume_later(&mut self, slot: QueueSlot) {
        self.resume_at(slot, self.latest);
    }

    /// The same, at this moment; a moment that is set already stays.
    pub(crate) fn resume_at(&mut self, slot: QueueSlot, at: Nanos) {
        let queue = self.queues.at_mut(slot);
        if queue.delivery.resumes.is_none() {
            queue.delivery.resumes = Some(at);
            self.timers.change(Timer::Resume(slot), None, Some(at));
        }
    }
}
