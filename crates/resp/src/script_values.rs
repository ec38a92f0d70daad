//! Answers as values of scripts, and values of scripts as answers.

use alloc::vec::Vec;

use model::{ScriptValue, parse_integer};

use crate::answer::Answer;

/// Words a value that is no error by itself.
pub(crate) fn say_value(value: &ScriptValue, answer: &mut Answer<'_>) {
    match value {
        ScriptValue::Null => answer.null(),
        ScriptValue::Status(text) => answer.status(text),
        ScriptValue::Error(text) => answer.error_bytes(text),
        ScriptValue::Integer(number) => answer.integer(*number),
        ScriptValue::Bulk(bytes) => answer.bulk(bytes),
        ScriptValue::Boolean(is) => answer.boolean(*is),
        ScriptValue::Double(number) => answer.double(*number),
        ScriptValue::Array(values) => {
            answer.array(values.len());
            values.iter().for_each(|value| say_value(value, answer));
        }
        ScriptValue::Set(values) => {
            answer.set(values.len());
            values.iter().for_each(|value| say_value(value, answer));
        }
        ScriptValue::Map(pairs) => {
            answer.map(pairs.len());
            for (key, value) in pairs {
                say_value(key, answer);
                say_value(value, answer);
            }
        }
    }
}

/// The value that an answer of ours is.
pub(crate) fn value_of(answer: &[u8]) -> Option<ScriptValue> {
    Parser { rest: answer }.value(0)
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Option<ScriptValue> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (mark, line) = self.line()?.split_first()?;
        Some(match mark {
            b'+' => ScriptValue::Status(line.to_vec()),
            b'-' => ScriptValue::Error(line.to_vec()),
            b':' => ScriptValue::Integer(parse_integer(line)?),
            b',' => ScriptValue::Double(core::str::from_utf8(line).ok()?.parse().ok()?),
            b'#' => ScriptValue::Boolean(line == b"t"),
            b'_' => ScriptValue::Null,
            b'$' | b'*' if line == b"-1" => ScriptValue::Null,
            b'$' => ScriptValue::Bulk(self.bytes(count(line)?)?.to_vec()),
            // Text for people has its form before it.
            b'=' => ScriptValue::Bulk(self.bytes(count(line)?)?.get(4..)?.to_vec()),
            b'*' | b'>' => ScriptValue::Array(self.values(count(line)?, depth)?),
            b'~' => ScriptValue::Set(self.values(count(line)?, depth)?),
            b'%' => {
                let mut pairs = Vec::new();
                for _ in 0..count(line)? {
                    pairs.push((self.value(depth + 1)?, self.value(depth + 1)?));
                }
                ScriptValue::Map(pairs)
            }
            _ => return None,
        })
    }

    fn values(&mut self, count: usize, depth: usize) -> Option<Vec<ScriptValue>> {
        (0..count).map(|_| self.value(depth + 1)).collect()
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.windows(2).position(|pair| pair == b"\r\n")?;
        let line = self.rest.get(..end)?;
        self.rest = self.rest.get(end + 2..)?;
        Some(line)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.rest.get(..count)?;
        self.rest = self.rest.get(count + 2..)?;
        Some(bytes)
    }
}

fn count(line: &[u8]) -> Option<usize> {
    parse_integer(line).and_then(|count| usize::try_from(count).ok())
}

/// Our answers are not nested deeper.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::answer::Version;

    #[test]
    fn values_come_back_from_their_answers() {
        let bulk = |text: &[u8]| ScriptValue::Bulk(text.to_vec());
        let pairs = vec![(bulk(b"k"), ScriptValue::Double(1.5)), (bulk(b""), ScriptValue::Null)];
        let all = ScriptValue::Array(vec![
            ScriptValue::Status(b"OK".to_vec()),
            ScriptValue::Error(b"ERR no".to_vec()),
            ScriptValue::Integer(-7),
            bulk(b"a\r\nb"),
            ScriptValue::Boolean(true),
            ScriptValue::Map(pairs),
            ScriptValue::Set(vec![ScriptValue::Array(Vec::new())]),
        ]);
        let mut out = Vec::new();
        say_value(&all, &mut Answer::new(&mut out, Version::Resp3));
        assert_eq!(value_of(&out), Some(all));
        assert_eq!(value_of(b"$-1\r\n"), Some(ScriptValue::Null));
        assert_eq!(value_of(b"*-1\r\n"), Some(ScriptValue::Null));
        for wrong in [&b""[..], b"$5\r\nab\r\n", b"*2\r\n:1\r\n", b"!x\r\n", b":x\r\n"] {
            assert_eq!(value_of(wrong), None);
        }
    }
}
