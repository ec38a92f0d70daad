//! Answers on their way to tasks. Each is held until the log is as durable as it depends on.

use input::Held;
use model::{Delivery, DependsOn, Durability, Durable, Lsn, Reply, WallClock};
use tokio::sync::{mpsc, oneshot};

use crate::gateway::request_queue::{ReceiveReply, WorkReply};
use crate::{GatewayError, Leased, Token};

/// The frames that an answer of several replies depends on: each level by itself, since nothing may
/// ever sync a frame that had to be written only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    written: Lsn,
    synced: Lsn,
}

impl Waits {
    pub(crate) fn add(&mut self, after: DependsOn) {
        match after.level {
            Durability::None => {}
            Durability::Written => self.written = self.written.max(after.lsn),
            Durability::Synced => self.synced = self.synced.max(after.lsn),
        }
    }

    /// The dependency to wait for next, and the rest.
    fn split(self) -> (DependsOn, Self) {
        if self.synced > Lsn::ZERO {
            let rest = Self { synced: Lsn::ZERO, ..self };
            return (DependsOn::new(self.synced, Durability::Synced), rest);
        }
        (DependsOn::new(self.written, Durability::Written), Self::default())
    }
}

/// An answer and the task that waits for it.
#[derive(Debug)]
pub(crate) enum Answer {
    Work(WorkReply, Result<Vec<Reply>, GatewayError>),
    Received(ReceiveReply, Result<Vec<Leased>, GatewayError>),
    Followed(oneshot::Sender<Result<(), GatewayError>>, Result<(), GatewayError>),
    Event(mpsc::Sender<Delivery>, Delivery),
}

impl Answer {
    fn tell_by(&mut self, clock: &WallClock) {
        match self {
            Self::Work(_, Ok(replies)) => replies.iter_mut().for_each(|it| it.tell_by(clock)),
            Self::Received(_, Ok(leased)) => {
                leased.iter_mut().for_each(|leased| leased.delivery.tell_by(clock));
            }
            Self::Event(_, delivery) => delivery.tell_by(clock),
            Self::Work(..) | Self::Received(..) | Self::Followed(..) => {}
        }
    }
}

/// Answers that wait for the log.
#[derive(Debug)]
pub(crate) struct Answers {
    held: Held<(Waits, Answer)>,
    clock: WallClock,
}

impl Answers {
    /// Answers give moments by this clock.
    pub(crate) fn new(clock: WallClock) -> Self {
        Self { held: Held::new(), clock }
    }

    pub(crate) fn push(&mut self, waits: Waits, answer: Answer) {
        let (after, rest) = waits.split();
        self.held.push(after, (rest, answer));
    }

    /// Sends the answers that the log is durable enough for. Returns the leases of answers with no
    /// task left.
    pub(crate) fn release(&mut self, durable: Durable) -> Vec<Token> {
        self.held.advance(durable);
        let mut untaken = Vec::new();
        while let Some((rest, mut answer)) = self.held.pop() {
            if rest != Waits::default() {
                self.push(rest, answer);
                continue;
            }
            answer.tell_by(&self.clock);
            untaken.extend(send(answer));
        }
        untaken
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_holding()
    }
}

/// Sends an answer. If its task is gone, it returns the leases that the answer has.
fn send(answer: Answer) -> Vec<Token> {
    match answer {
        Answer::Work(to, result) => drop(to.send(result)),
        Answer::Followed(to, result) => drop(to.send(result)),
        // Credit keeps the events under way within the capacity of the channel.
        Answer::Event(to, delivery) => drop(to.try_send(delivery)),
        Answer::Received(to, result) => {
            let untaken = to.send(result).err().and_then(Result::ok).unwrap_or_default();
            return untaken.iter().map(|leased| leased.token).collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use model::MessageId;

    use super::*;

    fn waits(written: u64, synced: u64) -> Waits {
        Waits { written: Lsn(written), synced: Lsn(synced) }
    }

    fn durable(written: u64, synced: u64) -> Durable {
        Durable { written: Lsn(written), synced: Lsn(synced) }
    }

    #[test]
    fn answer_waits_for_each_level() {
        let mut answers = Answers::new(WallClock::default());
        let (to, mut from) = oneshot::channel();
        let mut both = Waits::default();
        both.add(DependsOn::new(Lsn(5), Durability::Written));
        both.add(DependsOn::new(Lsn(2), Durability::Synced));
        both.add(DependsOn::NOTHING);
        assert_eq!(both, waits(5, 2));
        answers.push(both, Answer::Work(to, Ok(Vec::new())));
        answers.release(durable(4, 1));
        assert!(from.try_recv().is_err() && answers.is_holding());
        answers.release(durable(4, 2));
        assert!(from.try_recv().is_err() && answers.is_holding());
        answers.release(durable(5, 2));
        assert_eq!(from.try_recv(), Ok(Ok(Vec::new())));
        assert!(!answers.is_holding());
    }

    #[test]
    fn untaken_leases_are_returned() {
        let mut answers = Answers::new(WallClock::default());
        let (to, from) = oneshot::channel();
        drop(from);
        let token = Token { message: MessageId(3), nonce: 4 };
        let leased = Leased { token, delivery: Delivery::new(token.message, (*b"").into()) };
        answers.push(Waits::default(), Answer::Received(to, Ok(vec![leased])));
        assert_eq!(answers.release(Durable::default()), [token]);
    }
}
