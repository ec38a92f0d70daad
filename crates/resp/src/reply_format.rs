//! The engine's replies in Redis's words.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use model::{
    Command, Database, Element, KeyCommand, KeyKind, Lifetime, ListCommand, Nanos, QueueName,
    Refusal, Reply, ScriptValue,
};

use crate::answer::Answer;
use crate::collection_format::CollectionFormat;
use crate::context::Context;
use crate::cursors::Place;
use crate::fault::Fault;
use crate::information::{self, Sections};
use crate::key_names::key_of;
use crate::keys::{self, Clock, Names};
use crate::pipelined::Pipelined;
use crate::query::Query;
use crate::room;
use crate::script_values::say_value;
use crate::stream_format::StreamFormat;
use crate::strings::{Part, Told};
use crate::topics;

/// The meaning of the reply to a question.
#[derive(Debug)]
pub(crate) enum ReplyFormat {
    /// `OK`; if nothing was found, there is no such key.
    Okay,
    Count,
    /// The reply of LINSERT: no pivot is -1, no list 0.
    Inserted,
    /// An element or nothing.
    One,
    /// The same of a command that waited, which has another form for nothing.
    OneAwaited,
    /// Elements, or nothing if there is no list.
    Many,
    /// Elements, none if there is no list.
    Range,
    /// A list and its element, or nothing.
    Pair,
    /// A list and its elements, or nothing.
    Several,
    Place,
    Places,
    Trimmed(Box<ListCommand>),
    /// The number of keys that were deleted or counted.
    Names(Names),
    AllDeleted(Option<Database>),
    /// A count, or nothing if there is no key.
    CountOrNull,
    /// The only name, or nothing.
    AnyKey,
    /// 1 of a key that is there, or this error.
    OfObject(Option<&'static str>),
    /// Whether all is on the device, and that no replica has it.
    Synced(bool),
    /// 1 if it was done, 0 if a condition forbade it.
    WhetherDone,
    /// The same, and 0 if there is no such key.
    WhetherMoved,
    Kind,
    /// The form of a key of this name, by its kind; that of a value is seen in its bytes.
    Encoding(QueueName),
    EncodingOfValue,
    Keys(Listing),
    Scan(Scan),
    Lifetime(Clock),
    Value,
    /// Several values, each whole or nothing.
    Values,
    /// Something about a value.
    Part(Part),
    Number,
    Numbers,
    /// The only one of these.
    FirstNumber,
    Set,
    Old,
    WhetherSet,
    /// Something about a hash, a set or a sorted set.
    Collection(CollectionFormat),
    /// Something about a stream.
    Stream(StreamFormat),
    Information(Sections),
    /// The reply of PUBSUB CHANNELS: the channels that match.
    Channels(Box<[u8]>),
    /// The reply of PUBSUB NUMSUB.
    Subscribers(Vec<QueueName>),
    /// The result of a script.
    Scripted,
    /// The replies of several commands.
    Pipelined(Pipelined),
}

/// How far KEYS has come.
#[derive(Debug)]
pub(crate) struct Listing {
    database: Database,
    pattern: Box<[u8]>,
    found: Vec<QueueName>,
    bytes: usize,
}

/// The filter of SCAN.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) pattern: Option<Box<[u8]>>,
    /// No key is of the type that was asked for.
    pub(crate) none: bool,
}

/// The result of a reply.
pub(crate) enum Next {
    /// The peer was answered.
    Said,
    /// It takes another question.
    Ask(Query),
    /// It takes others, one after the other, each for an answer of its own.
    AskEach(Vec<Query>),
}

impl ReplyFormat {
    /// Words a reply.
    pub(crate) fn word(self, reply: Reply, context: &mut Context<'_>) -> Next {
        let format = match self {
            Self::Pipelined(run) => return run.word(reply, context),
            format => format,
        };
        match format.try_word(reply, context) {
            Ok(next) => next,
            Err(fault) => {
                context.refuse(&fault);
                Next::Said
            }
        }
    }

    /// The same in a transaction, where nothing waits and nothing has the form of it.
    pub(crate) fn at_once(self) -> Self {
        if let Self::OneAwaited = self { Self::One } else { self }
    }

    /// The question that may follow this one. A transaction asks it as well, for nothing follows
    /// there.
    pub(crate) fn second_question(&self) -> Option<Command> {
        let Self::Encoding(name) = self else { return None };
        Some(keys::encoding_of_value(name.clone()).command)
    }

