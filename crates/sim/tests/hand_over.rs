//! No wake-up is lost between reactors and committers: an exhaustive check of a model.
//!
//! The server's threads share few words outside the one lock:
//!
//! * which of them sleep, and the reason that wakes each (`mailbox.rs`);
//! * if a write is due, the next deadline, how many reactors are awake, how many writes were
//!   completed (`hub.rs`).
//!
//! Here their protocol is written down step by step, one step for each access to such a word. The
//! test walks through every interleaving of two reactors, a committer, the gateway of HTTP and the
//! reader of bodies. When nothing can happen any more, every frame must be durable and every reply
//! sent. Each possible slip in the order of steps must lead into a state in which something waits
//! for ever.
//!
//! It is a model: it shows that the protocol is right, not that the code follows it; each step
//! names the code that it stands for. `WriteScheduler`, which decides when a write is due, is
//! simulated by itself (`sim/server.rs`). The model leaves out writes that are eager because much
//! waits, chores and the server's end. Memory is sequentially consistent, as the code's own is
//! where it matters. The model does not show that the threads stop spinning.

#![expect(clippy::indexing_slicing, reason = "every index is that of a thread or an event")]

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// An event of a client at the reactor that has its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A command that makes a frame; its reply waits for it.
    Ask,
    /// A command that makes a frame of which a connection of the other reactor is told.
    Tell,
    /// A command that makes a frame for which no client waits.
    Settle,
    /// The connection is gone, and with it the replies that wait.
    HangUp,
}

/// A mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    None,
    /// A reactor looks for mail before it says that it sleeps.
    LooksTooEarly,
    /// The last reactor to fall asleep does not look for frames that wait.
    LastSleepsBlindly,
    /// A reactor that writes says that it is awake although it may fall asleep behind that.
    AwakeBeforeSleep,
    /// A completed write tells that frames wait only after it woke the threads that waited for it.
    TellsTooLate,
    /// A completed write leaves waiting frames to reactors that are all asleep.
    LeavesItToSleepers,
    /// A completed write takes the gateway for a reactor that will write.
    CountsGateway,
    /// The gateway notes that a reply waits for a frame, and does not see that a write is due.
    GatewayForgets,
    /// No reactor is woken for a deadline that another thread made.
    DeadlineUnseen,
    /// A reactor that holds replies does not look for a write that was completed meanwhile.
    MissesCompletions,
}

/// The work of a thread behind the sockets, in the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chore {
    /// The reader of bodies mails the gateway a reply that waits for the last frame.
    Fetch,
    /// The housekeeper copies a frame for which no client waits.
    Copy,
}

/// The reason to wake a thread: `Post::state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asleep {
    No,
    ForMail,
    ForWrites,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Post {
    asleep: Asleep,
    mail: bool,
    bell: bool,
}

/// The step at which a thread is. Several threads share `Writing` and `Announcing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    SaySleep,
    LookForMail,
    LookForWrites,
    StayAwake,
    Poll,
    MaySleep,
    FallAsleep,
    LookAsLast,
    AwakeAsLast,
    Blocked,
    WakeUp,
    Awake,
    TakeMail,
    Step,
    TellMail,
    TellRing,
    CommitIdle,
    Writing(Writing),
    Announcing(Announcing),
    NoteCompletions,
    Release,
    /// The committer only: waits for something to write.
    Idle,
    /// The thread of chores only: has its next one to do, or none.
    Chore,
    /// The second reactor, where there is none.
    Missing,
}

/// `Hub::publish` within `Hub::complete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writing {
    Complete,
    Publish,
    Ring(usize),
    HandOver,
}

