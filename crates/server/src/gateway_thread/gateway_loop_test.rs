//! The gateway turn by turn: the time of its answers, and its acts once a client is gone.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http_api::{
    Actor, Asker, Events as _, Gateway as _, GatewayError, Leased, REQUESTS_MAX, Settling, Step,
    Wanted, Work,
};
use model::{
    AdminCommand, Command, DependsOn, Destination, Durability, NewMessage, Output, OwnPolicy,
    Persistence, PolicyChange, QueueName, QueueRule, Reply, limits,
};

use super::*;
use crate::connections::numbered_densely;
use crate::gateway_thread::handle::Gateway;
use crate::test_harness::{journal_hub_with, write_all, write_handed};

/// A gateway with a test that takes its turns.
struct Turns {
    hub: Arc<Hub>,
    gateway_loop: GatewayLoop,
    gateway: Gateway,
    data: std::path::PathBuf,
}

impl Turns {
    fn new(test: &str) -> Self {
        Self::with_memory(test, None)
    }

    fn with_memory(test: &str, memory_limit: Option<u64>) -> Self {
        let (data, hub) = journal_hub_with(&format!("gateway-{test}"), memory_limit);
        Self::on(data, Arc::new(hub), TRANSACTIONS_MAX)
    }

    fn with_transactions(test: &str, transactions_max: usize) -> Self {
        let (data, hub) = journal_hub_with(&format!("gateway-{test}"), None);
        Self::on(data, Arc::new(hub), transactions_max)
    }

    fn on(data: std::path::PathBuf, hub: Arc<Hub>, transactions_max: usize) -> Self {
        let (stage, _) = watch::channel(Stage::Serving);
        let gateway_loop =
            GatewayLoop::with_transactions(Arc::clone(&hub), stage, transactions_max);
        let gateway = Gateway::new(Arc::clone(&hub));
        Self { hub, gateway_loop, gateway, data }
    }

    /// The broker of a hub with the core locked by this thread.
    fn broker<'a>(hub: &'a Hub, core: &'a mut crate::core::Core, now: Nanos) -> LockedBroker<'a> {
        LockedBroker::new(core, hub, hub.reactors(), now)
    }

    /// Takes turns until there is nothing to do but to wait.
    fn run_until_idle(&mut self) {
        assert!(!self.gateway_loop.turn(), "the server did not fail");
        while self.gateway_loop.has_more() {
            self.gateway_loop.turn();
        }
    }

    /// Writes all frames, and lets the loop see it.
    fn write(&mut self) {
        write_all(&self.hub);
        self.run_until_idle();
    }

