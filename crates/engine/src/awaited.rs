//! Whoever looks into bodies that left memory: selectors, and commands that compare elements.
//!
//! A command waits as a whole, before it has done anything, and is done when all that it needs is
//! here. A browser stands still, a view of a selector shows nothing behind what it has not seen.
//! The caller fetches the [`Engine::wanted_frame`], one after the other, and gives it to
//! [`Engine::restore`]; then they go on, by time, at once.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use model::{
    AdminCommand, Command, End, KeyCommand, ListCommand, Lsn, MessageId, Nanos, PageEnd, QueueName,
    Refusal, SessionId, limits,
};

use crate::Effects;
use crate::codec::Records;
use crate::engine::{Engine, Outcome};
use crate::matching::parse_selector;
use crate::message::{Message, State, Stored};
use crate::queue::QueueSlot;
use crate::record::{RecordError, RecordView};
use crate::seeking::Sought;
use crate::session::{ConsumerKey, SessionSlot};

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

/// A command that waits.
#[derive(Debug)]
struct Waiting {
    session: SessionId,
    command: Command,
    /// What it looks into, and was away at one time or another: it stays when it has come.
    needed: BTreeSet<MessageId>,
}

/// Who waits for bodies, and for which.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// By where they are.
    bodies: BTreeSet<(Lsn, MessageId)>,
    commands: VecDeque<Waiting>,
    pub(crate) browsers: BTreeSet<ConsumerKey>,
    /// Queues with views that have not seen all.
    pub(crate) queues: BTreeSet<QueueSlot>,
    /// Something that was waited for will not come where it was: they look again.
    is_disturbed: bool,
}

impl Awaited {
    /// A body is not any more where it was.
    pub(crate) fn has_left(&mut self, away: (Lsn, MessageId)) {
        if !self.bodies.is_empty() && self.bodies.remove(&away) {
            self.is_disturbed = true;
        }
    }

    /// Whether they have to look again.
    pub(crate) const fn is_disturbed(&self) -> bool {
        self.is_disturbed
    }
}

impl Engine {
    /// The frame that is to be fetched next, for those who look into bodies.
    #[must_use]
    pub fn wanted_frame(&self) -> Option<Lsn> {
        self.awaited.bodies.first().map(|(lsn, _)| *lsn)
    }

    /// Whether somebody waits for a body of this frame.
    #[must_use]
    pub fn wants_frame(&self, lsn: Lsn) -> bool {
        let all = (lsn, MessageId(0))..=(lsn, MessageId(u64::MAX));
        self.awaited.bodies.range(all).next().is_some()
    }

