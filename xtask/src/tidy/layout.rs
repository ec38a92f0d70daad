//! Line widths, line ends, and how long files and functions are.

use super::Finding;
use crate::metrics::source::Source;
use crate::repository::{Repository, TextFile};

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 1000;
const FUNCTION_LINES_MAX: usize = 70;
/// A tab is as wide as gofmt users see it.
const TAB_COLUMNS: usize = 4;

/// Lines of code that are too wide; those with an address cannot be broken. Prose may flow.
pub(super) fn columns(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_code = |file: &&TextFile| is_written_by_hand(file) && !file.path.ends_with(".md");
    for file in repository.files.iter().filter(is_code) {
        for (number, line) in file.lines().filter(|(_, line)| !line.contains("://")) {
            let width: usize = line.chars().map(|c| if c == '\t' { TAB_COLUMNS } else { 1 }).sum();
            if width > COLUMNS_MAX {
                findings.push(Finding::new(&file.path, number, format!("{width} columns")));
            }
        }
    }
    findings
}

/// Spaces at the end of a line, and files that do not end with a line end.
pub(super) fn line_ends(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| is_written_by_hand(file)) {
        for (number, line) in file.lines().filter(|(_, line)| line.ends_with([' ', '\t', '\r'])) {
            findings.push(Finding::new(
                &file.path,
                number,
                format!("ends with {:?}", line.chars().last()),
            ));
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            findings.push(Finding::new(&file.path, 0, "the last line has no line end"));
        }
    }
    findings
}

/// Files and functions that one cannot see at once. `@generated` files are exempt.
pub(super) fn lengths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("", ".rs").filter(|file| !file.text.contains("@generated")) {
        let source = Source::of(file);
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            findings.push(Finding::new(&file.path, 0, format!("{lines} lines: split it by ideas")));
        }
        for function in source.functions.iter().filter(|f| f.lines > FUNCTION_LINES_MAX) {
            let what = format!("{} has {} lines", function.name, function.lines);
            findings.push(Finding::new(&file.path, function.line, what));
        }
    }
    findings
}

fn is_written_by_hand(file: &TextFile) -> bool {
    let extensions = [".rs", ".md", ".toml", ".py", ".go", ".js", ".sh", "/run"];
    extensions.iter().any(|extension| file.path.ends_with(extension))
}
