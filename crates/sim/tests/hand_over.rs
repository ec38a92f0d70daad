//! No wake-up is lost between reactors and committers: an exhaustive check of a model.
//!
//! The server's reactors and committers share few words outside the one lock: who sleeps and for
//! what (`post.rs`), whether frames wait, who is awake, how many writes were completed (`hub.rs`).
//! Here their protocol is written down step by step, one step for each access to such a word, and
//! every interleaving of two reactors and a committer is walked through. When nothing can happen
//! any more, every frame must be durable and every reply sent. Each slip that one could make in
//! the order of steps must lead into a state in which something waits for ever.
//!
//! It is a model: it shows that the protocol is right, not that the code follows it; each step
//! names what it stands for. Left out are writes that are eager because much waits, chores,
//! deadlines and the server's end; memory is sequentially consistent, as the code's own is where
//! it matters; that the threads do not spin for ever is not shown.

#![expect(clippy::indexing_slicing, reason = "every index is that of a thread or an event")]

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// What a client does to the reactor that has its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A command that makes a frame; its reply waits for it.
    Ask,
    /// A command that makes a frame of which a connection of the other reactor is told.
    Tell,
    /// The connection is gone, and with it the replies that wait.
    HangUp,
}

/// A mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    None,
    /// A reactor looks for mail before it says that it sleeps.
    LooksTooEarly,
    /// The last reactor to fall asleep does not look whether frames wait.
    LastSleepsBlindly,
    /// A reactor that writes says that it is awake although it may fall asleep behind that.
    AwakeBeforeSleep,
    /// A completed write tells that frames wait only after it woke who waited for it.
    TellsTooLate,
    /// A completed write leaves what waits to reactors that are all asleep.
    LeavesItToSleepers,
    /// A reactor that holds replies does not look whether a write was completed meanwhile.
    MissesCompletions,
}

/// What a reactor would be woken for: `Post::state`.
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

/// Where a thread is. `Writing` is shared by reactors and the committer.
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
    Commit,
    CommitIdle,
    Writing(Writing),
    NoteCompletions,
    Release,
    /// The committer only: waits for something to write.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writing {
    Complete,
    Publish,
    Ring(usize),
    LookForSleepers,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    at: At,
    /// Where it goes on after a write of its own.
    then: At,
    /// The frame that its replies wait for; 0: none wait.
    holds: u8,
    /// Completions that it has seen.
    seen: u8,
    busy_turns: u8,
    /// Events that it has read, and those of them it has handled.
    read: usize,
    handled: usize,
    quiet: bool,
    /// It is about to sleep and only looks once more.
    drowsy: bool,
    /// Its completed write woke somebody.
    heard: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    lock: Option<usize>,
    /// Positions of the log.
    appended: u8,
    taken: u8,
    durable: u8,
    in_flight: bool,
    handed: bool,
    /// The committer was notified.
    notified: bool,
    uncommitted: bool,
    awake: u8,
    completions: u8,
    posts: [Post; REACTORS],
    /// Replies for connections of a reactor: the frame they wait for.
    mailboxes: [u8; REACTORS],
    /// Events that have arrived at its sockets.
    arrived: [usize; REACTORS],
    threads: [Thread; REACTORS + 1],
}

type Script = [&'static [Event]; REACTORS];

struct Model {
    script: Script,
    slip: Slip,
}

impl State {
    fn new() -> Self {
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
            heard: false,
        };
        Self {
            lock: None,
            appended: 0,
            taken: 0,
            durable: 0,
            in_flight: false,
            handed: false,
            notified: false,
            uncommitted: false,
            awake: REACTORS as u8,
            completions: 0,
            posts: [post.clone(), post],
            mailboxes: [0; REACTORS],
            arrived: [0; REACTORS],
            threads: [thread(At::SaySleep), thread(At::SaySleep), thread(At::Idle)],
        }
    }

    /// Nothing is owed to anybody.
    fn is_settled(&self) -> bool {
        self.durable == self.appended
            && self.mailboxes == [0; REACTORS]
            && self.threads.iter().all(|thread| thread.holds == 0)
    }

    /// `Core::has_uncommitted`
    fn has_pending(&self) -> bool {
        self.taken < self.appended
    }

    /// `Core::idle_write`: one write at a time. Whether there is one now.
    fn take_write(&mut self) -> bool {
        let takes = !self.in_flight && self.has_pending();
        if takes {
            (self.taken, self.in_flight) = (self.appended, true);
        }
        takes
    }

    /// `Hub::leave_to_committers`
    fn leave_to_committer(&mut self) {
        self.handed = true;
        self.notified |= self.threads[COMMITTER].at == At::Idle;
    }

    /// `Post::notify_write`
    fn ring_for_write(&mut self, reactor: usize) -> bool {
        let waits = self.posts[reactor].asleep == Asleep::ForWrites;
        if waits {
            (self.posts[reactor].asleep, self.posts[reactor].bell) = (Asleep::No, true);
        }
        waits
    }
}

