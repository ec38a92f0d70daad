//! Bodies that leave memory and come back, and the commands that wait for them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::RangeInclusive;

use model::{Command, DependsOn, Lsn, MessageId, limits};
use records::RecordError;

use crate::Effects;
use crate::admission::needed::Needed;
use crate::bodies::memory::charge;
use crate::bodies::waits::StoredBody;
use crate::bodies::{Bodies, Looker, Spilled};
use crate::delivery::woken::Woken;
use crate::engine::Engine;
use crate::ids::SessionSlot;

impl Engine {
    /// Tells up to which frame the log can be read back. Bodies leave memory now, where it is too
    /// full.
    pub(crate) fn set_written(&mut self, written: Lsn) {
        self.bodies.set_written(written, &mut self.store);
        self.trim();
    }

    /// The bodies in memory, in the log and in the spill.
    #[must_use]
    pub const fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// Bytes of memory that messages take, with those of transactions that are open.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bodies.movable_bytes() + self.resting_bytes()
    }

    /// Bytes that open transactions hold.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> usize {
        self.transactions.uncommitted_bytes()
    }

    /// True if commands that wait for memory go on waiting, because memory is full or because
    /// bodies are leaving for the spill.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.is_memory_full() || self.waits_for_spill()
    }

    /// True if nothing new is taken: all bodies that may leave memory could not make room for it.
    pub(crate) fn is_memory_full(&self) -> bool {
        // Bytes of commands that wait for memory do not count: these would wait for themselves.
        self.bodies.is_full(self.resting_bytes() - self.admission.for_memory_bytes())
    }

    /// True if memory surely takes all of these one by one, and is not full before the last.
    pub(crate) fn surely_keeps(&self, bodies: &[Arc<[u8]>]) -> bool {
        let bytes = bodies.iter().map(|body| MESSAGE_BYTES + charge(body.len())).sum();
        let for_memory = self.admission.for_memory_bytes();
        self.bodies.surely_keeps(bytes, self.resting_bytes(), for_memory)
    }

    /// Bytes that do not leave.
    pub(crate) fn resting_bytes(&self) -> u64 {
        let messages = self.store.messages.len() as u64 * MESSAGE_BYTES;
        let beside = self.admission.waiting_bytes() + self.store.queues.memory_bytes();
        let beside = beside + self.dedup.beside_messages_bytes(&self.keyspace, &self.directory);
        let uncommitted = self.transactions.uncommitted_bytes() as u64;
        self.bodies.resting_bytes() + messages + beside + uncommitted
    }

    /// Lets bodies leave until the rest fits, as far as they can be read back.
    pub(crate) fn trim(&mut self) {
        if let Some(most) = self.bodies.begin_trim() {
            let resting = self.resting_bytes();
            self.bodies.trim(most, resting, &mut self.store);
        }
    }
}

impl Engine {
    /// Bytes of frames that may be given to [`Engine::restore`] beside those that are wanted.
    #[must_use]
    pub fn restored_bytes_max(&self) -> u64 {
        self.bodies.movable_max(self.resting_bytes()) / 2
    }

