//! The loop of the gateway: a reactor without sockets, as a task of the runtime of HTTP. Its turn
//! has the order of [`crate::reactor`].

use std::sync::Arc;
use std::time::Duration;

use http_api::{GatewayOptions, GatewayState, RequestQueue, Stage, TRANSACTIONS_MAX};
use model::Nanos;
use tokio::sync::{Notify, watch};

use crate::Failure;
use crate::gateway_thread::locked_broker::LockedBroker;
use crate::hub::{Hub, Phase};
use crate::logins::Standing;
use crate::mailbox::Sleep;
use crate::step::STEPS_PER_TURN;

/// Takes turns of the gateway: steps the broker and sends the answers.
pub(crate) struct GatewayLoop {
    hub: Arc<Hub>,
    index: usize,
    requests: Arc<RequestQueue>,
    state: GatewayState,
    stage: watch::Sender<Stage>,
    /// The broker was stalled when so many writes and chores had completed.
    stalled_at: Option<u64>,
    /// Work was postponed when so many had completed.
    postponed_at: u64,
    /// How many had completed when answers were released last.
    completions: u64,
    /// How often users had been reviewed when followers were held against them last.
    users_seen: u64,
}

impl GatewayLoop {
    /// Opens the sessions of the gateway.
    pub(crate) fn new(hub: Arc<Hub>, stage: watch::Sender<Stage>) -> Self {
        Self::with_transactions(hub, stage, TRANSACTIONS_MAX)
    }

    /// The same with this limit of open transactions without leases.
    fn with_transactions(
        hub: Arc<Hub>,
        stage: watch::Sender<Stage>,
        transactions_max: usize,
    ) -> Self {
        let requests = Arc::clone(&hub.requests);
        let index = hub.reactors();
        let now = hub.clock.now();
        let options = GatewayOptions {
            instance: now.0,
            receives_max: hub.receives_max(),
            transactions_max,
            wall_clock: hub.wall_clock.clone(),
            draining: hub.lock().commons.draining.clone(),
        };
        let mut core = hub.lock();
        let mut broker = LockedBroker::new(&mut core, &hub, index, now);
        let state = GatewayState::open(options, &mut broker);
        drop(core);
        Self {
            hub,
            index,
            requests,
            state,
            stage,
            stalled_at: None,
            postponed_at: 0,
            completions: 0,
            users_seen: 0,
        }
    }

    /// Serves until `closing` is notified and all requests are answered, or the server has failed.
    pub(crate) async fn run(mut self, closing: Arc<Notify>) {
        let mut is_closing = false;
        while !self.turn() {
            if is_closing && self.is_done() {
                self.close();
                break;
            }
            self.sleep(&closing, &mut is_closing).await;
        }
        // No thread wakes it from here on.
        self.hub.mailbox(self.index).awake();
    }

    /// True if all requests are answered.
    fn is_done(&self) -> bool {
        !self.state.is_holding()
            && !self.state.is_postponed()
            && !self.state.is_behind(&self.requests)
    }

    /// Takes one turn. `true`: the server has failed, and the loop ends at once.
    fn turn(&mut self) -> bool {
        let stage = stage_of(self.hub.phase());
        if stage == Stage::Halted {
            self.stage.send_replace(stage);
            return true;
        }
        self.step(stage);
        self.release();
        false
    }

    fn step(&mut self, stage: Stage) {
        let now = self.hub.now();
        let mail = self.hub.mailbox(self.index).take_mail();
        let stops = stage > *self.stage.borrow();
        let is_due = self.state.deadline().is_some_and(|deadline| deadline <= now);
        let users = self.hub.users_generation();
        let reviews = users != self.users_seen;
        if !mail && !stops && !is_due && !reviews && !self.has_more() {
            return;
        }
        let completions = self.hub.completions();
        let core = &mut *self.hub.lock();
        let before = core.broker.steps();
        let mut broker = LockedBroker::new(core, &self.hub, self.index, now);
        if stops {
            self.state.stop_waits(&mut broker);
            self.stage.send_replace(stage);
        }
        if reviews {
            self.users_seen = users;
            let stays = |rights: &_| !matches!(self.hub.standing(rights), Standing::Ended);
            self.state.review_followers(&mut broker, stays);
        }
        if self.postponed_at != completions {
            self.state.resume_postponed();
        }
        self.state.step(&mut broker, &self.requests, STEPS_PER_TURN);
        self.stalled_at = core.broker.stalled().then_some(completions);
        self.postponed_at = completions;
        let session = [self.state.session()];
        let active = if core.broker.steps() > before { &session[..] } else { &[] };
        self.hub.commit_elsewhere(core, active, now);
    }

    fn release(&mut self) {
        // In this order: a write that completes in between is seen by the next turn.
        self.completions = self.hub.completions();
        let untaken = self.state.release(self.hub.durable());
        self.requests.give_back(untaken);
    }

    /// True if a turn has something to do although nothing new has come.
    fn has_more(&self) -> bool {
        let stalled = self.stalled_at.is_some_and(|then| then == self.hub.completions());
        let resumes = self.state.is_postponed() && self.postponed_at != self.hub.completions();
        resumes || !stalled && self.state.is_behind(&self.requests)
    }

    /// Waits for requests, mail, completed writes, slow followers or the end.
    async fn sleep(&mut self, closing: &Notify, is_closing: &mut bool) {
        let postpones = self.state.is_postponed();
        let holds = self.state.is_holding() || self.stalled_at.is_some() || postpones;
        let sleep = if holds { Sleep::ForWrites } else { Sleep::ForMail };
        let mailbox = self.hub.mailbox(self.index);
        let quiet = mailbox.sleep(sleep);
        let missed = holds && self.completions != self.hub.completions()
            || stage_of(self.hub.phase()) > *self.stage.borrow();
        if !quiet || missed || self.has_more() {
            mailbox.awake();
            return tokio::task::yield_now().await;
        }
        let deadline = self.state.deadline();
        let span = deadline.map(|deadline| deadline.since(self.hub.clock.now()));
        tokio::select! {
            () = self.requests.woken() => {}
            () = pass(span) => {}
            () = closing.notified() => *is_closing = true,
        }
        self.hub.mailbox(self.index).awake();
    }

    fn close(&mut self) {
        let now = self.hub.clock.now();
        let core = &mut *self.hub.lock();
        let mut broker = LockedBroker::new(core, &self.hub, self.index, now);
        self.state.close(&mut broker);
        self.hub.commit_elsewhere(core, &[self.state.session()], now);
    }
}

/// No other thread would notice a panic before the server stops, and all clients would wait.
impl Drop for GatewayLoop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.hub.fail(Failure::Panicked("http".into()));
        }
    }
}

const fn stage_of(phase: Phase) -> Stage {
    match phase {
        Phase::Serving => Stage::Serving,
        Phase::Stopping => Stage::Stopping,
        Phase::Halted => Stage::Halted,
    }
}

/// Ends after this span, or never.
async fn pass(span: Option<Nanos>) {
    match span {
        Some(span) => tokio::time::sleep(Duration::from_nanos(span.0)).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "gateway_loop_test.rs"]
mod tests;
