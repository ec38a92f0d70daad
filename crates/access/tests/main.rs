//! The integration tests in one binary.

mod fuzz;
mod fuzz_body;