    /// Whether somebody who waited for a body goes on with the next
    /// [`Engine::handle_timeout`].
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        self.awaited.is_disturbed()
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
                    if self.is_to_come(envelope.message, lsn) =>
                {
                    self.bring(envelope.message, Arc::from(body));
                }
                RecordView::Shared { copies, body } => {
                    let mut shared = None;
                    for copy in copies.iter() {
                        if !self.is_to_come(copy.message, lsn) {
                            continue;
                        }
                        let body = shared.get_or_insert_with(|| Arc::<[u8]>::from(body));
                        let body = Arc::clone(body);
                        self.bring(copy.message, body);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Those who looked into bodies look again: of the commands the first, the rest with the next
    /// call.
    pub(crate) fn go_on_looking(&mut self, now: Nanos, effects: &mut Effects) {
        let Awaited { mut commands, browsers, queues, bodies, .. } =
            core::mem::take(&mut self.awaited);
        let first = commands.pop_front();
        self.awaited.is_disturbed = !commands.is_empty();
        self.awaited.commands = commands;
        self.awaited.bodies = self.bodies_needed(bodies);
        if let Some(Waiting { session, command, needed }) = first {
            let others = self.awaited.commands.len();
            self.handle(now, session, command, effects);
            if self.awaited.commands.len() > others
                && let Some(again) = self.awaited.commands.back_mut()
            {
                again.needed.extend(needed);
            }
        }
        for key in browsers {
            self.browse(key, effects);
        }
        for slot in queues {
            if self.queues.get(slot).is_some() {
                self.scan_views(slot);
                self.serve(slot, effects);
            }
        }
        self.end_frame(effects);
        let needed = self.awaited.commands.iter().flat_map(|waiting| &waiting.needed).copied();
        let wanted = self.awaited.bodies.iter().map(|(_, id)| *id);
        let kept = needed.chain(wanted).collect();
        self.keep_only(kept);
        if self.awaited.bodies.is_empty() {
            self.awaited.is_disturbed = !self.awaited.commands.is_empty();
        }
    }

    /// Of these bodies those that commands which wait still need.
    fn bodies_needed(&self, bodies: BTreeSet<(Lsn, MessageId)>) -> BTreeSet<(Lsn, MessageId)> {
        let commands = self.awaited.commands.iter();
        let needed: BTreeSet<_> = commands.flat_map(|waiting| &waiting.needed).collect();
        bodies.into_iter().filter(|(_, id)| needed.contains(id)).collect()
    }

    /// Somebody waits for the body of this message.
    pub(crate) fn want(&mut self, id: MessageId) {
        let message = self.living(id);
        if message.body.here().is_none() {
            self.awaited.bodies.insert((message.location, id));
            self.memory.kept.insert(id);
        }
    }

    /// The session is gone, and what it asked for.
    pub(crate) fn drop_awaiting(&mut self, session: SessionId) {
        self.awaited.commands.retain(|waiting| waiting.session != session);
    }

    /// Gives a command back if it can be done now. If not, it is kept until what it looks into is
    /// here, or refused.
    pub(crate) fn unless_awaiting(
        &mut self,
        by: SessionSlot,
        command: Command,
        effects: &mut Effects,
    ) -> Option<Command> {
        let needed = self.needed(by, &command);
        if needed.is_empty() {
            return Some(command);
        }
        let session = self.sessions.at(by).id;
        let bytes: usize = needed.iter().map(|id| self.living(*id).body.len()).sum();
        let is_one = needed.len() == 1;
        if bytes > limits::LIST_REPLY_BYTES_MAX && !is_one {
            self.conclude(session, Outcome::refused(Refusal::ListTooLong), effects);
            return None;
        }
        self.took_steps(limits::COMMAND_STEPS + needed.len());
        for id in &needed {
            self.want(*id);
        }
        let needed = needed.into_iter().collect();
        self.awaited.commands.push_back(Waiting { session, command, needed });
        None
    }

    /// Which bodies that are away a command looks into.
    fn needed(&self, by: SessionSlot, command: &Command) -> Vec<MessageId> {
        match command {
            Command::List(command) => self.needed_of_list(command),
            Command::Admin(command) => self.needed_by_operator(command),
            Command::Batch { commands } => self.needed_of_batch(by, commands),
            _ => Vec::new(),
        }
    }

    /// What an earlier command moves into a list, a later one may look into.
    fn needed_of_batch(&self, by: SessionSlot, commands: &[Command]) -> Vec<MessageId> {
        let mut needed: BTreeSet<_> =
            commands.iter().flat_map(|command| self.needed(by, command)).collect();
        let shortest = commands.iter().filter_map(compared).map(|(_, element)| element.len()).min();
        if let Some(shortest) = shortest {
            let compared = commands.iter().filter_map(compared).map(|(queue, _)| queue);
            let names = compared.chain(commands.iter().filter_map(moved_from));
            for name in names.collect::<BTreeSet<_>>() {
                needed.extend(self.needed_to_compare(name, shortest));
            }
        }
        needed.into_iter().collect()
    }

    /// The elements that could equal one of so many bytes, but are away.
    fn needed_to_compare(&self, queue: &QueueName, bytes: usize) -> Vec<MessageId> {
        let Some(slot) = self.queues.find(queue.as_str()) else { return Vec::new() };
        let all = self.elements(slot, End::Head).take(limits::LIST_SCAN_MAX);
        let is_needed = |id: &MessageId| {
            let body = &self.living(*id).body;
            body.here().is_none() && body.len() >= bytes
        };
        all.filter(is_needed).collect()
    }

    fn needed_of_list(&self, command: &ListCommand) -> Vec<MessageId> {
        match command {
            ListCommand::Insert { queue, pivot: element, .. }
            | ListCommand::Remove { queue, element, .. }
            | ListCommand::Locate { queue, element, .. } => {
                self.needed_to_compare(queue, element.len())
            }
            ListCommand::Move { from, from_end, to, .. } => {
                let slot = self.queues.find(from.as_str());
                let to = self.queues.find(to.as_str());
                let forsakes = to.is_some_and(|to| self.queues.at(to).is_memory_only());
                let first = slot.filter(|_| forsakes).and_then(|slot| {
                    let id = self.elements(slot, *from_end).next()?;
                    self.living(id).body.here().is_none().then_some(id)
                });
                first.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn needed_by_operator(&self, command: &AdminCommand) -> Vec<MessageId> {
        let (queue, state, held, selector, message, after) = match command {
            AdminCommand::Browse { queue, state, selector, after, .. } => {
                (queue, *state, true, selector, None, *after)
            }
            AdminCommand::Purge { queue, state, selector, after } => {
                (queue, *state, false, selector, None, *after)
            }
            AdminCommand::MoveMessages { from, selector, message, after, .. } => {
                (from, None, false, selector, *message, *after)
            }
            _ => return Vec::new(),
        };
        let Some(Ok(selector)) = selector.as_deref().map(parse_selector) else {
            return Vec::new();
        };
        if let Some(id) = message {
            let is_away = self.find(id).is_some_and(|message| message.body.here().is_none());
            return if is_away { vec![id] } else { Vec::new() };
        }
        let selector = Some(&selector);
        self.first_unseen(queue, state, held, selector, after)
    }

    /// Where the very first message that a selector would look into is away: it.
    fn first_unseen(
        &self,
        queue: &QueueName,
        state: Option<model::MessageState>,
        held: bool,
        selector: Option<&selector::Selector>,
        after: Option<PageEnd>,
    ) -> Vec<MessageId> {
        let Some(queue) = self.queues.find(queue.as_str()) else { return Vec::new() };
        let sought = Sought { queue, state, held, selector, after, max: 1 };
        self.stopped_at_once(&sought).into_iter().collect()
    }

    /// Whether a body that was fetched is to be kept: it is waited for, or will be soon.
    fn is_to_come(&self, id: MessageId, lsn: Lsn) -> bool {
        let Some(message) = self.messages.get(id.0) else { return false };
        let is_its = message.location == lsn && matches!(message.body, Stored::Away { .. });
        let is_ready = |message: &Message| message.state() == State::Ready;
        is_its && (is_ready(message) || self.awaited.bodies.contains(&(lsn, id)))
    }

    /// What waits is known, and what is waited for is away.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check_awaited(&self) {
        for (lsn, id) in &self.awaited.bodies {
            let message = self.messages.get(id.0);
            let message = message.expect("what is waited for lives");
            assert!(message.body.here().is_none(), "what is waited for is away");
            assert_eq!(message.location, *lsn, "what is waited for is where it is");
        }
        let waits = !self.awaited.commands.is_empty() || !self.awaited.browsers.is_empty();
        let is_served = !self.awaited.bodies.is_empty() || self.awaited.is_disturbed;
        assert!(!waits || is_served, "who waits for bodies waits for some");
    }
}

/// The list that a command compares with an element.
fn compared(command: &Command) -> Option<(&QueueName, &[u8])> {
    let Command::List(command) = command else { return None };
    match &**command {
        ListCommand::Insert { queue, pivot: element, .. }
        | ListCommand::Remove { queue, element, .. }
        | ListCommand::Locate { queue, element, .. } => Some((queue, element)),
        _ => None,
    }
}

/// The list whose elements a command gives to another.
fn moved_from(command: &Command) -> Option<&QueueName> {
    match command {
        Command::List(command) => match &**command {
            ListCommand::Move { from, .. } => Some(from),
            _ => None,
        },
        Command::Key(command) => match &**command {
            KeyCommand::Rename { from, .. } => Some(from),
            _ => None,
        },
        _ => None,
    }
}
