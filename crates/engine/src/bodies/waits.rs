//! Waits for bodies that left memory: of selectors, and of commands that compare elements.
//!
//! A command waits as a whole, before it has done anything. It is performed when all bodies that it
//! needs are in memory. Such commands take turns, since the log is read piece by piece. Only the
//! bodies that the first of them needs are fetched and kept. So memory holds no more than one
//! command may ask for, however many wait. A browser stands still; a view of a selector shows
//! nothing behind a message that it has not seen. The caller fetches the [`Bodies::wanted_frame`],
//! one after the other, and gives it to [`Engine::restore`]. Then the waiting commands, browsers
//! and views go on, by a timer that is due at once. For bodies in the spill see `spilling.rs`.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::{BodyPlace, Lsn, MessageId, SessionId};
use records::{RecordError, RecordView, Records};

use crate::admission::{Admission, WaitListId};
use crate::bodies::memory::paged_out_of;
use crate::bodies::{Awaited, Bodies, Looker, Turn};
use crate::demand::Demand;
use crate::ids::{ConsumerKey, QueueSlot};
use crate::replies::ReplyBudget;
use crate::store::MessageStore;
use crate::store::message::State;
use crate::store::queue::Queue;

/// A message, and its body.
pub type StoredBody = (MessageId, Arc<[u8]>);

/// The bodies that a frame stored for these messages, in its order. Copies of one share it.
///
/// # Errors
/// When the frame is damaged, or has none for one of them.
pub fn stored_bodies(
    payload: &[u8],
    mut messages: BTreeSet<MessageId>,
) -> Result<Vec<StoredBody>, RecordError> {
    let mut found = Vec::with_capacity(messages.len());
    let mut records = Records::new(payload);
    while !messages.is_empty()
        && let Some(record) = records.next()
    {
        match record?.0 {
            RecordView::Message { envelope, body } if messages.remove(&envelope.message) => {
                found.push((envelope.message, Arc::from(body)));
            }
            RecordView::Shared { copies, body } => {
                let copies = copies.iter().map(|copy| copy.message);
                let asked: Vec<_> = copies.filter(|copy| messages.remove(copy)).collect();
                let body = (!asked.is_empty()).then(|| Arc::<[u8]>::from(body));
                found.extend(asked.into_iter().zip(body.into_iter().cycle()));
            }
            _ => {}
        }
    }
    match messages.pop_first() {
        Some(missing) => Err(RecordError::MissingBody(missing)),
        None => Ok(found),
    }
}

impl Looker {
    /// Bytes that it takes meanwhile. A send in a wait list is counted there.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Command { command, .. } => Demand::of(command).waiting_bytes(),
            Self::WaitList(_) => 0,
        }
    }
}

impl Awaited {
    /// A body is not any more where it was.
    pub(crate) fn has_left(&mut self, paged_out: (BodyPlace, MessageId)) {
        let was_unseen = self.unseen.remove(&paged_out);
        let was_last = self.turn.missing.remove(&paged_out) && self.turn.missing.is_empty();
        self.is_disturbed |= was_unseen || was_last;
    }

    /// A command that waits for a body may have no message with it any more.
    pub(crate) fn may_have_left(&mut self, paged_out: (BodyPlace, MessageId)) {
        self.is_disturbed |= self.unseen.contains(&paged_out);
    }

    /// True if a body stays in memory because a command, browser or view awaits it and more.
    pub(crate) fn keeps(&self, id: MessageId) -> bool {
        self.coming.contains(&id) || self.turn.needed.contains(&id)
    }

    pub(crate) fn wants(&self, paged_out: (BodyPlace, MessageId)) -> bool {
        self.unseen.contains(&paged_out) || self.turn.missing.contains(&paged_out)
    }

    /// The first frame with an awaited body.
    fn wanted_frame(&self) -> Option<Lsn> {
        let frame = |(place, _): &(BodyPlace, MessageId)| match place {
            BodyPlace::Frame(lsn) => Some(*lsn),
            BodyPlace::Spill(_) => None,
        };
        // Frames come before the places of the spill.
        let firsts = self.unseen.first().into_iter().chain(self.turn.missing.first());
        firsts.filter_map(frame).min()
    }

