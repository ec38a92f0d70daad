//! The library `struct`: values as bytes of C, and back.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::budget::Budget;
use crate::native::{Refusal, argument, bad_argument, bytes, function, number};

/// Makes the table of the library.
pub(crate) fn library(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let budget = budget.clone();
    table.raw_set(
        "pack",
        function(
            lua,
            move |lua, arguments| Ok(lua.create_string(pack(lua, arguments, &budget)?)?),
        )?,
    )?;
    table.raw_set("unpack", function(lua, unpack)?)?;
    table.raw_set("size", function(lua, size)?)?;
    Ok(table)
}

/// One letter of a format.
struct Item {
    letter: u8,
    size: usize,
    /// Zeros before it.
    padding: usize,
    big_endian: bool,
}

/// Reads a format.
struct Format<'f> {
    rest: &'f [u8],
    name: &'static str,
    big_endian: bool,
    align: usize,
}

impl<'f> Format<'f> {
    fn new(rest: &'f [u8], name: &'static str) -> Self {
        Self { rest, name, big_endian: false, align: 1 }
    }

    /// The next item that stands for bytes, at this place.
    fn next(&mut self, place: usize) -> Result<Option<Item>, Refusal> {
        while let Some((&letter, rest)) = self.rest.split_first() {
            self.rest = rest;
            match letter {
                0 => return Ok(None),
                b' ' => {}
                b'<' => self.big_endian = false,
                b'>' => self.big_endian = true,
                b'!' => self.set_align()?,
                _ => return self.item(letter, place).map(Some),
            }
        }
        Ok(None)
    }

    fn item(&mut self, letter: u8, place: usize) -> Result<Item, Refusal> {
        let size = self.size(letter)?;
        let padding = if size == 0 || letter == b'c' { 0 } else { self.padding(size, place) };
        Ok(Item { letter, size, padding, big_endian: self.big_endian })
    }

    /// Zeros that bring a place to the alignment of a size. Sizes that are no powers of two give
    /// what the library of C gives.
    fn padding(&self, size: usize, place: usize) -> usize {
        let size = size.min(self.align);
        (size - (place & (size - 1))) & (size - 1)
    }

    fn set_align(&mut self) -> Result<(), Refusal> {
        let align = self.number()?.unwrap_or(8);
        if !align.is_power_of_two() {
            return Err(format!("alignment {align} is not a power of 2").into());
        }
        self.align = align;
        Ok(())
    }

    fn size(&mut self, letter: u8) -> Result<usize, Refusal> {
        Ok(match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'd' | b'T' => 8,
            b's' => 0,
            b'c' => self.number()?.unwrap_or(1),
            b'i' | b'I' => match self.number()?.unwrap_or(4) {
                size if size > INTEGER_BYTES_MAX => {
                    return Err(format!(
                        "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                    )
                    .into());
                }
                size => size,
            },
            _ => {
                let reason = format!("invalid format option '{}'", char::from(letter));
                return Err(bad_argument(1, self.name, &reason));
            }
        })
    }

    fn number(&mut self) -> Result<Option<usize>, Refusal> {
        let mut number = None;
        while let Some((digit, rest)) = self.rest.split_first()
            && digit.is_ascii_digit()
        {
            self.rest = rest;
            let next = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
            if next > SIZE_MAX {
                return Err("integral size overflow".into());
            }
            number = Some(next);
        }
        Ok(number)
    }
}

fn pack(lua: &Lua, arguments: &MultiValue, budget: &Budget) -> Result<Vec<u8>, Refusal> {
    let text = bytes(arguments, 1, "pack")?;
    let mut format = Format::new(&text, "pack");
    let mut packed = Vec::new();
    let mut place = 2;
    while let Some(item) = format.next(packed.len())? {
        budget.take(item.padding + 8)?;
        packed.resize(packed.len() + item.padding, 0);
        match item.letter {
            b'x' => packed.push(0),
            b'c' | b's' => pack_text(arguments, place, &item, budget, &mut packed)?,
            _ => {
                let number = packed_number(lua, arguments, place)?;
                packed.extend_from_slice(&number_bytes(number, &item));
            }
        }
        place += usize::from(item.letter != b'x');
    }
    Ok(packed)
}

/// The first missing argument is nil there, later ones are none.
fn packed_number(lua: &Lua, arguments: &MultiValue, place: usize) -> Result<f64, Refusal> {
    if place == arguments.len() + 1 {
        return Err(bad_argument(place, "pack", "number expected, got nil"));
    }
    number(lua, arguments, place, "pack")
}

fn pack_text(
    arguments: &MultiValue,
    place: usize,
    item: &Item,
    budget: &Budget,
    packed: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let text = bytes(arguments, place, "pack")?;
    let size = if item.size == 0 { text.len() } else { item.size };
    let part =
        text.get(..size).ok_or_else(|| bad_argument(place + 1, "pack", "string too short"))?;
    budget.take(size)?;
    packed.extend_from_slice(part);
    if item.letter == b's' {
        packed.push(0);
    }
    Ok(())
}

