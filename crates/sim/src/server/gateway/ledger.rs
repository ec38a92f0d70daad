//! Which requests the commands and outputs of the gateway belong to. So the oracle learns the
//! content of an answer once a client reads it, and each answer is compared with the broker's
//! replies.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use http_api::{GatewayError, Leased, Settling, Token};
use model::{Command, LinkId, MessageId, Nanos, Reply, Settlement};

use super::{LEASES, Outside, UNREAD_MAX};
use crate::history::Changes;

/// The number of a request. A later request has a larger one.
pub(super) type RequestId = u64;

/// All requests with unread answers, and all streams that clients follow.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    requests: RequestId,
    unread: BTreeMap<RequestId, Request>,
    /// The request that the gateway begins.
    current: Option<RequestId>,
    /// The lease that it settles, and how.
    settling: Option<(Token, Settling)>,
    /// Bodies of sends that are not stored. Each send has a body of its own.
    sends: Vec<(RequestId, Arc<[u8]>)>,
    /// Sends that wait for room, by ticket.
    waiting: BTreeMap<u64, RequestId>,
    receives: BTreeMap<LinkId, Receiving>,
    /// Clients that follow, by session.
    followers: BTreeMap<u64, u64>,
    /// Leases of each message so far, and which of them a token is for.
    leases: BTreeMap<MessageId, u64>,
    tokens: BTreeMap<Token, u64>,
    /// Messages that followers got and that are not accepted yet, by session.
    unsettled: BTreeSet<(u64, MessageId)>,
    /// Changes that events reflect, by client and message.
    events: BTreeMap<(u64, MessageId), Changes>,
}

/// A request, and the broker's replies to it.
#[derive(Debug)]
struct Request {
    client: u64,
    replies: Vec<Reply>,
    /// Messages, and which of their leases.
    delivered: Vec<(MessageId, u64)>,
    /// All changes that these reflect.
    changes: Vec<Changes>,
}

/// A receive with an open link.
#[derive(Debug)]
struct Receiving {
    request: Option<RequestId>,
    queue: Rc<str>,
    lease: Nanos,
}

impl Ledger {
    /// A client asks for something, which the gateway begins next.
    pub(super) fn begin(&mut self, client: u64) -> RequestId {
        let (replies, delivered, changes) = (Vec::new(), Vec::new(), Vec::new());
        let request = Request { client, replies, delivered, changes };
        self.requests += 1;
        self.unread.insert(self.requests, request);
        self.current = Some(self.requests);
        self.requests
    }

    /// The request that begins sends this body.
    pub(super) fn note_send(&mut self, body: Arc<[u8]>) {
        self.sends.push((self.requests, body));
    }

    /// The request that begins settles a lease.
    pub(super) fn note_settling(&mut self, token: Token, how: Settling) {
        self.settling = Some((token, how));
    }

    /// The gateway has begun all requests, and has heard of all clients that are gone: none of
    /// their sends may go on.
    pub(super) fn note_idle(&mut self, outside: &mut Outside) {
        (self.current, self.settling) = (None, None);
        assert_eq!(self.unsettled.first(), None, "what followers got is accepted");
        let is_unread = |request: RequestId| self.unread.contains_key(&request);
        let is_waited_for = |it: &Receiving| it.request.is_some_and(is_unread);
        assert!(self.receives.values().all(is_waited_for), "no receive outlives its client");
        let gone = |_: &u64, request: &mut RequestId| !self.unread.contains_key(request);
        for (ticket, _) in self.waiting.extract_if(.., gone) {
            outside.oracle.abandons(ticket);
        }
    }

    /// A client has read the answer to some work: the changes that it reflects.
    pub(super) fn end_work(
        &mut self,
        request: RequestId,
        answer: &Result<Vec<Reply>, GatewayError>,
    ) -> Vec<Changes> {
        let request = self.end(request);
        let said = &request.replies[..];
        match answer {
            Ok(replies) => {
                assert_eq!(replies.len(), said.len(), "{replies:?} where the broker said {said:?}");
                replies.iter().zip(said).for_each(|(reply, said)| assert_same(reply, said));
            }
            Err(GatewayError::Refused(refusal)) => {
                assert_eq!(said, [Reply::Refused(refusal.clone())]);
            }
            Err(GatewayError::LeaseOver(_)) => {
                assert!(matches!(said, [] | [Reply::NotFound]), "a lease is over: {said:?}");
            }
            Err(error) => panic!("{error:?} where the broker said {said:?}"),
        }
        request.changes
    }