    /// True if a body of that frame is awaited.
    fn wants_frame(&self, lsn: Lsn) -> bool {
        let place = BodyPlace::Frame(lsn);
        let all = (place, MessageId(0))..=(place, MessageId(u64::MAX));
        self.unseen.range(all.clone()).chain(self.turn.missing.range(all)).next().is_some()
    }

    /// The first awaited body that the spill has.
    fn wanted_of_spill(&self) -> Option<NonZeroU64> {
        let all = (BodyPlace::Spill(NonZeroU64::MIN), MessageId(0))..;
        let first = |places: &BTreeSet<_>| places.range(all.clone()).next().copied();
        let found = first(&self.turn.missing).or_else(|| first(&self.unseen));
        found.and_then(|(place, _)| match place {
            BodyPlace::Spill(place) => Some(place),
            BodyPlace::Frame(_) => None,
        })
    }

    /// The next one has its turn.
    fn end_turn(&mut self) {
        self.turn = Turn::default();
        self.is_disturbed |= !self.lookers.is_empty();
    }
}

impl Bodies {
    /// True if commands, browsers or views that waited for bodies have to look again.
    #[must_use]
    pub const fn is_disturbed(&self) -> bool {
        self.awaited.is_disturbed
    }

    /// The frame to fetch next.
    #[must_use]
    pub fn wanted_frame(&self) -> Option<Lsn> {
        self.awaited.wanted_frame()
    }

    /// True if something waits for a body of this frame.
    #[must_use]
    pub fn wants_frame(&self, lsn: Lsn) -> bool {
        self.awaited.wants_frame(lsn)
    }

    /// The place in the spill of the body to fetch next.
    #[must_use]
    pub fn wanted_spilled(&self) -> Option<NonZeroU64> {
        self.awaited.wanted_of_spill()
    }

    /// The bodies of a fetched frame come back, of those messages that it stored and that are
    /// waited for, or ready.
    pub(crate) fn restore(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        for record in Records::new(payload) {
            let (name, body) = match record?.0 {
                RecordView::Message { envelope, body } => (envelope.message, body),
                RecordView::Shared { copies, body } => (MessageId(copies.group()), body),
                _ => continue,
            };
            if self.is_to_come(name, lsn, store) {
                self.bring(name, Arc::from(body), store);
            }
        }
        Ok(())
    }

    /// All look again, the first command too if all that it needs is here: that is the answer.
    pub(crate) fn begin_look(&mut self) -> bool {
        self.awaited.is_disturbed = false;
        self.awaited.turn.missing.is_empty()
    }

    /// The browsers that look again. Nothing is unseen until one of them says so.
    pub(crate) fn take_browsers(&mut self) -> BTreeSet<ConsumerKey> {
        self.awaited.unseen.clear();
        core::mem::take(&mut self.awaited.browsers)
    }

    /// The queues with views that look again.
    pub(crate) fn take_queues(&mut self) -> BTreeSet<QueueSlot> {
        core::mem::take(&mut self.awaited.queues)
    }

    /// All have looked: bodies that none of them waits for may leave.
    pub(crate) fn end_look(&mut self, store: &mut MessageStore) {
        self.awaited.coming = self.awaited.unseen.iter().map(|(_, id)| *id).collect();
        self.let_go(store);
    }

    /// A browser waits for the body of a message, which is away.
    pub(crate) fn await_for(&mut self, key: ConsumerKey, id: MessageId, store: &MessageStore) {
        let is_paged_out = self.want(id, store);
        assert!(is_paged_out, "it could not be looked into");
        self.awaited.browsers.insert(key);
    }

    /// True if a browser waits for a body.
    pub(crate) fn has_browser(&self, key: ConsumerKey) -> bool {
        self.awaited.browsers.contains(&key)
    }

    /// The command that has its turn.
    pub(crate) fn first_looker(&self) -> Option<&Looker> {
        self.awaited.lookers.front()
    }

