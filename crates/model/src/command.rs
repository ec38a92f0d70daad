//! The commands of a protocol session to the engine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{
    AdminCommand, ClientName, CollectionCommand, Destination, KeyCommand, LinkId, ListCommand,
    MessageId, Nanos, NewMessage, QueueName, Script, Settlement, StreamCommand, Subscription,
    SubscriptionName, TableStep, TransactionId,
};

/// A command of one session. Each is answered by exactly one [`crate::Reply`], at once, with these
/// exceptions. A send for which a bounded queue has no place, or memory no room, is answered
/// `Waits` at once and `Late` when it was done or given up. [`Command::Receive`] and commands on
/// lists that wait may be answered later. [`Command::Credit`] brings deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Say which client this session belongs to. At most one session is a client's at a time.
    /// → `Done`, `Refused`
    Identify {
        /// The client.
        client: ClientName,
    },
    /// Point a producer at a destination, creating both; points it elsewhere if it exists.
    /// → `Done`, `Refused`
    OpenProducer {
        /// The producer.
        link: LinkId,
        /// The destination of its messages from now on.
        to: Destination,
    },
    /// Forget a producer. → `Done`, also when it was not there
    CloseProducer {
        /// The producer.
        link: LinkId,
    },
    /// Store a message at the destination of a producer. In a transaction it is stored when that
    /// commits. → `Stored`; `Done` in a transaction, or if no subscription takes it; `Refused`,
    /// which makes the transaction rollback-only
    Put {
        /// A producer that was opened.
        link: LinkId,
        /// The message to store.
        message: NewMessage,
        /// The transaction it is part of.
        transaction: Option<TransactionId>,
    },
    /// The same without a producer. The destination is created. → as [`Command::Put`]
    PutTo {
        /// The destination.
        to: Destination,
        /// The message to store.
        message: NewMessage,
        /// The transaction it is part of.
        transaction: Option<TransactionId>,
    },
    /// Make a destination of a new name that goes with this session. Its messages are kept in
    /// memory only; only this session sees it. → `Created`, `Refused`
    CreateTemporary {
        /// A topic, or else a queue.
        topic: bool,
        /// The end of its name, which no client can guess.
        secret: u128,
    },
    /// Delete a destination that this session created, with its messages; its consumers are told
    /// `ConsumerClosed`. → `Done`, `NotFound`
    DeleteTemporary {
        /// Which.
        destination: Destination,
    },
    /// Open a consumer of a queue, creating the queue. It gets nothing before it has credit. It
    /// holds its messages until it settles them or its session ends. → `Done`, `Refused`
    OpenConsumer {
        /// A consumer that is not open.
        link: LinkId,
        /// The queue.
        queue: QueueName,
        /// Which messages it is for; `None`: all.
        selector: Option<Arc<str>>,
        /// Takes messages, or copies them.
        mode: ConsumerMode,
    },
    /// Open a consumer of a subscription, creating topic and subscription. A named one that is
    /// there, but of another topic or selector, is made anew. → `Done`, `Refused`
    Subscribe {
        /// A consumer that is not open.
        link: LinkId,
        /// The subscription.
        subscription: Box<Subscription>,
    },
    /// Forget a consumer. The session still holds its messages. A subscription that is not durable
    /// goes with its last consumer. → `Done`, also when it was not there
    CloseConsumer {
        /// The consumer.
        link: LinkId,
    },
    /// Deliver to a consumer until it got `limit` messages since it was opened, or `bytes` bytes of
    /// bodies or more. → no reply of its own; with `drain`, once it got `limit` or nothing more is
    /// there for it: `Drained`, and the limit is the number of delivered messages. A later `Credit`
    /// takes a drain back
    Credit {
        /// A consumer that was opened by `OpenConsumer` or `Subscribe`; another is ignored.
        link: LinkId,
        /// How many in all.
        limit: u64,
        /// How many bytes of bodies, as they are stored: the message that reaches it is the last.
        /// Browsers are not held to it.
        bytes: u64,
        /// Use up the limit now or give it back.
        drain: bool,
    },
    /// End a named subscription and delete its messages. → `Done`, `NotFound`, `Refused` while it
    /// has consumers
    Unsubscribe {
        /// Which.
        name: SubscriptionName,
    },
    /// → `Subscription`, `NotFound`
    FindSubscription {
        /// Which.
        name: SubscriptionName,
    },
    /// Settle a message that this session holds. In a transaction it happens when that commits, and
    /// when it rolls back the message is as after [`Settlement::Fail`]. → `Done`, `NotFound` unless
    /// held by this session and in no transaction
    Settle {
        /// The message.
        message: MessageId,
        /// How it is settled.
        settlement: Settlement,
        /// The transaction it is part of.
        transaction: Option<TransactionId>,
    },
    /// Add a step on a table to a transaction; it is done when that commits. → `Done`; `Refused`,
    /// which makes the transaction rollback-only
    Table {
        /// The step.
        step: Box<TableStep>,
        /// The transaction it is part of.
        transaction: TransactionId,
    },
    /// Begin a transaction. → `Done`, `Refused`
    Begin {
        /// A number that this session has not used.
        transaction: TransactionId,
    },
    /// Do all that was said in a transaction, at once or not at all. → `Done`; `Committed` if it
    /// adds to keys of tables; `Refused`, and it is rolled back
    Commit {
        /// Which.
        transaction: TransactionId,
    },
    /// Undo a transaction. → `Done`, `Refused`
    Rollback {
        /// Which.
        transaction: TransactionId,
    },
    /// Add a queue to those a consumer receives from; creates both. Idempotent. → `Done`, `Refused`
    Watch {
        /// The consumer.
        link: LinkId,
        /// The queue.
        queue: QueueName,
    },
    /// Take a queue from those a consumer receives from. → `Done`, also when it was not there
    Unwatch {
        /// The consumer.
        link: LinkId,
        /// The queue.
        queue: QueueName,
    },
    /// Lease the most urgent ready message of the watched, unpaused queues, waiting for one.
    /// At most one is outstanding a consumer. → `Delivered`, `TimedOut`, `LeaseEnding`
    Receive {
        /// The consumer.
        link: LinkId,
        /// How long to wait; zero: not at all, `None`: for ever.
        wait: Option<Nanos>,
        /// While nothing is ready: answer `LeaseEnding` once a lease of this session has no more
        /// than this left (beanstalkd's safety margin). Zero: never.
        margin: Nanos,
        /// For how long; `None`: as long as the message says.
        lease: Option<Nanos>,
    },
    /// End a waiting `Receive` now. → nothing of its own: the `Receive` is answered `TimedOut`;
    /// no effect if none waits
    CancelReceive {
        /// The consumer.
        link: LinkId,
    },
    /// End the waiting of all that this session sent and that waits for a place. → nothing of its
    /// own: each is answered `Late` with `Refused`, or with `TimedOut` if it is a
    /// [`ListCommand::Move`] that may wait; no effect if none waits
    CancelSends,
    /// The same of one of them; no effect if it waits no longer.
    CancelSend {
        /// The ticket in its `Waits`.
        ticket: u64,
    },
    /// Lease this very message if it is ready, delayed or buried. → `Delivered`, `NotFound`
    Lease {
        /// The message.
        message: MessageId,
    },
    /// Delete a message that this session leases or that is not leased. → `Done`, `NotFound`
    Delete {
        /// The message.
        message: MessageId,
    },
    /// Give a leased message back. → `Done`, `NotFound` unless leased by this session
    Release {
        /// The message.
        message: MessageId,
        /// Its new priority.
        priority: u32,
        /// How long it stays hidden; zero: ready at once; `None`: as the rules of its queue say.
        delay: Option<Nanos>,
    },
    /// Set a leased message aside until it is kicked. → `Done`, `NotFound` unless leased by this
    /// session
    Bury {
        /// The message.
        message: MessageId,
        /// Its new priority.
        priority: u32,
    },
    /// Start the lease's time anew. → `Done`, `NotFound` unless leased by this session
    Renew {
        /// The message.
        message: MessageId,
        /// For how long; `None`: as long as the message says.
        lease: Option<Nanos>,
    },
    /// Make ready up to `max` buried messages of the producer's queue, oldest first, or, if
    /// none is buried, as many delayed ones, soonest first. One command changes so many that they
    /// fit into one frame. → `Count`; `CountSoFar` if it stopped for that
    Kick {
        /// A producer that was opened.
        link: LinkId,
        /// The most to make ready.
        max: u64,
    },
    /// Make this buried or delayed message ready. → `Done`, `NotFound`
    KickMessage {
        /// The message.
        message: MessageId,
    },
    /// Deliver nothing from a queue for a while. Zero ends a pause. → `Done`, `NotFound`
    Pause {
        /// The queue.
        queue: QueueName,
        /// How long from now.
        duration: Nanos,
    },
    /// Look at a message without touching it. → `Found`, `NotFound`
    Peek(Peek),
    /// → `MessageStatistics`, `NotFound`
    MessageStatistics {
        /// The message.
        message: MessageId,
    },
    /// → `QueueStatistics`, `NotFound`
    QueueStatistics {
        /// The queue.
        queue: QueueName,
    },
    /// → `BrokerStatistics`
    BrokerStatistics,
    /// → `Queues`, in the order of their names
    ListQueues,
    /// A queue as a list. → as there; `Refused` (`WrongKind`) if the name is a value's
    List(ListCommand),
    /// A command on a key. → as there
    Key(KeyCommand),
    /// → as there
    Admin(Box<AdminCommand>),
    /// Do these one after the other with nothing in between, as one frame: a crash leaves all of it
    /// or nothing. Each is answered as it would be alone, but that none waits, and the answers come
    /// together. Allowed are `List`, `Key`, `Script`, `PutTo` and `Publish` without
    /// transaction. → `Batch`.
    /// Nothing was done after `Stale`: an observed key has changed; nor after `Refused`: it may be
    /// too much for one frame or for the room that is left
    Batch {
        /// The commands.
        commands: Vec<Self>,
    },
    /// Run a script, all of whose commands are one frame. → `Scripted`
    Script(Script),
    /// From now on note when these keys change, until the next `Batch` or `Unobserve` of this
    /// session. Names add up. → `Done`, `Refused`
    Observe {
        /// Which.
        names: Vec<QueueName>,
    },
    /// Forget the observed keys. → `Done`
    Unobserve,
    /// As `PutTo` a topic, which is not created. → `Count` of the subscriptions that took it
    Publish {
        /// The topic.
        topic: QueueName,
        /// The message.
        message: NewMessage,
    },
}

