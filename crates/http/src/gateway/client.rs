//! The gateway as tasks see it: each request is a future that ends with its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use model::{Delivery, QueueName, Reply};
use tokio::sync::{mpsc, oneshot};

use crate::gateway::followers::{ToFollower, WINDOW_BYTES};
use crate::gateway::request_queue::{Request, RequestQueue, Ticket};
use crate::{Actor, Asker, Events, GatewayError, Leased, Token, Wanted, Work};

/// A handle to the gateway for tasks of this process. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct GatewayClient {
    requests: Arc<RequestQueue>,
    tickets: Arc<AtomicU64>,
    /// Messages that a follower may leave unread.
    unread_max: usize,
}

impl GatewayClient {
    /// Its followers may leave so many messages unread before they get no more.
    pub fn new(requests: Arc<RequestQueue>, unread_max: usize) -> Self {
        Self { requests, tickets: Arc::default(), unread_max }
    }

    /// See [`crate::Gateway::ask`].
    pub async fn ask(&self, actor: Actor, work: Work) -> Result<Vec<Reply>, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (ticket, asker) = (self.ticket(), work.asker.clone());
        self.requests.push(Request::Work(ticket, actor, work, reply))?;
        Waiting { requests: &self.requests, ticket, answer: Some(answer), untaken: |_, _| {} }
            .end(&asker)
            .await
    }

    /// See [`crate::Gateway::receive`].
    pub async fn receive(&self, actor: Actor, wanted: Wanted) -> Result<Vec<Leased>, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (ticket, asker) = (self.ticket(), wanted.asker.clone());
        self.requests.push(Request::Receive(ticket, actor, wanted, reply))?;
        let untaken = |requests: &RequestQueue, leased: Vec<Leased>| {
            requests.give_back(leased.iter().map(|leased| leased.token).collect());
        };
        Waiting { requests: &self.requests, ticket, answer: Some(answer), untaken }
            .end(&asker)
            .await
    }

    /// See [`crate::Gateway::give_back`].
    pub fn give_back(&self, tokens: Vec<Token>) {
        self.requests.give_back(tokens);
    }

    /// See [`crate::Gateway::follow`].
    pub async fn follow(&self, actor: Actor, topic: QueueName) -> Result<Following, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (to, events) = mpsc::channel(self.unread_max);
        let to = ToFollower { messages: to, end: Arc::default() };
        let (ticket, end) = (self.ticket(), Arc::clone(&to.end));
        self.requests.push(Request::Follow(ticket, actor, topic, to, reply))?;
        let requests = Arc::clone(&self.requests);
        let following = Following { requests, ticket, events, end, taken: 0, taken_bytes: 0 };
        answer.await.unwrap_or(Err(GatewayError::Stopping))?;
        Ok(following)
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }
}

/// A work or a receive that waits. A task that drops it gets nothing, and takes nothing from other
/// clients.
struct Waiting<'a, T> {
    requests: &'a RequestQueue,
    ticket: Ticket,
    answer: Option<oneshot::Receiver<Result<T, GatewayError>>>,
    /// Handles an answer that came too late.
    untaken: fn(&RequestQueue, T),
}

impl<T> Waiting<'_, T> {
    /// Waits for the answer. Once the asker has left, the gateway answers as soon as it can
    /// without a wait.
    async fn end(mut self, asker: &Asker) -> Result<T, GatewayError> {
        let answer = self.answer.as_mut().expect("invariant: it is waited for once");
        let result = tokio::select! {
            biased;
            result = &mut *answer => result,
            () = asker.left() => {
                // Never refused: it ends a request that was admitted.
                let _ = self.requests.push(Request::Abandon(self.ticket));
                answer.await
            }
        };
        let result = result.unwrap_or(Err(GatewayError::Stopping));
        self.answer = None;
        result
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else { return };
        answer.close();
        if let Ok(Ok(answer)) = answer.try_recv() {
            (self.untaken)(self.requests, answer);
        }
        // Never refused: it ends a request that was admitted.
        let _ = self.requests.push(Request::Abandon(self.ticket));
    }
}

/// A subscription of a topic.
#[derive(Debug)]
pub struct Following {
    requests: Arc<RequestQueue>,
    ticket: Ticket,
    events: mpsc::Receiver<Delivery>,
    end: Arc<OnceLock<String>>,
    taken: u64,
    taken_bytes: u64,
}

impl Events for Following {
    async fn next(&mut self) -> Option<Delivery> {
        let event = self.events.recv().await?;
        self.taken += 1;
        self.taken_bytes += event.charge;
        let many = self.events.max_capacity() as u64 / 4;
        if self.taken >= many || self.taken_bytes >= WINDOW_BYTES / 4 {
            // Never refused: it belongs to a request that was admitted.
            let _ = self.requests.push(Request::Took(self.ticket, self.taken, self.taken_bytes));
            (self.taken, self.taken_bytes) = (0, 0);
        }
        Some(event)
    }

    fn end(&self) -> Option<String> {
        self.end.get().cloned()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Never refused: it ends a request that was admitted.
        let _ = self.requests.push(Request::Leave(self.ticket));
    }
}