    /// True if the command that has its turn needs more than it may have, with these bodies.
    pub(crate) fn is_turn_too_large(
        &self,
        ids: &BTreeSet<MessageId>,
        replies: &ReplyBudget,
        store: &MessageStore,
    ) -> bool {
        let all = || ids.union(&self.awaited.turn.needed).copied().collect();
        !ids.is_empty() && self.is_too_much(&all(), replies, store)
    }

    /// Takes the command that has its turn: it goes on, or is refused.
    pub(crate) fn take_looker(&mut self) -> Option<Looker> {
        let first = self.awaited.lookers.pop_front()?;
        assert!(first.bytes() <= self.awaited.bytes, "a command was counted when it began to wait");
        self.awaited.bytes -= first.bytes();
        assert!(!self.awaited.lookers.is_empty() || self.awaited.bytes == 0, "none waits any more");
        Some(first)
    }

    /// The next command has its turn.
    pub(crate) fn end_turn(&mut self) {
        self.awaited.end_turn();
    }

    /// A browser or a view waits for the body of this message. False where it is here.
    pub(crate) fn want(&mut self, id: MessageId, store: &MessageStore) -> bool {
        let message = store.message(id);
        let is_paged_out = self.sharing.here(message).is_none();
        if is_paged_out {
            let paged_out = self.paged_out_of(id, message, store);
            self.awaited.unseen.insert(paged_out);
            self.awaited.coming.insert(paged_out.1);
        }
        is_paged_out
    }

    /// Drops the commands of a session that is gone.
    pub(crate) fn drop_awaiting(&mut self, session: SessionId, store: &mut MessageStore) {
        let is_its = |looker: &Looker| match looker {
            Looker::Command { session: other, .. } => *other == session,
            Looker::WaitList(_) => false,
        };
        let has_turn = self.awaited.lookers.front().is_some_and(is_its);
        self.awaited.lookers.retain(|looker| !is_its(looker));
        self.awaited.bytes = self.awaited.lookers.iter().map(Looker::bytes).sum();
        if has_turn {
            self.awaited.end_turn();
            self.let_go(store);
        }
    }

    /// A command waits until it has its turn and these bodies are here.
    pub(crate) fn wait_for_turn(
        &mut self,
        looker: Looker,
        needed: BTreeSet<MessageId>,
        store: &mut MessageStore,
    ) {
        assert!(!needed.is_empty(), "a command waits for bodies");
        let is_first = self.awaited.lookers.is_empty();
        self.awaited.bytes += looker.bytes();
        self.awaited.lookers.push_back(looker);
        if is_first {
            self.await_all(needed, store);
        }
    }

    /// The command that has its turn needs these bodies.
    pub(crate) fn await_all(&mut self, mut ids: BTreeSet<MessageId>, store: &mut MessageStore) {
        assert!(!self.awaited.lookers.is_empty(), "a command has its turn");
        store.took_steps(ids.len());
        let kept = ids.iter().filter_map(|name| Some((*name, self.kept(*name, store)?)));
        let missing = kept.map(|(name, kept)| paged_out_of(name, &kept)).collect();
        self.awaited.turn.missing = missing;
        self.awaited.turn.needed.append(&mut ids);
    }

    /// Views of a queue wait for the bodies that they want.
    pub(crate) fn await_for_views(&mut self, slot: QueueSlot) {
        self.awaited.queues.insert(slot);
    }

    /// True if these bodies together are more than one command may have brought. One alone may be
    /// as large as it is.
    pub(crate) fn is_too_much(
        &self,
        ids: &BTreeSet<MessageId>,
        replies: &ReplyBudget,
        store: &MessageStore,
    ) -> bool {
        let bytes = |name: &MessageId| self.kept(*name, store).map_or(0, |it| it.stored.len());
        ids.len() > 1 && ids.iter().map(bytes).sum::<usize>() > replies.bytes_max()
    }

