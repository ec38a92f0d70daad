//! Rows of figures, for people and, with the same values, for programs.

use std::fmt;

use serde_json::{Map, Value};

/// A table. Words stand left, numbers right.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column by its two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// In JSON.
    key: &'static str,
    /// Above the table.
    title: &'static str,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// There is none.
    Absent,
    /// Words.
    Text(String),
    /// Counted.
    Count(u64),
    /// Measured, with so many digits behind the point where people read it.
    Number(f64, usize),
}

impl Table {
    /// An empty one; each column by its names in JSON and above the table.
    pub(crate) fn new<const N: usize>(columns: [(&'static str, &'static str); N]) -> Self {
        let columns = columns.map(|(key, title)| Column { key, title }).to_vec();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn push<const N: usize>(&mut self, cells: [Cell; N]) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells.to_vec());
    }

    /// Its rows as objects.
    pub(crate) fn to_value(&self) -> Value {
        let keys = || self.columns.iter().map(|column| column.key.to_owned());
        let object = |row: &Vec<Cell>| -> Map<String, Value> {
            keys().zip(row.iter().map(Cell::to_value)).collect()
        };
        self.rows.iter().map(|row| Value::Object(object(row))).collect()
    }

    fn is_words(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| matches!(cell, Cell::Text(_)))
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|it| it.title.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.to_string().len());
            }
        }
        widths
    }
}

impl Cell {
    /// A number, if there is one.
    pub(crate) fn number(number: Option<f64>, digits: usize) -> Self {
        number.map_or(Cell::Absent, |number| Cell::Number(number, digits))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Cell::Text(text.into())
    }

    fn to_value(&self) -> Value {
        match self {
            Cell::Absent => Value::Null,
            Cell::Text(text) => Value::from(text.as_str()),
            Cell::Count(count) => Value::from(*count),
            Cell::Number(number, _) => Value::from(*number),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Absent => f.write_str("-"),
            Cell::Text(text) => f.write_str(text),
            Cell::Count(count) => f.write_str(&grouped(*count)),
            Cell::Number(number, 0) => f.write_str(&grouped(number.round() as u64)),
            Cell::Number(number, digits) => write!(f, "{number:.digits$}"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<(usize, bool)> = self
            .widths()
            .into_iter()
            .enumerate()
            .map(|(at, width)| (width, self.is_words(at)))
            .collect();
        let titles: Vec<String> = self.columns.iter().map(|it| it.title.to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect());
        for row in std::iter::once(titles).chain(rows) {
            write_row(f, &row, &widths)?;
        }
        Ok(())
    }
}

/// Each cell as wide as its column, words on the left.
fn write_row(f: &mut fmt::Formatter<'_>, row: &[String], columns: &[(usize, bool)]) -> fmt::Result {
    let mut line = String::new();
    for (text, (width, is_words)) in row.iter().zip(columns) {
        line += &if *is_words { format!("{text:<width$}  ") } else { format!("{text:>width$}  ") };
    }
    writeln!(f, "{}", line.trim_end())
}

/// 1234567 as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_text_and_json_agree() {
        let mut table = Table::new([("case", "case"), ("rate", "messages/s"), ("syncs", "syncs")]);
        let rate = Cell::Number(12_345.6, 0);
        table.push([Cell::text("persistent"), rate, Cell::number(Some(0.125), 3)]);
        table.push([Cell::text("not"), Cell::Count(7), Cell::number(None, 3)]);
        let shown = "\
case        messages/s  syncs
persistent      12,346  0.125
not                  7      -
";
        assert_eq!(table.to_string(), shown);
        let value = table.to_value();
        assert_eq!(value[0]["rate"], 12_345.6);
        assert_eq!(value[1]["syncs"], Value::Null);
        assert_eq!(value[1]["case"], "not");
    }
}
