//! The rights that a command needs.
//!
//! [`needs`] is the one match that decides them, over all commands of all protocols. No arm is a
//! wildcard, so a new command does not compile before it names its rights. `commands/rights.rs`
//! holds them against those of the session's user.

use model::{
    AdminCommand, CollectionCommand, CombinationTarget, Command, ConsumerMode, KeyCommand, LinkId,
    ListCommand, Matching, MessageId, Peek, QueueName, Right, StreamCommand, SubscriptionName,
    TableAction, TableStep,
};

/// One right that a command needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<'c> {
    /// On a queue, a topic or a key.
    Name(Right, &'c QueueName),
    /// Any on a queue or topic with which a producer is of use: to send, to look or to manage.
    Point(&'c QueueName),
    /// On the destination of a producer.
    Producer(Right, LinkId),
    /// On the queue of a message, or on the queue where a dead letter came from. Without it there
    /// is no such message.
    Message(Right, MessageId),
    /// To receive from any name. A message that a pattern takes is judged by its topic when it is
    /// published.
    ReceiveSome,
    /// A subscription of the user's, or the right to manage its topic.
    Subscription(&'c SubscriptionName),
    /// To make a temporary destination: to receive from names with their prefix.
    Temporary,
    /// On the broker as a whole.
    Operate,
}

/// Tells `each` the rights that a command needs, until it fails.
///
/// A command on things that the session has already, such as a lease or an open consumer, needs
/// none: the session got them by a command that did. If a user's rights shrink, the server ends the
/// session.
///
/// # Errors
/// The first of `each`.
pub(crate) fn needs<'c, E>(
    command: &'c Command,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        Command::OpenProducer { to, .. } => each(Need::Point(to.name())),
        Command::Put { link, .. } => each(Need::Producer(Right::Send, *link)),
        Command::PutTo { to, .. } => each(Need::Name(Right::Send, to.name())),
        Command::Publish { topic, .. } => each(Need::Name(Right::Send, topic)),
        Command::CreateTemporary { .. } => each(Need::Temporary),
        Command::OpenConsumer { queue, mode: ConsumerMode::Take, .. }
        | Command::Watch { queue, .. } => each(Need::Name(Right::Receive, queue)),
        Command::OpenConsumer { queue, mode: ConsumerMode::Browse, .. } => {
            each(Need::Name(Right::Look, queue))
        }
        Command::Subscribe { subscription, .. } => match subscription.matching {
            Matching::Name => each(Need::Name(Right::Receive, &subscription.topic)),
            Matching::Words | Matching::Glob => each(Need::ReceiveSome),
        },
        Command::Unsubscribe { name } | Command::FindSubscription { name } => {
            each(Need::Subscription(name))
        }
        Command::Lease { message } | Command::Delete { message } => {
            each(Need::Message(Right::Receive, *message))
        }
        Command::KickMessage { message } => each(Need::Message(Right::Manage, *message)),
        Command::Kick { link, .. } => each(Need::Producer(Right::Manage, *link)),
        Command::Pause { queue, .. } => each(Need::Name(Right::Manage, queue)),
        Command::Peek(Peek::Message(message)) | Command::MessageStatistics { message } => {
            each(Need::Message(Right::Look, *message))
        }
        Command::Peek(Peek::Ready(link) | Peek::Delayed(link) | Peek::Buried(link)) => {
            each(Need::Producer(Right::Look, *link))
        }
        Command::QueueStatistics { queue } => each(Need::Name(Right::Look, queue)),
        Command::List(command) => needs_of_list(command, each),
        Command::Key(command) => needs_of_key(command, each),
        Command::Admin(command) => needs_of_operator(command, each),
        Command::Batch { commands } => commands.iter().try_for_each(|command| needs(command, each)),
        Command::Table { step, .. } => needs_of_step(step, each),
        Command::Observe { names } => all_of(names, Right::Look, each),
        // They are about the session itself, or about a thing that it got by another command.
        Command::Identify { .. }
        | Command::CloseProducer { .. }
        | Command::CloseConsumer { .. }
        | Command::DeleteTemporary { .. }
        | Command::Credit { .. }
        | Command::Settle { .. }
        | Command::Begin { .. }
        | Command::Commit { .. }
        | Command::Rollback { .. }
        | Command::Unwatch { .. }
        | Command::Receive { .. }
        | Command::CancelReceive { .. }
        | Command::CancelSends
        | Command::CancelSend { .. }
        | Command::Release { .. }
        | Command::Bury { .. }
        | Command::Renew { .. }
        | Command::Unobserve
        // Each of its commands passes the door by itself.
        | Command::Script(_) => Ok(()),
        // The totals of all queues, which name none, and names, of which the user sees those that
        // the right to look is for.
        Command::BrokerStatistics | Command::ListQueues => Ok(()),
    }
}

