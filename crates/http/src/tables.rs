//! Tables: keys with values. A table is a hash of Redis, by another name.
//!
//! A change on a condition is a transaction: the value that the condition was held against is what
//! its commit expects. So a condition that held here holds there, or nothing is done.

use std::ops::Bound;
use std::sync::Arc;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use hyper::{Method, StatusCode};
use model::{
    CollectionCommand, CollectionKind, Command, Entries, Expected, KeyCommand, KeyKind, OneOrMany,
    QueueName, Reply, TableAction, TableStep, ValueEdit, limits,
};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value as Json, json};

use crate::app::{App, Asked, json, no_content};
use crate::base64;
use crate::body::{Answer, Body};
use crate::byte_budget::BodyKind;
use crate::departure::Asker;
use crate::gateway::{Gateway, Step, Work};
use crate::guard::attachment;
use crate::operate::{page_max, unexpected};
use crate::problem::{Problem, Result};
use crate::query::Query;
use crate::route::{TableKey, name};

/// The bytes of a key or a value.
pub(crate) type Octets = Arc<[u8]>;

/// The condition of a change, in the words of RFC 9110, section 13.1.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    /// `If-Match`
    Matches(Tags),
    /// `If-None-Match`
    MatchesNone(Tags),
}

/// The tags of a condition.
#[derive(Debug, PartialEq, Eq)]
enum Tags {
    /// `*`: that of any value.
    Any,
    These(Vec<String>),
}

impl<G: Gateway> App<G> {
    /// Does what is asked of one key.
    pub(crate) async fn table_key(
        &self,
        method: &Method,
        at: TableKey,
        asked: Asked,
    ) -> Result<Answer> {
        match *method {
            Method::GET => self.table_value(at, asked).await,
            Method::PUT => self.put_value(at, asked).await,
            Method::DELETE => self.delete_value(at, asked).await,
            _ => self.add_to_value(at, asked).await,
        }
    }

    async fn table_value(&self, at: TableKey, asked: Asked) -> Result<Answer> {
        let condition = Condition::of(&asked.headers)?;
        asked.query.finish()?;
        let value = self.find(&at).await?.ok_or_else(|| at.missing())?;
        let tag = tag_of(&value);
        match condition {
            Some(Condition::MatchesNone(tags)) if tags.hold(Some(&value)) => {
                let mut answer = Answer::new(Body::Sent);
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                answer.headers_mut().insert(ETAG, header_of(&tag));
                Ok(answer)
            }
            Some(Condition::Matches(tags)) if !tags.hold(Some(&value)) => Err(Problem::unmet()),
            _ => {
                let mut answer = Answer::new(Body::from(Bytes::from_owner(Value(value))));
                let kind = HeaderValue::from_static("application/octet-stream");
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer.headers_mut().insert(ETAG, header_of(&tag));
                Ok(attachment(answer))
            }
        }
    }

    async fn put_value(&self, at: TableKey, asked: Asked) -> Result<Answer> {
        let (condition, asker) = (Condition::of(&asked.headers)?, asked.peer.asker.clone());
        let (body, max) = (asked.into_body()?, limits::VALUE_BYTES_MAX);
        let max = max.min(self.options.message_bytes_max);
        let reading = self.reader.begin(BodyKind::Send, body, &asker, max, SMALLER)?;
        let read = reading.whole().await?;
        let value: Octets = (&*read.bytes).into();
        let tag = header_of(&tag_of(&value));
        let is_new = match condition {
            None => {
                let (name, fields) = (at.table, vec![(at.key, value)]);
                let set = CollectionCommand::SetFields { name, fields, only_new: false };
                self.command_of(set, &asker).await? == Reply::Count(1)
            }
            Some(condition) => {
                let expected = self.expected(&at, &condition).await?;
                let is_new = expected == Expected::Absent;
                self.change(at, expected, TableAction::Put(value), &asker).await?;
                is_new
            }
        };
        let mut answer = no_content();
        if is_new {
            *answer.status_mut() = StatusCode::CREATED;
        }
        answer.headers_mut().insert(ETAG, tag);
        Ok(answer)
    }

