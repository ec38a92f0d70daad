//! The rules of queues: those that hold, and where each is from; giving a queue rules of its own.

use hyper::{Method, StatusCode};
use model::{
    AdminCommand, OwnPolicy, PolicyChange, QueueName, QueuePolicy, QueueRule, Reply, RuleKey,
    StatedPolicy,
};
use serde_json::{Map, Number, Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::byte_budget::BodyKind;
use crate::gateway::Gateway;
use crate::object::unreadable;
use crate::operate::{page_max, unexpected};
use crate::problem::{Problem, Result};
use crate::route::name;
use crate::unique;

impl<G: Gateway> App<G> {
    /// The rules of a queue, or those that a queue would have if it were there.
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
        let (kind, body) = (BodyKind::Other, asked.into_body()?);
        let reading =
            self.reader.begin(kind, body, &asker, POLICY_BYTES_MAX, "send only the rules")?;
        let read = reading.whole().await?;
        let object =
            unique::object(&read.bytes).map_err(|error| unreadable(&read.bytes, &error))?;
        let change = Box::new(change(method == Method::PATCH, &object)?);
        self.answer_policy(queue.clone(), AdminCommand::ChangePolicy { queue, change }).await
    }

    /// Takes the queue's own rules away: its configured rules hold again.
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
    let from = RuleKey::ALL.map(|key| (key.json_name(), origin(key, stated).into()));
    let from: Map<String, Json> = from.into_iter().collect();
    json!({ "queue": queue.as_str(), "policy": rules_json(&stated.holds), "from": from })
}

/// The rules that hold.
pub(crate) fn rules_json(policy: &QueuePolicy) -> Json {
    let rules = RuleKey::ALL.map(|key| member(QueueRule::of(key, policy)));
    Json::Object(rules.into_iter().collect())
}

/// The origin of a rule. A rule that is configured to its default cannot be told from one that is
/// not configured.
fn origin(key: RuleKey, stated: &StatedPolicy) -> &'static str {
    let default = QueueRule::of(key, &QueuePolicy::default());
    match stated.own.get(key) {
        Some(_) => "own",
        None if QueueRule::of(key, &stated.configured) == default => "default",
        None => "configured",
    }
}

fn member(rule: QueueRule) -> (String, Json) {
    let text = rule.to_string();
    let value = match text.as_str() {
        QueueRule::NONE => Json::Null,
        text if rule.key().is_number() => serde_json::from_str(text).unwrap_or(Json::Null),
        word => word.into(),
    };
    (rule.key().json_name(), value)
}

/// The change that a body asks for: all rules of its own, or `some` of them, in which `null` takes
/// one away. Rules are named as in answers, or as on the command line.
fn change(some: bool, object: &Map<String, Json>) -> Result<PolicyChange> {
    let (mut forget, mut set) = (Vec::new(), OwnPolicy::default());
    for (word, value) in object {
        let key = RuleKey::named(&word.replace('_', "-")).ok_or_else(|| unknown(word))?;
        if set.get(key).is_some() || forget.contains(&key) {
            let name = key.json_name();
            return Err(Problem::bad_request(format!("{name} is given twice")));
        }
        if some && value.is_null() {
            forget.push(key);
        } else {
            set.set(rule(key, value)?);
        }
    }
    Ok(if some { PolicyChange { forget, set } } else { PolicyChange::to(set) })
}

fn rule(key: RuleKey, value: &Json) -> Result<QueueRule> {
    let may_be_none = QueueRule::parse(key, QueueRule::NONE).is_some();
    let text = match value {
        Json::Null => Some(QueueRule::NONE.to_owned()),
        Json::Number(number) if key.is_number() && !is_too_large(number) => {
            Some(number.to_string())
        }
        Json::String(text) if !key.is_number() => Some(text.clone()),
        _ => None,
    };
    let is_zero = |text: &String| may_be_none && ["0", "0s", "0ms"].contains(&text.as_str());
    let text = text.map(|text| if is_zero(&text) { QueueRule::NONE.to_owned() } else { text });
    // In JSON nothing is a word for nothing.
    let is_word = *value == QueueRule::NONE;
    let rule = text.filter(|_| !is_word).and_then(|text| QueueRule::parse(key, &text));
    rule.ok_or_else(|| {
        let allowed = key.allowed().replace("a number above 0, or none", "a number, 0 for any");
        let allowed = allowed.replace(", or none", ", or 0 for none");
        let name = key.json_name();
        Problem::bad_request(format!("{name} is {value} and has to be {allowed}"))
    })
}