/// `Hub::announce`, before a thread releases the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Announcing {
    Sleepers,
    Deadline,
    MailFirst,
    RingFirst,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    at: At,
    /// The step at which it goes on after a write of its own, or after it released the lock.
    then: At,
    /// The frame that its replies wait for; 0: none wait.
    holds: u8,
    /// Completions that it has seen.
    seen: u8,
    busy_turns: u8,
    /// Events that it has read, and those of them it has handled; for chores those that are done.
    read: usize,
    handled: usize,
    quiet: bool,
    /// It is about to sleep and only looks once more.
    drowsy: bool,
    /// It saw a deadline before it slept, and wakes at it.
    timed: bool,
    /// Its completed write woke a reactor, which sees that a write is due.
    woke: bool,
    /// The frames that wait were delayed when it began to release the lock.
    delays: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    lock: Option<usize>,
    /// Positions of the log.
    appended: u8,
    taken: u8,
    durable: u8,
    /// The last frame that a client waits for: `WriteScheduler::awaited`.
    awaited: u8,
    /// The time of frames for which no client waits is over.
    late: bool,
    in_flight: bool,
    handed: bool,
    /// The committer was notified.
    notified: bool,
    /// `Hub::write_due`
    due: bool,
    /// `Hub::deadline`: true if there is one.
    deadline: bool,
    awake: u8,
    completions: u8,
    /// One for each reactor, and one for the gateway.
    posts: [Post; REACTORS + 1],
    /// Replies for a reactor's connections or the gateway: the frame they wait for.
    mailboxes: [u8; REACTORS + 1],
    /// Events that have arrived at its sockets.
    arrived: [usize; REACTORS],
    threads: [Thread; THREADS],
}

#[derive(Clone, Copy, Debug)]
struct Script {
    /// Events at the sockets of each reactor; the second may be missing.
    events: [Option<&'static [Event]>; REACTORS],
    /// Chores of other threads meanwhile.
    chores: &'static [Chore],
}

struct Model {
    script: Script,
    slip: Slip,
}

impl State {
    fn new(script: &Script) -> Self {
        let post = Post { asleep: Asleep::No, mail: false, bell: false };
        let thread = |at| Thread {
            at,
            then: At::Idle,
            holds: 0,
            seen: 0,
            busy_turns: 0,
            read: 0,
            handled: 0,
            quiet: false,
            drowsy: false,
            timed: false,
            woke: false,
            delays: false,
        };
        let second = if script.events[1].is_some() { At::SaySleep } else { At::Missing };
        let asleep = Post { asleep: Asleep::ForMail, ..post.clone() };
        Self {
            lock: None,
            appended: 0,
            taken: 0,
            durable: 0,
            awaited: 0,
            late: false,
            in_flight: false,
            handed: false,
            notified: false,
            due: false,
            deadline: false,
            awake: script.events.iter().flatten().count() as u8,
            completions: 0,
            posts: [post.clone(), post, asleep],
            mailboxes: [0; REACTORS + 1],
            arrived: [0; REACTORS],
            threads: [At::SaySleep, second, At::Blocked, At::Idle, At::Chore].map(thread),
        }
    }

    /// Nothing is owed to any client, and nothing waits to be written.
    fn is_settled(&self) -> bool {
        self.durable == self.appended
            && self.mailboxes == [0; REACTORS + 1]
            && self.threads.iter().all(|thread| thread.holds == 0)
    }

    fn has_pending(&self) -> bool {
        self.taken < self.appended
    }

    /// No client waits for a frame that is to be written.
    fn is_delayed(&self) -> bool {
        self.has_pending() && self.awaited <= self.durable && !self.late
    }

    /// `WriteScheduler::is_due`
    fn is_due(&self) -> bool {
        self.has_pending() && !self.in_flight && !self.is_delayed()
    }

    /// `WriteScheduler::poll_idle`: one write at a time. True if there is one now.
    fn take_write(&mut self) -> bool {
        let takes = self.is_due();
        if takes {
            (self.taken, self.in_flight, self.late) = (self.appended, true, false);
        }
        takes
    }

    /// `Hub::leave_to_committers`
    fn leave_to_committer(&mut self) {
        self.handed = true;
        self.notified |= self.threads[COMMITTER].at == At::Idle;
    }

