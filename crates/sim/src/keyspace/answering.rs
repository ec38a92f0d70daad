//! How much one answer shows: one command's, or those of all commands of a batch together.

use model::limits::{BESIDE_ELEMENT_BYTES, REPLY_BYTES_MAX};

use super::streams::shown_bytes as shown_stream;
use crate::redis_client::Value;

/// The bytes that an answer has shown so far.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    bytes: usize,
    bytes_max: usize,
}

impl Default for Answer {
    fn default() -> Self {
        Self::of(REPLY_BYTES_MAX)
    }
}

impl Answer {
    pub(super) const fn of(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max }
    }

    pub(super) const fn start_anew(&mut self) {
        self.bytes = 0;
    }

    /// True if all of these elements may still be shown.
    pub(super) fn has_room_for<'a>(&self, elements: impl Iterator<Item = &'a [u8]>) -> bool {
        elements.map(cost).sum::<usize>() <= self.left()
    }

    /// True if so many bytes of so many entries of a collection may still be shown.
    pub(super) const fn has_room_for_entries(&self, count: usize, bytes: usize) -> bool {
        count * BESIDE_ELEMENT_BYTES + bytes <= self.left()
    }

    /// True if all of these values may still be shown.
    pub(super) fn has_room_for_values(&self, values: &[Value]) -> bool {
        values.iter().map(shown_value).sum::<usize>() <= self.left()
    }

    /// True if a command would show something, and nothing more may be shown.
    pub(super) fn is_too_late_for(&self, name: &str, arguments: &[&[u8]]) -> bool {
        let shows = match name {
            "SET" => arguments.contains(&b"GET".as_slice()),
            "ZADD" => arguments.contains(&b"INCR".as_slice()),
            name => SHOWING.contains(&name),
        };
        self.left() == 0 && shows
    }

    /// This was answered, too.
    pub(super) fn add(&mut self, name: &str, arguments: &[&[u8]], value: &Value) {
        self.bytes += match (name, value) {
            ("GET" | "GETDEL" | "GETEX" | "SET" | "HGET", Value::Bulk(bytes)) => bytes.len(),
            (_, Value::Error(_)) => 0,
            (name, value) if name.starts_with('X') => shown_stream(name, value),
            ("ZADD", _) if !arguments.contains(&b"INCR".as_slice()) => 0,
            ("ZADD" | "ZINCRBY" | "ZSCORE", _) => BESIDE_ELEMENT_BYTES,
            ("ZRANGE" | "ZRANGEBYSCORE" | "ZPOPMIN", Value::Array(all)) => {
                all.iter().step_by(2).map(shown).sum()
            }
            ("HGETALL", Value::Array(all)) => {
                all.iter().map(shown).sum::<usize>() - all.len() / 2 * BESIDE_ELEMENT_BYTES
            }
            ("BZPOPMIN", Value::Array(named)) => named.iter().skip(1).take(1).map(shown).sum(),
            ("MGET" | "HMGET", Value::Array(values)) => values.iter().map(shown_value).sum(),
            ("SETBIT", Value::Integer(_)) => BESIDE_ELEMENT_BYTES,
            ("BLPOP" | "BRPOP", Value::Array(named)) => named.iter().skip(1).map(shown).sum(),
            (name, value) if SHOWING.contains(&name) => shown(value),
            _ => 0,
        };
    }

    pub(super) const fn left(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes)
    }
}

fn shown(value: &Value) -> usize {
    match value {
        Value::Bulk(bytes) => cost(bytes),
        Value::Integer(_) => BESIDE_ELEMENT_BYTES,
        Value::Array(all) => all.iter().map(shown).sum(),
        _ => 0,
    }
}

/// One of several values, which counts even if there is none.
fn shown_value(value: &Value) -> usize {
    match value {
        Value::Bulk(bytes) => cost(bytes),
        _ => BESIDE_ELEMENT_BYTES,
    }
}

const fn cost(element: &[u8]) -> usize {
    BESIDE_ELEMENT_BYTES + element.len()
}

/// The answer is too large to show, and its elements stay.
pub(crate) fn too_large() -> Value {
    Value::error("ERR")
}

/// Commands that show data that other clients have sent.
const SHOWING: [&str; 31] = [
    "LPOP",
    "RPOP",
    "BLPOP",
    "BRPOP",
    "LMOVE",
    "BLMOVE",
    "LRANGE",
    "LINDEX",
    "LPOS",
    "GET",
    "GETDEL",
    "GETEX",
    "MGET",
    "SETBIT",
    "HGET",
    "HMGET",
    "HGETALL",
    "SISMEMBER",
    "SMEMBERS",
    "SPOP",
    "SRANDMEMBER",
    "ZINCRBY",
    "ZSCORE",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZPOPMIN",
    "BZPOPMIN",
    "XRANGE",
    "XREADGROUP",
    "XAUTOCLAIM",
    "XPENDING",
];
