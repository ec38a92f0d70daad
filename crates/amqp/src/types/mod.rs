//! The type system (part 1): values as they lie in the bytes, and lists, maps and arrays of them.
//!
//! A [`Value`] borrows. Everything inside of it is well formed: sizes, counts, UTF-8 and nesting
//! were checked when it was decoded, so walking it cannot fail.

pub(crate) mod code;
mod compound;
pub(crate) mod descriptor;
mod fields;
pub(crate) mod keys;
pub(crate) mod list_reader;
mod pass;
pub(crate) mod reader;
mod symbols;
mod value;

pub use compound::{Array, Described, List, Map};
pub use descriptor::Descriptor;
pub use fields::Fields;
pub use symbols::Symbols;
pub use value::Value;