    /// `Post::notify_write`
    fn ring_for_write(&mut self, index: usize) -> bool {
        let waits = self.posts[index].asleep == Asleep::ForWrites;
        if waits {
            (self.posts[index].asleep, self.posts[index].bell) = (Asleep::No, true);
        }
        waits
    }

    /// The second half of `Post::notify_mail`.
    fn ring_for_mail(&mut self, index: usize) {
        let post = &mut self.posts[index];
        if post.asleep != Asleep::No {
            (post.asleep, post.bell) = (Asleep::No, true);
        }
    }

    /// The beginning of `CoreGuard::drop`, and the step of the thread behind it. It looks at the
    /// time once. No other thread sees earlier changes under the lock, so that they are no step of
    /// their own. A reactor that holds the lock is awake.
    fn release_lock(&mut self, me: usize, then: At) -> At {
        self.due = self.is_due();
        self.threads[me].delays = self.is_delayed();
        self.threads[me].then = then;
        let is_reactor = me < REACTORS;
        At::Announcing(if is_reactor { Announcing::Deadline } else { Announcing::Sleepers })
    }
}

impl Model {
    /// Every state that one step of a thread, of a client or of time leads to.
    fn successors(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for reactor in 0..REACTORS {
            if state.arrived[reactor] < self.script.events[reactor].map_or(0, <[Event]>::len) {
                let mut arrived = state.clone();
                arrived.arrived[reactor] += 1;
                next.push(arrived);
            }
        }
        if state.is_delayed() {
            next.push(State { late: true, ..state.clone() });
        }
        for me in 0..THREADS {
            let mut after = state.clone();
            if self.step(&mut after, me) {
                next.push(after);
            }
            // A sole client's write, or one that all wait for, is its reactor's own: either may be.
            if state.threads[me].at == At::CommitIdle && state.lock.is_none() {
                let mut here = state.clone();
                if here.take_write() {
                    here.due = here.is_due();
                    here.threads[me].at = At::Writing(Writing::Complete);
                    next.push(here);
                }
            }
        }
        next
    }

