//! Sending: one message, many copies of it, or one a line.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use model::{Destination, NewMessage, Reply, limits};
use serde_json::{Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::{Answer, Read, Reading};
use crate::byte_budget::BodyKind;
use crate::departure::Asker;
use crate::draft::Draft;
use crate::gateway::{Gateway, Step, Work};
use crate::problem::{Problem, Result};

impl<G: Gateway> App<G> {
    pub(crate) async fn send(&self, to: Destination, mut asked: Asked) -> Result<Answer> {
        let draft = Draft::of_headers(&asked.headers)?;
        let count = asked.query.number("count", 1, limits::TRANSACTION_RECORDS_MAX as u64)?;
        let is_ndjson = draft.content_type.as_deref().is_some_and(is_ndjson);
        let by_line = asked.query.flag("lines")? || is_ndjson;
        let first_line = asked.query.number("first_line", 1, FIRST_LINE_MAX)?;
        if count.is_some() && by_line {
            return Err(Problem::bad_request("count and lines cannot be used together"));
        }
        if first_line.is_some() && !by_line {
            return Err(Problem::bad_request("first_line is for lines"));
        }
        if count.is_some() && draft.key.is_some() {
            return Err(Problem::bad_request(
                "an idempotency key is for one message, not for count",
            ));
        }
        let asker = asked.peer.asker.clone();
        let body = asked.into_body()?;
        if by_line {
            let max = self.options.batch_bytes_max();
            let reading = self.reader.begin(BodyKind::Send, body, &asker, max, IN_PARTS)?;
            let lines = Lines::new(to, draft, first_line, is_ndjson, &asker);
            return self.send_lines(reading, lines).await;
        }
        let max = self.options.message_bytes_max;
        let reading = self.reader.begin(BodyKind::Send, body, &asker, max, SMALLER)?;
        let Read { bytes, permit: _permit } = reading.whole().await?;
        let message = self.engine_message(&draft, &bytes)?;
        drop(bytes);
        self.send_message(to, message, count, &asker).await
    }

    /// One message, or so many of it.
    async fn send_message(
        &self,
        to: Destination,
        message: NewMessage,
        count: Option<u64>,
        asker: &Asker,
    ) -> Result<Answer> {
        let step = Step::Put { to, message, count: count.unwrap_or(1) };
        let Some(count) = count else {
            let reply = self.ask(Work::steps(vec![step]).by(asker)).await?.pop();
            return Ok(stored(reply));
        };
        self.ask(Work::atomic(vec![step]).by(asker)).await?;
        Ok(json(StatusCode::CREATED, &json!({ "count": count })))
    }

    /// Each line that is not empty as a message, all or none of them. They are cut as they come,
    /// and each has room before the next. The messages of a piece of one-byte lines may take
    /// thousands of times its bytes.
    async fn send_lines(&self, mut reading: Reading<'_>, mut lines: Lines) -> Result<Answer> {
        while let Some(piece) = reading.next().await? {
            for line in lines.cut(&piece) {
                self.add_line(&mut lines, &line)?;
                reading.extend(lines.memory_bytes()).await?;
            }
            if lines.rest.len() > self.options.message_bytes_max {
                return Err(Problem::too_large("a line", self.options.message_bytes_max, SMALLER));
            }
            reading.extend(lines.memory_bytes()).await?;
        }
        let last = std::mem::take(&mut lines.rest);
        self.add_line(&mut lines, &last)?;
        let count = lines.steps.len();
        if count > 0 {
            self.ask(Work::atomic(lines.steps).by(&lines.asker)).await?;
        }
        Ok(json(StatusCode::CREATED, &json!({ "count": count })))
    }

    fn add_line(&self, lines: &mut Lines, line: &[u8]) -> Result<()> {
        let number = lines.next;
        lines.next += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(());
        }
        // Before the next one is made: together they may be far more than the body.
        if lines.steps.len() == limits::TRANSACTION_RECORDS_MAX
            || lines.memory_bytes() > self.options.lines_bytes_max()
        {
            return Err(model::Refusal::TransactionTooLarge.into());
        }
        if lines.are_json && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
            return Err(Problem::bad_request(format!("line {number} is not JSON")));
        }
        lines.draft.key = lines.key.as_ref().map(|key| line_key(key, number)).transpose()?;
        let message = self.engine_message(&lines.draft, line)?;
        lines.bytes += message.body.len();
        lines.steps.push(Step::Put { to: lines.to.clone(), message, count: 1 });
        Ok(())
    }

    fn engine_message(&self, draft: &Draft, body: &[u8]) -> Result<NewMessage> {
        let (envelopes, max) = (&self.options.envelopes, self.options.message_bytes_max);
        let now = self.gateway.now();
        draft.message(body, (now, self.gateway.wall_time(now)), envelopes, max)
    }
}

