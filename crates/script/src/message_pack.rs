//! The library `cmsgpack`: MessagePack as lua-cmsgpack 0.4 writes and reads it.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::budget::Budget;
use crate::native::{Refusal, argument, bad_argument, bytes, function, number};

/// Makes the table of the library.
pub(crate) fn library(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let packing = budget.clone();
    table.raw_set(
        "pack",
        function(lua, move |lua, arguments| Ok(lua.create_string(pack(arguments, &packing)?)?))?,
    )?;
    let unpacking = budget.clone();
    table.raw_set(
        "unpack",
        function(lua, move |lua, arguments| {
            unpack(lua, &bytes(arguments, 1, "unpack")?, 0, 0, &unpacking)
        })?,
    )?;
    let unpacking = budget.clone();
    table.raw_set(
        "unpack_one",
        function(lua, move |lua, arguments| {
            let text = bytes(arguments, 1, "unpack_one")?;
            let offset = optional(lua, arguments, 2, "unpack_one")?;
            unpack(lua, &text, 1, offset, &unpacking)
        })?,
    )?;
    let unpacking = budget.clone();
    table.raw_set(
        "unpack_limit",
        function(lua, move |lua, arguments| {
            let text = bytes(arguments, 1, "unpack_limit")?;
            let limit = number(lua, arguments, 2, "unpack_limit")? as i64;
            let offset = optional(lua, arguments, 3, "unpack_limit")?;
            unpack(lua, &text, limit, offset, &unpacking)
        })?,
    )?;
    Ok(table)
}

fn optional(lua: &Lua, arguments: &MultiValue, place: usize, name: &str) -> Result<i64, Refusal> {
    match argument(arguments, place) {
        None | Some(Value::Nil) => Ok(0),
        Some(_) => Ok(number(lua, arguments, place, name)? as i64),
    }
}

fn pack(arguments: &MultiValue, budget: &Budget) -> Result<Vec<u8>, Refusal> {
    if arguments.is_empty() {
        return Err(bad_argument(0, "pack", "MessagePack pack needs input."));
    }
    let mut packer = Packer { budget, bytes: Vec::new() };
    for value in arguments {
        packer.value(value, 0)?;
    }
    Ok(packer.bytes)
}

struct Packer<'b> {
    budget: &'b Budget,
    bytes: Vec<u8>,
}

