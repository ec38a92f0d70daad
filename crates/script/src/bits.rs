//! The library `bit`: whole numbers of 32 bits, as LuaBitOp has them.

use mlua::{Lua, MultiValue, Table};

use crate::native::{Refusal, argument, function, number};

/// Makes the table of the library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    unary(lua, &table, "tobit", |bits| bits)?;
    unary(lua, &table, "bnot", |bits| !bits)?;
    unary(lua, &table, "bswap", u32::swap_bytes)?;
    fold(lua, &table, "band", |one, other| one & other)?;
    fold(lua, &table, "bor", |one, other| one | other)?;
    fold(lua, &table, "bxor", |one, other| one ^ other)?;
    shift(lua, &table, "lshift", |bits, count| bits << count)?;
    shift(lua, &table, "rshift", |bits, count| bits >> count)?;
    shift(lua, &table, "arshift", |bits, count| (bits.cast_signed() >> count).cast_unsigned())?;
    shift(lua, &table, "rol", u32::rotate_left)?;
    shift(lua, &table, "ror", u32::rotate_right)?;
    table.raw_set("tohex", function(lua, hexadecimal)?)?;
    Ok(table)
}

fn unary(lua: &Lua, table: &Table, name: &'static str, act: fn(u32) -> u32) -> mlua::Result<()> {
    let body =
        move |lua: &Lua, arguments: &MultiValue| Ok(signed(act(bits(lua, arguments, 1, name)?)));
    table.raw_set(name, function(lua, body)?)
}

fn fold(
    lua: &Lua,
    table: &Table,
    name: &'static str,
    act: fn(u32, u32) -> u32,
) -> mlua::Result<()> {
    let body = move |lua: &Lua, arguments: &MultiValue| {
        let mut result = bits(lua, arguments, 1, name)?;
        for place in 2..=arguments.len() {
            result = act(result, bits(lua, arguments, place, name)?);
        }
        Ok(signed(result))
    };
    table.raw_set(name, function(lua, body)?)
}

fn shift(
    lua: &Lua,
    table: &Table,
    name: &'static str,
    act: fn(u32, u32) -> u32,
) -> mlua::Result<()> {
    let body = move |lua: &Lua, arguments: &MultiValue| {
        let value = bits(lua, arguments, 1, name)?;
        Ok(signed(act(value, bits(lua, arguments, 2, name)? & 31)))
    };
    table.raw_set(name, function(lua, body)?)
}

/// So many digits, in capital letters if there are fewer than none.
fn hexadecimal(lua: &Lua, arguments: &MultiValue) -> Result<String, Refusal> {
    let value = bits(lua, arguments, 1, "tohex")?;
    let count = match argument(arguments, 2) {
        Some(_) => bits(lua, arguments, 2, "tohex")?.cast_signed(),
        None => 8,
    };
    let text = if count < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let digits = usize::try_from(count.unsigned_abs()).unwrap_or(8).min(8);
    Ok(text.get(8 - digits..).unwrap_or_default().to_owned())
}

/// The lowest 32 bits of a number, which is rounded to the nearest whole one.
fn bits(lua: &Lua, arguments: &MultiValue, place: usize, name: &str) -> Result<u32, Refusal> {
    // The sum has the bits of the whole number as its lowest.
    let sum = number(lua, arguments, place, name)? + BIAS;
    Ok(sum.to_bits() as u32)
}

/// 2^52 + 2^51
const BIAS: f64 = 6_755_399_441_055_744.0;

fn signed(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}
