//! Whoever looks into bodies that left memory: selectors, and commands that compare elements.
//!
//! A command waits as a whole, before it has done anything, and is done when all that it needs is
//! here. Such commands take turns, for the log is read piece by piece: only what the first of them
//! needs is fetched and kept, so that however many wait, memory holds no more than one may ask for.
//! A browser stands still, a view of a selector shows nothing behind what it has not seen.
//! The caller fetches the [`Engine::wanted_frame`], one after the other, and gives it to
//! [`Engine::restore`]; then they go on, by time, at once. What the spill has: see `spilling.rs`.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::{BodyPlace, Command, DependsOn, Lsn, MessageId, SessionId, limits};
use records::{RecordError, RecordView, Records};

use crate::Effects;
use crate::answering::Shown;
use crate::engine::{Bodies, Engine, MessageStore};
use crate::memory::{away_of, waiting_bytes};
use crate::message::State;
use crate::needed::Needed;
use crate::queue::{Queue, QueueSlot};
use crate::session::{ConsumerKey, SessionSlot};
use crate::wait_lists::WaitListId;

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

/// Who waits for a turn.
#[derive(Debug)]
enum Looker {
    /// A command that has done nothing yet. Its answer waits for `floor` too.
    Command { session: SessionId, command: Command, floor: DependsOn },
    /// The first of those who wait in this line, and there is what it waits for.
    WaitList(WaitListId),
}

impl Looker {
    /// What it takes meanwhile. Who waits in a line is counted there.
    fn bytes(&self) -> u64 {
        match self {
            Self::Command { command, .. } => waiting_bytes(command),
            Self::WaitList(_) => 0,
        }
    }
}

/// What the first of them needs.
#[derive(Debug, Default)]
struct Turn {
    /// What of it is still away, by where it is.
    missing: BTreeSet<(BodyPlace, MessageId)>,
    /// All that was away at one time or another: it stays when it has come.
    needed: BTreeSet<MessageId>,
}

/// Who waits for bodies, and for which.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    lookers: VecDeque<Looker>,
    /// What these take.
    pub(crate) bytes: u64,
    turn: Turn,
    pub(crate) browsers: BTreeSet<ConsumerKey>,
    /// Queues with views that have not seen all.
    pub(crate) queues: BTreeSet<QueueSlot>,
    /// What browsers and views have not seen, by where it is.
    unseen: BTreeSet<(BodyPlace, MessageId)>,
    /// The same, with those that have come since all looked: they stay until then.
    coming: BTreeSet<MessageId>,
    /// Something that was waited for will not come where it was: they look again.
    is_disturbed: bool,
}

impl Awaited {
    /// A body is not any more where it was.
    pub(crate) fn has_left(&mut self, away: (BodyPlace, MessageId)) {
        let was_unseen = self.unseen.remove(&away);
        let was_last = self.turn.missing.remove(&away) && self.turn.missing.is_empty();
        self.is_disturbed |= was_unseen || was_last;
    }

    /// Somebody who waits for a body may have no message with it any more.
    pub(crate) fn may_have_left(&mut self, away: (BodyPlace, MessageId)) {
        self.is_disturbed |= self.unseen.contains(&away);
    }

    /// Whether they have to look again.
    pub(crate) const fn is_disturbed(&self) -> bool {
        self.is_disturbed
    }

    /// Whether a body that is here stays, for somebody waits for it and more.
    pub(crate) fn keeps(&self, id: MessageId) -> bool {
        self.coming.contains(&id) || self.turn.needed.contains(&id)
    }

    pub(crate) fn wants(&self, away: (BodyPlace, MessageId)) -> bool {
        self.unseen.contains(&away) || self.turn.missing.contains(&away)
    }

