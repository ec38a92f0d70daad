//! The next questions for the engine. A request of the peer that means many messages is kept as it
//! is and taken apart one by one. So a frame of thirty bytes makes no long list.

use alloc::collections::VecDeque;

use model::{Command, LinkId, MessageId, Settlement, TransactionId};

use crate::Connection;
use crate::connection::event::{Answer, Awaited, Settling};
use crate::connection::session::{SessionKey, Unsettled};

/// Something to ask the engine.
#[derive(Debug)]
pub(crate) enum Work {
    Ask(Command, Awaited),
    /// A consumer may get more, or less.
    Grant(LinkId),
    /// Messages that were not sent go back.
    Release(VecDeque<MessageId>),
    Settle(SettlingRange),
}

/// The peer's disposition of neighbouring deliveries.
#[derive(Debug)]
pub(crate) struct SettlingRange {
    pub(crate) session: SessionKey,
    /// The first that was not looked at.
    pub(crate) next: u64,
    pub(crate) last: u64,
    /// Its settlement; nothing: the default of each link.
    pub(crate) settlement: Option<Settlement>,
    pub(crate) transaction: Option<TransactionId>,
    /// The answer that the peer waits for.
    pub(crate) answer: Option<Answer>,
}

/// Neighbouring deliveries that the peer was heard to settle, in our turn.
pub(super) struct SettledRange(Option<(u64, u64)>);

impl SettledRange {
    pub(super) fn has(&self, delivery: u64) -> bool {
        self.0.is_some_and(|(first, last)| (first..=last).contains(&delivery))
    }
}

/// A producer that never was.
const NOBODY: LinkId = LinkId(u32::MAX);

impl Connection {
    pub(super) fn ask(&mut self, command: Command, awaited: Awaited) {
        self.work.push_back(Work::Ask(command, awaited));
    }

    /// Asks for nothing: the reply says that all before it was replied to.
    pub(super) fn ask_nothing(&mut self, awaited: Awaited) {
        self.ask(Command::CloseProducer { link: NOBODY }, awaited);
    }

    /// Gives back unsent messages.
    pub(super) fn release(&mut self, messages: VecDeque<MessageId>) {
        if !messages.is_empty() {
            self.work.push_back(Work::Release(messages));
        }
    }

    /// A commit may be answered later than commands behind it, and replies are told apart by their
    /// order: so nothing is asked meanwhile.
    pub(super) fn is_committing(&self) -> bool {
        matches!(self.awaited.back(), Some(Awaited::Discharged(..)))
    }

    pub(super) fn next_work(&mut self) -> Option<Command> {
        if self.is_committing() {
            return None;
        }
        while let Some(work) = self.work.pop_front() {
            let (command, awaited) = match work {
                Work::Ask(command, awaited) => (command, awaited),
                Work::Grant(link) => match self.grant(link) {
                    Some(credit) => return Some(credit),
                    None => continue,
                },
                Work::Release(messages) => match self.release_next(messages) {
                    Some(release) => (release, Awaited::Ignored),
                    None => continue,
                },
                Work::Settle(range) => match self.settle_next(range) {
                    Some(next) => next,
                    None => continue,
                },
            };
            self.awaited.push_back(awaited);
            return Some(command);
        }
        None
    }

    /// The disposition that waits for its turn in a session. It is first of all waiting work, since
    /// nothing is read while any waits.
    pub(super) fn settling(&self, key: SessionKey) -> SettledRange {
        let is_settling = |work: &Work| matches!(work, Work::Settle(_));
        debug_assert!(!self.work.iter().skip(1).any(is_settling), "one at a time, and first");
        SettledRange(match self.work.front() {
            Some(Work::Settle(range)) if range.session == key => Some((range.next, range.last)),
            _ => None,
        })
    }

    fn release_next(&mut self, mut messages: VecDeque<MessageId>) -> Option<Command> {
        let message = messages.pop_front()?;
        if !messages.is_empty() {
            self.work.push_front(Work::Release(messages));
        }
        Some(settle(message, Settlement::Return, None))
    }

    fn settle_next(&mut self, mut range: SettlingRange) -> Option<(Command, Awaited)> {
        let session = self.sessions.get_mut(&range.session)?;
        let (&delivery, _) = session.unsettled.range(range.next..=range.last).next()?;
        let unsettled = session.unsettled.remove(&delivery)?;
        self.held_bytes -= unsettled.bytes();
        let readmitted = session.readmit();
        self.work.extend(readmitted.into_iter().map(Work::Grant));
        let asked = self.settle_one(&range, delivery, unsettled);
        range.next = delivery + 1;
        if range.next <= range.last {
            self.work.push_front(Work::Settle(range));
        }
        Some(asked)
    }

    fn settle_one(
        &mut self,
        range: &SettlingRange,
        delivery: u64,
        unsettled: Unsettled,
    ) -> (Command, Awaited) {
        let (mut default, mut has_stopped) = (Settlement::Release, false);
        if let Some(consumer) = self.consumer(unsettled.link) {
            // One that is ending has none.
            consumer.note_settled(range, delivery);
            consumer.unsettled.remove(&delivery);
            (default, has_stopped) = (consumer.default, consumer.has_stopped());
        }
        let Some(message) = unsettled.message else {
            // A copy: nothing becomes of it, but an answer has its turn.
            let awaited = settling(range, delivery, None);
            return (Command::CloseProducer { link: NOBODY }, awaited);
        };
        let awaited = settling(range, delivery, Some(message));
        let settlement = match range.settlement.unwrap_or(default) {
            // Fetched ahead: JMS clients stop a consumer before they roll back, and give back the
            // messages that it did not look at.
            Settlement::Release if has_stopped => Settlement::Return,
            settlement => settlement,
        };
        (settle(message, settlement, range.transaction), awaited)
    }
}

fn settling(range: &SettlingRange, delivery: u64, message: Option<MessageId>) -> Awaited {
    if range.answer.is_none() && range.transaction.is_none() {
        return Awaited::Ignored;
    }
    let SettlingRange { session, transaction, .. } = *range;
    let answer = range.answer.clone();
    Awaited::Settled(Settling { session, delivery, message, transaction, answer })
}

pub(super) const fn settle(
    message: MessageId,
    settlement: Settlement,
    transaction: Option<TransactionId>,
) -> Command {
    Command::Settle { message, settlement, transaction }
}