    /// Polls a future, takes turns and writes; returns its output.
    fn done<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        assert!(poll(future.as_mut()).is_none());
        self.run_until_idle();
        self.write();
        poll(future).expect("it is answered")
    }

    /// The same without a write.
    fn done_meanwhile<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        assert!(poll(future.as_mut()).is_none());
        self.run_until_idle();
        poll(future).expect("it waits for nothing")
    }

    /// The queue `q` may hold one message, and is full.
    fn fill_queue(&mut self) {
        let mut own = OwnPolicy::default();
        own.set(QueueRule::MessagesMax(Some(1)));
        let change = Box::new(PolicyChange::to(own));
        let gateway = self.gateway.clone();
        let change = admin(AdminCommand::ChangePolicy { queue: queue(), change });
        self.done(gateway.ask(Actor::default(), change)).unwrap();
        self.done(gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("q")]))).unwrap();
    }

    /// Answers all requests that wait, as when the server stops.
    fn stop_waits(&mut self) {
        let core = &mut *self.hub.lock();
        let now = self.hub.clock.now();
        self.gateway_loop.state.stop_waits(&mut Self::broker(&self.hub, core, now));
    }

    /// Fires timers, as a reactor does.
    fn fire_timers(&self) {
        self.fire_timers_in(0);
    }

    /// Fires timers as of so many seconds from now.
    fn fire_timers_in(&self, seconds: u64) {
        let core = &mut *self.hub.lock();
        let now = self.hub.clock.now() + Nanos::from_secs(seconds);
        core.broker.handle_timeout(now, &mut core.outputs);
        core.mail_outputs(0, self.hub.mailboxes());
    }

    fn ready(&self) -> u64 {
        self.hub.lock().broker.statistics().ready
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn poll_settled<F: Future>(turns: &mut Turns, mut future: Pin<&mut F>) -> Option<F::Output> {
    let first = poll(future.as_mut());
    turns.run_until_idle();
    first.or_else(|| poll(future))
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn put_of(bytes: usize, count: u64) -> Step {
    let message = NewMessage::new(vec![b'x'; bytes].into());
    Step::Put { to: Destination::Queue(queue()), message, count }
}

fn put_in_memory(queue: &str) -> Step {
    let message =
        NewMessage { persistence: Persistence::NonPersistent, ..NewMessage::new((*b"x").into()) };
    Step::Put { to: Destination::Queue(QueueName::new(queue).unwrap()), message, count: 1 }
}

fn put() -> Work {
    Work::steps(vec![put_of(1, 1)])
}

fn admin(command: AdminCommand) -> Work {
    Work::command(Command::Admin(Box::new(command)))
}

fn wanted(wait: u64) -> Wanted {
    let (wait, lease) = (Nanos::from_secs(wait), Nanos::from_secs(60));
    Wanted { queue: queue(), wait, lease, max: 1, asker: Asker::default() }
}

fn only(leased: Result<Vec<Leased>, GatewayError>) -> Leased {
    let mut leased = leased.unwrap();
    assert_eq!(leased.len(), 1);
    leased.remove(0)
}

#[test]
fn answers_wait_for_the_log() {
    let mut turns = Turns::new("durable");
    let gateway = turns.gateway.clone();
    let mut stored = pin!(gateway.ask(Actor::default(), put()));
    let mut received = pin!(gateway.receive(Actor::default(), wanted(0)));
    let mut nothing = pin!(gateway.receive(Actor::default(), wanted(0)));
    assert!(poll(stored.as_mut()).is_none());
    assert!(poll(received.as_mut()).is_none());
    assert!(poll(nothing.as_mut()).is_none());
    turns.run_until_idle();
    turns.run_until_idle();
    assert!(poll(stored.as_mut()).is_none());
    assert!(poll(received.as_mut()).is_none());
    assert!(poll(nothing.as_mut()).is_none());
    turns.write();
    assert!(matches!(poll(stored).unwrap().unwrap()[..], [Reply::Stored { .. }]));
    only(poll(received).unwrap());
    assert_eq!(poll(nothing).unwrap(), Ok(Vec::new()), "it was leased");
}

#[test]
fn answers_from_memory_wait_for_nothing() {
    let mut turns = Turns::new("memory");
    let gateway = turns.gateway.clone();
    let stored = gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("q")]));
    turns.done_meanwhile(stored).unwrap();
}

#[test]
fn stalled_log_delays_requests_only() {
    const BYTES: usize = 1024 * 1024;
    const PUTS: usize = 64;
    let mut turns = Turns::new("stalled");
    let gateway = turns.gateway.clone();
    let work = || Work::steps(vec![put_of(BYTES, 1)]);
    let mut puts: Vec<_> =
        (0..PUTS).map(|_| Box::pin(gateway.ask(Actor::default(), work()))).collect();
    for put in &mut puts {
        assert!(poll(put.as_mut()).is_none());
    }
    turns.run_until_idle();
    assert!(turns.hub.lock().broker.holds_back());
    let taken = turns.ready();
    assert!(taken < PUTS as u64, "{taken}");
    turns.run_until_idle();
    assert_eq!(turns.ready(), taken, "nothing durable is taken meanwhile");
    for _ in 0..3 {
        let work = Work::steps(vec![put_in_memory("m")]);
        turns.done_meanwhile(gateway.ask(Actor::default(), work)).unwrap();
        let wanted = Wanted { queue: QueueName::new("m").unwrap(), ..wanted(0) };
        let token = only(turns.done_meanwhile(gateway.receive(Actor::default(), wanted))).token;
        let accept = Step::Settle { token, settling: Settling::Accept };
        turns.done_meanwhile(gateway.ask(Actor::default(), Work::steps(vec![accept]))).unwrap();
    }
    while turns.ready() < PUTS as u64 {
        let before = turns.ready();
        turns.write();
        crate::test_harness::run_chores(&turns.hub);
        turns.run_until_idle();
        assert!(turns.ready() > before, "each write lets more in");
    }
    turns.write();
    for put in &mut puts {
        assert!(poll(put.as_mut()).unwrap().is_ok());
    }
}