    /// Bytes that it holds in memory while its reply is awaited.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Keys(listing) => listing.bytes,
            Self::Names(names) => names.held_bytes(),
            Self::Subscribers(names) => names_bytes(names),
            _ => 0,
        }
    }

    fn try_word(self, reply: Reply, context: &mut Context<'_>) -> Result<Next, Fault> {
        let reply = match (&self, reply) {
            (Self::EncodingOfValue, Reply::Refused(Refusal::WrongKind)) => {
                // Another client made it a key of another kind in between.
                context.answer().null();
                return Ok(Next::Said);
            }
            (Self::Collection(format), Reply::Refused(refusal)) => {
                return Err(format.fault(&refusal));
            }
            (Self::Stream(format), Reply::Refused(refusal)) => {
                return Err(format.fault(&refusal));
            }
            (_, Reply::Refused(refusal)) => return Err(Fault::refused(&refusal)),
            (_, Reply::TimedOut { .. }) if context.client().unblock_by_error() => {
                return Err(Fault::of("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
            }
            (_, reply) => reply,
        };
        match self {
            Self::Keys(listing) => listing.go_on(reply, context),
            Self::Scan(scan) => scan.word(reply, context).map(|()| Next::Said),
            Self::Names(names) => match names.go_on(&reply)? {
                Ok(query) => Ok(Next::Ask(query)),
                Err(count) => {
                    context.answer().count(count);
                    Ok(Next::Said)
                }
            },
            Self::Trimmed(command) => trimmed(command, &reply, context),
            Self::Scripted => scripted(reply, context).map(|()| Next::Said),
            Self::AllDeleted(database) => all_deleted(database, &reply, context),
            Self::Encoding(name) => encoding(name, &reply, context),
            Self::Collection(format) => format.word(reply, context),
            Self::Stream(format) => format.word(reply, context),
            Self::Information(sections) => {
                information::word(sections, &reply, context).map(|()| Next::Said)
            }
            simple => simple.say(reply, &mut context.answer()).map(|()| Next::Said),
        }
    }

    /// Words one reply by itself.
    fn say(self, reply: Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Okay, Reply::Done) => answer.ok(),
            (Self::Okay, Reply::NotFound) => return Err(Fault::NO_SUCH_KEY),
            (Self::WhetherDone | Self::WhetherMoved, Reply::Done) => answer.integer(1),
            (Self::WhetherMoved, Reply::NotFound | Reply::Count(_)) => answer.integer(0),
            (Self::WhetherDone, Reply::NotFound) => return Err(Fault::NO_SUCH_KEY),
            (Self::WhetherDone | Self::Count, Reply::Count(count)) => answer.count(count),
            (Self::Inserted, Reply::Count(0)) => answer.integer(-1),
            (Self::Inserted, Reply::Count(count)) => answer.count(count),
            (Self::Inserted, Reply::NotFound) => answer.integer(0),
            (Self::One | Self::OneAwaited, Reply::Elements(elements)) => one(&elements, answer),
            (Self::One, Reply::NotFound | Reply::TimedOut { .. }) => answer.null(),
            (Self::Many | Self::Range, Reply::Elements(elements)) => many(&elements, answer),
            (Self::Range, Reply::NotFound) => answer.array(0),
            (Self::Many, Reply::NotFound)
            | (Self::OneAwaited | Self::Pair | Self::Several, Reply::TimedOut { .. }) => {
                answer.null_array();
            }
            (Self::Pair, Reply::Popped { queue, elements }) => pair(&queue, &elements, answer),
            (Self::Several, Reply::Popped { queue, elements }) => {
                answer.array(2);
                answer.bulk(&key_of(&queue));
                many(&elements, answer);
            }
            (Self::Place, Reply::Places(places)) => match places.first() {
                Some(place) => answer.count(*place),
                None => answer.null(),
            },
            (Self::Places, Reply::Places(places)) => {
                answer.array(places.len());
                places.into_iter().for_each(|place| answer.count(place));
            }
            (Self::Kind, Reply::Kind(kind)) => answer.simple(kind_name(kind)),
            (Self::Lifetime(clock), Reply::Lifetime(lifetime)) => {
                answer.integer(remaining(clock, lifetime));
            }
            (Self::Lifetime(_), Reply::NotFound) => answer.integer(-2),
            (Self::Channels(pattern), Reply::Subscriptions(all)) => {
                topics::say_channels(&pattern, &all, answer);
            }
            (Self::Subscribers(names), Reply::Subscriptions(all)) => {
                topics::say_subscribers(&names, &all, answer);
            }
            (format, reply) => return format.say_fact(reply, answer),
        }
        Ok(())
    }

    /// The same where it is about a key or the server.
    fn say_fact(self, reply: Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::CountOrNull, Reply::Count(count)) => answer.count(count),
            (Self::CountOrNull, Reply::NotFound) => answer.null(),
            (Self::AnyKey, Reply::Names { names, .. }) => {
                bulk_or_null(names.first().map(key_of).as_deref(), answer);
            }
            (Self::OfObject(_), Reply::Kind(None)) => answer.null(),
            (Self::OfObject(None), Reply::Kind(Some(_))) => answer.integer(1),
            (Self::OfObject(Some(error)), Reply::Kind(Some(_))) => return Err(Fault::of(error)),
            (Self::Synced(local), Reply::Done) => {
                answer.array(2);
                answer.integer(i64::from(local));
                answer.integer(0);
            }
            (format, reply) => return format.say_value(reply, answer),
        }
        Ok(())
    }

    /// The same where it is about values.
    fn say_value(self, reply: Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Value, Reply::Value(value)) => bulk_or_null(value.as_deref(), answer),
            (Self::EncodingOfValue, Reply::Value(value)) => {
                bulk_or_null(value.map(|value| keys::encoding_of(&value).as_bytes()), answer);
            }
            (Self::Part(part), Reply::Value(value)) => match part.of(value.as_ref()) {
                Told::Number(number) => answer.integer(number),
                Told::Bytes(bytes) => answer.bulk(bytes),
            },
            (Self::Values, Reply::Values(values)) => {
                answer.array(values.found.len());
                for value in values.found {
                    bulk_or_null(value.ok().flatten().as_deref(), answer);
                }
            }
            (Self::Number, Reply::Integer(number)) => answer.integer(number),
            (Self::Numbers, Reply::Numbers(numbers)) => {
                answer.array(numbers.len());
                numbers.into_iter().for_each(|number| integer_or_null(number, answer));
            }
            (Self::FirstNumber, Reply::Numbers(numbers)) => {
                integer_or_null(numbers.first().copied().flatten(), answer);
            }
            (Self::Old, Reply::Replaced { old, .. }) => bulk_or_null(old.as_deref(), answer),
            (Self::Old | Self::Set, Reply::NotFound)
            | (Self::Set, Reply::Replaced { set: false, .. }) => answer.null(),
            (Self::Set, Reply::Replaced { set: true, .. }) => answer.ok(),
            (Self::WhetherSet, Reply::Replaced { set, .. }) => answer.integer(i64::from(set)),
            (Self::WhetherSet, Reply::NotFound) => answer.integer(0),
            _ => return Err(Fault::INTERNAL),
        }
        Ok(())
    }
}

