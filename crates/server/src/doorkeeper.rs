//! The thread that knows the users. It alone derives passwords, which takes milliseconds: neither a
//! reactor nor the lock around the broker ever waits for it.
//!
//! ```text
//!  reactor, HTTP    ask(peer, step, answer)  ->  4 MiB of steps, else Busy at once
//!  doorkeeper       step -> access::Doorkeeper -> answer(LoginAnswer)
//!                   a step that takes a derivation waits behind all others: 64, else Busy
//!  reactor, HTTP    a mailbox, a oneshot: the closure decides
//! ```
//! Each step is answered once, or belongs to a connection that has closed. If the thread ends, in
//! good order or by a panic, the waiting steps and all later ones are answered
//! [`LoginAnswer::Busy`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard};

use access::{ConnectionId, Doorkeeper, LoginPeer, TokenFault, Users};
use model::{LoginAnswer, LoginStep};

use crate::clock::Clock;

/// Takes an answer to the client that waits for it. It runs on the doorkeeper's thread: it leaves
/// the answer somewhere and wakes the owner, and neither waits nor takes the lock of the broker.
pub(crate) type Answer = Box<dyn FnOnce(LoginAnswer) + Send>;

/// The steps that wait for the doorkeeper.
#[derive(Debug, Default)]
pub(crate) struct LoginQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    /// Bytes of the steps among them.
    step_bytes: usize,
    /// Steps that take a derivation each. Thousands of clients whose passwords are remembered, and
    /// all other logins, do not wait for them.
    derivations: VecDeque<Asked>,
    /// Users that replace the present ones before the next task.
    users: Option<Users>,
    ended: bool,
}

#[derive(Debug)]
enum Task {
    Step(Asked),
    /// A step that has waited for all others.
    Derivation(Asked),
    Closed(ConnectionId),
}

/// A step, and where its answer goes.
struct Asked {
    peer: LoginPeer,
    step: LoginStep,
    answer: Answer,
}

impl LoginQueue {
    /// Has a step answered, now if too many wait already or the thread has ended.
    pub(crate) fn ask(
        &self,
        peer: LoginPeer,
        step: LoginStep,
        answer: impl FnOnce(LoginAnswer) + Send + 'static,
    ) {
        let mut waiting = self.lock();
        let bytes = waiting.step_bytes + bytes_of(&step);
        if waiting.ended || bytes > STEP_BYTES_MAX {
            drop(waiting);
            return answer(LoginAnswer::Busy);
        }
        waiting.step_bytes = bytes;
        waiting.tasks.push_back(Task::Step(Asked { peer, step, answer: Box::new(answer) }));
        self.changed.notify_one();
    }

    /// The connection has closed: its derivations are dropped, its exchange is void. Only a
    /// connection that has asked something may be told here, so these tasks are as bounded as
    /// connections are.
    pub(crate) fn close(&self, connection: ConnectionId) {
        let mut waiting = self.lock();
        if !waiting.ended {
            waiting.derivations.retain(|asked| asked.peer.connection != connection);
            waiting.tasks.push_back(Task::Closed(connection));
            self.changed.notify_one();
        }
    }

