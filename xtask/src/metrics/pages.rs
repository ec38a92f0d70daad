//! The figures of the pages: words of Markdown, and how wide its lines are.

use super::quantile;
use crate::repository::Repository;

/// Words and line widths of all Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    words: usize,
    /// Of each line with text, in order.
    columns: Vec<usize>,
}

impl Pages {
    pub(super) fn of(repository: &Repository) -> Pages {
        let mut pages = Pages::default();
        for file in repository.under("", ".md") {
            pages.words += file.text.split_whitespace().filter(|text| is_word(text)).count();
            let widths = file.text.lines().map(|line| line.chars().count());
            pages.columns.extend(widths.filter(|width| *width > 0));
        }
        pages.columns.sort_unstable();
        pages
    }

    pub(super) fn print(&self) {
        println!(
            "Markdown words {} (at most 45,000), 90th percentile of columns {} (at most 120)",
            self.words,
            quantile(&self.columns, 90)
        );
    }
}

/// Bars of tables, dashes and bullets are no words.
fn is_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::TextFile;

    #[test]
    fn pages_count_words_and_columns() {
        let text = "# Two words\n\n| a | b |\n|--:|---|\n* one – four\n".to_owned();
        let file = |path: &str| TextFile { path: path.to_owned(), text: text.clone() };
        let repository =
            Repository { root: "/".into(), files: vec![file("docs/a.md"), file("src/a.rs")] };
        let columns = vec![9, 9, 11, 12];
        assert_eq!(Pages::of(&repository), Pages { words: 6, columns });
    }
}
