//! Files of integration tests: each is a module of its crate's `tests/main.rs`, or a binary of its
//! own that the manifest names. Cargo looks for no others there, so a forgotten one would not run.

use super::Finding;
use crate::repository::Repository;

/// Finds the test files that are neither, in crates that keep their tests in one binary.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests = repository.under("crates/", "/Cargo.toml");
    for manifest in manifests.filter(|manifest| manifest.text.contains("autotests = false")) {
        let folder = manifest.path.replace("Cargo.toml", "tests/");
        let main = format!("{folder}main.rs");
        let modules = repository.files.iter().find(|file| file.path == main);
        for file in repository.under(&folder, ".rs").filter(|file| file.path != main) {
            let name = file.path.trim_start_matches(&folder).trim_end_matches(".rs");
            let name = name.trim_end_matches("/mod").trim_end_matches("/main");
            let is_module = modules.is_some_and(|modules| has_module(&modules.text, name));
            let is_binary = manifest.text.contains(&format!("name = \"{name}\""));
            if !name.contains('/') && !is_module && !is_binary {
                findings.push(Finding::new(&file.path, 0, format!("no module of {main}")));
            }
        }
    }
    findings
}

fn has_module(text: &str, name: &str) -> bool {
    text.lines().any(|line| line == format!("mod {name};"))
}
