//! Commands on strings beside SET and GET: counters, parts of a value, bits, and several at once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{BitAction, BitField, BitOperation, BitOverflow, KeyCommand, ValueEdit, parse_integer};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::keys::{self, QueryResult, clock_named, value_deadline};
use crate::query::Query;
use crate::reply_format::ReplyFormat;

/// INCR, DECR
pub(crate) fn step(arguments: Arguments<'_>, by: i64) -> QueryResult {
    edit(arguments, ValueEdit::Add(by), ReplyFormat::Number)
}

/// INCRBY
pub(crate) fn increase(arguments: Arguments<'_>) -> QueryResult {
    step(arguments, arguments.integer(2)?)
}

/// DECRBY
pub(crate) fn decrease(arguments: Arguments<'_>) -> QueryResult {
    let by = arguments.integer(2)?.checked_neg();
    step(arguments, by.ok_or(Fault::of("ERR decrement would overflow"))?)
}

/// INCRBYFLOAT
pub(crate) fn increase_decimal(arguments: Arguments<'_>) -> QueryResult {
    edit(arguments, ValueEdit::AddDecimal(arguments.element(2)), ReplyFormat::Value)
}

/// APPEND
pub(crate) fn append(arguments: Arguments<'_>) -> QueryResult {
    edit(arguments, ValueEdit::Append(arguments.element(2)), ReplyFormat::Count)
}

/// SETRANGE
pub(crate) fn overwrite(arguments: Arguments<'_>) -> QueryResult {
    let offset = u64::try_from(arguments.integer(2)?);
    let offset = offset.map_err(|_| Fault::of("ERR offset is out of range"))?;
    let bytes = arguments.element(3);
    edit(arguments, ValueEdit::Overwrite { offset, bytes }, ReplyFormat::Count)
}

/// SETBIT
pub(crate) fn set_bit(arguments: Arguments<'_>) -> QueryResult {
    let field = BitField::bit(bit_offset(arguments.word(2))?);
    let bit = parse_integer(arguments.word(3)).filter(|bit| matches!(bit, 0 | 1));
    let bit = bit.ok_or(Fault::of("ERR bit is not an integer or out of range"))?;
    let (action, overflow) = (BitAction::Set(bit), BitOverflow::Wrap);
    let operation = BitOperation { field, action, overflow };
    edit(arguments, ValueEdit::Bits([operation].into()), ReplyFormat::FirstNumber)
}

/// BITFIELD
pub(crate) fn fields(arguments: Arguments<'_>) -> QueryResult {
    edit(arguments, ValueEdit::Bits(operations(arguments)?), ReplyFormat::Numbers)
}