    /// One step of one thread; false where it has to wait.
    fn step(&self, state: &mut State, me: usize) -> bool {
        let thread = state.threads[me].clone();
        match thread.at {
            At::Idle => return idle(state),
            At::Writing(writing) => return self.write(state, me, writing),
            At::Announcing(announcing) => return self.announce(state, me, announcing),
            At::Blocked => return block(state, me),
            At::Step => return self.handle(state, me),
            At::Chore => return self.perform_chore(state),
            At::Missing => return false,
            At::CommitIdle => return commit_idle(state, me),
            _ => {}
        }
        state.threads[me].at = match thread.at {
            At::SaySleep if self.slip == Slip::LooksTooEarly && !thread.quiet => {
                state.threads[me].quiet = !state.posts[me].mail;
                if state.threads[me].quiet { At::SaySleep } else { At::StayAwake }
            }
            At::SaySleep => {
                let asleep = if thread.holds > 0 { Asleep::ForWrites } else { Asleep::ForMail };
                state.posts[me].asleep = asleep;
                if self.slip == Slip::LooksTooEarly { At::LookForWrites } else { At::LookForMail }
            }
            At::LookForMail => {
                state.threads[me].quiet = !state.posts[me].mail;
                At::LookForWrites
            }
            At::LookForWrites => {
                let missed = thread.holds > 0
                    && thread.seen != state.completions
                    && self.slip != Slip::MissesCompletions;
                let over = me != GATEWAY && state.deadline && state.late;
                state.threads[me].timed = me != GATEWAY && state.deadline;
                let stays = missed || over || !thread.quiet;
                state.threads[me].quiet = false;
                match stays {
                    true if me == GATEWAY => At::Awake,
                    true => At::StayAwake,
                    false if me == GATEWAY => At::Blocked,
                    false => At::MaySleep,
                }
            }
            At::MaySleep => {
                state.threads[me].drowsy = state.due;
                if state.due { At::StayAwake } else { At::FallAsleep }
            }
            At::StayAwake => {
                let busy = if state.due { thread.busy_turns + 1 } else { 0 };
                let writes = busy > BUSY_TURNS_MAX;
                state.threads[me].busy_turns = if writes { 0 } else { busy };
                state.threads[me].then = At::Poll;
                if writes && self.slip == Slip::AwakeBeforeSleep {
                    state.posts[me].asleep = Asleep::No;
                }
                if writes { At::CommitIdle } else { At::Poll }
            }
            At::Poll => {
                let news = hear(state, me);
                let sleeps = std::mem::take(&mut state.threads[me].drowsy) && !news;
                if sleeps { At::FallAsleep } else { At::Awake }
            }
            At::FallAsleep => {
                state.awake -= 1;
                let looks = state.awake == 0 && self.slip != Slip::LastSleepsBlindly;
                if looks { At::LookAsLast } else { At::Blocked }
            }
            At::LookAsLast if state.due => {
                state.awake += 1;
                state.threads[me].busy_turns = 0;
                state.threads[me].then = At::Awake;
                At::AwakeAsLast
            }
            At::AwakeAsLast => {
                state.posts[me].asleep = Asleep::No;
                At::CommitIdle
            }
            At::LookAsLast => At::Blocked,
            At::WakeUp => {
                state.awake += u8::from(me != GATEWAY);
                At::Awake
            }
            At::Awake => {
                state.posts[me].asleep = Asleep::No;
                At::TakeMail
            }
            At::TakeMail => {
                let mail = std::mem::take(&mut state.posts[me].mail);
                let timers = me != GATEWAY && state.deadline && state.late;
                let idle = !mail && !timers && thread.read == thread.handled;
                if idle { At::NoteCompletions } else { At::Step }
            }
            At::TellMail => {
                state.posts[addressee(me)].mail = true;
                At::TellRing
            }
            At::TellRing => {
                state.ring_for_mail(addressee(me));
                let then = if me == CHORES { At::Chore } else { At::NoteCompletions };
                state.release_lock(me, then)
            }
            At::NoteCompletions => {
                state.threads[me].seen = state.completions;
                At::Release
            }
            At::Release => {
                if thread.holds <= state.durable {
                    state.threads[me].holds = 0;
                }
                At::SaySleep
            }
            At::Idle
            | At::Writing(_)
            | At::Announcing(_)
            | At::Blocked
            | At::Step
            | At::Chore
            | At::Missing
            | At::CommitIdle => unreachable!(),
        };
        true
    }

    /// `Reactor::step` or `GatewayLoop::step` under the lock, up to the mail to another reactor.
    fn handle(&self, state: &mut State, me: usize) -> bool {
        if state.lock.is_some() {
            return false;
        }
        state.lock = Some(me);
        let mut tells = false;
        let (handled, read) = (state.threads[me].handled, state.threads[me].read);
        let all = self.script.events.get(me).copied().flatten().unwrap_or_default();
        let events = &all[handled..read];
        for event in events {
            state.appended += u8::from(*event != Event::HangUp);
            match event {
                Event::Ask => {
                    state.threads[me].holds = state.appended;
                    state.awaited = state.appended;
                }
                Event::Tell => state.mailboxes[other(me)] = state.appended,
                Event::Settle => {}
                Event::HangUp => state.threads[me].holds = 0,
            }
            tells |= *event == Event::Tell;
        }
        let mail = std::mem::take(&mut state.mailboxes[me]);
        state.awaited = state.awaited.max(mail);
        let thread = &mut state.threads[me];
        thread.handled = thread.read;
        thread.holds = thread.holds.max(mail);
        if me == GATEWAY && self.slip == Slip::GatewayForgets {
            // The deadline that the reply withdraws is published all the same.
            state.deadline = state.is_delayed();
            state.lock = None;
            state.threads[me].at = At::NoteCompletions;
            return true;
        }
        let after = if tells { At::TellMail } else { state.release_lock(me, At::NoteCompletions) };
        state.threads[me].at = after;
        true
    }

