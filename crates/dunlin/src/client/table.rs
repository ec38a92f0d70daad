//! Output of the client commands: columns for people, or JSON for programs.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use serde_json::{Map, Value as Json};

use crate::exit::Error;

/// Prints objects: each as a line of JSON, or the named members as a table.
pub(crate) fn print(
    objects: &[Map<String, Json>],
    columns: &[&str],
    as_json: bool,
) -> Result<(), Error> {
    let text = if as_json { lines(objects) } else { table(objects, columns) };
    say(text.as_bytes())
}

/// Prints bytes and sees that they are out.
pub(crate) fn say(bytes: &[u8]) -> Result<(), Error> {
    write_out(bytes)
        .map_err(|error| Error::Other(format!("cannot write to standard output: {error}")))
}

/// By the descriptor: `Stdout` takes one that cannot be written to (EBADF) for a success, and a
/// message that went nowhere would be acknowledged.
fn write_out(bytes: &[u8]) -> io::Result<()> {
    File::from(io::stdout().as_fd().try_clone_to_owned()?).write_all(bytes)
}

fn lines(objects: &[Map<String, Json>]) -> String {
    objects.iter().map(|object| format!("{}\n", Json::Object(object.clone()))).collect()
}

fn table(objects: &[Map<String, Json>], columns: &[&str]) -> String {
    let head = columns.iter().map(|column| column.replace('_', " ")).collect();
    let row = |object: &Map<String, Json>| {
        columns.iter().map(|column| cell(object.get(*column))).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(objects.iter().map(row)).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

/// A value on one line, and not too long for one.
fn cell(value: Option<&Json>) -> String {
    let text = match value {
        None | Some(Json::Null) => String::new(),
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let plain = text.chars().map(|c| if c.is_control() { '.' } else { c });
    let mut short: String = plain.take(CELL_CHARS_MAX + 1).collect();
    if short.chars().count() > CELL_CHARS_MAX {
        short.pop();
        short.push('…');
    }
    short
}

const CELL_CHARS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_fit_their_cells() {
        let object = |name: &str, ready: u64| {
            let pairs = [("name", Json::from(name)), ("ready", Json::from(ready))];
            pairs.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
        };
        let objects: [Map<String, Json>; 2] = [object("a\nb", 5), object("longer", 10)];
        let text = table(&objects, &["name", "ready"]);
        assert_eq!(text, "name    ready\na.b     5\nlonger  10\n");
        assert_eq!(cell(Some(&"x".repeat(100).into())).chars().count(), CELL_CHARS_MAX + 1);
        assert_eq!(lines(&objects).lines().count(), 2);
    }
}
