//! `dunlin queues`, `browse`, `move` and `purge`.

use std::io::{IsTerminal as _, Write as _};

use serde_json::{Map, Value as Json};

use crate::cli::{Browse, MoveMessages, Purge, ServerAt};
use crate::client::table::{print, say};
use crate::client::web::{Web, encoded, with_query};
use crate::client::{pages, receive};
use crate::exit::Error;

pub(crate) fn queues(server: &ServerAt) -> Result<(), Error> {
    let queues = pages::all(&Web::of(server)?, "/queues", "queues", &[], usize::MAX)?;
    let columns = ["name", "ready", "leased", "delayed", "buried", "producers", "consumers"];
    print(&queues, &columns, server.json)
}

pub(crate) fn browse(browse: &Browse) -> Result<(), Error> {
    let parameters = [
        ("browse", Some("true".to_owned())),
        ("selector", browse.selector.clone()),
        ("state", browse.state.clone()),
    ];
    let mut messages = messages(&browse.server, &browse.queue, &parameters, browse.max)?;
    if !browse.server.json {
        messages.iter_mut().for_each(show_body);
        messages.iter_mut().for_each(show_holder);
    }
    let is_held = messages.iter().any(|message| message.contains_key("holder"));
    let columns: &[&str] = if is_held {
        &["id", "state", "holder", "priority", "deliveries", "failed", "body"]
    } else {
        &["id", "state", "priority", "deliveries", "failed", "body"]
    };
    print(&messages, columns, browse.server.json)
}

/// Messages of a queue, without receiving them.
pub(crate) fn messages(
    server: &ServerAt,
    queue: &str,
    parameters: &[(&str, Option<String>)],
    max: usize,
) -> Result<Vec<Map<String, Json>>, Error> {
    let path = format!("/queues/{}/messages", encoded(queue));
    pages::all(&Web::of(server)?, &path, "messages", parameters, max)
}

/// Bytes that are no text are shown as well as they can be.
fn show_body(message: &mut Map<String, Json>) {
    if let Ok(body) = receive::body(message) {
        message.insert("body".into(), String::from_utf8_lossy(&body).into());
    }
}

/// The holder of a message, and for how long so far or still.
fn show_holder(message: &mut Map<String, Json>) {
    let Some(Json::Object(holder)) = message.remove("holder") else { return };
    let text = |name| holder.get(name).and_then(Json::as_str);
    let who = text("connection").unwrap_or("somebody");
    let client = text("client").map(|client| format!(", {client}")).unwrap_or_default();
    let seconds = |millis: &Json| millis.as_f64().map(|millis| millis / 1000.0);
    let since = holder.get("held_millis").and_then(seconds);
    let left = message.get("left_millis").and_then(seconds);
    let time = match (since, left) {
        (Some(since), _) => format!(" for {since:.1} s"),
        (None, Some(left)) => format!(", {left:.1} s left"),
        (None, None) => String::new(),
    };
    message.insert("holder".into(), format!("{who}{client}{time}").into());
}

pub(crate) fn move_messages(chosen: &MoveMessages) -> Result<(), Error> {
    let path = format!("/queues/{}/move", encoded(&chosen.from));
    let path = with_query(
        path,
        &[
            ("to", Some(chosen.to.clone())),
            ("selector", chosen.selector.clone()),
            ("max", chosen.max.map(|max| max.to_string())),
        ],
    );
    let answer = Web::of(&chosen.server)?.post(&path, &[], b"")?.object()?;
    tell(answer, "moved", chosen.server.json)
}

pub(crate) fn purge(purge: &Purge) -> Result<(), Error> {
    if !purge.yes && !is_confirmed(&purge.queue)? {
        return Err(Error::Other("nothing was deleted".into()));
    }
    let path = format!("/queues/{}/purge", encoded(&purge.queue));
    let parameters = [("selector", purge.selector.clone()), ("state", purge.state.clone())];
    let web = Web::of(&purge.server)?;
    let answer = web.post(&with_query(path, &parameters), &[], b"")?.object()?;
    tell(answer, "deleted", purge.server.json)
}

/// How many there were.
pub(crate) fn tell(answer: Map<String, Json>, name: &str, as_json: bool) -> Result<(), Error> {
    let count = answer.get(name).and_then(Json::as_u64).unwrap_or_default();
    let text = if as_json { Json::Object(answer).to_string() } else { format!("{count} {name}") };
    say(format!("{text}\n").as_bytes())
}

/// Asks the user at the terminal.
fn is_confirmed(queue: &str) -> Result<bool, Error> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::Settings("nobody is there to be asked: say --yes to delete".into()));
    }
    let _ = write!(std::io::stderr(), "Delete the messages of {queue}? [y/N] ");
    let mut answer = String::new();
    // A user that cannot answer has not said yes.
    let _ = stdin.read_line(&mut answer);
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
