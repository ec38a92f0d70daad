//! Receives of HTTP. Each is a link of the session of all leases while it lasts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::{Command, DependsOn, LinkId, Nanos, Reply};

use crate::gateway::answers::{Answer, Waits};
use crate::gateway::request_queue::{ReceiveReply, Ticket};
use crate::gateway::state::{GatewayState, Turn};
use crate::{Actor, GatewayError, Leased, Wanted};

/// The receives that wait, or collect more messages.
#[derive(Debug)]
pub(crate) struct Receives {
    /// Receives that may wait at once.
    most: usize,
    by_link: BTreeMap<LinkId, Receiving>,
    links: BTreeMap<Ticket, LinkId>,
    free: Vec<LinkId>,
    /// Receives that got a message or ended. They ask for more, or are answered.
    due: VecDeque<LinkId>,
}

#[derive(Debug)]
struct Receiving {
    ticket: Ticket,
    user: Option<Arc<str>>,
    wanted: Wanted,
    reply: ReceiveReply,
    got: Vec<Leased>,
    got_bytes: usize,
    waits: Waits,
    is_over: bool,
}

impl Receiving {
    /// True if it takes one more message that is ready, within the limits of one answer.
    fn wants_more(&self) -> bool {
        !self.is_over && self.got.len() < self.wanted.max && self.got_bytes < ANSWER_BYTES
    }
}

impl Receives {
    /// Holds at most `most` receives at once.
    pub(crate) fn new(most: usize) -> Self {
        let (by_link, links) = (BTreeMap::new(), BTreeMap::new());
        Self { most, by_link, links, free: Vec::new(), due: VecDeque::new() }
    }

    fn begin(
        &mut self,
        ticket: Ticket,
        user: Option<Arc<str>>,
        wanted: Wanted,
        reply: ReceiveReply,
    ) -> LinkId {
        let unused = || LinkId(u32::try_from(self.by_link.len()).unwrap_or(u32::MAX));
        let link = self.free.pop().unwrap_or_else(unused);
        let receiving = Receiving {
            ticket,
            user,
            wanted,
            reply,
            got: Vec::new(),
            got_bytes: 0,
            waits: Waits::default(),
            is_over: false,
        };
        let before = self.by_link.insert(link, receiving);
        assert!(before.is_none(), "a link is one receive's");
        self.links.insert(ticket, link);
        link
    }

    /// Takes in a message for a link, or its end.
    pub(crate) fn note(&mut self, link: LinkId, after: DependsOn, leased: Option<Leased>) {
        let Some(receiving) = self.by_link.get_mut(&link) else { return };
        receiving.waits.add(after);
        match leased {
            Some(leased) => {
                receiving.got_bytes += leased.delivery.body.len();
                receiving.got.push(leased);
            }
            None => receiving.is_over = true,
        }
        self.due.push_back(link);
    }

    /// How long messages of a link are leased.
    pub(crate) fn lease_of(&self, link: LinkId) -> Nanos {
        self.by_link.get(&link).map_or(Nanos::ZERO, |receiving| receiving.wanted.lease)
    }

    /// The user who gets the messages of a link.
    pub(crate) fn user_of(&self, link: LinkId) -> Option<Arc<str>> {
        self.by_link.get(&link)?.user.clone()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The links of all receives.
    fn waiting(&self) -> Vec<LinkId> {
        self.by_link.keys().copied().collect()
    }
}

impl GatewayState {
    pub(crate) fn begin_receive(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        actor: Actor,
        wanted: Wanted,
        reply: ReceiveReply,
    ) {
        if reply.is_closed() {
            return;
        }
        if wanted.asker.has_left() {
            return self
                .answers
                .push(Waits::default(), Answer::Received(reply, Err(GatewayError::Left)));
        }
        if self.receives.by_link.len() >= self.receives.most {
            let answer = Answer::Received(reply, Err(GatewayError::Busy));
            return self.answers.push(Waits::default(), answer);
        }
        let (queue, wait, lease) = (wanted.queue.clone(), wanted.wait, wanted.lease);
        let user = actor.principal.user().cloned();
        let link = self.receives.begin(ticket, user, wanted, reply);
        turn.broker.act_for(self.session(), &actor);
        if let Some((after, Reply::Refused(refusal))) =
            self.call(turn, Command::Watch { link, queue })
        {
            return self.end_receive(link, after, Some(GatewayError::Refused(refusal)));
        }
        self.ask_for(turn, link, wait, lease);
    }

    /// The task that waited is gone.
    pub(crate) fn abandon_receive(&mut self, turn: &mut Turn<'_>, ticket: Ticket) {
        if let Some(link) = self.receives.links.get(&ticket).copied() {
            self.call(turn, Command::CancelReceive { link });
        }
    }

    /// Ends all receives: the server stops.
    pub(crate) fn end_waits(&mut self, turn: &mut Turn<'_>) {
        for link in self.receives.waiting() {
            self.call(turn, Command::CancelReceive { link });
        }
    }

    /// Asks for one message more for the next receive that got one, or answers it.
    pub(crate) fn go_on_receiving(&mut self, turn: &mut Turn<'_>) {
        let Some(link) = self.receives.due.pop_front() else { return };
        let Some(receiving) = self.receives.by_link.get(&link) else { return };
        if receiving.wants_more() {
            let lease = receiving.wanted.lease;
            return self.ask_for(turn, link, Nanos::ZERO, lease);
        }
        self.call(turn, Command::CloseConsumer { link });
        self.end_receive(link, DependsOn::NOTHING, None);
    }

    fn ask_for(&mut self, turn: &mut Turn<'_>, link: LinkId, wait: Nanos, lease: Nanos) {
        let (wait, lease) = (Some(wait), Some(lease));
        self.call(turn, Command::Receive { link, wait, margin: Nanos::ZERO, lease });
    }

    fn end_receive(&mut self, link: LinkId, after: DependsOn, error: Option<GatewayError>) {
        let Some(mut receiving) = self.receives.by_link.remove(&link) else { return };
        self.receives.links.remove(&receiving.ticket);
        self.receives.free.push(link);
        receiving.waits.add(after);
        let result = error.map_or(Ok(receiving.got), Err);
        self.answers.push(receiving.waits, Answer::Received(receiving.reply, result));
    }
}

/// Bytes of messages in an answer. The message that exceeds them is the last.
const ANSWER_BYTES: usize = 1024 * 1024;