fn one(elements: &[Element], answer: &mut Answer<'_>) {
    bulk_or_null(elements.first().map(Element::payload), answer);
}

fn many(elements: &[Element], answer: &mut Answer<'_>) {
    answer.array(elements.len());
    elements.iter().for_each(|element| answer.bulk(element.payload()));
}

fn pair(queue: &QueueName, elements: &[Element], answer: &mut Answer<'_>) {
    answer.array(2);
    answer.bulk(&key_of(queue));
    one(elements, answer);
}

fn bulk_or_null(bytes: Option<&[u8]>, answer: &mut Answer<'_>) {
    match bytes {
        Some(bytes) => answer.bulk(bytes),
        None => answer.null(),
    }
}

fn integer_or_null(number: Option<i64>, answer: &mut Answer<'_>) {
    match number {
        Some(number) => answer.integer(number),
        None => answer.null(),
    }
}

const fn kind_name(kind: Option<KeyKind>) -> &'static str {
    match kind {
        None => "none",
        Some(KeyKind::List) => "list",
        Some(KeyKind::Value) => "string",
        Some(KeyKind::Hash) => "hash",
        Some(KeyKind::Set) => "set",
        Some(KeyKind::SortedSet) => "zset",
        Some(KeyKind::Stream) => "stream",
    }
}

fn encoding(name: QueueName, reply: &Reply, context: &mut Context<'_>) -> Result<Next, Fault> {
    let Reply::Kind(kind) = reply else { return Err(Fault::INTERNAL) };
    let mut answer = context.answer();
    match kind {
        Some(KeyKind::Value) => return Ok(Next::Ask(keys::encoding_of_value(name))),
        Some(KeyKind::List) => answer.bulk(b"quicklist"),
        Some(KeyKind::Hash | KeyKind::Set) => answer.bulk(b"hashtable"),
        Some(KeyKind::SortedSet) => answer.bulk(b"skiplist"),
        Some(KeyKind::Stream) => answer.bulk(b"stream"),
        None => answer.null(),
    }
    Ok(Next::Said)
}

