//! The rules of queues: those that hold, and where each is from; giving a queue rules of its own.

use hyper::{Method, StatusCode};
use model::{
    AdminCommand, OwnPolicy, PolicyChange, QueueName, QueuePolicy, QueueRule, Reply, RuleKey,
    StatedPolicy,
};
use serde_json::{Map, Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::gateway::Gateway;
use crate::object::unreadable;
use crate::operate::{page_max, unexpected};
use crate::problem::{Problem, Result};
use crate::route::name;
use crate::unique;

impl<G: Gateway> App<G> {
    /// Of a queue, or of one that is not there, which would have them.
    pub(crate) async fn policy(&self, queue: QueueName, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        self.answer_policy(queue.clone(), AdminCommand::Policy { queue }).await
    }

    /// `PUT` says all rules of the queue's own, `PATCH` some of them.
    pub(crate) async fn change_policy(
        &self,
        method: &Method,
        queue: QueueName,
        asked: Asked,
    ) -> Result<Answer> {
        let asker = asked.peer.asker.clone();
        let (said, body) = (&self.reader.said, asked.into_body()?);
        let reading =
            self.reader.begin(said, body, &asker, POLICY_BYTES_MAX, "send only the rules")?;
        let read = reading.whole().await?;
        let object =
            unique::object(&read.bytes).map_err(|error| unreadable(&read.bytes, &error))?;
        let change = Box::new(change(method == Method::PATCH, &object)?);
        self.answer_policy(queue.clone(), AdminCommand::ChangePolicy { queue, change }).await
    }

    /// What is configured holds again.
    pub(crate) async fn reset_policy(&self, queue: QueueName, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let change = Box::new(PolicyChange::to(OwnPolicy::default()));
        self.answer_policy(queue.clone(), AdminCommand::ChangePolicy { queue, change }).await
    }

    /// Queues that have rules of their own.
    pub(crate) async fn policies(&self, mut asked: Asked) -> Result<Answer> {
        let after = asked.query.text("after").map(|after| name(&after)).transpose()?;
        let max = page_max(&mut asked.query)?;
        asked.query.finish()?;
        // One more, to know whether there is one.
        let command = AdminCommand::ListPolicies { after, max: max + 1 };
        let Reply::OwnPolicies(mut all) = self.admin(command).await? else {
            return Err(unexpected());
        };
        let more = all.len() > max;
        all.truncate(max);
        let next = all.last().filter(|_| more).map(|(name, _)| name.as_str().to_owned());
        let shown = |(queue, own): &(QueueName, Box<OwnPolicy>)| {
            let own: Map<String, Json> = own.iter().map(member).collect();
            json!({ "queue": queue.as_str(), "own": own })
        };
        let all: Vec<Json> = all.iter().map(shown).collect();
        Ok(json(StatusCode::OK, &json!({ "policies": all, "next": next })))
    }

    async fn answer_policy(&self, queue: QueueName, command: AdminCommand) -> Result<Answer> {
        match self.admin(command).await? {
            Reply::Policy(stated) => Ok(json(StatusCode::OK, &stated_json(&queue, &stated))),
            _ => Err(unexpected()),
        }
    }
}

/// The rules that hold, in the words in which they are given, and where each is from.
fn stated_json(queue: &QueueName, stated: &StatedPolicy) -> Json {
    let holds = RuleKey::ALL.map(|key| member(QueueRule::of(key, &stated.holds)));
    let holds: Map<String, Json> = holds.into_iter().collect();
    let from = RuleKey::ALL.map(|key| (key.word().to_owned(), origin(key, stated).into()));
    let from: Map<String, Json> = from.into_iter().collect();
    json!({ "queue": queue.as_str(), "policy": holds, "from": from })
}

/// What is configured as it would be anyway cannot be told from what is not.
fn origin(key: RuleKey, stated: &StatedPolicy) -> &'static str {
    let default = QueueRule::of(key, &QueuePolicy::default());
    match stated.own.get(key) {
        Some(_) => "own",
        None if QueueRule::of(key, &stated.configured) == default => "default",
        None => "configured",
    }
}

fn member(rule: QueueRule) -> (String, Json) {
    let value = match rule {
        QueueRule::AttemptsMax(attempts) => attempts.into(),
        QueueRule::MessagesMax(Some(number)) | QueueRule::BytesMax(Some(number)) => number.into(),
        rule => rule.to_string().into(),
    };
    (rule.key().word().to_owned(), value)
}

