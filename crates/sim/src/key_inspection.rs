//! The keys that a broker shows just after recovery, asked for command by command.

use std::rc::Rc;

use model::{Command, KeyCommand, KeyKind, Lifetime, Nanos, QueueName, Reply};

use crate::history::DEAD_LETTERS;
use crate::inspection::{ask, dead_elements, page};
use crate::keyspace::Ages;
use crate::redis_workload::{LISTS, is_list};
use crate::registration::name;
use crate::{KeySnapshot, Paged, Picture, Shape};

/// The lists and values of clients of Redis, as of `now`.
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

fn key(command: KeyCommand) -> Command {
    Command::Key(command)
}

/// More than clients give.
const NAMES_MAX: usize = 1000;