fn number_bytes(number: f64, item: &Item) -> Vec<u8> {
    let mut bytes = match item.letter {
        b'f' => (number as f32).to_le_bytes().to_vec(),
        b'd' => number.to_le_bytes().to_vec(),
        _ => integer_bytes(number, item.size),
    };
    if item.big_endian {
        bytes.reverse();
    }
    bytes
}

fn integer_bytes(number: f64, size: usize) -> Vec<u8> {
    let value = if number < 0.0 { (number as i64).cast_unsigned() } else { number as u64 };
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(size, 0);
    bytes
}

fn unpack(lua: &Lua, arguments: &MultiValue) -> Result<MultiValue, Refusal> {
    let text = bytes(arguments, 1, "unpack")?;
    let data = bytes(arguments, 2, "unpack")?;
    let mut place = match argument(arguments, 3) {
        None | Some(Value::Nil) => 0,
        Some(_) => offset(number(lua, arguments, 3, "unpack")?)?,
    };
    let mut format = Format::new(&text, "unpack");
    let mut values = Vec::new();
    while let Some(item) = format.next(place)? {
        place += item.padding;
        let rest = data.get(place..).filter(|rest| rest.len() >= item.size);
        let rest = rest.ok_or_else(too_short)?;
        place += unpack_item(lua, &item, rest, &mut values)?;
        if values.len() > VALUES_MAX {
            return Err("too many results to unpack".into());
        }
    }
    values.push(Value::Number((place + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

fn too_short() -> Refusal {
    bad_argument(2, "unpack", "data string too short")
}

fn offset(place: f64) -> Result<usize, Refusal> {
    if place < 1.0 {
        return Err(bad_argument(3, "unpack", "offset must be 1 or greater"));
    }
    Ok(place as usize - 1)
}

/// Reads one item, and says how many bytes it has.
fn unpack_item(
    lua: &Lua,
    item: &Item,
    rest: &[u8],
    values: &mut Vec<Value>,
) -> Result<usize, Refusal> {
    let text = match item.letter {
        b'x' => return Ok(1),
        b'c' if item.size == 0 => rest.get(..counted(values)?).ok_or_else(too_short)?,
        b'c' => rest.get(..item.size).ok_or_else(too_short)?,
        b's' => {
            let end = rest.iter().position(|byte| *byte == 0).ok_or("unfinished string in data")?;
            rest.get(..end).ok_or_else(too_short)?
        }
        _ => {
            let mut bytes = rest.get(..item.size).ok_or_else(too_short)?.to_vec();
            if item.big_endian {
                bytes.reverse();
            }
            values.push(Value::Number(number_of(&bytes, item.letter)));
            return Ok(item.size);
        }
    };
    values.push(Value::String(lua.create_string(text)?));
    Ok(text.len() + usize::from(item.letter == b's'))
}

/// The count that stands before a text, and is no value of its own.
fn counted(values: &mut Vec<Value>) -> Result<usize, Refusal> {
    match values.pop() {
        Some(Value::Number(count)) => Ok(count as usize),
        _ => Err("format 'c0' needs a previous size".into()),
    }
}

/// The number that bytes are, the lowest first.
fn number_of(bytes: &[u8], letter: u8) -> f64 {
    let mut low = [0; 8];
    for (to, from) in low.iter_mut().zip(bytes) {
        *to = *from;
    }
    match letter {
        b'd' => f64::from_le_bytes(low),
        b'f' => f64::from(f32::from_bits(u64::from_le_bytes(low) as u32)),
        _ if letter.is_ascii_lowercase() => {
            let unused = 64 - 8 * bytes.len().clamp(1, 8);
            ((u64::from_le_bytes(low) << unused).cast_signed() >> unused) as f64
        }
        _ => u64::from_le_bytes(low) as f64,
    }
}

fn size(_: &Lua, arguments: &MultiValue) -> Result<f64, Refusal> {
    let text = bytes(arguments, 1, "size")?;
    let mut format = Format::new(&text, "size");
    let mut place = 0;
    while let Some(item) = format.next(place)? {
        let unsized_item = match (item.letter, item.size) {
            (b's', _) => Some("s"),
            (b'c', 0) => Some("c0"),
            _ => None,
        };
        if let Some(letter) = unsized_item {
            return Err(bad_argument(1, "size", &format!("option '{letter}' has no fixed size")));
        }
        place += item.padding + item.size;
    }
    Ok(place as f64)
}

/// The widest integer.
const INTEGER_BYTES_MAX: usize = 32;

/// Larger numbers in a format are refused, as in Redis.
const SIZE_MAX: usize = i32::MAX as usize;

/// So many values may one call return: they lie on the stack of the machine.
const VALUES_MAX: usize = 7000;
