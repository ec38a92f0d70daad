//! Links of the documents to files of the project.

use std::path::Path;

use super::Finding;
use crate::house::{House, TextFile};

/// Every relative link of a Markdown file that leads to no file.
pub(super) fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in house.under("", ".md") {
        for (line, target) in links(file) {
            let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
            if !house.root.join(folder).join(target).exists() {
                findings.push(Finding::new(&file.path, line, format!("{target} does not exist")));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` outside of code blocks that are paths.
fn links(file: &TextFile) -> Vec<(usize, &str)> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (number, line) in file.lines() {
        in_code ^= line.trim_start().starts_with("```");
        for rest in line.split("](").skip(1).filter(|_| !in_code) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target));
            }
        }
    }
    found
}