    /// Has the doorkeeper go on with other users, from its next step on.
    pub(crate) fn reload(&self, users: Users) {
        self.lock().users = Some(users);
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// The thread: answers steps until the end, and complains of tokens that are refused.
    pub(crate) fn run(
        &self,
        clock: Clock,
        mut doorkeeper: Doorkeeper,
        complain: impl Fn(&LoginPeer, TokenFault),
    ) {
        let _end = End(self);
        while let Some((users, task)) = self.wait() {
            if let Some(users) = users {
                doorkeeper.reload(users);
            }
            match task {
                Some(Task::Step(Asked { peer, step, answer })) => {
                    let now = clock.now();
                    if doorkeeper.derives(now, &peer, &step) {
                        self.postpone(Asked { peer, step, answer });
                    } else {
                        answer(doorkeeper.handle(now, &peer, step));
                        doorkeeper
                            .take_token_fault()
                            .into_iter()
                            .for_each(|it| complain(&peer, it));
                    }
                }
                Some(Task::Derivation(Asked { peer, step, answer })) => {
                    answer(doorkeeper.handle(clock.now(), &peer, step));
                }
                Some(Task::Closed(connection)) => {
                    self.lock().derivations.retain(|asked| asked.peer.connection != connection);
                    doorkeeper.handle_closed(connection);
                }
                None => {}
            }
        }
    }

    /// Lets a step wait for its derivation, if there are not too many.
    fn postpone(&self, asked: Asked) {
        let mut waiting = self.lock();
        if waiting.ended || waiting.derivations.len() >= DERIVATIONS_MAX {
            drop(waiting);
            return (asked.answer)(LoginAnswer::Busy);
        }
        waiting.derivations.push_back(asked);
    }

    /// Waits for other users or a task; `None`: the end has come.
    fn wait(&self) -> Option<(Option<Users>, Option<Task>)> {
        let is_idle = |waiting: &mut Waiting| {
            let has_none = waiting.tasks.is_empty() && waiting.derivations.is_empty();
            !waiting.ended && waiting.users.is_none() && has_none
        };
        let mut waiting = self.changed.wait_while(self.lock(), is_idle).expect(POISONED);
        if waiting.ended {
            return None;
        }
        let task = waiting.tasks.pop_front();
        if let Some(Task::Step(asked)) = &task {
            waiting.step_bytes -= bytes_of(&asked.step);
        }
        let task = task.or_else(|| waiting.derivations.pop_front().map(Task::Derivation));
        Some((waiting.users.take(), task))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect(POISONED)
    }
}

/// Answers those that wait when the thread ends, also by a panic.
struct End<'a>(&'a LoginQueue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        let Waiting { tasks, derivations, .. } = std::mem::take(&mut *waiting);
        waiting.ended = true;
        drop(waiting);
        let steps = tasks.into_iter().filter_map(|task| match task {
            Task::Step(asked) | Task::Derivation(asked) => Some(asked),
            Task::Closed(_) => None,
        });
        steps.chain(derivations).for_each(|asked| (asked.answer)(LoginAnswer::Busy));
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.peer.connection).finish()
    }
}

/// Bytes of memory that a waiting step takes.
fn bytes_of(step: &LoginStep) -> usize {
    step.bytes() + STEP_BYTES
}

/// Bytes of a waiting step beside what its client sent.
const STEP_BYTES: usize = 256;

/// Bytes of all waiting steps: some ten thousand usual ones, which take tens of milliseconds.
const STEP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Steps that may wait for a derivation: the last of them waits some 130 ms.
const DERIVATIONS_MAX: usize = 64;

