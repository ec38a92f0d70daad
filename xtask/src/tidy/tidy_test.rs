//! The project is tidy, and each rule finds its faults.

use std::fs;

use super::*;
use crate::repository::TextFile;

#[test]
fn repository_is_tidy() {
    let repository = Repository::read().expect("a git checkout");
    assert!(repository.files.len() > 50, "few files: {}", repository.files.len());
    let tally = run(&repository);
    assert_eq!(tally.failed, 0, "see the findings above");
}

/// The findings of `rule` in one file.
fn find(rule: fn(&Repository) -> Vec<Finding>, path: &str, text: &str) -> Vec<(usize, String)> {
    let file = TextFile { path: path.to_owned(), text: text.to_owned() };
    let repository = Repository { root: std::env::temp_dir(), files: vec![file] };
    rule(&repository).into_iter().map(|finding| (finding.line, finding.what)).collect()
}

fn lines(rule: fn(&Repository) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
    find(rule, path, text).into_iter().map(|(line, _)| line).collect()
}

#[test]
fn edge_outside_table_is_found() {
    let manifest = "[dependencies]\ndunlin-model.workspace = true\ndunlin-disk = { path = \"x\" }\n\
                    [dev-dependencies]\ndunlin-sim.workspace = true\n";
    assert_eq!(
        find(edges::check, "crates/engine/Cargo.toml", manifest),
        [(3, "engine may not import disk".to_owned())]
    );
    assert_eq!(lines(edges::check, "crates/server/Cargo.toml", manifest), Vec::<usize>::new());
    assert_eq!(
        find(edges::check, "crates/manager/Cargo.toml", manifest),
        [(0, "manager is not in the table of edges".to_owned())]
    );
}

#[test]
fn words_of_other_crates_are_found() {
    let text = "//! A Tube.\nstruct Queue;\n";
    assert_eq!(lines(words::protocol_words, "crates/engine/src/x.rs", text), [1]);
    assert_eq!(lines(words::protocol_words, "crates/beanstalk/src/x.rs", text), [0; 0]);
    assert_eq!(lines(words::queue_words, "crates/journal/src/x.rs", text), [2]);
}

#[test]
fn parts_importing_engine_are_found() {
    let text = "use crate::engine::Engine;\nimpl Engine {}\nimpl EngineOptions {}\n";
    assert_eq!(lines(parts::check, "crates/engine/src/store.rs", text), [1, 2]);
    assert_eq!(lines(parts::check, "crates/engine/src/commands/keys.rs", text), [0; 0]);
}

#[test]
fn unsafe_code_and_syncs_are_found() {
    let text = "// fsync is unsafe to retry\nunsafe { libc::fsync(fd) };\nfile.sync_data()?;\n";
    assert_eq!(lines(words::unsafe_code, "crates/server/src/x.rs", text), [2]);
    assert_eq!(lines(words::syncs, "crates/server/src/x.rs", text), [2, 3]);
    assert_eq!(lines(words::syncs, "crates/disk/src/x.rs", text), [0; 0]);
    assert_eq!(lines(words::unsafe_code, "a.rs", "unsafe_code = \"forbid\"\n"), [0; 0]);
}

#[test]
fn wide_lines_of_pages_are_found() {
    let wide = "word ".repeat(24) + "x";
    let address = format!("https://a.example/{}", "x".repeat(120));
    let text =
        format!("{wide}\n```\n{wide}\n```\n{address}\n* [a](b/{address})\n{wide} {address}\n");
    assert_eq!(lines(pages::columns, "docs/a.md", &text), [1, 7]);
    assert_eq!(lines(pages::columns, "src/a.rs", &text), [0; 0]);
}

#[test]
fn wrong_counts_of_pages_are_found() {
    let page = |count: usize| {
        let kinds = ["Rust tests", "engine scripts", "protocol scripts", "simulator tests"];
        let others = ["fuzz targets", "corpus inputs", "cases", "golden directories"];
        let rows =
            kinds.iter().chain(&others).map(|kind| format!("| {kind} | x | {count} | y |\n"));
        rows.collect::<String>()
    };
    assert_eq!(lines(counts::check, "docs/inside/testing.md", &page(0)), [0; 0]);
    assert_eq!(lines(counts::check, "docs/inside/testing.md", &page(1)).len(), 8);
    assert_eq!(lines(counts::check, "docs/inside/testing.md", ""), [0; 8]);
}

