//! `dunlin table`: keys of tables and their values.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal as _, Write as _};

use serde_json::{Map, Value as Json, json};

use crate::cli::ServerAt;
use crate::client::pages;
use crate::client::send::{read_all, unreadable};
use crate::client::table::{print, say};
use crate::client::tables_cli::{KeyAt, Scan, Table};
use crate::client::web::{Web, encoded, with_query};
use crate::exit::Error;

pub(crate) fn run(table: &Table) -> Result<(), Error> {
    match table {
        Table::Ls { server } => {
            let web = Web::of(server)?;
            let tables = pages::all(&web, "/tables", "tables", &[], usize::MAX)?;
            print(&tables, &["table", "keys"], server.json)
        }
        Table::Get { at, server } => get(at, server),
        Table::Put { at, value, new, server } => put(at, value.as_deref(), *new, server),
        Table::Add { at, more, server } => add(at, *more, server),
        Table::Del { table, keys, server } => delete(table, keys, server),
        Table::Scan(chosen) => scan(chosen),
        Table::Export { table, server } => export(table, server),
        Table::Import { table, server } => import(table, server),
    }
}

fn path(table: &str, key: &str) -> String {
    format!("/tables/{}/{}", encoded(table), encoded(key))
}

fn get(at: &KeyAt, server: &ServerAt) -> Result<(), Error> {
    let value = Web::of(server)?.get(&path(&at.table, &at.key))?.bytes()?;
    if !server.json {
        return say(&value);
    }
    let mut shown = Map::new();
    shown.insert("key".into(), at.key.as_str().into());
    match String::from_utf8(value) {
        Ok(text) => shown.insert("value".into(), text.into()),
        Err(other) => shown.insert("value_base64".into(), base64_of(other.as_bytes()).into()),
    };
    say(format!("{}\n", Json::Object(shown)).as_bytes())
}

fn put(at: &KeyAt, value: Option<&str>, new: bool, server: &ServerAt) -> Result<(), Error> {
    let value = match value {
        None | Some("-") => read_all()?,
        Some(text) => text.as_bytes().to_vec(),
    };
    let condition = new.then(|| ("if-none-match".to_owned(), "*".to_owned()));
    let headers: Vec<_> = condition.into_iter().collect();
    let answer = Web::of(server)?.put(&path(&at.table, &at.key), &headers, &value)?;
    if new && answer.status == CONDITION_FAILED {
        let KeyAt { table, key } = at;
        return Err(Error::Nothing(format!(
            "table {table} has key {key} already, and nothing was done: without --new it gets the \
             value"
        )));
    }
    let is_new = answer.status == CREATED;
    answer.bytes()?;
    if server.json { say(format!("{{\"new\":{is_new}}}\n").as_bytes()) } else { Ok(()) }
}

fn add(at: &KeyAt, more: i64, server: &ServerAt) -> Result<(), Error> {
    let path = format!("{}?add={more}", path(&at.table, &at.key));
    let answer = Web::of(server)?.post(&path, &[], &[])?.object()?;
    let text = match answer.get("value") {
        Some(value) if !server.json => value.to_string(),
        _ => Json::Object(answer).to_string(),
    };
    say(format!("{text}\n").as_bytes())
}

/// Those that are there go, also if one of them is not.
fn delete(table: &str, keys: &[String], server: &ServerAt) -> Result<(), Error> {
    let web = Web::of(server)?;
    let (mut deleted, mut missing) = (0, None);
    for key in keys {
        match web.delete(&path(table, key))?.object() {
            Ok(_) => deleted += 1,
            Err(Error::Nothing(_)) => missing = missing.or(Some(key)),
            Err(error) => {
                return Err(error.amended(&format!("{deleted} keys were deleted before")));
            }
        }
    }
    let text =
        if server.json { format!("{{\"count\":{deleted}}}\n") } else { format!("{deleted}\n") };
    say(text.as_bytes())?;
    match missing {
        Some(key) => Err(Error::Nothing(format!("table {table} has no key {key}"))),
        None => Ok(()),
    }
}

fn scan(chosen: &Scan) -> Result<(), Error> {
    let Scan { table, prefix, from, to, max, server } = chosen;
    let parameters = [("prefix", prefix.clone()), ("from", from.clone()), ("to", to.clone())];
    let web = Web::of(server)?;
    let path = format!("/tables/{}", encoded(table));
    let mut entries = pages::all(&web, &path, "entries", &parameters, *max)?;
    if !server.json {
        entries.iter_mut().for_each(lift);
    }
    print(&entries, &["key", "value"], server.json)
}

/// Bytes that are no text stand in the same column.
fn lift(entry: &mut Map<String, Json>) {
    for (word, other) in [("key", "key_base64"), ("value", "value_base64")] {
        if let Some(Json::String(text)) = entry.remove(other) {
            entry.insert(word.into(), format!("base64:{text}").into());
        }
    }
}

