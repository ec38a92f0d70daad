//! Lists and batches, in the language of the scripts.

use model::{Command, Element, End, ListCommand, Nanos, QueueName, Reply};

use super::script::{Words, body, name, shown_reply as shown, time};

/// The command of these words, if it is about lists.
pub(crate) fn command(all: &Words<'_>, words: &[&str]) -> Option<Command> {
    if let ["observe", ref keys @ ..] = *words {
        return Some(Command::Observe { names: names(keys) });
    }
    if words == ["unobserve"] {
        return Some(Command::Unobserve);
    }
    list_command(all, words).map(Command::List)
}

/// The commands of a line after its `batch`, parted by `/`.
pub(crate) fn batch(line: &str) -> Command {
    let parts = line.split(" / ").map(Words::new);
    Command::Batch { commands: parts.map(|words| words.command(&words.placed)).collect() }
}

fn list_command(all: &Words<'_>, words: &[&str]) -> Option<ListCommand> {
    let number = |name| all.named.get(name).map(|number| number.parse::<u64>().unwrap());
    let wait = || all.named.get("wait").map(|span| time(span));
    let end_of = |name| all.named.get(name).map_or(End::Head, |word| end(word));
    let persistence = all.persistence();
    Some(match *words {
        ["push", queue, at, ref elements @ ..] => ListCommand::Push {
            queue: name(queue),
            end: end(at),
            elements: elements.iter().map(|element| body(element)).collect(),
            only_existing: all.named.contains_key("existing"),
            persistence,
        },
        ["pop", queue, at] => {
            let max = number("max").unwrap_or(1);
            ListCommand::Pop { queue: name(queue), end: end(at), max }
        }
        ["push-each", queue, at, ref elements @ ..] => {
            let elements = elements.iter().map(|element| body(element)).collect();
            ListCommand::PushEach { queue: name(queue), end: end(at), elements, persistence }
        }
        ["pop-each", queue, at] => {
            let max = number("max").unwrap();
            ListCommand::PopEach { queue: name(queue), end: end(at), max }
        }
        ["pop-first", at, ref queues @ ..] => {
            let (max, wait) = (number("max").unwrap_or(1), wait());
            ListCommand::PopFirst { queues: names(queues), end: end(at), max, wait }
        }
        ["pass", from, from_end, to, to_end] => ListCommand::Move {
            from: name(from),
            from_end: end(from_end),
            to: name(to),
            to_end: end(to_end),
            wait: Some(wait().unwrap_or(Nanos::ZERO)),
        },
        ["cancel-pop"] => ListCommand::CancelPop,
        ["length", queue] => ListCommand::Length { queue: name(queue) },
        ["range", queue, first, last] => ListCommand::Range {
            queue: name(queue),
            origin: end_of("from"),
            first: first.parse().unwrap(),
            last: last.parse().unwrap(),
        },
        ["replace", queue, at, element] => ListCommand::Replace {
            queue: name(queue),
            origin: end_of("from"),
            at: at.parse().unwrap(),
            element: body(element),
            persistence,
        },
        ["insert", queue, pivot, towards, element] => ListCommand::Insert {
            queue: name(queue),
            origin: end_of("from"),
            pivot: body(pivot),
            towards: end(towards),
            element: body(element),
            persistence,
        },
        ["remove", queue, element] => ListCommand::Remove {
            queue: name(queue),
            origin: end_of("from"),
            element: body(element),
            max: number("max").unwrap_or(u64::MAX),
        },
        ["keep", queue, first, last] => ListCommand::Keep {
            queue: name(queue),
            origin: end_of("from"),
            first: first.parse().unwrap(),
            last: last.parse().unwrap(),
        },
        ["locate", queue, element] => ListCommand::Locate {
            queue: name(queue),
            origin: end_of("origin"),
            from: end_of("from"),
            element: body(element),
            skip: number("skip").unwrap_or(0),
            max: number("max").unwrap_or(u64::MAX),
            scan_max: number("scan"),
        },
        _ => return None,
    })
}

/// A reply about lists in words, if it is one.
pub(crate) fn shown_reply(reply: &Reply) -> Option<String> {
    Some(match reply {
        Reply::Elements(elements) => format!("elements{}", shown_elements(elements)),
        Reply::Popped { queue, elements } => {
            format!("popped of {queue}{}", shown_elements(elements))
        }
        Reply::NotBatchable(_) => "apart".into(),
        Reply::Places(places) => {
            let places = places.iter().map(|place| format!(" {place}"));
            format!("places{}", places.collect::<String>())
        }
        Reply::Batch(replies) => {
            format!("batch: {}", replies.iter().map(shown).collect::<Vec<_>>().join(" / "))
        }
        Reply::Stale => "stale".to_owned(),
        _ => return None,
    })
}

fn shown_elements(elements: &[Element]) -> String {
    elements.iter().map(|element| format!(" {}", element.payload().escape_ascii())).collect()
}

fn end(word: &str) -> End {
    match word {
        "head" => End::Head,
        "tail" => End::Tail,
        other => panic!("{other} is not an end"),
    }
}

fn names(words: &[&str]) -> Vec<QueueName> {
    words.iter().map(|word| name(word)).collect()
}