/// A text of which each line is a message, as it comes.
struct Lines {
    to: Destination,
    /// The part that all lines have in common.
    draft: Draft,
    asker: Asker,
    key: Option<String>,
    are_json: bool,
    /// The number of the next line.
    next: u64,
    /// The bytes of a line that has not ended yet.
    rest: Vec<u8>,
    steps: Vec<Step>,
    /// Bytes of the bodies in these.
    bytes: usize,
}

impl Lines {
    fn new(
        to: Destination,
        mut draft: Draft,
        first: Option<u64>,
        are_json: bool,
        asker: &Asker,
    ) -> Self {
        if are_json {
            draft.content_type = Some("application/json".into());
        }
        let key = draft.key.take();
        let next = first.unwrap_or(1);
        let asker = asker.clone();
        let (rest, steps) = (Vec::new(), Vec::new());
        Self { to, draft, asker, key, are_json, next, rest, steps, bytes: 0 }
    }

    /// The lines that end in a piece.
    fn cut<'p>(&mut self, piece: &'p [u8]) -> impl Iterator<Item = Cow<'p, [u8]>> + use<'p> {
        let mut parts = piece.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        let first = parts.next().map(|first| {
            let mut line = std::mem::take(&mut self.rest);
            line.extend_from_slice(first);
            Cow::Owned(line)
        });
        self.rest.extend_from_slice(last);
        first.into_iter().chain(parts.map(Cow::Borrowed))
    }

    fn memory_bytes(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |key| key.len() + BESIDE_TEXT_BYTES);
        self.bytes
            + self.rest.capacity()
            + self.steps.capacity() * size_of::<Step>()
            + self.steps.len() * (BESIDE_TEXT_BYTES + key)
    }
}

/// Each message of a batch has a name of its own.
fn line_key(key: &str, number: u64) -> Result<String> {
    let key = format!("{key}#{number}");
    if key.len() > limits::SEND_ID_BYTES_MAX {
        return Err(Problem::bad_request("the idempotency key is too long for so many lines"));
    }
    Ok(key)
}

/// A message was stored; `null` if the topic has no subscription.
fn stored(reply: Option<Reply>) -> Answer {
    let Some(Reply::Stored { message }) = reply else {
        return json(StatusCode::CREATED, &json!({ "message": Json::Null }));
    };
    let mut answer = json(StatusCode::CREATED, &json!({ "message": message.0 }));
    if let Ok(place) = HeaderValue::from_str(&format!("/messages/{message}")) {
        answer.headers_mut().insert(LOCATION, place);
    }
    answer
}

fn is_ndjson(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ["application/x-ndjson", "application/ndjson"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

/// Memory of a body, or of a key with its number, beside its own bytes.
const BESIDE_TEXT_BYTES: usize = 32;

/// The largest number of the first line of a part, for a text that comes in parts: JSON's limit.
const FIRST_LINE_MAX: u64 = 1 << 53;

/// The remedy for a larger batch.
pub(crate) const IN_PARTS: &str = "send it in parts";

/// The remedy for a message larger than it may be.
pub(crate) const SMALLER: &str = "send less or raise --max-message-bytes";

#[cfg(test)]
mod tests {
    use model::QueueName;

    use super::*;

    #[test]
    fn lines_are_same_in_any_pieces() {
        let text = b"one\n\ntwo\r\nthree\nfour";
        for pieces in 1..=text.len() {
            let to = Destination::Queue(QueueName::new("q").unwrap());
            let mut lines = Lines::new(to, Draft::default(), None, false, &Asker::default());
            let cut: Vec<_> = text
                .chunks(pieces)
                .flat_map(|piece| lines.cut(piece))
                .map(Cow::into_owned)
                .collect();
            assert_eq!(cut, [&b"one"[..], b"", b"two\r", b"three"], "in pieces of {pieces}");
            assert_eq!(lines.rest, b"four");
        }
    }
}
