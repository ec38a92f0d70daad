//! COPY: a key of any kind under another name, as one frame.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use model::{
    ClaimTime, ClaimedAs, ClockLead, CollectionCommand, CollectionKind, Command, Deadline,
    DeadlineRule, Element, End, GroupDescription, GroupName, GroupStart, KeyCommand, KeyKind,
    ListCommand, Nanos, NewStreamId, OneOrMany, PendingEntry, Persistence, QueueName, Reply,
    ScoreRule, ScriptValue, SetRule, StreamClaim, StreamCommand, StreamDescription, StreamReply,
    ValueDeadline,
};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::programs::{Commands, program};

/// Elements, fields, members, or entries with pending ones and groups, that one command copies.
const COPIED_MAX: u64 = 5_000;

/// A key that is to be copied.
#[derive(Debug)]
struct Copy {
    from: QueueName,
    to: QueueName,
}

/// COPY
pub(crate) fn copy(arguments: Arguments<'_>) -> QueryResult {
    let (mut database, mut replace, mut at) = (arguments.database(), false, 3);
    while at < arguments.len() {
        match () {
            () if arguments.is(at, "replace") => replace = true,
            () if arguments.is(at, "db") && at + 1 < arguments.len() => {
                at += 1;
                database = arguments.database_at(at)?;
            }
            () => return Err(Fault::SYNTAX),
        }
        at += 1;
    }
    let copy = Copy { from: arguments.key(1)?, to: arguments.key_in(database, 2)? };
    if copy.from == copy.to {
        return Err(Fault::of("ERR source and destination objects are the same"));
    }
    Ok(program(move |commands| {
        let Some(kind) = kind_of(&copy.from, commands)? else { return Ok(NOTHING) };
        let there = kind_of(&copy.to, commands)?;
        if there.is_some() && !replace {
            return Ok(NOTHING);
        }
        let mut all = Vec::new();
        if there.is_some() {
            all.push(Command::Key(KeyCommand::Delete { names: vec![copy.to.clone()] }));
        }
        copy.add(kind, commands, &mut all)?;
        commands.ask_all(all)?;
        Ok(ScriptValue::Integer(1))
    }))
}

const NOTHING: ScriptValue = ScriptValue::Integer(0);

fn kind_of(name: &QueueName, commands: &mut Commands<'_>) -> Result<Option<KeyKind>, Fault> {
    match commands.ask(KeyCommand::Kind { name: name.clone() })? {
        Reply::Kind(kind) => Ok(kind),
        _ => Err(Fault::INTERNAL),
    }
}

impl Copy {
    /// Adds the commands that make the other key.
    fn add(
        &self,
        kind: KeyKind,
        commands: &mut Commands<'_>,
        all: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        match kind {
            KeyKind::Value => return self.add_value(commands, all),
            KeyKind::List => self.add_elements(commands, all)?,
            KeyKind::Hash => self.add_collection(CollectionKind::Hash, commands, all)?,
            KeyKind::Set => self.add_collection(CollectionKind::Set, commands, all)?,
            KeyKind::SortedSet => self.add_collection(CollectionKind::SortedSet, commands, all)?,
            KeyKind::Stream => self.add_stream(commands, all)?,
        }
        if let Some(at) = self.deadline(commands)? {
            let (deadline, rule) = (Deadline::At(at), DeadlineRule::Always);
            let name = self.to.clone();
            all.push(Command::Key(KeyCommand::SetDeadline { name, deadline, rule }));
        }
        Ok(())
    }

    fn deadline(&self, commands: &mut Commands<'_>) -> Result<Option<Nanos>, Fault> {
        match commands.ask(KeyCommand::Lifetime { name: self.from.clone() })? {
            Reply::Lifetime(lifetime) => Ok(lifetime.at),
            _ => Err(Fault::INTERNAL),
        }
    }

    fn add_value(&self, commands: &mut Commands<'_>, all: &mut Vec<Command>) -> Result<(), Fault> {
        let value = KeyCommand::Value { name: self.from.clone(), take: false };
        let Reply::Value(Some(value)) = commands.ask(value)? else { return Err(Fault::INTERNAL) };
        let deadline = self.deadline(commands)?;
        let deadline =
            deadline.map_or(ValueDeadline::Never, |at| ValueDeadline::New(Deadline::At(at)));
        let (name, rule) = (self.to.clone(), SetRule::Always);
        // It replaces what is there by itself.
        all.clear();
        let set = KeyCommand::SetValue { name, value, deadline, rule, want_old: false };
        all.push(Command::Key(set));
        Ok(())
    }

    fn add_elements(
        &self,
        commands: &mut Commands<'_>,
        all: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let queue = || self.from.clone();
        check_count(commands.count(ListCommand::Length { queue: queue() })?)?;
        let range = ListCommand::Range { queue: queue(), origin: End::Head, first: 0, last: -1 };
        let Reply::Elements(elements) = commands.ask(range)? else { return Err(Fault::INTERNAL) };
        let elements = elements.iter().map(|it| Arc::from(Element::payload(it))).collect();
        all.push(Command::List(ListCommand::Push {
            queue: self.to.clone(),
            end: End::Tail,
            elements: OneOrMany::Many(elements),
            only_existing: false,
            persistence: Persistence::Persistent,
        }));
        Ok(())
    }