    async fn delete_value(&self, at: TableKey, asked: Asked) -> Result<Answer> {
        let (condition, asker) = (Condition::of(&asked.headers)?, asked.peer.asker.clone());
        asked.query.finish()?;
        let Some(condition) = condition else {
            let (name, kind) = (at.table.clone(), CollectionKind::Hash);
            let fields = OneOrMany::One(Arc::clone(&at.key));
            let remove = CollectionCommand::RemoveFields { name, kind, fields };
            return match self.command_of(remove, &asker).await? {
                Reply::Count(1) => Ok(no_content()),
                _ => Err(at.missing()),
            };
        };
        let expected = self.expected(&at, &condition).await?;
        if expected == Expected::Absent {
            return Err(at.missing());
        }
        self.change(at, expected, TableAction::Delete, &asker).await?;
        Ok(no_content())
    }

    async fn add_to_value(&self, at: TableKey, mut asked: Asked) -> Result<Answer> {
        let (condition, asker) = (Condition::of(&asked.headers)?, asked.peer.asker.clone());
        let what = "an integer of 64 bits, such as 5 or -5";
        let more = asked.query.parsed::<i64>("add", what)?;
        let more = more.ok_or_else(|| {
            Problem::bad_request("POST adds to the integer of a key: say add=5; PUT sets a value")
        })?;
        asked.query.finish()?;
        let sum = if let Some(condition) = condition {
            let expected = self.expected(&at, &condition).await?;
            let sums = self.change(at, expected, TableAction::Add(more), &asker).await?;
            sums.first().copied().ok_or_else(unexpected)?
        } else {
            let (name, field, edit) = (at.table, at.key, ValueEdit::Add(more));
            match self
                .command_of(CollectionCommand::EditField { name, field, edit }, &asker)
                .await?
            {
                Reply::Integer(sum) => sum,
                _ => return Err(unexpected()),
            }
        };
        let mut answer = json(StatusCode::OK, &json!({ "value": sum }));
        let tag = tag_of(sum.to_string().as_bytes());
        answer.headers_mut().insert(ETAG, header_of(&tag));
        Ok(answer)
    }

    /// The keys of a table in the order of their bytes. What does not go into one answer is shown
    /// as it was at one moment.
    pub(crate) async fn table(&self, table: QueueName, mut asked: Asked) -> Result<Answer> {
        let mut span = Span::of(&mut asked.query)?;
        let max = page_max(&mut asked.query)?;
        asked.query.finish()?;
        if span.picture.is_none() {
            let page = self.scan(&table, &span, max).await?;
            if span.is_last(&page) {
                let (entries, _) = span.shown(&page);
                return Ok(entries_answer(&table, entries, None));
            }
            span.picture = Some(self.take_picture(&table).await?);
        }
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < max && bytes < PAGE_BYTES {
            let page = self.scan(&table, &span, max - entries.len()).await?;
            let (shown, its_bytes) = span.shown(&page);
            entries.extend(shown);
            bytes += its_bytes;
            match &page.next {
                Some(last) if !span.is_last(&page) => span.from = Bound::Excluded(last.clone()),
                _ => {
                    self.end_picture(&table, &span).await?;
                    return Ok(entries_answer(&table, entries, None));
                }
            }
        }
        Ok(entries_answer(&table, entries, span.next()))
    }

    async fn take_picture(&self, table: &QueueName) -> Result<u64> {
        let (name, kind) = (table.clone(), CollectionKind::Hash);
        match self.command(CollectionCommand::TakePicture { name, kind }.into()).await? {
            Reply::Picture(number) => Ok(number),
            _ => Err(unexpected()),
        }
    }

    async fn end_picture(&self, table: &QueueName, span: &Span) -> Result<()> {
        if let Some(picture) = span.picture {
            let name = table.clone();
            self.command(CollectionCommand::EndPicture { picture, name }.into()).await?;
        }
        Ok(())
    }

