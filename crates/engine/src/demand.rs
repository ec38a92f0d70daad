//! The demand of a command: what it stores, changes, looks at and shows, read from the command
//! alone.
//!
//! [`Demand::of`] is the only match over all commands beside their dispatch. Every estimator of
//! room, memory, places and bodies reads its fields. A new command is entered here and in the
//! function that performs it. No arm is a wildcard, so the compiler asks for the entry.

use alloc::sync::Arc;
use core::slice;

use model::{
    AdminCommand, CollectionCommand, CombinationTarget, Command, Database, Deadline, Destination,
    End, KeyCommand, LinkId, ListCommand, MessageId, MessageState, Nanos, NewMessage, PageEnd,
    Peek, Persistence, QueueName, StreamCommand, TransactionId, ValueEdit, limits,
};

use crate::bodies::memory::charge;
use crate::keyspace::lists::places::Span;

/// True if a command brings something that memory is to keep.
#[must_use]
pub fn adds_to_memory(command: &Command) -> bool {
    Demand::of(command).stores.adds_to_memory()
}

/// The demand of a command on the parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand<'c> {
    pub(crate) stores: Stores<'c>,
    pub(crate) changes: Changes<'c>,
    pub(crate) looks: Looks<'c>,
    pub(crate) about: About<'c>,
    pub(crate) batching: Batching,
    /// Its reply has bytes that others have sent.
    pub(crate) shows: bool,
    /// A client says by it that the elements it took have reached it. Some commands do not say so:
    /// a session by itself settles messages of its subscriptions and gives credit, and others end
    /// its waits in its name.
    pub(crate) is_from_client: bool,
}

