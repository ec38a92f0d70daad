//! Sending, settling and changing tables as one: all of it in one frame of the log, or nothing.

use std::collections::BTreeSet;

use hyper::StatusCode;
use model::{Destination, limits};
use serde_json::{Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::byte_budget::BodyKind;
use crate::draft::{Draft, refuse_headers};
use crate::gateway::{Gateway, Settling, Step, Work};
use crate::object::{Object, unreadable};
use crate::problem::{Problem, Result};
use crate::route::{name, settling, topic_to_send};
use crate::send::IN_PARTS;
use crate::sent::{Sent, Settled, Transaction};
use crate::table_steps::Said;
use crate::tables::sums_of;
use crate::token::Token;

impl<G: Gateway> App<G> {
    pub(crate) async fn transact(&self, asked: Asked) -> Result<Answer> {
        refuse_headers(&asked.headers)?;
        let asker = asked.peer.asker.clone();
        let (body, max) = (asked.into_body()?, self.options.batch_bytes_max());
        let reading = self.reader.begin(BodyKind::Other, body, &asker, max, IN_PARTS)?;
        let mut read = reading.whole().await?;
        let json_bytes = json_bytes(&read.bytes);
        if json_bytes > self.options.json_bytes_max() {
            return Err(model::Refusal::TransactionTooLarge.into());
        }
        self.budget.extend(&mut read.permit, BodyKind::Other, json_bytes).await?;
        let Object(Transaction { send, settle, expect, put, add, delete }) =
            serde_json::from_slice(&read.bytes).map_err(|error| unreadable(&read.bytes, &error))?;
        let (send, settle) = (send.unwrap_or_default(), settle.unwrap_or_default());
        let (sent, settled) = (send.len(), settle.len());
        let tables = Said { expect, put, add, delete };
        if sent + settled + tables.len() > limits::TRANSACTION_RECORDS_MAX || settled > SETTLED_MAX
        {
            return Err(model::Refusal::TransactionTooLarge.into());
        }
        // Settlements last: if another step is refused nothing has been taken from its lease yet.
        // A refusal names an expectation by its place, so that those come first.
        let mut steps = tables.into_steps()?;
        let brings = sent > 0 || !steps.is_empty();
        steps.reserve(sent + settled);
        for Object(message) in send {
            steps.push(self.put(message)?);
        }
        let mut leases = BTreeSet::new();
        for Object(settled) in &settle {
            let (token, settling) = settlement_of(settled)?;
            if !leases.insert(token) {
                return Err(Problem::bad_request(format!("settle names lease {token} twice")));
            }
            steps.push(Step::Settle { token, settling });
        }
        // A send may wait long, and a transaction that only settles must not wait for that.
        let sending = if brings { memory_bytes(&steps) } else { 0 };
        let _room = self.budget.take(BodyKind::Send, sending)?;
        drop(read);
        let mut replies = Vec::new();
        if !steps.is_empty() {
            replies = self.ask(Work::atomic(steps).by(&asker)).await?;
        }
        let sums = sums_of(replies);
        let done = if sums.is_empty() {
            json!({ "sent": sent, "settled": settled })
        } else {
            json!({ "sent": sent, "settled": settled, "added": sums })
        };
        Ok(json(StatusCode::OK, &done))
    }

    fn put(&self, message: Sent) -> Result<Step> {
        let to = match (&message.queue, &message.topic) {
            (Some(queue), None) => Destination::Queue(name(queue)?),
            (None, Some(topic)) => Destination::Topic(topic_to_send(topic)?),
            _ => return Err(Problem::bad_request("each of send names one of queue and topic")),
        };
        let (draft, body) = Draft::of_json(message)?;
        let (envelopes, max) = (&self.options.envelopes, self.options.message_bytes_max);
        let now = self.gateway.now();
        let now = (now, self.gateway.wall_time(now));
        let message = draft.message(&body, now, envelopes, max)?;
        Ok(Step::Put { to, message, count: 1 })
    }
}

/// The memory of a transaction's messages.
fn memory_bytes(steps: &[Step]) -> usize {
    let bodies = steps.iter().map(|step| match step {
        Step::Put { message, .. } => message.body.len(),
        Step::Table(step) => step.body_bytes(),
        _ => 0,
    });
    size_of_val(steps) + bodies.sum::<usize>()
}

fn settlement_of(settled: &Settled) -> Result<(Token, Settling)> {
    let token = settled.lease.parse().map_err(|_| {
        Problem::bad_request("each of settle names a lease, as Dunlin-Lease of a message says it")
    })?;
    Ok((token, settling(settled.r#as.as_deref().unwrap_or("accept"))?))
}

/// The approximate memory of a text once it was read as JSON: it may be a hundred times as much.
fn json_bytes(text: &[u8]) -> usize {
    let (mut bytes, mut is_string, mut is_escaped) = (text.len(), false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b'{' if !is_string => bytes += OBJECT_BYTES,
            b'[' | b',' if !is_string => bytes += VALUE_BYTES,
            _ => {}
        }
    }
    bytes
}

/// An object keeps room for eleven members.
const OBJECT_BYTES: usize = 11 * (size_of::<String>() + size_of::<Json>()) + 32;

/// A value with its name, and as much again while the list that it is in grows.
const VALUE_BYTES: usize = 2 * (size_of::<String>() + size_of::<Json>());

/// Leases that one transaction settles: no other client has a turn between.
const SETTLED_MAX: usize = limits::FRAME_RECORDS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_weighs_as_parsed_values() {
        assert_eq!(json_bytes(b"12345"), 5);
        assert_eq!(json_bytes(br#""a{[,\"{\\""#), 11, "a text is itself");
        let objects = format!("[{}]", vec![r#"{"a":0}"#; 1_000].join(","));
        assert!(json_bytes(objects.as_bytes()) > 1_000 * OBJECT_BYTES);
        let numbers = format!("[{}]", ["0"; 1_000].join(","));
        assert!(json_bytes(numbers.as_bytes()) > 1_000 * VALUE_BYTES);
    }
}