    /// The first that the spill has of what is waited for.
    pub(crate) fn wanted_of_spill(&self) -> Option<NonZeroU64> {
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

impl Engine {
    /// The frame that is to be fetched next, for those who look into bodies.
    #[must_use]
    pub fn wanted_frame(&self) -> Option<Lsn> {
        let Awaited { unseen, turn, .. } = &self.bodies.awaited;
        let frame = |(place, _): &(BodyPlace, MessageId)| match place {
            BodyPlace::Frame(lsn) => Some(*lsn),
            BodyPlace::Spill(_) => None,
        };
        // Frames come before the places of the spill.
        unseen.first().into_iter().chain(turn.missing.first()).filter_map(frame).min()
    }

    /// Whether somebody waits for a body of this frame.
    #[must_use]
    pub fn wants_frame(&self, lsn: Lsn) -> bool {
        let place = BodyPlace::Frame(lsn);
        let all = (place, MessageId(0))..=(place, MessageId(u64::MAX));
        let Awaited { unseen, turn, .. } = &self.bodies.awaited;
        unseen.range(all.clone()).chain(turn.missing.range(all)).next().is_some()
    }

    /// Whether somebody who waited for a body goes on with the next
    /// [`Engine::handle_timeout`].
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        self.bodies.awaited.is_disturbed()
    }

    /// Bytes of frames that may be given to [`Engine::restore`] beside those that are wanted.
    #[must_use]
    pub fn restored_bytes_max(&self) -> u64 {
        self.movable_max() / 2
    }

    /// A frame was fetched: bodies come back of those messages that were stored by it and are
    /// waited for, or ready. Of several frames, give the last one first.
    ///
    /// # Errors
    /// When the frame is damaged.
    pub fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        for record in Records::new(payload) {
            match record?.0 {
                RecordView::Message { envelope, body }
                    if self.bodies.is_to_come(envelope.message, lsn, &self.store) =>
                {
                    self.bodies.bring(envelope.message, Arc::from(body), &mut self.store);
                }
                RecordView::Shared { copies, body }
                    if self.bodies.is_to_come(MessageId(copies.group()), lsn, &self.store) =>
                {
                    self.bodies.bring(MessageId(copies.group()), Arc::from(body), &mut self.store);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Those who looked into bodies look again: of the commands the first, where all that it needs
    /// is here.
    pub(crate) fn go_on_looking(&mut self, effects: &mut Effects) {
        self.bodies.awaited.is_disturbed = false;
        if self.bodies.awaited.turn.missing.is_empty() {
            self.take_turn(effects);
        }
        self.bodies.awaited.unseen.clear();
        for key in core::mem::take(&mut self.bodies.awaited.browsers) {
            self.browse(key, effects);
        }
        for slot in core::mem::take(&mut self.bodies.awaited.queues) {
            if self.store.queues.get(slot).is_some() {
                self.bodies.scan_views(slot, &mut self.store, &self.context);
                self.serve(slot, effects);
            }
        }
        self.end_frame(effects);
        self.bodies.awaited.coming = self.bodies.awaited.unseen.iter().map(|(_, id)| *id).collect();
        self.bodies.let_go(&mut self.store);
    }

    /// Gives a command back if it can be done now. If not, it is kept until what it looks into is
    /// here, or refused.
    pub(crate) fn unless_awaiting(
        &mut self,
        by: SessionSlot,
        command: Command,
        floor: DependsOn,
        effects: &mut Effects,
    ) -> Option<Command> {
        let Needed { ids, looked } = self.needed_by(&command);
        self.store.took_steps(looked);
        if ids.is_empty() {
            return Some(command);
        }
        self.store.took_steps(limits::COMMAND_STEPS);
        if self.bodies.is_too_much(&ids, &self.replies, &self.store) {
            self.refuse_to_look(by, &command, floor, effects);
        } else {
            let session = self.sessions.at(by).identity.id;
            self.bodies.wait_for_turn(
                Looker::Command { session, command, floor },
                ids,
                &mut self.store,
            );
        }
        None
    }

    fn refuse_to_look(
        &mut self,
        by: SessionSlot,
        command: &Command,
        floor: DependsOn,
        effects: &mut Effects,
    ) {
        let first = effects.outputs.len();
        let session = self.sessions.at(by).identity.id;
        let outcome = self.refuse_send(by, command, self.replies.refusal(), effects);
        self.conclude(session, outcome, effects);
        self.sessions.raise_answers(by, floor, first, effects);
    }

    /// Whether the first of those who wait in a line waits for bodies now.
    pub(crate) fn is_line_awaiting(&mut self, of: WaitListId) -> bool {
        let Needed { ids, looked } = self.needed_by_line(of);
        self.store.took_steps(looked);
        let awaits = !ids.is_empty();
        if awaits {
            self.admission.line_mut(of, &mut self.store).looks = true;
            self.bodies.wait_for_turn(Looker::WaitList(of), ids, &mut self.store);
        }
        awaits
    }

    /// The first who waits goes on, unless it lacks something again.
    fn take_turn(&mut self, effects: &mut Effects) {
        let Some(first) = self.bodies.awaited.lookers.front() else { return };
        let Needed { ids, looked } = match first {
            Looker::Command { command, .. } => self.needed_by(command),
            Looker::WaitList(of) => self.needed_by_line(*of),
        };
        self.store.took_steps(looked);
        let all = ids.union(&self.bodies.awaited.turn.needed).copied().collect();
        let is_too_much =
            !ids.is_empty() && self.bodies.is_too_much(&all, &self.replies, &self.store);
        if !ids.is_empty() && !is_too_much {
            return self.bodies.await_all(ids, &mut self.store);
        }
        let first = self.bodies.awaited.lookers.pop_front();
        self.bodies.awaited.bytes -= first.as_ref().map_or(0, Looker::bytes);
        match first {
            Some(Looker::Command { session, command, floor }) => {
                let by = self.sessions.slot(session);
                let by = by.expect("invariant: what a session asked for goes with it");
                if is_too_much {
                    self.refuse_to_look(by, &command, floor, effects);
                } else {
                    self.handle_now(by, command, floor, effects);
                }
            }
            Some(Looker::WaitList(of)) => self.admit_looked(of, is_too_much, effects),
            None => {}
        }
        self.bodies.awaited.end_turn();
    }

    /// Who waits is known, what is waited for is away, and nobody waits for what will not come.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check_awaited(&self) {
        let Awaited { lookers, turn, browsers, unseen, is_disturbed, .. } = &self.bodies.awaited;
        let bytes: u64 = lookers.iter().map(Looker::bytes).sum();
        assert_eq!(bytes, self.bodies.awaited.bytes, "what waits for bodies is counted");
        for (place, id) in unseen.iter().chain(&turn.missing) {
            let kept = self.bodies.kept(*id, &self.store).expect("what is waited for lives");
            assert!(kept.stored.here().is_none(), "what is waited for is away");
            assert_eq!(kept.place(), Some(*place), "what is waited for is where it is");
            assert!(self.bodies.awaited.keeps(*id), "what is waited for stays");
        }
        let is_served = *is_disturbed || !turn.missing.is_empty();
        assert!(lookers.is_empty() || is_served, "who waits for a turn has it one day");
        let lines = self.store.queues.iter().map(|(slot, _)| WaitListId::Queue(slot));
        for line in lines.chain([WaitListId::Memory, WaitListId::Transactions]) {
            let is_known =
                || lookers.iter().any(|it| matches!(it, Looker::WaitList(of) if *of == line));
            let looks = self.admission.line(line, &self.store).looks;
            assert!(!looks || is_known(), "a line that waits for bodies has its turn");
        }
        for (slot, queue) in self.store.queues.iter() {
            self.bodies.check_unseen(slot, queue, &self.store);
        }
        // What stops one comes or leaves; what came before it meanwhile is seen then.
        let comes = *is_disturbed || !unseen.is_empty();
        assert!(comes || browsers.is_empty(), "a browser waits for what comes");
    }
}

impl Bodies {
    /// A browser or a view waits for the body of this message. False where it is here.
    pub(crate) fn want(&mut self, id: MessageId, store: &MessageStore) -> bool {
        let message = store.living(id);
        let is_away = self.sharing.here(message).is_none();
        if is_away {
            let away = self.away_of(id, message, store);
            self.awaited.unseen.insert(away);
            self.awaited.coming.insert(away.1);
        }
        is_away
    }

    /// The session is gone, and what it asked for.
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

    fn wait_for_turn(
        &mut self,
        looker: Looker,
        needed: BTreeSet<MessageId>,
        store: &mut MessageStore,
    ) {
        let is_first = self.awaited.lookers.is_empty();
        self.awaited.bytes += looker.bytes();
        self.awaited.lookers.push_back(looker);
        if is_first {
            self.await_all(needed, store);
        }
    }

    /// Whose turn it is needs these.
    fn await_all(&mut self, mut ids: BTreeSet<MessageId>, store: &mut MessageStore) {
        store.took_steps(ids.len());
        let kept = ids.iter().filter_map(|name| Some((*name, self.kept(*name, store)?)));
        let missing = kept.map(|(name, kept)| away_of(name, &kept)).collect();
        self.awaited.turn.missing = missing;
        self.awaited.turn.needed.append(&mut ids);
    }

    /// Whether these bodies together are more than one command may have brought. One alone may be
    /// as large as it is.
    fn is_too_much(
        &self,
        ids: &BTreeSet<MessageId>,
        replies: &Shown,
        store: &MessageStore,
    ) -> bool {
        let bytes = |name: &MessageId| self.kept(*name, store).map_or(0, |it| it.stored.len());
        ids.len() > 1 && ids.iter().map(bytes).sum::<usize>() > replies.bytes_max()
    }

    /// Whether a body that was fetched from that frame is to be kept.
    fn is_to_come(&self, name: MessageId, lsn: Lsn, store: &MessageStore) -> bool {
        let place = BodyPlace::Frame(lsn);
        let is_its = self.kept(name, store).is_some_and(|kept| kept.place() == Some(place));
        is_its && self.is_awaited_at(name, place, store)
    }

    /// Whether a body is away that is waited for there, or will be soon. Of a shared one some copy
    /// mostly is ready.
    pub(crate) fn is_awaited_at(
        &self,
        name: MessageId,
        place: BodyPlace,
        store: &MessageStore,
    ) -> bool {
        let is_away = self.kept(name, store).is_some_and(|kept| kept.stored.here().is_none());
        let message = store.messages.get(name.0).filter(|message| message.shared().is_none());
        let is_ready = message.is_none_or(|message| message.state() == State::Ready);
        is_away && (is_ready || self.awaited.wants((place, name)))
    }

    /// What a view has not seen comes, or it looks soon.
    fn check_unseen(&self, slot: QueueSlot, queue: &Queue, store: &MessageStore) {
        let goes_on = queue.delivery.resumes.is_some();
        let is_known = self.looks_soon(slot);
        for view in queue.delivery.views.values() {
            let comes = view.unseen.first().is_none_or(|(_, order)| self.is_coming(order, store));
            assert!(comes || goes_on || is_known, "a view of {} waits for what comes", queue.name);
        }
    }

    /// Whether views of that queue look again with the next [`Engine::handle_timeout`], and whoever
    /// waits there is served.
    pub(crate) fn looks_soon(&self, slot: QueueSlot) -> bool {
        self.awaited.is_disturbed && self.awaited.queues.contains(&slot)
    }

    /// Whether views of that queue look again sooner or later: something is on its way for which
    /// one of them waits, or did.
    pub(crate) fn will_look(&self, slot: QueueSlot) -> bool {
        let Awaited { queues, unseen, is_disturbed, .. } = &self.awaited;
        queues.contains(&slot) && (*is_disturbed || !unseen.is_empty())
    }

    /// Whether the body of the message at this place is waited for where it is.
    fn is_coming(&self, order: i64, store: &MessageStore) -> bool {
        let id = store.message_of(order);
        let message = store.living(id);
        let is_away = self.sharing.here(message).is_none();
        is_away && self.awaited.unseen.contains(&self.away_of(id, message, store))
    }
}
