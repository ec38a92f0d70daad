//! Sending: one message, many copies of it, or one a line.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use model::{Destination, Reply, limits};
use serde_json::{Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::draft::Draft;
use crate::gateway::{Gateway, Step, Work};
use crate::problem::{Problem, Result};

impl<G: Gateway> App<G> {
    pub(crate) async fn send(&self, to: Destination, mut asked: Asked) -> Result<Answer> {
        let draft = Draft::of_headers(&asked.headers)?;
        let count = asked.query.number("count", 1, limits::TRANSACTION_RECORDS_MAX as u64)?;
        let is_ndjson = draft.content_type.as_deref().is_some_and(is_ndjson);
        let by_line = asked.query.flag("lines")? || is_ndjson;
        let first_line = asked.query.number("first-line", 1, FIRST_LINE_MAX)?;
        if count.is_some() && by_line {
            return Err(Problem::bad_request("count and lines cannot be used together"));
        }
        if first_line.is_some() && !by_line {
            return Err(Problem::bad_request("first-line is for lines"));
        }
        if count.is_some() && draft.key.is_some() {
            return Err(Problem::bad_request(
                "an idempotency key is for one message, not for count",
            ));
        }
        let body = asked.into_body()?;
        if by_line {
            let read = self.read(body, BATCH_BYTES_MAX, IN_PARTS).await?;
            return self
                .send_lines(to, draft, &read.bytes, first_line.unwrap_or(1), is_ndjson)
                .await;
        }
        let read = self.read(body, self.options.message_bytes_max, SMALLER).await?;
        self.send_body(to, &draft, &read.bytes, count).await
    }

    /// The whole body as one message, or as so many.
    async fn send_body(
        &self,
        to: Destination,
        draft: &Draft,
        body: &[u8],
        count: Option<u64>,
    ) -> Result<Answer> {
        let (envelopes, max) = (&self.options.envelopes, self.options.message_bytes_max);
        let message = draft.message(body, self.gateway.now(), envelopes, max)?;
        let step = Step::Put { to, message, count: count.unwrap_or(1) };
        let Some(count) = count else {
            let reply = self.gateway.ask(Work::steps(vec![step])).await?.pop();
            return Ok(stored(reply));
        };
        self.gateway.ask(Work::atomic(vec![step])).await?;
        Ok(json(StatusCode::CREATED, &json!({ "count": count })))
    }

    /// Each line that is not empty as a message, all or none of them. `first_line` is the number
    /// of the first.
    async fn send_lines(
        &self,
        to: Destination,
        mut draft: Draft,
        body: &Bytes,
        first_line: u64,
        is_ndjson: bool,
    ) -> Result<Answer> {
        if is_ndjson {
            draft.content_type = Some("application/json".into());
        }
        let lines =
            body.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let key = draft.key.take();
        let (envelopes, max) = (&self.options.envelopes, self.options.message_bytes_max);
        let (mut steps, mut bytes) = (Vec::new(), 0);
        for (number, line) in (first_line..).zip(lines).filter(|(_, line)| !line.is_empty()) {
            // Before the next one is made: together they may be far more than the body.
            if steps.len() == limits::TRANSACTION_RECORDS_MAX
                || bytes > limits::TRANSACTION_BYTES_MAX
            {
                return Err(model::Refusal::TransactionTooLarge.into());
            }
            if is_ndjson && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
                return Err(Problem::bad_request(format!("line {number} is not JSON")));
            }
            draft.key = key.as_ref().map(|key| line_key(key, number)).transpose()?;
            let message = draft.message(line, self.gateway.now(), envelopes, max)?;
            bytes += message.body.len();
            steps.push(Step::Put { to: to.clone(), message, count: 1 });
        }
        let count = steps.len();
        let _room = self.room_for(&steps, bytes)?;
        if count > 0 {
            self.gateway.ask(Work::atomic(steps)).await?;
        }
        Ok(json(StatusCode::CREATED, &json!({ "count": count })))
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

/// A message was stored; `null` where nobody subscribes to the topic.
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

/// Of a text that comes in parts, the number of a part's first line: what JSON can say.
const FIRST_LINE_MAX: u64 = 1 << 53;

/// Bytes of a request that holds several messages.
pub(crate) const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What helps where a batch is larger.
pub(crate) const IN_PARTS: &str = "send it in parts";

/// What helps where a message is larger than it may be.
pub(crate) const SMALLER: &str = "send less or raise --max-message-bytes";
