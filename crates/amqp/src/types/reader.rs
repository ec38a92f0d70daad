//! A cursor over a peer's bytes: takes typed values off their front, or gives a fault and its
//! position.

use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::limits::{EMPTY_ELEMENTS_MAX, NESTING_MAX, SECTION_ELEMENTS_MAX};
use crate::types::code;
use crate::types::compound::{Array, Described, List, Map};
use crate::types::descriptor::{Descriptor, is_descriptor};
use crate::types::keys::Keys;
use crate::types::value::Value;

use DecodeErrorKind as Kind;

pub(crate) type Result<T> = core::result::Result<T, DecodeError>;

/// The unread rest, and its end.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes from the beginning of the decoded value to the end of `rest`.
    end: usize,
    budget: Budget,
}

/// How many elements of lists, maps and arrays may still come.
#[derive(Clone, Copy, Debug)]
struct Budget {
    elements: u32,
    /// Elements without bytes in arrays that may still come.
    empty: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader::limited(bytes, u32::MAX)
    }

    /// A reader of a message, which refuses more elements than its sections may have.
    pub(crate) fn of_message(bytes: &'a [u8]) -> Reader<'a> {
        Reader::limited(bytes, SECTION_ELEMENTS_MAX)
    }

    fn limited(bytes: &'a [u8], elements: u32) -> Reader<'a> {
        let budget = Budget { elements, empty: EMPTY_ELEMENTS_MAX };
        Reader { rest: bytes, end: bytes.len(), budget }
    }

    /// Bytes from the beginning of the decoded value to the next byte.
    pub(crate) fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// An error at the next byte.
    pub(crate) fn error(&self, kind: Kind) -> DecodeError {
        DecodeError::new(kind, self.position())
    }

    /// Fails when anything is left.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(self.error(Kind::TrailingBytes)) }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    pub(crate) fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((chunk, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(Kind::Truncated));
        };
        self.rest = rest;
        Ok(*chunk)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.error(Kind::Truncated));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// A reader of the next `count` bytes alone, which are skipped here. Once it was read,
    /// [`Reader::rejoin`] has to follow.
    pub(crate) fn narrow(&mut self, count: usize) -> Result<Reader<'a>> {
        let rest = self.take(count)?;
        Ok(Reader { rest, end: self.position(), budget: self.budget })
    }

    /// The elements that were read of a part of this count here.
    pub(crate) fn rejoin(&mut self, part: &Reader<'_>) {
        self.budget = part.budget;
    }

    /// Counts elements of the value that has its constructor at `at`.
    fn count_elements(&mut self, count: u32, at: usize) -> Result<()> {
        let Some(left) = self.budget.elements.checked_sub(count) else {
            let too_many = Kind::TooMany("elements before its body", SECTION_ELEMENTS_MAX);
            return Err(DecodeError::new(too_many, at));
        };
        self.budget.elements = left;
        Ok(())
    }

    /// The same of elements that take no bytes.
    fn count_empty(&mut self, count: u32, at: usize) -> Result<()> {
        let left = self.budget.empty.checked_sub(count);
        self.budget.empty = left.ok_or(DecodeError::new(Kind::TooManyElements, at))?;
        self.count_elements(count, at)
    }

    fn u32(&mut self) -> Result<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// A size or count: one octet if `is_short`, four otherwise.
    fn count(&mut self, is_short: bool) -> Result<u32> {
        if is_short { self.byte().map(u32::from) } else { self.u32() }
    }
}

