//! Behaviour as scripts: each block of `testdata/*.txt` is some commands, a line `----` and their
//! results. `UPDATE=1 cargo test -p dunlin-engine scripts` writes the latter anew.
//!
//! The words are in `support/script.rs`.

use std::path::Path;

use testkit::scripts;

use crate::support::script::Script;

#[test]
fn scripts_come_out_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    scripts::check_all(&folder, 10, |text| {
        let mut script = Script::default();
        scripts::repeat(text, |lines| lines.iter().map(|line| script.run(line)).collect())
    });
}
