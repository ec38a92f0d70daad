//! The engine's replies about hashes, sets and sorted sets in Redis's words.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::sync::Arc;

use model::{CollectionCommand, Entries, QueueName, Refusal, Reply, Score, glob};

use crate::answer::Answer;
use crate::context::Context;
use crate::cursors::Place;
use crate::fault::Fault;
use crate::key_names::key_of;
use crate::number::double_text;
use crate::query::Query;
use crate::reply_format::{Next, ReplyFormat};

/// The meaning of a reply about a collection.
#[derive(Debug)]
pub(crate) enum CollectionFormat {
    /// `OK` once fields are set.
    FieldsSet,
    /// The number that a field is now.
    Edited,
    /// The values of fields, each whole or nothing.
    Values,
    /// 1 if there is such a field.
    WhetherFound,
    /// Fields with their values, as a map.
    Table,
    /// Fields or members.
    Fields,
    /// The values of fields.
    FieldValues,
    /// The only field or member, or nothing.
    OneField,
    /// Members, as a set.
    Members,
    /// Fields with their values, or members with their scores.
    Pairs,
    /// One member and its score, or none.
    OnePair,
    /// The only score, or nothing.
    Score,
    /// Scores, each of a member or nothing.
    Scores,
    /// The place of a member.
    Rank,
    /// The same and its score.
    RankWithScore,
    /// A sorted set, its member and the score, or nothing.
    PoppedOne,
    /// A sorted set and its members with their scores, or nothing.
    PoppedSeveral,
    /// How many members of a range were removed so far.
    RangeRemoved {
        /// The sorted set.
        name: QueueName,
        /// How many.
        count: u64,
    },
    /// A cursor, and the fields or members that match.
    Scan(Option<Box<[u8]>>),
}

impl From<CollectionFormat> for ReplyFormat {
    fn from(format: CollectionFormat) -> Self {
        Self::Collection(format)
    }
}

impl CollectionFormat {
    /// The refusal in Redis's words, which for the numbers of hashes are others.
    pub(crate) fn fault(&self, refusal: &Refusal) -> Fault {
        match (self, refusal) {
            (Self::Edited, Refusal::NotAnInteger) => Fault::of("ERR hash value is not an integer"),
            (Self::Edited, Refusal::NotADecimal) => Fault::of("ERR hash value is not a float"),
            _ => Fault::refused(refusal),
        }
    }

    /// Words a reply that is no refusal.
    pub(crate) fn word(self, reply: Reply, context: &mut Context<'_>) -> Result<Next, Fault> {
        match (self, reply) {
            (Self::RangeRemoved { name, count }, Reply::RangeLeft { count: more, rest }) => {
                let format = Self::RangeRemoved { name: name.clone(), count: count + more };
                let command = CollectionCommand::RemoveRange { name, range: rest };
                Ok(Next::Ask(Query::collection(command, format)))
            }
            (format, reply) => format.word_once(reply, context).map(|()| Next::Said),
        }
    }

