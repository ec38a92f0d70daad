//! The operators' resources: queues, their messages without receiving them, subscriptions.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use model::{
    AdminCommand, BrowsedMessage, ClientName, Command, Envelopes, Holder, MessageId, MessageState,
    Nanos, QueueName, QueueStatistics, Reply, SubscriptionName, SubscriptionStatistics, limits,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use crate::app::{App, Asked, json, no_content};
use crate::body::Answer;
use crate::cursor::{Cursor, state_named, state_word};
use crate::gateway::Gateway;
use crate::guard::attachment;
use crate::latest::{Aged, Page};
use crate::policies::rules_json;
use crate::portions::Portions;
use crate::problem::{Problem, Result};
use crate::query::Query;
use crate::route::name;
use crate::shown::{self, millis};

impl<G: Gateway> App<G> {
    pub(crate) async fn queues(&self, mut asked: Asked) -> Result<Answer> {
        let after = asked.query.text("after").map(|after| name(&after)).transpose()?;
        let max = page_max(&mut asked.query)?;
        asked.query.finish()?;
        let Aged { value: Page { queues, more }, age } = self.page_or_latest(after, max).await?;
        let next = queues.last().filter(|_| more).map(|queue| queue.queue.as_str().to_owned());
        let queues: Vec<Json> = queues.iter().map(statistics).map(Json::Object).collect();
        let age_millis = age_millis(age);
        let page = json!({ "queues": queues, "next": next, "age_millis": age_millis });
        Ok(json(StatusCode::OK, &page))
    }

    /// Some queues in the order of their names, and whether there are more.
    pub(crate) async fn queue_page(&self, after: Option<QueueName>, max: usize) -> Result<Page> {
        let (mut queues, mut after) = (Vec::new(), after);
        // One more, to know whether there is one that the client sees.
        while queues.len() <= max {
            let command = AdminCommand::ListQueues { after, max: max + 1 - queues.len() };
            let Reply::QueuePage { queues: some, next } = self.admin(command).await? else {
                return Err(unexpected());
            };
            queues.extend(some);
            after = next;
            if after.is_none() {
                break;
            }
        }
        let more = queues.len() > max;
        queues.truncate(max);
        Ok(Page { queues, more })
    }

    pub(crate) async fn queue(&self, queue: QueueName, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let asking = self.queue_now(queue.clone());
        // There is no sample of its rules.
        let Aged { value: mut object, age } =
            self.queue_or_latest(&queue, asking, statistics).await?;
        object.insert("age_millis".into(), age_millis(age));
        Ok(json(StatusCode::OK, &Json::Object(object)))
    }

    async fn queue_now(&self, queue: QueueName) -> Result<Map<String, Json>> {
        let command = Command::QueueStatistics { queue: queue.clone() };
        let Reply::QueueStatistics(found) = self.command(command).await? else {
            return Err(no_queue(&queue));
        };
        let mut object = statistics(&found);
        if let Reply::Policy(stated) = self.admin(AdminCommand::Policy { queue }).await? {
            object.insert("policy".into(), rules_json(&stated.holds));
            object.insert("kept".into(), stated.holds.kept.into());
        }
        Ok(object)
    }

    pub(crate) async fn delete_queue(&self, queue: QueueName, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        loop {
            match self.admin(AdminCommand::Delete { queue: queue.clone() }).await? {
                Reply::NotFound => return Err(no_queue(&queue)),
                Reply::CountSoFar(_) => {}
                _ => return Ok(no_content()),
            }
        }
    }