    /// True if a body that was fetched from that frame is to be kept.
    fn is_to_come(&self, name: MessageId, lsn: Lsn, store: &MessageStore) -> bool {
        let place = BodyPlace::Frame(lsn);
        let is_its = self.kept(name, store).is_some_and(|kept| kept.place() == Some(place));
        is_its && self.is_awaited_at(name, place, store)
    }

    /// True if a body is away that is waited for there, or will be soon. Of a shared one some copy
    /// mostly is ready.
    pub(crate) fn is_awaited_at(
        &self,
        name: MessageId,
        place: BodyPlace,
        store: &MessageStore,
    ) -> bool {
        let is_paged_out = self.kept(name, store).is_some_and(|kept| kept.stored.here().is_none());
        let message = store.messages.get(name.0).filter(|message| message.shared().is_none());
        let is_ready = message.is_none_or(|message| message.state() == State::Ready);
        is_paged_out && (is_ready || self.awaited.wants((place, name)))
    }

    /// Every waiting command or browser is known. Every body it waits for is away. None waits for a
    /// body that will not come.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check_awaited(&self, admission: &Admission, store: &MessageStore) {
        let Awaited { lookers, turn, browsers, unseen, is_disturbed, .. } = &self.awaited;
        let bytes: u64 = lookers.iter().map(Looker::bytes).sum();
        assert_eq!(bytes, self.awaited.bytes, "what waits for bodies is counted");
        for (place, id) in unseen.iter().chain(&turn.missing) {
            let kept = self.kept(*id, store).expect("what is waited for lives");
            assert!(kept.stored.here().is_none(), "what is waited for is away");
            assert_eq!(kept.place(), Some(*place), "what is waited for is where it is");
            assert!(self.awaited.keeps(*id), "what is waited for stays");
        }
        let is_served = *is_disturbed || !turn.missing.is_empty();
        assert!(lookers.is_empty() || is_served, "who waits for a turn has it one day");
        let lines = store.queues.iter().map(|(slot, _)| WaitListId::Queue(slot));
        for line in lines.chain([WaitListId::Memory, WaitListId::Transactions]) {
            let is_known =
                || lookers.iter().any(|it| matches!(it, Looker::WaitList(of) if *of == line));
            let looks = admission.line(line, store).looks();
            assert!(!looks || is_known(), "a line that waits for bodies has its turn");
        }
        for (slot, queue) in store.queues.iter() {
            self.check_unseen(slot, queue, store);
        }
        // A body that stops a browser comes or leaves. The browser then sees the bodies before it
        // that came meanwhile.
        let comes = *is_disturbed || !unseen.is_empty();
        assert!(comes || browsers.is_empty(), "a browser waits for what comes");
    }

    /// Checks that bodies a view has not seen are on their way, or that it looks again soon.
    fn check_unseen(&self, slot: QueueSlot, queue: &Queue, store: &MessageStore) {
        let goes_on = queue.delivery.resumes.is_some();
        let is_known = self.looks_soon(slot);
        for view in queue.delivery.views.values() {
            let comes = view.first_unseen().is_none_or(|(_, order)| self.is_coming(order, store));
            assert!(comes || goes_on || is_known, "a view of {} waits for what comes", queue.name);
        }
    }

    /// True if views of that queue look again with the next [`Engine::handle_timeout`], and the
    /// consumers that wait there are served.
    pub(crate) fn looks_soon(&self, slot: QueueSlot) -> bool {
        self.awaited.is_disturbed && self.awaited.queues.contains(&slot)
    }

    /// True if views of that queue look again sooner or later: something is on its way for which
    /// one of them waits, or did.
    pub(crate) fn will_look(&self, slot: QueueSlot) -> bool {
        let Awaited { queues, unseen, is_disturbed, .. } = &self.awaited;
        queues.contains(&slot) && (*is_disturbed || !unseen.is_empty())
    }

    /// True if the body of the message at this place is waited for where it is.
    fn is_coming(&self, order: i64, store: &MessageStore) -> bool {
        let id = store.message_of(order);
        let message = store.message(id);
        let is_paged_out = self.sharing.here(message).is_none();
        is_paged_out && self.awaited.unseen.contains(&self.paged_out_of(id, message, store))
    }
}
