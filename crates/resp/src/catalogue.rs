//! COMMAND: the table of commands, for clients that look up where the keys are.

use alloc::string::String;
use alloc::vec::Vec;

use model::glob;

use crate::answer::Answer;
use crate::arguments::pattern;
use crate::context::Context;
use crate::fault::Fault;
use crate::table::{self, Group, Spec};
use crate::words::Words;

type Said = Result<(), Fault>;

/// COMMAND: all of them.
pub(crate) fn command(context: &mut Context<'_>, _words: &Words) -> Said {
    let all: Vec<_> = commands().collect();
    let mut answer = context.answer();
    answer.array(all.len());
    all.into_iter().for_each(|spec| describe(spec, &mut answer));
    Ok(())
}

/// COMMAND COUNT
pub(crate) fn count(context: &mut Context<'_>, _words: &Words) -> Said {
    context.answer().count(commands().count() as u64);
    Ok(())
}

/// COMMAND INFO
pub(crate) fn info(context: &mut Context<'_>, words: &Words) -> Said {
    check_count(words)?;
    let mut answer = context.answer();
    let named = (2..words.len()).map(|at| table::lookup(&words.lower(at)));
    let wanted: Vec<_> =
        if words.len() == 2 { commands().map(Some).collect() } else { named.collect() };
    answer.array(wanted.len());
    for spec in wanted {
        match spec {
            Some(spec) => describe(spec, &mut answer),
            None => answer.null(),
        }
    }
    Ok(())
}

/// COMMAND DOCS
pub(crate) fn docs(context: &mut Context<'_>, words: &Words) -> Said {
    check_count(words)?;
    let named = (2..words.len()).filter_map(|at| table::lookup(&words.lower(at)));
    let wanted: Vec<_> = if words.len() == 2 { commands().collect() } else { named.collect() };
    let mut answer = context.answer();
    answer.map(wanted.len());
    for spec in wanted {
        answer.bulk(spec.name.as_bytes());
        answer.map(1);
        answer.bulk(b"group");
        answer.bulk(spec.group.name().as_bytes());
    }
    Ok(())
}

/// HELP: the subcommands of a command.
pub(crate) fn help(context: &mut Context<'_>, words: &Words) -> Said {
    let of = words.lower(0);
    let name_in = |spec: &'static Spec| spec.name.strip_prefix(of.as_str())?.strip_prefix('|');
    let names: Vec<_> = table::all().filter_map(name_in).collect();
    let mut head = of.to_ascii_uppercase();
    head.push_str(" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let mut answer = context.answer();
    answer.array(1 + names.len());
    answer.simple(&head);
    names.into_iter().for_each(|name| answer.simple(&name.to_ascii_uppercase()));
    Ok(())
}

/// More names than there are commands make an answer that has no bound.
fn check_count(words: &Words) -> Said {
    if words.len() - 2 > table::all().count() {
        return Err(Fault::of("ERR too many names: there are not so many commands"));
    }
    Ok(())
}

/// COMMAND LIST
pub(crate) fn list(context: &mut Context<'_>, words: &Words) -> Said {
    let filter = Filter::parse(words)?;
    let names: Vec<_> = commands().filter(|spec| filter.lets_pass(spec)).collect();
    let mut answer = context.answer();
    answer.array(names.len());
    names.into_iter().for_each(|spec| answer.bulk(spec.name.as_bytes()));
    Ok(())
}

/// The filter of COMMAND LIST.
enum Filter {
    None,
    Category(String),
    Pattern(String),
    Nothing,
}

impl Filter {
    fn parse(words: &Words) -> Result<Self, Fault> {
        match words.len() {
            2 => Ok(Self::None),
            5 if !words.is(2, "filterby") => Err(Fault::SYNTAX),
            5 if words.is(3, "module") => Ok(Self::Nothing),
            5 if words.is(3, "aclcat") => Ok(Self::Category(words.lower(4))),
            5 if words.is(3, "pattern") => {
                pattern(words.word(4)).map(|_| Self::Pattern(words.lower(4)))
            }
            _ => Err(Fault::SYNTAX),
        }
    }

    fn lets_pass(&self, spec: &Spec) -> bool {
        match self {
            Self::None => true,
            Self::Nothing => false,
            Self::Category(name) => {
                categories(spec).iter().any(|category| category.strip_prefix('@') == Some(name))
            }
            Self::Pattern(pattern) => glob::matches(pattern.as_bytes(), spec.name.as_bytes()),
        }
    }
}

/// Without subcommands.
fn commands() -> impl Iterator<Item = &'static Spec> {
    table::all().filter(|spec| !spec.name.contains('|'))
}

fn subcommands(of: &Spec) -> impl Iterator<Item = &'static Spec> {
    let prefix = [of.name, "|"].concat();
    table::all().filter(move |spec| spec.name.starts_with(&prefix))
}

fn describe(spec: &Spec, answer: &mut Answer<'_>) {
    answer.array(10);
    answer.bulk(spec.name.as_bytes());
    answer.integer(spec.arity.into());
    answer.set(spec.flags.len());
    spec.flags.iter().for_each(|flag| answer.simple(flag));
    let (first, last, step) = spec.keys;
    [first, last, step].into_iter().for_each(|place| answer.integer(place.into()));
    let categories = categories(spec);
    answer.set(categories.len());
    categories.into_iter().for_each(|category| answer.simple(category));
    // Hints, and key specifications beside the three numbers: none.
    answer.set(0);
    answer.set(0);
    let subcommands: Vec<_> = subcommands(spec).collect();
    answer.array(subcommands.len());
    subcommands.into_iter().for_each(|spec| describe(spec, answer));
}

/// The names of all categories, without their sign, in Redis's order.
pub(crate) fn category_names() -> impl Iterator<Item = &'static str> {
    CATEGORIES.into_iter()
}

const CATEGORIES: [&str; 18] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
];

/// Those that follow from its flags and its group.
pub(crate) fn categories(spec: &Spec) -> Vec<&'static str> {
    let has = |flag| spec.flags.contains(&flag);
    let of_flags = [
        ("write", "@write"),
        ("readonly", "@read"),
        ("admin", "@admin"),
        ("admin", "@dangerous"),
        ("blocking", "@blocking"),
    ];
    let mut categories: Vec<_> =
        of_flags.into_iter().filter(|(flag, _)| has(flag)).map(|(_, name)| name).collect();
    categories.push(if has("fast") { "@fast" } else { "@slow" });
    categories.extend(spec.group.category());
    categories
}

impl Group {
    /// As COMMAND DOCS names it.
    const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::List => "list",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }

    const fn category(self) -> Option<&'static str> {
        match self {
            Self::Bitmap => Some("@bitmap"),
            Self::Connection => Some("@connection"),
            Self::Generic => Some("@keyspace"),
            Self::Hash => Some("@hash"),
            Self::List => Some("@list"),
            Self::PubSub => Some("@pubsub"),
            Self::Scripting => Some("@scripting"),
            Self::Server => None,
            Self::Set => Some("@set"),
            Self::SortedSet => Some("@sortedset"),
            Self::Stream => Some("@stream"),
            Self::String => Some("@string"),
            Self::Transactions => Some("@transaction"),
        }
    }
}
