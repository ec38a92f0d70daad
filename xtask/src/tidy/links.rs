//! Links of the documents to files of the project and to headings, and paths that they name.

use std::fs;
use std::path::Path;

use super::Finding;
use crate::repository::{Repository, TextFile};

/// Folders of the project, by which a path between backticks is known as one.
const FOLDERS: [&str; 5] = ["crates/", "docs/", "fuzz/", "interop/", "xtask/"];

/// Finds every relative link of a Markdown file that leads to no file or heading. It also finds
/// every path of the project that such a file names and that does not exist.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("", ".md") {
        let folder = repository.root.join(Path::new(&file.path).parent().unwrap_or(Path::new("")));
        for (line, text) in prose(file) {
            for (target, heading) in links(text) {
                let target_path = folder.join(target);
                if !target.is_empty() && !target_path.exists() {
                    let what = format!("{target} does not exist");
                    findings.push(Finding::new(&file.path, line, what));
                } else if !heading.is_empty() && !has_heading(file, target, &target_path, heading) {
                    let what = format!("{target}#{heading} does not exist");
                    findings.push(Finding::new(&file.path, line, what));
                }
            }
            for path in paths(text).filter(|path| !repository.root.join(path).exists()) {
                findings.push(Finding::new(&file.path, line, format!("{path} does not exist")));
            }
        }
    }
    findings
}

/// The lines outside of code blocks.
fn prose(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The targets of `[text](target#heading)` that are paths.
fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next().unwrap_or_default();
        let is_path = !target.contains("://") && !target.starts_with("mailto:");
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        (is_path && !target.is_empty()).then_some((path, heading))
    })
}

/// Paths of the project between backticks, but for patterns.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        FOLDERS.iter().any(|folder| text.starts_with(folder))
            && !text.contains([' ', '*', '{', '<', '…', ':'])
            && text.bytes().all(|byte| !byte.is_ascii_uppercase() || text.contains('.'))
    };
    quoted.filter(is_path)
}

/// True if a Markdown file has a heading of that name, as hosts of repositories spell it. Of other
/// files every part is believed.
fn has_heading(file: &TextFile, target: &str, path: &Path, heading: &str) -> bool {
    let text = match target {
        "" => file.text.clone(),
        target if target.ends_with(".md") => fs::read_to_string(path).unwrap_or_default(),
        _ => return true,
    };
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| slug(line.trim_start_matches('#').trim()) == heading)
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
