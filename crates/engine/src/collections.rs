//! Containers that the parts share.

pub(crate) mod order_set;
pub(crate) mod packed_tree;
pub(crate) mod pages;
pub(crate) mod pattern_tree;
pub(crate) mod short_bytes;
pub(crate) mod slab;
