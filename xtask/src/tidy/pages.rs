//! How wide the lines of pages are.

use super::Finding;
use crate::repository::Repository;

const COLUMNS_MAX: usize = 120;

/// Lines of Markdown that are too wide. Code may be wider, and so may a lone address or picture.
pub(super) fn columns(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("", ".md") {
        let mut in_code = false;
        for (number, line) in file.lines() {
            in_code ^= line.trim_start().starts_with("```");
            let width = line.chars().count();
            if width > COLUMNS_MAX && !in_code && !is_lone_address(line) {
                findings.push(Finding::new(&file.path, number, format!("{width} columns")));
            }
        }
    }
    findings
}

/// A line without spaces, but for the title of a link or a bullet.
fn is_lone_address(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['*', '-', '!', ' ']);
    let address = line.split_once("](").map_or(line, |(_, address)| address);
    !address.contains(' ') && (address.contains("://") || line.starts_with('['))
}
