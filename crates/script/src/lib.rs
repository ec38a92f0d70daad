//! Scripts of the Redis protocol: [`Luau`] runs them, in the language that `EVAL` of Redis 7 takes.
//!
//! It knows no queue, no socket and no log. A script gives commands through [`resp::ScriptHost`],
//! and its value goes back as a [`model::ScriptValue`]. One virtual machine of Luau runs all
//! scripts, one at a time; no script can change what a later one sees. A script that exceeds one of
//! the [`Limits`] ends with an error, and the next one runs in a new machine.
//!
//! Luau is Lua 5.1 with additions. The libraries `cjson`, `cmsgpack`, `struct` and `bit` are
//! written here over the values of mlua: they are small, and scripts depend on their quirks.
//!
//! The process must unwind panics: the errors of a script pass through frames of this crate.
//!
//! # Differences from Redis 7.0.15
//!
//! * `..` writes a number with 17 digits instead of 14 if it has a fraction that needs them, and
//!   writes whole numbers from 1e14 to 1e21 in full. Numbers that string functions take for
//!   subjects are written likewise. `tostring`, `string.format` and `table.concat` write 14 digits.
//! * Messages of the compiler, of operators and of some arguments are those of Luau.
//! * Functions with `...` have no table `arg`.
//! * `\x41` and `\u{41}` in a string are escapes, as in Lua 5.2 and later. `0b1` and `1_000` are
//!   numbers.
//! * `#` obeys `__len` of a table.
//! * Tables are traversed in another order.
//! * Settings of `cjson` end with the script that makes them. Redis keeps them.
//! * `collectgarbage` collects nothing.
//! * Text for people and long numbers go as bytes, also in RESP3.
//! * `redis.acl_check_cmd` finds each command allowed. `string.dump` refuses.
//! * Tables in a value that a script returns may lie 1000 deep in each other.
//! * A search for a set of bytes is refused if pattern times subject exceeds 30 million.
//! * `os.clock` and `table.unpack` exist.

mod bits;
mod budget;
mod host;
mod json;
mod limits;
mod luau;
mod machine;
mod message_pack;
mod native;
mod number;
mod random;
mod redis;
mod shebang;
mod structs;
mod text;
mod values;

pub use limits::{DEPTH_MAX, LOADED_BYTES_MAX, Limits, SOURCE_BYTES_MAX};
pub use luau::Luau;