    fn add_collection(
        &self,
        kind: CollectionKind,
        commands: &mut Commands<'_>,
        all: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let from = || self.from.clone();
        check_count(commands.count(CollectionCommand::CountFields { name: from(), kind })?)?;
        let show = CollectionCommand::ShowFields { name: from(), kind };
        let Reply::Entries(entries) = commands.ask(show)? else { return Err(Fault::INTERNAL) };
        let fields = entries.fields.iter().map(Arc::<[u8]>::from);
        let name = self.to.clone();
        let command = match kind {
            CollectionKind::Set => {
                let members = OneOrMany::Many(fields.collect());
                CollectionCommand::AddMembers { name, members }
            }
            CollectionKind::SortedSet => {
                let members = entries.scores.iter().copied().zip(fields).collect();
                CollectionCommand::SetScores { name, members, rule: ScoreRule::default() }
            }
            CollectionKind::Hash | CollectionKind::Stream => {
                let fields = fields.zip(entries.values.iter().map(Arc::from)).collect();
                CollectionCommand::SetFields { name, fields, only_new: false }
            }
        };
        all.push(command.into());
        Ok(())
    }

    fn add_stream(&self, commands: &mut Commands<'_>, all: &mut Vec<Command>) -> Result<(), Fault> {
        let name = || self.from.clone();
        // Before it is shown as a whole: that may be much.
        let few = StreamCommand::Describe { name: name(), whole: None };
        let described = stream_of(commands.ask(few)?)?;
        let groups = StreamCommand::DescribeGroups { name: name() };
        let groups = match commands.ask(groups)? {
            Reply::Stream(reply) => match *reply {
                StreamReply::Groups(groups) => groups,
                _ => return Err(Fault::INTERNAL),
            },
            _ => return Err(Fault::INTERNAL),
        };
        let of_groups = groups.iter().map(|it| 1 + it.consumer_count + it.pending_count);
        check_count(described.length + of_groups.sum::<u64>())?;
        let whole = StreamCommand::Describe { name: name(), whole: Some(0) };
        let stream = stream_of(commands.ask(whole)?)?;
        for (id, texts) in stream.entries.iter() {
            let texts: Vec<Arc<[u8]>> = texts.into_iter().flatten().map(Arc::from).collect();
            let (pairs, _) = texts.as_chunks::<2>();
            all.push(
                StreamCommand::Append {
                    name: self.to.clone(),
                    id: NewStreamId::Given(id),
                    fields: pairs.iter().cloned().map(|[field, value]| (field, value)).collect(),
                    trim: None,
                    only_existing: false,
                    lead: ClockLead::default(),
                }
                .into(),
            );
        }
        if stream.length == 0 {
            self.add_empty_stream(all);
        }
        let (last, added, removed) = (stream.last, Some(stream.added), Some(stream.removed));
        all.push(StreamCommand::SetLast { name: self.to.clone(), last, added, removed }.into());
        stream.groups.iter().flatten().for_each(|group| self.add_group(group, all));
        Ok(())
    }

    /// A stream without entries is there after a group was made with it.
    fn add_empty_stream(&self, all: &mut Vec<Command>) {
        let of = GroupName { stream: self.to.clone(), group: Arc::default() };
        let start = GroupStart { last: None, read: None };
        let create = StreamCommand::CreateGroup { of: of.clone(), start, makes_stream: true };
        all.extend([create.into(), StreamCommand::RemoveGroup { of }.into()]);
    }

    fn add_group(&self, group: &GroupDescription, all: &mut Vec<Command>) {
        let of = || GroupName { stream: self.to.clone(), group: Arc::clone(&group.name) };
        let start = GroupStart { last: Some(group.last), read: group.read };
        all.push(StreamCommand::CreateGroup { of: of(), start, makes_stream: false }.into());
        for consumer in &group.consumers {
            let consumer = Arc::clone(&consumer.name);
            all.push(StreamCommand::CreateConsumer { of: of(), consumer }.into());
        }
        for PendingEntry { id, consumer, delivered, count, .. } in &group.pending {
            let consumer = Arc::clone(consumer);
            let claim = StreamClaim { of: of(), consumer, min_idle: Nanos::ZERO, only_ids: true };
            let claimed = ClaimedAs {
                delivered: Some(ClaimTime::At(*delivered)),
                count: Some(*count),
                also_free: true,
                ..ClaimedAs::default()
            };
            all.push(StreamCommand::Claim { claim, ids: vec![*id], claimed }.into());
        }
    }
}

fn check_count(count: u64) -> Result<(), Fault> {
    if count > COPIED_MAX {
        return Err(Fault::of("ERR COPY copies 5000 elements, fields or entries at most here"));
    }
    Ok(())
}

fn stream_of(reply: Reply) -> Result<StreamDescription, Fault> {
    match reply {
        Reply::Stream(reply) => match *reply {
            StreamReply::Stream(stream) => Ok(stream),
            _ => Err(Fault::INTERNAL),
        },
        _ => Err(Fault::INTERNAL),
    }
}
