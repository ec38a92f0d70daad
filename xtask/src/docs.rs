//! Runs the code blocks of README and of the pages in `docs/start` against a broker.
//!
//! The `sh` blocks of a page are one script, so variables and files last to its end. A `text` block
//! below a block is its expected output, in which `...` stands for any text. A block of another
//! language is a file; the line above names it and ends with `` `NAME`: ``. A command of
//! [`BROKERS`] starts the broker, which lasts to the end of the page. Free ports replace the usual
//! ones that the pages name. `dunlin` is in the search path and finds the broker by `DUNLIN_URL`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::repository::root;
use crate::run::run;
use crate::setup;
use crate::steps::Bench;
use crate::tally::Tally;

/// Pages fetch clients from registries, which can be slow.
const PAGE_MAX: Duration = Duration::from_secs(600);

/// The line that the script prints behind each block.
const MARK: &str = "== end of block ==";

/// Commands that start the broker.
const BROKERS: [&str; 2] = ["dunlin serve", "cargo run --release -- serve"];

/// Starts the broker, prints its lines up to `ready`, and ends it with the script.
const BROKER_SCRIPT: &str = r#"exec 3< <(exec dunlin serve 2>broker.log)
trap "kill -KILL $!" EXIT
while read -r line <&3 && echo "$line" && [ "$line" != ready ]; do :; done
[ "$line" = ready ] || { cat broker.log; exit 1; }
"#;

/// Each protocol, and how pages write its usual port.
const PORTS: [(&str, &str); 4] =
    [("amqp", ":5672"), ("beanstalkd", "11300"), ("redis", ":6379"), ("http", ":8422")];

/// A block of code of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    language: String,
    text: String,
    /// The file that the block is.
    file: Option<String>,
}

/// Runs all pages; each block that runs is a check.
pub(crate) fn run_all(bench: &Bench) -> Result<Tally> {
    setup::install_for_pages(&bench.log("docs-setup"))?;
    let binary = bench.dunlin()?;
    let mut pages = vec![root().join("README.md")];
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
        return Err("the pages have no block to run".into());
    }
    Ok(sum)
}

fn run_page(bench: &Bench, binary: &Path, page: &Path) -> Result<Tally> {
    let ports = free_ports()?;
    let blocks = blocks(&with_ports(&fs::read_to_string(page)?, &ports));
    let name = page.file_stem().unwrap_or_default().display().to_string();
    let folder = fresh_folder(bench, &name)?;
    write_files(&blocks, &folder)?;
    let [.., http] = ports;
    let listen: Vec<_> = PORTS
        .iter()
        .zip(ports)
        .map(|((name, _), port)| format!("{name}=localhost:{port}"))
        .collect();
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", &script(&blocks)]).current_dir(&folder).env("PATH", path_with(binary)?);
    shell.env("DUNLIN_URL", format!("http://127.0.0.1:{http}"));
    shell.env("DUNLIN_LISTEN", listen.join(","));
    let outcome = run(&mut shell, &bench.log(&format!("docs-{name}")), PAGE_MAX)?;
    let (tally, faults) = judge(&blocks, &plain(&outcome.output));
    for fault in faults {
        println!("{}:{fault}", page.display());
    }
    Ok(tally)
}

/// A port for each protocol.
fn free_ports() -> Result<[u16; PORTS.len()]> {
    // All are held until the last is known, so that none comes twice.
    let (mut ports, mut held) = ([0; PORTS.len()], Vec::new());
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// The page with these ports in place of the usual ones.
fn with_ports(page: &str, ports: &[u16; PORTS.len()]) -> String {
    let pairs = PORTS.iter().zip(ports);
    pairs.fold(page.to_owned(), |page, ((_, usual), port)| {
        let colon = if usual.starts_with(':') { ":" } else { "" };
        page.replace(usual, &format!("{colon}{port}"))
    })
}

fn write_files(blocks: &[Block], folder: &Path) -> Result<()> {
    for block in blocks {
        let Some(file) = &block.file else { continue };
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, &block.text)?;
    }
    Ok(())
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
    let mut above = "";
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(language), None) => {
                let file = file_name(above).filter(|_| !is_command(language));
                let language = language.to_owned();
                open = Some(Block { line: at + 1, language, text: String::new(), file });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
        if !line.is_empty() {
            above = line;
        }
    }
    blocks.extend(open);
    blocks
}

