//! Wishes of a client of AMQP, and the frames that express them.

use std::rc::Rc;

use amqp::message::{self, Header, Properties};
use amqp::performative::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
use amqp::state::{Modified, Outcome};
use amqp::terminus::{AttachTarget, Coordinator, ExpiryPolicy, Source, Target, TerminusDurability};
use amqp::types::{Symbols, Value};
use model::{DeadReason, Destination, Settlement};

use crate::workload::group_of;

/// One thing that a client of AMQP wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmqpWish {
    /// Attach a producer.
    Produce {
        /// The destination of its messages.
        to: Destination,
    },
    /// Attach a consumer of a queue.
    Consume {
        /// Which.
        queue: Rc<str>,
        /// Messages that it may have at first.
        credit: u32,
    },
    /// Attach a consumer of a topic.
    Subscribe {
        /// The subscription.
        to: Subscribing,
        /// Messages that it may have at first.
        credit: u32,
    },
    /// Allow a consumer more messages. It ends a drain.
    Credit {
        /// Its link.
        handle: u32,
        /// How many.
        more: u32,
    },
    /// Ask a consumer for all there is.
    Drain {
        /// Its link.
        handle: u32,
    },
    /// Detach a link.
    Detach {
        /// Which.
        handle: u32,
        /// For good: a durable subscription ends.
        closed: bool,
    },
    /// End a durable subscription by its name.
    Unsubscribe {
        /// Which, as in [`Subscribing`].
        name: Rc<str>,
    },
    /// Send a message.
    Send {
        /// The destination.
        to: Destination,
        /// The message.
        message: Draft,
        /// In this transaction.
        transaction: Option<u64>,
        /// The client waits for no answer.
        settled: bool,
    },
    /// Settle a delivery.
    Settle {
        /// Its number.
        delivery: u32,
        /// The outcome.
        verdict: Verdict,
        /// In this transaction.
        transaction: Option<u64>,
        /// The client waits for no answer.
        settled: bool,
    },
    /// Begin a transaction.
    Declare,
    /// End a transaction.
    Discharge {
        /// Which.
        transaction: u64,
        /// Roll it back.
        fail: bool,
    },
    /// Close the connection.
    Close,
}

/// A subscription that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribing {
    /// The topic.
    pub topic: Rc<str>,
    /// Its name; `None`: of the consumer alone.
    pub name: Option<Rc<str>>,
    /// It is kept.
    pub durable: bool,
    /// Others may share it.
    pub shared: bool,
    /// It is of no client.
    pub global: bool,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// It is persistent.
    pub durable: bool,
    /// 0 to 9.
    pub priority: u8,
    /// Milliseconds that it is worth something.
    pub ttl: Option<u32>,
    /// Milliseconds that it is hidden.
    pub delay: u32,
    /// The sender's name of it, by which the broker recognises a repeated send.
    pub send_id: Option<Rc<str>>,
    /// Its payload, unlike any other.
    pub body: Rc<[u8]>,
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done with.
    Accepted,
    /// It was not looked at.
    Released,
    /// It failed.
    Failed,
    /// It is invalid.
    Rejected,
}

impl Verdict {
    /// The outcome in the protocol.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Accepted => Outcome::Accepted,
            Self::Released => Outcome::Released,
            Self::Failed => {
                Outcome::Modified(Modified { delivery_failed: true, ..Modified::default() })
            }
            Self::Rejected => Outcome::Rejected(None),
        }
    }

    /// The settlement that the engine has to get.
    #[must_use]
    pub const fn settlement(self) -> Settlement {
        match self {
            Self::Accepted => Settlement::Accept,
            Self::Released => Settlement::Release,
            Self::Failed => Settlement::Fail,
            Self::Rejected => Settlement::Park(DeadReason::Rejected),
        }
    }
}

impl Draft {
    /// The message with its sections.
    #[must_use]
    pub fn encode(&self, to: &Destination) -> Vec<u8> {
        let mut out = Vec::new();
        let Self { durable, priority, ttl, .. } = *self;
        Header { durable, priority, ttl, ..Header::default() }.encode(&mut out);
        if self.delay > 0 || self.send_id.is_some() {
            message::message_annotations(&mut out, |map| {
                if self.delay > 0 {
                    map.symbol("x-opt-delivery-delay", Value::Long(self.delay.into()));
                }
                if let Some(send_id) = &self.send_id {
                    map.symbol("x-opt-dunlin-send-id", Value::String(send_id));
                }
            });
        }
        let to = address(to);
        let letter = group_of(&self.body).map(|letter| [letter]);
        let group_id = letter.as_ref().and_then(|letter| str::from_utf8(letter).ok());
        Properties { to: Some(&to), group_id, ..Properties::default() }.encode(&mut out);
        message::data(&mut out, &self.body);
        out
    }
}