#[test]
fn postponed_work_is_limited_like_requests() {
    const BYTES: usize = 1024 * 1024;
    const STEP: usize = 1_000;
    let mut turns = Turns::new("postponed");
    let gateway = turns.gateway.clone();
    // All puts share one body.
    let put = put_of(BYTES, 1);
    let mut puts = Vec::new();
    let mut ask = |turns: &mut Turns, count| {
        for _ in 0..count {
            let mut put = Box::pin(gateway.ask(Actor::default(), Work::steps(vec![put.clone()])));
            assert!(poll(put.as_mut()).is_none());
            puts.push(put);
        }
        turns.run_until_idle();
    };
    ask(&mut turns, 64);
    let waiting = 64 - turns.ready();
    assert!(waiting > 0, "the log is behind");
    (0..REQUESTS_MAX / STEP).for_each(|_| ask(&mut turns, STEP));
    assert_eq!(turns.ready(), 64 - waiting, "nothing more is stored");
    let answers = puts.iter_mut().filter_map(|put| poll(put.as_mut()));
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers.len() as u64, waiting, "those that came last are refused");
    assert!(answers.iter().all(|answer| answer == &Err(GatewayError::Busy)));
}

#[test]
fn leases_of_gone_clients_return_uncounted() {
    let mut turns = Turns::new("gone");
    let gateway = turns.gateway.clone();
    turns.done(gateway.ask(Actor::default(), put())).unwrap();
    // The client goes while its answer waits for the log.
    let mut gone = Box::pin(gateway.receive(Actor::default(), wanted(0)));
    assert!(poll(gone.as_mut()).is_none());
    turns.run_until_idle();
    drop(gone);
    turns.run_until_idle();
    assert_eq!(turns.ready(), 1);
    // The client goes after it was answered, before it looked.
    let mut gone = Box::pin(gateway.receive(Actor::default(), wanted(0)));
    assert!(poll(gone.as_mut()).is_none());
    turns.write();
    drop(gone);
    turns.run_until_idle();
    assert_eq!(turns.ready(), 1);
    let leased = only(turns.done(gateway.receive(Actor::default(), wanted(0))));
    assert_eq!(leased.delivery.failed, 0);
    // The client goes while the queue is empty.
    let mut gone = Box::pin(gateway.receive(Actor::default(), wanted(60)));
    assert!(poll(gone.as_mut()).is_none());
    turns.run_until_idle();
    assert_eq!(turns.hub.lock().broker.statistics().waiting, 1);
    drop(gone);
    turns.run_until_idle();
    assert_eq!(turns.hub.lock().broker.statistics().waiting, 0);
}

#[test]
fn receives_are_limited() {
    let mut turns = Turns::with_memory("receives", Some(64 << 20));
    let most = turns.hub.receives_max();
    let gateway = turns.gateway.clone();
    let mut waiting: Vec<_> =
        (0..most).map(|_| Box::pin(gateway.receive(Actor::default(), wanted(60)))).collect();
    for some in waiting.chunks_mut(REQUESTS_MAX) {
        assert!(some.iter_mut().all(|receive| poll(receive.as_mut()).is_none()));
        turns.run_until_idle();
    }
    assert_eq!(turns.hub.lock().broker.statistics().waiting, most as u64);
    assert_eq!(
        turns.done(gateway.receive(Actor::default(), wanted(60))).unwrap_err(),
        GatewayError::Busy
    );
    // A receive that ends makes room.
    waiting.pop();
    turns.run_until_idle();
    assert_eq!(turns.done(gateway.receive(Actor::default(), wanted(0))).unwrap().len(), 0);
}

