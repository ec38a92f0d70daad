//! The engine consists of parts: commands drive them, and no part knows the whole.

use super::Finding;
use super::words::code_of;
use crate::metrics::structure::circle_of;
use crate::repository::{Repository, TextFile};

const ENGINE: &str = "crates/engine/src/";

/// Files that may hold methods of the whole engine, and import it.
fn knows_the_whole(file: &TextFile) -> bool {
    let path = file.path.strip_prefix(ENGINE).unwrap_or_default();
    let is_root = ["engine.rs", "engine_test.rs", "consequences.rs", "lib.rs"].contains(&path);
    is_root || path.starts_with("commands")
}

/// Methods of `Engine` are in `engine.rs`, `consequences.rs` and `commands/`; no other file of the
/// engine imports it or its commands. No files of the engine import each other in a circle.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under(ENGINE, ".rs").filter(|file| !knows_the_whole(file)) {
        for (number, line) in file.lines() {
            let code = code_of(line);
            if code.starts_with("impl Engine ") {
                findings.push(Finding::new(&file.path, number, "impl Engine belongs to commands/"));
            }
            let whole = ["crate::engine::", "crate::commands::", "crate::Engine"];
            if whole.iter().any(|path| code.contains(path) && !code.contains("EngineOptions")) {
                let what = "a part takes other parts as arguments, not the engine";
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    let circle = circle_of(repository);
    if !circle.is_empty() {
        let what = format!("imports form a circle: {}", circle.join(", "));
        findings.push(Finding::new(ENGINE, 0, what));
    }
    findings
}
