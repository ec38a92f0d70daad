//! Followers of topics. Each has a session of its own, with a private subscription.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use model::{
    Command, Delivery, DependsOn, LinkId, Matching, MessageId, Nanos, Principal, QueueName, Reply,
    Rights, SessionId, Settlement, Subscription, words,
};
use tokio::sync::{mpsc, oneshot};

use crate::gateway::answers::{Answer, Waits};
use crate::gateway::broker::BrokerTurn;
use crate::gateway::request_queue::Ticket;
use crate::gateway::state::{GatewayState, Turn};
use crate::{Actor, GatewayError};

/// All followers.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    by_session: BTreeMap<SessionId, Follower>,
    sessions: BTreeMap<Ticket, SessionId>,
    /// Messages that were handed on, to be deleted.
    taken: Vec<(SessionId, MessageId)>,
    /// Followers that lost their subscription.
    cut_off: Vec<Ticket>,
}

/// The channel of a follower's messages, and the reason for its end if the client has to know.
#[derive(Clone, Debug)]
pub(crate) struct ToFollower {
    pub(crate) messages: mpsc::Sender<Delivery>,
    pub(crate) end: Arc<OnceLock<String>>,
}

#[derive(Debug)]
struct Follower {
    ticket: Ticket,
    principal: Principal,
    to: ToFollower,
    got: u64,
    limit: u64,
    got_bytes: u64,
    bytes_limit: u64,
    /// The moment at which its credit was used up.
    slow_since: Option<Nanos>,
}

impl Followers {
    /// Takes in an output for a follower.
    pub(crate) fn note(&mut self, session: SessionId, now: Nanos, reply: Reply) -> Option<Answer> {
        let follower = self.by_session.get_mut(&session)?;
        let delivery = match reply {
            Reply::Delivered(delivery) => delivery,
            Reply::ConsumerCutOff { full, .. } => {
                let why = format!("messages were not read in time: {}", full.bound);
                follower.to.end.get_or_init(|| why);
                self.cut_off.push(follower.ticket);
                return None;
            }
            _ => return None,
        };
        follower.got += 1;
        follower.got_bytes += delivery.charge;
        if follower.got >= follower.limit || follower.got_bytes >= follower.bytes_limit {
            follower.slow_since.get_or_insert(now);
        }
        self.taken.push((session, delivery.message));
        Some(Answer::Event(follower.to.messages.clone(), *delivery))
    }

    /// When the first follower that does not read loses its session.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let since = self.by_session.values().filter_map(|follower| follower.slow_since).min();
        since.map(|since| since + SLOW_MAX)
    }

    fn slow(&self, now: Nanos) -> Vec<Ticket> {
        let is_slow = |since: Nanos| since + SLOW_MAX <= now;
        let all = self.by_session.values();
        let slow = all.filter(|follower| follower.slow_since.is_some_and(is_slow));
        slow.map(|follower| follower.ticket).collect()
    }

    /// Those whose users do not stay.
    fn of_former_users(&self, stays: impl Fn(&Arc<Rights>) -> bool) -> Vec<Ticket> {
        let all = self.by_session.values();
        let former = all.filter(|it| it.principal.rights().is_some_and(|rights| !stays(rights)));
        former.map(|follower| follower.ticket).collect()
    }

    /// True if there are messages to delete, or followers to end.
    pub(crate) fn has_taken(&self) -> bool {
        !self.taken.is_empty() || !self.cut_off.is_empty()
    }

    pub(crate) fn tickets(&self) -> Vec<Ticket> {
        self.sessions.keys().copied().collect()
    }
}