/// The things that a command stores anew.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stores<'c> {
    Nothing,
    Message {
        to: Address<'c>,
        message: &'c NewMessage,
        part_of: Option<TransactionId>,
    },
    /// Elements of a list.
    Elements {
        queue: &'c QueueName,
        elements: &'c [Arc<[u8]>],
        persistence: Persistence,
        rule: ElementRule,
    },
    /// A small value.
    Value {
        name: &'c QueueName,
        value: &'c [u8],
    },
    /// Several small values.
    Values(&'c [(QueueName, Arc<[u8]>)]),
    /// A small value by what it was.
    Edited {
        name: &'c QueueName,
        edit: &'c ValueEdit,
    },
    /// Entries of a collection.
    Entries(&'c CollectionCommand),
    /// Entries of a stream, or of its groups.
    Stream(&'c StreamCommand),
    /// The messages of a transaction: it commits.
    Transaction(TransactionId),
    /// All that these store.
    Batch(&'c [Command]),
}

/// The destination of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Address<'c> {
    /// That of a producer.
    Producer(LinkId),
    Queue(&'c QueueName),
    Topic(&'c QueueName),
}

/// How elements come into their list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementRule {
    /// At an end.
    Always,
    /// At an end of a list that is there.
    OnlyExisting,
    /// Beside another one. Elements on one side of it may move outwards.
    Beside,
    /// In the place of another one.
    Instead,
}

/// The change that a command makes to things that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changes<'c> {
    /// Nothing that a batch or a full queue has to know.
    Nothing,
    /// Takes up to `max` elements from one of these lists.
    Popped { queues: &'c [QueueName], max: u64 },
    /// Takes an element from one list for another, as soon as there is one.
    Moved { from: &'c QueueName, from_end: End, to: &'c QueueName, wait: Option<Nanos> },
    /// Deletes up to `max` elements of a list.
    Removed { queue: &'c QueueName, max: u64 },
    /// Deletes the elements of a list that are not between these places.
    Outside { queue: &'c QueueName, kept: Span },
    /// Gives a key another name.
    Renamed { from: &'c QueueName, to: &'c QueueName },
    /// Takes entries out of a collection.
    Taken(&'c CollectionCommand),
    /// Takes entries out of a stream, or out of what is pending.
    TakenOfStream(&'c StreamCommand),
    /// Deletes these keys.
    Keys(&'c [QueueName]),
    /// Deletes all keys, or those of a database.
    AllKeys(Option<Database>),
    /// Writes one record about a key, which stores nothing.
    Stated(&'c QueueName),
    /// Says when a key is to go.
    Limited { name: &'c QueueName, deadline: Deadline },
}

/// The things that a command looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Looks<'c> {
    /// No more than one message or a few counts.
    AtNothing,
    /// Elements of a list, which it holds against one.
    ForEqual(Comparison<'c>),
    /// The elements between two places.
    AtPlaces { queue: &'c QueueName, span: Span },
    /// So many names.
    AtNames(u64),
    /// Entries of a collection.
    AtEntries(&'c CollectionCommand),
    /// Entries of a stream, or of its groups.
    AtStream(&'c StreamCommand),
    /// Messages of a queue that match a selector.
    ForMatch(Page<'c>),
}

/// Elements of a list that a command holds against one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'c> {
    pub(crate) list: &'c QueueName,
    pub(crate) element: &'c [u8],
    pub(crate) from: End,
    /// The most elements to look at; `None`: all.
    pub(crate) scan_max: Option<u64>,
}

/// Messages that an operator asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'c> {
    pub(crate) queue: &'c QueueName,
    pub(crate) state: Option<MessageState>,
    /// Those that a session holds as well.
    pub(crate) held: bool,
    pub(crate) selector: &'c str,
    /// Only this one.
    pub(crate) message: Option<MessageId>,
    pub(crate) after: Option<PageEnd>,
}

/// The thing that an answer tells of, though it may be private to another session, and the link
/// that a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About<'c> {
    /// Nothing private, or something that the command itself denies.
    Nothing,
    Message(MessageId),
    Queue(&'c QueueName),
    /// The queue of a producer.
    Producer(LinkId),
    /// A consumer of the session.
    Consumer(LinkId),
}

/// Which commands a command may be done together with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batching {
    /// None.
    Alone,
    /// The others of a batch.
    Batchable,
    /// It is a run of its own: see `keyspace/lists/runs.rs`.
    Run,
}

impl<'c> Demand<'c> {
    // Each caller reads one or two fields, and the compiler drops the rest: it is no call.
    #[inline(always)]
    pub(crate) fn of(command: &'c Command) -> Self {
        match command {
            Command::List(command) => Self::of_list(command),
            Command::Key(command) => Self::of_key(command),
            Command::Admin(command) => Self::of_operator(command),
            Command::Put { link, message, transaction } => {
                Self::sending(Address::Producer(*link), message, *transaction, Batching::Alone)
            }
            Command::PutTo { to, message, transaction: None } => {
                Self::sending(Address::of(to), message, None, Batching::Batchable)
            }
            Command::PutTo { to, message, transaction } => {
                Self::sending(Address::of(to), message, *transaction, Batching::Alone)
            }
            Command::Publish { topic, message } => {
                Self::sending(Address::Topic(topic), message, None, Batching::Batchable)
            }
            Command::Commit { transaction } => {
                Self { stores: Stores::Transaction(*transaction), ..Self::NONE }
            }
            Command::Batch { commands } => Self { stores: Stores::Batch(commands), ..Self::NONE },
            // Its commands claim what they need when their turn has come.
            Command::Script(_) => Self { shows: true, ..Self::BATCHABLE },
            Command::OpenConsumer { link, .. }
            | Command::Subscribe { link, .. }
            | Command::CloseConsumer { link }
            | Command::Watch { link, .. }
            | Command::Unwatch { link, .. }
            | Command::Receive { link, .. }
            | Command::CancelReceive { link } => Self::about(About::Consumer(*link)),
            Command::Credit { link, .. } => {
                Self { is_from_client: false, ..Self::about(About::Consumer(*link)) }
            }
            // Its commit stores it.
            Command::Table { .. } => Self::NONE,
            Command::Settle { .. } | Command::CancelSends | Command::CancelSend { .. } => {
                Self { is_from_client: false, ..Self::NONE }
            }
            Command::Lease { message }
            | Command::Delete { message }
            | Command::KickMessage { message }
            | Command::MessageStatistics { message }
            | Command::Peek(Peek::Message(message)) => Self::about(About::Message(*message)),
            Command::Peek(Peek::Ready(link) | Peek::Delayed(link) | Peek::Buried(link))
            | Command::Kick { link, .. } => Self::about(About::Producer(*link)),
            Command::Pause { queue, .. } | Command::QueueStatistics { queue } => {
                Self::about(About::Queue(queue))
            }
            Command::Identify { .. }
            | Command::OpenProducer { .. }
            | Command::CloseProducer { .. }
            | Command::CreateTemporary { .. }
            | Command::DeleteTemporary { .. }
            | Command::Unsubscribe { .. }
            | Command::FindSubscription { .. }
            | Command::Begin { .. }
            | Command::Rollback { .. }
            | Command::Release { .. }
            | Command::Bury { .. }
            | Command::Renew { .. }
            | Command::BrokerStatistics
            | Command::ListQueues
            | Command::Observe { .. }
            | Command::Unobserve => Self::NONE,
        }
    }

    #[inline(always)]
    pub(crate) fn of_list(command: &'c ListCommand) -> Self {
        use ElementRule::{Always, Beside, Instead, OnlyExisting};
        match command {
            ListCommand::Push { queue, elements, only_existing, persistence, .. } => {
                let rule = if *only_existing { OnlyExisting } else { Always };
                Self::adding(queue, elements, *persistence, rule)
            }
            ListCommand::PushEach { queue, elements, persistence, .. } => {
                Self::adding(queue, elements, *persistence, Always).as_run()
            }
            ListCommand::Replace { queue, element, persistence, .. } => {
                Self::adding(queue, slice::from_ref(element), *persistence, Instead)
            }
            ListCommand::Insert { queue, origin, pivot, element, persistence, .. } => {
                let demand = Self::adding(queue, slice::from_ref(element), *persistence, Beside);
                Self { looks: Looks::for_equal(queue, pivot, *origin, None), ..demand }
            }
            ListCommand::Pop { queue, max, .. } => Self::popping(slice::from_ref(queue), *max),
            ListCommand::PopEach { queue, max, .. } => {
                Self::popping(slice::from_ref(queue), *max).as_run()
            }
            ListCommand::PopFirst { queues, max, .. } => {
                let looks = Looks::AtNames(queues.len() as u64);
                Self { looks, ..Self::popping(queues, *max) }
            }
            ListCommand::Move { from, from_end, to, wait, .. } => {
                let changes = Changes::Moved { from, from_end: *from_end, to, wait: *wait };
                Self { changes, shows: true, ..Self::BATCHABLE }
            }
            ListCommand::Remove { queue, origin, element, max } => {
                let looks = Looks::for_equal(queue, element, *origin, None);
                Self { looks, changes: Changes::Removed { queue, max: *max }, ..Self::BATCHABLE }
            }
            ListCommand::Keep { queue, origin, first, last } => {
                let kept = Span { origin: *origin, first: *first, last: *last };
                Self { changes: Changes::Outside { queue, kept }, ..Self::BATCHABLE }
            }
            ListCommand::Range { queue, origin, first, last } => {
                let span = Span { origin: *origin, first: *first, last: *last };
                Self { looks: Looks::AtPlaces { queue, span }, shows: true, ..Self::BATCHABLE }
            }
            ListCommand::Locate { queue, from, element, scan_max, .. } => {
                let looks = Looks::for_equal(queue, element, *from, *scan_max);
                Self { looks, shows: true, ..Self::BATCHABLE }
            }
            ListCommand::Length { .. } => Self::BATCHABLE,
            ListCommand::CancelPop => Self { is_from_client: false, ..Self::NONE },
        }
    }

    #[inline(always)]
    fn of_key(command: &'c KeyCommand) -> Self {
        let changes = match command {
            KeyCommand::Delete { names } => Changes::Keys(names),
            KeyCommand::DeleteAll { database } => Changes::AllKeys(*database),
            KeyCommand::Rename { from, to, .. } => Changes::Renamed { from, to },
            KeyCommand::SetDeadline { name, deadline, .. } => {
                Changes::Limited { name, deadline: *deadline }
            }
            KeyCommand::ClearDeadline { name } => Changes::Stated(name),
            KeyCommand::Value { name, take } => {
                let changes = if *take { Changes::Stated(name) } else { Changes::Nothing };
                return Self { changes, shows: true, ..Self::BATCHABLE };
            }
            KeyCommand::SetValue { name, value, want_old, .. } => {
                let stores = Stores::Value { name, value };
                return Self { stores, shows: *want_old, ..Self::BATCHABLE };
            }
            KeyCommand::SetValues { values, .. } => {
                let looks = Looks::AtNames(values.len() as u64);
                return Self { stores: Stores::Values(values), looks, ..Self::BATCHABLE };
            }
            KeyCommand::EditValue { edit, .. } if !edit.writes() => {
                return Self { shows: true, ..Self::BATCHABLE };
            }
            KeyCommand::EditValue { name, edit } => {
                let shows = matches!(edit, ValueEdit::AddDecimal(_) | ValueEdit::Bits(_));
                return Self { stores: Stores::Edited { name, edit }, shows, ..Self::BATCHABLE };
            }
            KeyCommand::ValueUntil { name, deadline } => {
                let changes = match deadline {
                    Some(deadline) => Changes::Limited { name, deadline: *deadline },
                    None => Changes::Stated(name),
                };
                return Self { changes, shows: true, ..Self::BATCHABLE };
            }
            KeyCommand::ValuesAtOnce { names } => {
                let looks = Looks::AtNames(names.len() as u64);
                return Self { looks, shows: true, ..Self::BATCHABLE };
            }
            KeyCommand::Names { max, .. } => {
                let looks = Looks::AtNames(*max as u64);
                return Self { looks, shows: true, ..Self::BATCHABLE };
            }
            KeyCommand::Collection(command) => return Self::of_collection(command),
            KeyCommand::Stream(command) => return Self::of_stream(command),
            KeyCommand::ValueEach { .. } => return Self { shows: true, ..Self::BATCHABLE },
            KeyCommand::Kind { .. }
            | KeyCommand::CountOf { .. }
            | KeyCommand::Lifetime { .. }
            | KeyCommand::CountAll { .. }
            | KeyCommand::CountEach
            | KeyCommand::AnyName { .. }
            | KeyCommand::MemoryOf { .. }
            | KeyCommand::Synced => Changes::Nothing,
        };
        Self { changes, ..Self::BATCHABLE }
    }

    fn of_collection(command: &'c CollectionCommand) -> Self {
        let stores = |shows| Self { stores: Stores::Entries(command), shows, ..Self::BATCHABLE };
        let takes = |shows| Self { changes: Changes::Taken(command), shows, ..Self::BATCHABLE };
        let looks = |looks| Self { looks, shows: true, ..Self::BATCHABLE };
        match command {
            CollectionCommand::SetFields { .. }
            | CollectionCommand::AddMembers { .. }
            | CollectionCommand::MoveMember { .. } => stores(false),
            CollectionCommand::EditField { edit, .. } => {
                stores(matches!(edit, ValueEdit::AddDecimal(_)))
            }
            CollectionCommand::SetScores { rule, .. } => stores(rule.adds),
            CollectionCommand::StoreRange { .. } => stores(false),
            CollectionCommand::Combine(combination) => match combination.target {
                CombinationTarget::Stored(_) => stores(false),
                CombinationTarget::Shown | CombinationTarget::Counted { .. } => {
                    looks(Looks::AtEntries(command))
                }
            },
            CollectionCommand::RemoveFields { .. } | CollectionCommand::RemoveRange { .. } => {
                takes(false)
            }
            CollectionCommand::PopScored { .. }
            | CollectionCommand::PickFields { take: true, .. } => takes(true),
            CollectionCommand::FindFields { fields, .. } => {
                looks(Looks::AtNames(fields.len() as u64))
            }
            CollectionCommand::TakePicture { .. } | CollectionCommand::EndPicture { .. } => {
                Self::BATCHABLE
            }
            CollectionCommand::ScanFields { max, .. }
            | CollectionCommand::ShowPicture { max, .. } => looks(Looks::AtNames(*max as u64)),
            CollectionCommand::ShowFields { .. }
            | CollectionCommand::PickFields { .. }
            | CollectionCommand::ShowRange { .. } => looks(Looks::AtEntries(command)),
            CollectionCommand::CountFields { .. }
            | CollectionCommand::CountRange { .. }
            | CollectionCommand::Rank { .. } => Self::BATCHABLE,
        }
    }

    fn of_stream(command: &'c StreamCommand) -> Self {
        let stores = Self { stores: Stores::Stream(command), ..Self::BATCHABLE };
        let takes = Self { changes: Changes::TakenOfStream(command), ..Self::BATCHABLE };
        let looks = Self { looks: Looks::AtStream(command), shows: true, ..Self::BATCHABLE };
        match command {
            StreamCommand::Append { .. }
            | StreamCommand::CreateGroup { .. }
            | StreamCommand::CreateConsumer { .. } => stores,
            StreamCommand::Trim { .. }
            | StreamCommand::Remove { .. }
            | StreamCommand::SetLast { .. }
            | StreamCommand::SetGroup { .. }
            | StreamCommand::RemoveGroup { .. }
            | StreamCommand::RemoveConsumer { .. }
            | StreamCommand::Acknowledge { .. } => takes,
            StreamCommand::Read(read) if read.reader.is_none() => looks,
            StreamCommand::Read(_)
            | StreamCommand::Claim { .. }
            | StreamCommand::ClaimNext { .. } => Self { shows: true, ..takes },
            StreamCommand::Range { .. }
            | StreamCommand::CountPending { .. }
            | StreamCommand::ShowPending { .. }
            | StreamCommand::Describe { .. }
            | StreamCommand::DescribeGroups { .. }
            | StreamCommand::DescribeConsumers { .. } => looks,
            StreamCommand::Length { .. } => Self::BATCHABLE,
        }
    }

    #[inline(always)]
    fn of_operator(command: &'c AdminCommand) -> Self {
        let (queue, state, held, selector, message, after) = match command {
            AdminCommand::Browse { queue, state, selector, after, .. } => {
                (queue, *state, true, selector, None, *after)
            }
            AdminCommand::Purge { queue, state, selector, after } => {
                (queue, *state, false, selector, None, *after)
            }
            AdminCommand::MoveMessages { from, selector, message, after, .. } => {
                (from, None, false, selector, *message, *after)
            }
            AdminCommand::Delete { queue } => return Self::about(About::Queue(queue)),
            AdminCommand::Show { message } => return Self::about(About::Message(*message)),
            AdminCommand::Policy { .. }
            | AdminCommand::ChangePolicy { .. }
            | AdminCommand::ListPolicies { .. }
            | AdminCommand::ListQueues { .. }
            | AdminCommand::ListSubscriptions
            | AdminCommand::NextMessage => return Self::NONE,
        };
        let looks = selector.as_deref().map_or(Looks::AtNothing, |selector| {
            Looks::ForMatch(Page { queue, state, held, selector, message, after })
        });
        Self { looks, ..Self::about(About::Queue(queue)) }
    }

    const fn sending(
        to: Address<'c>,
        message: &'c NewMessage,
        part_of: Option<TransactionId>,
        batching: Batching,
    ) -> Self {
        Self { stores: Stores::Message { to, message, part_of }, batching, ..Self::NONE }
    }

    const fn adding(
        queue: &'c QueueName,
        elements: &'c [Arc<[u8]>],
        persistence: Persistence,
        rule: ElementRule,
    ) -> Self {
        let stores = Stores::Elements { queue, elements, persistence, rule };
        Self { stores, ..Self::BATCHABLE }
    }

    const fn popping(queues: &'c [QueueName], max: u64) -> Self {
        Self { changes: Changes::Popped { queues, max }, shows: true, ..Self::BATCHABLE }
    }

    const fn as_run(self) -> Self {
        Self { batching: Batching::Run, ..self }
    }

    const fn about(about: About<'c>) -> Self {
        Self { about, ..Self::NONE }
    }

    const NONE: Self = Self {
        stores: Stores::Nothing,
        changes: Changes::Nothing,
        looks: Looks::AtNothing,
        about: About::Nothing,
        batching: Batching::Alone,
        shows: false,
        is_from_client: true,
    };

    const BATCHABLE: Self = Self { batching: Batching::Batchable, ..Self::NONE };
}

impl Demand<'_> {
    /// Bytes that the command takes while it waits for a place, or for bodies. A transaction counts
    /// its own messages, so a commit does not count them.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let stored = match self.stores {
            Stores::Nothing | Stores::Transaction(_) => 0,
            Stores::Message { message, .. } => charge(message.body.len()),
            Stores::Elements { elements, .. } => elements.iter().map(|it| charge(it.len())).sum(),
            Stores::Value { value, .. } => charge(value.len()),
            Stores::Values(values) => values.iter().map(|(_, value)| charge(value.len())).sum(),
            Stores::Edited { edit, .. } => charge(edit.body_bytes()),
            Stores::Entries(command) => charge(command.body_bytes()),
            Stores::Stream(command) => charge(command.body_bytes()),
            Stores::Batch(commands) => {
                commands.iter().map(|command| Demand::of(command).waiting_bytes()).sum()
            }
        };
        let compared = self.looks.comparison().map_or(0, |it| charge(it.element.len()));
        WAITING_BYTES + stored + compared
    }
}

impl Stores<'_> {
    /// True if memory is to keep it. A transaction has its messages in memory already.
    #[inline]
    pub(crate) fn adds_to_memory(&self) -> bool {
        match self {
            Stores::Nothing | Stores::Transaction(_) => false,
            Stores::Message { .. }
            | Stores::Elements { .. }
            | Stores::Value { .. }
            | Stores::Values(_)
            | Stores::Edited { .. }
            | Stores::Entries(_)
            | Stores::Stream(_) => true,
            Stores::Batch(commands) => {
                commands.iter().any(|command| Demand::of(command).stores.adds_to_memory())
            }
        }
    }

    /// The transaction that it is a part of.
    #[inline]
    pub(crate) const fn part_of(&self) -> Option<TransactionId> {
        match self {
            Stores::Message { part_of, .. } => *part_of,
            _ => None,
        }
    }
}

impl<'c> Address<'c> {
    const fn of(to: &'c Destination) -> Self {
        match to {
            Destination::Queue(name) => Self::Queue(name),
            Destination::Topic(name) => Self::Topic(name),
        }
    }
}

impl<'c> Changes<'c> {
    /// The list from which it gives elements to another.
    pub(crate) const fn moved_from(&self) -> Option<&'c QueueName> {
        match self {
            Changes::Moved { from, .. } | Changes::Renamed { from, .. } => Some(from),
            _ => None,
        }
    }

    /// How many elements it takes from an end of a list at most.
    pub(crate) fn taken(&self) -> usize {
        match self {
            Changes::Popped { max, .. } => {
                usize::try_from(*max).unwrap_or(usize::MAX).min(limits::FRAME_RECORDS_MAX)
            }
            Changes::Moved { .. } => 1,
            _ => 0,
        }
    }
}

impl<'c> Looks<'c> {
    const fn for_equal(
        list: &'c QueueName,
        element: &'c [u8],
        from: End,
        scan_max: Option<u64>,
    ) -> Self {
        Self::ForEqual(Comparison { list, element, from, scan_max })
    }

    /// The elements that it compares.
    pub(crate) const fn comparison(self) -> Option<Comparison<'c>> {
        match self {
            Looks::ForEqual(comparison) => Some(comparison),
            _ => None,
        }
    }
}

/// A command that waits for a place, with its places in lines, but for bodies.
const WAITING_BYTES: u64 = 512;