/// Page by page, so that a large table takes no memory.
fn export(table: &str, server: &ServerAt) -> Result<(), Error> {
    let web = Web::of(server)?;
    let mut progress = Progress::default();
    let mut after = None;
    loop {
        let query = [("max", Some(PAGE.to_string())), ("after", after)];
        let path = with_query(format!("/tables/{}", encoded(table)), &query);
        let mut page = web.get(&path)?.object()?;
        let Some(Json::Array(entries)) = page.remove("entries") else { break };
        let lines: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        say(lines.as_bytes())?;
        progress.add(entries.len());
        match page.remove("next") {
            Some(Json::String(next)) => after = Some(next),
            _ => break,
        }
    }
    progress.end();
    Ok(())
}

/// Lines of an export go together as transactions.
fn import(table: &str, server: &ServerAt) -> Result<(), Error> {
    let mut importer = Importer {
        web: Web::of(server)?,
        table,
        puts: Vec::new(),
        keys: BTreeSet::new(),
        bytes: 0,
        stored: 0,
        progress: Progress::default(),
    };
    let mut stdin = std::io::stdin().lock();
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        let read = stdin.read_until(b'\n', &mut line).map_err(unreadable)?;
        number += 1;
        let is_over = read == 0;
        let text = line.trim_ascii();
        if !text.is_empty() {
            let entry = entry_of(text);
            let entry = entry.map_err(|why| importer.left_off(Error::Settings(why), number))?;
            importer.add(entry, text.len(), number)?;
        }
        if is_over {
            importer.send(number)?;
            break;
        }
    }
    importer.progress.end();
    let stored = importer.stored;
    let text =
        if server.json { format!("{{\"count\":{stored}}}\n") } else { format!("{stored}\n") };
    say(text.as_bytes())
}

/// An object of a line, with a key and a value.
fn entry_of(text: &[u8]) -> Result<Map<String, Json>, String> {
    let entry: Map<String, Json> = serde_json::from_slice(text)
        .map_err(|error| format!("it is no JSON object, as export writes them: {error}"))?;
    let known = ["key", "key_base64", "value", "value_base64"];
    match entry.keys().find(|name| !known.contains(&name.as_str())) {
        Some(other) => Err(format!("member {other} is not known; {} are", known.join(", "))),
        None => Ok(entry),
    }
}

/// Puts that wait to be sent.
struct Importer<'a> {
    web: Web,
    table: &'a str,
    puts: Vec<Json>,
    /// Their keys: a transaction names each once.
    keys: BTreeSet<String>,
    bytes: usize,
    stored: usize,
    progress: Progress,
}

impl Importer<'_> {
    fn add(&mut self, mut entry: Map<String, Json>, bytes: usize, line: u64) -> Result<(), Error> {
        let member = |name: &str| entry.get(name).map(Json::to_string).unwrap_or_default();
        let key = format!("{} {}", member("key"), member("key_base64"));
        let is_full = self.puts.len() >= PAGE || self.bytes + bytes > BATCH_BYTES;
        if is_full || self.keys.contains(&key) {
            self.send(line - 1)?;
        }
        entry.insert("table".into(), self.table.into());
        self.keys.insert(key);
        self.puts.push(entry.into());
        self.bytes += bytes;
        Ok(())
    }

    /// All or none of them.
    fn send(&mut self, last_line: u64) -> Result<(), Error> {
        if self.puts.is_empty() {
            return Ok(());
        }
        let body = json!({ "put": self.puts }).to_string();
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let answer = self.web.post("/transactions", &headers, body.as_bytes());
        let answer = answer.and_then(|answer| answer.object());
        answer.map_err(|error| self.left_off(error, last_line))?;
        self.stored += self.puts.len();
        self.progress.add(self.puts.len());
        (self.puts, self.keys, self.bytes) = (Vec::new(), BTreeSet::new(), 0);
        Ok(())
    }

    fn left_off(&self, error: Error, line: u64) -> Error {
        let Self { stored, .. } = self;
        error.amended(&format!(
            "at line {line}; {stored} keys were put before, and the import can be done again"
        ))
    }
}

/// How many keys were done, on standard error if a person looks at it.
#[derive(Default)]
struct Progress {
    done: usize,
    shown: usize,
}

impl Progress {
    fn add(&mut self, count: usize) {
        self.done += count;
        if self.done - self.shown >= SHOWN_EVERY && std::io::stderr().is_terminal() {
            self.shown = self.done;
            // Without a reader there is nobody to tell.
            let _ = write!(std::io::stderr(), "\r{} keys", self.done);
        }
    }

    fn end(&self) {
        if self.shown > 0 {
            let _ = writeln!(std::io::stderr(), "\r{} keys", self.done);
        }
    }
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Keys of a page and of a transaction.
const PAGE: usize = 1_000;

/// Bytes of lines that go together.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Keys after which progress is shown again.
const SHOWN_EVERY: usize = 10_000;

/// The status of a condition that does not hold.
const CONDITION_FAILED: u16 = 412;

/// The status of something new.
const CREATED: u16 = 201;
