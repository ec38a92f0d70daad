//! `dunlin policy`: the rules of queues.

use model::{QueueRule, RuleKey};
use serde_json::{Map, Value as Json};

use crate::cli::ServerAt;
use crate::client::pages;
use crate::client::table::{print, say};
use crate::client::web::{Answer, Web, encoded};
use crate::exit::Error;
use crate::parse;

/// Queues with rules of their own, and these.
pub(crate) fn list(server: &ServerAt) -> Result<(), Error> {
    let web = Web::of(server)?;
    let mut queues = pages::all(&web, "/policies", "policies", &[], usize::MAX)?;
    if !server.json {
        queues.iter_mut().for_each(lift);
    }
    print(&queues, &["queue", "own"], server.json)
}

/// The rules on one line.
fn lift(queue: &mut Map<String, Json>) {
    let Some(Json::Object(own)) = queue.remove("own") else { return };
    let own: Vec<String> = own.iter().map(|(name, value)| setting(name, value)).collect();
    queue.insert("own".into(), own.join(" ").into());
}

pub(crate) fn show(queue: &str, server: &ServerAt) -> Result<(), Error> {
    tell(Web::of(server)?.get(&path(queue))?, server)
}

/// The others that the queue has of its own stay.
pub(crate) fn set(queue: &str, rules: &[QueueRule], server: &ServerAt) -> Result<(), Error> {
    let names = rules.iter().map(|rule| rule.key().word().to_owned());
    parse::each_once(names).map_err(Error::Settings)?;
    let member = |rule: &QueueRule| {
        let text = rule.to_string();
        // To JSON nothing is zero: null would take a rule away.
        let text = if text == QueueRule::NONE { "0".to_owned() } else { text };
        let number = if rule.key().is_number() { serde_json::from_str(&text).ok() } else { None };
        (rule.key().json_name(), number.unwrap_or_else(|| text.into()))
    };
    let change: Map<String, Json> = rules.iter().map(member).collect();
    tell(Web::of(server)?.patch(&path(queue), &Json::Object(change))?, server)
}

pub(crate) fn reset(queue: &str, rules: &[RuleKey], server: &ServerAt) -> Result<(), Error> {
    let web = Web::of(server)?;
    if rules.is_empty() {
        return tell(web.delete(&path(queue))?, server);
    }
    let gone = rules.iter().map(|key| (key.json_name(), Json::Null));
    tell(web.patch(&path(queue), &Json::Object(gone.collect()))?, server)
}

fn path(queue: &str) -> String {
    format!("/queues/{}/policy", encoded(queue))
}

/// Prints the rules that hold then, one a line.
fn tell(answer: Answer, server: &ServerAt) -> Result<(), Error> {
    let stated = answer.object()?;
    if server.json {
        return say(format!("{}\n", Json::Object(stated)).as_bytes());
    }
    let member = |name: &str| stated.get(name).and_then(Json::as_object);
    let (holds, from) = (member("policy"), member("from"));
    let line = |(name, value): (&String, &Json)| {
        let from = from.and_then(|from| from.get(name)).and_then(Json::as_str);
        format!("{:<29}{}\n", setting(name, value), from.unwrap_or_default())
    };
    say(holds.into_iter().flatten().map(line).collect::<String>().as_bytes())
}

/// A rule in the words of the command line.
fn setting(name: &str, value: &Json) -> String {
    let name = name.replace('_', "-");
    match value {
        Json::Null => format!("{name}={}", QueueRule::NONE),
        Json::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    }
}
