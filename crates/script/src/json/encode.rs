//! Writes JSON.

use mlua::{Table, Value};

use super::DEPTH_MAX;
use super::settings::{Invalid, Values};
use crate::budget::Budget;
use crate::native::{Refusal, type_name};
use crate::number;

/// The text of a value.
pub(crate) fn encode(value: &Value, settings: Values, budget: &Budget) -> Result<Vec<u8>, Refusal> {
    let mut encoder = Encoder { settings, budget, text: Vec::new() };
    encoder.value(value, 0)?;
    Ok(encoder.text)
}

struct Encoder<'b> {
    settings: Values,
    budget: &'b Budget,
    text: Vec<u8>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Refusal> {
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(number) => self.number(*number as f64),
            Value::Number(number) => self.number(*number),
            Value::Boolean(true) => self.write(b"true"),
            Value::Boolean(false) => self.write(b"false"),
            Value::Nil => self.write(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.write(b"null"),
            Value::Table(table) => self.table(table, depth + 1),
            _ => Err(refused(type_name(value), "type not supported")),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.budget.take(bytes.len())?;
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Refusal> {
        let length = self.array_length(table)?;
        if depth > self.settings.encode_depth.min(DEPTH_MAX) {
            return Err(format!("Cannot serialise, excessive nesting ({depth})").into());
        }
        match length {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// The largest key of a table that has only whole ones above zero.
    fn array_length(&self, table: &Table) -> Result<Option<usize>, Refusal> {
        let (mut largest, mut count) = (0, 0_usize);
        for pair in table.pairs::<Value, Value>() {
            self.budget.take(0)?;
            let Some(key) = array_key(&pair?.0) else { return Ok(None) };
            largest = largest.max(key);
            count += 1;
        }
        let ratio = self.settings.sparse_ratio;
        let is_sparse = ratio > 0
            && largest > count.saturating_mul(ratio)
            && largest > self.settings.sparse_safe;
        match (is_sparse, self.settings.sparse_convert) {
            (true, false) => Err(refused("table", "excessively sparse array")),
            (true, true) => Ok(None),
            (false, _) => Ok(Some(largest)),
        }
    }

    fn array(&mut self, table: &Table, length: usize, depth: usize) -> Result<(), Refusal> {
        for place in 1..=length {
            self.write(if place == 1 { b"[" } else { b"," })?;
            self.value(&table.raw_get(place)?, depth)?;
        }
        self.write(b"]")
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<(), Refusal> {
        self.write(b"{")?;
        for (place, pair) in table.pairs::<Value, Value>().enumerate() {
            let (key, value) = pair?;
            if place > 0 {
                self.write(b",")?;
            }
            self.key(&key)?;
            self.write(b":")?;
            self.value(&value, depth)?;
        }
        self.write(b"}")
    }

    fn key(&mut self, key: &Value) -> Result<(), Refusal> {
        let number = match key {
            Value::String(text) => return self.string(&text.as_bytes()),
            Value::Integer(number) => *number as f64,
            Value::Number(number) => *number,
            _ => {
                return Err(refused(type_name(key), "table key must be a number or string"));
            }
        };
        self.write(b"\"")?;
        self.number(number)?;
        self.write(b"\"")
    }

    fn number(&mut self, number: f64) -> Result<(), Refusal> {
        if number.is_finite() {
            return self.write(number::shortest(number, self.settings.precision).as_bytes());
        }
        match self.settings.encode_invalid {
            Invalid::Refuse => Err(refused("number", "must not be NaN or Inf")),
            Invalid::Null => self.write(b"null"),
            Invalid::Write if number.is_nan() => self.write(b"nan"),
            Invalid::Write if number < 0.0 => self.write(b"-inf"),
            Invalid::Write => self.write(b"inf"),
        }
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.budget.take(bytes.len() + 2)?;
        self.text.push(b'"');
        for byte in bytes {
            match escape(*byte) {
                Some(letter) => self.text.extend_from_slice(&[b'\\', letter]),
                None if *byte < b' ' || *byte == 127 => {
                    self.budget.take(5)?;
                    self.text.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                }
                None => self.text.push(*byte),
            }
        }
        self.text.push(b'"');
        Ok(())
    }
}

fn array_key(key: &Value) -> Option<usize> {
    match key {
        Value::Integer(key) => usize::try_from(*key).ok().filter(|key| *key > 0),
        Value::Number(key) if *key >= 1.0 && key.floor() == *key => Some(*key as usize),
        _ => None,
    }
}

fn escape(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' | b'/' => byte,
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        12 => b'f',
        b'\r' => b'r',
        _ => return None,
    })
}

fn refused(what: &str, reason: &str) -> Refusal {
    Refusal::Text(format!("Cannot serialise {what}: {reason}"))
}
