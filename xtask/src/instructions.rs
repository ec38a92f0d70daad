//! `cargo xtask instructions`: the processor instructions of a message by AMQP, of a command of
//! Redis, and of the costliest inputs. callgrind counts them, so other load of the machine changes
//! nothing.
//!
//! Programs in the `examples` of the crates pass them through connection, engine and log. The cost
//! of the start cancels out of the difference between two counts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::run::run;
use crate::steps::{Bench, cargo};
use crate::{Result, setup};

/// Messages or commands of the shorter run; the longer has twice as many.
const COUNT: u64 = 2_000;

/// The same for inputs that are large or slow.
const WORST_COUNT: u64 = 20;

const STORES: [&str; 2] = ["none", "always"];

/// A program that passes something through a protocol, and its table.
struct Subject {
    package: &'static str,
    program: &'static str,
    /// The thing to which the instructions belong.
    of: &'static str,
    /// How many of these the shorter run has.
    count: u64,
    /// The stores that are measured; `none` alone for input that is only read.
    stores: &'static [&'static str],
    rows: &'static [Row],
}

/// A line of the table: the cost of `of`, less the cost of `less`.
struct Row {
    what: &'static str,
    of: &'static str,
    less: Option<&'static str>,
}

const SUBJECTS: [Subject; 6] = [
    Subject {
        package: "dunlin-amqp",
        program: "instructions",
        of: "a message of 1 KiB",
        count: COUNT,
        stores: &STORES,
        rows: &[
            Row { what: "the sections of a message are found", of: "scan", less: None },
            Row { what: "in: a transfer, and its disposition", of: "in", less: None },
            Row { what: "out: a transfer, and it is accepted", of: "out", less: Some("in") },
            Row { what: "a selector adds to both", of: "selected", less: Some("out") },
            Row { what: "in, in a transaction of its own", of: "commit", less: None },
            Row { what: "out, in a transaction of its own", of: "commit-out", less: Some("in") },
        ],
    },
    Subject {
        package: "dunlin-resp",
        program: "instructions_redis",
        of: "a command with 100 bytes",
        count: COUNT,
        stores: &STORES,
        rows: &[
            Row { what: "LPUSH", of: "push", less: None },
            Row { what: "RPOP", of: "pop", less: Some("push") },
            Row { what: "SET of one key", of: "set", less: None },
            Row { what: "INCR of one key", of: "incr", less: None },
            Row { what: "HSET of one field", of: "hset", less: None },
            Row { what: "HINCRBY of one field", of: "hincrby", less: None },
            Row { what: "HSET of a new field", of: "fields", less: None },
            Row { what: "SADD of a new member", of: "sadd", less: None },
            Row { what: "ZADD of a new member", of: "zadd", less: None },
            Row { what: "XADD", of: "xadd", less: None },
            Row { what: "one of 100 in a MULTI, of 8 bytes", of: "multi", less: None },
            Row { what: "a user with 100 rules adds to LPUSH", of: "user", less: Some("push") },
            Row {
                what: "the same, if each goes to another list",
                of: "names",
                less: Some("anyone"),
            },
        ],
    },
    // The costliest inputs that a peer may send.
    Subject {
        package: "dunlin-amqp",
        program: "instructions",
        of: "16 KiB by AMQP",
        count: WORST_COUNT,
        stores: &["none"],
        rows: &[
            Row { what: "annotations: a list of nulls", of: "nulls", less: None },
            Row { what: "a list of texts of one letter", of: "texts", less: None },
            Row { what: "a list of texts of one umlaut", of: "umlauts", less: None },
            Row { what: "lists in lists, 30 deep", of: "lists", less: None },
            Row { what: "described nulls", of: "described", less: None },
            Row { what: "arrays of booleans", of: "booleans", less: None },
            Row { what: "maps of two numbers", of: "maps", less: None },
            Row { what: "one map of numbers", of: "numbers as keys", less: None },
            Row { what: "one map of texts", of: "texts as keys", less: None },
            Row { what: "1,024 sections, 5 KiB", of: "sections", less: None },
            Row { what: "frames: empty ones", of: "heartbeats", less: None },
            Row { what: "flows of a link", of: "flows", less: None },
            Row { what: "dispositions of nothing", of: "dispositions", less: None },
            Row { what: "links that come and go", of: "links", less: None },
        ],
    },
    Subject {
        package: "dunlin-resp",
        program: "instructions_redis",
        of: "16 KiB by Redis' protocol",
        count: WORST_COUNT,
        stores: &["none"],
        rows: &[
            Row { what: "empty lines", of: "lines", less: None },
            Row { what: "commands in lines", of: "inline", less: None },
            Row { what: "commands as arrays", of: "arrays", less: None },
            Row { what: "commands that there are not", of: "unknown", less: None },
            Row { what: "EXISTS of keys without bytes", of: "keys", less: None },
            Row { what: "channels that come and go", of: "channels", less: None },
        ],
    },
    Subject {
        package: "dunlin-beanstalk",
        program: "instructions_beanstalk",
        of: "16 KiB by beanstalkd's protocol",
        count: WORST_COUNT,
        stores: &["none"],
        rows: &[
            Row { what: "commands that there are not", of: "unknown", less: None },
            Row { what: "jobs that there are not", of: "missing", less: None },
            Row { what: "statistics", of: "statistics", less: None },
            Row { what: "tubes that are watched and not", of: "tubes", less: None },
            Row { what: "bodies without an end", of: "refused", less: None },
        ],
    },
    Subject {
        package: "dunlin-selector",
        program: "instructions_selector",
        of: "a selector",
        count: WORST_COUNT,
        stores: &["none"],
        rows: &[
            Row { what: "LIKE with a long run between two %, over 16 KiB", of: "like", less: None },
            Row { what: "LIKE with 60 runs, over 16 KiB", of: "wildcards", less: None },
            Row { what: "150 conditions", of: "or", less: None },
            Row { what: "30 conditions inside of each other", of: "nested", less: None },
            Row { what: "one of 180 texts", of: "in", less: None },
            Row { what: "400 sums", of: "sum", less: None },
            Row { what: "150 conditions are parsed", of: "parse or", less: None },
            Row { what: "400 sums are parsed", of: "parse sum", less: None },
        ],
    },
];