/// A send that waits takes no step of the broker, and has a deadline: a reactor has to know of it
/// if nothing else happens.
#[test]
fn sends_short_of_memory_time_out() {
    let mut turns = Turns::with_memory("quiet", Some(64 << 20));
    let gateway = turns.gateway.clone();
    let many = || {
        let Step::Put { to, message, .. } = put_in_memory("m") else { unreachable!() };
        Work::atomic(vec![Step::Put { to, message, count: 20_000 }])
    };
    let mut seconds = 0;
    let mut is_full = false;
    while !is_full {
        let mut waits = pin!(gateway.ask(Actor::default(), many()));
        is_full = poll_settled(&mut turns, waits.as_mut()).is_none();
    }
    for _ in 0..2 {
        let mut waits = pin!(gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("m")])));
        assert!(poll_settled(&mut turns, waits.as_mut()).is_none());
        let due = turns.hub.lock().broker.poll_timeout();
        assert_eq!(Some(turns.hub.deadline()), due, "reactors sleep until then");
        seconds += 31;
        turns.fire_timers_in(seconds);
        turns.run_until_idle();
        let refused = GatewayError::Refused(model::Refusal::MemoryFull);
        assert_eq!(poll(waits.as_mut()), Some(Err(refused)));
    }
}

#[test]
fn large_commits_get_their_own_replies() {
    let mut turns = Turns::new("large");
    let gateway = turns.gateway.clone();
    // Each is more than one frame. The last is refused for its size.
    let work = |count| Work::atomic(vec![put_of(1_000, count)]);
    let mut commits: Vec<_> = [20_000, 20_001, 300_000]
        .map(|count| Box::pin(gateway.ask(Actor::default(), work(count))))
        .into();
    for commit in &mut commits {
        assert!(poll(commit.as_mut()).is_none());
    }
    let mut small = pin!(gateway.ask(Actor::default(), put()));
    assert!(poll(small.as_mut()).is_none());
    turns.run_until_idle();
    let mut answers = vec![None, None, None];
    while answers.iter().any(Option::is_none) {
        turns.fire_timers();
        crate::test_harness::run_chores(&turns.hub);
        turns.write();
        for (commit, answer) in commits.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                *answer = poll(commit.as_mut());
            }
        }
    }
    assert!(poll(small).unwrap().is_ok());
    let is_done = |answer: &Option<Result<_, _>>| answer.as_ref().is_some_and(Result::is_ok);
    assert_eq!(answers.iter().map(is_done).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(turns.ready(), 40_002);
}

#[test]
fn blocked_transactions_delay_no_others() {
    const WAITING: usize = limits::SESSION_TRANSACTIONS_MAX + 1;
    let mut turns = Turns::with_transactions("crowded", WAITING + 1);
    let gateway = turns.gateway.clone();
    turns.fill_queue();
    let send = |to| Work::atomic(vec![put_in_memory(to)]);
    let mut waiting: Vec<_> =
        (0..WAITING).map(|_| Box::pin(gateway.ask(Actor::default(), send("q")))).collect();
    for one in &mut waiting {
        assert!(poll(one.as_mut()).is_none());
    }
    turns.run_until_idle();
    turns.done_meanwhile(gateway.ask(Actor::default(), send("m"))).unwrap();
    assert!(waiting.iter_mut().all(|one| poll(one.as_mut()).is_none()));
    // As many as there may be.
    let mut last = Box::pin(gateway.ask(Actor::default(), send("q")));
    assert!(poll_settled(&mut turns, last.as_mut()).is_none());
    waiting.push(last);
    assert_eq!(
        turns.done_meanwhile(gateway.ask(Actor::default(), send("m"))),
        Err(GatewayError::Busy)
    );
    turns
        .done_meanwhile(gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("m")])))
        .unwrap();
    turns.stop_waits();
    turns.run_until_idle();
    assert!(waiting.iter_mut().all(|one| poll(one.as_mut()) == Some(Err(GatewayError::Stopping))));
    turns.done_meanwhile(gateway.ask(Actor::default(), send("m"))).unwrap();
}