impl Packer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Refusal> {
        self.budget.take(16)?;
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Boolean(is) => self.bytes.push(0xc2 | u8::from(*is)),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.number(*number),
            Value::Table(table) if depth < NESTING_MAX => self.table(table, depth + 1)?,
            _ => self.bytes.push(0xc0),
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> Result<(), Refusal> {
        self.budget.take(text.len())?;
        match text.len() {
            length @ ..32 => self.bytes.push(0xa0 | length as u8),
            length @ ..0x100 => self.bytes.extend_from_slice(&[0xd9, length as u8]),
            length => self.length(length, 0xda),
        }
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// A length of 16 bits behind this mark, or one of 32 bits behind the next.
    fn length(&mut self, length: usize, mark: u8) {
        match u16::try_from(length) {
            Ok(length) => self.marked(mark, &length.to_be_bytes()),
            Err(_) => self.marked(mark + 1, &(length as u32).to_be_bytes()),
        }
    }

    fn marked(&mut self, mark: u8, bytes: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(bytes);
    }

    fn integer(&mut self, number: i64) {
        match number {
            0..=0x7f => self.bytes.push(number as u8),
            0x80..=0xff => self.marked(0xcc, &[number as u8]),
            0x100..=0xffff => self.marked(0xcd, &(number as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => self.marked(0xce, &(number as u32).to_be_bytes()),
            0x1_0000_0000.. => self.marked(0xcf, &number.to_be_bytes()),
            -32..0 => self.bytes.push(number as u8),
            -0x80..-32 => self.marked(0xd0, &[number as u8]),
            -0x8000..-0x80 => self.marked(0xd1, &(number as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => self.marked(0xd2, &(number as i32).to_be_bytes()),
            _ => self.marked(0xd3, &number.to_be_bytes()),
        }
    }

    fn number(&mut self, number: f64) {
        let whole = number as i64;
        let is_whole = whole as f64 == number && number.abs() < TWO_TO_63;
        if is_whole {
            return self.integer(whole);
        }
        let short = number as f32;
        if f64::from(short) == number {
            self.marked(0xca, &short.to_be_bytes());
        } else {
            self.marked(0xcb, &number.to_be_bytes());
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Refusal> {
        let (count, is_array) = self.shape(table)?;
        if is_array {
            self.few_or_many(count, 0x90, 0xdc);
            for place in 1..=count {
                self.value(&table.raw_get(place)?, depth)?;
            }
            return Ok(());
        }
        self.few_or_many(count, 0x80, 0xde);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.value(&key, depth)?;
            self.value(&value, depth)?;
        }
        Ok(())
    }

    fn few_or_many(&mut self, count: usize, few: u8, many: u8) {
        if count < 16 {
            self.bytes.push(few | count as u8);
        } else {
            self.length(count, many);
        }
    }

    /// How many pairs a table has, and whether their keys are all numbers from 1 to that count.
    fn shape(&self, table: &Table) -> Result<(usize, bool), Refusal> {
        let (mut count, mut largest, mut are_places) = (0, 0, true);
        for pair in table.pairs::<Value, Value>() {
            self.budget.take(0)?;
            count += 1;
            match pair?.0 {
                Value::Integer(key) if key >= 1 => largest = largest.max(key as usize),
                _ => are_places = false,
            }
        }
        Ok((count, are_places && largest == count))
    }
}

/// Values from a place on: all if neither a limit nor a place is given. Else the place behind them
/// comes first, or -1 at the end.
fn unpack(
    lua: &Lua,
    text: &[u8],
    limit: i64,
    offset: i64,
    budget: &Budget,
) -> Result<MultiValue, Refusal> {
    let length = text.len();
    if offset < 0 || limit < 0 {
        return Err(format!(
            "Invalid request to unpack with offset of {offset} and limit of {length}."
        )
        .into());
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some(rest) = text.get(start..) else {
        return Err(format!("Start offset {offset} greater than input length {length}.").into());
    };
    let is_all = limit == 0 && offset == 0;
    let limit = if is_all { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut unpacker = Unpacker { lua, rest, budget };
    let mut values = Vec::new();
    while !unpacker.rest.is_empty() && values.len() < limit {
        if values.len() == VALUES_MAX {
            return Err("too many results to unpack".into());
        }
        values.push(unpacker.value(0)?);
    }
    if !is_all {
        let end = length - unpacker.rest.len();
        let end = if unpacker.rest.is_empty() { -1.0 } else { end as f64 };
        values.insert(0, Value::Number(end));
    }
    Ok(MultiValue::from_vec(values))
}

struct Unpacker<'u> {
    lua: &'u Lua,
    rest: &'u [u8],
    budget: &'u Budget,
}

impl Unpacker<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, Refusal> {
        self.budget.take(0)?;
        let [mark] = self.array_of_bytes()?;
        Ok(match mark {
            0..=0x7f => Value::Number(f64::from(mark)),
            0x80..=0x8f => self.map(usize::from(mark & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(mark & 15), depth)?,
            0xa0..=0xbf => self.string(usize::from(mark & 31))?,
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(mark == 0xc3),
            0xca => Value::Number(f64::from(f32::from_be_bytes(self.array_of_bytes()?))),
            0xcb => Value::Number(f64::from_be_bytes(self.array_of_bytes()?)),
            0xcc..=0xd3 => Value::Number(self.integer(mark)?),
            0xe0..=0xff => Value::Number(f64::from(mark.cast_signed())),
            _ => self.long(mark, depth)?,
        })
    }

    fn integer(&mut self, mark: u8) -> Result<f64, Refusal> {
        Ok(match mark {
            0xcc => f64::from(u8::from_be_bytes(self.array_of_bytes()?)),
            0xcd => f64::from(u16::from_be_bytes(self.array_of_bytes()?)),
            0xce => f64::from(u32::from_be_bytes(self.array_of_bytes()?)),
            0xcf => u64::from_be_bytes(self.array_of_bytes()?) as f64,
            0xd0 => f64::from(i8::from_be_bytes(self.array_of_bytes()?)),
            0xd1 => f64::from(i16::from_be_bytes(self.array_of_bytes()?)),
            0xd2 => f64::from(i32::from_be_bytes(self.array_of_bytes()?)),
            _ => i64::from_be_bytes(self.array_of_bytes()?) as f64,
        })
    }

    /// Reads a value that has its length behind its mark.
    fn long(&mut self, mark: u8, depth: usize) -> Result<Value, Refusal> {
        let length = match mark {
            0xd9 => usize::from(u8::from_be_bytes(self.array_of_bytes()?)),
            0xda | 0xdc | 0xde => usize::from(u16::from_be_bytes(self.array_of_bytes()?)),
            0xdb | 0xdd | 0xdf => u32::from_be_bytes(self.array_of_bytes()?) as usize,
            _ => return Err("Bad data format in input.".into()),
        };
        match mark {
            0xdc | 0xdd => self.array(length, depth),
            0xde | 0xdf => self.map(length, depth),
            _ => self.string(length),
        }
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Refusal> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("Missing bytes in input.")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array_of_bytes<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or("Missing bytes in input.")?;
        self.rest = rest;
        Ok(*taken)
    }

    fn string(&mut self, length: usize) -> Result<Value, Refusal> {
        let lua = self.lua;
        Ok(Value::String(lua.create_string(self.take(length)?)?))
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, Refusal> {
        let table = self.new_table(depth)?;
        for place in 1..=length {
            table.raw_seti(place, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, Refusal> {
        let table = self.new_table(depth)?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err("table index is nil".into()),
                Value::Number(key) if key.is_nan() => return Err("table index is NaN".into()),
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }

    fn new_table(&self, depth: usize) -> Result<Table, Refusal> {
        if depth == UNPACKED_DEPTH_MAX {
            return Err("stack overflow (in function mp_decode_to_lua_type)".into());
        }
        Ok(self.lua.create_table()?)
    }
}

/// Tables that lie deeper in each other are packed as nil.
const NESTING_MAX: usize = 16;

/// Tables that lie deeper in each other are refused.
const UNPACKED_DEPTH_MAX: usize = 1000;

/// So many values may one call return: they lie on the stack of the machine.
const VALUES_MAX: usize = 7000;

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