    /// The tables that the client may look at, with the number of their keys.
    pub(crate) async fn tables(&self, mut asked: Asked) -> Result<Answer> {
        let mut after = asked.query.text("after").map(|after| name(&after)).transpose()?;
        let max = page_max(&mut asked.query)?;
        asked.query.finish()?;
        let mut tables = Vec::new();
        loop {
            let kind = Some(KeyKind::Hash);
            let names = KeyCommand::Names {
                database: None,
                after: after.take(),
                max: NAMES_PER_STEP,
                kind,
            };
            let Reply::Names { names, next } = self.command(Command::Key(names)).await? else {
                return Err(unexpected());
            };
            for table in names {
                if tables.len() == max {
                    let last = tables.last().and_then(|last: &Json| last.get("table").cloned());
                    return Ok(json(StatusCode::OK, &json!({ "tables": tables, "next": last })));
                }
                let keys = self.count(&table).await?;
                tables.push(json!({ "table": table.as_str(), "keys": keys }));
            }
            if next.is_none() {
                let all = json!({ "tables": tables, "next": Json::Null });
                return Ok(json(StatusCode::OK, &all));
            }
            after = next;
        }
    }

    async fn count(&self, table: &QueueName) -> Result<u64> {
        let (name, kind) = (table.clone(), CollectionKind::Hash);
        match self.command(CollectionCommand::CountFields { name, kind }.into()).await {
            Ok(Reply::Count(count)) => Ok(count),
            Ok(_) => Err(unexpected()),
            // It is something else by now.
            Err(problem) if problem.status == StatusCode::CONFLICT => Ok(0),
            Err(problem) => Err(problem),
        }
    }

    /// The next entries of the span, of its picture if it has one.
    async fn scan(&self, table: &QueueName, span: &Span, max: usize) -> Result<Box<Entries>> {
        let (name, from, kind) = (table.clone(), span.from.clone(), CollectionKind::Hash);
        let command = match span.picture {
            None => CollectionCommand::ScanFields { name, kind, from, max },
            Some(picture) => CollectionCommand::ShowPicture { picture, name, from, max },
        };
        match self.command(command.into()).await? {
            Reply::Entries(page) => Ok(page),
            Reply::NotFound => Err(Problem::page_over()),
            _ => Err(unexpected()),
        }
    }

    async fn find(&self, at: &TableKey) -> Result<Option<Octets>> {
        let (name, kind) = (at.table.clone(), CollectionKind::Hash);
        let fields = OneOrMany::One(Arc::clone(&at.key));
        match self.command(CollectionCommand::FindFields { name, kind, fields }.into()).await? {
            Reply::Value(value) => Ok(value),
            _ => Err(unexpected()),
        }
    }

    /// The state of a key in which a condition holds, as it does now.
    ///
    /// # Errors
    /// 412 if it does not.
    async fn expected(&self, at: &TableKey, condition: &Condition) -> Result<Expected> {
        let value = self.find(at).await?;
        if !condition.holds(value.as_ref()) {
            return Err(Problem::unmet());
        }
        Ok(match (condition, value) {
            (_, None) => Expected::Absent,
            (Condition::Matches(Tags::Any), Some(_)) => Expected::Present,
            (_, Some(value)) => Expected::Value(value),
        })
    }

    /// Changes a key if it is as expected. The sums of what is added.
    async fn change(
        &self,
        at: TableKey,
        expected: Expected,
        action: TableAction,
        asker: &Asker,
    ) -> Result<Vec<i64>> {
        let TableKey { table, key } = at;
        let step = |action| {
            let (table, key) = (table.clone(), Arc::clone(&key));
            Step::Table(TableStep { table, key, action })
        };
        let steps = vec![step(TableAction::Expect(expected)), step(action)];
        let replies = self.ask(Work::atomic(steps).by(asker)).await.map_err(|problem| {
            if problem.kind == TABLE_CONFLICT { Problem::unmet() } else { problem }
        })?;
        Ok(sums_of(replies))
    }

