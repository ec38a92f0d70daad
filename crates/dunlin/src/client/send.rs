//! `dunlin send`.

use std::io::{BufRead, Read as _};

use model::limits::MESSAGE_BYTES_MAX;
use serde_json::{Map, Value as Json};

use crate::cli::Send;
use crate::client::table::say;
use crate::client::web::{Answer, Web, encoded};
use crate::exit::Error;
use crate::parse;

/// Sends one message, or one a line.
pub(crate) fn run(send: &Send) -> Result<(), Error> {
    let web = Web::of(&send.server)?;
    let path = format!("/queues/{}/messages", encoded(&send.queue));
    parse::each_once(send.property.iter().map(|(name, _)| format!("--property {name}")))
        .map_err(Error::Settings)?;
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
    let mut sender = Sender { web, path, headers, send, sent: 0, lines_max: BATCH_LINES };
    let mut lines = Lines { first: 1, text: Vec::new(), ends: Vec::new() };
    let mut stdin = std::io::stdin().lock();
    loop {
        let is_over = lines.read_from(&mut stdin)?;
        if is_over || lines.are_enough() {
            sender.send_all(&lines)?;
            lines = lines.next();
        }
        if is_over {
            break;
        }
    }
    let sent = sender.sent;
    let text =
        if send.server.json { format!("{{\"count\":{sent}}}\n") } else { format!("{sent}\n") };
    say(text.as_bytes())
}

/// Lines that are sent together.
struct Lines {
    /// The number of the first.
    first: u64,
    text: Vec<u8>,
    /// The end of each line in the text.
    ends: Vec<usize>,
}

impl Lines {
    /// Takes one more, and tells whether there was none.
    fn read_from(&mut self, source: &mut impl BufRead) -> Result<bool, Error> {
        let mut line = source.take(READ_BYTES_MAX);
        let read = line.read_until(b'\n', &mut self.text).map_err(unreadable)?;
        if read > 0 {
            self.ends.push(self.text.len());
        }
        Ok(read == 0)
    }

    fn are_enough(&self) -> bool {
        self.ends.len() >= BATCH_LINES || self.text.len() >= BATCH_BYTES
    }

    /// Those that come behind these; none yet.
    fn next(mut self) -> Self {
        self.first += self.ends.len() as u64;
        self.text.clear();
        self.ends.clear();
        self
    }

    /// The text of so many lines behind the first `done`, and how many there are.
    fn part(&self, done: usize, most: usize) -> Option<(&[u8], usize)> {
        let ends = self.ends.get(done..)?;
        let ends = ends.get(..most).unwrap_or(ends);
        let begin = done.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        let text = self.text.get(begin.unwrap_or_default()..*ends.last()?)?;
        Some((text, ends.len()))
    }
}

/// How far it has come with the lines.
struct Sender<'a> {
    web: &'a Web,
    path: &'a str,
    headers: &'a [(String, String)],
    send: &'a Send,
    /// Messages that are stored.
    sent: u64,
    /// So many lines are sent at once: fewer after a full queue had no place for more together.
    lines_max: usize,
}

impl Sender<'_> {
    /// A full queue stores nothing of a batch that it refuses, so a smaller batch can be sent under
    /// the same line numbers. A single line waits for its place as any message does.
    fn send_all(&mut self, lines: &Lines) -> Result<(), Error> {
        let mut done = 0;
        while let Some((text, count)) = lines.part(done, self.lines_max) {
            let first = lines.first + done as u64;
            let last = first + count as u64 - 1;
            let path = format!("{}?lines&first_line={first}", self.path);
            let answer = self.web.post(&path, self.headers, text);
            if count > 1 && answer.as_ref().is_ok_and(Answer::is_queue_full) {
                self.lines_max = (count / FEWER).max(1);
                continue;
            }
            let stored = answer.and_then(Answer::object);
            let stored = stored.map_err(|error| self.left_off(error, first, last))?;
            self.sent += stored.get("count").and_then(Json::as_u64).unwrap_or_default();
            self.lines_max = (self.lines_max * 2).min(BATCH_LINES);
            done += count;
        }
        Ok(())
    }

    /// How far it came where lines `first` to `last` failed.
    fn left_off(&self, error: Error, first: u64, last: u64) -> Error {
        let before = format!("{} messages were stored before", self.sent);
        let Error::Unanswered(_) = error else {
            return error.amended(&format!("{before}; what follows was not sent"));
        };
        let has_key = self.send.key.is_some();
        let again = if has_key { AGAIN } else { "with --key it could be sent again" };
        error.amended(&format!(
            "{before}, lines {first} to {last} may be stored, all or none of them, and what \
             follows was not sent; {again}"
        ))
    }
}

fn headers(send: &Send) -> Vec<(String, String)> {
    let given = [
        ("dunlin-persistence", send.persistence.clone()),
        ("dunlin-priority", send.priority.map(|priority| priority.to_string())),
        ("dunlin-delay", send.delay.clone()),
        ("dunlin-ttl", send.ttl.clone()),
        ("dunlin-group", send.group.clone()),
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

/// A number, `true`, `false` or a JSON string is such; anything else is a text. A number counts as
/// one if it is printed again exactly as it was given. Others, such as 007, 1.50 or numbers with
/// too many digits, stay texts.
fn typed(value: &str) -> Json {
    match serde_json::from_str::<Json>(value) {
        Ok(json @ (Json::Bool(_) | Json::String(_))) => json,
        Ok(Json::Number(number)) if !number.is_u64() || number.is_i64() => {
            let json = Json::Number(number);
            if format!("{json}") == value { json } else { value.into() }
        }
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

pub(crate) fn read_all() -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin.take(READ_BYTES_MAX).read_to_end(&mut body).map_err(unreadable)?;
    Ok(body)
}

pub(crate) fn unreadable(error: std::io::Error) -> Error {
    Error::Other(format!("cannot read standard input: {error}"))
}

/// Advice to a user that gave a key.
const AGAIN: &str = "sent again with this --key nothing is stored twice";

/// Bytes that are read of one message: as many as no server takes, so that it says why, however
/// many there are.
const READ_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + 1;

/// Lines that are sent together: one write of the log for all.
const BATCH_LINES: usize = 10_000;

/// And bytes of them.
const BATCH_BYTES: usize = 1024 * 1024;

/// If a full queue has no place for a batch of lines, one part in so many of it is sent next. Not
/// half: each request may wait as long as the broker lets it (`--block-timeout`). From a whole
/// batch to one line there are five such waits; with halves there would be fourteen.
const FEWER: usize = 10;
