//! Views: the ready messages of a queue that match a selector, in their order.
//!
//! Consumers of one selector share a view. It is updated with every message that becomes ready or
//! ceases to be. So a message is held against a selector once, however many deliveries follow. When
//! the first such consumer comes, the view is made in steps. It is valid up to the place of the
//! scan. Nothing behind that is delivered, for a message before it may be missing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Formats, MessageId, Refusal, limits};
use selector::Selector;

use crate::bodies::Bodies;
use crate::collections::order_set::OrderSet;
use crate::collections::pages::Pages;
use crate::delivery::View;
use crate::delivery::matching::{Seen, looks_of, steps_of};
use crate::ids::{ConsumerKey, QueueSlot};
use crate::store::MessageStore;
use crate::store::dispatch::{DispatchList, Entry, ReadyPlace};
use crate::store::message::Message;
use crate::store::message_groups::MessageGroups;
use crate::store::queue::{Queue, QueueDelivery, whose_place};

/// The bodies that are here, and how they are read.
#[derive(Clone, Copy)]
struct BodyReader<'e> {
    bodies: &'e Bodies,
    formats: &'e Formats,
}

impl View {
    fn new(selector: Selector) -> Self {
        let (dispatch, unseen) = (DispatchList::default(), OrderSet::default());
        Self { selector, dispatch, consumers: 0, scan: Some((0, i64::MIN)), unseen }
    }

    /// The consumer to be served next, by its ticket, and with which message, if it is certain that
    /// nothing before that matches.
    pub(crate) fn next(&self) -> Option<(u64, ConsumerKey, ReadyPlace)> {
        let (ticket, key, first) = self.dispatch.next()?;
        let certain = self.scan.is_none_or(|scan| first < scan);
        let seen = self.unseen.first().is_none_or(|unseen| first < unseen);
        (certain && seen).then_some((ticket, key, first))
    }
}

impl View {
    /// Shows a ready message if it matches, or passes it by if its body is away and cannot be seen.
    fn look_into(&mut self, seen: Option<&Seen<'_>>, entry: Entry) {
        match seen {
            Some(seen) if !seen.matches(&self.selector) => {}
            Some(_) => {
                self.dispatch.insert(entry);
            }
            None => {
                let (priority, order) = entry.place;
                self.unseen.insert(priority, order);
            }
        }
    }

    /// Looks at those that were passed by, as far as their bodies are here now; how many.
    fn look_again(
        &mut self,
        messages: &Pages<Box<Message>>,
        reordered: &Pages<MessageId>,
        groups: Option<&MessageGroups>,
        bodies: BodyReader<'_>,
        max: usize,
    ) -> usize {
        let mut looked = 0;
        while let Some((priority, order)) = self.unseen.first()
            && looked < max
        {
            looked += looks_of(&self.selector);
            let id = whose_place(reordered, order);
            let Some(message) = messages.get(id.0) else { break };
            let Some(seen) = bodies.of(message) else { break };
            self.unseen.remove(priority, order);
            self.look_into(Some(&seen), MessageGroups::entry(groups, id, message));
        }
        looked
    }
}

impl<'e> BodyReader<'e> {
    /// A message as selectors see it, unless its body is away.
    fn of(self, message: &'e Message) -> Option<Seen<'e>> {
        let body = self.bodies.here(message)?;
        Some(Seen::of(message, body, self.formats))
    }
}

impl Queue {
    /// A ready message goes; how many views were told.
    pub(crate) fn unindex_from_views(&mut self, entry: Entry) -> u64 {
        let (priority, order) = entry.place;
        for view in self.delivery.views.values_mut() {
            view.dispatch.remove(entry);
            view.unseen.remove(priority, order);
        }
        self.delivery.views.len() as u64
    }

    /// A view is still being made.
    pub(crate) fn is_scanning(&self) -> bool {
        self.delivery.views.values().any(|view| view.scan.is_some())
    }

    /// A view has not looked into all messages that it has passed by.
    pub(crate) fn has_unseen(&self) -> bool {
        self.delivery.views.values().any(|view| view.unseen.first().is_some())
    }

