//! The engine's replies about streams in Redis's words.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;

use model::{
    ConsumerDescription, GroupDescription, Nanos, PendingCounts, PendingEntry, QueueName, Refusal,
    Reply, StreamCommand, StreamDescription, StreamEntries, StreamId, StreamRefusal, StreamReply,
};

use crate::answer::Answer;
use crate::context::Context;
use crate::fault::{Fault, printed};
use crate::key_names::key_of;
use crate::query::Query;
use crate::reply_format::{Next, ReplyFormat};

/// The meaning of a reply about a stream.
#[derive(Debug)]
pub(crate) struct StreamFormat {
    pub(crate) told: Told,
    /// The group that has to be there, and what is said if it is not.
    pub(crate) group: Option<(NoGroup, Arc<[u8]>)>,
}

/// The subject of a reply about a stream.
#[derive(Debug)]
pub(crate) enum Told {
    /// The id of a new entry, or nothing.
    Id,
    Okay,
    Count,
    /// The same, where a large command is asked in parts.
    CountOf {
        command: Box<StreamCommand>,
        so_far: u64,
    },
    Entries,
    Ids,
    /// Nothing, be it of a stream that is there or not.
    NothingOf,
    /// Streams with entries, or nothing.
    Read,
    Claimed,
    ClaimedIds,
    PendingCounts,
    Pending,
    Stream,
    Groups,
    Consumers,
}

/// The words for a group that is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoGroup {
    InRead,
    OrKey,
    ForKey,
}

impl From<Told> for StreamFormat {
    fn from(told: Told) -> Self {
        Self { told, group: None }
    }
}

impl From<Told> for ReplyFormat {
    fn from(told: Told) -> Self {
        Self::Stream(told.into())
    }
}

impl From<StreamFormat> for ReplyFormat {
    fn from(format: StreamFormat) -> Self {
        Self::Stream(format)
    }
}

impl StreamFormat {
    /// A command that is asked again until all of it is done.
    pub(crate) fn counting(command: StreamCommand, group: Option<(NoGroup, Arc<[u8]>)>) -> Query {
        let told = Told::CountOf { command: Box::new(command.clone()), so_far: 0 };
        Query::stream(command, Self { told, group })
    }

    /// A refusal in Redis's words.
    pub(crate) fn fault(&self, refusal: &Refusal) -> Fault {
        match (refusal, &self.group) {
            (Refusal::Stream(StreamRefusal::NoSuchGroup(stream)), Some((no_group, group))) => {
                no_group.fault(stream, group)
            }
            _ => Fault::refused(refusal),
        }
    }

    /// Words a reply that is no refusal.
    pub(crate) fn word(self, reply: Reply, context: &mut Context<'_>) -> Result<Next, Fault> {
        let Self { told, group } = self;
        match (told, reply) {
            (Told::CountOf { command, so_far }, Reply::CountSoFar(more)) => {
                let told = Told::CountOf { command: command.clone(), so_far: so_far + more };
                return Ok(Next::Ask(Query::stream(*command, Self { told, group })));
            }
            (told, Reply::Stream(reply)) => told.say(*reply, &mut context.answer())?,
            (told, reply) => told.say_simple(&reply, &mut context.answer())?,
        }
        Ok(Next::Said)
    }
}

impl NoGroup {
    fn fault(self, stream: &QueueName, group: &[u8]) -> Fault {
        let key = key_of(stream);
        let (key, group) = (printed(&key, usize::MAX), printed(group, usize::MAX));
        let (first, between, last): (&str, &str, &str) = match self {
            Self::InRead => {
                let last = "' in XREADGROUP with GROUP option";
                ("NOGROUP No such key '", "' or consumer group '", last)
            }
            Self::OrKey => ("NOGROUP No such key '", "' or consumer group '", "'"),
            Self::ForKey => ("NOGROUP No such consumer group '", "' for key name '", "'"),
        };
        let (one, two) = if let Self::ForKey = self { (group, key) } else { (key, group) };
        Fault::about(first, &[one, between.as_bytes(), two].concat(), last)
    }
}

