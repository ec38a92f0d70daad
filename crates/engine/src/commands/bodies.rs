//! Bodies that leave memory and come back, and the commands that wait for them.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::RangeInclusive;

use model::{BodyPlace, Command, DependsOn, Lsn, MessageId, limits};
use records::{RecordError, RecordView, Records};

use crate::Effects;
use crate::admission::WaitListId;
use crate::admission::needed::Needed;
use crate::bodies::memory::charge;
use crate::bodies::waits::StoredBody;
use crate::bodies::{Awaited, Looker, Spilled, Stored};
use crate::engine::Engine;
use crate::ids::SessionSlot;

impl Engine {
    /// Tells up to which frame the log can be read back. Bodies leave memory now, where it is too
    /// full.
    pub(crate) fn set_written(&mut self, written: Lsn) {
        if written > self.bodies.memory.written {
            self.bodies.memory.written = written;
            self.bodies.line_up_written(&mut self.store);
        }
        self.trim();
    }

    /// Bytes of memory that messages take, with those of transactions that are open.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bodies.memory.movable + self.resting_bytes()
    }

    /// Bytes that open transactions hold.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> usize {
        self.transactions.uncommitted_bytes()
    }

    /// Bytes that open transactions may hold together, and one by itself.
    #[must_use]
    pub fn uncommitted_max(&self) -> usize {
        self.bodies.uncommitted_max()
    }

    /// How often a body has left memory, or come into a queue from elsewhere without being in it.
    #[must_use]
    pub fn paged_out_total(&self) -> u64 {
        self.bodies.memory.paged_out_total
    }

    /// True if any message's body has left memory: an answer may then name it in place of its
    /// bytes.
    #[must_use]
    pub const fn has_paged_out(&self) -> bool {
        self.bodies.memory.has_paged_out()
    }

    /// How many bodies have left memory.
    #[must_use]
    pub const fn paged_out(&self) -> u64 {
        self.bodies.memory.paged_out
    }

    /// True if commands that wait for memory go on waiting, because memory is full or because
    /// bodies are leaving for the spill.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.is_memory_full() || self.waits_for_spill()
    }

    /// True if nothing new is taken: all bodies that may leave memory could not make room for it.
    /// Commands that wait for memory do not count.
    pub(crate) fn is_memory_full(&self) -> bool {
        let limit = self.bodies.memory.limit;
        let stuck = self.stuck_bytes();
        // Bodies leave in steps, each larger than the bytes that one command brings.
        let is_stuck =
            (stuck > limit / 4 && self.bodies.memory.large_owners.is_empty()) || stuck > limit / 2;
        let resting = self.resting_bytes() - self.admission.for_memory_bytes();
        resting + self.bodies.memory.spilling.stuck_bytes() >= limit / 8 * 7 || is_stuck
    }

    /// True if memory surely takes all of these one by one, and is not full before the last.
    pub(crate) fn surely_keeps(&self, bodies: &[Arc<[u8]>]) -> bool {
        let limit = self.bodies.memory.limit;
        let bytes: u64 = bodies.iter().map(|body| MESSAGE_BYTES + charge(body.len())).sum();
        let resting = self.resting_bytes() + self.bodies.memory.spilling.stuck_bytes();
        resting + bytes < limit / 8 * 7 && self.stuck_bytes() + bytes <= limit / 4
    }

    /// True if many bytes that should have left are in memory.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stuck_bytes() > self.bodies.memory.limit / 8
    }

    /// Bytes that should have left. Bytes that would leave only for commands that wait for memory
    /// do not count: these commands would wait for themselves.
    fn stuck_bytes(&self) -> u64 {
        let resting = self.resting_bytes() - self.admission.for_memory_bytes();
        self.bodies.memory.movable.saturating_sub(self.bodies.memory.movable_beside(resting))
    }

    /// Bytes that do not leave.
    fn resting_bytes(&self) -> u64 {
        let messages = self.store.messages.len() as u64 * MESSAGE_BYTES;
        let waiting = self.admission.waiting_bytes() + self.bodies.awaited.bytes;
        let beside = waiting + self.store.queues.memory_bytes();
        let places =
            self.bodies.memory.spilling.places_bytes() + self.bodies.sharing.memory_bytes();
        let beside = beside + self.dedup.beside_messages_bytes(&self.keyspace, &self.directory);
        self.bodies.memory.fixed
            + messages
            + places
            + beside
            + self.transactions.uncommitted_bytes() as u64
    }

    /// Lets bodies leave until the rest fits, as far as they can be read back: more than came, and
    /// no more than do not hold up others.
    pub(crate) fn trim(&mut self) {
        let came = core::mem::take(&mut self.bodies.memory.came);
        if self.bodies.memory.movable <= self.bodies.memory.always
            && !self.bodies.memory.spilling.keeps_back()
        {
            return;
        }
        let most = BODIES_PER_TRIM + 2 * came;
        for id in self.bodies.memory.spilling.take_kept_back(most) {
            self.bodies.line_up_to_leave(id, &mut self.store);
        }
        let mut passed = 0;
        while self.is_beyond_movable()
            && passed < most
            && let Some((_, owner)) = self.bodies.memory.large_owners.last().copied()
        {
            passed += 1;
            self.bodies.page_out_last(owner, &mut self.store);
        }
        self.store.took_steps(passed);
    }

    /// True if there are bodies to leave, and they are in line.
    pub(crate) fn may_trim(&self) -> bool {
        self.is_beyond_movable() && !self.bodies.memory.large_owners.is_empty()
    }

    fn is_beyond_movable(&self) -> bool {
        self.bodies.memory.movable - self.bodies.memory.spilling.leaving_bytes > self.movable_max()
    }

    /// Bytes of bodies that may be in memory: the memory that the rest leaves, and never nothing.
    pub(crate) fn movable_max(&self) -> u64 {
        self.bodies.memory.movable_beside(self.resting_bytes())
    }
}

