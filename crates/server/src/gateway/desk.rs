//! What the pump keeps, and how it steps the broker while it holds the lock.

use http_api::{GatewayError, Leased};
use journal::Durable;
use model::{Command, DependsOn, Nanos, Output, Reply, SessionId, WallClock};

use crate::connections::{numbered_densely, reactor_of};
use crate::core::Core;
use crate::gateway::answer::Answers;
use crate::gateway::followers::Followers;
use crate::gateway::inbox::{Inbox, Wish};
use crate::gateway::leases::Leases;
use crate::gateway::receives::Receives;
use crate::gateway::works::Works;
use crate::post::Post;
use crate::step::STEPS_PER_TURN;

/// The gateway's own sessions, and who waits for them.
#[derive(Debug)]
pub(crate) struct GatewayState {
    index: usize,
    sessions: u64,
    session: SessionId,
    asking: SessionId,
    pub(crate) receives: Receives,
    pub(crate) works: Works,
    pub(crate) followers: Followers,
    pub(crate) leases: Leases,
    pub(crate) answers: Answers,
    stopping: bool,
}

/// What can be done while the lock is held, and for how long.
pub(crate) struct Locked<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) posts: &'a [Post],
    pub(crate) now: Nanos,
    last_step: u64,
}

impl<'a> Locked<'a> {
    pub(crate) fn new(core: &'a mut Core, posts: &'a [Post], now: Nanos) -> Self {
        let last_step = core.broker.steps() + STEPS_PER_TURN;
        Self { core, posts, now, last_step }
    }

    /// Whether another command may be given in this turn.
    pub(crate) fn goes_on(&self) -> bool {
        !self.core.broker.stalled() && self.core.broker.steps() < self.last_step
    }
}

impl GatewayState {
    /// A desk whose sessions are numbered as those of reactor `index`.
    pub(crate) fn new(index: usize, instance: u64, receives_max: usize, clock: WallClock) -> Self {
        Self {
            index,
            sessions: 2,
            session: numbered_densely(index, 1),
            asking: numbered_densely(index, 2),
            receives: Receives::new(receives_max),
            works: Works::new(),
            followers: Followers::default(),
            leases: Leases::new(instance),
            answers: Answers::new(clock),
            stopping: false,
        }
    }

    /// The sessions of all leases, and of what operators ask, begin.
    pub(crate) fn open(&self, core: &mut Core) {
        for session in [self.session, self.asking] {
            core.broker.open_session(session);
            core.broker.name_session(session, "http".into());
            core.broker.let_overtake(session);
        }
    }

    pub(crate) fn next_session(&mut self) -> SessionId {
        self.sessions += 1;
        numbered_densely(self.index, self.sessions)
    }

    /// The session of all leases.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// The session of what operators ask.
    pub(crate) const fn asking(&self) -> SessionId {
        self.asking
    }

    /// Whether nobody may wait any longer.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Serves what has come, as far as the turn goes.
    pub(crate) fn step(&mut self, locked: &mut Locked<'_>, inbox: &Inbox) {
        // What others caused comes before what the wishes cause now.
        for output in locked.core.take_mail(self.index) {
            self.note(locked, output);
        }
        self.leases.expire(locked.now);
        if !locked.core.broker.stalled() {
            self.drop_slow(locked);
        }
        while locked.goes_on() && (self.go_on(locked) || self.grant_next(locked, inbox)) {}
    }

    /// Whether there is more to do than the last turn did.
    pub(crate) fn is_behind(&self, inbox: &Inbox) -> bool {
        self.has_begun() || !inbox.is_empty()
    }

    fn has_begun(&self) -> bool {
        self.receives.has_due() || self.works.is_going_on() || self.followers.has_taken()
    }

    /// Goes on with something that began before; tells whether there was any.
    fn go_on(&mut self, locked: &mut Locked<'_>) -> bool {
        let has_begun = self.has_begun();
        if self.followers.has_taken() {
            self.settle_taken(locked);
        } else if self.receives.has_due() {
            self.go_on_receiving(locked);
        } else if self.works.is_going_on() {
            self.go_on_working(locked);
        }
        has_begun
    }

    fn grant_next(&mut self, locked: &mut Locked<'_>, inbox: &Inbox) -> bool {
        let Some(wish) = inbox.pop() else { return false };
        match wish {
            Wish::Work(ticket, work, reply) => self.begin_work(locked, ticket, work, reply),
            Wish::Receive(_, _, reply) if self.stopping => {
                drop(reply.send(Err(GatewayError::Stopping)))
            }
            Wish::Receive(ticket, wanted, reply) => {
                self.begin_receive(locked, ticket, wanted, reply);
            }
            Wish::Abandon(ticket) => {
                self.abandon_receive(locked, ticket);
                self.abandon_work(locked, ticket);
            }
            Wish::GiveBack(tokens) => tokens.into_iter().for_each(|token| {
                self.give_back(locked, token);
            }),
            Wish::Follow(_, _, _, reply) if self.stopping => {
                drop(reply.send(Err(GatewayError::Stopping)));
            }
            Wish::Follow(ticket, topic, to, reply) => {
                self.begin_to_follow(locked, ticket, topic, to, reply);
            }
            Wish::Took(ticket, count, bytes) => self.took(locked, ticket, count, bytes),
            Wish::Leave(ticket) => self.stop_following(locked, ticket),
        }
        true
    }