    fn word_once(self, reply: Reply, context: &mut Context<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Scan(pattern), Reply::Entries(entries)) => {
                say_scanned(pattern.as_deref(), *entries, context);
                Ok(())
            }
            (format, Reply::Entries(entries)) => {
                format.say_entries(&entries, &mut context.answer())
            }
            (format, reply) => format.say(reply, &mut context.answer()),
        }
    }

    fn say(self, reply: Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::RangeRemoved { count, .. }, Reply::Count(last)) => answer.count(count + last),
            (Self::FieldsSet, Reply::Count(_)) => answer.ok(),
            (Self::Edited, Reply::Integer(number)) => answer.integer(number),
            (Self::Edited, Reply::Value(Some(value))) => answer.bulk(&value),
            (Self::Values, Reply::Value(value)) => {
                answer.array(1);
                bulk_or_null(value.as_ref(), answer);
            }
            (Self::Values, Reply::Values(values)) => {
                answer.array(values.found.len());
                for value in values.found {
                    bulk_or_null(value.ok().flatten().as_ref(), answer);
                }
            }
            (Self::WhetherFound, Reply::Value(value)) => answer.integer(value.is_some().into()),
            (Self::Score, Reply::Scores(scores)) => {
                score_or_null(scores.first().copied().flatten(), answer);
            }
            (Self::Scores, Reply::Scores(scores)) => {
                answer.array(scores.len());
                scores.into_iter().for_each(|score| score_or_null(score, answer));
            }
            (format, reply) => return format.say_place(reply, answer),
        }
        Ok(())
    }

    /// The same where it is about the place of a member, or about members that were taken out.
    fn say_place(self, reply: Reply, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match (self, reply) {
            (Self::Rank, Reply::Rank { before, .. }) => answer.count(before),
            (Self::Rank, Reply::NotFound) => answer.null(),
            (Self::RankWithScore, Reply::Rank { before, score }) => {
                answer.array(2);
                answer.count(before);
                answer.double(score.get());
            }
            (Self::PoppedOne, Reply::ScoredPopped(popped)) => {
                say_popped_one(&popped.name, &popped.entries, answer);
            }
            (Self::PoppedSeveral, Reply::ScoredPopped(popped)) => {
                say_popped(&popped.name, &popped.entries, answer);
            }
            (Self::RankWithScore, Reply::NotFound)
            | (Self::PoppedOne | Self::PoppedSeveral, Reply::TimedOut { .. }) => {
                answer.null_array();
            }
            (format, Reply::ScoredPopped(popped)) => {
                return format.say_entries(&popped.entries, answer);
            }
            (format, Reply::TimedOut { .. }) => {
                return format.say_entries(&Entries::default(), answer);
            }
            _ => return Err(Fault::INTERNAL),
        }
        Ok(())
    }

    fn say_entries(self, entries: &Entries, answer: &mut Answer<'_>) -> Result<(), Fault> {
        match self {
            Self::OneField => match entries.fields.get(0) {
                Some(field) => answer.bulk(field),
                None => answer.null(),
            },
            Self::Fields => {
                answer.array(entries.len());
                entries.fields.iter().for_each(|field| answer.bulk(field));
            }
            Self::FieldValues => {
                answer.array(entries.values.len());
                entries.values.iter().for_each(|value| answer.bulk(value));
            }
            Self::Members => {
                answer.set(entries.len());
                entries.fields.iter().for_each(|member| answer.bulk(member));
            }
            Self::Table => {
                answer.map(entries.len());
                (0..entries.len()).for_each(|index| say_entry(entries, index, answer));
            }
            Self::OnePair => {
                answer.array(entries.len() * 2);
                (0..entries.len()).for_each(|index| say_entry(entries, index, answer));
            }
            Self::Pairs => {
                answer.pairs(entries.len());
                for index in 0..entries.len() {
                    answer.pair();
                    say_entry(entries, index, answer);
                }
            }
            _ => return Err(Fault::INTERNAL),
        }
        Ok(())
    }
}

/// A field and its value, or a member and its score.
fn say_entry(entries: &Entries, index: usize, answer: &mut Answer<'_>) {
    answer.bulk(entries.fields.get(index).unwrap_or_default());
    match entries.scores.get(index) {
        Some(score) => answer.double(score.get()),
        None => answer.bulk(entries.values.get(index).unwrap_or_default()),
    }
}

fn say_popped_one(name: &QueueName, entries: &Entries, answer: &mut Answer<'_>) {
    answer.array(3);
    answer.bulk(&key_of(name));
    say_entry(entries, 0, answer);
}

fn say_popped(name: &QueueName, entries: &Entries, answer: &mut Answer<'_>) {
    answer.array(2);
    answer.bulk(&key_of(name));
    answer.array(entries.len());
    for index in 0..entries.len() {
        answer.array(2);
        say_entry(entries, index, answer);
    }
}

/// Values and scores stand among the fields, as text in either form of the protocol.
fn say_scanned(pattern: Option<&[u8]>, mut entries: Entries, context: &mut Context<'_>) {
    let next = entries.next.take().map(Place::Field);
    let cursor = next.map_or(0, |place| context.remember(place));
    let matches = |field: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, field));
    let count = entries.fields.iter().filter(|field| matches(field)).count();
    let each = if entries.values.is_empty() && entries.scores.is_empty() { 1 } else { 2 };
    let mut answer = context.answer();
    answer.array(2);
    answer.bulk(cursor.to_string().as_bytes());
    answer.array(count * each);
    for (index, field) in entries.fields.iter().enumerate().filter(|(_, field)| matches(field)) {
        answer.bulk(field);
        if let Some(score) = entries.scores.get(index) {
            answer.bulk(double_text(score.get()).as_bytes());
        } else if let Some(value) = entries.values.get(index) {
            answer.bulk(value);
        }
    }
}

fn bulk_or_null(bytes: Option<&Arc<[u8]>>, answer: &mut Answer<'_>) {
    match bytes {
        Some(bytes) => answer.bulk(bytes),
        None => answer.null(),
    }
}

fn score_or_null(score: Option<Score>, answer: &mut Answer<'_>) {
    match score {
        Some(score) => answer.double(score.get()),
        None => answer.null(),
    }
}
