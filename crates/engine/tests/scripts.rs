//! Behaviour as scripts: each block of `testdata/*.txt` is some commands, a line `----` and their
//! results. `UPDATE=1 cargo test -p dunlin-engine --test scripts` writes the latter anew.
//!
//! The words are in `support/script.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a broken test may panic")]

mod support;

use std::path::Path;

use support::script::Script;
use testkit::scripts;

#[test]
fn scripts_come_out_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    scripts::check_all(&folder, 10, |text| {
        let mut script = Script::default();
        scripts::repeat(text, |lines| lines.iter().map(|line| script.run(line)).collect())
    });
}
