//! Foreign clients against a server: each suite of `interop/beanstalkd` on a fresh one.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::house::root;
use crate::run::{Outcome, run};
use crate::server::Program;
use crate::steps::Bench;
use crate::tally::{Runner, Tally};

/// Registries can be slow; tests are done in seconds.
const PREPARE_MAX: Duration = Duration::from_secs(900);
const SUITE_MAX: Duration = Duration::from_secs(180);

/// One suite: a name, its folder, its command.
struct Suite {
    name: &'static str,
    folder: &'static str,
    command: &'static [&'static str],
    runner: Runner,
}

const SUITES: [Suite; 5] = [
    python("greenstalk", &[".venv/bin/python", "-m", "unittest", "-v", "test_greenstalk"]),
    python("drain", &[".venv/bin/python", "-m", "unittest", "-v", "test_greenstalk_drain"]),
    python("pystalk", &[".venv/bin/python", "-m", "unittest", "-v", "test_pystalk"]),
    Suite {
        name: "go-beanstalk",
        folder: "go",
        command: &["go", "test", "-count=1", "-v", "./..."],
        runner: Runner::Go,
    },
    Suite {
        name: "fivebeans",
        folder: "node",
        command: &[
            "node",
            "--no-deprecation",
            "--test",
            "--test-reporter=tap",
            "fivebeans.test.js",
        ],
        runner: Runner::Node,
    },
];

const fn python(name: &'static str, command: &'static [&'static str]) -> Suite {
    Suite { name, folder: "python", command, runner: Runner::Unittest }
}

/// Fetches the clients from their registries, in the versions that the lock files name.
pub(crate) fn prepare(bench: &Bench) -> Result<Tally> {
    let commands: [(&str, &[&str]); 4] = [
        ("python", &["python3", "-m", "venv", ".venv"]),
        ("python", &[".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"]),
        ("go", &["go", "mod", "download"]),
        ("node", &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
    ];
    let mut tally = Tally::default();
    for (folder, command) in commands {
        let outcome = in_folder(folder, command, None, bench, PREPARE_MAX)?;
        tally += outcome.tally(Runner::Program);
    }
    Ok(tally)
}

/// Runs every suite against servers of `program`.
pub(crate) fn run_all(program: &Program, bench: &Bench) -> Result<Tally> {
    let mut sum = Tally::default();
    for suite in &SUITES {
        let tally = run_one(suite, program, bench).unwrap_or_else(|error| {
            println!("{error}");
            Tally::one(false)
        });
        println!("{} on {}: {tally}", suite.name, program.name());
        sum += tally;
    }
    Ok(sum)
}

fn run_one(suite: &Suite, program: &Program, bench: &Bench) -> Result<Tally> {
    let mut server = program.start(&bench.log(program.name()))?;
    let address = server.wait_ready()?.to_string();
    let environment = Some((address.as_str(), program.name()));
    let outcome = in_folder(suite.folder, suite.command, environment, bench, SUITE_MAX)?;
    server.kill()?;
    Ok(outcome.tally(suite.runner))
}

fn in_folder(
    folder: &str,
    command: &[&str],
    server: Option<(&str, &str)>,
    bench: &Bench,
    limit: Duration,
) -> Result<Outcome> {
    let folder: PathBuf = root().join("interop/beanstalkd").join(folder);
    let (program, arguments) = command.split_first().ok_or("an empty command")?;
    let program = if program.contains('/') { folder.join(program) } else { program.into() };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    if let Some((address, name)) = server {
        command.env("BEANSTALKD_ADDR", address).env("BEANSTALKD_SERVER", name);
    }
    run(&mut command, &bench.log("clients"), limit)
}