/// Prints the instructions of a message and of a command, as tables.
pub(crate) fn run_all(bench: &Bench) -> Result<()> {
    setup::install_valgrind(&bench.log("setup"))?;
    for subject in &SUBJECTS {
        let (program, folder) = (build(bench, subject)?, bench.scratch.clone());
        let counter = Counter { program, folder, count: subject.count };
        let mut columns = Vec::new();
        for store in subject.stores {
            let rows = subject.rows.iter();
            let costs: Result<Vec<u64>> = rows.map(|row| counter.for_each(row.of, store)).collect();
            columns.push(costs?);
        }
        println!("{}", table(subject, &columns));
    }
    Ok(())
}

/// Markdown: a line for each of the rows, a column for each store.
fn table(subject: &Subject, columns: &[Vec<u64>]) -> String {
    let Subject { of, rows, stores, .. } = subject;
    let heads: String = stores.iter().map(|store| format!(" {store} |")).collect();
    let mut text = format!("| instructions of {of}; store: |{heads}\n");
    text += &format!("|---|{}\n", "--:|".repeat(stores.len()));
    for row in *rows {
        let cells = columns.iter().map(|costs| {
            let cost = |of| rows.iter().zip(costs).find(|(row, _)| row.of == of).map(|(_, it)| *it);
            let less = row.less.and_then(cost).unwrap_or_default();
            format!(" {} |", grouped(cost(row.of).unwrap_or_default().saturating_sub(less)))
        });
        text += &format!("| {} |{}\n", row.what, cells.collect::<String>());
    }
    text
}

fn build(bench: &Bench, subject: &Subject) -> Result<PathBuf> {
    let Subject { package, program, .. } = subject;
    let arguments = ["build", "--profile", "profiling", "--package", package, "--example", program];
    let built = run(&mut cargo(&arguments), &bench.log("build"), Duration::from_secs(1800))?;
    if !built.ended_well {
        return Err(format!("the build failed\n{}", built.tail()).into());
    }
    Ok(bench.release().with_file_name("profiling").join("examples").join(program))
}

/// Runs the program under callgrind, and leaves the files of that for `callgrind_annotate`.
struct Counter {
    program: PathBuf,
    folder: PathBuf,
    /// Of the shorter run.
    count: u64,
}

impl Counter {
    /// The instructions of one.
    fn for_each(&self, what: &str, store: &str) -> Result<u64> {
        let short = self.collect(what, store, self.count)?;
        let long = self.collect(what, store, 2 * self.count)?;
        Ok(long.saturating_sub(short) / self.count)
    }

    fn collect(&self, what: &str, store: &str, count: u64) -> Result<u64> {
        let profile = self.folder.join(format!("instructions-{what}-{store}.callgrind"));
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--tool=callgrind").arg(out_file(&profile)).arg(&self.program);
        valgrind.args([what, store, &count.to_string()]);
        let log = self.folder.join("instructions.log");
        let outcome = run(&mut valgrind, &log, Duration::from_secs(600))?;
        let count = collected(&outcome.output).filter(|_| outcome.ended_well);
        count.ok_or_else(|| format!("nothing was counted\n{}", outcome.tail()).into())
    }
}

fn out_file(profile: &Path) -> String {
    format!("--callgrind-out-file={}", profile.display())
}

/// The count in callgrind's last line, `==1== Collected : 60310803`.
fn collected(output: &str) -> Option<u64> {
    let (_, count) = output.rsplit_once("Collected : ")?;
    count.split_whitespace().next()?.parse().ok()
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrind_counts_are_read() {
        let output = "==7== Events    : Ir\n==7== Collected : 60310803\n==7== \n";
        assert_eq!(collected(output), Some(60_310_803));
        assert_eq!(collected("==7== Process terminating\n"), None);
    }

    #[test]
    fn row_shows_added_instructions() {
        let table = table(&SUBJECTS[0], &[vec![1, 5_000, 7_000, 9_500, 8, 6_000], vec![0; 6]]);
        assert!(table.contains("| in: a transfer, and its disposition | 5,000 | 0 |\n"), "{table}");
        assert!(table.contains("| out: a transfer, and it is accepted | 2,000 | 0 |\n"), "{table}");
        assert!(table.contains("| a selector adds to both | 2,500 | 0 |\n"), "{table}");
        assert!(table.contains("| out, in a transaction of its own | 1,000 | 0 |\n"), "{table}");
    }

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 999, 1_000, 14_741, 60_310_803].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "14,741", "60,310,803"]);
    }
}
