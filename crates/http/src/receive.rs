//! Receiving messages, and settling their leases.

use std::collections::BTreeMap;

use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use model::{Nanos, QueueName, limits, priority_of_jms};

use crate::app::{App, Asked, json, no_content};
use crate::body::{Answer, Body, Unsent};
use crate::byte_share::Permit;
use crate::draft::DELAY_MAX;
use crate::gateway::{Gateway, Leased, Settling, Step, Wanted, Work};
use crate::guard::attachment;
use crate::problem::{Problem, Result};
use crate::route::Action;
use crate::shown;
use crate::token::Token;

impl<G: Gateway> App<G> {
    pub(crate) async fn receive_or_browse(
        &self,
        queue: QueueName,
        mut asked: Asked,
    ) -> Result<Answer> {
        if asked.query.flag("browse")? {
            return self.browse(queue, asked).await;
        }
        self.receive(queue, asked).await
    }

    async fn receive(&self, queue: QueueName, mut asked: Asked) -> Result<Answer> {
        let wait = asked.query.duration("wait", WAIT_MAX)?.unwrap_or(Nanos::ZERO);
        let lease = lease(asked.query.text("lease").as_deref())?;
        let max = asked.query.number("max", 1, limits::PAGE_MESSAGES_MAX as u64)?;
        asked.query.finish()?;
        asked.caller.check_lease(&asked.headers)?;
        let as_list = max.is_some() || asks_for_json(&asked.headers);
        // A head may be large, and the wait long.
        asked.headers = HeaderMap::new();
        let asker = asked.peer.asker.clone();
        let mut permit = self.budget.answers.permit();
        let max_count = max.unwrap_or(1) as usize;
        if as_list && wait == Nanos::ZERO {
            // While others read slowly, the message stays in its queue until there is room for the
            // answer.
            let likely = max_count.saturating_mul(LIKELY_BYTES).min(ANSWER_BYTES);
            let wait_max = self.options.block_timeout;
            tokio::select! {
                biased;
                more = permit.await_more(likely, wait_max) => more?,
                () = asker.left() => {}
            }
        }
        let wanted = Wanted { queue, wait, lease, max: max_count, asker: asker.clone() };
        let leased = self.gateway.receive(self.actor().clone(), wanted).await?;
        let tokens: Vec<Token> = leased.iter().map(|leased| leased.token).collect();
        let gateway = self.gateway.clone();
        let unsent = Unsent::new(move || gateway.give_back(tokens));
        // A wait that it came to the end of may have lasted long.
        if !leased.is_empty() && asker.look() {
            return Err(Problem::client_left());
        }
        let answer = match leased.as_slice() {
            leased if as_list => attachment(self.list(leased)),
            [leased] => attachment(self.one(leased)),
            _ => no_content(),
        };
        Ok(answer.map(|body| guarded(body, unsent, permit)))
    }

    /// Bytes as they are, the rest in headers.
    fn one(&self, leased: &Leased) -> Answer {
        let mut answer = Answer::new(Body::from(shown::payload(&leased.delivery)));
        let headers = answer.headers_mut();
        shown::headers(&leased.delivery, &self.options.envelopes, headers);
        let token = HeaderValue::from_str(&leased.token.to_string());
        let token = token.expect("invariant: a token is digits and a dash");
        headers.insert(HeaderName::from_static("dunlin-lease"), token);
        answer
    }

    fn list(&self, leased: &[Leased]) -> Answer {
        let message = |leased: &Leased| {
            let mut object = shown::json(&leased.delivery, &self.options.envelopes);
            object.insert("lease".into(), leased.token.to_string().into());
            shown::text(&object)
        };
        let messages: Vec<_> = leased.iter().map(message).collect();
        json(StatusCode::OK, &BTreeMap::from([("messages", messages)]))
    }

    pub(crate) async fn accept(&self, token: Token, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        self.settle(token, Settling::Accept).await
    }

    pub(crate) async fn act(
        &self,
        token: Token,
        action: Action,
        mut asked: Asked,
    ) -> Result<Answer> {
        let query = &mut asked.query;
        let settling = match action {
            Action::Fail => Settling::Fail,
            Action::Release => {
                let delay = query.duration("delay", DELAY_MAX)?;
                let priority = query.number("priority", 0, 9)?;
                Settling::Release { delay, priority: priority.map(engine_priority) }
            }
            Action::Extend => Settling::Extend { lease: lease(query.text("lease").as_deref())? },
            Action::Bury => {
                let priority = query.number("priority", 0, 9)?;
                Settling::Bury { priority: priority.map(engine_priority) }
            }
        };
        asked.query.finish()?;
        self.settle(token, settling).await
    }

    async fn settle(&self, token: Token, settling: Settling) -> Result<Answer> {
        self.ask(Work::steps(vec![Step::Settle { token, settling }])).await?;
        Ok(no_content())
    }
}

/// A body with a guard: a message that never reaches the connection was not received. A body
/// without bytes is not guarded: the connection never asks for them.
fn guarded(body: Body, unsent: Unsent, permit: Permit) -> Body {
    match body {
        Body::Whole(bytes, None, _) if !bytes.is_empty() => {
            Body::Whole(bytes, Some(unsent), Some(permit))
        }
        body => {
            unsent.sent();
            body
        }
    }
}

fn engine_priority(priority: u64) -> u32 {
    priority_of_jms(u8::try_from(priority).unwrap_or(u8::MAX))
}

/// How long a message is leased.
fn lease(text: Option<&str>) -> Result<Nanos> {
    let Some(text) = text else { return Ok(LEASE_DEFAULT) };
    let lease = crate::query::duration("lease", text, LEASE_MAX)?;
    if lease == Nanos::ZERO {
        return Err(Problem::bad_request("lease is 0: take 1ms or more"));
    }
    Ok(lease)
}

/// Longer than any proxy keeps a silent request.
const WAIT_MAX: Nanos = Nanos::from_secs(3_600);

const LEASE_DEFAULT: Nanos = Nanos::from_secs(30);

const LEASE_MAX: Nanos = Nanos::from_secs(86_400);

/// Room for one message of several, before its size is known.
const LIKELY_BYTES: usize = 4096;

/// And for all of them, as a gateway gives no more.
const ANSWER_BYTES: usize = 1024 * 1024;

/// True if a client wants JSON rather than a message as it is: its `Accept` names that, and takes
/// not just anything. Clients generated from the description say so. The `Accept` that libraries
/// add to every request ends with `*/*`.
fn asks_for_json(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let mut names_json = false;
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0))
        });
        if kind == "*/*" && !is_refused {
            return false;
        }
        names_json |= kind.eq_ignore_ascii_case("application/json") && !is_refused;
    }
    names_json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_by_name() {
        for (accept, is_asked) in [
            (&[][..], false),
            (&["application/json"], true),
            (&["Application/JSON; charset=utf-8"], true),
            (&["application/json, application/problem+json"], true),
            (&["application/problem+json"], false),
            (&["text/plain", "application/json;q=0.5"], true),
            (&["application/json;q=0"], false),
            (&["application/json; q=0.000, text/plain"], false),
            (&["*/*"], false),
            // By axios.
            (&["application/json, text/plain, */*"], false),
            (&["application/json, */*;q=0"], true),
            (&["text/event-stream"], false),
            (&["application/jsonx"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(asks_for_json(&headers), is_asked, "{accept:?}");
        }
    }
}
