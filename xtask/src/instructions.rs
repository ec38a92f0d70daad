//! `cargo xtask instructions`: what a message by AMQP and a command of Redis cost the processor,
//! counted by callgrind, so that it is the same whatever else the machine does.
//!
//! Programs in `crates/amqp/examples` and `crates/resp/examples` pass them through connection,
//! engine and log. What it costs to begin cancels out of the difference between two counts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::run::run;
use crate::steps::{Bench, cargo};
use crate::{Result, setup};

/// Messages or commands of the shorter run; the longer has twice as many.
const COUNT: u64 = 2_000;

const STORES: [&str; 2] = ["none", "always"];

/// A program that passes something through a protocol, and what is told of it.
struct Subject {
    package: &'static str,
    program: &'static str,
    /// Of what the instructions are.
    of: &'static str,
    rows: &'static [Row],
}

/// A line of the table: what `of` costs, less what `less` does.
struct Row {
    what: &'static str,
    of: &'static str,
    less: Option<&'static str>,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        package: "dunlin-amqp",
        program: "instructions",
        of: "a message of 1 KiB",
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
        rows: &[
            Row { what: "LPUSH", of: "push", less: None },
            Row { what: "RPOP", of: "pop", less: Some("push") },
            Row { what: "SET of one key", of: "set", less: None },
            Row { what: "one of 100 in a MULTI, of 8 bytes", of: "multi", less: None },
        ],
    },
];

/// Prints the instructions of a message and of a command, as tables.
pub(crate) fn run_all(bench: &Bench) -> Result<()> {
    setup::install_valgrind(&bench.log("setup"))?;
    for subject in &SUBJECTS {
        let counter = Counter { program: build(bench, subject)?, folder: bench.scratch.clone() };
        let mut columns = Vec::new();
        for store in STORES {
            let rows = subject.rows.iter();
            let costs: Result<Vec<u64>> = rows.map(|row| counter.for_each(row.of, store)).collect();
            columns.push(costs?);
        }
        println!("{}", table(subject, &columns));
    }
    Ok(())
}

/// Markdown: a line for each of the rows, a column for each store's costs of what they are of.
fn table(subject: &Subject, columns: &[Vec<u64>]) -> String {
    let Subject { of, rows, .. } = subject;
    let heads = STORES.map(|store| format!(" {store} |")).concat();
    let mut text = format!("| instructions of {of}; store: |{heads}\n|---|--:|--:|\n");
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
    let arguments = ["build", "--release", "--package", package, "--example", program];
    let built = run(&mut cargo(&arguments), &bench.log("build"), Duration::from_secs(1800))?;
    if !built.ended_well {
        return Err(format!("the release build failed\n{}", built.tail()).into());
    }
    Ok(bench.release().join("examples").join(program))
}

/// Runs the program under callgrind, and leaves what that wrote for `callgrind_annotate`.
struct Counter {
    program: PathBuf,
    folder: PathBuf,
}

impl Counter {
    /// The instructions of one.
    fn for_each(&self, what: &str, store: &str) -> Result<u64> {
        let short = self.count(what, store, COUNT)?;
        let long = self.count(what, store, 2 * COUNT)?;
        Ok(long.saturating_sub(short) / COUNT)
    }

    fn count(&self, what: &str, store: &str, count: u64) -> Result<u64> {
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
    fn reads_what_callgrind_counted() {
        let output = "==7== Events    : Ir\n==7== Collected : 60310803\n==7== \n";
        assert_eq!(collected(output), Some(60_310_803));
        assert_eq!(collected("==7== Process terminating\n"), None);
    }

    #[test]
    fn a_row_shows_what_it_adds() {
        let table = table(&SUBJECTS[0], &[vec![1, 5_000, 7_000, 9_500, 8, 6_000], vec![0; 6]]);
        assert!(table.contains("| in: a transfer, and its disposition | 5,000 | 0 |\n"), "{table}");
        assert!(table.contains("| out: a transfer, and it is accepted | 2,000 | 0 |\n"), "{table}");
        assert!(table.contains("| a selector adds to both | 2,500 | 0 |\n"), "{table}");
        assert!(table.contains("| out, in a transaction of its own | 1,000 | 0 |\n"), "{table}");
    }

    #[test]
    fn groups_thousands() {
        let texts = [0, 999, 1_000, 14_741, 60_310_803].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "14,741", "60,310,803"]);
    }
}