fn needs_of_list<'c, E>(
    command: &'c ListCommand,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        ListCommand::Push { queue, .. } | ListCommand::PushEach { queue, .. } => {
            each(Need::Name(Right::Send, queue))
        }
        ListCommand::Pop { queue, .. }
        | ListCommand::PopEach { queue, .. }
        | ListCommand::Remove { queue, .. }
        | ListCommand::Keep { queue, .. } => each(Need::Name(Right::Receive, queue)),
        ListCommand::PopFirst { queues, .. } => all_of(queues, Right::Receive, each),
        ListCommand::Move { from, to, .. } => {
            each(Need::Name(Right::Receive, from))?;
            each(Need::Name(Right::Send, to))
        }
        ListCommand::Length { queue }
        | ListCommand::Range { queue, .. }
        | ListCommand::Locate { queue, .. } => each(Need::Name(Right::Look, queue)),
        // One element goes for another.
        ListCommand::Replace { queue, .. } => {
            each(Need::Name(Right::Receive, queue))?;
            each(Need::Name(Right::Send, queue))
        }
        // The answer tells whether there is the element beside which the new one is to be.
        ListCommand::Insert { queue, .. } => {
            each(Need::Name(Right::Look, queue))?;
            each(Need::Name(Right::Send, queue))
        }
        ListCommand::CancelPop => Ok(()),
    }
}

fn needs_of_key<'c, E>(
    command: &'c KeyCommand,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        KeyCommand::Kind { name }
        | KeyCommand::MemoryOf { name }
        | KeyCommand::Lifetime { name }
        | KeyCommand::Value { name, take: false } => each(Need::Name(Right::Look, name)),
        KeyCommand::CountOf { names }
        | KeyCommand::ValueEach { names }
        | KeyCommand::ValuesAtOnce { names } => all_of(names, Right::Look, each),
        KeyCommand::SetValues { values, .. } => {
            values.iter().try_for_each(|(name, _)| each(Need::Name(Right::Send, name)))
        }
        // The answer tells something of the old value.
        KeyCommand::EditValue { name, edit } => {
            each(Need::Name(Right::Look, name))?;
            if edit.writes() { each(Need::Name(Right::Send, name)) } else { Ok(()) }
        }
        KeyCommand::ValueUntil { name, .. } => {
            each(Need::Name(Right::Look, name))?;
            each(Need::Name(Right::Manage, name))
        }
        KeyCommand::Collection(command) => needs_of_collection(command, each),
        KeyCommand::Stream(command) => needs_of_stream(command, each),
        KeyCommand::Value { name, take: true } => each(Need::Name(Right::Receive, name)),
        KeyCommand::SetValue { name, want_old, .. } => {
            if *want_old {
                each(Need::Name(Right::Look, name))?;
            }
            each(Need::Name(Right::Send, name))
        }
        KeyCommand::Delete { names } => all_of(names, Right::Manage, each),
        KeyCommand::Rename { from, to, .. } => {
            each(Need::Name(Right::Manage, from))?;
            each(Need::Name(Right::Manage, to))
        }
        KeyCommand::SetDeadline { name, .. } | KeyCommand::ClearDeadline { name } => {
            each(Need::Name(Right::Manage, name))
        }
        KeyCommand::DeleteAll { .. } => each(Need::Operate),
        // Names, of which the user sees those that the right to look is for, and their number.
        KeyCommand::Names { .. }
        | KeyCommand::AnyName { .. }
        | KeyCommand::CountAll { .. }
        | KeyCommand::CountEach
        | KeyCommand::Synced => Ok(()),
    }
}

fn needs_of_collection<'c, E>(
    command: &'c CollectionCommand,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        CollectionCommand::SetFields { name, .. } | CollectionCommand::AddMembers { name, .. } => {
            each(Need::Name(Right::Send, name))
        }
        CollectionCommand::SetScores { name, rule, .. } => {
            if rule.adds {
                each(Need::Name(Right::Look, name))?;
            }
            each(Need::Name(Right::Send, name))
        }
        // The answer tells something of the old value.
        CollectionCommand::EditField { name, .. } => {
            each(Need::Name(Right::Look, name))?;
            each(Need::Name(Right::Send, name))
        }
        CollectionCommand::RemoveFields { name, .. }
        | CollectionCommand::RemoveRange { name, .. }
        | CollectionCommand::PickFields { name, take: true, .. } => {
            each(Need::Name(Right::Receive, name))
        }
        CollectionCommand::PopScored { names, .. } => all_of(names, Right::Receive, each),
        CollectionCommand::FindFields { name, .. }
        | CollectionCommand::CountFields { name, .. }
        | CollectionCommand::ShowFields { name, .. }
        | CollectionCommand::ScanFields { name, .. }
        | CollectionCommand::TakePicture { name, .. }
        | CollectionCommand::ShowPicture { name, .. }
        | CollectionCommand::EndPicture { name, .. }
        | CollectionCommand::PickFields { name, .. }
        | CollectionCommand::ShowRange { name, .. }
        | CollectionCommand::CountRange { name, .. }
        | CollectionCommand::Rank { name, .. } => each(Need::Name(Right::Look, name)),
        CollectionCommand::MoveMember { from, to, .. } => {
            each(Need::Name(Right::Receive, from))?;
            each(Need::Name(Right::Send, to))
        }
        CollectionCommand::Combine(combination) => {
            for (name, _) in &combination.names {
                each(Need::Name(Right::Look, name))?;
            }
            match &combination.target {
                CombinationTarget::Stored(to) => each(Need::Name(Right::Send, to)),
                CombinationTarget::Shown | CombinationTarget::Counted { .. } => Ok(()),
            }
        }
        CollectionCommand::StoreRange { from, to, .. } => {
            each(Need::Name(Right::Look, from))?;
            each(Need::Name(Right::Send, to))
        }
    }
}

