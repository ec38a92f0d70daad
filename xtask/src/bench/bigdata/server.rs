//! A server on which `interop/transactions` does the same as the document's tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::put;
use crate::Result;
use crate::bench::asked::Answer;
use crate::bench::machine;
use crate::bench::usage::Usage;
use crate::contender::{self, Contender};
use crate::repository::root;
use crate::run::run;
use crate::steps::Bench;

const BUILD_MAX: Duration = Duration::from_secs(600);

/// The time that a phase may take beyond its own.
const SLACK: Duration = Duration::from_secs(60);

/// The server, and how it is asked.
pub(in crate::bench) struct Served {
    contender: Contender,
    scratch: Bench,
    seconds: u64,
}

impl Served {
    /// Starts one of the contenders, with nothing in it.
    pub(super) fn start(binary: &Path, name: &str, seconds: u64) -> Result<Served> {
        let scratch = Bench::new()?;
        let contender = contender::start(&scratch, Some(binary), name)?;
        Ok(Served { contender, scratch, seconds })
    }

    /// One run of the client, with the resources that it and the server used meanwhile.
    pub(super) fn ask(&self, phase: &str, clients: u32) -> Result<Answer> {
        let usage = || Usage::of(self.contender.pid(), &self.contender.folder);
        let (before, own) = (usage()?, machine::children_cpu_nanos()?);
        let mut command = Command::new(client(&self.scratch));
        command
            .args(["-protocol", self.contender.protocol(), "-phase", phase])
            .args(["-addr", &self.contender.address.to_string()])
            .args(["-clients", &clients.to_string()])
            .args(["-millis", &(1000 * self.seconds).to_string()]);
        let limit = Duration::from_secs(self.seconds) + SLACK;
        let outcome = run(&mut command, &self.scratch.log("bench-transactions"), limit)?;
        if !outcome.ended_well {
            return Err(outcome.tail().into());
        }
        let used = usage()?.since(before);
        let line = outcome.output.lines().rev().find(|line| line.starts_with('{'));
        let mut answer: Answer = serde_json::from_str(line.ok_or("no result")?)?;
        put(&mut answer, used, machine::children_cpu_nanos()?.saturating_sub(own));
        Ok(answer)
    }
}

fn client(bench: &Bench) -> PathBuf {
    bench.scratch.join("transactions")
}

/// Builds the client.
pub(super) fn build(bench: &Bench) -> Result<()> {
    let mut go = Command::new("go");
    let folder = root().join("interop/transactions");
    go.args(["build", "-o"]).arg(client(bench)).arg(".").current_dir(folder);
    let outcome = run(&mut go, &bench.log("bench-transactions-build"), BUILD_MAX)?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("the client cannot be built\n{}", outcome.tail()).into())
}