#[test]
fn blocked_sends_of_closed_clients_cancelled() {
    let mut turns = Turns::new("left");
    let gateway = turns.gateway.clone();
    turns.fill_queue();
    let waits = |turns: &mut Turns, work| {
        let mut waits = Box::pin(gateway.ask(Actor::default(), work));
        assert!(poll_settled(turns, waits.as_mut()).is_none());
        waits
    };
    let blocked_sends = |turns: &mut Turns| {
        let ask = gateway
            .ask(Actor::default(), Work::command(Command::QueueStatistics { queue: queue() }));
        let replies = turns.done_meanwhile(ask).unwrap();
        let [Reply::QueueStatistics(queue)] = replies.as_slice() else { panic!("{replies:?}") };
        queue.blocked_sends
    };
    let steps = vec![put_in_memory("m"), put_in_memory("q")];
    let first = waits(&mut turns, Work::atomic(steps.clone()));
    let second = waits(&mut turns, Work::steps(vec![put_in_memory("q")]));
    let mut last = waits(&mut turns, Work::steps(vec![put_in_memory("q")]));
    assert_eq!(blocked_sends(&mut turns), 3);
    drop((first, second));
    turns.run_until_idle();
    assert_eq!(blocked_sends(&mut turns), 1);
    // A client that goes before its turn does not queue.
    assert!(poll(pin!(gateway.ask(Actor::default(), Work::atomic(steps)))).is_none());
    turns.run_until_idle();
    assert_eq!(blocked_sends(&mut turns), 1);
    let Leased { token, .. } =
        only(turns.done_meanwhile(gateway.receive(Actor::default(), wanted(0))));
    let settle = Step::Settle { token, settling: Settling::Accept };
    turns.done_meanwhile(gateway.ask(Actor::default(), Work::steps(vec![settle]))).unwrap();
    turns.fire_timers();
    turns.run_until_idle();
    poll(last.as_mut()).unwrap().unwrap();
    assert_eq!(turns.ready(), 1, "and nothing else, in no queue");
}

#[test]
fn cancelled_send_keeps_late_commit_reply() {
    let mut turns = Turns::new("cancelled");
    let gateway = turns.gateway.clone();
    turns.done(gateway.ask(Actor::default(), put())).unwrap();
    let Leased { token, .. } = only(turns.done(gateway.receive(Actor::default(), wanted(0))));
    let mut own = OwnPolicy::default();
    own.set(QueueRule::MessagesMax(Some(1)));
    let change = Box::new(PolicyChange::to(own));
    turns
        .done(
            gateway.ask(
                Actor::default(),
                admin(AdminCommand::ChangePolicy { queue: queue(), change }),
            ),
        )
        .unwrap();
    // Both are of the session of all leases: a send that waits for a place, and a commit that is
    // more than one frame.
    let mut send = Box::pin(gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("q")])));
    assert!(poll_settled(&mut turns, send.as_mut()).is_none());
    let message = NewMessage::new(vec![b'x'; 1_000].into());
    let to = Destination::Queue(QueueName::new("m").unwrap());
    let puts = Step::Put { to, message, count: 20_000 };
    let settle = Step::Settle { token, settling: Settling::Accept };
    let mut commit = pin!(gateway.ask(Actor::default(), Work::atomic(vec![settle, puts])));
    assert!(poll_settled(&mut turns, commit.as_mut()).is_none());
    crate::test_harness::run_chores(&turns.hub);
    turns.write();
    // The log makes room before a timer fires, and the cancellation is the next command.
    for _ in 0..10 {
        crate::test_harness::run_chores(&turns.hub);
        write_all(&turns.hub);
    }
    assert_eq!(turns.ready(), 0, "the commit waits");
    drop(send);
    turns.run_until_idle();
    assert_eq!(turns.ready(), 20_000, "the commit goes on with the cancellation");
    turns.write();
    poll(commit.as_mut()).expect("the commit is answered").unwrap();
    // And the next transaction that settles a lease is.
    let Leased { token, .. } =
        only(turns.done(gateway.receive(
            Actor::default(),
            Wanted { queue: QueueName::new("m").unwrap(), ..wanted(0) },
        )));
    let settle = Step::Settle { token, settling: Settling::Accept };
    turns.done(gateway.ask(Actor::default(), Work::atomic(vec![settle]))).unwrap();
}