/// BITFIELD_RO
pub(crate) fn fields_read_only(arguments: Arguments<'_>) -> QueryResult {
    let operations = operations(arguments)?;
    if operations.iter().any(BitOperation::writes) {
        return Err(Fault::of("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    edit(arguments, ValueEdit::Bits(operations), ReplyFormat::Numbers)
}

fn operations(arguments: Arguments<'_>) -> Result<Vec<BitOperation>, Fault> {
    let (mut operations, mut overflow, mut at) = (Vec::new(), BitOverflow::Wrap, 2);
    while at < arguments.len() {
        let words = arguments.len() - at;
        let action = match () {
            () if words > 1 && arguments.is(at, "overflow") => {
                overflow = overflow_named(arguments, at + 1)?;
                at += 2;
                continue;
            }
            () if words > 2 && arguments.is(at, "get") => BitAction::Get,
            // The number itself is read last, as in Redis.
            () if words > 3 && arguments.is(at, "set") => BitAction::Set(0),
            () if words > 3 && arguments.is(at, "incrby") => BitAction::Add(0),
            () => return Err(Fault::SYNTAX),
        };
        let (is_signed, bits) = field_type(arguments.word(at + 1))?;
        let offset = field_offset(arguments.word(at + 2), bits)?;
        let action = match action {
            BitAction::Get => action,
            BitAction::Set(_) => BitAction::Set(arguments.integer(at + 3)?),
            BitAction::Add(_) => BitAction::Add(arguments.integer(at + 3)?),
        };
        at += if action == BitAction::Get { 3 } else { 4 };
        let field = BitField { is_signed, bits, offset };
        operations.push(BitOperation { field, action, overflow });
    }
    Ok(operations)
}

fn overflow_named(arguments: Arguments<'_>, at: usize) -> Result<BitOverflow, Fault> {
    match () {
        () if arguments.is(at, "wrap") => Ok(BitOverflow::Wrap),
        () if arguments.is(at, "sat") => Ok(BitOverflow::Saturate),
        () if arguments.is(at, "fail") => Ok(BitOverflow::Fail),
        () => Err(Fault::of("ERR Invalid OVERFLOW type specified")),
    }
}

/// `i8`, `u16`: with a sign or without, and how many bits.
fn field_type(word: &[u8]) -> Result<(bool, u8), Fault> {
    let parsed = word.split_first().and_then(|(sign, bits)| {
        let bits = parse_integer(bits).and_then(|bits| u8::try_from(bits).ok())?;
        match sign {
            b'i' => (1..=64).contains(&bits).then_some((true, bits)),
            b'u' => (1..=63).contains(&bits).then_some((false, bits)),
            _ => None,
        }
    });
    parsed.ok_or(Fault::of(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
         i64 is.",
    ))
}

/// The place of a field, in bits, or behind a `#` in fields as wide.
fn field_offset(word: &[u8], bits: u8) -> Result<u64, Fault> {
    let Some(fields) = word.strip_prefix(b"#") else { return bit_offset(word) };
    let offset = parse_integer(fields).and_then(|fields| fields.checked_mul(i64::from(bits)));
    offset.and_then(offset_in_bounds).ok_or(BIT_OFFSET)
}

fn bit_offset(word: &[u8]) -> Result<u64, Fault> {
    parse_integer(word).and_then(offset_in_bounds).ok_or(BIT_OFFSET)
}

fn offset_in_bounds(offset: i64) -> Option<u64> {
    u64::try_from(offset).ok().filter(|offset| *offset < BITS_MAX)
}

const BIT_OFFSET: Fault = Fault::of("ERR bit offset is not an integer or out of range");

/// Bits of the longest string of Redis, to which its own bounds belong.
const BITS_MAX: u64 = 8 * 512 * 1024 * 1024;

/// GETEX
pub(crate) fn value_until(arguments: Arguments<'_>) -> QueryResult {
    let deadline = match arguments.len() {
        2 => return keys::value(arguments, false),
        3 if arguments.is(2, "persist") => None,
        4 => {
            let clock = clock_named(arguments, 2).ok_or(Fault::SYNTAX)?;
            Some(value_deadline(arguments, 3, clock, "getex")?)
        }
        _ => return Err(Fault::SYNTAX),
    };
    let command = KeyCommand::ValueUntil { name: arguments.key(1)?, deadline };
    Ok(Query::key(command, ReplyFormat::Value))
}

/// MGET
pub(crate) fn values(arguments: Arguments<'_>) -> QueryResult {
    let names = arguments.keys(1)?;
    Ok(Query::key(KeyCommand::ValuesAtOnce { names }, ReplyFormat::Values))
}

/// MSET, MSETNX
pub(crate) fn set_values(arguments: Arguments<'_>, only_new: bool) -> QueryResult {
    if arguments.len().is_multiple_of(2) {
        return Err(Fault::arity(if only_new { "msetnx" } else { "mset" }));
    }
    let pairs = (1..arguments.len()).step_by(2);
    let values = pairs.map(|at| Ok((arguments.key(at)?, arguments.element(at + 1))));
    let values = values.collect::<Result<_, Fault>>()?;
    let format = if only_new { ReplyFormat::WhetherDone } else { ReplyFormat::Okay };
    Ok(Query::key(KeyCommand::SetValues { values, only_new }, format))
}

/// STRLEN
pub(crate) fn length(arguments: Arguments<'_>) -> QueryResult {
    part(arguments, Part::Length)
}

/// GETRANGE, SUBSTR
pub(crate) fn range(arguments: Arguments<'_>) -> QueryResult {
    let (first, last) = (arguments.integer(2)?, arguments.integer(3)?);
    part(arguments, Part::Bytes { first, last })
}

/// GETBIT
pub(crate) fn bit(arguments: Arguments<'_>) -> QueryResult {
    let field = BitField::bit(bit_offset(arguments.word(2))?);
    part(arguments, Part::Bit(field))
}

/// BITCOUNT
pub(crate) fn count_bits(arguments: Arguments<'_>) -> QueryResult {
    let span = match arguments.len() {
        2 => BitSpan::ALL,
        4 | 5 => BitSpan {
            first: arguments.integer(2)?,
            last: Some(arguments.integer(3)?),
            in_bits: arguments.len() == 5 && is_unit_bit(arguments, 4)?,
        },
        _ => return Err(Fault::SYNTAX),
    };
    part(arguments, Part::BitCount(span))
}

/// BITPOS
pub(crate) fn place_of_bit(arguments: Arguments<'_>) -> QueryResult {
    let bit = match arguments.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Fault::of("ERR The bit argument must be 1 or 0.")),
    };
    let span = match arguments.len() {
        3 => BitSpan::ALL,
        4..=6 => BitSpan {
            first: arguments.integer(3)?,
            last: if arguments.len() > 4 { Some(arguments.integer(4)?) } else { None },
            in_bits: arguments.len() == 6 && is_unit_bit(arguments, 5)?,
        },
        _ => return Err(Fault::SYNTAX),
    };
    part(arguments, Part::BitPlace { bit, span })
}

fn is_unit_bit(arguments: Arguments<'_>, at: usize) -> Result<bool, Fault> {
    match () {
        () if arguments.is(at, "bit") => Ok(true),
        () if arguments.is(at, "byte") => Ok(false),
        () => Err(Fault::SYNTAX),
    }
}

fn edit(arguments: Arguments<'_>, edit: ValueEdit, format: ReplyFormat) -> QueryResult {
    Ok(Query::key(KeyCommand::EditValue { name: arguments.key(1)?, edit }, format))
}

fn part(arguments: Arguments<'_>, part: Part) -> QueryResult {
    let command = KeyCommand::Value { name: arguments.key(1)?, take: false };
    Ok(Query::key(command, ReplyFormat::Part(part)))
}

/// The thing that is told of a value instead of all of it.
#[derive(Debug)]
pub(crate) enum Part {
    Length,
    Bytes { first: i64, last: i64 },
    Bit(BitField),
    BitCount(BitSpan),
    BitPlace { bit: bool, span: BitSpan },
}

/// The answer about a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told<'v> {
    Number(i64),
    Bytes(&'v [u8]),
}

impl Part {
    /// Looks at the value; no value is an empty one.
    pub(crate) fn of<'v>(&self, value: Option<&'v Arc<[u8]>>) -> Told<'v> {
        let bytes: &[u8] = value.map_or(&[], |value| value);
        match self {
            Self::Length => Told::Number(length_of(bytes)),
            Self::Bytes { first, last } => Told::Bytes(slice(bytes, *first, *last)),
            Self::Bit(field) => Told::Number(field.number(bytes)),
            Self::BitCount(span) => {
                let bits = span.of(bytes);
                let whole = if span.is_reversed() { 0 } else { ones(bytes, bits) };
                Told::Number(whole)
            }
            // A string that is not there is zeros without end.
            Self::BitPlace { bit, .. } if value.is_none() => {
                Told::Number(if *bit { -1 } else { 0 })
            }
            Self::BitPlace { bit, span } => {
                let bits = span.of(bytes);
                // Behind the string there are zeros, unless it was said where to end.
                let beyond = match bits {
                    Some(_) if !bit && span.last.is_none() => length_of(bytes) * 8,
                    _ => -1,
                };
                Told::Number(place(bytes, bits, *bit).unwrap_or(beyond))
            }
        }
    }
}

