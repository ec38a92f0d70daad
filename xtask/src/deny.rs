//! `cargo xtask deny`: licences, sources and known vulnerabilities of the dependencies, which
//! cargo-deny compares with `deny.toml`.

use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::repository::root;
use crate::run::{Outcome, run};
use crate::steps::Bench;
use crate::tally::Tally;
use crate::tools;

const CHECK_MAX: Duration = Duration::from_secs(600);

/// Checks the rules, and the advisories if their database can be fetched.
pub(crate) fn run_all(bench: &Bench) -> Result<Tally> {
    let deny = tools::DENY.installed(bench)?;
    let check = |words: &[&str], name: &str| {
        let mut check = Command::new(&deny);
        run(check.args(words).current_dir(root()), &bench.log(name), CHECK_MAX)
    };
    let rules = ["--locked", "check", "bans", "licenses", "sources"];
    let mut tally = judge(&check(&rules, "deny")?);
    if check(&["fetch", "db"], "deny-fetch")?.ended_well {
        tally += judge(&check(&["--locked", "check", "advisories"], "deny-advisories")?);
    } else {
        println!("ADVISORIES UNCHECKED: their database cannot be fetched");
    }
    Ok(tally)
}

fn judge(outcome: &Outcome) -> Tally {
    if !outcome.ended_well {
        println!("{}", outcome.tail());
    }
    Tally::one(outcome.ended_well)
}