impl Model {
    /// Every state that one step of anybody leads to.
    fn successors(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for reactor in 0..REACTORS {
            if state.arrived[reactor] < self.script[reactor].len() {
                let mut arrived = state.clone();
                arrived.arrived[reactor] += 1;
                next.push(arrived);
            }
        }
        for me in 0..=REACTORS {
            let mut after = state.clone();
            if self.step(&mut after, me) {
                next.push(after);
            }
            // A lone client's write, or one that all wait for, is its reactor's own: either may be.
            if state.threads[me].at == At::CommitIdle && state.lock.is_none() {
                let mut here = state.clone();
                if here.take_write() {
                    here.uncommitted = here.has_pending();
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
            At::Blocked => return block(state, me),
            At::Step => return self.handle(state, me),
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
                let stays = missed || !thread.quiet;
                state.threads[me].quiet = false;
                if stays { At::StayAwake } else { At::MaySleep }
            }
            At::MaySleep => {
                state.threads[me].drowsy = state.uncommitted;
                if state.uncommitted { At::StayAwake } else { At::FallAsleep }
            }
            At::StayAwake => {
                let busy = if state.uncommitted { thread.busy_turns + 1 } else { 0 };
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
            At::LookAsLast if state.uncommitted => {
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
                state.awake += 1;
                At::Awake
            }
            At::Awake => {
                state.posts[me].asleep = Asleep::No;
                At::TakeMail
            }
            At::TakeMail => {
                let mail = std::mem::take(&mut state.posts[me].mail);
                let idle = !mail && thread.read == thread.handled;
                if idle { At::NoteCompletions } else { At::Step }
            }
            At::TellMail => {
                state.posts[other(me)].mail = true;
                At::TellRing
            }
            At::TellRing => {
                let post = &mut state.posts[other(me)];
                if post.asleep != Asleep::No {
                    (post.asleep, post.bell) = (Asleep::No, true);
                }
                At::Commit
            }
            At::Commit => {
                state.uncommitted = state.has_pending();
                state.lock = None;
                At::NoteCompletions
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
            At::Idle | At::Writing(_) | At::Blocked | At::Step | At::CommitIdle => unreachable!(),
        };
        true
    }

    /// `Reactor::step` under the lock, up to what it tells another reactor.
    fn handle(&self, state: &mut State, me: usize) -> bool {
        if state.lock.is_some() {
            return false;
        }
        state.lock = Some(me);
        let mut tells = false;
        let events = &self.script[me][state.threads[me].handled..state.threads[me].read];
        for event in events {
            state.appended += u8::from(*event != Event::HangUp);
            match event {
                Event::Ask => state.threads[me].holds = state.appended,
                Event::Tell => state.mailboxes[other(me)] = state.appended,
                Event::HangUp => state.threads[me].holds = 0,
            }
            tells |= *event == Event::Tell;
        }
        let mail = std::mem::take(&mut state.mailboxes[me]);
        let thread = &mut state.threads[me];
        thread.handled = thread.read;
        thread.holds = thread.holds.max(mail);
        thread.at = if tells { At::TellMail } else { At::Commit };
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
                    state.uncommitted = state.has_pending();
                }
                state.threads[me].heard = false;
                Writing::Publish
            }
            Writing::Publish => {
                state.completions += 1;
                Writing::Ring(0)
            }
            Writing::Ring(reactor) => {
                let heard = state.ring_for_write(reactor);
                state.threads[me].heard |= heard;
                let more = reactor + 1 < REACTORS;
                if more { Writing::Ring(reactor + 1) } else { Writing::LookForSleepers }
            }
            Writing::LookForSleepers => {
                self.end_write(state, me);
                return true;
            }
        });
        true
    }

    fn end_write(&self, state: &mut State, me: usize) {
        if self.slip == Slip::TellsTooLate {
            state.uncommitted = state.has_pending();
        }
        let sleepers = !state.threads[me].heard && state.awake == 0;
        let looks = self.slip != Slip::LeavesItToSleepers;
        // A reactor that wrote itself leaves what came meanwhile to the committer in any case.
        if ((sleepers && looks) || me != COMMITTER) && state.take_write() {
            state.leave_to_committer();
        }
        state.lock = None;
        if me == COMMITTER {
            take_handed(state);
        } else {
            state.threads[me].at = state.threads[me].then;
        }
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
    // `has_uncommitted() && transfer.is_some()`: all was taken, or a write is under way.
    state.uncommitted = false;
    state.threads[me].at = state.threads[me].then;
    true
}

/// Sleeps until a socket or the bell has something.
fn block(state: &mut State, me: usize) -> bool {
    let wakes = hear(state, me);
    if wakes {
        state.threads[me].at = At::WakeUp;
    }
    wakes
}

/// What epoll tells. Whether it told anything.
fn hear(state: &mut State, me: usize) -> bool {
    let bell = std::mem::take(&mut state.posts[me].bell);
    let news = state.threads[me].read < state.arrived[me];
    state.threads[me].read = state.arrived[me];
    bell || news
}

const fn other(reactor: usize) -> usize {
    1 - reactor
}

/// What came of walking through every interleaving.
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
    let mut waiting = vec![State::new()];
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

const SCRIPTS: [Script; 4] = [
    [&[Event::Ask, Event::Ask, Event::HangUp], &[]],
    [&[Event::Tell], &[Event::HangUp]],
    [&[Event::Ask], &[Event::Ask]],
    [&[Event::Ask, Event::HangUp], &[Event::Ask]],
];

#[test]
fn every_frame_is_written_and_every_reply_sent_without_a_further_event() {
    for script in SCRIPTS {
        let Walk { states, stuck } = walk(script, Slip::None);
        println!("{script:?}: {states} states");
        assert_eq!(stuck, None, "{script:?}");
        assert!(states > 1000, "{script:?}: only {states} states");
    }
}

#[test]
fn each_slip_leaves_something_waiting_for_ever() {
    for slip in [
        Slip::LooksTooEarly,
        Slip::LastSleepsBlindly,
        Slip::AwakeBeforeSleep,
        Slip::TellsTooLate,
        Slip::LeavesItToSleepers,
        Slip::MissesCompletions,
    ] {
        let caught = SCRIPTS.iter().any(|script| walk(*script, slip).stuck.is_some());
        assert!(caught, "{slip:?} does no harm in the model");
    }
}

const REACTORS: usize = 2;
const COMMITTER: usize = REACTORS;

/// Fewer than the server's, to keep the model small: the number changes no order.
const BUSY_TURNS_MAX: u8 = 1;
