//! A peer's protocol: its session, the input it reads from and the answers it holds back. All
//! protocols have the same shape; only this module tells them apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use beanstalk::ListenerState;
use input::{Held, WrongProtocol};
use journal::Durable;
use model::{
    Command, DependsOn, Draining, LoginAnswer, LoginOffer, LoginStep, MessageId, Nanos, Output,
    Principal, Rights, SessionId, WallClock,
};

use crate::client::Client;
use crate::config::Protocol;
use crate::outgoing::Outgoing;

/// State that all connections of a protocol share, and all protocols.
#[derive(Debug)]
pub(crate) struct ProtocolState {
    pub(crate) draining: Draining,
    pub(crate) wall_clock: WallClock,
    pub(crate) beanstalkd: ListenerState,
    pub(crate) amqp: Arc<amqp::Options>,
    pub(crate) redis: resp::ListenerState,
}

impl ProtocolState {
    /// The shared part of each protocol, and one flag of draining and one clock for all.
    pub(crate) fn new(
        mut beanstalkd: ListenerState,
        amqp: amqp::Options,
        mut redis: resp::ListenerState,
    ) -> Self {
        let draining = Draining::default();
        beanstalkd.draining = draining.clone();
        redis.draining = draining.clone();
        let wall_clock = redis.wall_clock.clone();
        let (draining_too, clock_too) = (draining.clone(), wall_clock.clone());
        let amqp = amqp::Options { draining: draining_too, wall_clock: clock_too, ..amqp };
        Self { draining, wall_clock, beanstalkd, amqp: Arc::new(amqp), redis }
    }
}

/// One peer's protocol.
#[derive(Debug)]
pub(crate) enum Peer {
    /// Answers leave in the order of the commands: bytes wait at a gate.
    Beanstalkd(Box<Beanstalkd>),
    /// Answers may overtake each other: they wait before they become bytes.
    Amqp(Box<Amqp>),
    /// As beanstalkd's, but that an answer may take several replies.
    Redis(Box<Redis>),
}

#[derive(Debug)]
pub(crate) struct Beanstalkd {
    session: beanstalk::Session,
    input: beanstalk::InputBuffer,
}

#[derive(Debug)]
pub(crate) struct Redis {
    session: resp::Session,
    input: resp::InputBuffer,
}

#[derive(Debug)]
pub(crate) struct Amqp {
    connection: amqp::Connection,
    input: amqp::InputBuffer,
    held: Held<amqp::Event>,
}

impl Peer {
    pub(crate) fn new(
        protocol: Protocol,
        id: SessionId,
        client: &Client,
        commons: &mut ProtocolState,
        now: Nanos,
    ) -> Self {
        match protocol {
            Protocol::Beanstalkd => Self::Beanstalkd(Box::new(Beanstalkd {
                session: beanstalk::Session::new(id, &mut commons.beanstalkd),
                input: beanstalk::InputBuffer::new(),
            })),
            Protocol::Amqp => Self::Amqp(Box::new(Amqp {
                connection: amqp::Connection::new(id, Arc::clone(&commons.amqp), now),
                input: amqp::InputBuffer::new(),
                held: Held::new(),
            })),
            Protocol::Redis => Self::Redis(Box::new(Redis {
                session: resp::Session::new(id, client.ends(), now, &mut commons.redis),
                input: resp::InputBuffer::new(),
            })),
            Protocol::Http => unreachable!("HTTP's connections are not accepted by reactors"),
        }
    }

    /// The protocol of this peer.
    pub(crate) const fn protocol(&self) -> Protocol {
        match self {
            Self::Beanstalkd(_) => Protocol::Beanstalkd,
            Self::Amqp(_) => Protocol::Amqp,
            Self::Redis(_) => Protocol::Redis,
        }
    }

