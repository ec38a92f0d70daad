//! The state of the gateway, and how it serves requests in a turn with the broker.

use model::{Command, DependsOn, Draining, Durable, Nanos, Output, Reply, SessionId, WallClock};

use crate::gateway::answers::Answers;
use crate::gateway::broker::BrokerTurn;
use crate::gateway::followers::Followers;
use crate::gateway::leases::Leases;
use crate::gateway::receives::Receives;
use crate::gateway::request_queue::{Request, RequestQueue};
use crate::gateway::works::Works;
use crate::{GatewayError, Leased, Token};

/// The options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Differs between processes, so that a token of one fits no lease of another.
    pub instance: u64,
    /// Receives that may wait at once; one more is refused.
    pub receives_max: usize,
    /// Transactions without leases that may be open at once; one more is refused.
    pub transactions_max: usize,
    /// Answers give moments by this clock.
    pub wall_clock: WallClock,
    /// Sends are refused once it has begun.
    pub draining: Draining,
}

/// The state of the gateway: its sessions, and the requests under way.
#[derive(Debug)]
pub struct GatewayState {
    /// How many sessions it has opened.
    sessions: u64,
    session: SessionId,
    asking: SessionId,
    pub(crate) receives: Receives,
    pub(crate) works: Works,
    pub(crate) followers: Followers,
    pub(crate) leases: Leases,
    pub(crate) answers: Answers,
    pub(crate) draining: Draining,
    stopping: bool,
    /// Outputs of one command. Kept for its memory.
    outputs: Vec<Output>,
}

/// One turn of the gateway.
pub(crate) struct Turn<'a> {
    pub(crate) broker: &'a mut dyn BrokerTurn,
    pub(crate) now: Nanos,
    last_step: u64,
}

impl<'a> Turn<'a> {
    /// A turn that begins commands until the broker has done so many steps.
    pub(crate) fn new(broker: &'a mut dyn BrokerTurn, steps_max: u64) -> Self {
        let (now, last_step) = (broker.now(), broker.steps() + steps_max);
        Self { broker, now, last_step }
    }

    /// True if another command may be given in this turn.
    pub(crate) fn goes_on(&self) -> bool {
        !self.broker.stalled() && self.broker.steps() < self.last_step
    }
}

impl GatewayState {
    /// Opens two sessions: one for all leases and one for the commands of operators.
    pub fn open(options: GatewayOptions, broker: &mut dyn BrokerTurn) -> Self {
        let GatewayOptions { instance, receives_max, transactions_max, .. } = options;
        let (session, asking) = (broker.session_id(1), broker.session_id(2));
        for session in [session, asking] {
            broker.open_session(session);
            broker.name_session(session, "http".into());
            broker.let_overtake(session);
        }
        Self {
            sessions: 2,
            session,
            asking,
            receives: Receives::new(receives_max),
            works: Works::new(transactions_max),
            followers: Followers::default(),
            leases: Leases::new(instance),
            answers: Answers::new(options.wall_clock),
            draining: options.draining,
            stopping: false,
            outputs: Vec::new(),
        }
    }

    /// Opens one more session.
    pub(crate) fn open_session(&mut self, turn: &mut Turn<'_>) -> SessionId {
        self.sessions += 1;
        let session = turn.broker.session_id(self.sessions);
        turn.broker.open_session(session);
        session
    }

    /// The session of all leases.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The session of the commands of operators.
    pub(crate) const fn asking(&self) -> SessionId {
        self.asking
    }

    /// True if the server stops, so that no request may wait.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Serves requests in about so many steps of the broker. All settlements of one transaction are
    /// done in one turn.
    pub fn step(&mut self, broker: &mut dyn BrokerTurn, requests: &RequestQueue, steps_max: u64) {
        let turn = &mut Turn::new(broker, steps_max);
        // Outputs that other threads caused come before those that the requests cause now.
        while let Some(output) = turn.broker.poll_output() {
            self.note(turn, output);
        }
        self.leases.expire(turn.now);
        if !turn.broker.stalled() {
            self.drop_slow(turn);
        }
        while turn.goes_on() && (self.go_on(turn) || self.grant_next(turn, requests)) {}
    }

    /// When the gateway needs a turn even if nothing happens: a follower has read too little.
    pub fn deadline(&self) -> Option<Nanos> {
        self.followers.deadline()
    }

    /// True if answers wait for the log.
    pub fn is_holding(&self) -> bool {
        self.answers.is_holding()
    }

    /// True if work waits until the broker takes it.
    pub fn is_postponed(&self) -> bool {
        self.works.is_postponed()
    }

    /// Tries postponed work again.
    pub fn resume_postponed(&mut self) {
        self.works.resume_postponed();
    }

    /// True if the last turn left something to do.
    pub fn is_behind(&self, requests: &RequestQueue) -> bool {
        self.has_begun() || !requests.is_empty()
    }

    fn has_begun(&self) -> bool {
        self.receives.has_due() || self.works.is_going_on() || self.followers.has_taken()
    }

    /// Goes on with one request that has begun. `false`: there is none.
    fn go_on(&mut self, turn: &mut Turn<'_>) -> bool {
        if self.followers.has_taken() {
            self.settle_taken(turn);
        } else if self.receives.has_due() {
            self.go_on_receiving(turn);
        } else if self.works.is_going_on() {
            self.go_on_working(turn);
        } else {
            return false;
        }
        true
    }

