//! The fields of a composite type, one after another (1.4).
//!
//! A field that is null or beyond the end of the list is absent. More fields than the type has
//! are refused: the list would be of a type that is not known.

use alloc::string::String;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::limits::SYMBOLS_MAX;
use crate::types::reader::{Reader, Result};
use crate::types::{Array, Fields, Symbols, Value, code};

/// The rest of the list of fields.
pub(crate) struct ListReader<'a> {
    reader: Reader<'a>,
    left: u32,
    /// The offset of the latest field.
    at: usize,
}

impl<'a> ListReader<'a> {
    /// Takes a list off `reader`.
    pub(crate) fn new(reader: &mut Reader<'a>) -> Result<ListReader<'a>> {
        let at = reader.position();
        let code = reader.byte()?;
        let (reader, left) = reader.list_body(code)?;
        Ok(ListReader { reader, left, at })
    }

    /// Takes a described list off `reader`, which has to be a `descriptor`.
    pub(crate) fn composite(reader: &mut Reader<'a>, descriptor: u64) -> Result<ListReader<'a>> {
        let unknown = reader.error(Kind::UnknownDescriptor);
        if reader.composite()? != descriptor {
            return Err(unknown);
        }
        ListReader::new(reader)
    }

    /// Goes on with `reader`, of which it was taken. Fails when there are more fields, or bytes
    /// that belong to none.
    pub(crate) fn finish(self, reader: &mut Reader<'a>) -> Result<()> {
        reader.rejoin(&self.reader);
        if self.left > 0 {
            return Err(self.reader.error(Kind::TooManyFields));
        }
        if self.reader.is_empty() { Ok(()) } else { Err(self.reader.error(Kind::SizeMismatch)) }
    }

    /// An error at the field that was asked for last.
    pub(crate) fn error(&self, kind: Kind) -> DecodeError {
        DecodeError::new(kind, self.at)
    }

    /// The error that the field that was asked for last has a value that is not allowed.
    pub(crate) fn invalid(&self, name: &'static str) -> DecodeError {
        self.error(Kind::InvalidField(name))
    }

    /// The value of a mandatory field.
    pub(crate) fn need<T>(&self, field: Option<T>, name: &'static str) -> Result<T> {
        field.ok_or(self.error(Kind::MissingField(name)))
    }

    /// Reads the next field by `read`, which is given its constructor, unless it is absent.
    pub(crate) fn field<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>, u8) -> Result<T>,
    ) -> Result<Option<T>> {
        self.at = self.reader.position();
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        match self.reader.byte()? {
            code::NULL => Ok(None),
            code => read(&mut self.reader, code).map(Some),
        }
    }

    /// Reads the next field, a described value, by `read`, unless it is absent.
    pub(crate) fn described<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.at = self.reader.position();
        if self.left > 0 && self.reader.peek() == Some(code::DESCRIBED) {
            self.left -= 1;
            return read(&mut self.reader).map(Some);
        }
        self.field(|reader, code| reader.unexpected(code))
    }
}

/// One type each.
impl<'a> ListReader<'a> {
    pub(crate) fn boolean(&mut self) -> Result<Option<bool>> {
        self.field(Reader::boolean_of)
    }

    /// A boolean with the default false.
    pub(crate) fn flag(&mut self) -> Result<bool> {
        self.boolean().map(Option::unwrap_or_default)
    }

    pub(crate) fn ubyte(&mut self) -> Result<Option<u8>> {
        self.field(Reader::ubyte_of)
    }

    pub(crate) fn ushort(&mut self) -> Result<Option<u16>> {
        self.field(Reader::ushort_of)
    }

    pub(crate) fn uint(&mut self) -> Result<Option<u32>> {
        self.field(Reader::uint_of)
    }

    pub(crate) fn ulong(&mut self) -> Result<Option<u64>> {
        self.field(Reader::ulong_of)
    }

    pub(crate) fn timestamp(&mut self) -> Result<Option<i64>> {
        self.field(Reader::timestamp_of)
    }

    pub(crate) fn binary(&mut self) -> Result<Option<&'a [u8]>> {
        self.field(Reader::binary_of)
    }

    pub(crate) fn str(&mut self) -> Result<Option<&'a str>> {
        self.field(Reader::string_of)
    }

    pub(crate) fn string(&mut self) -> Result<Option<String>> {
        Ok(self.str()?.map(String::from))
    }

    pub(crate) fn symbol(&mut self) -> Result<Option<&'a str>> {
        self.field(Reader::symbol_of)
    }

    /// The value of the field at `place`, from the next one on. Fields before it are not looked at.
    pub(crate) fn value_at(mut self, place: usize) -> Result<Option<Value<'a>>> {
        if place >= self.left as usize {
            return Ok(None);
        }
        for _ in 0..place {
            self.reader.leap()?;
            self.left -= 1;
        }
        self.value()
    }

    /// Passes over a string.
    pub(crate) fn check_str(&mut self) -> Result<()> {
        self.field(Reader::check_string_of).map(drop)
    }

    /// Passes over a symbol.
    pub(crate) fn check_symbol(&mut self) -> Result<()> {
        self.field(Reader::check_symbol_of).map(drop)
    }

    pub(crate) fn value(&mut self) -> Result<Option<Value<'a>>> {
        self.field(|reader, code| reader.value_of(code, 0))
    }

    /// A map with symbols as keys; absent and empty are the same.
    pub(crate) fn fields(&mut self) -> Result<Fields> {
        self.field(|reader, code| reader.fields_of(code)).map(Option::unwrap_or_default)
    }

    /// One symbol or an array of them (1.4, "multiple").
    pub(crate) fn symbols(&mut self, name: &'static str) -> Result<Symbols> {
        match self.value()? {
            None => Ok(Symbols::default()),
            Some(Value::Symbol(symbol)) => Ok(Symbols::from([symbol])),
            Some(Value::Array(array)) => self.array_of_symbols(array, name),
            Some(_) => Err(self.invalid(name)),
        }
    }

    fn array_of_symbols(&self, array: Array<'_>, name: &'static str) -> Result<Symbols> {
        if array.count > SYMBOLS_MAX {
            return Err(self.error(Kind::TooManyElements));
        }
        let symbol = |value| match value {
            Value::Symbol(symbol) => Some(symbol),
            _ => None,
        };
        if array.iter().any(|value| symbol(value).is_none()) {
            return Err(self.invalid(name));
        }
        Ok(array.iter().filter_map(symbol).collect())
    }
}
