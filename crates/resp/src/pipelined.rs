//! Runs: pushes to one list, pops from one, or values that are looked at, which a client has sent
//! one behind the other. They are asked of the engine at once, and each has its answer.
//!
//! The engine gives a run of pushes or pops back if others might come between; then each is
//! asked by itself.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::{from_fn, once};

use input::InputBuffer;
use model::{
    Command, Database, Element, End, KeyCommand, ListCommand, OneOrMany, QueueName, Reply, Values,
};

use crate::arguments::key;
use crate::context::Context;
use crate::fault::Fault;
use crate::query::Query;
use crate::reader::Reader;
use crate::reply_format::{Next, ReplyFormat};
use crate::words::Words;

/// Commands of one run.
const COMMANDS_MAX: usize = 64;

/// Commands that were asked at once.
#[derive(Debug)]
pub(crate) enum Pipelined {
    /// The number of pushes, of one element each.
    Pushes(u64),
    /// `count` pops of one element each.
    Pops { queue: QueueName, end: End, count: u64 },
    /// The number of reads, of one value each.
    Values(u64),
}

/// Makes a run of a command and those behind it in the input, if they are alike; `words` are those
/// of the command, and its keys are of this database. Tells how many more commands it has become.
pub(crate) fn gather(
    command: Command,
    format: &mut ReplyFormat,
    database: Database,
    words: &Words,
    reader: &Reader,
    input: &mut InputBuffer,
) -> (Command, u64) {
    let list = match (command, &*format) {
        (Command::List(list), _) => list,
        (Command::Key(KeyCommand::Value { name, take: false }), ReplyFormat::Value) => {
            let next = || reader.take_alike(input, |word| key(database, word).ok());
            let names: Vec<_> = once(name).chain(from_fn(next)).take(COMMANDS_MAX).collect();
            let count = names.len() as u64;
            *format = ReplyFormat::Pipelined(Pipelined::Values(count));
            return (Command::Key(KeyCommand::ValueEach { names }), count - 1);
        }
        (command, _) => return (command, 0),
    };
    let (list, more) = match (list, &*format) {
        (
            ListCommand::Push {
                queue,
                end,
                elements: OneOrMany::One(first),
                only_existing: false,
                persistence,
            },
            ReplyFormat::Count,
        ) => {
            let mut elements = Vec::with_capacity(COMMANDS_MAX);
            elements.push(first);
            while elements.len() < COMMANDS_MAX
                && let Some(element) = reader.take_alike(input, |word| Some(Arc::from(word)))
            {
                elements.push(element);
            }
            let count = elements.len() as u64;
            *format = ReplyFormat::Pipelined(Pipelined::Pushes(count));
            let elements = OneOrMany::Many(elements);
            (ListCommand::PushEach { queue, end, elements, persistence }, count - 1)
        }
        (ListCommand::Pop { queue, end, max: 1 }, ReplyFormat::One) => {
            let is_same = |word: &[u8]| (word == words.word(1)).then_some(());
            let mut count = 1;
            while count < COMMANDS_MAX as u64 && reader.take_alike(input, is_same).is_some() {
                count += 1;
            }
            *format = ReplyFormat::Pipelined(Pipelined::Pops { queue: queue.clone(), end, count });
            (ListCommand::PopEach { queue, end, max: count }, count - 1)
        }
        (list, _) => (list, 0),
    };
    (Command::List(list), more)
}

impl Pipelined {
    /// Words a reply, command by command.
    pub(crate) fn word(self, reply: Reply, context: &mut Context<'_>) -> Next {
        match (self, reply) {
            (_, Reply::NotBatchable(run)) => return Next::AskEach(apart(*run)),
            (Self::Pushes(count), Reply::Count(last)) => {
                let mut answer = context.answer();
                (last.saturating_sub(count) + 1..=last).for_each(|count| answer.count(count));
            }
            (Self::Pops { queue, end, count }, Reply::Elements(elements)) => {
                let mut answer = context.answer();
                elements.iter().for_each(|element| answer.bulk(Element::payload(element)));
                let left = count.saturating_sub(elements.len() as u64);
                if left > 0 {
                    return Next::Ask(pops(queue, end, left));
                }
            }
            (Self::Values(_), Reply::Values(values)) => {
                let Values { found, rest } = *values;
                for each in found {
                    match each {
                        Ok(Some(value)) => context.answer().bulk(&value),
                        Ok(None) => context.answer().null(),
                        Err(refusal) => context.refuse(&Fault::refused(&refusal)),
                    }
                }
                if !rest.is_empty() {
                    return Next::Ask(looks(rest));
                }
            }
            (Self::Pops { count, .. }, Reply::NotFound) => {
                let mut answer = context.answer();
                (0..count).for_each(|_| answer.null());
            }
            (run, reply) => {
                let fault = match reply {
                    Reply::Refused(refusal) => Fault::refused(&refusal),
                    _ => Fault::INTERNAL,
                };
                (0..run.count()).for_each(|_| context.refuse(&fault));
            }
        }
        Next::Said
    }

    const fn count(&self) -> u64 {
        match self {
            Self::Pushes(count) | Self::Pops { count, .. } | Self::Values(count) => *count,
        }
    }
}

fn pops(queue: QueueName, end: End, count: u64) -> Query {
    let run = ListCommand::PopEach { queue: queue.clone(), end, max: count };
    Query::list(run, ReplyFormat::Pipelined(Pipelined::Pops { queue, end, count }))
}

fn looks(names: Vec<QueueName>) -> Query {
    let run = Pipelined::Values(names.len() as u64);
    Query::key(KeyCommand::ValueEach { names }, ReplyFormat::Pipelined(run))
}

/// The commands of a run.
fn apart(run: ListCommand) -> Vec<Query> {
    match run {
        ListCommand::PushEach { queue, end, elements, persistence } => {
            let push = |element| {
                let elements = OneOrMany::One(element);
                let queue = queue.clone();
                ListCommand::Push { queue, end, elements, only_existing: false, persistence }
            };
            elements.into_iter().map(|it| Query::list(push(it), ReplyFormat::Count)).collect()
        }
        ListCommand::PopEach { queue, end, max } => {
            let pop = || ListCommand::Pop { queue: queue.clone(), end, max: 1 };
            (0..max).map(|_| Query::list(pop(), ReplyFormat::One)).collect()
        }
        _ => Vec::new(),
    }
}
