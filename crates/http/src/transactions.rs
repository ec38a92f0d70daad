//! Sending and settling as one: all of it in one frame of the log, or nothing.

use hyper::StatusCode;
use model::{Destination, limits};
use serde_json::{Map, Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::draft::{Draft, take_text};
use crate::gateway::{Gateway, Step, Work};
use crate::problem::{Problem, Result};
use crate::route::{name, settling};
use crate::send::BATCH_BYTES_MAX;

impl<G: Gateway> App<G> {
    pub(crate) async fn transact(&self, asked: Asked) -> Result<Answer> {
        let read = self.read(asked.into_body()?, BATCH_BYTES_MAX).await?;
        let mut object: Map<String, Json> =
            serde_json::from_slice(&read.bytes).map_err(|error| {
                Problem::bad_request(format!("the body is no JSON object: {error}"))
            })?;
        let send = take_objects(&mut object, "send")?;
        let settle = take_objects(&mut object, "settle")?;
        if let Some(unknown) = object.keys().next() {
            return Err(Problem::bad_request(format!("a transaction has no member {unknown}")));
        }
        let (sent, settled) = (send.len(), settle.len());
        if sent + settled > limits::TRANSACTION_RECORDS_MAX {
            return Err(model::Refusal::TransactionTooLarge.into());
        }
        let mut steps = Vec::with_capacity(sent + settled);
        // Sends first: where one is refused nothing has been taken from its lease yet.
        for message in send {
            steps.push(self.put(message)?);
        }
        for settlement in settle {
            steps.push(settle_step(settlement)?);
        }
        if !steps.is_empty() {
            self.gateway.ask(Work::atomic(steps)).await?;
        }
        Ok(json(StatusCode::OK, &json!({ "sent": sent, "settled": settled })))
    }

    fn put(&self, mut message: Map<String, Json>) -> Result<Step> {
        let queue = take_text(&mut message, "queue")?;
        let topic = take_text(&mut message, "topic")?;
        let to = match (queue, topic) {
            (Some(queue), None) => Destination::Queue(name(&queue)?),
            (None, Some(topic)) => Destination::Topic(name(&topic)?),
            _ => return Err(Problem::bad_request("each of send names one of queue and topic")),
        };
        let (draft, body) = Draft::of_json(&mut message)?;
        let (envelopes, max) = (&self.options.envelopes, self.options.message_bytes_max);
        let message = draft.message(&body, self.gateway.now(), envelopes, max)?;
        Ok(Step::Put { to, message, count: 1 })
    }
}

fn settle_step(mut settlement: Map<String, Json>) -> Result<Step> {
    let token = take_text(&mut settlement, "lease")?.unwrap_or_default();
    let token = token.parse().map_err(|_| {
        Problem::bad_request("each of settle names a lease, as Dunlin-Lease of a message says it")
    })?;
    let word = take_text(&mut settlement, "as")?;
    let settling = settling(word.as_deref().unwrap_or("accept"))?;
    match settlement.keys().next() {
        Some(unknown) => Err(Problem::bad_request(format!("settle has no member {unknown}"))),
        None => Ok(Step::Settle { token, settling }),
    }
}

fn take_objects(object: &mut Map<String, Json>, name: &str) -> Result<Vec<Map<String, Json>>> {
    let wrong = || Problem::bad_request(format!("{name} has to be a list of objects"));
    match object.remove(name) {
        None => Ok(Vec::new()),
        Some(Json::Array(list)) => list
            .into_iter()
            .map(|item| match item {
                Json::Object(object) => Ok(object),
                _ => Err(wrong()),
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}
