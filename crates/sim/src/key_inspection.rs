//! The keys that a broker shows just after recovery, asked for command by command.

use std::rc::Rc;

use model::{
    CollectionCommand, CollectionKind, Command, Entries, GroupDescription, GroupName, KeyCommand,
    KeyKind, Lifetime, Nanos, OneOrMany, PendingEntry, QueueName, Refusal, Reply, Score,
    StreamCommand, StreamId, StreamRange, StreamReply,
};

use crate::history::DEAD_LETTERS;
use crate::inspection::{ask, dead_elements, page};
use crate::keyspace::{Ages, GroupShape, Pair, StreamShape, in_order};
use crate::redis_workload::{LISTS, fields, is_list};
use crate::registration::name;
use crate::{KeySnapshot, Paged, Picture, Shape};

/// The lists, values and collections of clients of Redis, as of `now`.
pub(crate) fn picture<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> Picture {
    let names = KeyCommand::Names { database: None, after: None, max: NAMES_MAX, kind: None };
    let Reply::Names { names, next: None } = ask(broker, now, key(names)) else {
        panic!("there are few names");
    };
    let ours = names.into_iter().filter(|name| is_list(name.as_str()));
    let ours = ours.map(|name| (name.as_str().into(), shown(broker, now, &name)));
    let mut picture = Picture(ours.collect());
    let mut dead: Vec<_> = dead_elements(broker, now).into_values().collect();
    dead.sort();
    if !dead.is_empty() {
        let shown = KeySnapshot { content: Shape::List(dead), deadline: None };
        picture.0.insert(DEAD_LETTERS.into(), shown);
    }
    picture
}

/// Which of the elements of lists came first.
pub(crate) fn ages<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> Ages {
    LISTS.into_iter().map(|list| (list.into(), numbers(broker, now, name(list)))).collect()
}

/// The left end first: pages begin with the head.
fn numbers<F: Clone>(broker: &mut Paged<F>, now: Nanos, queue: QueueName) -> Vec<u64> {
    page(broker, now, queue).iter().rev().map(|it| it.delivery.message.0).collect()
}

fn shown<F: Clone>(broker: &mut Paged<F>, now: Nanos, name: &QueueName) -> KeySnapshot {
    let kind = ask(broker, now, key(KeyCommand::Kind { name: name.clone() }));
    let content = match kind {
        Reply::Kind(Some(KeyKind::List)) => Shape::List(list(broker, now, name)),
        Reply::Kind(Some(KeyKind::Value)) => Shape::Value(value(broker, now, name)),
        Reply::Kind(Some(KeyKind::Hash)) => collection(broker, now, name, CollectionKind::Hash),
        Reply::Kind(Some(KeyKind::Set)) => collection(broker, now, name, CollectionKind::Set),
        Reply::Kind(Some(KeyKind::SortedSet)) => {
            collection(broker, now, name, CollectionKind::SortedSet)
        }
        Reply::Kind(Some(KeyKind::Stream)) => Shape::Stream(stream(broker, now, name)),
        other => panic!("{name} is a key and {other:?}"),
    };
    match ask(broker, now, key(KeyCommand::Lifetime { name: name.clone() })) {
        Reply::Lifetime(Lifetime { at, .. }) => KeySnapshot { content, deadline: at },
        other => panic!("{name} is a key and {other:?}"),
    }
}

/// The left end first: the right one is the queue's head. By pages: each shows at least one
/// message, even a large one.
fn list<F: Clone>(broker: &mut Paged<F>, now: Nanos, name: &QueueName) -> Vec<Rc<[u8]>> {
    let all = page(broker, now, name.clone());
    all.iter().rev().map(|shown| shown.delivery.payload().into()).collect()
}

fn value<F: Clone>(broker: &mut Paged<F>, now: Nanos, name: &QueueName) -> Rc<[u8]> {
    match ask(broker, now, key(KeyCommand::Value { name: name.clone(), take: false })) {
        Reply::Value(Some(value)) => Rc::from(&*value),
        other => panic!("{name} is a value and {other:?}"),
    }
}