impl GatewayState {
    pub(crate) fn begin_to_follow(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        actor: Actor,
        topic: QueueName,
        to: ToFollower,
        reply: oneshot::Sender<Result<(), GatewayError>>,
    ) {
        let session = self.open_session(turn);
        turn.broker.name_session(session, "http".into());
        turn.broker.act_for(session, &actor);
        // Its messages under way always fit into its channel.
        let limit = to.messages.max_capacity() as u64;
        let follower = Follower {
            ticket,
            principal: actor.principal,
            to,
            got: 0,
            limit,
            got_bytes: 0,
            bytes_limit: WINDOW_BYTES,
            slow_since: None,
        };
        self.followers.by_session.insert(session, follower);
        self.followers.sessions.insert(ticket, session);
        let is_pattern = words::is_pattern(topic.as_str());
        let matching = if is_pattern { Matching::Words } else { Matching::Name };
        let subscription = Subscription { matching, ..Subscription::new(topic) };
        let subscribe = Command::Subscribe { link: LINK, subscription: Box::new(subscription) };
        let mut waits = Waits::default();
        let mut result = Ok(());
        if let Some((after, answer)) = self.call_as(turn, session, subscribe) {
            waits.add(after);
            if let Reply::Refused(refusal) = answer {
                result = Err(GatewayError::Refused(refusal));
            }
        }
        match result {
            Ok(()) => self.extend_credit(turn, session),
            Err(_) => self.stop_following(turn, ticket),
        }
        self.answers.push(waits, Answer::Followed(reply, result));
    }

    /// A follower has read `count` messages more, of so many bytes.
    pub(crate) fn took(&mut self, turn: &mut Turn<'_>, ticket: Ticket, count: u64, bytes: u64) {
        let Some(session) = self.followers.sessions.get(&ticket).copied() else { return };
        let Some(follower) = self.followers.by_session.get_mut(&session) else { return };
        follower.limit += count;
        follower.bytes_limit += bytes;
        follower.slow_since = None;
        self.extend_credit(turn, session);
    }

    fn extend_credit(&mut self, turn: &mut Turn<'_>, session: SessionId) {
        let Some(follower) = self.followers.by_session.get(&session) else { return };
        let Follower { limit, bytes_limit: bytes, .. } = *follower;
        self.call_as(turn, session, Command::Credit { link: LINK, limit, bytes, drain: false });
    }

    /// Deletes one message that was handed on, or ends one follower that lost its subscription.
    pub(crate) fn settle_taken(&mut self, turn: &mut Turn<'_>) {
        if let Some(ticket) = self.followers.cut_off.pop() {
            return self.stop_following(turn, ticket);
        }
        let Some((session, message)) = self.followers.taken.pop() else { return };
        if !self.followers.by_session.contains_key(&session) {
            // Its messages went with its subscription.
            return;
        }
        let settlement = Settlement::Accept;
        self.call_as(turn, session, Command::Settle { message, settlement, transaction: None });
    }

    /// Ends followers that read nothing for too long: their messages take memory.
    pub(crate) fn drop_slow(&mut self, turn: &mut Turn<'_>) {
        for ticket in self.followers.slow(turn.now) {
            self.stop_following(turn, ticket);
        }
    }

    /// The users have changed: ends the followers of those that do not stay as they were.
    pub fn review_followers(
        &mut self,
        broker: &mut dyn BrokerTurn,
        stays: impl Fn(&Arc<Rights>) -> bool,
    ) {
        let turn = &mut Turn::new(broker, 0);
        for ticket in self.followers.of_former_users(stays) {
            self.stop_following(turn, ticket);
        }
    }

    pub(crate) fn stop_following(&mut self, turn: &mut Turn<'_>, ticket: Ticket) {
        let Some(session) = self.followers.sessions.remove(&ticket) else { return };
        self.followers.by_session.remove(&session);
        self.dismiss(turn, session);
    }

    /// Takes in an output for the session of a follower. Only deliveries become answers.
    pub(crate) fn note_follower(
        &mut self,
        session: SessionId,
        now: Nanos,
        after: DependsOn,
        reply: Reply,
    ) {
        if let Some(event) = self.followers.note(session, now, reply) {
            let mut waits = Waits::default();
            waits.add(after);
            self.answers.push(waits, event);
        }
    }
}

/// The one consumer of a follower's session.
const LINK: LinkId = LinkId(0);

/// Messages that a follower may leave unread. It gets no more until it reads.
pub const WINDOW: usize = 64;

/// Bytes of them. The message that exceeds them is the last.
pub(crate) const WINDOW_BYTES: u64 = 1024 * 1024;

/// How long a follower may go without credit.
const SLOW_MAX: Nanos = Nanos::from_secs(10);