fn length_of(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

fn slice(bytes: &[u8], first: i64, last: i64) -> &[u8] {
    if first < 0 && last < 0 && first > last {
        return &[];
    }
    let range = span_of(length_of(bytes), first, last);
    let range = range.and_then(|(first, last)| {
        Some((usize::try_from(first).ok()?, usize::try_from(last).ok()?))
    });
    range.and_then(|(first, last)| bytes.get(first..=last)).unwrap_or_default()
}

/// The places from `first` to `last` among so many; negative ones count from the end.
fn span_of(length: i64, first: i64, last: i64) -> Option<(i64, i64)> {
    let from_start = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let first = from_start(first).max(0);
    let last = from_start(last).max(0).min(length - 1);
    (first <= last).then_some((first, last))
}

/// A part of a value, as BITCOUNT and BITPOS take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitSpan {
    first: i64,
    /// `None`: to the end.
    last: Option<i64>,
    /// Places are of bits; else of bytes.
    in_bits: bool,
}

impl BitSpan {
    const ALL: Self = Self { first: 0, last: None, in_bits: false };

    /// The first and last of its bits in a value; nothing if it has none.
    fn of(&self, bytes: &[u8]) -> Option<(i64, i64)> {
        let units = if self.in_bits { length_of(bytes) * 8 } else { length_of(bytes) };
        let (first, last) = span_of(units, self.first, self.last.unwrap_or(-1))?;
        Some(if self.in_bits { (first, last) } else { (first * 8, last * 8 + 7) })
    }