/// Descriptors and values of any type.
impl<'a> Reader<'a> {
    /// The descriptor of a described value, its 0x00 included (1.2).
    pub(crate) fn described(&mut self) -> Result<Descriptor<'a>> {
        match self.peek() {
            Some(code::DESCRIBED) => {
                self.byte()?;
                self.descriptor()
            }
            Some(other) => Err(self.error(Kind::UnexpectedType(other))),
            None => Err(self.error(Kind::Truncated)),
        }
    }

    /// The numeric descriptor of a described value of the specification.
    #[inline]
    pub(crate) fn composite(&mut self) -> Result<u64> {
        // As all known peers send it.
        if let [code::DESCRIBED, code::SMALL_ULONG, code, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*code));
        }
        self.composite_of_any_form()
    }

    fn composite_of_any_form(&mut self) -> Result<u64> {
        let at = self.position();
        let unknown = DecodeError::new(Kind::UnknownDescriptor, at);
        self.described()?.code().ok_or(unknown)
    }

    fn descriptor(&mut self) -> Result<Descriptor<'a>> {
        if self.peek().is_some_and(|byte| !is_descriptor(byte)) {
            return Err(self.error(Kind::BadDescriptor));
        }
        match self.byte()? {
            code::SMALL_ULONG => self.byte().map(|byte| Descriptor::Code(byte.into())),
            code::ULONG => self.chunk().map(|bytes| Descriptor::Code(u64::from_be_bytes(bytes))),
            code::ULONG_0 => Ok(Descriptor::Code(0)),
            code => self.symbol_of(code).map(Descriptor::Symbol),
        }
    }

    /// A value of any type, checked all the way down.
    pub(crate) fn value(&mut self) -> Result<Value<'a>> {
        let code = self.byte()?;
        self.value_of(code, 0)
    }

    /// The value behind the constructor `code`, inside of `depth` others.
    pub(crate) fn value_of(&mut self, code: u8, depth: u32) -> Result<Value<'a>> {
        match code {
            code::DESCRIBED => self.described_in(depth).map(Value::Described),
            code::LIST_0 | code::LIST_8 | code::LIST_32 => self.list_of(code, depth),
            code::MAP_8 | code::MAP_32 => self.map_of(code, depth).map(Value::Map),
            code::ARRAY_8 | code::ARRAY_32 => self.array_of(code, depth).map(Value::Array),
            _ => self.scalar_of(code),
        }
    }

    fn scalar_of(&mut self, code: u8) -> Result<Value<'a>> {
        let value = match code {
            code::NULL => Value::Null,
            code::TRUE | code::FALSE | code::BOOLEAN => Value::Boolean(self.boolean_of(code)?),
            code::UBYTE => Value::Ubyte(self.byte()?),
            code::USHORT => Value::Ushort(self.chunk().map(u16::from_be_bytes)?),
            code::UINT | code::SMALL_UINT | code::UINT_0 => Value::Uint(self.uint_of(code)?),
            code::ULONG | code::SMALL_ULONG | code::ULONG_0 => Value::Ulong(self.ulong_of(code)?),
            code::BYTE => Value::Byte(self.chunk().map(i8::from_be_bytes)?),
            code::SHORT => Value::Short(self.chunk().map(i16::from_be_bytes)?),
            code::INT => Value::Int(self.chunk().map(i32::from_be_bytes)?),
            code::SMALL_INT => Value::Int(self.chunk().map(i8::from_be_bytes)?.into()),
            code::LONG => Value::Long(self.chunk().map(i64::from_be_bytes)?),
            code::SMALL_LONG => Value::Long(self.chunk().map(i8::from_be_bytes)?.into()),
            code::FLOAT => Value::Float(self.chunk().map(f32::from_be_bytes)?),
            code::DOUBLE => Value::Double(self.chunk().map(f64::from_be_bytes)?),
            code::DECIMAL_32 => Value::Decimal32(self.chunk()?),
            code::DECIMAL_64 => Value::Decimal64(self.chunk()?),
            code::DECIMAL_128 => Value::Decimal128(self.chunk()?),
            code::CHAR => Value::Char(self.char()?),
            code::TIMESTAMP => Value::Timestamp(self.chunk().map(i64::from_be_bytes)?),
            code::UUID => Value::Uuid(self.chunk()?),
            code::BINARY_8 | code::BINARY_32 => Value::Binary(self.binary_of(code)?),
            code::STRING_8 | code::STRING_32 => Value::String(self.string_of(code)?),
            code::SYMBOL_8 | code::SYMBOL_32 => Value::Symbol(self.symbol_of(code)?),
            _ => return Err(self.error_before(Kind::UnknownConstructor(code))),
        };
        Ok(value)
    }

    /// An error at the constructor that was just read.
    pub(crate) fn error_before(&self, kind: Kind) -> DecodeError {
        DecodeError::new(kind, self.position().saturating_sub(1))
    }

    /// An error at the constructor that was read when so many bytes were left behind it.
    #[cold]
    pub(crate) fn error_behind(&self, left: usize, kind: Kind) -> DecodeError {
        DecodeError::new(kind, (self.end - left).saturating_sub(1))
    }

    pub(crate) fn char(&mut self) -> Result<char> {
        let left = self.rest.len();
        let code = self.u32()?;
        char::from_u32(code).ok_or_else(|| self.error_behind(left, Kind::NotChar))
    }
}

