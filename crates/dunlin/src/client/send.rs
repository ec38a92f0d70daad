//! `dunlin send`.

use std::io::{BufRead as _, Read as _};

use model::limits::MESSAGE_BYTES_MAX;
use serde_json::{Map, Value as Json};

use crate::cli::Send;
use crate::client::table::say;
use crate::client::web::{Web, encoded};
use crate::exit::Error;

/// Sends one message, or one a line.
pub(crate) fn run(send: &Send) -> Result<(), Error> {
    let web = Web::new(&send.server.url);
    let path = format!("/queues/{}/messages", encoded(&send.queue));
    let headers = headers(send);
    if send.lines {
        return send_lines(&web, &path, &headers, send);
    }
    let body = match send.body.as_deref() {
        None | Some("-") => read_all()?,
        Some(text) => text.as_bytes().to_vec(),
    };
    let answer = web.post(&path, &headers, &body).and_then(|answer| answer.object());
    let answer = answer.map_err(|error| match error {
        Error::Unanswered(_) if send.key.is_some() => error.amended(AGAIN),
        error => error,
    })?;
    let id = answer.get("message").cloned().unwrap_or_default();
    let text = if send.server.json { Json::Object(answer).to_string() } else { id.to_string() };
    say(format!("{text}\n").as_bytes())
}

/// Each line is a message; so many as fit into a request are stored together or not at all. Lines
/// are numbered across requests: with a key, each has a name of its own.
fn send_lines(
    web: &Web,
    path: &str,
    headers: &[(String, String)],
    send: &Send,
) -> Result<(), Error> {
    let mut sent = 0;
    let mut batch = Vec::new();
    let mut lines = 0;
    let mut first = 1;
    let mut stdin = std::io::stdin().lock();
    loop {
        let mut line = stdin.by_ref().take(READ_BYTES_MAX);
        let read = line.read_until(b'\n', &mut batch).map_err(unreadable)?;
        lines += u64::from(read > 0);
        let is_full = lines >= BATCH_LINES || batch.len() >= BATCH_BYTES;
        if (read == 0 || is_full) && !batch.is_empty() {
            let path = format!("{path}?lines&first-line={first}");
            let count = send_batch(web, &path, headers, &batch);
            let last = first + lines - 1;
            sent += count.map_err(|error| left_off(error, sent, first, last, send))?;
            batch.clear();
            first += lines;
            lines = 0;
        }
        if read == 0 {
            break;
        }
    }
    let text =
        if send.server.json { format!("{{\"count\":{sent}}}\n") } else { format!("{sent}\n") };
    say(text.as_bytes())
}

fn send_batch(
    web: &Web,
    path: &str,
    headers: &[(String, String)],
    batch: &[u8],
) -> Result<u64, Error> {
    let answer = web.post(path, headers, batch)?.object()?;
    Ok(answer.get("count").and_then(Json::as_u64).unwrap_or_default())
}

/// How far it came where lines `first` to `last` failed.
fn left_off(error: Error, sent: u64, first: u64, last: u64, send: &Send) -> Error {
    let before = format!("{sent} messages were stored before");
    let Error::Unanswered(_) = error else {
        return error.amended(&format!("{before}; what follows was not sent"));
    };
    let again = if send.key.is_some() { AGAIN } else { "with --key it could be sent again" };
    error.amended(&format!(
        "{before}, lines {first} to {last} may be stored, all or none of them, and what follows \
         was not sent; {again}"
    ))
}

fn headers(send: &Send) -> Vec<(String, String)> {
    let given = [
        ("dunlin-persistence", send.persistence.clone()),
        ("dunlin-priority", send.priority.map(|priority| priority.to_string())),
        ("dunlin-delay", send.delay.clone()),
        ("dunlin-ttl", send.ttl.clone()),
        ("idempotency-key", send.key.clone()),
        ("content-type", send.content_type.clone()),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let properties: Map<String, Json> =
        send.property.iter().map(|(name, value)| (name.clone(), typed(value))).collect();
    let properties =
        (!properties.is_empty()).then(|| ("dunlin-properties".to_owned(), ascii(&properties)));
    given.chain(properties).collect()
}

/// A number, `true`, `false` or a JSON string is such; anything else is a text.
fn typed(value: &str) -> Json {
    match serde_json::from_str(value) {
        Ok(json @ (Json::Bool(_) | Json::Number(_) | Json::String(_))) => json,
        _ => value.into(),
    }
}

/// As JSON without characters that a header cannot hold.
fn ascii(properties: &Map<String, Json>) -> String {
    let mut text = String::new();
    for unit in Json::Object(properties.clone()).to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ b' '..=b'~') => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    text
}

fn read_all() -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin.take(READ_BYTES_MAX).read_to_end(&mut body).map_err(unreadable)?;
    Ok(body)
}

fn unreadable(error: std::io::Error) -> Error {
    Error::Other(format!("cannot read standard input: {error}"))
}

/// What helps who gave a key.
const AGAIN: &str = "sent again with this --key nothing is stored twice";

/// Bytes that are read of one message: as many as no server takes, so that it says why, however
/// many there are.
const READ_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + 1;

/// Lines that are sent together: one write of the log for all.
const BATCH_LINES: u64 = 10_000;

/// And bytes of them.
const BATCH_BYTES: usize = 1024 * 1024;