impl Command {
    /// Bytes of the bodies and of the value that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::Put { message, .. }
            | Self::PutTo { message, .. }
            | Self::Publish { message, .. } => message.body.len(),
            Self::List(command) => command.body_bytes(),
            Self::Key(command) => command.value_bytes(),
            Self::Table { step, .. } => step.body_bytes(),
            Self::Batch { commands } => commands.iter().map(Self::body_bytes).sum(),
            _ => 0,
        }
    }

    /// It sets fields of a hash.
    #[must_use]
    pub fn sets_fields(&self) -> bool {
        let Self::Key(KeyCommand::Collection(command)) = self else { return false };
        let command = &**command;
        matches!(command, CollectionCommand::SetFields { .. } | CollectionCommand::EditField { .. })
    }

    /// How many commands of a client it is: more than one where alike ones are done in one step.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::List(ListCommand::PushEach { elements, .. }) => elements.len() as u64,
            Self::List(ListCommand::PopEach { max, .. }) => *max,
            Self::Key(KeyCommand::ValueEach { names }) => names.len() as u64,
            Self::Batch { commands } => commands.len() as u64,
            _ => 1,
        }
    }

    /// True if it is answered later where there is nothing for it yet.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        let wait = match self {
            Self::List(ListCommand::PopFirst { wait, .. } | ListCommand::Move { wait, .. }) => wait,
            Self::Key(KeyCommand::Collection(command)) => match &**command {
                CollectionCommand::PopScored { wait, .. } => wait,
                _ => return false,
            },
            Self::Key(KeyCommand::Stream(command)) => match &**command {
                StreamCommand::Read(read) => &read.wait,
                _ => return false,
            },
            _ => return false,
        };
        *wait != Some(Nanos::ZERO)
    }

    /// Lets it wait no more, if it would.
    pub fn wait_no_longer(&mut self) {
        match self {
            Self::List(command) => command.set_wait(Nanos::ZERO),
            Self::Key(KeyCommand::Collection(command)) => {
                if let CollectionCommand::PopScored { wait, .. } = &mut **command {
                    *wait = Some(Nanos::ZERO);
                }
            }
            Self::Key(KeyCommand::Stream(command)) => {
                if let StreamCommand::Read(read) = &mut **command {
                    read.wait = Some(Nanos::ZERO);
                }
            }
            _ => {}
        }
    }

    /// The open transaction that it is about.
    #[must_use]
    pub const fn transaction(&self) -> Option<TransactionId> {
        match self {
            Self::Put { transaction, .. }
            | Self::PutTo { transaction, .. }
            | Self::Settle { transaction, .. } => *transaction,
            Self::Table { transaction, .. }
            | Self::Commit { transaction }
            | Self::Rollback { transaction } => Some(*transaction),
            _ => None,
        }
    }
}

impl From<KeyCommand> for Command {
    fn from(command: KeyCommand) -> Self {
        Self::Key(command)
    }
}

impl From<ListCommand> for Command {
    fn from(command: ListCommand) -> Self {
        Self::List(command)
    }
}

impl From<StreamCommand> for Command {
    fn from(command: StreamCommand) -> Self {
        Self::Key(KeyCommand::Stream(Box::new(command)))
    }
}

impl From<CollectionCommand> for Command {
    fn from(command: CollectionCommand) -> Self {
        Self::Key(KeyCommand::Collection(Box::new(command)))
    }
}

/// The effect of a consumer on its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerMode {
    /// It holds them, and no other consumer gets them.
    Take,
    /// It gets copies of the ready messages from the first to the last and changes nothing.
    Browse,
}

/// Which message to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// This one, in any queue and state.
    Message(MessageId),
    /// The most urgent ready one of the producer's queue.
    Ready(LinkId),
    /// The one of the producer's queue with the delay that ends first.
    Delayed(LinkId),
    /// The one of the producer's queue that was buried first.
    Buried(LinkId),
}
