//! The shape of the last commits: scope, body, size.

use crate::Result;
use crate::repository::{Repository, git};

/// Marks the beginning of a commit in the log that is read.
const MARK: char = '\u{1}';
const COMMITS_MAX: &str = "-400";

/// Counts of the last commits that are no merges.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Commits {
    count: usize,
    with_scope: usize,
    with_body: usize,
    /// Inserted and deleted lines of each.
    lines: Vec<usize>,
}

impl Commits {
    /// Reads the log of the project.
    pub(super) fn read(repository: &Repository) -> Result<Commits> {
        let format = format!("--format={MARK}%s%n%b{MARK}");
        let log = ["log", COMMITS_MAX, "--no-merges", "--shortstat", &format];
        let output = git(&repository.root).args(log).output()?;
        Ok(Commits::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Prints A11.
    pub(super) fn print(&self) {
        let percent = |part: usize| part * 100 / self.count.max(1);
        println!(
            "A11 commits {}: scope {} %, body {} %, median {} lines (75, 40, at most 40)",
            self.count,
            percent(self.with_scope),
            percent(self.with_body),
            super::quantile(&self.lines, 50)
        );
    }

    /// Each commit is: mark, subject, body, mark, statistics.
    fn parse(log: &str) -> Commits {
        let mut commits = Commits::default();
        let mut parts = log.split(MARK).skip(1);
        while let (Some(message), Some(statistics)) = (parts.next(), parts.next()) {
            let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
            commits.count += 1;
            commits.with_scope += usize::from(has_scope(subject));
            commits.with_body += usize::from(body.lines().any(is_prose));
            commits.lines.push(changed_lines(statistics));
        }
        commits.lines.sort_unstable();
        commits
    }
}

fn has_scope(subject: &str) -> bool {
    let is_scope = |c: char| c.is_alphanumeric() || "_/.-*, ".contains(c);
    subject.split_once(": ").is_some_and(|(scope, _)| {
        !scope.is_empty() && scope.len() <= 40 && scope.chars().all(is_scope)
    })
}

/// Not blank, and not a trailer such as `Signed-off-by: …`.
fn is_prose(line: &str) -> bool {
    let is_trailer = line.split_once(": ").is_some_and(|(key, _)| key.ends_with("-by"));
    !line.trim().is_empty() && !is_trailer
}

fn changed_lines(statistics: &str) -> usize {
    let changes =
        statistics.split(", ").filter(|part| part.contains("(+)") || part.contains("(-)"));
    changes.filter_map(|part| part.split(' ').next()?.parse::<usize>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_log_is_counted() {
        let log = concat!(
            "\u{1}engine: keep order\nBecause.\n\u{1}\n\n",
            " 2 files changed, 10 insertions(+), 3 deletions(-)\n",
            "\u{1}Fix\nSigned-off-by: a\n\u{1}\n 1 file changed, 1 deletion(-)\n",
        );
        let expected = Commits { count: 2, with_scope: 1, with_body: 1, lines: vec![1, 13] };
        assert_eq!(Commits::parse(log), expected);
    }
}