    /// One more consumer has this selector.
    pub(crate) fn join_view(&mut self, selector: Selector) -> Result<Arc<str>, Refusal> {
        let text: Arc<str> = match self.delivery.views.get_key_value(selector.text()) {
            Some((text, _)) => Arc::clone(text),
            None if self.has_no_room_for(&selector) => return Err(Refusal::TooManySelectors),
            None => selector.text().into(),
        };
        let has_groups = self.delivery.groups.is_some();
        let view = self.delivery.views.entry(Arc::clone(&text)).or_insert_with(|| {
            let mut view = View::new(selector);
            if has_groups {
                view.dispatch.begin_groups();
            }
            view
        });
        view.consumers += 1;
        Ok(text)
    }

    /// True if to hold each message against one selector more would take too long.
    fn has_no_room_for(&self, selector: &Selector) -> bool {
        let weights = self.delivery.views.values().map(|view| view.selector.weight());
        let weight = weights.sum::<usize>() + selector.weight();
        self.delivery.views.len() >= limits::QUEUE_SELECTORS_MAX
            || weight > limits::SELECTORS_WEIGHT_MAX
    }

    /// One consumer less has this selector.
    pub(crate) fn part_view(&mut self, text: &str) {
        let view =
            self.delivery.views.get_mut(text).expect("invariant: a view stays with its consumers");
        assert!(view.consumers > 0, "a view stays with its consumers");
        view.consumers -= 1;
        if view.consumers == 0 {
            assert!(
                view.dispatch.waiting().is_empty(),
                "who waits for a view is one of its consumers"
            );
            self.delivery.views.remove(text);
        }
    }
}

impl Bodies {
    /// A message became ready.
    pub(crate) fn index_in_views(&self, slot: QueueSlot, id: MessageId, store: &mut MessageStore) {
        let MessageStore { queues, messages, .. } = store;
        let queue = queues.at_mut(slot);
        if queue.delivery.views.is_empty() {
            return;
        }
        let Some(message) = messages.get(id.0) else { return };
        let entry = queue.entry_of(id, message);
        let seen = BodyReader { bodies: self, formats: self.formats() }.of(message);
        let mut steps = 0;
        for view in queue.delivery.views.values_mut() {
            view.look_into(seen.as_ref(), entry);
            steps += steps_of(&view.selector);
        }
        store.took_steps(steps);
    }

    /// Looks at the next messages for the views that are being made. No effect where none is.
    pub(crate) fn scan_views(&self, slot: QueueSlot, store: &mut MessageStore) {
        let MessageStore { queues, messages, reordered, .. } = store;
        let bodies = BodyReader { bodies: self, formats: self.formats() };
        let QueueDelivery { views, dispatch, groups, .. } = &mut queues.at_mut(slot).delivery;
        let (ready, groups) = (dispatch.ready(), groups.as_deref());
        let (mut looked, mut steps) = (0, 0);
        for view in views.values_mut() {
            let before = looked;
            while let Some(scan) = view.scan
                && looked < limits::SCAN_MESSAGES_MAX
            {
                looked += looks_of(&view.selector);
                let found = ready.first_from(scan.0, scan.1);
                view.scan = found.map(|(priority, order)| (priority, order + 1));
                let Some((_, order)) = found else { break };
                let id = whose_place(reordered, order);
                let Some(message) = messages.get(id.0) else { continue };
                let entry = MessageGroups::entry(groups, id, message);
                view.look_into(bodies.of(message).as_ref(), entry);
            }
            looked +=
                view.look_again(messages, reordered, groups, bodies, limits::SCAN_MESSAGES_MAX);
            let looks = looks_of(&view.selector);
            steps += (looked - before).div_ceil(looks) * steps_of(&view.selector);
        }
        store.took_steps(steps);
    }

    /// Awaits the bodies that views of a queue have not seen.
    pub(crate) fn await_unseen(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let views = store.queues.at(slot).delivery.views.values();
        let unseen: Vec<_> = views.filter_map(|view| view.unseen.first()).collect();
        for (_, order) in unseen {
            // More may have come at once than one step looks into.
            if !self.want(store.message_of(order), store) {
                store.resume_later(slot);
            }
        }
        self.await_for_views(slot);
    }
}
