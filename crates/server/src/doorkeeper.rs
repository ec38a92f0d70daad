//! The thread that knows the users. It alone derives passwords, which takes milliseconds: neither a
//! reactor nor the lock around the broker ever waits for it.
//!
//! ```text
//!  reactor, HTTP    ask(peer, step, answer)  ->  64 steps, else Busy at once
//!  doorkeeper       step -> access::Doorkeeper -> answer(LoginAnswer)
//!  reactor, HTTP    a mailbox, a oneshot: the closure decides
//! ```
//! Each step is answered once, or belongs to a connection that has closed. If the thread ends, in
//! good order or by a panic, the waiting steps and all later ones are answered
//! [`LoginAnswer::Busy`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard};

use access::{ConnectionId, Doorkeeper, LoginPeer, Users};
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
    /// Those among the tasks that are steps.
    steps: usize,
    /// Users that replace the present ones before the next task.
    users: Option<Users>,
    ended: bool,
}

enum Task {
    Step { peer: LoginPeer, step: LoginStep, answer: Answer },
    Closed(ConnectionId),
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
        if waiting.ended || waiting.steps >= STEPS_MAX {
            drop(waiting);
            return answer(LoginAnswer::Busy);
        }
        waiting.steps += 1;
        waiting.tasks.push_back(Task::Step { peer, step, answer: Box::new(answer) });
        self.changed.notify_one();
    }

    /// The connection has closed: its waiting steps are dropped, its exchange is void. Only a
    /// connection that has asked something may be told here, so these tasks are as bounded as
    /// connections are.
    pub(crate) fn close(&self, connection: ConnectionId) {
        let mut waiting = self.lock();
        if waiting.ended {
            return;
        }
        let is_of_it =
            |task: &Task| matches!(task, Task::Step { peer, .. } if peer.connection == connection);
        waiting.tasks.retain(|task| !is_of_it(task));
        waiting.tasks.push_back(Task::Closed(connection));
        let steps = waiting.tasks.iter().filter(|task| matches!(task, Task::Step { .. }));
        waiting.steps = steps.count();
        self.changed.notify_one();
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

    /// The thread: answers steps until the end.
    pub(crate) fn run(&self, clock: Clock, mut doorkeeper: Doorkeeper) {
        let _end = End(self);
        while let Some((users, task)) = self.wait() {
            if let Some(users) = users {
                doorkeeper.reload(users);
            }
            match task {
                Some(Task::Step { peer, step, answer }) => {
                    answer(doorkeeper.handle(clock.now(), &peer, step));
                }
                Some(Task::Closed(connection)) => doorkeeper.handle_closed(connection),
                None => {}
            }
        }
    }

    /// Waits for other users or a task; `None`: the end has come.
    fn wait(&self) -> Option<(Option<Users>, Option<Task>)> {
        let is_idle = |waiting: &mut Waiting| {
            !waiting.ended && waiting.users.is_none() && waiting.tasks.is_empty()
        };
        let mut waiting = self.changed.wait_while(self.lock(), is_idle).expect(POISONED);
        if waiting.ended {
            return None;
        }
        let task = waiting.tasks.pop_front();
        waiting.steps -= usize::from(matches!(task, Some(Task::Step { .. })));
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
        waiting.ended = true;
        waiting.steps = 0;
        let tasks = std::mem::take(&mut waiting.tasks);
        drop(waiting);
        for task in tasks {
            if let Task::Step { answer, .. } = task {
                answer(LoginAnswer::Busy);
            }
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { peer, .. } => f.debug_tuple("Step").field(&peer.connection).finish(),
            Self::Closed(connection) => f.debug_tuple("Closed").field(connection).finish(),
        }
    }
}

/// Steps that may wait: the last of them waits for 64 derivations, some 130 ms.
const STEPS_MAX: usize = 64;

const POISONED: &str = "invariant: no thread panics with the queue";

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use model::{Secret, Secrets};

    use super::*;

    fn users(anonymous: &str) -> Users {
        let text = format!("anonymous = \"{anonymous}\"\n[users.{anonymous}]\n");
        Users::parse(&text).unwrap()
    }

    fn peer(connection: u64) -> LoginPeer {
        let connection = ConnectionId(connection);
        LoginPeer { connection, address: None, certificate: Arc::from([]) }
    }

    /// Asks for the anonymous user; the answer comes with the number of the connection.
    fn ask(queue: &LoginQueue, connection: u64, to: &Sender<(u64, LoginAnswer)>) {
        let to = to.clone();
        queue.ask(peer(connection), LoginStep::Anonymous, move |answer| {
            to.send((connection, answer)).unwrap();
        });
    }

    fn granted(user: &str) -> LoginAnswer {
        LoginAnswer::Granted { user: user.into(), proof: Vec::new() }
    }

    /// Runs the queue's thread while the test does its part.
    fn with_thread(queue: &LoginQueue, test: impl FnOnce()) {
        let doorkeeper = Doorkeeper::new(users("guest"), Secrets::default());
        thread::scope(|scope| {
            scope.spawn(|| queue.run(Clock::new(), doorkeeper));
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
        (0..64).for_each(|connection| ask(&queue, connection, &to));
        ask(&queue, 64, &to);
        assert_eq!(receive(&from), (64, LoginAnswer::Busy));
        with_thread(&queue, || {
            for connection in 0..64 {
                assert_eq!(receive(&from), (connection, granted("guest")));
            }
            ask(&queue, 65, &to);
            assert_eq!(receive(&from), (65, granted("guest")));
        });
    }

    #[test]
    fn closed_connections_leave_the_queue() {
        let (queue, (to, from)) = (LoginQueue::default(), channel());
        (0..64).for_each(|connection| ask(&queue, connection % 2, &to));
        queue.close(ConnectionId(0));
        ask(&queue, 2, &to);
        with_thread(&queue, || {
            for _ in 0..32 {
                assert_eq!(receive(&from), (1, granted("guest")));
            }
            assert_eq!(receive(&from), (2, granted("guest")));
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
            let thread = scope.spawn(|| queue.run(Clock::new(), doorkeeper));
            assert!(thread.join().is_err());
        });
        assert_eq!(receive(&from), (1, LoginAnswer::Busy));
        ask(&queue, 2, &to);
        assert_eq!(receive(&from), (2, LoginAnswer::Busy));
    }
}