/// Clients hold numbers in 64 bits with a sign.
fn is_too_large(number: &Number) -> bool {
    number.as_u64().is_some_and(|number| i64::try_from(number).is_err())
}

fn unknown(word: &str) -> Problem {
    let known = RuleKey::ALL.map(RuleKey::json_name).join(", ");
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
    fn shown_policy_can_be_set() {
        let text = r#"{"release_order":"back","max_delivery_attempts":0,"dead_letters":"drop",
            "pop_lease":"90s","max_messages":9223372036854775807,"max_bytes":null,
            "when_full":"reject","target_age":"250ms","redelivery_delay":"1s",
            "redelivery_factor":1.5,"redelivery_max":"1m","redelivery_jitter":0.25}"#;
        let own = of(false, text).unwrap().set;
        assert_eq!(own.iter().count(), RuleKey::ALL.len());
        let stated = StatedPolicy {
            holds: own.over(QueuePolicy::default()),
            own: OwnPolicy::default(),
            configured: own.over(QueuePolicy::default()),
        };
        let shown = stated_json(&QueueName::new("q").unwrap(), &stated);
        assert_eq!(shown["from"]["pop_lease"], "configured");
        assert_eq!(shown["from"]["max_bytes"], "default");
        assert_eq!(shown["policy"]["max_bytes"], Json::Null);
        let again = of(false, &shown["policy"].to_string()).unwrap().set;
        assert!(own.iter().all(|rule| again.get(rule.key()) == Some(rule)), "{again:?}");
    }

    #[test]
    fn patch_sets_and_removes_rules() {
        let asked = of(true, r#"{"max_messages":7,"when-full":null}"#).unwrap();
        assert_eq!(asked.forget, [RuleKey::WhenFull]);
        assert_eq!(asked.set.iter().collect::<Vec<_>>(), [QueueRule::MessagesMax(Some(7))]);
        assert_eq!(of(false, "{}").unwrap().forget, RuleKey::ALL);
        for (some, text) in [
            (true, r#"{"max_messages":0}"#),
            (false, r#"{"max_messages":0}"#),
            (false, r#"{"max_messages":null}"#),
        ] {
            let set: Vec<_> = of(some, text).unwrap().set.iter().collect();
            assert_eq!(set, [QueueRule::MessagesMax(None)], "{text}");
        }
        let ages = of(true, r#"{"target_age":"0"}"#).unwrap().set;
        assert_eq!(ages.iter().collect::<Vec<_>>(), [QueueRule::TargetAge(None)]);
    }

    #[test]
    fn wrong_policy_names_valid_values() {
        for (text, what) in [
            (r#"{"max_mesages":1}"#, "\"max_mesages\" is no rule of a queue, which are: release_"),
            (r#"{"max_messages":"7"}"#, "max_messages is \"7\" and has to be a number, 0 for any"),
            (r#"{"max_messages":1.5}"#, "max_messages is 1.5 and"),
            (r#"{"max_messages":"none"}"#, "max_messages is \"none\" and"),
            (r#"{"max_messages":1,"max-messages":1}"#, "max_messages is given twice"),
            (r#"{"max_bytes":-1}"#, "max_bytes is -1 and"),
            (r#"{"max_bytes":1e3}"#, "max_bytes is 1000.0 and"),
            (r#"{"max_delivery_attempts":4294967296}"#, "0 for any number"),
            (r#"{"max_delivery_attempts":null}"#, "0 for any number"),
            (r#"{"when_full":"burn"}"#, "block, reject, drop-oldest, dead-letter or disconnect"),
            (r#"{"when_full":true}"#, "when_full is true and"),
            (r#"{"when_full":null}"#, "when_full is null and"),
            (r#"{"pop_lease":30}"#, "a duration such as"),
            (r#"{"pop_lease":"none"}"#, "100 days at most, or 0 for none"),
            (r#"{"target_age":"2401h"}"#, "100 days"),
            (r#"{"release_order":["front"]}"#, "front or back"),
            (r#"{"redelivery_delay":"-1s"}"#, "redelivery_delay is"),
            (r#"{"redelivery_factor":0.5}"#, "a number from 1 to 1000"),
            (r#"{"redelivery_jitter":1e-9}"#, "a number from 0 to 1"),
        ] {
            let problem = of(false, text).unwrap_err();
            assert!(problem.detail.contains(what), "{}", problem.detail);
            assert_eq!(problem.kind, "bad-request");
        }
    }
}
