//! The integration tests in one binary: each binary links the whole crate anew.

mod errors;
mod fuzz;
mod fuzz_body;
mod laws;
mod matching;
mod support;