    /// A chore of another thread, up to its mail to the gateway.
    fn perform_chore(&self, state: &mut State) -> bool {
        let done = state.threads[CHORES].handled;
        let Some(chore) = self.script.chores.get(done) else { return false };
        if state.lock.is_some() {
            return false;
        }
        state.lock = Some(CHORES);
        state.threads[CHORES].handled += 1;
        state.threads[CHORES].at = match chore {
            Chore::Fetch => {
                state.mailboxes[GATEWAY] = state.appended;
                At::TellMail
            }
            Chore::Copy => {
                state.appended += 1;
                state.release_lock(CHORES, At::Chore)
            }
        };
        true
    }

    /// A write that was performed, to the end of `Hub::complete`.
    fn write(&self, state: &mut State, me: usize, writing: Writing) -> bool {
        state.threads[me].at = At::Writing(match writing {
            Writing::Complete if state.lock.is_some() => return false,
            Writing::Complete => {
                state.lock = Some(me);
                (state.in_flight, state.durable) = (false, state.taken);
                if self.slip != Slip::TellsTooLate {
                    state.due = state.is_due();
                }
                state.threads[me].woke = false;
                Writing::Publish
            }
            Writing::Publish => {
                state.completions += 1;
                Writing::Ring(0)
            }
            Writing::Ring(index) => {
                let woken = state.ring_for_write(index) && state.is_due();
                let counts = index < REACTORS || self.slip == Slip::CountsGateway;
                state.threads[me].woke |= woken && counts;
                if index < REACTORS { Writing::Ring(index + 1) } else { Writing::HandOver }
            }
            Writing::HandOver => {
                // A reactor that wrote itself leaves frames that came meanwhile to the committer.
                if me != COMMITTER && state.take_write() {
                    state.leave_to_committer();
                }
                let then = if me == COMMITTER { At::Idle } else { state.threads[me].then };
                state.threads[me].at = state.release_lock(me, then);
                return true;
            }
        });
        true
    }

