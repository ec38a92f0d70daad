//! The connection, driven by scripts: what a peer sends, what the engine is asked and replies, and
//! what the peer gets. `UPDATE=1 cargo test -p dunlin-amqp` writes down what happens.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that finds what should not be is to panic"
)]

mod peer;
mod script;
mod words;

#[test]
fn scripts() {
    script::run_all("connection");
}