/// Values behind a constructor that the caller has read: one type each, others are refused.
impl<'a> Reader<'a> {
    pub(crate) fn boolean_of(&mut self, code: u8) -> Result<bool> {
        match code {
            code::TRUE => Ok(true),
            code::FALSE => Ok(false),
            code::BOOLEAN => match self.byte()? {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(self.error_before(Kind::NotBoolean)),
            },
            _ => Err(self.error_before(Kind::UnexpectedType(code))),
        }
    }

    pub(crate) fn ubyte_of(&mut self, code: u8) -> Result<u8> {
        if code == code::UBYTE { self.byte() } else { self.unexpected(code) }
    }

    pub(crate) fn ushort_of(&mut self, code: u8) -> Result<u16> {
        if code == code::USHORT {
            self.chunk().map(u16::from_be_bytes)
        } else {
            self.unexpected(code)
        }
    }

    pub(crate) fn uint_of(&mut self, code: u8) -> Result<u32> {
        match code {
            code::SMALL_UINT => self.byte().map(u32::from),
            code::UINT => self.u32(),
            code::UINT_0 => Ok(0),
            _ => self.unexpected(code),
        }
    }

    pub(crate) fn ulong_of(&mut self, code: u8) -> Result<u64> {
        match code {
            code::SMALL_ULONG => self.byte().map(u64::from),
            code::ULONG => self.chunk().map(u64::from_be_bytes),
            code::ULONG_0 => Ok(0),
            _ => self.unexpected(code),
        }
    }

    pub(crate) fn timestamp_of(&mut self, code: u8) -> Result<i64> {
        if code == code::TIMESTAMP {
            self.chunk().map(i64::from_be_bytes)
        } else {
            self.unexpected(code)
        }
    }

    pub(crate) fn binary_of(&mut self, code: u8) -> Result<&'a [u8]> {
        match code {
            code::BINARY_8 | code::BINARY_32 => self.sized(code == code::BINARY_8),
            _ => self.unexpected(code),
        }
    }

    pub(crate) fn string_of(&mut self, code: u8) -> Result<&'a str> {
        let left = self.rest.len();
        match code {
            code::STRING_8 | code::STRING_32 => {
                let bytes = self.sized(code == code::STRING_8)?;
                core::str::from_utf8(bytes).map_err(|_| self.error_behind(left, Kind::NotUtf8))
            }
            _ => self.unexpected(code),
        }
    }

    pub(crate) fn symbol_of(&mut self, code: u8) -> Result<&'a str> {
        let left = self.rest.len();
        match code {
            code::SYMBOL_8 | code::SYMBOL_32 => {
                let bytes = self.sized(code == code::SYMBOL_8)?;
                let ascii = Some(bytes).filter(|bytes| bytes.is_ascii());
                let text = ascii.and_then(|bytes| core::str::from_utf8(bytes).ok());
                text.ok_or_else(|| self.error_behind(left, Kind::NotAscii))
            }
            _ => self.unexpected(code),
        }
    }

    pub(crate) fn sized(&mut self, is_short: bool) -> Result<&'a [u8]> {
        let size = self.count(is_short)?;
        self.take(size as usize)
    }

    pub(crate) fn unexpected<T>(&self, code: u8) -> Result<T> {
        Err(self.error_before(Kind::UnexpectedType(code)))
    }
}

/// Lists, maps, arrays and described values (1.6.22 to 1.6.24).
impl<'a> Reader<'a> {
    /// The elements of a list, not looked at but for their count.
    pub(crate) fn list_body(&mut self, code: u8) -> Result<(Reader<'a>, u32)> {
        match code {
            code::LIST_0 => Ok((self.narrow(0)?, 0)),
            code::LIST_8 | code::LIST_32 => self.elements(code == code::LIST_8),
            _ => self.unexpected(code),
        }
    }

    /// The keys and values of a map, not looked at but for their count.
    pub(crate) fn map_body(&mut self, code: u8) -> Result<(Reader<'a>, u32)> {
        let at = self.position().saturating_sub(1);
        match code {
            code::MAP_8 | code::MAP_32 => {
                let (body, count) = self.elements(code == code::MAP_8)?;
                let odd = DecodeError::new(Kind::OddMap, at);
                if count % 2 == 0 { Ok((body, count)) } else { Err(odd) }
            }
            _ => self.unexpected(code),
        }
    }

    /// Size, count, and a reader of the bytes that the size covers. Each element takes a byte at
    /// least.
    fn elements(&mut self, is_short: bool) -> Result<(Reader<'a>, u32)> {
        let at = self.position().saturating_sub(1);
        let mut body = self.compound(is_short)?;
        let count = body.count(is_short)?;
        if count as usize > body.rest.len() {
            return Err(DecodeError::new(Kind::TooManyElements, at));
        }
        Ok((body, count))
    }

