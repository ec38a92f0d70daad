//! Changes of values by what they were.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Deadline, QueueName, Refusal, Reply, ValueEdit, limits, parse_integer};

use super::bits;
use super::decimal;
use super::setting::LOOKED_AT_BYTES_PER_STEP;
use super::{Keyspace, Value};
use crate::Effects;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;

/// The outcome of an edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The value now; `None`: it stays as it was.
    pub(super) bytes: Option<Arc<[u8]>>,
    pub(super) reply: Reply,
}

impl Keyspace {
    /// Changes a value in one record, which states the result. Values may take so much memory.
    pub(crate) fn edit_value(
        &mut self,
        name: &QueueName,
        edit: &ValueEdit,
        memory_max: u64,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Outcome {
        let (place, there) = self.values.find(name);
        let (at, edited) = match there.filter(|value| value.is_there(store.latest)) {
            Some(value) if value.collection().is_some() => return log.refuse(Refusal::WrongKind),
            Some(value) => (value.at, Edited::of(Some(value.bytes()), edit, store)),
            None => {
                if self.find_list(name, store).is_some() {
                    return log.refuse(Refusal::WrongKind);
                }
                (None, Edited::of(None, edit, store))
            }
        };
        let stored = edited.and_then(|Edited { bytes, reply }| {
            if let Some(bytes) = bytes {
                self.takes(name, bytes.len(), memory_max)?;
                let value = Value::of_text(bytes, at);
                log.store_value(name, &value, effects)?;
                self.insert_value_at(place, name, value, store);
                debug_assert!(self.values().stored(name).is_some_and(|it| it.at == at), "{name}");
            }
            Ok(reply)
        });
        match stored {
            Ok(reply) => Outcome::reply(log.after_all(), reply),
            Err(refusal) => log.refuse(refusal),
        }
    }

    /// Shows a value, and gives it a deadline, or none any more.
    pub(crate) fn value_until(
        &mut self,
        name: &QueueName,
        deadline: Option<Deadline>,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Outcome {
        let there = self.values().get(name, store.latest);
        let Some((bytes, before)) = there.map(|value| (value.shared(), value.at)) else {
            let is_list = self.find_list(name, store).is_some();
            let reply = || Outcome::reply(log.after_all(), Reply::Value(None));
            return if is_list { log.refuse(Refusal::WrongKind) } else { reply() };
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(refusal) => return log.refuse(refusal),
        };
        let changed = match deadline.map(|deadline| store.moment_of(deadline)) {
            Some(at) if at <= store.latest => {
                self.delete_value(name, store, log, effects);
                Ok(())
            }
            None if before.is_none() => Ok(()),
            at => self.give_value_deadline(name, at, store, log, effects),
        };
        match changed {
            Ok(()) => Outcome::reply(log.after_all(), Reply::Value(Some(bytes))),
            Err(refusal) => log.refuse(refusal),
        }
    }
}

impl Edited {
    /// The value behind an edit, which is charged.
    pub(super) fn of(
        before: Option<&[u8]>,
        edit: &ValueEdit,
        store: &mut MessageStore,
    ) -> Result<Self, Refusal> {
        let read = before.map_or(0, <[u8]>::len) + edit.body_bytes();
        let edited = edited(before, edit);
        store.took_steps(Self::steps(edit, read, &edited));
        edited
    }

    /// The cost of an edit that has read so many bytes, in steps.
    fn steps(edit: &ValueEdit, read: usize, outcome: &Result<Self, Refusal>) -> usize {
        let copied = read / LOOKED_AT_BYTES_PER_STEP;
        match edit {
            ValueEdit::Bits(operations) => copied + operations.len() * STEPS_PER_BIT_OPERATION,
            ValueEdit::AddDecimal(_) => {
                let written = outcome.as_ref().ok().and_then(|done| done.bytes.as_ref());
                let digits = written.map_or(0, |text| text.len());
                read / DIGITS_READ_PER_STEP + digits * digits / DIGITS_WRITTEN_PER_STEP
            }
            ValueEdit::Add(_) | ValueEdit::Append(_) | ValueEdit::Overwrite { .. } => copied,
        }
    }
}

/// The value behind an edit.
fn edited(before: Option<&[u8]>, edit: &ValueEdit) -> Result<Edited, Refusal> {
    let bytes = before.unwrap_or_default();
    let after = edit.bytes_after(bytes.len());
    let writes = edit.writes();
    if writes && after > limits::EDITED_BYTES_MAX {
        return Err(Refusal::TooManyValues);
    }
    let done = perform(before, edit, after)?;
    let length = done.bytes.as_ref().map_or(0, |bytes| bytes.len());
    assert!(length <= after, "an edit leaves no more than it said before");
    Ok(done)
}

/// The same, where it is known that the value has so many bytes at most behind it.
fn perform(before: Option<&[u8]>, edit: &ValueEdit, after: usize) -> Result<Edited, Refusal> {
    let bytes = before.unwrap_or_default();
    match edit {
        ValueEdit::Add(more) => {
            let number =
                before.map_or(Ok(0), |text| parse_integer(text).ok_or(Refusal::NotAnInteger))?;
            let sum = number.checked_add(*more).ok_or(Refusal::Overflow)?;
            let text = digits(sum, &mut [0; DIGITS_MAX]).into();
            Ok(Edited { bytes: Some(text), reply: Reply::Integer(sum) })
        }
        ValueEdit::AddDecimal(more) => {
            let sum = decimal::sum(before.unwrap_or(b"0"), more)?;
            let text: Arc<[u8]> = Arc::from(sum.as_bytes());
            Ok(Edited { bytes: Some(Arc::clone(&text)), reply: Reply::Value(Some(text)) })
        }
        ValueEdit::Append(more) => Ok(counted([bytes, more].concat())),
        ValueEdit::Overwrite { bytes: over, .. } if over.is_empty() => {
            Ok(Edited { bytes: None, reply: Reply::Count(bytes.len() as u64) })
        }
        ValueEdit::Overwrite { offset, bytes: over } => {
            let mut value = grown(bytes, after);
            // It fits: the value was made long enough for it.
            let place = usize::try_from(*offset).ok().and_then(|from| value.get_mut(from..));
            let place = place.and_then(|place| place.get_mut(..over.len()));
            place.into_iter().for_each(|place| place.copy_from_slice(over));
            Ok(counted(value))
        }
        ValueEdit::Bits(operations) if edit.writes() => {
            let mut value = grown(bytes, after);
            let numbers = operations.iter().map(|it| bits::perform(it, &mut value)).collect();
            Ok(Edited { bytes: Some(value.into()), reply: Reply::Numbers(numbers) })
        }
        ValueEdit::Bits(operations) => {
            let read = operations.iter().map(|it| Some(it.field.number(bytes)));
            Ok(Edited { bytes: None, reply: Reply::Numbers(read.collect()) })
        }
    }
}

/// A number in decimal.
fn digits(number: i64, out: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let (mut at, mut rest) = (DIGITS_MAX, number.unsigned_abs());
    for place in out.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        at -= 1;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        out.iter_mut().skip(at).take(1).for_each(|place| *place = b'-');
    }
    out.get(at..).expect("invariant: a number has room")
}

fn counted(value: Vec<u8>) -> Edited {
    let reply = Reply::Count(value.len() as u64);
    Edited { bytes: Some(value.into()), reply }
}

/// The bytes, and zeros behind them up to so many.
fn grown(bytes: &[u8], length: usize) -> Vec<u8> {
    assert!(length >= bytes.len(), "a value does not become shorter");
    let mut value = Vec::with_capacity(length);
    value.extend_from_slice(bytes);
    value.resize(length, 0);
    value
}

/// Up to 64 bits are read and written one by one.
const STEPS_PER_BIT_OPERATION: usize = 4;

/// A decimal number is read digit by digit, and written at the cost of the square of their number.
const DIGITS_READ_PER_STEP: usize = 4;
const DIGITS_WRITTEN_PER_STEP: usize = 1_000;

/// Digits of an integer, and its sign.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use model::{BitAction, BitField, BitOperation, BitOverflow};

