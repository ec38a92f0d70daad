//! The `dunlin` binary.
fn main() {}