/// What a body asks for: all rules of its own, or `some` of them, where `null` takes one away.
fn change(some: bool, object: &Map<String, Json>) -> Result<PolicyChange> {
    let (mut forget, mut set) = (Vec::new(), OwnPolicy::default());
    for (word, value) in object {
        let key = RuleKey::named(word).ok_or_else(|| unknown(word))?;
        if some && value.is_null() {
            forget.push(key);
        } else {
            set.set(rule(key, value)?);
        }
    }
    Ok(if some { PolicyChange { forget, set } } else { PolicyChange::to(set) })
}

fn rule(key: RuleKey, value: &Json) -> Result<QueueRule> {
    let text = match value {
        Json::Number(number) if key.is_number() => Some(number.to_string()),
        // In a text there are only words.
        Json::String(text)
            if !(key.is_number() && text.starts_with(|c: char| c.is_ascii_digit())) =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    let rule = text.and_then(|text| QueueRule::parse(key, &text));
    rule.ok_or_else(|| {
        Problem::bad_request(format!("{} is {value} and has to be {}", key.word(), key.allowed()))
    })
}

fn unknown(word: &str) -> Problem {
    let known = RuleKey::ALL.map(RuleKey::word).join(", ");
    Problem::bad_request(format!("{word:?} is no rule of a queue, which are: {known}"))
}

/// A body that names all rules is much shorter.
const POLICY_BYTES_MAX: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(some: bool, text: &str) -> Result<PolicyChange> {
        change(some, &serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_is_shown_can_be_given() {
        let text = r#"{"release-order":"back","attempts-max":0,"dead-letters":"drop",
            "pop-lease":"90s","max-messages":18446744073709551615,"max-bytes":"none",
            "when-full":"reject","target-age":"250ms"}"#;
        let own = of(false, text).unwrap().set;
        assert_eq!(own.iter().count(), RuleKey::ALL.len());
        let stated = StatedPolicy {
            holds: own.over(QueuePolicy::default()),
            own: OwnPolicy::default(),
            configured: own.over(QueuePolicy::default()),
        };
        let shown = stated_json(&QueueName::new("q").unwrap(), &stated);
        assert_eq!(shown["from"]["pop-lease"], "configured");
        assert_eq!(shown["from"]["max-bytes"], "default");
        assert_eq!(of(false, &shown["policy"].to_string()).unwrap().set, own);
    }

    #[test]
    fn some_change_and_others_go() {
        let asked = of(true, r#"{"max-messages":7,"when-full":null}"#).unwrap();
        assert_eq!(asked.forget, [RuleKey::WhenFull]);
        assert_eq!(asked.set.iter().collect::<Vec<_>>(), [QueueRule::MessagesMax(Some(7))]);
        assert_eq!(of(false, "{}").unwrap().forget, RuleKey::ALL);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_what_would() {
        for (text, what) in [
            (r#"{"max-mesages":1}"#, "\"max-mesages\" is no rule of a queue, which are: release"),
            (r#"{"max-messages":0}"#, "max-messages is 0 and has to be a number above 0, or none"),
            (r#"{"max-messages":"7"}"#, "max-messages is \"7\" and has to be a number"),
            (r#"{"max-messages":1.5}"#, "max-messages is 1.5 and"),
            (r#"{"max-bytes":-1}"#, "max-bytes is -1 and"),
            (r#"{"max-bytes":1e3}"#, "max-bytes is 1000.0 and"),
            (r#"{"attempts-max":4294967296}"#, "0 for any number"),
            (r#"{"attempts-max":"none"}"#, "0 for any number"),
            (r#"{"when-full":"burn"}"#, "pace, reject, drop-oldest, dead-letter or disconnect"),
            (r#"{"when-full":true}"#, "when-full is true and"),
            (r#"{"when-full":null}"#, "when-full is null and"),
            (r#"{"pop-lease":30}"#, "a duration such as"),
            (r#"{"target-age":"2401h"}"#, "100 days"),
            (r#"{"release-order":["front"]}"#, "front or back"),
        ] {
            let problem = of(false, text).unwrap_err();
            assert!(problem.detail.contains(what), "{}", problem.detail);
            assert_eq!(problem.kind, "bad-request");
        }
    }
}
