//! Commands and replies about keys, in the language of the scripts.

use model::{
    Command, Deadline, DeadlineRule, KeyCommand, KeyKind, Lifetime, QueueName, Reply, SetRule,
    Subscription, ValueDeadline,
};

use super::script::{Words, destination, link, name, shown_time, time};

/// The command of these words, if it is about keys.
pub(crate) fn command(all: &Words<'_>, words: &[&str]) -> Option<Command> {
    let named = |name| all.named.get(name).copied();
    let key = match *words {
        ["kind", key] => KeyCommand::Kind { name: name(key) },
        ["count-of", ref keys @ ..] => KeyCommand::CountOf { names: names(keys) },
        ["del", ref keys @ ..] => KeyCommand::Delete { names: names(keys) },
        ["del-all"] => KeyCommand::DeleteAll { database: None },
        ["rename", from, to] => {
            let only_new = named("new") == Some("yes");
            KeyCommand::Rename { from: name(from), to: name(to), only_new }
        }
        ["deadline", key] => KeyCommand::SetDeadline {
            name: name(key),
            deadline: deadline(all).unwrap(),
            rule: deadline_rule(named("rule").unwrap_or("always")),
        },
        ["persist", key] => KeyCommand::ClearDeadline { name: name(key) },
        ["lifetime", key] => KeyCommand::Lifetime { name: name(key) },
        ["names"] => KeyCommand::Names {
            database: None,
            after: named("after").map(name),
            max: named("max").map_or(1000, |max| max.parse().unwrap()),
            kind: named("kind").map(kind),
        },
        ["keys"] => KeyCommand::CountAll { database: None },
        ["set", key, value] => KeyCommand::SetValue {
            name: name(key),
            value: value.as_bytes().into(),
            deadline: match deadline(all) {
                Some(deadline) => ValueDeadline::New(deadline),
                None if named("keep") == Some("yes") => ValueDeadline::Kept,
                None => ValueDeadline::Never,
            },
            rule: match named("rule") {
                None => SetRule::Always,
                Some("none") => SetRule::IfNone,
                Some("some") => SetRule::IfSome,
                Some(other) => panic!("{other}"),
            },
            want_old: named("old") == Some("yes"),
        },
        ["get", key] => KeyCommand::Value { name: name(key), take: named("take") == Some("yes") },
        ["psubscribe", consumer, pattern] => {
            let link = link(consumer);
            return Some(Command::Subscribe {
                link,
                subscription: Subscription::of_glob(name(pattern)).into(),
            });
        }
        ["publish", topic, body] => {
            let topic = destination(topic).name().clone();
            return Some(Command::Publish { topic, message: all.new_message(body) });
        }
        _ => return None,
    };
    Some(Command::Key(key))
}

pub(crate) fn shown_reply(reply: &Reply) -> Option<String> {
    Some(match reply {
        Reply::Kind(None) => "no key".to_owned(),
        Reply::Kind(Some(KeyKind::List)) => "a list".to_owned(),
        Reply::Kind(Some(KeyKind::Value)) => "a value".to_owned(),
        Reply::Lifetime(Lifetime { at: Some(at), left: Some(left) }) => {
            format!("goes at {} in {}", shown_time(*at), shown_time(*left))
        }
        Reply::Lifetime(_) => "stays".to_owned(),
        Reply::Names { names, next } => {
            let names = names.iter().map(QueueName::as_str);
            let names = ["names"].into_iter().chain(names).collect::<Vec<_>>().join(" ");
            next.as_ref().map_or(names.clone(), |next| format!("{names}, next after {next}"))
        }
        Reply::Value(value) => shown_value(value.as_deref()),
        Reply::Replaced { set, old } => {
            let set = if *set { "set" } else { "not set" };
            let old = old.as_deref().map(|old| format!(", {} before", shown_value(Some(old))));
            format!("{set}{}", old.unwrap_or_default())
        }
        _ => return None,
    })
}

fn shown_value(value: Option<&[u8]>) -> String {
    value.map_or("no value".to_owned(), |value| format!("value {}", value.escape_ascii()))
}

fn names(words: &[&str]) -> Vec<QueueName> {
    words.iter().map(|word| name(word)).collect()
}

fn deadline(all: &Words<'_>) -> Option<Deadline> {
    let after = all.named.get("after").map(|span| Deadline::After(time(span)));
    after.or_else(|| all.named.get("at").map(|at| Deadline::At(time(at))))
}

fn deadline_rule(word: &str) -> DeadlineRule {
    match word {
        "always" => DeadlineRule::Always,
        "none" => DeadlineRule::IfNone,
        "some" => DeadlineRule::IfSome,
        "later" => DeadlineRule::IfLater,
        "earlier" => DeadlineRule::IfEarlier,
        "some-earlier" => DeadlineRule::IfSomeEarlier,
        other => panic!("{other}"),
    }
}

fn kind(word: &str) -> KeyKind {
    match word {
        "list" => KeyKind::List,
        "value" => KeyKind::Value,
        other => panic!("{other}"),
    }
}