    /// A client has read the answer to a receive: the changes that it reflects.
    pub(super) fn end_receive(
        &mut self,
        request: RequestId,
        answer: &Result<Vec<Leased>, GatewayError>,
    ) -> Vec<Changes> {
        let request = self.end(request);
        let said = &request.delivered;
        match answer {
            Ok(leased) => {
                let leased: Vec<_> = leased.iter().map(|leased| leased.token).collect();
                let messages = |token: &Token| token.message;
                let delivered = said.iter().map(|(message, _)| *message);
                let is_same = leased.iter().map(messages).eq(delivered);
                assert!(is_same, "{leased:?} where the broker delivered {said:?}");
                self.tokens.extend(leased.into_iter().zip(said.iter().map(|(_, lease)| *lease)));
            }
            Err(GatewayError::Busy) => assert!(said.is_empty(), "{said:?} although it is refused"),
            Err(error) => panic!("{error:?} where the broker delivered {said:?}"),
        }
        request.changes
    }

    /// A client has read the answer to a request.
    pub(super) fn end_follow(&mut self, request: RequestId) -> Vec<Changes> {
        self.end(request).changes
    }

    fn end(&mut self, request: RequestId) -> Request {
        self.sends.retain(|(of, _)| *of != request);
        self.unread.remove(&request).expect("invariant: it is read once")
    }

    /// A client has read an event: the changes that it reflects.
    pub(super) fn take_event(&mut self, client: u64, message: MessageId) -> Changes {
        self.events.remove(&(client, message)).expect("an event is delivered once, and read once")
    }

    /// A client has read all of a stream.
    pub(super) fn end_stream(&mut self, client: u64) {
        let unread = self.events.keys().find(|(of, _)| *of == client);
        assert_eq!(unread, None, "an event is not in the stream");
        self.forget_stream(client);
    }

    /// A client reads nothing more.
    pub(super) fn forget(&mut self, client: u64) {
        self.unread.retain(|_, request| request.client != client);
        self.sends.retain(|(request, _)| self.unread.contains_key(request));
        self.forget_stream(client);
    }

    /// A client reads no more of the stream that it follows.
    pub(super) fn forget_stream(&mut self, client: u64) {
        self.followers.retain(|_, of| *of != client);
        self.events.retain(|(of, _), _| *of != client);
    }

    /// The session of a follower has ended.
    pub(super) fn end_session(&mut self, session: u64) {
        self.followers.remove(&session);
        self.unsettled.retain(|(of, _)| *of != session);
    }

    /// The gateway gives a command; tells which request it is part of. Sends may wait for the log,
    /// and a body tells them apart. The gateway gives all others while it begins the request,
    /// except for the commands of its own.
    pub(super) fn note_command(&mut self, session: u64, command: &Command) -> Option<RequestId> {
        let request = match command {
            Command::PutTo { message, .. } => {
                let is_its = |(_, body): &(_, _)| Arc::ptr_eq(body, &message.body);
                let index = self.sends.iter().position(is_its)?;
                return Some(self.sends.swap_remove(index).0);
            }
            // No client took these messages, or a follower did.
            Command::Settle { settlement: Settlement::Return, .. } if session == LEASES => {
                return None;
            }
            Command::Settle { settlement: Settlement::Accept, message, .. }
                if session != LEASES =>
            {
                self.unsettled.remove(&(session, *message));
                return None;
            }
            Command::Settle { .. }
            | Command::Release { .. }
            | Command::Bury { .. }
            | Command::Renew { .. } => {
                let (token, how) = self.settling.expect("a client settles a lease");
                assert!(says(command, token, how), "{command:?} for {how:?} of {token}");
                let (lease, last) = (self.tokens.get(&token), self.leases.get(&token.message));
                assert_eq!(lease, last, "{token} is for the last lease of its message");
                self.current.expect("the gateway does it when it begins the request")
            }
            Command::Admin(_) | Command::Watch { .. } | Command::Subscribe { .. } => {
                self.current.expect("the gateway does it when it begins the request")
            }
            Command::Receive { link, lease, .. } => {
                let receiving = self.receives.get_mut(link).expect("a receive that goes on");
                receiving.lease = lease.expect("it says how long");
                return None;
            }
            Command::CloseConsumer { link } => {
                self.receives.remove(link);
                return None;
            }
            Command::CancelSend { ticket } => {
                self.waiting.remove(ticket);
                return None;
            }
            _ => return None,
        };
        self.note_begun(session, command, request);
        Some(request)
    }