#[test]
fn retired_names_in_code_are_found() {
    let text = "fn is() {} // Lack\nstruct Lack; // Lack\nlet lacking = 1;\n";
    assert_eq!(lines(retired::check, "crates/x/src/x.rs", text), [2]);
}

#[test]
fn doubled_type_names_are_found() {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let files = vec![
        file("crates/disk/src/a.rs", "pub enum Place {}\npub struct Session;\n"),
        file("crates/disk/src/b_test.rs", "pub struct Part;\n"),
        file("crates/model/src/a.rs", "\npub struct Place<'p>(&'p str);\npub trait Part {}\n"),
        file("crates/model/tests/a.rs", "pub struct Place;\n"),
        file("crates/resp/src/a.rs", "pub struct Session {}\npub(crate) struct Place;\n"),
        file("crates/sim/src/a.rs", "pub struct Part;\n"),
    ];
    let repository = Repository { root: std::env::temp_dir(), files };
    let found = type_names::check(&repository).into_iter().map(|it| (it.path, it.line, it.what));
    let expected = [("disk", 1, "model"), ("model", 2, "disk")].map(|(path, line, other)| {
        let what = format!("Place is a public type of {other} too");
        (format!("crates/{path}/src/a.rs"), line, what)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn exceptions_of_type_names_are_needed() {
    let repository = Repository::read().expect("a git checkout");
    let doubles = type_names::doubles(&repository);
    for (name, reason) in type_names::EXCEPTIONS {
        assert!(doubles.contains_key(name), "{name} is no double any more: {reason}");
    }
}

#[test]
fn leftovers_without_an_issue_are_found() {
    let text = concat!("// TO", "DO later\n// TO", "DO(#7): later\n");
    assert_eq!(lines(words::leftovers, "crates/x/src/x.rs", text), [1]);
}

#[test]
fn wide_lines_and_line_ends_found() {
    let wide =
        format!("{}\n// https://{}\n\t{}\n", "x".repeat(101), "x".repeat(99), "x".repeat(97));
    assert_eq!(lines(layout::columns, "a.rs", &wide), [1, 3]);
    assert_eq!(lines(layout::columns, "a.md", &wide), [0; 0]);
    assert_eq!(lines(layout::columns, "a.json", &wide), [0; 0]);
    assert_eq!(lines(layout::line_ends, "a.rs", "a \nb\t\nc"), [1, 2, 0]);
}

#[test]
fn long_files_and_functions_are_found() {
    let function = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(69));
    let what = "long has 71 lines".to_owned();
    assert_eq!(find(layout::lengths, "a.rs", &function), [(1, what)]);
    assert_eq!(lines(layout::lengths, "a.rs", &"x\n".repeat(1001)), [0]);
}

#[test]
fn uncompiled_test_files_are_found() {
    let manifest = "autotests = false\n[[test]]\nname = \"alone\"\n";
    let texts = [("Cargo.toml", manifest), ("tests/main.rs", "mod a;\nmod folder;\n")];
    let empty = ["a", "alone", "b", "folder/inner", "folder/mod", "other/mod"];
    let mut files: Vec<_> = texts.map(|(path, text)| (path.to_owned(), text)).into();
    files.extend(empty.map(|name| (format!("tests/{name}.rs"), "")));
    let file = |(path, text): (String, &str)| TextFile {
        path: format!("crates/x/{path}"),
        text: text.to_owned(),
    };
    let files = files.into_iter().map(file).collect();
    let findings = modules::check(&Repository { root: std::env::temp_dir(), files });
    let paths: Vec<_> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["crates/x/tests/b.rs", "crates/x/tests/other/mod.rs"]);
}

#[test]
fn links_to_nothing_are_found() {
    let there = std::env::temp_dir().join("dunlin-tidy-link");
    fs::write(&there, "").expect("a temporary file");
    let text = "[a](dunlin-tidy-link) [b](missing.md#part) [c](https://example.org)\n\
                ```\n[d](in/code)\n```\n## A part: of it\n[e](#a-part-of-it) [f](#other)\n\
                `crates/missing.rs` `crates/*.rs` `other/missing.rs`\n";
    assert_eq!(
        find(links::check, "README.md", text),
        [
            (1, "missing.md does not exist".to_owned()),
            (6, "#other does not exist".to_owned()),
            (7, "crates/missing.rs does not exist".to_owned()),
        ]
    );
}