impl AmqpWish {
    /// For a trace: without the bytes of bodies.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Send { to, message, transaction, settled } => {
                let Draft { durable, priority, ttl, delay, send_id, body } = message;
                format!(
                    "Send {to:?} durable={durable} priority={priority} ttl={ttl:?} delay={delay} \
                     id={send_id:?} {} bytes in={transaction:?} settled={settled}",
                    body.len()
                )
            }
            other => format!("{other:?}"),
        }
    }
}

/// An address that says if it is a queue or a topic.
fn address(to: &Destination) -> String {
    match to {
        Destination::Queue(name) => format!("queue://{name}"),
        Destination::Topic(name) => format!("topic://{name}"),
    }
}

/// The link by which transactions are begun and ended.
pub(super) fn coordinator(handle: u32) -> Attach {
    let capabilities = Symbols::from(["amqp:local-transactions"]);
    let target = AttachTarget::Coordinator(Coordinator { capabilities });
    sender(handle, format!("coordinator-{handle}"), target)
}

/// The link of a producer; without a destination each message says where it goes.
pub(super) fn producer(handle: u32, to: Option<&Destination>) -> Attach {
    let target = Target { address: to.map(address), ..Target::default() };
    sender(handle, format!("producer-{handle}"), AttachTarget::Node(target))
}

fn sender(handle: u32, name: String, target: AttachTarget) -> Attach {
    Attach {
        snd_settle_mode: SenderSettleMode::Mixed,
        source: Some(Source::default()),
        target: Some(target),
        initial_delivery_count: Some(0),
        ..Attach::new(name, handle, Role::Sender)
    }
}

/// The link of a consumer of a queue.
pub(super) fn consumer(handle: u32, queue: &str) -> Attach {
    let source = Source { address: Some(format!("queue://{queue}")), ..Source::default() };
    receiver(handle, format!("consumer-{handle}"), Some(source))
}

/// The link of a consumer of a topic.
pub(super) fn subscriber(handle: u32, to: &Subscribing) -> Attach {
    let shared = to.shared.then_some("shared");
    let global = to.global.then_some("global");
    let source = Source {
        address: Some(format!("topic://{}", to.topic)),
        durable: if to.durable {
            TerminusDurability::UnsettledState
        } else {
            TerminusDurability::None
        },
        expiry_policy: if to.durable { ExpiryPolicy::Never } else { ExpiryPolicy::LinkDetach },
        capabilities: ["topic"].into_iter().chain(shared).chain(global).collect(),
        ..Source::default()
    };
    let name = match &to.name {
        Some(name) if to.shared => format!("{name}|{handle}"),
        Some(name) => name.to_string(),
        None => format!("subscriber-{handle}"),
    };
    receiver(handle, name, Some(source))
}

/// The link that looks for a durable subscription, to end it.
pub(super) fn lookup(handle: u32, name: &str) -> Attach {
    receiver(handle, name.to_owned(), None)
}

fn receiver(handle: u32, name: String, source: Option<Source>) -> Attach {
    Attach {
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: ReceiverSettleMode::First,
        source,
        target: Some(AttachTarget::Node(Target::default())),
        ..Attach::new(name, handle, Role::Receiver)
    }
}

/// A message that begins a transaction, or ends one.
pub(super) fn request(request: amqp::transaction::CoordinatorRequest<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use amqp::message::Message;
    use model::QueueName;

    use super::*;

    #[test]
    fn draft_encodes_all_its_fields() {
        let body = Rc::from(b"body".as_slice());
        let (ttl, send_id) = (Some(9), Some(Rc::from("mine")));
        let draft = Draft { durable: true, priority: 7, ttl, delay: 5, send_id, body };
        let bytes = draft.encode(&Destination::Topic(QueueName::new("news").unwrap()));
        let message = Message::scan(&bytes).unwrap();
        let header = message.header();
        assert_eq!((header.durable, header.priority, header.ttl), (true, 7, Some(9)));
        assert_eq!(message.properties().to, Some("topic://news"));
        let delay = message.message_annotation("x-opt-delivery-delay");
        assert_eq!(delay.and_then(|value| value.as_i64()), Some(5));
        let send_id = message.message_annotation("x-opt-dunlin-send-id");
        assert_eq!(send_id.and_then(|value| value.as_str()), Some("mine"));
        assert_eq!(message.data().collect::<Vec<_>>(), [b"body"]);
    }
}