    async fn command_of(&self, command: CollectionCommand, asker: &Asker) -> Result<Reply> {
        let work = Work::command(command.into()).by(asker);
        match self.ask(work).await?.pop() {
            Some(Reply::Refused(refusal)) => Err(refusal.into()),
            Some(reply) => Ok(reply),
            None => Err(unexpected()),
        }
    }
}

/// The sums of what a transaction has added.
pub(crate) fn sums_of(replies: Vec<Reply>) -> Vec<i64> {
    match replies.into_iter().next() {
        Some(Reply::Committed { sums }) => sums,
        _ => Vec::new(),
    }
}

impl TableKey {
    fn missing(&self) -> Problem {
        Problem::not_found(format!(
            "table {} has no such key: GET /tables/{} lists those it has",
            self.table, self.table
        ))
    }
}

/// The keys of a page.
struct Span {
    from: Bound<Octets>,
    to: Option<String>,
    prefix: String,
    /// The picture of the table that the pages before have shown.
    picture: Option<u64>,
}

impl Span {
    fn of(query: &mut Query) -> Result<Self> {
        let (from, to) = (query.text("from"), query.text("to"));
        let prefix = query.text("prefix").unwrap_or_default();
        let first = from.filter(|from| *from >= prefix).unwrap_or_else(|| prefix.clone());
        let (mut from, mut picture) = (Bound::Included(first.as_bytes().into()), None);
        if let Some(after) = query.text("after") {
            let (number, last) = cursor(&after).ok_or_else(|| {
                Problem::bad_request(format!("after is {after:?} and has to be what next said"))
            })?;
            (from, picture) = (Bound::Excluded(last.into()), Some(number));
        }
        Ok(Self { from, to, prefix, picture })
    }

    /// True unless this key is behind the last one.
    fn holds(&self, key: &[u8]) -> bool {
        let is_before_end = self.to.as_ref().is_none_or(|to| key < to.as_bytes());
        is_before_end && key.starts_with(self.prefix.as_bytes())
    }

    /// No key of the span is behind this page.
    fn is_last(&self, page: &Entries) -> bool {
        page.next.as_ref().is_none_or(|last| !self.holds(last))
    }

    /// Those entries that are in it, and bytes of their keys and values.
    fn shown(&self, page: &Entries) -> (Vec<Json>, usize) {
        let all = page.fields.iter().zip(page.values.iter());
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (key, value) in all.take_while(|(key, _)| self.holds(key)) {
            bytes += key.len() + value.len();
            entries.push(entry_json(key, value));
        }
        (entries, bytes)
    }

    /// The text that asks for the next page: the picture, and the last key that was shown.
    fn next(&self) -> Option<String> {
        let (Bound::Excluded(last), Some(picture)) = (&self.from, self.picture) else {
            return None;
        };
        Some(format!("{picture:x}.{}", URL_SAFE_NO_PAD.encode(last)))
    }
}

fn cursor(text: &str) -> Option<(u64, Vec<u8>)> {
    let (picture, last) = text.split_once('.')?;
    let is_plain = picture.bytes().all(|byte| byte.is_ascii_hexdigit());
    let picture = u64::from_str_radix(picture, 16).ok().filter(|_| is_plain)?;
    Some((picture, URL_SAFE_NO_PAD.decode(last).ok()?))
}

fn entries_answer(table: &QueueName, entries: Vec<Json>, next: Option<String>) -> Answer {
    let page = json!({ "table": table.as_str(), "entries": entries, "next": next });
    attachment(json(StatusCode::OK, &page))
}

fn entry_json(key: &[u8], value: &[u8]) -> Json {
    let mut entry = Map::new();
    for (word, word_base64, bytes) in [("key", "key_base64", key), ("value", "value_base64", value)]
    {
        match str::from_utf8(bytes) {
            Ok(text) => entry.insert(word.into(), text.into()),
            Err(_) => entry.insert(word_base64.into(), base64::encode(bytes).into()),
        };
    }
    entry.into()
}

