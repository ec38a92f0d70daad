//! Requests on their way from tasks to the gateway loop.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use model::{QueueName, Reply};
use tokio::sync::{Notify, oneshot};

use crate::gateway::followers::ToFollower;
use crate::{Actor, GatewayError, Leased, Token, Wanted, Work};

/// The channel for the answer to a work.
pub(crate) type WorkReply = oneshot::Sender<Result<Vec<Reply>, GatewayError>>;
/// The channel for the answer to a receive.
pub(crate) type ReceiveReply = oneshot::Sender<Result<Vec<Leased>, GatewayError>>;

/// The number of a work, a receive or a follower. This process uses each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// One request of a task.
#[derive(Debug)]
pub(crate) enum Request {
    Work(Ticket, Actor, Work, WorkReply),
    Receive(Ticket, Actor, Wanted, ReceiveReply),
    /// The task of this work or receive is gone, or waits no longer.
    Abandon(Ticket),
    /// No client has seen these leases.
    GiveBack(Vec<Token>),
    Follow(Ticket, Actor, QueueName, ToFollower, oneshot::Sender<Result<(), GatewayError>>),
    /// A follower has read so many messages more, of so many bytes.
    Took(Ticket, u64, u64),
    /// A follower is gone.
    Leave(Ticket),
}

impl Request {
    /// True if it follows a request that was admitted, which can so always end.
    const fn follows_another(&self) -> bool {
        matches!(self, Self::Abandon(_) | Self::GiveBack(_) | Self::Took(..) | Self::Leave(_))
    }
}

/// Requests that wait for the gateway.
#[derive(Debug, Default)]
pub struct RequestQueue {
    state: Mutex<State>,
    /// Woken also by mail and completed writes: the mailbox of the gateway loop has it too.
    waker: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
    /// How many of these the limit counts.
    counted: usize,
}

impl RequestQueue {
    /// Adds a request.
    ///
    /// # Errors
    /// [`GatewayError::Busy`]: [`REQUESTS_MAX`] wait.
    pub(crate) fn push(&self, request: Request) -> Result<(), GatewayError> {
        let counts = !request.follows_another();
        let mut state = self.state.lock().expect(POISONED);
        if counts && state.counted >= REQUESTS_MAX {
            return Err(GatewayError::Busy);
        }
        state.counted += usize::from(counts);
        state.waiting.push_back(request);
        drop(state);
        self.waker.notify_one();
        Ok(())
    }

    /// Returns leases that no client has seen: their messages are ready again.
    pub fn give_back(&self, tokens: Vec<Token>) {
        if !tokens.is_empty() {
            // Never refused: it ends a request that was admitted.
            let _ = self.push(Request::GiveBack(tokens));
        }
    }

    pub(crate) fn pop(&self) -> Option<Request> {
        let mut state = self.state.lock().expect(POISONED);
        let request = state.waiting.pop_front()?;
        state.counted -= usize::from(!request.follows_another());
        Some(request)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().expect(POISONED).waiting.is_empty()
    }

    /// Woken by each request.
    pub fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.waker)
    }

    /// Waits until it is woken, or was since the last call.
    pub async fn woken(&self) {
        self.waker.notified().await;
    }
}

const POISONED: &str = "invariant: no thread panics while it holds the queue";

/// Requests that may wait for the broker; one more is refused. They wait only while the log stalls,
/// or if tens of thousands come at once.
pub const REQUESTS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Request {
        Request::Work(Ticket(0), Actor::default(), Work::steps(Vec::new()), oneshot::channel().0)
    }

    #[test]
    fn full_queue_takes_only_endings() {
        let requests = RequestQueue::default();
        for _ in 0..REQUESTS_MAX {
            assert_eq!(requests.push(work()), Ok(()));
        }
        assert_eq!(requests.push(work()), Err(GatewayError::Busy));
        assert_eq!(requests.push(Request::Abandon(Ticket(1))), Ok(()));
        assert!(requests.pop().is_some());
        assert_eq!(requests.push(work()), Ok(()));
        assert_eq!(std::iter::from_fn(|| requests.pop()).count(), REQUESTS_MAX + 1);
        assert!(requests.is_empty());
    }
}