    fn grant_next(&mut self, turn: &mut Turn<'_>, requests: &RequestQueue) -> bool {
        let Some(request) = requests.pop() else { return false };
        match request {
            Request::Work(ticket, actor, work, reply) => {
                self.begin_work(turn, ticket, actor, work, reply);
            }
            Request::Receive(_, _, _, reply) if self.stopping => {
                drop(reply.send(Err(GatewayError::Stopping)))
            }
            Request::Receive(ticket, actor, wanted, reply) => {
                self.begin_receive(turn, ticket, actor, wanted, reply);
            }
            Request::Abandon(ticket) => {
                self.abandon_receive(turn, ticket);
                self.abandon_work(turn, ticket);
            }
            Request::GiveBack(tokens) => tokens.into_iter().for_each(|token| {
                self.give_back(turn, token);
            }),
            Request::Follow(_, _, _, _, reply) if self.stopping => {
                drop(reply.send(Err(GatewayError::Stopping)));
            }
            Request::Follow(ticket, actor, topic, to, reply) => {
                self.begin_to_follow(turn, ticket, actor, topic, to, reply);
            }
            Request::Took(ticket, count, bytes) => self.took(turn, ticket, count, bytes),
            Request::Leave(ticket) => self.stop_following(turn, ticket),
        }
        true
    }

    /// The server stops: all requests that wait are answered.
    pub fn stop_waits(&mut self, broker: &mut dyn BrokerTurn) {
        let turn = &mut Turn::new(broker, 0);
        self.stopping = true;
        self.end_waits(turn);
        self.stop_blocked();
        for ticket in self.followers.tickets() {
            self.stop_following(turn, ticket);
        }
    }

    /// Ends all sessions. No lease counts as a failed delivery.
    pub fn close(&mut self, broker: &mut dyn BrokerTurn) {
        let turn = &mut Turn::new(broker, 0);
        for session in self.works.take_sessions() {
            self.dismiss(turn, session);
        }
        self.dismiss(turn, self.asking);
        self.dismiss(turn, self.session);
    }

    /// Ends a session. None of its leases counts as a failed delivery.
    pub(crate) fn dismiss(&mut self, turn: &mut Turn<'_>, session: SessionId) {
        let mut outputs = std::mem::take(&mut self.outputs);
        turn.broker.dismiss_session(session, &mut outputs);
        self.note_all(turn, outputs);
    }

    /// Sends the answers that the log is durable enough for. Returns the leases of answers with no
    /// task left.
    pub fn release(&mut self, durable: Durable) -> Vec<Token> {
        self.answers.release(durable)
    }

    fn give_back(&mut self, turn: &mut Turn<'_>, token: Token) {
        if !self.leases.holds(token) {
            return;
        }
        self.leases.remove(token.message);
        self.call(
            turn,
            Command::Settle {
                message: token.message,
                settlement: model::Settlement::Return,
                transaction: None,
            },
        );
    }

    /// Gives a command by the session of all leases. Returns its own reply.
    pub(crate) fn call(
        &mut self,
        turn: &mut Turn<'_>,
        command: Command,
    ) -> Option<(DependsOn, Reply)> {
        self.call_as(turn, self.session, command)
    }

    /// Gives a command by any session. Returns its own reply.
    pub(crate) fn call_as(
        &mut self,
        turn: &mut Turn<'_>,
        session: SessionId,
        command: Command,
    ) -> Option<(DependsOn, Reply)> {
        let is_answered = !is_answered_later(&command);
        let mut outputs = std::mem::take(&mut self.outputs);
        turn.broker.handle(session, command, &mut outputs);
        // The reply to a command comes before the outputs that it causes.
        let is_own = |it: &Output| it.session == session && !is_event(&it.reply);
        let own = is_answered.then(|| outputs.iter().position(is_own)).flatten();
        let reply = own.map(|index| outputs.remove(index));
        let after = reply.as_ref().map_or(DependsOn::NOTHING, |output| output.after);
        turn.broker.note_awaited(after);
        self.note_all(turn, outputs);
        reply.map(|Output { after, reply, .. }| (after, reply))
    }

    /// Takes in outputs, and keeps the memory of the vector.
    fn note_all(&mut self, turn: &mut Turn<'_>, mut outputs: Vec<Output>) {
        if !outputs.is_empty() {
            for output in outputs.drain(..) {
                self.note(turn, output);
            }
        }
        self.outputs = outputs;
    }

    /// Takes in an output that is not the reply to the last command.
    fn note(&mut self, turn: &mut Turn<'_>, output: Output) {
        let Output { session, after, reply } = output;
        let now = turn.now;
        turn.broker.note_awaited(after);
        match reply {
            Reply::Late { ticket, reply } => self.note_unblocked(ticket, after, *reply),
            reply if self.works.awaits(session) && !is_event(&reply) => {
                self.note_late(session, after, reply);
            }
            reply if session != self.session => self.note_follower(session, now, after, reply),
            Reply::Delivered(delivery) => {
                let Some(link) = delivery.link else { return };
                let ends = now + self.receives.lease_of(link);
                let user = self.receives.user_of(link);
                let token = self.leases.insert(&delivery, ends, user);
                self.receives.note(link, after, Some(Leased { token, delivery: *delivery }));
            }
            Reply::TimedOut { link: Some(link) } | Reply::ConsumerClosed { link } => {
                self.receives.note(link, after, None);
            }
            _ => {}
        }
    }
}

/// True if all outputs of a command name its link or its ticket. Any other reply is for an earlier
/// commit.
const fn is_answered_later(command: &Command) -> bool {
    matches!(
        command,
        Command::Receive { .. }
            | Command::CancelReceive { .. }
            | Command::Credit { .. }
            | Command::CancelSend { .. }
    )
}

/// True if a reply may come at any time. It names its link or its ticket.
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