/// The name of a file at the end of the line above its block.
fn file_name(above: &str) -> Option<String> {
    Some(above.strip_suffix("`:")?.rsplit_once('`')?.1.to_owned())
}

/// True if a shell runs or prints the blocks of this language, so that they are no files.
fn is_command(language: &str) -> bool {
    matches!(language, "sh" | "text")
}

fn starts_broker(block: &Block) -> bool {
    BROKERS.contains(&block.text.trim())
}

fn script(blocks: &[Block]) -> String {
    let runs = blocks.iter().filter(|block| block.language == "sh");
    runs.map(|block| {
        let text = if starts_broker(block) { BROKER_SCRIPT } else { &block.text };
        format!("{text}printf '\\n%s\\n' '{MARK}'\n")
    })
    .collect()
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
            "sh" => match (printed.next(), expected) {
                (None, _) => Some(format!("failed, or did not run:\n{output}")),
                (Some(printed), Some(expected)) if !matches(&expected.text, printed) => {
                    Some(format!("printed:\n{}", printed.trim()))
                }
                _ => None,
            },
            _ if block.file.is_some() => continue,
            other => Some(format!("a block of {other:?} needs a line above that names its file")),
        };
        tally += Tally::one(fault.is_none());
        faults.extend(fault.map(|fault| format!("{}: {fault}", block.line)));
    }
    (tally, faults)
}

/// The output without carriage returns, and without the colours that Maven prints even into a file.
fn plain(output: &str) -> String {
    let output = output.replace('\r', "");
    let mut parts = output.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, text)| text))
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

    const PAGE: &str = "# Page\nStart:\n```sh\ndunlin serve\n```\n\
        ```sh\necho one\n```\n```text\none\n```\nIn `src/two.py`:\n\n```python\nprint(2)\n```\n\
        ```sh\necho two\n```\n";

    #[test]
    fn blocks_keep_line_language_and_file() {
        let found = blocks(PAGE);
        let found: Vec<_> = found
            .iter()
            .map(|block| (block.line, &*block.language, block.file.as_deref()))
            .collect();
        let file = (14, "python", Some("src/two.py"));
        let expected =
            [(3, "sh", None), (6, "sh", None), (9, "text", None), file, (17, "sh", None)];
        assert_eq!(found, expected);
    }

    #[test]
    fn script_has_commands_of_page() {
        let script = script(&blocks(PAGE));
        assert!(script.starts_with(BROKER_SCRIPT));
        assert!(!script.contains("print(2)"));
        assert_eq!(script.matches(MARK).count(), 3);
    }

    #[test]
    fn output_of_each_block_is_compared() {
        let judged = |output: &str| judge(&blocks(PAGE), output).0;
        let end = format!("\n{MARK}\n");
        assert_eq!(judged(&format!("{end}one{end}two{end}")), Tally { passed: 3, failed: 0 });
        assert_eq!(judged(&format!("{end}other{end}two{end}")), Tally { passed: 2, failed: 1 });
        assert_eq!(judged(&format!("{end}one{end}sh: error")), Tally { passed: 2, failed: 1 });
        assert_eq!(judged("sh: error"), Tally { passed: 0, failed: 3 });
    }

    #[test]
    fn usual_ports_are_replaced() {
        let page = "('127.0.0.1', 11300) localhost:5672 [::1]:6379 http://127.0.0.1:8422/ 63790";
        let replaced = with_ports(page, &[45_672, 36_379, 46_379, 58_422]);
        let expected =
            "('127.0.0.1', 36379) localhost:45672 [::1]:46379 http://127.0.0.1:58422/ 63790";
        assert_eq!(replaced, expected);
    }

    #[test]
    fn colours_are_left_out() {
        assert_eq!(plain("\x1b[1;31mred\x1b[m, plain\x1b[0m\r\n"), "red, plain\n");
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