#[test]
fn stop_refuses_requests_that_would_wait() {
    let mut turns = Turns::new("stopping");
    let gateway = turns.gateway.clone();
    turns.fill_queue();
    turns.stop_waits();
    for work in [Work::steps, Work::atomic] {
        let put = gateway.ask(Actor::default(), work(vec![put_in_memory("q")]));
        assert_eq!(turns.done_meanwhile(put), Err(GatewayError::Stopping));
    }
    let topic = QueueName::new("t").unwrap();
    let following = turns.done_meanwhile(gateway.follow(Actor::default(), topic));
    assert_eq!(following.err(), Some(GatewayError::Stopping));
}

/// No thread reads bodies here.
#[test]
fn browse_of_bodies_delays_no_transaction() {
    const MESSAGES: usize = 64;
    let mut turns = Turns::with_memory("away", Some(0));
    let gateway = turns.gateway.clone();
    for _ in 0..MESSAGES {
        turns
            .done(gateway.ask(Actor::default(), Work::steps(vec![put_of(1024 * 1024, 1)])))
            .unwrap();
        crate::test_harness::run_chores(&turns.hub);
    }
    turns.done(gateway.ask(Actor::default(), Work::steps(vec![put_in_memory("m")]))).unwrap();
    let wanted = Wanted { queue: QueueName::new("m").unwrap(), ..wanted(0) };
    let token = only(turns.done(gateway.receive(Actor::default(), wanted))).token;
    // The bodies that are needed first are in memory.
    let mut after = None;
    let _browse = loop {
        let (state, selector) = (None, None);
        let browse = AdminCommand::Browse { queue: queue(), state, selector, after, max: MESSAGES };
        let mut browse = Box::pin(gateway.ask(Actor::default(), admin(browse)));
        assert!(poll(browse.as_mut()).is_none());
        turns.run_until_idle();
        turns.write();
        let Some(replies) = poll(browse.as_mut()) else { break browse };
        let Some([Reply::Page(page)]) = replies.as_deref().ok() else { panic!("{replies:?}") };
        after = page.next;
        assert!(after.is_some(), "no body is away");
    };
    let put = || put_in_memory("m");
    turns.done_meanwhile(gateway.ask(Actor::default(), Work::atomic(vec![put()]))).unwrap();
    let accept = Step::Settle { token, settling: Settling::Accept };
    turns.done_meanwhile(gateway.ask(Actor::default(), Work::atomic(vec![put(), accept]))).unwrap();
}

/// The engine ended a lease of which the gateway did not know: each has a clock of its own.
#[test]
fn lease_survives_transaction_with_expired_one() {
    let mut turns = Turns::new("over");
    let gateway = turns.gateway.clone();
    turns.done(gateway.ask(Actor::default(), Work::steps(vec![put_of(1, 2)]))).unwrap();
    let long = Wanted { lease: Nanos::from_secs(600), ..wanted(0) };
    let held = only(turns.done(gateway.receive(Actor::default(), long))).token;
    let over = only(turns.done(gateway.receive(Actor::default(), wanted(0)))).token;
    turns.fire_timers_in(100);
    let accept = |token| Step::Settle { token, settling: Settling::Accept };
    let both =
        gateway.ask(Actor::default(), Work::atomic(vec![put_of(1, 1), accept(held), accept(over)]));
    assert_eq!(turns.done(both), Err(GatewayError::LeaseOver(over)));
    assert_eq!(turns.ready(), 1, "nothing was done");
    turns
        .done(gateway.ask(Actor::default(), Work::steps(vec![accept(held)])))
        .expect("it is still held");
}

/// These are more settlements than one turn has: the last lease could end between two turns.
#[test]
fn transaction_settles_in_one_turn() {
    const MESSAGES: usize = 6_000;
    let mut turns = Turns::new("settles");
    let gateway = turns.gateway.clone();
    turns
        .done(gateway.ask(Actor::default(), Work::steps(vec![put_of(1, MESSAGES as u64)])))
        .unwrap();
    let wanted = Wanted { max: MESSAGES, ..wanted(0) };
    let leased = turns.done(gateway.receive(Actor::default(), wanted)).unwrap();
    assert_eq!(leased.len(), MESSAGES);
    let accept = |leased: &Leased| Step::Settle { token: leased.token, settling: Settling::Accept };
    let mut settled =
        pin!(gateway.ask(Actor::default(), Work::atomic(leased.iter().map(accept).collect())));
    assert!(poll(settled.as_mut()).is_none());
    turns.gateway_loop.turn();
    assert_eq!(turns.hub.lock().broker.statistics().leased, 0);
    turns.run_until_idle();
    turns.write();
    poll(settled).unwrap().unwrap();
}