    /// Bytes have come.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        match self {
            Self::Beanstalkd(peer) => peer.input.append(bytes),
            Self::Amqp(peer) => peer.input.append(bytes),
            Self::Redis(peer) => peer.input.append(bytes),
        }
    }

    /// Bytes that wait to be understood.
    pub(crate) fn input_bytes(&self) -> usize {
        match self {
            Self::Beanstalkd(peer) => peer.input.len(),
            Self::Amqp(peer) => peer.input.len(),
            Self::Redis(peer) => peer.input.len(),
        }
    }

    /// Bytes that it keeps beside its input.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Beanstalkd(peer) => peer.session.held_bytes(),
            Self::Amqp(peer) => peer.connection.held_bytes(),
            Self::Redis(peer) => peer.session.held_bytes(),
        }
    }

    /// The next command for the broker; the session answers commands that need no broker.
    pub(crate) fn poll_command(
        &mut self,
        now: Nanos,
        commons: &mut ProtocolState,
        outgoing: &mut Outgoing,
    ) -> Option<Command> {
        outgoing.say(DependsOn::NOTHING, |out| match self {
            Self::Beanstalkd(peer) => {
                peer.session.poll_command(&mut peer.input, &mut commons.beanstalkd, out)
            }
            Self::Amqp(peer) => peer.connection.poll_command(now, &mut peer.input, out),
            Self::Redis(peer) => {
                peer.session.poll_command(now, &mut peer.input, &mut commons.redis, out)
            }
        })
    }

    /// Makes the peer log in before it does anything.
    pub(crate) fn set_offer(&mut self, offer: LoginOffer, commons: &mut ProtocolState) {
        match self {
            Self::Beanstalkd(peer) => peer.session.set_offer(Some(offer)),
            Self::Amqp(peer) => peer.connection.set_offer(Some(offer)),
            Self::Redis(peer) => peer.session.set_offer(Some(offer), &mut commons.redis),
        }
    }

    /// The next step of the peer's login.
    pub(crate) fn poll_login(&mut self) -> Option<LoginStep> {
        match self {
            Self::Beanstalkd(peer) => peer.session.poll_login(),
            Self::Amqp(peer) => peer.connection.poll_login(),
            Self::Redis(peer) => peer.session.poll_login(),
        }
    }

    /// Takes the answer to that step.
    pub(crate) fn handle_login(
        &mut self,
        answer: LoginAnswer,
        commons: &mut ProtocolState,
        outgoing: &mut Outgoing,
    ) {
        outgoing.say(DependsOn::NOTHING, |out| match self {
            Self::Beanstalkd(peer) => peer.session.handle_login(answer, out),
            Self::Amqp(peer) => peer.connection.handle_login(answer, out),
            Self::Redis(peer) => peer.session.handle_login(answer, &mut commons.redis, out),
        });
    }

    /// The one for whom the peer's commands are done from now on, if that has changed.
    pub(crate) fn take_principal(&mut self) -> Option<Principal> {
        match self {
            Self::Beanstalkd(peer) => peer.session.take_principal(),
            Self::Amqp(peer) => peer.connection.take_principal(),
            Self::Redis(peer) => peer.session.take_principal(),
        }
    }

    /// The one for whom they are done.
    pub(crate) fn principal(&self) -> Principal {
        match self {
            Self::Beanstalkd(peer) => peer.session.principal(),
            Self::Amqp(peer) => peer.connection.principal(),
            Self::Redis(peer) => peer.session.principal(),
        }
    }

    /// The rights of the peer's user have changed.
    pub(crate) fn set_rights(&mut self, rights: Arc<Rights>, commons: &mut ProtocolState) {
        match self {
            Self::Beanstalkd(peer) => peer.session.set_rights(rights),
            Self::Amqp(peer) => peer.connection.set_rights(rights),
            Self::Redis(peer) => peer.session.set_rights(rights, &mut commons.redis),
        }
    }

    /// True if the peer has to log in and has not done so.
    pub(crate) fn needs_login(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.needs_login(),
            Self::Amqp(peer) => peer.connection.needs_login(),
            Self::Redis(peer) => peer.session.needs_login(),
        }
    }

    /// The cost of reading, beside the broker's steps.
    pub(crate) fn take_steps(&mut self) -> u64 {
        match self {
            Self::Amqp(peer) => peer.connection.take_steps(),
            Self::Beanstalkd(_) | Self::Redis(_) => 0,
        }
    }

    /// Takes a reply of the broker, in the order in which the broker made them. Returns the
    /// position that the peer waits for now: none if the peer is not told.
    pub(crate) fn reply(
        &mut self,
        output: Output,
        commons: &mut ProtocolState,
        outgoing: &mut Outgoing,
    ) -> DependsOn {
        match self {
            Self::Beanstalkd(peer) => outgoing.say(output.after, |out| {
                peer.session.handle_reply(output.reply, &mut commons.beanstalkd, out);
            }),
            Self::Redis(peer) => outgoing.say_in_parts(output.after, |out| {
                peer.session.handle_reply(output.reply, &mut commons.redis, out);
            }),
            Self::Amqp(peer) => {
                let told = peer.connection.handle_reply(output.after, output.reply);
                let Some((after, event)) = told else { return DependsOn::NOTHING };
                peer.held.push(after, event);
                return after;
            }
        }
        output.after
    }

    /// The log is this durable now: sends the answers that waited for it. Returns true if that gave
    /// it more to do.
    pub(crate) fn release(
        &mut self,
        durable: Durable,
        allowance: usize,
        outgoing: &mut Outgoing,
    ) -> bool {
        let Self::Amqp(peer) = self else { return false };
        peer.connection.allow(allowance);
        peer.held.advance(durable);
        outgoing.say(DependsOn::NOTHING, |out| {
            while let Some(event) = peer.held.pop() {
                peer.connection.emit(event, out);
            }
            peer.connection.flush(out);
        });
        peer.connection.has_more()
    }

    /// Returns true if it holds back answers that wait for the log.
    pub(crate) fn is_holding(&self) -> bool {
        match self {
            Self::Beanstalkd(_) | Self::Redis(_) => false,
            Self::Amqp(peer) => peer.held.is_holding(),
        }
    }

    /// A reply of the broker is still to come before anything more is read. If answers may overtake
    /// each other the peer takes its leave itself.
    pub(crate) fn awaits_reply(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.awaits_reply(),
            Self::Redis(peer) => peer.session.awaits_reply(),
            Self::Amqp(_) => false,
        }
    }

    /// It waits for publications of others, and has no reason to send anything.
    pub(crate) fn listens(&self) -> bool {
        match self {
            Self::Beanstalkd(_) | Self::Amqp(_) => false,
            Self::Redis(peer) => peer.session.is_subscriber(),
        }
    }

    /// The server stops: ends every wait for the acts of others.
    pub(crate) fn stop_waiting(&mut self) -> Option<Command> {
        match self {
            Self::Beanstalkd(_) | Self::Redis(_) => self.half_close(),
            Self::Amqp(_) => None,
        }
    }

    /// The peer will send no more.
    pub(crate) fn half_close(&mut self) -> Option<Command> {
        match self {
            Self::Beanstalkd(peer) => peer.session.handle_half_close(),
            Self::Redis(peer) => peer.session.handle_half_close(),
            Self::Amqp(peer) => {
                peer.connection.handle_half_close();
                None
            }
        }
    }

    /// When it wants to be told the time.
    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        match self {
            Self::Beanstalkd(_) | Self::Redis(_) => None,
            Self::Amqp(peer) => peer.connection.poll_timeout(),
        }
    }

    /// It is so late now. Returns true if the time had an effect. The server does not read from a
    /// peer that has a command waiting for the log.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Nanos,
        is_unheard: bool,
        outgoing: &mut Outgoing,
    ) -> bool {
        let Self::Amqp(peer) = self else { return false };
        if is_unheard {
            peer.connection.excuse_silence(now);
        }
        if peer.connection.poll_timeout().is_none_or(|due| due > now) {
            return false;
        }
        outgoing.say(DependsOn::NOTHING, |out| peer.connection.handle_timeout(now, out));
        true
    }

    /// The server stops, and all that came before is answered.
    pub(crate) fn say_farewell(&mut self, outgoing: &mut Outgoing) {
        if let Self::Amqp(peer) = self {
            outgoing.say(DependsOn::NOTHING, |out| peer.connection.begin_shutdown(out));
        }
    }

    /// A command has begun and not ended.
    pub(crate) fn half_sent(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.half_sent(),
            Self::Amqp(peer) => peer.connection.half_sent(),
            Self::Redis(peer) => peer.session.half_sent(),
        }
    }

    /// It has more to do without more bytes.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.has_more(),
            Self::Amqp(peer) => peer.connection.has_more(),
            Self::Redis(peer) => peer.session.has_more(),
        }
    }

    /// It has more to send once all that it gave was sent.
    pub(crate) fn is_congested(&self) -> bool {
        match self {
            Self::Beanstalkd(_) | Self::Redis(_) => false,
            Self::Amqp(peer) => peer.connection.is_congested(),
        }
    }

    /// To be closed at once, without waiting for the peer to read the rest.
    pub(crate) const fn is_cut_off(&self) -> bool {
        match self {
            Self::Beanstalkd(_) | Self::Amqp(_) => false,
            Self::Redis(peer) => peer.session.is_cut_off(),
        }
    }

    /// Returns true if a connection that begins so is left to its session, which decides.
    pub(crate) const fn may_begin(&self, beginning: WrongProtocol) -> bool {
        match self {
            Self::Beanstalkd(_) => false,
            Self::Amqp(_) => matches!(beginning, WrongProtocol::Amqp),
            Self::Redis(_) => matches!(beginning, WrongProtocol::Redis | WrongProtocol::Http),
        }
    }

    /// True if its session has an answer for a client of that protocol: AMQP's tells its version
    /// (2.2), but not to a web page.
    pub(crate) const fn answers(&self, wrong: WrongProtocol) -> bool {
        matches!(self, Self::Amqp(_)) && !matches!(wrong, WrongProtocol::Http)
    }

    /// Returns true if it has sent a command, or an equivalent of one.
    pub(crate) const fn has_spoken(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.has_spoken(),
            Self::Amqp(peer) => peer.connection.has_opened(),
            Self::Redis(peer) => peer.session.has_spoken(),
        }
    }

    /// A line of HTTP came.
    pub(crate) const fn speaks_http(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.speaks_http(),
            Self::Redis(peer) => peer.session.speaks_http(),
            Self::Amqp(_) => false,
        }
    }

    /// To be closed once everything is sent.
    pub(crate) fn wants_close(&self) -> bool {
        match self {
            Self::Beanstalkd(peer) => peer.session.wants_close(),
            Self::Amqp(peer) => peer.connection.wants_close(),
            Self::Redis(peer) => peer.session.wants_close(),
        }
    }

    /// The messages it holds that it can have begun; `None`: all.
    pub(crate) fn begun(&self) -> Option<BTreeSet<MessageId>> {
        match self {
            Self::Amqp(peer) => Some(peer.connection.begun()),
            Self::Beanstalkd(_) | Self::Redis(_) => None,
        }
    }

    /// It is gone.
    pub(crate) fn close(self, commons: &mut ProtocolState) {
        match self {
            Self::Beanstalkd(peer) => peer.session.close(&mut commons.beanstalkd),
            Self::Redis(peer) => peer.session.close(&mut commons.redis),
            Self::Amqp(_) => {}
        }
    }
}

#[cfg(test)]
impl ProtocolState {
    /// For connections of tests.
    pub(crate) fn idle() -> Self {
        let facts = || {
            Box::new(crate::facts::ProcessFacts::new(crate::clock::Clock::new(), Arc::default()))
        };
        Self::new(
            ListenerState::new(100, facts()),
            amqp::Options::default(),
            resp::ListenerState::new(resp::Options::default(), facts()),
        )
    }
}