const POISONED: &str = "invariant: no thread panics with the queue";

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use model::{Introduction, Rights, Secret, Secrets};

    use super::*;

    fn users(anonymous: &str) -> Users {
        let text = format!("anonymous = \"{anonymous}\"\n[users.{anonymous}]\n");
        Users::parse(&text).unwrap()
    }

    fn peer(connection: u64) -> LoginPeer {
        let connection = ConnectionId(connection);
        let introduction = Introduction::Unknown;
        LoginPeer { connection, address: None, certificate: Arc::from([]), introduction }
    }

    /// Asks for the anonymous user; the answer comes with the number of the connection.
    fn ask(queue: &LoginQueue, connection: u64, to: &Sender<(u64, LoginAnswer)>) {
        let to = to.clone();
        queue.ask(peer(connection), LoginStep::Anonymous, move |answer| {
            to.send((connection, answer)).unwrap();
        });
    }

    fn granted(user: &str) -> LoginAnswer {
        LoginAnswer::Granted { rights: Rights::new(user.into(), [], []).into(), proof: Vec::new() }
    }

    /// Runs the queue's thread while the test does its part.
    fn with_thread(queue: &LoginQueue, test: impl FnOnce()) {
        let doorkeeper = Doorkeeper::new(users("guest"), Secrets::default());
        thread::scope(|scope| {
            scope.spawn(|| queue.run(Clock::new(), doorkeeper, |_, _| {}));
            test();
            queue.end();
        });
    }

    fn receive<T>(from: &Receiver<T>) -> T {
        from.recv().unwrap()
    }

    #[test]
    fn steps_are_answered_in_order() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        with_thread(&queue, || {
            (0..20).for_each(|connection| ask(&queue, connection, &to));
            for connection in 0..20 {
                assert_eq!(receive(&from), (connection, granted("guest")));
            }
            let (to, from) = channel();
            let password = Secret::from(&b"wrong"[..]);
            let step = LoginStep::Password { user: "guest".into(), password };
            queue.ask(peer(1), step, move |answer| to.send(answer).unwrap());
            assert_eq!(receive(&from), LoginAnswer::Refused);
        });
    }

    #[test]
    fn full_queue_answers_busy_at_once() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        let large = |connection| {
            let (to, token) = (to.clone(), Secret::new(vec![b'x'; 1024 * 1024]));
            let step = LoginStep::Token { user: Box::default(), token };
            queue.ask(peer(connection), step, move |answer| {
                to.send((connection, answer)).unwrap();
            });
        };
        (0..3).for_each(large);
        (3..1_000).for_each(|connection| ask(&queue, connection, &to));
        large(1_000);
        assert_eq!(receive(&from), (1_000, LoginAnswer::Busy));
        with_thread(&queue, || {
            (0..3).for_each(|_| assert_ne!(receive(&from).1, granted("guest")));
            for connection in 3..1_000 {
                assert_eq!(receive(&from), (connection, granted("guest")));
            }
            large(1_001);
            assert_eq!(receive(&from).0, 1_001, "there is room again");
        });
    }

    #[test]
    fn derivations_wait_behind_all_others() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        for connection in 0..DERIVATIONS_MAX as u64 + 2 {
            let (to, user) = (to.clone(), format!("user-{connection}").into_boxed_str());
            let step = LoginStep::Password { user, password: Secret::from(&b"password"[..]) };
            queue.ask(peer(connection), step, move |answer| {
                to.send((connection, answer)).unwrap();
            });
        }
        ask(&queue, 1_000, &to);
        queue.close(ConnectionId(0));
        with_thread(&queue, || {
            assert_eq!(receive(&from), (64, LoginAnswer::Busy));
            assert_eq!(receive(&from), (65, LoginAnswer::Busy));
            assert_eq!(receive(&from), (1_000, granted("guest")));
            for connection in 1..64 {
                assert_eq!(receive(&from), (connection, LoginAnswer::Refused));
            }
        });
    }

    #[test]
    fn reload_replaces_users() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        with_thread(&queue, || {
            ask(&queue, 0, &to);
            assert_eq!(receive(&from), (0, granted("guest")));
            queue.reload(users("first"));
            queue.reload(users("second"));
            ask(&queue, 1, &to);
            assert_eq!(receive(&from), (1, granted("second")));
        });
    }

    #[test]
    fn ended_thread_answers_busy() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        ask(&queue, 0, &to);
        queue.end();
        with_thread(&queue, || assert_eq!(receive(&from), (0, LoginAnswer::Busy)));
        ask(&queue, 1, &to);
        assert_eq!(receive(&from), (1, LoginAnswer::Busy));
        queue.close(ConnectionId(1));
    }

    #[test]
    fn panic_leaves_no_step_unanswered() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        let doorkeeper = Doorkeeper::new(users("guest"), Secrets::default());
        queue.ask(peer(0), LoginStep::Anonymous, |_| panic!("a fault of the closure"));
        ask(&queue, 1, &to);
        thread::scope(|scope| {
            let thread = scope.spawn(|| queue.run(Clock::new(), doorkeeper, |_, _| {}));
            assert!(thread.join().is_err());
        });
        assert_eq!(receive(&from), (1, LoginAnswer::Busy));
        ask(&queue, 2, &to);
        assert_eq!(receive(&from), (2, LoginAnswer::Busy));
    }
}