impl Engine {
    /// The frame to fetch next, for commands and browsers that look into bodies.
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

    /// True if a command or browser waits for a body of this frame.
    #[must_use]
    pub fn wants_frame(&self, lsn: Lsn) -> bool {
        let place = BodyPlace::Frame(lsn);
        let all = (place, MessageId(0))..=(place, MessageId(u64::MAX));
        let Awaited { unseen, turn, .. } = &self.bodies.awaited;
        unseen.range(all.clone()).chain(turn.missing.range(all)).next().is_some()
    }

    /// True if a command or browser that waited for a body goes on with the next
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

    /// Commands and browsers that looked into bodies look again. Of the commands only the first
    /// does, if all that it needs is here.
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

    /// Gives a command back if it can be done now. If not, the command is refused, or kept until
    /// the bodies that it looks into are here.
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
            let session = self.sessions.at(by).id();
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
        let session = self.sessions.at(by).id();
        let outcome = self.refuse_send(by, command, self.replies.refusal(), effects);
        self.conclude(session, outcome, effects);
        self.sessions.raise_answers(by, floor, first, effects);
    }

    /// True if the first command of a line waits for bodies now.
    pub(crate) fn is_line_awaiting(&mut self, of: WaitListId) -> bool {
        let Needed { ids, looked } = self.needed_by_line(of);
        self.store.took_steps(looked);
        let awaits = !ids.is_empty();
        if awaits {
            self.admission.line_mut(of, &mut self.store).set_looks(true);
            self.bodies.wait_for_turn(Looker::WaitList(of), ids, &mut self.store);
        }
        awaits
    }

    /// The first waiting command goes on, unless it lacks something again.
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

    /// Every waiting command or browser is known. Every body it waits for is away. None waits for a
    /// body that will not come.
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
            let looks = self.admission.line(line, &self.store).looks();
            assert!(!looks || is_known(), "a line that waits for bodies has its turn");
        }
        for (slot, queue) in self.store.queues.iter() {
            self.bodies.check_unseen(slot, queue, &self.store);
        }
        // A body that stops a browser comes or leaves. The browser then sees the bodies before it
        // that came meanwhile.
        let comes = *is_disturbed || !unseen.is_empty();
        assert!(comes || browsers.is_empty(), "a browser waits for what comes");
    }
}

impl Engine {
    /// Bodies that are to be put into the spill, of about so many bytes together: they stay in
    /// memory until [`Engine::handle_spilled`] or [`Engine::handle_unspilled`].
    pub fn poll_spill(&mut self, bytes_max: u64) -> Vec<StoredBody> {
        let mut bodies = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(id) = self.bodies.memory.spilling.queued.pop_first()
        {
            let body = self
                .bodies
                .spillable(id, &self.store)
                .expect("invariant: what waits to leave is here");
            bytes += body.len() as u64;
            bodies.push((id, Arc::clone(body)));
        }
        bodies
    }

    /// True if [`Engine::poll_spill`] would give something.
    #[must_use]
    pub fn has_to_spill(&self) -> bool {
        !self.bodies.memory.spilling.queued.is_empty()
    }

    /// True if memory is so full that commands that add to it had better wait until the leaving
    /// bodies have left.
    #[must_use]
    pub fn waits_for_spill(&self) -> bool {
        !self.bodies.memory.spilling.leaving.is_empty() && self.is_crowded()
    }