#[test]
fn close_returns_leases_uncounted() {
    let mut turns = Turns::new("end");
    let gateway = turns.gateway.clone();
    turns.done(gateway.ask(Actor::default(), put())).unwrap();
    only(turns.done(gateway.receive(Actor::default(), wanted(0))));
    turns.gateway_loop.close();
    assert_eq!(turns.ready(), 1);
}

#[test]
fn follower_that_reads_nothing_is_ended() {
    let mut turns = Turns::new("slow");
    let gateway = turns.gateway.clone();
    let topic = || QueueName::new("t").unwrap();
    let mut following = turns.done(gateway.follow(Actor::default(), topic())).unwrap();
    let (to, message) = (Destination::Topic(topic()), NewMessage::new((*b"x").into()));
    let publish = Step::Put { to, message, count: 100 };
    turns.done(gateway.ask(Actor::default(), Work::steps(vec![publish]))).unwrap();
    let deadline = turns.gateway_loop.state.deadline().expect("its credit is used up");
    for (now, follows) in [(Nanos(deadline.0 - 1), true), (deadline, false)] {
        let core = &mut *turns.hub.lock();
        let mut broker = Turns::broker(&turns.hub, core, now);
        turns.gateway_loop.state.step(&mut broker, &turns.gateway_loop.requests, 0);
        assert_eq!(turns.gateway_loop.state.deadline().is_some(), follows);
    }
    turns.write();
    let mut heard = 0;
    while let Some(Some(_)) = poll(pin!(following.next())) {
        heard += 1;
    }
    assert_eq!(heard, 64, "what was on its way, and the end");
    assert!(poll(pin!(following.next())).unwrap().is_none());
}

/// A message sent by a client that waits for no answer: its frame may be delayed.
fn append_unawaited(hub: &Hub) -> model::Lsn {
    let core = &mut *hub.lock();
    let session = numbered_densely(hub.reactors(), 7);
    core.broker.open_session(session);
    let message = NewMessage::new((*b"x").into());
    let put = Command::PutTo { to: Destination::Queue(queue()), message, transaction: None };
    core.broker.handle(hub.clock.now(), session, put, &mut core.outputs);
    core.outputs.drain(..).map(|output| output.after.lsn).max().unwrap()
}

/// A reply that other threads caused, such as one with a body that was read back.
fn mail_to_gateway(turns: &Turns, lsn: model::Lsn) {
    let session = turns.gateway_loop.state.session();
    let after = DependsOn { lsn, level: Durability::Synced };
    let core = &mut *turns.hub.lock();
    core.outputs.push(Output { session, after, reply: Reply::Done });
    core.mail_outputs(usize::MAX, turns.hub.mailboxes());
}

#[test]
fn mailed_reply_makes_delayed_frames_due() {
    let mut turns = Turns::new("mailed");
    let lsn = append_unawaited(&turns.hub);
    assert!(!turns.hub.is_write_due(), "no client waits for the frame");
    assert!(turns.hub.deadline() < Nanos::MAX, "but it is not delayed for ever");
    mail_to_gateway(&turns, lsn);
    turns.gateway_loop.turn();
    assert!(turns.hub.is_write_due(), "a reactor that is awake writes before it sleeps");
}

#[test]
fn committer_writes_mail_while_reactors_sleep() {
    let mut turns = Turns::new("mailed-asleep");
    let lsn = append_unawaited(&turns.hub);
    assert!(turns.hub.fall_asleep());
    mail_to_gateway(&turns, lsn);
    turns.gateway_loop.turn();
    assert_eq!(write_handed(&turns.hub), 1);
    assert!(turns.hub.durable().synced >= lsn);
}