    /// BITCOUNT finds nothing in it, however short the value.
    const fn is_reversed(&self) -> bool {
        match self.last {
            Some(last) => self.first < 0 && last < 0 && self.first > last,
            None => false,
        }
    }
}

/// The bytes in which these bits lie, and the number of the first of them.
fn bytes_of(bytes: &[u8], (first, last): (i64, i64)) -> (i64, &[u8]) {
    let byte = |bit: i64| usize::try_from(bit / 8).unwrap_or(usize::MAX);
    (first / 8, bytes.get(byte(first)..=byte(last)).unwrap_or_default())
}

fn ones(bytes: &[u8], bits: Option<(i64, i64)>) -> i64 {
    let Some((first, last)) = bits else { return 0 };
    let (_, bytes) = bytes_of(bytes, (first, last));
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones());
    let all = words.chain(rest.iter().map(|byte| byte.count_ones())).map(i64::from).sum::<i64>();
    // Those beside them, in the bytes at either end.
    let before = bytes.first().map_or(0, |byte| byte & !(0xff >> (first % 8)));
    let behind = bytes.last().map_or(0, |byte| byte & (0x7f >> (last % 8)));
    all - i64::from(before.count_ones() + behind.count_ones())
}

/// The place of the first such bit among these.
fn place(bytes: &[u8], bits: Option<(i64, i64)>, bit: bool) -> Option<i64> {
    let (first, last) = bits?;
    let (start, bytes) = bytes_of(bytes, (first, last));
    // A byte without the bit.
    let other = if bit { 0 } else { 0xff };
    let place = |index: usize, found: u8| {
        let place = (start + i64::try_from(index).ok()?) * 8 + i64::from(found.leading_zeros());
        (found != 0 && place <= last).then_some(place)
    };
    let (head, rest) = bytes.split_first()?;
    let in_head = (head ^ other) & (0xff >> (first % 8));
    if in_head != 0 {
        return place(0, in_head);
    }
    let (chunks, _) = rest.as_chunks::<32>();
    let skipped = chunks.iter().take_while(|chunk| **chunk == [other; 32]).count() * 32;
    let behind = rest.get(skipped..).unwrap_or_default();
    let index = behind.iter().position(|byte| *byte != other)?;
    place(1 + skipped + index, behind.get(index)? ^ other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: i64, last: Option<i64>, in_bits: bool) -> BitSpan {
        BitSpan { first, last, in_bits }
    }

    #[test]
    fn slices_count_from_either_end() {
        let bytes = b"This is a string";
        assert_eq!(slice(bytes, 0, 3), b"This");
        assert_eq!(slice(bytes, -3, -1), b"ing");
        assert_eq!(slice(bytes, 10, 100), b"string");
        assert_eq!(slice(bytes, -100, -1), bytes);
        assert_eq!(slice(bytes, 5, 3), b"");
        assert_eq!(slice(b"", 0, -1), b"");
        assert_eq!(slice(bytes, i64::MIN, i64::MAX), bytes);
    }

    #[test]
    fn bits_are_counted_and_found_in_spans() {
        let value: Arc<[u8]> = Arc::from(&[0xff, 0xf0, 0x00][..]);
        let count = |span| Part::BitCount(span).of(Some(&value));
        assert_eq!(count(BitSpan::ALL), Told::Number(12));
        assert_eq!(count(span(1, Some(1), false)), Told::Number(4));
        assert_eq!(count(span(6, Some(9), true)), Told::Number(4));
        assert_eq!(count(span(-1, Some(-2), true)), Told::Number(0));
        let place = |bit, span| Part::BitPlace { bit, span }.of(Some(&value));
        assert_eq!(place(false, BitSpan::ALL), Told::Number(12));
        assert_eq!(place(true, span(2, None, false)), Told::Number(-1));
        assert_eq!(place(false, span(0, Some(0), false)), Told::Number(-1));
        assert_eq!(place(false, span(0, None, false)), Told::Number(12));
        assert_eq!(place(true, span(7, Some(15), true)), Told::Number(7));
        let full: Arc<[u8]> = Arc::from(&[0xff][..]);
        let beyond = Part::BitPlace { bit: false, span: BitSpan::ALL }.of(Some(&full));
        assert_eq!(beyond, Told::Number(8));
        assert_eq!(Part::BitPlace { bit: true, span: BitSpan::ALL }.of(None), Told::Number(-1));
    }
}
