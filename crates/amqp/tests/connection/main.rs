//! The connection, driven by scripts, alone and with the engine: the peer's frames, the engine's
//! commands and replies, and the frames for the peer. `UPDATE=1 cargo test -p dunlin-amqp` writes
//! down the results.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that finds what should not be is to panic"
)]

mod chaos;
mod fair;
mod full;
mod hostile;
mod login;
mod long_lived;
mod pair;
mod peer;
mod script;
mod seeds;
mod words;

#[test]
fn fuzz_corpus_breaks_nothing() {
    testkit::replay("amqp_connection", hostile::peer);
}

#[test]
fn scripts() {
    script::run_all("connection", script::alone);
}

#[test]
fn scripts_with_the_engine() {
    script::run_all("engine", pair::clients);
}

#[test]
fn random_peers_never_break_anything() {
    let heard: String = (0..60).map(chaos::run).collect();
    // The peers were not so senseless that nothing came of it.
    for word in ["<- transfer", " more ", " drain", "declared=", " txn=", "stolen", "unknown-id"] {
        assert!(heard.contains(word), "nobody heard {word}");
    }
}