    pub(crate) async fn browse(&self, queue: QueueName, mut asked: Asked) -> Result<Answer> {
        let state = state(&mut asked.query)?;
        let selector = selector(&mut asked.query)?;
        let after = asked.query.parsed::<Cursor>("after", "what next said")?;
        let max = page_max(&mut asked.query)?;
        asked.query.finish()?;
        let (mut messages, mut after, mut bytes) = (Vec::new(), after.map(|it| it.0), 0);
        while messages.len() < max && bytes < PAGE_BYTES {
            let (queue, selector) = (queue.clone(), selector.clone());
            let max = (max - messages.len()).min(PAGE_STEP);
            let command =
                AdminCommand::Browse { queue: queue.clone(), state, selector, after, max };
            let Reply::Page(page) = self.admin(command).await? else {
                return Err(no_queue(&queue));
            };
            let shown = page.messages.iter().map(|it| shown_json(it, &self.options.envelopes));
            let texts = shown.map(|object| shown::text(&object));
            messages.extend(texts.inspect(|text| bytes += text.get().len()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let next = after.map(|end| Cursor(end).to_string());
        Ok(attachment(json(StatusCode::OK, &MessagePage { messages, next })))
    }

    pub(crate) async fn message(&self, message: MessageId, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let reply = self.admin(AdminCommand::Show { message }).await?;
        let found = if let Reply::Page(page) = &reply { page.messages.first() } else { None };
        let missing = || Problem::not_found(format!("there is no message {message}"));
        let object = shown_json(found.ok_or_else(missing)?, &self.options.envelopes);
        Ok(attachment(json(StatusCode::OK, &object)))
    }

    pub(crate) async fn purge(&self, queue: QueueName, mut asked: Asked) -> Result<Answer> {
        let state = state(&mut asked.query)?;
        if state == Some(MessageState::Leased) {
            return Err(Problem::bad_request(
                "what is leased is its consumer's until the lease ends, and stays: state has to be \
                 ready, delayed or buried",
            ));
        }
        let selector = selector(&mut asked.query)?;
        asked.query.finish()?;
        let mut done = Portions::of("deleted");
        loop {
            let (queue, selector, after) = (queue.clone(), selector.clone(), done.until);
            let purge = AdminCommand::Purge { queue: queue.clone(), state, selector, after };
            if let Some(answer) = done.take(self.admin(purge).await, || no_queue(&queue))? {
                return Ok(answer);
            }
        }
    }

    pub(crate) async fn move_messages(&self, from: QueueName, mut asked: Asked) -> Result<Answer> {
        let query = &mut asked.query;
        let to = query.text("to").map(|to| name(&to)).transpose()?;
        let to_origin = query.flag("to_origin")?;
        let selector = selector(query)?;
        let message = query.number("message", 1, u64::MAX)?.map(MessageId);
        let most = query.number("max", 1, u64::MAX)?.unwrap_or(u64::MAX);
        asked.query.finish()?;
        if to.is_some() == to_origin {
            return Err(Problem::bad_request(
                "say where to: one of to=QUEUE and to_origin, which replays dead letters",
            ));
        }
        let Reply::Stored { message: before } = self.admin(AdminCommand::NextMessage).await? else {
            return Err(unexpected());
        };
        let mut done = Portions::of("moved");
        loop {
            let (from, to, selector) = (from.clone(), to.clone(), selector.clone());
            let command = AdminCommand::MoveMessages {
                from: from.clone(),
                to,
                message,
                selector,
                before,
                max: most.saturating_sub(done.count),
                after: done.until,
            };
            let missing = || message.map_or_else(|| no_queue(&from), |it| not_moved(it, &from));
            if let Some(answer) = done.take(self.admin(command).await, missing)? {
                return Ok(answer);
            }
        }
    }

    pub(crate) async fn subscriptions(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let all: Vec<Json> = self.all_subscriptions().await?.iter().map(subscription).collect();
        Ok(json(StatusCode::OK, &json!({ "subscriptions": all })))
    }

    /// Topics that have subscriptions: nothing is kept of others.
    pub(crate) async fn topics(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let mut topics: Vec<(QueueName, u64)> = Vec::new();
        for found in self.all_subscriptions().await? {
            let topic = found.subscription.topic;
            match topics.last_mut() {
                Some((last, count)) if *last == topic => *count += 1,
                _ => topics.push((topic, 1)),
            }
        }
        let topic = |(name, count): &(QueueName, u64)| {
            let name = name.as_str();
            json!({ "topic": name, "subscriptions": count })
        };
        let topics: Vec<Json> = topics.iter().map(topic).collect();
        Ok(json(StatusCode::OK, &json!({ "topics": topics })))
    }

    pub(crate) async fn unsubscribe(&self, name: QueueName, mut asked: Asked) -> Result<Answer> {
        let client = asked.query.text("client").map(|it| crate::route::name(&it)).transpose()?;
        let durable = asked.query.choice("durable")?.unwrap_or(true);
        let asked_user = asked.query.text("user").map(|user| user.into());
        asked.query.finish()?;
        let user = asked_user;
        let name = SubscriptionName { user, client, name, durable };
        match self.command(Command::Unsubscribe { name }).await? {
            Reply::NotFound => Err(Problem::not_found(
                "no such subscription; it is known by its name, client and durability",
            )),
            _ => Ok(no_content()),
        }
    }

    async fn all_subscriptions(&self) -> Result<Vec<SubscriptionStatistics>> {
        match self.admin(AdminCommand::ListSubscriptions).await? {
            Reply::Subscriptions(all) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    pub(crate) async fn admin(&self, command: AdminCommand) -> Result<Reply> {
        self.command(Command::Admin(Box::new(command))).await
    }
}

pub(crate) fn page_max(query: &mut Query) -> Result<usize> {
    let max = query.number("max", 1, limits::PAGE_MESSAGES_MAX as u64)?;
    Ok(max.map_or(PAGE_DEFAULT, |max| max as usize))
}

fn state(query: &mut Query) -> Result<Option<MessageState>> {
    let Some(text) = query.text("state") else { return Ok(None) };
    let state = state_named(&text);
    let wrong = || Problem::bad_request("state has to be ready, leased, delayed or buried");
    state.map(Some).ok_or_else(wrong)
}

/// An empty one, as of a variable that a script forgot to set, does not mean all messages.
fn selector(query: &mut Query) -> Result<Option<Arc<str>>> {
    match query.text("selector") {
        Some(text) if text.trim().is_empty() => {
            Err(Problem::bad_request("selector is empty: leave it out if all messages are meant"))
        }
        text => Ok(text.map(Arc::from)),
    }
}

/// How old figures are.
pub(crate) fn age_millis(age: Duration) -> Json {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX).into()
}

fn statistics(queue: &QueueStatistics) -> Map<String, Json> {
    let pairs = [
        ("name", queue.queue.as_str().into()),
        ("ready", queue.ready.into()),
        ("leased", queue.leased.into()),
        ("delayed", queue.delayed.into()),
        ("buried", queue.buried.into()),
        ("producers", queue.producers.into()),
        ("consumers", queue.consumers.into()),
        ("waiting", queue.waiting.into()),
        ("stored_total", queue.messages_total.into()),
        ("deleted_total", queue.deleted_total.into()),
        ("paused_millis", millis(queue.pause_left).into()),
        ("body_bytes", queue.body_bytes.into()),
        ("blocked_sends", queue.blocked_sends.into()),
    ];
    pairs.map(|(name, value): (&str, Json)| (name.to_owned(), value)).into_iter().collect()
}

/// Messages of a queue, and where the next page begins.
#[derive(Serialize)]
struct MessagePage {
    messages: Vec<Box<RawValue>>,
    next: Option<String>,
}

fn shown_json(shown: &BrowsedMessage, envelopes: &Envelopes) -> Map<String, Json> {
    let mut object = shown::json(&shown.delivery, envelopes);
    object.insert("queue".into(), shown.queue.as_str().into());
    object.insert("state".into(), state_word(shown.state).into());
    if shown.time_left > Nanos::ZERO {
        object.insert("left_millis".into(), millis(shown.time_left).into());
    }
    if let Some(holder) = &shown.holder {
        object.insert("holder".into(), holder_json(holder));
    }
    object
}

fn holder_json(holder: &Holder) -> Json {
    json!({
        "session": holder.session.0,
        "connection": holder.name.as_deref(),
        "client": holder.client.as_ref().map(ClientName::as_str),
        "held_millis": holder.held.map(millis),
    })
}

fn subscription(found: &SubscriptionStatistics) -> Json {
    let of = &found.subscription;
    let name = of.name.as_ref();
    json!({
        "topic": of.topic.as_str(),
        "name": name.map(|name| name.name.as_str()),
        "client": name.and_then(|name| name.client.as_ref()).map(QueueName::as_str),
        "durable": of.is_durable(),
        "shared": of.shared,
        "selector": of.selector.as_deref(),
        "ready": found.ready,
        "leased": found.leased,
        "consumers": found.consumers,
    })
}

/// Why one message stays, as far as is known.
fn not_moved(message: MessageId, from: &QueueName) -> Problem {
    Problem::not_found(format!(
        "message {message} is not in {from}, or somebody holds it, or the selector does not match \
         it: GET /messages/{message} shows where it is"
    ))
}

fn no_queue(queue: &QueueName) -> Problem {
    Problem::not_found(format!(
        "there is no queue {queue}: one goes with its last message, producer and consumer"
    ))
}

/// A reply that the engine's documentation does not name.
pub(crate) fn unexpected() -> Problem {
    Problem::conflict("the broker gave an answer that is not understood here")
}

/// Things on a page unless asked otherwise.
const PAGE_DEFAULT: usize = 100;

/// Messages that are asked for and rendered at once, so that others are served in between.
const PAGE_STEP: usize = 16;

/// Bytes of text after which a page ends: a byte of a body may take six.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