impl Told {
    fn say_simple(self, reply: &Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Okay, Reply::Done) => answer.ok(),
            (Self::Count, Reply::Count(count)) => answer.count(*count),
            (Self::CountOf { so_far, .. }, Reply::Count(count)) => answer.count(so_far + count),
            (Self::Id, Reply::NotFound) => answer.null(),
            (Self::Read, Reply::TimedOut { .. }) => answer.null_array(),
            (Self::NothingOf, Reply::NotFound) => answer.array(0),
            (Self::Stream | Self::Groups | Self::Consumers, Reply::NotFound) => {
                return Err(Fault::NO_SUCH_KEY);
            }
            _ => return Err(Fault::INTERNAL),
        }
        Ok(())
    }

    fn say(self, reply: StreamReply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Id, StreamReply::Id(id)) => say_id(id, answer),
            (Self::Entries, StreamReply::Entries(entries)) => say_entries(&entries, answer),
            (Self::Ids, StreamReply::Entries(entries)) => say_ids(&entries, answer),
            (Self::NothingOf, StreamReply::Stream(_)) => answer.null_array(),
            (Self::Read, StreamReply::Read(streams)) => {
                answer.map_or_array(streams.len());
                for (name, entries) in &streams {
                    answer.paired();
                    answer.bulk(&key_of(name));
                    say_entries(entries, answer);
                }
            }
            (told, StreamReply::Claimed { entries, next, removed }) => {
                answer.array(3);
                say_id(next.unwrap_or_default(), answer);
                match told {
                    Self::ClaimedIds => say_ids(&entries, answer),
                    _ => say_entries(&entries, answer),
                }
                answer.array(removed.len());
                removed.into_iter().for_each(|id| say_id(id, answer));
            }
            (Self::PendingCounts, StreamReply::PendingCounts(counts)) => {
                say_counts(&counts, answer);
            }
            (Self::Pending, StreamReply::Pending(pending)) => {
                answer.array(pending.len());
                for entry in &pending {
                    answer.array(4);
                    say_id(entry.id, answer);
                    answer.bulk(&entry.consumer);
                    answer.count(entry.idle.as_millis());
                    answer.count(entry.count);
                }
            }
            (Self::Stream, StreamReply::Stream(stream)) => say_stream(&stream, answer),
            (Self::Groups, StreamReply::Groups(groups)) => {
                answer.array(groups.len());
                groups.iter().for_each(|group| say_group(group, answer));
            }
            (Self::Consumers, StreamReply::Consumers(consumers)) => {
                answer.array(consumers.len());
                consumers.iter().for_each(|consumer| say_consumer(consumer, answer));
            }
            _ => return Err(Fault::INTERNAL),
        }
        Ok(())
    }
}

fn say_id(id: StreamId, answer: &mut Answer<'_>) {
    // The longest has two numbers of 20 digits.
    let (mut text, mut at) = ([0; 41], 41);
    let mut put = |byte: u8| {
        at -= 1;
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
    };
    let digits = |mut number: u64, put: &mut dyn FnMut(u8)| loop {
        put(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    };
    digits(id.sequence, &mut put);
    put(b'-');
    digits(id.millis, &mut put);
    answer.bulk(text.get(at..).unwrap_or_default());
}

fn say_ids(entries: &StreamEntries, answer: &mut Answer<'_>) {
    answer.array(entries.len());
    entries.ids().for_each(|id| say_id(id, answer));
}

fn say_entries(entries: &StreamEntries, answer: &mut Answer<'_>) {
    answer.array(entries.len());
    for (id, texts) in entries.iter() {
        say_entry(id, texts, answer);
    }
}

fn say_entry<'t>(
    id: StreamId,
    texts: Option<impl ExactSizeIterator<Item = &'t [u8]>>,
    answer: &mut Answer<'_>,
) {
    answer.array(2);
    say_id(id, answer);
    match texts {
        Some(texts) => {
            answer.array(texts.len());
            texts.for_each(|text| answer.bulk(text));
        }
        None => answer.null_array(),
    }
}

fn say_counts(counts: &PendingCounts, answer: &mut Answer<'_>) {
    answer.array(4);
    answer.count(counts.count);
    let Some((first, last)) = counts.ends else {
        answer.null();
        answer.null();
        return answer.null_array();
    };
    say_id(first, answer);
    say_id(last, answer);
    answer.array(counts.consumers.len());
    for (name, count) in &counts.consumers {
        answer.array(2);
        answer.bulk(name);
        answer.bulk(format!("{count}").as_bytes());
    }
}

