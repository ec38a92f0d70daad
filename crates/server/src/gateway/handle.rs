//! What tasks hold of the gateway.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use http_api::{
    Asker, Events, Figures, GatewayError, Guest, Leased, Readiness, SegmentFigures, Token, Wanted,
    Work,
};
use model::{Delivery, Nanos, QueueName, Reply, limits};
use tokio::sync::{mpsc, oneshot};

use crate::gateway::figures;
use crate::gateway::followers::{ToFollower, WINDOW, WINDOW_BYTES};
use crate::gateway::inbox::{Inbox, Ticket, Wish};
use crate::gateway::pump::give_back;
use crate::hub::{Hub, Phase};
use crate::seats::{self, Exit};

/// A way into the broker for tasks of this process. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Gateway {
    hub: Arc<Hub>,
    tickets: Arc<AtomicU64>,
}

impl Gateway {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, tickets: Arc::default() }
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }
}

impl http_api::Gateway for Gateway {
    type Events = Following;
    type Seat = Seat;

    fn now(&self) -> Nanos {
        self.hub.now()
    }

    fn wall_time(&self, time: Nanos) -> Nanos {
        self.hub.wall_clock.wall_time(time)
    }

    fn admit(&self, Guest { peer, is_local, hangup }: Guest) -> Option<Seat> {
        let now = self.hub.clock.now();
        let seat = self.hub.admit(now, peer, Exit::Task(hangup), is_local)?;
        Some(Seat(Mutex::new(seat)))
    }

    async fn ask(&self, work: Work) -> Result<Vec<Reply>, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (ticket, asker) = (self.ticket(), work.asker.clone());
        self.hub.inbox.push(Wish::Work(ticket, work, reply))?;
        Waiting { inbox: &self.hub.inbox, ticket, answer: Some(answer), untaken: |_, _| {} }
            .end(&asker)
            .await
    }

    async fn receive(&self, wanted: Wanted) -> Result<Vec<Leased>, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (ticket, asker) = (self.ticket(), wanted.asker.clone());
        self.hub.inbox.push(Wish::Receive(ticket, wanted, reply))?;
        let untaken = |inbox: &Inbox, leased: Vec<Leased>| {
            give_back(inbox, leased.iter().map(|leased| leased.token).collect());
        };
        Waiting { inbox: &self.hub.inbox, ticket, answer: Some(answer), untaken }.end(&asker).await
    }

    fn give_back(&self, tokens: Vec<Token>) {
        give_back(&self.hub.inbox, tokens);
    }

    async fn follow(&self, topic: QueueName) -> Result<Following, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let (to, events) = mpsc::channel(WINDOW as usize);
        let to = ToFollower { messages: to, end: Arc::default() };
        let (ticket, end) = (self.ticket(), Arc::clone(&to.end));
        self.hub.inbox.push(Wish::Follow(ticket, topic, to, reply))?;
        let inbox = Arc::clone(&self.hub.inbox);
        let following = Following { inbox, ticket, events, end, taken: 0, taken_bytes: 0 };
        answer.await.unwrap_or(Err(GatewayError::Stopping))?;
        Ok(following)
    }

    fn readiness(&self) -> Readiness {
        if self.hub.phase() > Phase::Serving {
            return Readiness::Stopping;
        }
        let core = self.hub.lock();
        if core.commons.draining.has_begun() {
            return Readiness::Draining;
        }
        let usual = self.hub.limits.message_bytes.unwrap_or(limits::MESSAGE_BYTES_DEFAULT);
        let is_full = core.broker.room() < usual as u64;
        if is_full { Readiness::Full } else { Readiness::Ready }
    }

    fn figures(&self) -> Figures {
        let broker = self.hub.lock().broker.statistics();
        figures::of(broker, &self.hub.counters())
    }

    async fn segments(&self) -> Vec<SegmentFigures> {
        let mut explaining = self.hub.lock().broker.explain();
        while self.hub.lock().broker.go_on_explaining(&mut explaining) {
            tokio::task::yield_now().await;
        }
        explaining.end().into_iter().map(figures::of_segment).collect()
    }
}

/// A work or a receive that waits. Whoever drops it gets nothing, and loses nothing for others.
struct Waiting<'a, T> {
    inbox: &'a Inbox,
    ticket: Ticket,
    answer: Option<oneshot::Receiver<Result<T, GatewayError>>>,
    /// What becomes of an answer that came too late.
    untaken: fn(&Inbox, T),
}

impl<T> Waiting<'_, T> {
    /// Who leaves is answered as soon as it need not wait.
    async fn end(mut self, asker: &Asker) -> Result<T, GatewayError> {
        let answer = self.answer.as_mut().expect("invariant: it is waited for once");
        let result = tokio::select! {
            biased;
            result = &mut *answer => result,
            () = asker.left() => {
                // Never refused: it ends something that was let in.
                let _ = self.inbox.push(Wish::Abandon(self.ticket));
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
            (self.untaken)(self.inbox, answer);
        }
        // Never refused: it ends something that was let in.
        let _ = self.inbox.push(Wish::Abandon(self.ticket));
    }
}

/// A subscription of a topic.
pub(crate) struct Following {
    inbox: Arc<Inbox>,
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
        if self.taken >= WINDOW / 4 || self.taken_bytes >= WINDOW_BYTES / 4 {
            // Never refused: it belongs to something that was let in.
            let _ = self.inbox.push(Wish::Took(self.ticket, self.taken, self.taken_bytes));
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
        // Never refused: it ends something that was let in.
        let _ = self.inbox.push(Wish::Leave(self.ticket));
    }
}

/// One of the connections that may be open.
pub(crate) struct Seat(Mutex<seats::Seat>);

impl http_api::Seat for Seat {
    fn speak(&self) {
        self.0.lock().expect("invariant: nobody panics with a seat").speak();
    }
}
