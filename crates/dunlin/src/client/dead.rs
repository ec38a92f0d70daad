//! `dunlin dead`: messages that could not be delivered.

use serde_json::{Map, Value as Json};

use crate::cli::{Replay, ServerAt};
use crate::client::operate::{messages, tell};
use crate::client::table::{print, say};
use crate::client::web::{Web, encoded, with_query};
use crate::exit::Error;

/// Lists the dead letters, and why each is there.
pub(crate) fn list(queue: &str, server: &ServerAt) -> Result<(), Error> {
    let browse = [("browse", Some("true".to_owned()))];
    let mut letters = match messages(server, queue, &browse, usize::MAX) {
        // Without dead letters there is no such queue.
        Err(Error::Nothing(_)) => Vec::new(),
        found => found?,
    };
    if !server.json {
        letters.iter_mut().for_each(lift);
    }
    print(&letters, &["id", "reason", "from", "failed", "body"], server.json)
}

/// Why it is dead stands beside the rest.
fn lift(letter: &mut Map<String, Json>) {
    let Some(Json::Object(mut dead)) = letter.remove("dead") else { return };
    let word = |json: &Json| json.as_str().map(str::to_owned);
    let of = dead.get("subscription").and_then(|of| of.get("name")).and_then(word);
    if let (Some(topic), Some(of)) = (dead.get("from").and_then(word), of) {
        dead.insert("from".to_owned(), format!("{topic} ({of})").into());
    }
    letter.extend(dead);
}

/// All that is known about one message.
pub(crate) fn show(id: u64, server: &ServerAt) -> Result<(), Error> {
    let message = Web::of(server)?.get(&format!("/messages/{id}"))?.object()?;
    if server.json {
        return say(format!("{}\n", Json::Object(message)).as_bytes());
    }
    let line = |(name, value): (&String, &Json)| match value {
        Json::String(text) => format!("{name}: {text}\n"),
        value => format!("{name}: {value}\n"),
    };
    say(message.iter().map(line).collect::<String>().as_bytes())
}

/// Sends dead letters back to where they came from, or elsewhere.
pub(crate) fn replay(replay: &Replay) -> Result<(), Error> {
    let to_origin = replay.to.is_none().then(|| "true".to_owned());
    let path = with_query(
        format!("/queues/{}/move", encoded(&replay.queue)),
        &[
            ("to", replay.to.clone()),
            ("to_origin", to_origin),
            ("message", replay.id.map(|id| id.to_string())),
            ("selector", replay.selector.clone()),
        ],
    );
    let answer = Web::of(&replay.server)?.post(&path, &[], b"")?.object()?;
    if answer.get("moved").and_then(Json::as_u64) == Some(0) {
        return Err(Error::Nothing(
            "there was nothing to replay; what a subscription had that is gone stays, unless --to \
             says where to"
                .into(),
        ));
    }
    tell(answer, "moved", replay.server.json)
}
