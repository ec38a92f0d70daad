//! Runs the code blocks of the pages in `docs/start` against a broker.
//!
//! The `sh` blocks of a page are one script, so variables and files last to its end. A `text` block
//! below is the output of the block; `...` stands for any text. The block behind `<!-- docs: broker
//! -->` starts the broker. The pages name the usual port of HTTP, which the script replaces by the
//! broker's; `dunlin` is in the search path and finds the broker by `DUNLIN_URL`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::house::root;
use crate::run::run;
use crate::server::{Dunlin, Program};
use crate::steps::Bench;
use crate::tally::Tally;

const PAGE_MAX: Duration = Duration::from_secs(60);

/// The line that the script prints behind each block.
const MARK: &str = "== end of block ==";

const BROKER: &str = "<!-- docs: broker -->";
const BROKER_COMMAND: &str = "dunlin serve";
const USUAL: &str = "127.0.0.1:8422";

/// A block of code of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    language: String,
    text: String,
    /// True if it starts the broker.
    broker: bool,
}

/// Runs all pages; each block that runs is a check.
pub(crate) fn run_all(bench: &Bench) -> Result<Tally> {
    let binary = bench.dunlin()?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join("docs/start"))? {
        pages.push(entry?.path());
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let mut sum = Tally::default();
    for page in &pages {
        let tally = run_page(bench, &binary, page)?;
        println!("{}: {tally}", page.display());
        sum += tally;
    }
    if sum.passed + sum.failed == 0 {
        return Err("docs/start has no block to run".into());
    }
    Ok(sum)
}

fn run_page(bench: &Bench, binary: &Path, page: &Path) -> Result<Tally> {
    let blocks = blocks(&fs::read_to_string(page)?);
    let name = page.file_stem().unwrap_or_default().display().to_string();
    let folder = fresh_folder(bench, &name)?;
    let options = vec!["--data".to_owned(), folder.join("dunlin-data").display().to_string()];
    let dunlin = Dunlin { binary: binary.into(), protocol: "http", options, variables: Vec::new() };
    let mut server = Program::Dunlin(dunlin).start(&bench.log(&format!("docs-{name}-broker")))?;
    let address = server.wait_ready()?.to_string();
    let script = script(&blocks).replace(USUAL, &address);
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", &script]).current_dir(&folder);
    shell.env("DUNLIN_URL", format!("http://{address}")).env("PATH", path_with(binary)?);
    let outcome = run(&mut shell, &bench.log(&format!("docs-{name}")), PAGE_MAX)?;
    server.kill()?;
    let (tally, faults) = judge(&blocks, &outcome.output);
    for fault in faults {
        println!("{}:{fault}", page.display());
    }
    Ok(tally)
}

/// The search path of the shell, with the folder of the binary in front.
fn path_with(binary: &Path) -> Result<OsString> {
    let own = binary.parent().unwrap_or(Path::new(".")).to_owned();
    let usual = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([own].into_iter().chain(env::split_paths(&usual)))?)
}

fn fresh_folder(bench: &Bench, name: &str) -> Result<PathBuf> {
    let folder = bench.scratch.join("docs").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(language), None) => {
                let (language, broker) = (language.to_owned(), before == BROKER);
                open = Some(Block { line: at + 1, language, text: String::new(), broker });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
        before = line;
    }
    blocks.extend(open);
    blocks
}

fn runs(block: &Block) -> bool {
    block.language == "sh" && !block.broker
}

fn script(blocks: &[Block]) -> String {
    let runs = blocks.iter().filter(|block| runs(block));
    runs.map(|block| format!("{}printf '\\n%s\\n' '{MARK}'\n", block.text)).collect()
}

/// Compares the output of the script with the page: the checks, and the faults by line.
fn judge(blocks: &[Block], output: &str) -> (Tally, Vec<String>) {
    let (mut tally, mut faults) = (Tally::default(), Vec::new());
    let (ended, _) = output.rsplit_once(MARK).unwrap_or_default();
    let mut printed = ended.split(MARK).filter(|_| !ended.is_empty());
    for (at, block) in blocks.iter().enumerate() {
        let expected = blocks.get(at + 1).filter(|next| next.language == "text");
        let fault = match block.language.as_str() {
            "text" => continue,
            "sh" if block.broker && block.text.trim() == BROKER_COMMAND => continue,
            "sh" if block.broker => Some(format!("the broker starts by {BROKER_COMMAND}")),
            "sh" => match (printed.next(), expected) {
                (None, _) => Some(format!("failed, or did not run:\n{output}")),
                (Some(printed), Some(expected)) if !matches(&expected.text, printed) => {
                    Some(format!("printed:\n{}", printed.trim()))
                }
                _ => None,
            },
            other => Some(format!("no way to run a block of {other:?}")),
        };
        tally += Tally::one(fault.is_none());
        faults.extend(fault.map(|fault| format!("{}: {fault}", block.line)));
    }
    (tally, faults)
}

/// True if `printed` is `expected`, in which `...` stands for any text.
fn matches(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (expected.trim(), printed.trim());
    let Some((first, rest)) = expected.split_once("...") else { return expected == printed };
    let Some(mut left) = printed.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once("...").unwrap_or(("", rest));
    for part in middle.split("...") {
        let Some((_, behind)) = left.split_once(part) else { return false };
        left = behind;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n<!-- docs: broker -->\n```sh\ndunlin serve\n```\n\
        ```sh\necho one\n```\n```text\none\n```\n```sh\necho two\n```\n";

    #[test]
    fn blocks_keep_line_and_language() {
        let found = blocks(PAGE);
        let found: Vec<_> =
            found.iter().map(|block| (block.line, &*block.language, block.broker)).collect();
        let expected = [(3, "sh", true), (6, "sh", false), (9, "text", false), (12, "sh", false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn script_leaves_out_broker() {
        let script = script(&blocks(PAGE));
        assert!(!script.contains("serve"));
        assert_eq!(script.matches(MARK).count(), 2);
    }

    #[test]
    fn output_of_each_block_is_compared() {
        let judged = |output: &str| judge(&blocks(PAGE), output).0;
        let end = format!("\n{MARK}\n");
        assert_eq!(judged(&format!("one{end}two{end}")), Tally { passed: 2, failed: 0 });
        assert_eq!(judged(&format!("other{end}two{end}")), Tally { passed: 1, failed: 1 });
        assert_eq!(judged(&format!("one{end}sh: error")), Tally { passed: 1, failed: 1 });
        assert_eq!(judged("sh: error"), Tally { passed: 0, failed: 2 });
    }

    #[test]
    fn unknown_language_fails() {
        let judged = judge(&blocks("```cobol\nSTOP RUN.\n```\n"), "").0;
        assert_eq!(judged, Tally { passed: 0, failed: 1 });
    }

    #[test]
    fn dots_match_any_text() {
        assert!(matches("1-...\n", "1-f83c\n"));
        assert!(matches("a...b...c", "a1b2c"));
        assert!(!matches("a...b...c", "a1c"));
        assert!(!matches("1-...", "2-f83c"));
        assert!(!matches("one", "one two"));
    }
}