/// By one entry and one pending entry at a time: an answer may have no room for more.
fn stream<F: Clone>(broker: &mut Paged<F>, now: Nanos, name: &QueueName) -> StreamShape {
    let of_id = |id: StreamId| (id.millis, id.sequence);
    let describe = StreamCommand::Describe { name: name.clone(), whole: None };
    let StreamReply::Stream(described) = told(broker, now, describe) else {
        panic!("{name} is a stream");
    };
    let mut shape = StreamShape { last: of_id(described.last), ..StreamShape::default() };
    let mut first = Some(StreamId::ZERO);
    while let Some(from) = first {
        let range = StreamRange { first: from, last: StreamId::MAX, max: Some(1) };
        let show = StreamCommand::Range { name: name.clone(), range, reverse: false };
        let StreamReply::Entries(entries) = told(broker, now, show) else { panic!("a range") };
        for (id, texts) in entries.iter() {
            shape.entries.insert(of_id(id), texts.into_iter().flatten().map(Rc::from).collect());
        }
        first = entries.ids().last().and_then(StreamId::next);
    }
    assert_eq!(described.length, shape.entries.len() as u64, "entries of {name}");
    let groups = StreamCommand::DescribeGroups { name: name.clone() };
    let StreamReply::Groups(groups) = told(broker, now, groups) else { panic!("groups") };
    for GroupDescription { name: group, last, pending_count, .. } in groups {
        let of = GroupName { stream: name.clone(), group: group.clone() };
        let mut its = GroupShape { last: of_id(last), ..GroupShape::default() };
        let consumers = StreamCommand::DescribeConsumers { of: of.clone() };
        let StreamReply::Consumers(all) = told(broker, now, consumers) else { panic!("consumers") };
        its.consumers.extend(all.into_iter().map(|consumer| Rc::from(&*consumer.name)));
        let mut first = Some(StreamId::ZERO);
        while let Some(from) = first {
            let range = StreamRange { first: from, last: StreamId::MAX, max: Some(1) };
            let (of, min_idle) = (of.clone(), Nanos::ZERO);
            let show = StreamCommand::ShowPending { of, range, consumer: None, min_idle };
            let StreamReply::Pending(pending) = told(broker, now, show) else { panic!("pending") };
            first = pending.last().and_then(|entry| entry.id.next());
            let pair = |entry: PendingEntry| (Rc::from(&*entry.consumer), entry.count);
            its.pending.extend(pending.into_iter().map(|entry| (of_id(entry.id), pair(entry))));
        }
        assert_eq!(pending_count, its.pending.len() as u64, "pending entries of {name}");
        shape.groups.insert(Rc::from(&*group), its);
    }
    shape
}

fn told<F: Clone>(broker: &mut Paged<F>, now: Nanos, command: StreamCommand) -> StreamReply {
    match ask(broker, now, command.into()) {
        Reply::Stream(reply) => *reply,
        other => panic!("a stream is told as {other:?}"),
    }
}

/// All that it holds, in the order in which the broker shows it.
fn collection<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    name: &QueueName,
    kind: CollectionKind,
) -> Shape {
    let show = CollectionCommand::ShowFields { name: name.clone(), kind };
    let shape = match ask(broker, now, show.into()) {
        Reply::Entries(entries) => shape_of(kind, &entries),
        Reply::Refused(Refusal::TooManyBytes { .. }) => one_by_one(broker, now, name, kind),
        other => panic!("{name} is a collection and {other:?}"),
    };
    let count = CollectionCommand::CountFields { name: name.clone(), kind };
    let found = match &shape {
        Shape::Hash(all) => all.len(),
        Shape::Set(all) => all.len(),
        Shape::SortedSet(all) => all.len(),
        other => panic!("{other:?} is no collection"),
    };
    assert_eq!(ask(broker, now, count.into()), Reply::Count(found as u64), "entries of {name}");
    shape
}

fn shape_of(kind: CollectionKind, entries: &Entries) -> Shape {
    let fields = entries.fields.iter().map(Rc::from);
    match kind {
        CollectionKind::Hash => {
            Shape::Hash(fields.zip(entries.values.iter().map(Rc::from)).collect())
        }
        CollectionKind::Set => Shape::Set(fields.collect()),
        CollectionKind::SortedSet => {
            Shape::SortedSet(fields.zip(entries.scores.iter().copied()).collect())
        }
        CollectionKind::Stream => panic!("streams are shown by commands of their own"),
    }
}

/// The same where an answer has no room for all of it: each field that there may be is sought.
fn one_by_one<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    name: &QueueName,
    kind: CollectionKind,
) -> Shape {
    let mut values: Vec<Pair> = Vec::new();
    let mut scores: Vec<(Rc<[u8]>, Score)> = Vec::new();
    let mut sought: Vec<Rc<[u8]>> = fields().collect();
    sought.sort();
    for field in sought {
        let fields = OneOrMany::from(vec![(&*field).into()]);
        let find = CollectionCommand::FindFields { name: name.clone(), kind, fields };
        match ask(broker, now, find.into()) {
            Reply::Value(value) => {
                values.extend(value.map(|value| (field, Rc::from(&*value))));
            }
            Reply::Numbers(numbers) => {
                values.extend((numbers == [Some(1)]).then(|| (field, Rc::default())));
            }
            Reply::Scores(found) => {
                scores.extend(found.into_iter().flatten().map(|score| (field.clone(), score)));
            }
            other => panic!("{name} is a collection and {other:?}"),
        }
    }
    match kind {
        CollectionKind::Hash => Shape::Hash(values),
        CollectionKind::Set => Shape::Set(values.into_iter().map(|(field, _)| field).collect()),
        CollectionKind::SortedSet => Shape::SortedSet(in_order(scores)),
        CollectionKind::Stream => panic!("streams are shown by commands of their own"),
    }
}

fn key(command: KeyCommand) -> Command {
    Command::Key(command)
}

/// More than clients give.
const NAMES_MAX: usize = 1000;