/// TTL and its kin: seconds are rounded to the nearest.
fn remaining(clock: Clock, lifetime: Lifetime) -> i64 {
    let time = match clock {
        Clock::SecondsFromNow | Clock::MillisFromNow => lifetime.left,
        Clock::UnixSeconds | Clock::UnixMillis => lifetime.at,
    };
    let Some(Nanos(time)) = time else { return -1 };
    let millis = time / 1_000_000;
    let number = match clock {
        Clock::SecondsFromNow | Clock::UnixSeconds => (millis + 500) / 1_000,
        Clock::MillisFromNow | Clock::UnixMillis => millis,
    };
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn scripted(reply: Reply, context: &mut Context<'_>) -> Result<(), Fault> {
    match reply {
        Reply::Scripted(value) => match *value {
            ScriptValue::Error(text) => return Err(Fault(text.into())),
            value => say_value(&value, &mut context.answer()),
        },
        _ => return Err(Fault::INTERNAL),
    }
    Ok(())
}

fn trimmed(
    command: Box<ListCommand>,
    reply: &Reply,
    context: &mut Context<'_>,
) -> Result<Next, Fault> {
    match reply {
        Reply::Count(_) => {
            context.answer().ok();
            Ok(Next::Said)
        }
        Reply::CountSoFar(_) => {
            let again = Command::List(ListCommand::clone(&command));
            Ok(Next::Ask(Query { command: again, format: ReplyFormat::Trimmed(command) }))
        }
        _ => Err(Fault::INTERNAL),
    }
}

fn all_deleted(
    database: Option<Database>,
    reply: &Reply,
    context: &mut Context<'_>,
) -> Result<Next, Fault> {
    match reply {
        Reply::Done => {
            context.answer().ok();
            Ok(Next::Said)
        }
        Reply::CountSoFar(_) => {
            let rest = KeyCommand::DeleteAll { database };
            Ok(Next::Ask(Query::key(rest, ReplyFormat::AllDeleted(database))))
        }
        _ => Err(Fault::INTERNAL),
    }
}

impl Listing {
    pub(crate) fn new(database: Database, pattern: &[u8]) -> Self {
        Self { database, pattern: pattern.into(), found: Vec::new(), bytes: 0 }
    }

    fn go_on(mut self, reply: Reply, context: &mut Context<'_>) -> Result<Next, Fault> {
        let Reply::Names { names, next } = reply else { return Err(Fault::INTERNAL) };
        let found = keys::matching(&self.pattern, names);
        self.bytes += names_bytes(&found);
        self.found.extend(found);
        if self.bytes > context.shared.options.reply_bytes_max {
            return Err(Fault::of("ERR too many keys for one answer: use SCAN"));
        }
        if let Some(after) = next {
            let command = keys::next_names(self.database, Some(after), &self.pattern);
            return Ok(Next::Ask(Query::key(command, ReplyFormat::Keys(self))));
        }
        say_names(&self.found, &mut context.answer());
        Ok(Next::Said)
    }
}

impl Scan {
    fn word(self, reply: Reply, context: &mut Context<'_>) -> Result<(), Fault> {
        let Reply::Names { names, next } = reply else { return Err(Fault::INTERNAL) };
        let cursor = next.filter(|_| !self.none).map(Place::Key);
        let cursor = cursor.map_or(0, |place| context.remember(place));
        let names = match self.pattern {
            _ if self.none => Vec::new(),
            Some(pattern) => keys::matching(&pattern, names),
            None => names,
        };
        let mut answer = context.answer();
        answer.array(2);
        answer.bulk(cursor.to_string().as_bytes());
        say_names(&names, &mut answer);
        Ok(())
    }
}

fn say_names(names: &[QueueName], answer: &mut Answer<'_>) {
    answer.make_room(room::of_bulks(names.iter().map(|name| name.as_str().len())));
    answer.array(names.len());
    names.iter().for_each(|name| answer.bulk(&key_of(name)));
}

fn names_bytes(names: &[QueueName]) -> usize {
    names.iter().map(|name| name.as_str().len() + size_of::<QueueName>()).sum()
}
