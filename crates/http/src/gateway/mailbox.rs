//! Wishes on their way from tasks to the pump.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use model::{QueueName, Reply};
use tokio::sync::{Notify, oneshot};

use crate::gateway::followers::ToFollower;
use crate::{GatewayError, Leased, Token, Wanted, Work};

/// Who gets what became of some work.
pub(crate) type WorkReply = oneshot::Sender<Result<Vec<Reply>, GatewayError>>;
/// Who gets what was received.
pub(crate) type ReceiveReply = oneshot::Sender<Result<Vec<Leased>, GatewayError>>;

/// Tells one work, receive or follower of this process from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// What a task asks of the pump.
#[derive(Debug)]
pub(crate) enum Wish {
    Work(Ticket, Work, WorkReply),
    Receive(Ticket, Wanted, ReceiveReply),
    /// Whoever waited for this work or receive is gone, or waits no longer.
    Abandon(Ticket),
    /// Nobody saw these.
    GiveBack(Vec<Token>),
    Follow(Ticket, QueueName, ToFollower, oneshot::Sender<Result<(), GatewayError>>),
    /// A follower took so many more messages, of so many bytes.
    Took(Ticket, u64, u64),
    /// A follower is gone.
    Leave(Ticket),
}

impl Wish {
    /// Whether it comes of one that was let in before, which then always ends.
    const fn follows_another(&self) -> bool {
        matches!(self, Self::Abandon(_) | Self::GiveBack(_) | Self::Took(..) | Self::Leave(_))
    }
}

/// The wishes that wait.
#[derive(Debug, Default)]
pub struct Inbox {
    wishes: Mutex<Wishes>,
    /// Rings also for mail and completed writes: it is the bell of the pump's post.
    bell: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Wishes {
    waiting: VecDeque<Wish>,
    /// Of these, those that a limit counts.
    counted: usize,
}

impl Inbox {
    /// Leaves a wish.
    ///
    /// # Errors
    /// [`GatewayError::Busy`]: [`WISHES_MAX`] wait.
    pub(crate) fn push(&self, wish: Wish) -> Result<(), GatewayError> {
        let counts = !wish.follows_another();
        let mut wishes = self.wishes.lock().expect(POISONED);
        if counts && wishes.counted >= WISHES_MAX {
            return Err(GatewayError::Busy);
        }
        wishes.counted += usize::from(counts);
        wishes.waiting.push_back(wish);
        drop(wishes);
        self.bell.notify_one();
        Ok(())
    }

    /// What nobody took is ready again.
    pub fn give_back(&self, tokens: Vec<Token>) {
        if !tokens.is_empty() {
            // Never refused: it ends something that was let in.
            let _ = self.push(Wish::GiveBack(tokens));
        }
    }

    pub(crate) fn pop(&self) -> Option<Wish> {
        let mut wishes = self.wishes.lock().expect(POISONED);
        let wish = wishes.waiting.pop_front()?;
        wishes.counted -= usize::from(!wish.follows_another());
        Some(wish)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wishes.lock().expect(POISONED).waiting.is_empty()
    }

    /// Rings when something has come.
    pub fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Ends when something has come since the last time.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}

const POISONED: &str = "invariant: nobody panics with the wishes";

/// Wishes that may wait for the broker; one more is refused. They wait only while the log stalls
/// or tens of thousands ask at once.
pub const WISHES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Wish {
        Wish::Work(Ticket(0), Work::steps(Vec::new()), oneshot::channel().0)
    }

    #[test]
    fn too_many_wishes_are_refused_but_what_ends_others_is_not() {
        let inbox = Inbox::default();
        for _ in 0..WISHES_MAX {
            assert_eq!(inbox.push(work()), Ok(()));
        }
        assert_eq!(inbox.push(work()), Err(GatewayError::Busy));
        assert_eq!(inbox.push(Wish::Abandon(Ticket(1))), Ok(()));
        assert!(inbox.pop().is_some());
        assert_eq!(inbox.push(work()), Ok(()));
        assert_eq!(std::iter::from_fn(|| inbox.pop()).count(), WISHES_MAX + 1);
        assert!(inbox.is_empty());
    }
}