    /// A frame was fetched: bodies come back of those messages that were stored by it and are
    /// waited for, or ready. Of several frames, give the last one first.
    ///
    /// # Errors
    /// When the frame is damaged.
    pub fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        self.bodies.restore(lsn, payload, &mut self.store)
    }

    /// Commands and browsers that looked into bodies look again. Of the commands only the first
    /// does, if all that it needs is here.
    pub(crate) fn go_on_looking(&mut self, effects: &mut Effects) {
        if self.bodies.begin_look() {
            self.take_turn(effects);
        }
        for key in self.bodies.take_browsers() {
            self.browse(key, effects);
        }
        for slot in self.bodies.take_queues() {
            if self.store.queues.get(slot).is_some() {
                self.bodies.scan_views(slot, &mut self.store);
                self.serve_all(Woken::of(slot), effects);
            }
        }
        self.end_frame(effects);
        self.bodies.end_look(&mut self.store);
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
        let Needed { ids, looked } = self.bodies.needed_by(&command, &self.store);
        self.store.took_steps(looked);
        if ids.is_empty() {
            return Some(command);
        }
        self.store.took_steps(limits::COMMAND_STEPS);
        if self.bodies.is_too_much(&ids, &self.replies, &self.store) {
            self.refuse_to_look(by, &command, floor, effects);
        } else {
            let session = self.sessions.at(by).id();
            let looker = Looker::Command { session, command, floor };
            self.bodies.wait_for_turn(looker, ids, &mut self.store);
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

    /// The first waiting command goes on, unless it lacks something again.
    fn take_turn(&mut self, effects: &mut Effects) {
        let Some(first) = self.bodies.first_looker() else { return };
        let Needed { ids, looked } = match first {
            Looker::Command { command, .. } => self.bodies.needed_by(command, &self.store),
            Looker::WaitList(of) => self.admission.needed_by_line(*of, &self.bodies, &self.store),
        };
        self.store.took_steps(looked);
        let is_too_much = self.bodies.is_turn_too_large(&ids, &self.replies, &self.store);
        if !ids.is_empty() && !is_too_much {
            return self.bodies.await_all(ids, &mut self.store);
        }
        match self.bodies.take_looker() {
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
        self.bodies.end_turn();
    }
}

impl Engine {
    /// Bodies that are to be put into the spill, of about so many bytes together: they stay in
    /// memory until [`Engine::handle_spilled`] or [`Engine::handle_unspilled`].
    pub fn poll_spill(&mut self, bytes_max: u64) -> Vec<StoredBody> {
        self.bodies.poll_spill(bytes_max, &self.store)
    }

    /// True if memory is so full that commands that add to it had better wait until the leaving
    /// bodies have left.
    #[must_use]
    pub fn waits_for_spill(&self) -> bool {
        self.bodies.waits_for_spill(self.resting_bytes() - self.admission.for_memory_bytes())
    }

    /// Takes in the places of bodies that are in the spill now.
    pub fn handle_spilled(&mut self, placed: impl IntoIterator<Item = (MessageId, Spilled)>) {
        for (id, spilled) in placed {
            self.bodies.page_out_to(id, spilled, &mut self.store);
        }
    }

    /// Bodies that lay at these places lie elsewhere as well. A needed body stays at its new place.
    pub fn handle_moved(&mut self, moved: impl IntoIterator<Item = (NonZeroU64, Spilled)>) {
        for (from, to) in moved {
            self.bodies.move_spilled(from, to, &mut self.store);
        }
    }

    /// These were not taken, and nothing else is for now.
    pub fn handle_unspilled(&mut self, ids: impl IntoIterator<Item = MessageId>) {
        self.bodies.keep_back(ids, &self.store);
    }

    /// The spill may take something again.
    pub fn try_spill_again(&mut self) {
        self.bodies.try_spill_again();
    }

    /// Places in the spill with bodies that only answers that were given may still need.
    pub fn take_vacated(&mut self) -> Vec<Spilled> {
        self.bodies.take_vacated()
    }

    /// Bodies that lie at this place in the spill and behind it, and that the asker of this one
    /// soon asks for.
    pub fn spilled_from(&self, place: NonZeroU64) -> impl Iterator<Item = Spilled> {
        self.bodies.spilled_from(place, &self.store)
    }

    /// Bodies that lie at these places.
    pub fn spilled_within(
        &self,
        places: RangeInclusive<NonZeroU64>,
    ) -> impl Iterator<Item = Spilled> {
        self.bodies.spilled_within(places, &self.store)
    }

    /// A body was fetched from there: it comes back if it is waited for, or its message is ready.
    pub fn restore_spilled(&mut self, place: NonZeroU64, body: Arc<[u8]>) {
        self.bodies.restore_spilled(place, body, &mut self.store);
    }
}

/// A message in memory, with its places in the indexes, but for its body.
const MESSAGE_BYTES: u64 = 128;