fn needs_of_step<'c, E>(
    step: &'c TableStep,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    let mut needs = |right| each(Need::Name(right, &step.table));
    match step.action {
        TableAction::Expect(_) => needs(Right::Look),
        TableAction::Put(_) => needs(Right::Send),
        // The answer tells the sum.
        TableAction::Add(_) => needs(Right::Look).and_then(|()| needs(Right::Send)),
        TableAction::Delete => needs(Right::Receive),
    }
}

fn needs_of_stream<'c, E>(
    command: &'c StreamCommand,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        StreamCommand::Append { name, trim, .. } => {
            if trim.is_some() {
                each(Need::Name(Right::Receive, name))?;
            }
            each(Need::Name(Right::Send, name))
        }
        StreamCommand::Trim { name, .. } | StreamCommand::Remove { name, .. } => {
            each(Need::Name(Right::Receive, name))
        }
        StreamCommand::SetLast { name, .. } => each(Need::Name(Right::Manage, name)),
        StreamCommand::Length { name }
        | StreamCommand::Range { name, .. }
        | StreamCommand::Describe { name, .. }
        | StreamCommand::DescribeGroups { name } => each(Need::Name(Right::Look, name)),
        StreamCommand::CountPending { of }
        | StreamCommand::ShowPending { of, .. }
        | StreamCommand::DescribeConsumers { of } => each(Need::Name(Right::Look, &of.stream)),
        StreamCommand::Read(read) => {
            let right = if read.reader.is_some() { Right::Receive } else { Right::Look };
            read.places.iter().try_for_each(|(name, _)| each(Need::Name(right, name)))
        }
        // A consumer makes its group, and takes over what others leave.
        StreamCommand::CreateGroup { of, .. }
        | StreamCommand::CreateConsumer { of, .. }
        | StreamCommand::Acknowledge { of, .. } => each(Need::Name(Right::Receive, &of.stream)),
        StreamCommand::Claim { claim, .. } | StreamCommand::ClaimNext { claim, .. } => {
            each(Need::Name(Right::Receive, &claim.of.stream))
        }
        StreamCommand::SetGroup { of, .. }
        | StreamCommand::RemoveGroup { of }
        | StreamCommand::RemoveConsumer { of, .. } => each(Need::Name(Right::Manage, &of.stream)),
    }
}

fn needs_of_operator<'c, E>(
    command: &'c AdminCommand,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    match command {
        AdminCommand::Browse { queue, .. } | AdminCommand::Policy { queue } => {
            each(Need::Name(Right::Look, queue))
        }
        AdminCommand::Show { message } => each(Need::Message(Right::Look, *message)),
        AdminCommand::Purge { queue, .. }
        | AdminCommand::Delete { queue }
        | AdminCommand::ChangePolicy { queue, .. } => each(Need::Name(Right::Manage, queue)),
        // Without a target each dead letter goes back, if the user may send there: see
        // `move_one` in `commands/operate.rs`.
        AdminCommand::MoveMessages { from, to, message, .. } => {
            match message {
                Some(message) => each(Need::Message(Right::Receive, *message))?,
                None => each(Need::Name(Right::Receive, from))?,
            }
            to.as_ref().map_or(Ok(()), |to| each(Need::Name(Right::Send, to)))
        }
        // Names, of which the user sees those that the right to look is for; a number.
        AdminCommand::ListPolicies { .. }
        | AdminCommand::ListQueues { .. }
        | AdminCommand::ListSubscriptions
        | AdminCommand::NextMessage => Ok(()),
    }
}

fn all_of<'c, E>(
    names: &'c [QueueName],
    right: Right,
    each: &mut impl FnMut(Need<'c>) -> Result<(), E>,
) -> Result<(), E> {
    names.iter().try_for_each(|name| each(Need::Name(right, name)))
}