    use super::*;

    fn value(before: Option<&str>, edit: &ValueEdit) -> Result<(Option<Vec<u8>>, Reply), Refusal> {
        let Edited { bytes, reply } = edited(before.map(str::as_bytes), edit)?;
        Ok((bytes.map(|bytes| bytes.to_vec()), reply))
    }

    #[test]
    fn integers_are_added_within_64_bits() {
        let add = |before, more| value(before, &ValueEdit::Add(more));
        assert_eq!(add(None, 5), Ok((Some(b"5".to_vec()), Reply::Integer(5))));
        assert_eq!(add(Some("-7"), 5), Ok((Some(b"-2".to_vec()), Reply::Integer(-2))));
        assert_eq!(add(Some("9223372036854775807"), 1), Err(Refusal::Overflow));
        assert_eq!(add(Some("-9223372036854775808"), -1), Err(Refusal::Overflow));
        for wrong in ["", " 1", "1.0", "+1", "01", "x", "9223372036854775808"] {
            assert_eq!(add(Some(wrong), 1), Err(Refusal::NotAnInteger), "{wrong}");
        }
    }

    #[test]
    fn digits_are_those_of_to_string() {
        for number in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN, 1_234_567_890] {
            let text = number.to_string();
            assert_eq!(digits(number, &mut [0; DIGITS_MAX]), text.as_bytes());
        }
    }

    #[test]
    fn overwriting_fills_gaps_with_zeros() {
        let over = |before, offset, text: &str| {
            value(before, &ValueEdit::Overwrite { offset, bytes: Arc::from(text.as_bytes()) })
        };
        assert_eq!(over(Some("abc"), 1, "x"), Ok((Some(b"axc".to_vec()), Reply::Count(3))));
        assert_eq!(over(None, 2, "x"), Ok((Some(b"\0\0x".to_vec()), Reply::Count(3))));
        assert_eq!(over(Some("abc"), 99, ""), Ok((None, Reply::Count(3))));
        assert_eq!(over(None, 99, ""), Ok((None, Reply::Count(0))));
    }

    #[test]
    fn edits_refuse_values_that_grow_too_long() {
        let bytes = |count: usize| Arc::from(alloc::vec![b'x'; count]);
        let most = limits::EDITED_BYTES_MAX;
        assert!(value(Some("x"), &ValueEdit::Append(bytes(most - 1))).is_ok());
        let bit = |offset| {
            let field = BitField { is_signed: false, bits: 1, offset };
            let set = BitAction::Set(1);
            ValueEdit::Bits(alloc::vec![BitOperation {
                field,
                action: set,
                overflow: BitOverflow::Wrap
            }])
        };
        assert!(value(None, &bit(most as u64 * 8 - 1)).is_ok());
        for edit in [
            ValueEdit::Append(bytes(most)),
            ValueEdit::Overwrite { offset: most as u64, bytes: bytes(1) },
            ValueEdit::Overwrite { offset: u64::MAX, bytes: bytes(1) },
            bit(most as u64 * 8),
            bit(u64::MAX),
        ] {
            assert_eq!(value(Some("x"), &edit), Err(Refusal::TooManyValues), "{edit:?}");
        }
    }
}