    /// The server stops: nobody waits any longer.
    pub(crate) fn stop_waits(&mut self, locked: &mut Locked<'_>) {
        self.stopping = true;
        self.end_waits(locked);
        self.stop_paced();
        for ticket in self.followers.tickets() {
            self.stop_following(locked, ticket);
        }
    }

    /// Ends the sessions, through no fault of those who hold leases.
    pub(crate) fn close(&mut self, locked: &mut Locked<'_>) {
        for session in self.works.take_sessions() {
            self.dismiss(locked, session);
        }
        self.dismiss(locked, self.asking);
        self.dismiss(locked, self.session);
    }

    /// Ends a session through no fault of its own.
    pub(crate) fn dismiss(&mut self, locked: &mut Locked<'_>, session: SessionId) {
        locked.core.broker.dismiss_session(locked.now, session, &mut locked.core.outputs);
        self.sort_outputs(locked);
    }

    /// Answers what the log is durable enough for; gives what nobody was there to take.
    pub(crate) fn release(&mut self, durable: Durable) -> Vec<http_api::Token> {
        self.answers.release(durable)
    }

    fn give_back(&mut self, locked: &mut Locked<'_>, token: http_api::Token) {
        if self.leases.find(token).is_none() {
            return;
        }
        self.leases.remove(token.message);
        self.call(
            locked,
            Command::Settle {
                message: token.message,
                settlement: model::Settlement::Return,
                transaction: None,
            },
        );
    }

    /// A command of the session of all leases, and its own reply.
    pub(crate) fn call(
        &mut self,
        locked: &mut Locked<'_>,
        command: Command,
    ) -> Option<(DependsOn, Reply)> {
        self.call_as(locked, self.session, command)
    }

    /// The same for any session. What else the command caused is passed on.
    pub(crate) fn call_as(
        &mut self,
        locked: &mut Locked<'_>,
        session: SessionId,
        command: Command,
    ) -> Option<(DependsOn, Reply)> {
        let core = &mut *locked.core;
        let is_answered = !is_answered_later(&command);
        core.broker.handle(locked.now, session, command, &mut core.outputs);
        // The engine answers a command before it tells what came of it.
        let is_own = |it: &Output| it.session == session && !is_event(&it.reply);
        let own = is_answered.then(|| core.outputs.iter().position(is_own)).flatten();
        let reply = own.map(|index| core.outputs.remove(index));
        core.scheduler
            .note_awaited(reply.as_ref().map_or(DependsOn::NOTHING, |output| output.after));
        self.sort_outputs(locked);
        reply.map(|Output { after, reply, .. }| (after, reply))
    }

    /// Keeps what is said to sessions of this desk, and posts the rest.
    pub(crate) fn sort_outputs(&mut self, locked: &mut Locked<'_>) {
        let index = self.index;
        let ours = |output: &mut Output| reactor_of(output.session) == index;
        let outputs: Vec<Output> = locked.core.outputs.extract_if(.., ours).collect();
        for output in outputs {
            self.note(locked, output);
        }
        locked.core.post_outputs(index, locked.posts);
    }

    /// Something that is not the answer to a command just given.
    fn note(&mut self, locked: &mut Locked<'_>, output: Output) {
        let Output { session, after, reply } = output;
        let now = locked.now;
        locked.core.scheduler.note_awaited(after);
        match reply {
            Reply::Late { ticket, reply } => self.note_admitted(ticket, after, *reply),
            reply if self.works.awaits(session) && !is_event(&reply) => {
                self.note_late(session, after, reply);
            }
            reply if session != self.session => self.note_follower(session, now, after, reply),
            Reply::Delivered(delivery) => {
                let Some(link) = delivery.link else { return };
                let ends = now + self.receives.lease_of(link);
                let token = self.leases.insert(&delivery, ends);
                self.receives.note(link, after, Some(Leased { token, delivery: *delivery }));
            }
            Reply::TimedOut { link: Some(link) } | Reply::ConsumerClosed { link } => {
                self.receives.note(link, after, None);
            }
            _ => {}
        }
    }
}

/// Whether what comes of it names its link: any other reply is for a commit before it.
const fn is_answered_later(command: &Command) -> bool {
    matches!(
        command,
        Command::Receive { .. } | Command::CancelReceive { .. } | Command::Credit { .. }
    )
}

/// Whether it may come at any time, and says whom it concerns.
const fn is_event(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::Delivered(_)
            | Reply::TimedOut { .. }
            | Reply::ConsumerClosed { .. }
            | Reply::ConsumerCutOff { .. }
            | Reply::Drained { .. }
            | Reply::Late { .. }
    )
}