fn say_stream(stream: &StreamDescription, answer: &mut Answer<'_>) {
    answer.map(if stream.groups.is_some() { 9 } else { 10 });
    let field = |name: &str, answer: &mut Answer<'_>| answer.bulk(name.as_bytes());
    field("length", answer);
    answer.count(stream.length);
    // There is no such tree here: an entry counts as a key of it, and as a node.
    field("radix-tree-keys", answer);
    answer.count(stream.length);
    field("radix-tree-nodes", answer);
    answer.count(stream.length + 1);
    field("last-generated-id", answer);
    say_id(stream.last, answer);
    field("max-deleted-entry-id", answer);
    say_id(stream.removed, answer);
    field("entries-added", answer);
    answer.count(stream.added);
    field("recorded-first-entry-id", answer);
    say_id(stream.first, answer);
    let Some(groups) = &stream.groups else {
        field("groups", answer);
        answer.count(stream.group_count);
        let mut ends = stream.entries.iter();
        for name in ["first-entry", "last-entry"] {
            field(name, answer);
            match ends.next() {
                Some((id, texts)) => say_entry(id, texts, answer),
                None => answer.null(),
            }
        }
        return;
    };
    field("entries", answer);
    say_entries(&stream.entries, answer);
    field("groups", answer);
    answer.array(groups.len());
    groups.iter().for_each(|group| say_whole_group(group, answer));
}

fn say_whole_group(group: &GroupDescription, answer: &mut Answer<'_>) {
    answer.map(7);
    answer.bulk(b"name");
    answer.bulk(&group.name);
    answer.bulk(b"last-delivered-id");
    say_id(group.last, answer);
    say_read(group, answer);
    answer.bulk(b"pel-count");
    answer.count(group.pending_count);
    answer.bulk(b"pending");
    answer.array(group.pending.len());
    for entry in &group.pending {
        answer.array(4);
        say_id(entry.id, answer);
        answer.bulk(&entry.consumer);
        say_delivery(entry, answer);
    }
    answer.bulk(b"consumers");
    answer.array(group.consumers.len());
    for consumer in &group.consumers {
        answer.map(5);
        answer.bulk(b"name");
        answer.bulk(&consumer.name);
        answer.bulk(b"seen-time");
        answer.count(consumer.seen.as_millis());
        answer.bulk(b"active-time");
        say_millis(consumer.active, answer);
        answer.bulk(b"pel-count");
        answer.count(consumer.pending_count);
        answer.bulk(b"pending");
        answer.array(consumer.pending.len());
        for entry in &consumer.pending {
            answer.array(3);
            say_id(entry.id, answer);
            say_delivery(entry, answer);
        }
    }
}

fn say_delivery(entry: &PendingEntry, answer: &mut Answer<'_>) {
    answer.count(entry.delivered.as_millis());
    answer.count(entry.count);
}

fn say_group(group: &GroupDescription, answer: &mut Answer<'_>) {
    answer.map(6);
    answer.bulk(b"name");
    answer.bulk(&group.name);
    answer.bulk(b"consumers");
    answer.count(group.consumer_count);
    answer.bulk(b"pending");
    answer.count(group.pending_count);
    answer.bulk(b"last-delivered-id");
    say_id(group.last, answer);
    say_read(group, answer);
}

fn say_read(group: &GroupDescription, answer: &mut Answer<'_>) {
    for (name, count) in [("entries-read", group.read), ("lag", group.lag)] {
        answer.bulk(name.as_bytes());
        match count {
            Some(count) => answer.count(count),
            None => answer.null(),
        }
    }
}

fn say_consumer(consumer: &ConsumerDescription, answer: &mut Answer<'_>) {
    answer.map(4);
    answer.bulk(b"name");
    answer.bulk(&consumer.name);
    answer.bulk(b"pending");
    answer.count(consumer.pending_count);
    answer.bulk(b"idle");
    answer.count(consumer.idle.as_millis());
    answer.bulk(b"inactive");
    say_millis(consumer.inactive, answer);
}

/// A time, or -1 if there is none.
fn say_millis(time: Option<Nanos>, answer: &mut Answer<'_>) {
    answer.integer(time.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX)));
}
