//! One Rust file taken apart as style guides count: production and test lines, functions, comments.
//!
//! It needs no parser, for rustfmt's layout is enough: a function ends with the first `}` at the
//! indent at which it began.

use crate::repository::TextFile;
use crate::tidy::words::is_leftover;

/// Counts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// Lines that are not tests.
    pub(crate) prod: usize,
    /// Lines of tests, inline ones as well.
    pub(crate) test: usize,
    /// Production lines that are neither blank nor comments.
    pub(crate) code: usize,
    /// Production lines that are comments.
    pub(crate) comments: usize,
    /// Production functions that contain no other.
    pub(crate) functions: Vec<Function>,
    /// Public items, and how many of them have a doc comment.
    pub(crate) public: (usize, usize),
    /// `.unwrap()` and `.expect(`.
    pub(crate) unwraps: usize,
    /// Assertions, debug ones included.
    pub(crate) asserts: usize,
    /// Production lines of more than 100 columns.
    pub(crate) wide: usize,
    /// Notes for later, with an issue or without.
    pub(crate) leftovers: usize,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// How many lines it has, its signature included.
    pub(crate) lines: usize,
}

impl Source {
    /// Takes a file apart.
    pub(crate) fn of(file: &TextFile) -> Source {
        let lines: Vec<&str> = file.text.lines().collect();
        if is_test_file(&file.path) {
            return Source { test: lines.len(), ..Source::default() };
        }
        let prod = without_tests(&lines);
        let mut source = Source {
            prod: prod.len(),
            test: lines.len() - prod.len(),
            functions: functions(&prod),
            public: public_items(&prod),
            ..Source::default()
        };
        prod.iter().for_each(|(_, line)| source.count(line));
        source
    }

    fn count(&mut self, line: &str) {
        let trimmed = line.trim_start();
        self.wide += usize::from(line.chars().count() > 100);
        self.leftovers += usize::from(is_leftover(line));
        if trimmed.is_empty() {
            return;
        }
        if trimmed.starts_with("//") {
            self.comments += 1;
            return;
        }
        self.code += 1;
        self.unwraps += trimmed.matches(".unwrap()").count() + trimmed.matches(".expect(").count();
        let asserts = ["assert!(", "assert_eq!(", "assert_ne!(", "unreachable!(", "panic!("];
        self.asserts += asserts.iter().map(|word| trimmed.matches(word).count()).sum::<usize>();
    }
}

fn is_test_file(path: &str) -> bool {
    let folders = ["/tests/", "/benches/", "/examples/", "/fuzz/"];
    let in_folder = folders.iter().any(|folder| path.contains(folder));
    in_folder || path.ends_with("tests.rs") || path.ends_with("test.rs")
}

/// The numbered lines without `#[cfg(test)] mod … { … }` and `#[cfg(test)] mod …;`.
fn without_tests<'a>(lines: &[&'a str]) -> Vec<(usize, &'a str)> {
    let mut prod = Vec::new();
    let mut numbered = (1..).zip(lines.iter().copied());
    while let Some((number, line)) = numbered.next() {
        if line.trim() != "#[cfg(test)]" {
            prod.push((number, line));
            continue;
        }
        let end = format!("{}}}", indent(line));
        let mut item = numbered.by_ref().skip_while(|(_, line)| line.trim().starts_with("#["));
        let begins_block = item.next().is_some_and(|(_, line)| line.ends_with('{'));
        if begins_block {
            numbered.by_ref().find(|(_, line)| *line == end);
        }
    }
    prod
}

fn functions(prod: &[(usize, &str)]) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, &(line, text)) in prod.iter().enumerate() {
        let (Some(name), Some(rest)) = (function_name(text), prod.get(index..)) else { continue };
        let Some(lines) = length(rest) else { continue };
        let mut inside = rest.iter().take(lines).skip(1);
        if !inside.any(|(_, text)| function_name(text).is_some()) {
            found.push(Function { name: name.to_owned(), line, lines });
        }
    }
    found
}

/// How many lines the function has that begins with the first of `lines`; none for a declaration.
fn length(lines: &[(usize, &str)]) -> Option<usize> {
    let (_, first) = lines.first()?;
    let end = format!("{}}}", indent(first));
    let opening = lines.iter().position(|(_, text)| text.ends_with(['{', '}', ';']))?;
    let (_, text) = lines.get(opening)?;
    if text.ends_with(';') {
        return None;
    }
    if text.ends_with('}') {
        return Some(opening + 1);
    }
    let body = lines.iter().position(|(_, text)| *text == end)?;
    Some(body + 1)
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = visibility(line.trim_start()).unwrap_or(line.trim_start());
    for word in ["const ", "async ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The text behind `pub` or `pub(…)`.
fn visibility(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("pub")?;
    match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(") ").map(|(_, rest)| rest),
        None => rest.strip_prefix(' '),
    }
}

/// Items with plain `pub`, and how many of them have a doc comment above their attributes.
fn public_items(prod: &[(usize, &str)]) -> (usize, usize) {
    let kinds = ["struct ", "enum ", "trait ", "type ", "mod "];
    let (mut items, mut documented) = (0, 0);
    for (index, (_, line)) in prod.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
        if function_name(rest).is_none() && !kinds.iter().any(|kind| rest.starts_with(kind)) {
            continue;
        }
        items += 1;
        let mut above = prod.iter().take(index).rev().map(|(_, line)| line.trim_start());
        let first = above.find(|line| !line.starts_with("#[") && !line.ends_with(")]"));
        documented += usize::from(first.is_some_and(|line| line.starts_with("///")));
    }
    (items, documented)
}

fn indent(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::of(&TextFile { path: path.to_owned(), text: text.to_owned() })
    }

    const TEXT: &str = r#"//! A file.

/// Documented.
#[derive(Debug)]
pub struct A;

pub enum B {}

impl A {
    /// Documented.
    pub const fn short(&self) -> u8 { 1 }

    fn outer(
        &self,
    ) -> u8 {
        fn inner() {
            x.unwrap();
        }
        assert!(true, "one");
        y.expect("two")
    }
}

trait T {
    fn declared(&self);
}

#[cfg(test)]
mod tests {
    fn test() {
        assert_eq!(1, 1);
    }
}
"#;

    #[test]
    fn tests_are_not_production() {
        let counted = source("crates/x/src/x.rs", TEXT);
        assert_eq!((counted.prod, counted.test), (27, 6));
        assert_eq!(source("crates/x/tests/x.rs", TEXT).test, 33);
        assert_eq!(source("crates/x/src/x_test.rs", TEXT).prod, 0);
    }

    #[test]
    fn outer_test_module_counts_its_declaration() {
        let text = "#[cfg(test)]\n#[path = \"x_test.rs\"]\nmod tests;\n\nfn a() {}\n";
        let counted = source("a.rs", text);
        assert_eq!((counted.prod, counted.test, counted.functions.len()), (2, 3, 1));
    }

    #[test]
    fn leaf_functions_are_measured() {
        let names: Vec<_> = source("x.rs", TEXT)
            .functions
            .into_iter()
            .map(|function| (function.name, function.line, function.lines))
            .collect();
        assert_eq!(names, [("short".to_owned(), 11, 1), ("inner".to_owned(), 16, 3)]);
    }

    #[test]
    fn documents_unwraps_and_asserts_are_counted() {
        let counted = source("x.rs", TEXT);
        assert_eq!(counted.public, (3, 2));
        assert_eq!((counted.unwraps, counted.asserts, counted.comments), (2, 1, 3));
    }
}