impl Condition {
    fn of(headers: &HeaderMap) -> Result<Option<Self>> {
        let matches = Tags::of(headers, IF_MATCH.as_str())?.map(Self::Matches);
        let none = Tags::of(headers, IF_NONE_MATCH.as_str())?.map(Self::MatchesNone);
        if matches.is_some() && none.is_some() {
            return Err(Problem::bad_request("give If-Match or If-None-Match, not both"));
        }
        Ok(matches.or(none))
    }

    fn holds(&self, value: Option<&Octets>) -> bool {
        match self {
            Self::Matches(tags) => tags.hold(value),
            Self::MatchesNone(tags) => !tags.hold(value),
        }
    }
}

impl Tags {
    fn of(headers: &HeaderMap, word: &str) -> Result<Option<Self>> {
        let mut all = Vec::new();
        for header in headers.get_all(word) {
            let wrong = || {
                Problem::bad_request(format!("{word} has to be * or the ETags of answers before"))
            };
            let text = header.to_str().map_err(|_| wrong())?.trim();
            if text == "*" {
                return Ok(Some(Self::Any));
            }
            for tag in text.split(',').map(str::trim) {
                // A value that a proxy has compressed has a weak one.
                let tag = tag.strip_prefix("W/").unwrap_or(tag);
                let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                all.push(bare.ok_or_else(wrong)?.to_owned());
            }
        }
        Ok((!all.is_empty()).then_some(Self::These(all)))
    }

    /// True if one of them is that of the value; `None`: there is none.
    fn hold(&self, value: Option<&Octets>) -> bool {
        match (self, value) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::These(tags), Some(value)) => tags.contains(&tag_of(value)),
        }
    }
}

/// The tag of a value, without its quotes: 128 bits of its hash.
pub(crate) fn tag_of(value: &[u8]) -> String {
    let hash = digest(&SHA256, value);
    let half = hash.as_ref().iter().take(TAG_BYTES);
    half.map(|byte| format!("{byte:02x}")).collect()
}

fn header_of(tag: &str) -> HeaderValue {
    let quoted = HeaderValue::from_str(&format!("\"{tag}\""));
    quoted.expect("invariant: a tag is digits")
}

/// A value, as the bytes of an answer.
struct Value(Octets);

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The end of the type of a problem: a key is not as a transaction expects it.
pub(crate) const TABLE_CONFLICT: &str = "table-conflict";

const SMALLER: &str = "keep larger values elsewhere";

/// Bytes of a tag: as many as no two values share by chance.
const TAG_BYTES: usize = 16;

/// Bytes of keys and values behind which a page ends.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Names that are looked at in one step.
const NAMES_PER_STEP: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_rfc() {
        let condition = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_str(value).unwrap());
            }
            Condition::of(&headers)
        };
        let value: Octets = (*b"100").into();
        let tag = format!("\"{}\"", tag_of(&value));
        assert_eq!(condition(&[]).unwrap(), None);
        for (name, text, there, absent) in [
            ("if-match", "*", true, false),
            ("if-match", &tag, true, false),
            ("if-match", "\"other\"", false, false),
            ("if-match", &format!("\"other\", W/{tag}"), true, false),
            ("if-none-match", "*", false, true),
            ("if-none-match", &tag, false, true),
            ("if-none-match", "\"other\"", true, true),
        ] {
            let condition = condition(&[(name, text)]).unwrap().unwrap();
            assert_eq!(condition.holds(Some(&value)), there, "{name}: {text}");
            assert_eq!(condition.holds(None), absent, "{name}: {text}");
        }
        for wrong in ["", "x", "\"a\", b", "\""] {
            assert_eq!(condition(&[("if-match", wrong)]).unwrap_err().kind, "bad-request");
        }
        assert!(condition(&[("if-match", "*"), ("if-none-match", "*")]).is_err());
    }
}
