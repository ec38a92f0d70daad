//! The keys that a broker shows just after recovery, asked for command by command.

use std::rc::Rc;

use model::{
    CollectionCommand, CollectionKind, Command, Entries, KeyCommand, KeyKind, Lifetime, Nanos,
    OneOrMany, QueueName, Refusal, Reply, Score,
};

use crate::history::DEAD_LETTERS;
use crate::inspection::{ask, dead_elements, page};
use crate::keyspace::{Ages, Pair, in_order};
use crate::redis_workload::{LISTS, fields, is_list};
use crate::registration::name;
use crate::{KeySnapshot, Paged, Picture, Shape};

/// The lists, values and collections of clients of Redis, as of `now`.
pub(crate) fn picture<F: Clone>(broker: &mut Paged<F>, now: Nanos) -> Picture {
    let names = KeyCommand::Names { after: None, max: NAMES_MAX, kind: None };
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
        CollectionKind::Stream => panic!("no client makes a stream"),
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
        CollectionKind::Stream => panic!("no client makes a stream"),
    }
}

fn key(command: KeyCommand) -> Command {
    Command::Key(command)
}

/// More than clients give.
const NAMES_MAX: usize = 1000;