    fn announce(&self, state: &mut State, me: usize, announcing: Announcing) -> bool {
        state.threads[me].at = At::Announcing(match announcing {
            Announcing::Sleepers => {
                let seen = std::mem::take(&mut state.threads[me].woke);
                let looks = self.slip != Slip::LeavesItToSleepers;
                if looks && !seen && state.awake == 0 && state.take_write() {
                    state.leave_to_committer();
                    state.due = state.is_due();
                }
                Announcing::Deadline
            }
            Announcing::Deadline => {
                let deadline = state.threads[me].delays && state.has_pending();
                let before = std::mem::replace(&mut state.deadline, deadline);
                let is_new = deadline && !before;
                let looks = me < REACTORS && state.threads[me].then == At::NoteCompletions;
                if is_new && !looks && self.slip != Slip::DeadlineUnseen {
                    Announcing::MailFirst
                } else {
                    unlock(state, me);
                    return true;
                }
            }
            Announcing::MailFirst => {
                state.posts[0].mail = true;
                Announcing::RingFirst
            }
            Announcing::RingFirst => {
                state.ring_for_mail(0);
                unlock(state, me);
                return true;
            }
        });
        true
    }
}

fn unlock(state: &mut State, me: usize) {
    state.lock = None;
    if me == COMMITTER {
        take_handed(state);
    } else {
        state.threads[me].at = state.threads[me].then;
    }
}

/// `Hub::wait_for_write` after a notification.
fn idle(state: &mut State) -> bool {
    if !state.notified || state.lock.is_some() {
        return false;
    }
    state.notified = false;
    take_handed(state);
    true
}

fn take_handed(state: &mut State) {
    let handed = std::mem::take(&mut state.handed);
    state.threads[COMMITTER].at = if handed { At::Writing(Writing::Complete) } else { At::Idle };
}

/// `Hub::commit_idle`, with the write left to the committer.
fn commit_idle(state: &mut State, me: usize) -> bool {
    if state.lock.is_some() {
        return false;
    }
    if state.take_write() {
        state.leave_to_committer();
    }
    state.due = state.is_due();
    state.threads[me].at = state.threads[me].then;
    true
}

/// Sleeps until a socket or the bell has something, or a reactor's deadline has come.
fn block(state: &mut State, me: usize) -> bool {
    let timer = state.threads[me].timed && state.late;
    let wakes = hear(state, me) || timer;
    if wakes {
        state.threads[me].at = At::WakeUp;
    }
    wakes
}

/// Takes in the events of epoll; true if there were any.
fn hear(state: &mut State, me: usize) -> bool {
    let bell = std::mem::take(&mut state.posts[me].bell);
    if me == GATEWAY {
        return bell;
    }
    let news = state.threads[me].read < state.arrived[me];
    state.threads[me].read = state.arrived[me];
    bell || news
}

const fn other(reactor: usize) -> usize {
    1 - reactor
}

/// The thread that gets a thread's mail.
const fn addressee(me: usize) -> usize {
    if me == CHORES { GATEWAY } else { other(me) }
}

/// The result of walking through every interleaving.
struct Walk {
    states: usize,
    /// A state in which nothing can happen and something is owed.
    stuck: Option<State>,
}

/// Keeps 64 bits of each state that it has seen: two of ten million share them by a chance of one
/// in 300,000.
fn walk(script: Script, slip: Slip) -> Walk {
    let model = Model { script, slip };
    let mut seen = HashSet::new();
    let mut waiting = vec![State::new(&script)];
    while let Some(state) = waiting.pop() {
        if !seen.insert(BuildHasherDefault::<DefaultHasher>::default().hash_one(&state)) {
            continue;
        }
        let successors = model.successors(&state);
        if successors.is_empty() && !state.is_settled() {
            return Walk { states: seen.len(), stuck: Some(state) };
        }
        waiting.extend(successors);
    }
    Walk { states: seen.len(), stuck: None }
}

const SCRIPTS: [Script; 8] = [
    both(&[Event::Ask, Event::Ask, Event::HangUp], &[]),
    both(&[Event::Tell], &[Event::HangUp]),
    both(&[Event::Ask], &[Event::Ask]),
    both(&[Event::Ask, Event::HangUp], &[Event::Ask]),
    sole(&[Event::Settle], &[Chore::Fetch]),
    sole(&[Event::Ask, Event::HangUp], &[Chore::Copy]),
    sole(&[Event::Ask], &[Chore::Copy, Chore::Fetch]),
    sole(&[Event::Ask, Event::HangUp, Event::Settle], &[Chore::Fetch]),
];

const fn both(one: &'static [Event], other: &'static [Event]) -> Script {
    Script { events: [Some(one), Some(other)], chores: &[] }
}

const fn sole(events: &'static [Event], chores: &'static [Chore]) -> Script {
    Script { events: [Some(events), None], chores }
}

#[test]
fn frames_and_replies_need_no_event() {
    for script in SCRIPTS {
        let Walk { states, stuck } = walk(script, Slip::None);
        println!("{script:?}: {states} states");
        assert_eq!(stuck, None, "{script:?}");
        assert!(states > 1000, "{script:?}: only {states} states");
    }
}

#[test]
fn slips_leave_something_waiting_for_ever() {
    for slip in [
        Slip::LooksTooEarly,
        Slip::LastSleepsBlindly,
        Slip::AwakeBeforeSleep,
        Slip::TellsTooLate,
        Slip::LeavesItToSleepers,
        Slip::CountsGateway,
        Slip::GatewayForgets,
        Slip::DeadlineUnseen,
        Slip::MissesCompletions,
    ] {
        let caught = SCRIPTS.iter().any(|script| walk(*script, slip).stuck.is_some());
        assert!(caught, "{slip:?} does no harm in the model");
    }
}

const REACTORS: usize = 2;
const GATEWAY: usize = REACTORS;
const COMMITTER: usize = REACTORS + 1;
const CHORES: usize = REACTORS + 2;
const THREADS: usize = REACTORS + 3;

/// Fewer than the server's, to keep the model small: the number changes no order.
const BUSY_TURNS_MAX: u8 = 1;