    /// A reader of the bytes that the size of a compound value covers, its count first.
    pub(crate) fn compound(&mut self, is_short: bool) -> Result<Reader<'a>> {
        let at = self.position().saturating_sub(1);
        let size = self.count(is_short)?;
        let count_bytes = if is_short { 1 } else { 4 };
        if size < count_bytes {
            return Err(DecodeError::new(Kind::SizeMismatch, at));
        }
        self.narrow(size as usize)
    }

    pub(crate) fn list_of(&mut self, code: u8, depth: u32) -> Result<Value<'a>> {
        let at = self.position().saturating_sub(1);
        let (mut body, count) = self.list_body(code)?;
        let elements = body.rest;
        body.count_elements(count, at)?;
        let inner = body.deeper(depth)?;
        for _ in 0..count {
            body.check(inner)?;
        }
        self.end_elements(&body)?;
        Ok(Value::List(List { count, elements }))
    }

    pub(crate) fn map_of(&mut self, code: u8, depth: u32) -> Result<Map<'a>> {
        let inner = self.deeper(depth)?;
        self.map_with_keys(code, inner, |_| true)
    }

    /// Nothing may be left behind the elements of a value, all of which were read.
    fn end_elements(&mut self, body: &Reader<'a>) -> Result<()> {
        self.rejoin(body);
        if body.is_empty() { Ok(()) } else { Err(body.error(Kind::SizeMismatch)) }
    }

    /// A map: each key has a constructor that `is_key` allows, and is there once. Its elements are
    /// inside of `inner` others.
    pub(crate) fn map_with_keys(
        &mut self,
        code: u8,
        inner: u32,
        is_key: impl Fn(u8) -> bool,
    ) -> Result<Map<'a>> {
        let at = self.position().saturating_sub(1);
        let (mut body, count) = self.map_body(code)?;
        let elements = body.rest;
        body.count_elements(count, at)?;
        let (start, mut keys) = (body.position(), Keys::default());
        for _ in 0..count / 2 {
            let rest = body.rest;
            if rest.first().is_some_and(|code| !is_key(*code)) {
                return Err(body.error(Kind::InvalidField("key")));
            }
            if !body.pass_short_ascii() {
                body.check(inner)?;
            }
            keys.add(rest.get(..rest.len() - body.rest.len()).unwrap_or_default());
            body.check(inner)?;
        }
        keys.finish(elements, count, start)?;
        self.end_elements(&body)?;
        Ok(Map { count, elements })
    }

    fn deeper(&self, depth: u32) -> Result<u32> {
        if depth < NESTING_MAX { Ok(depth + 1) } else { Err(self.error(Kind::TooDeep)) }
    }

    pub(crate) fn described_in(&mut self, depth: u32) -> Result<Described<'a>> {
        let inner = self.deeper(depth)?;
        let descriptor = self.descriptor()?;
        let code = self.byte()?;
        let content = self.rest;
        self.check_of(code, inner)?;
        let length = content.len() - self.rest.len();
        Ok(Described { descriptor, code, content: content.get(..length).unwrap_or_default() })
    }

    pub(crate) fn array_of(&mut self, code: u8, depth: u32) -> Result<Array<'a>> {
        let at = self.position().saturating_sub(1);
        let is_short = code == code::ARRAY_8;
        let mut body = self.compound(is_short)?;
        let count = body.count(is_short)?;
        let array = body.array_head(count)?;
        let inner = body.deeper(depth)?;
        if code::is_empty(array.code) {
            body.count_empty(count, at)?;
            if count > 0 {
                body.check_of(array.code, inner)?;
            }
        } else if count as usize > array.elements.len() {
            return Err(DecodeError::new(Kind::TooManyElements, at));
        } else if let Some(width) = code::free_width(array.code) {
            body.take(width.saturating_mul(count as usize))?;
        } else {
            body.count_elements(count, at)?;
            for _ in 0..count {
                body.check_of(array.code, inner)?;
            }
        }
        self.end_elements(&body)?;
        Ok(array)
    }

    /// The constructor that all elements share; one that describes a described one is refused.
    fn array_head(&mut self, count: u32) -> Result<Array<'a>> {
        let is_described = self.peek() == Some(code::DESCRIBED);
        let descriptor = if is_described { Some(self.described()?) } else { None };
        let code = self.byte()?;
        if code == code::DESCRIBED {
            return Err(self.error_before(Kind::BadDescriptor));
        }
        Ok(Array { descriptor, code, count, elements: self.rest })
    }
}
