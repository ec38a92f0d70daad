//! `dunlin journal dump`: one line for each thing in the files, for people or as JSON.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use engine::{FieldValue, RecordError, RecordView, describe};
use journal::{DumpEntry, inspect};
use serde_json::{Map, Value};

use crate::exit::Error;
use crate::journal_open::open;

/// Prints all that is there. A reader that closes the output early is no error.
pub(crate) fn run(directory: &Path, json: bool) -> Result<(), Error> {
    let disk = open(directory)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut printed = Ok(());
    let inspected = inspect(&disk, &mut |found| {
        if printed.is_ok() {
            printed = print(&mut out, found, json);
        }
    });
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Other(format!("cannot print: {error}")))
        }
        _ => inspected.map_err(|error| Error::Other(error.to_string())),
    }
}

fn print(out: &mut impl Write, found: DumpEntry<'_>, json: bool) -> io::Result<()> {
    let thing = Thing::new(found);
    if json { writeln!(out, "{}", thing.to_json()) } else { thing.print(out) }
}

/// A thing in a journal as names and values.
struct Thing<'a> {
    kind: &'static str,
    /// How deep it lies in others.
    depth: usize,
    fields: Vec<(&'static str, Value)>,
    /// Its records, where it has any.
    payload: Option<&'a [u8]>,
}

impl<'a> Thing<'a> {
    fn new(found: DumpEntry<'a>) -> Self {
        let thing = |kind, depth, fields| Thing { kind, depth, fields, payload: None };
        match found {
            DumpEntry::Snapshot { file, number, begin, end, time } => thing(
                "snapshot",
                0,
                vec![
                    ("file", file.into()),
                    ("number", number.into()),
                    ("begin", begin.0.into()),
                    ("end", end.0.into()),
                    ("time_ns", time.0.into()),
                ],
            ),
            DumpEntry::Chunk { payload } => {
                Thing { payload: Some(payload), ..thing("chunk", 1, Vec::new()) }
            }
            DumpEntry::Segment { file, bytes, whole } => thing(
                "segment",
                0,
                vec![
                    ("file", file.into()),
                    ("bytes", bytes.into()),
                    ("header_whole", whole.into()),
                ],
            ),
            DumpEntry::Batch { file, offset, lsn, frames, bytes, epoch, synced, time } => thing(
                "batch",
                1,
                vec![
                    ("file", file.into()),
                    ("offset", offset.into()),
                    ("lsn", lsn.0.into()),
                    ("frames", frames.into()),
                    ("bytes", bytes.into()),
                    ("epoch", epoch.into()),
                    ("synced", synced.0.into()),
                    ("time_ns", time.0.into()),
                ],
            ),
            DumpEntry::Frame { lsn, payload } => {
                Thing { payload: Some(payload), ..thing("frame", 2, vec![("lsn", lsn.0.into())]) }
            }
            DumpEntry::End { file, offset, claimed } => thing(
                "end",
                1,
                vec![
                    ("file", file.into()),
                    ("offset", offset.into()),
                    ("synced_claimed_behind", claimed.0.into()),
                ],
            ),
            _ => thing("unknown", 0, Vec::new()),
        }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let indent = 2 * self.depth;
        write!(out, "{:indent$}{}", "", self.kind)?;
        for (name, value) in &self.fields {
            write!(out, " {name}={value}")?;
        }
        writeln!(out)?;
        for record in self.payload.into_iter().flat_map(describe) {
            match record {
                Ok(record) => writeln!(out, "{:indent$}  {record}", "")?,
                Err(error) => writeln!(out, "{:indent$}  unreadable: {error}", "")?,
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let mut object = object(self.kind);
        object.extend(self.fields.iter().map(|(name, value)| ((*name).into(), value.clone())));
        if let Some(payload) = self.payload {
            object.insert("records".into(), describe(payload).map(record_json).collect());
        }
        Value::Object(object)
    }
}

fn record_json(record: Result<RecordView<'_>, RecordError>) -> Value {
    let record = match record {
        Ok(record) => record,
        Err(error) => {
            let mut unreadable = object("unreadable");
            unreadable.insert("cause".into(), error.to_string().into());
            return Value::Object(unreadable);
        }
    };
    let mut object = object(record.kind());
    record.fields(|name, value| {
        match value {
            FieldValue::Number(number) => object.insert(name.into(), number.into()),
            FieldValue::Signed(number) => object.insert(name.into(), number.into()),
            FieldValue::Text(text) => object.insert(name.into(), text.into()),
            FieldValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => object.insert(name.into(), text.into()),
                Err(_) => object.insert(format!("{name}_hex"), hex(bytes).into()),
            },
        };
    });
    Value::Object(object)
}

fn object(kind: &str) -> Map<String, Value> {
    Map::from_iter([("kind".to_owned(), kind.into())])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