    fn note_begun(&mut self, session: u64, command: &Command, request: RequestId) {
        match command {
            Command::Watch { link, queue } => {
                let (queue, lease) = (queue.as_str().into(), Nanos::ZERO);
                self.receives.insert(*link, Receiving { request: Some(request), queue, lease });
            }
            Command::Subscribe { .. } => {
                let asked = self.unread.get(&request);
                self.followers.extend(asked.map(|asked| (session, asked.client)));
            }
            _ => {}
        }
    }

    /// The broker answered a command that is part of a request.
    pub(super) fn note_reply(&mut self, request: RequestId, reply: &Reply, changes: Changes) {
        if let Reply::Waits { ticket } = reply {
            self.waiting.insert(*ticket, request);
        } else if let Some(request) = self.unread.get_mut(&request) {
            request.replies.push(reply.clone());
            request.changes.push(changes);
        }
    }

    /// The broker answered the command that waited with this ticket.
    pub(super) fn note_late(&mut self, ticket: u64, reply: &Reply, changes: Changes) {
        if let Some(request) = self.waiting.remove(&ticket) {
            self.note_reply(request, reply, changes);
        }
    }

    /// The broker said something to a receive, which the oracle judges.
    pub(super) fn note_received(
        &mut self,
        now: Nanos,
        link: LinkId,
        reply: &Reply,
        outside: &mut Outside,
    ) -> Changes {
        let receiving = self.receives.get(&link).expect("a receive that goes on");
        let Receiving { request, queue, lease } = receiving;
        let changes = outside.oracle.received(now, LEASES, queue, *lease, reply);
        let lease = if let Reply::Delivered(delivery) = reply {
            let leases = self.leases.entry(delivery.message).or_default();
            *leases += 1;
            Some((delivery.message, *leases))
        } else {
            None
        };
        if let Some(request) = request.and_then(|request| self.unread.get_mut(&request)) {
            request.changes.push(changes.clone());
            request.delivered.extend(lease);
        }
        changes
    }

    /// The broker delivered a message to a session that follows.
    pub(super) fn note_event(&mut self, session: u64, message: MessageId, changes: Changes) {
        self.unsettled.insert((session, message));
        let Some(client) = self.followers.get(&session) else { return };
        self.events.insert((*client, message), changes);
        let unread = self.events.keys().filter(|(of, _)| of == client).count();
        assert!(unread <= UNREAD_MAX, "{client} has {unread} events that it has not read");
    }
}

/// An answer agrees with the broker's reply; of a page, the ids of the messages that it shows.
fn assert_same(reply: &Reply, said: &Reply) {
    let (Reply::Page(page), Reply::Page(shown)) = (reply, said) else {
        return assert_eq!(reply, said);
    };
    let ids = |page: &model::Page| -> Vec<MessageId> {
        page.messages.iter().map(|shown| shown.delivery.message).collect()
    };
    assert_eq!(ids(page), ids(shown));
}

/// True if a command carries out a client's settling of a lease. The old priority of a message is
/// for the oracle to know.
fn says(command: &Command, token: Token, how: Settling) -> bool {
    let settles = |wanted| {
        let (message, transaction) = (token.message, None);
        *command == Command::Settle { message, settlement: wanted, transaction }
    };
    match (how, command) {
        (Settling::Accept, _) => settles(Settlement::Accept),
        (Settling::Fail, _) => settles(Settlement::Fail),
        (Settling::Release { delay, priority }, Command::Release { message, .. }) => {
            let priority = priority.expect("invariant: the workload says it");
            let message = *message;
            message == token.message && *command == Command::Release { message, priority, delay }
        }
        (Settling::Extend { lease }, _) => {
            *command == Command::Renew { message: token.message, lease: Some(lease) }
        }
        (Settling::Bury { .. }, Command::Bury { message, .. }) => *message == token.message,
        _ => false,
    }
}