    /// Takes in the places of bodies that are in the spill now.
    pub fn handle_spilled(&mut self, placed: impl IntoIterator<Item = (MessageId, Spilled)>) {
        for (id, spilled) in placed {
            self.bodies.stops_leaving(id, &self.store);
            if self.bodies.spillable(id, &self.store).is_none() {
                self.bodies.memory.spilling.vacate(Some(spilled));
                continue;
            }
            let Spilled { place, bytes } = spilled;
            self.bodies.with_body(
                id,
                VecDeque::push_back,
                Stored::paged_out(bytes),
                Some(place),
                &mut self.store,
            );
        }
    }

    /// Bodies that lay at these places lie elsewhere as well. A needed body stays at its new place.
    pub fn handle_moved(&mut self, moved: impl IntoIterator<Item = (NonZeroU64, Spilled)>) {
        for (from, to) in moved {
            let name = self.bodies.memory.spilling.places.get(&from).copied();
            let kept = name
                .and_then(|name| Some((name, self.bodies.kept(name, &self.store)?.stored.clone())));
            let Some((name, stored)) = kept else {
                self.bodies.memory.spilling.vacate(Some(to));
                continue;
            };
            self.bodies.with_body(
                name,
                VecDeque::push_front,
                stored,
                Some(to.place),
                &mut self.store,
            );
            self.bodies.memory.spilling.vacate(Some(Spilled { place: from, ..to }));
        }
    }

    /// These were not taken, and nothing else is for now.
    pub fn handle_unspilled(&mut self, ids: impl IntoIterator<Item = MessageId>) {
        self.bodies.memory.spilling.is_full = true;
        let queued = core::mem::take(&mut self.bodies.memory.spilling.queued);
        for id in ids.into_iter().chain(queued) {
            self.bodies.stops_leaving(id, &self.store);
            if self.bodies.spillable(id, &self.store).is_some() {
                self.bodies.memory.spilling.kept_back.insert(id);
            }
        }
    }

    /// The spill may take something again.
    pub fn try_spill_again(&mut self) {
        self.bodies.memory.spilling.is_full = false;
    }

    /// How many bodies lie in the spill.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.bodies.memory.spilling.places.len() as u64
    }

    /// Places in the spill with bodies that only answers that were given may still need.
    pub fn take_vacated(&mut self) -> Vec<Spilled> {
        core::mem::take(&mut self.bodies.memory.spilling.vacated)
    }

    /// The place in the spill of the body to fetch next, for commands and browsers that look into
    /// bodies.
    #[must_use]
    pub fn wanted_spilled(&self) -> Option<NonZeroU64> {
        self.bodies.awaited.wanted_of_spill()
    }

    /// Bodies that lie at this place in the spill and behind it, and that the asker of this one
    /// soon asks for.
    pub fn spilled_from(&self, place: NonZeroU64) -> impl Iterator<Item = Spilled> {
        let places = self.bodies.memory.spilling.places.range(place..).take(SPILLED_AHEAD_MAX);
        let to_come = places.filter(|(place, id)| {
            self.bodies.is_awaited_at(**id, BodyPlace::Spill(**place), &self.store)
        });
        to_come.filter_map(|(_, name)| self.bodies.kept(*name, &self.store)?.lies())
    }

    /// Bodies that lie at these places.
    pub fn spilled_within(
        &self,
        places: RangeInclusive<NonZeroU64>,
    ) -> impl Iterator<Item = Spilled> {
        let names = self.bodies.memory.spilling.places.range(places);
        names.filter_map(|(_, name)| self.bodies.kept(*name, &self.store)?.lies())
    }

    /// A body was fetched from there: it comes back if it is waited for, or its message is ready.
    pub fn restore_spilled(&mut self, place: NonZeroU64, body: Arc<[u8]>) {
        let id = self.bodies.memory.spilling.places.get(&place).copied();
        if let Some(id) =
            id.filter(|id| self.bodies.is_awaited_at(*id, BodyPlace::Spill(place), &self.store))
        {
            self.bodies.bring(id, body, &mut self.store);
        }
    }
}

/// A message in memory, with its places in the indexes, but for its body.
const MESSAGE_BYTES: u64 = 128;

/// Bodies that one call lets leave, beside twice as many as came since the call before: some 0.2
/// ms.
const BODIES_PER_TRIM: usize = 1024;

/// A body so far behind the one that is asked for is not soon asked for.
const SPILLED_AHEAD_MAX: usize = 256;
