//! Foreign AMQP clients against a broker: JMS by two generations of Qpid, qpid-proton, go-amqp,
//! rhea.
//!
//! The same suites run against ActiveMQ Artemis: a test that fails there too is itself at fault.
//! `ARTEMIS_LACKS` names the features that Artemis lacks, and the suites skip them by name.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::repository::root;
use crate::run::{Outcome, run};
use crate::secured::Secured;
use crate::server::{Dunlin, Java, Program};
use crate::steps::Bench;
use crate::tally::{Runner, Tally};

/// Registries can be slow, and proton is compiled.
const PREPARE_MAX: Duration = Duration::from_secs(1800);
/// Some two minutes on a quiet machine.
const SUITE_MAX: Duration = Duration::from_secs(1200);

/// One suite: a name, its folder, its command.
struct Suite {
    name: &'static str,
    folder: &'static str,
    command: &'static [&'static str],
    runner: Runner,
}

const SUITES: [Suite; 4] = [
    Suite {
        name: "qpid-proton",
        folder: "amqp/python",
        command: &[".venv/bin/python", "-m", "unittest", "-v", "test_proton", "test_secured"],
        runner: Runner::Unittest,
    },
    Suite {
        name: "go-amqp",
        folder: "amqp/go",
        command: &["go", "test", "-count=1", "-v", "./..."],
        runner: Runner::Go,
    },
    Suite {
        name: "rhea",
        folder: "amqp/node",
        command: &["node", "--no-deprecation", "--test", "--test-reporter=tap", "rhea.test.js"],
        runner: Runner::Node,
    },
    Suite {
        name: "qpid-jms",
        folder: "jms",
        command: &["mvn", "-B", "-ntp", "-Dmaven.test.failure.ignore=true", "test"],
        runner: Runner::Maven,
    },
];

/// Features that a broker lacks, by the names that the suites use.
#[derive(Clone, Copy, Default)]
struct Lacks {
    amqp: &'static str,
    jms: &'static str,
}

const ARTEMIS_LACKS: Lacks = Lacks {
    amqp: "DRAIN_WITHOUT_CREDIT",
    jms: "COUNTED_LOSSES,DEAD_LETTER_ANNOTATIONS,FINAL_DELETION,GUARDED_SHARED_SUBSCRIPTIONS,\
          GUARDED_TEMPORARY_DESTINATIONS,HEADER_SELECTORS,LIMITS,LOOSE_NOT,TABLES",
};

/// Ours, and the one that shows that the suites are fair.
pub(crate) const BROKERS: [&str; 2] = ["dunlin", "artemis"];

/// Fetches the clients and the other broker, in the versions that the projects name.
pub(crate) fn prepare(bench: &Bench) -> Result<Tally> {
    let commands: [(&str, &[&str]); 5] = [
        ("amqp/python", &["python3", "-m", "venv", ".venv"]),
        (
            "amqp/python",
            &[".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"],
        ),
        ("amqp/go", &["go", "mod", "download"]),
        ("amqp/node", &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
        ("jms", &["mvn", "-B", "-ntp", "test-compile"]),
    ];
    let mut tally = Tally::default();
    for (folder, command) in commands {
        let command = in_folder(folder, command)?;
        tally += finish(command, "prepare", bench, PREPARE_MAX)?.tally(Runner::Program);
    }
    Ok(tally)
}

/// Every suite against each broker: `dunlin`, `artemis`, or the URL of a broker that listens.
pub(crate) fn run_all(bench: &Bench, brokers: &[&str]) -> Result<Tally> {
    let mut tally = Tally::default();
    for broker in brokers {
        tally += run_one(bench, broker)?;
    }
    Ok(tally)
}

fn run_one(bench: &Bench, broker: &str) -> Result<Tally> {
    let (program, lacks) = match broker {
        "dunlin" => (dunlin(bench)?, Lacks::default()),
        "artemis" => (artemis(bench), ARTEMIS_LACKS),
        url if url.starts_with("amqp://") => {
            return run_suites(bench, url, url, Lacks::default(), None);
        }
        other => return Err(format!("{other}? dunlin, artemis or amqp://HOST:PORT").into()),
    };
    clear(bench, program.name())?;
    let mut server = program.start(&bench.log(program.name()))?;
    let url = format!("amqp://{}", server.wait_ready()?);
    let secured = match &program {
        Program::Dunlin(_) => Some(Secured::new(bench)?),
        _ => None,
    };
    let tally = run_suites(bench, program.name(), &url, lacks, secured.as_ref())?;
    server.kill()?;
    Ok(tally)
}

/// With a log that is synced as it comes by default: messages are to be trusted to it.
fn dunlin(bench: &Bench) -> Result<Program> {
    let folder = bench.scratch.join("dunlin");
    let options = ["--data".to_owned(), folder.display().to_string()].to_vec();
    let binary = bench.dunlin()?;
    Ok(Program::Dunlin(Dunlin { binary, protocol: "amqp", options, variables: Vec::new() }))
}

fn artemis(bench: &Bench) -> Program {
    let arguments = vec![bench.scratch.join("artemis").display().to_string()];
    Program::Java(Java {
        module: "brokers",
        name: "artemis",
        class: "Artemis",
        protocol: "amqp",
        arguments,
    })
}

/// Removes the data of an earlier run.
fn clear(bench: &Bench, name: &str) -> Result<()> {
    let folder = bench.scratch.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

/// Every suite against the broker at `url`, and beside it against a secured Dunlin.
fn run_suites(
    bench: &Bench,
    broker: &str,
    url: &str,
    lacks: Lacks,
    secured: Option<&Secured>,
) -> Result<Tally> {
    let mut sum = Tally::default();
    for suite in &SUITES {
        let mut command = in_folder(suite.folder, suite.command)?;
        let mut beside = None;
        if let Some(secured) = secured {
            let server = beside.insert(secured.start("amqps", &bench.log("secured"))?);
            secured.tell(&mut command, server)?;
        }
        command.env("AMQP_URL", url).env("AMQP_LACKS", lacks.amqp);
        if suite.runner == Runner::Maven {
            command.arg(format!("-Dbroker.url={url}")).arg(format!("-Dbroker.lacks={}", lacks.jms));
        }
        let tally = finish(command, suite.name, bench, SUITE_MAX)?.tally(suite.runner);
        println!("{} on {broker}: {tally}", suite.name);
        sum += tally;
    }
    Ok(sum)
}

/// A command in a folder of `interop`; a program with a path is one of that folder.
pub(crate) fn in_folder(folder: &str, command: &[&str]) -> Result<Command> {
    let folder = root().join("interop").join(folder);
    let (program, arguments) = command.split_first().ok_or("an empty command")?;
    let program = if program.contains('/') { folder.join(program) } else { program.into() };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    Ok(command)
}

fn finish(mut command: Command, name: &str, bench: &Bench, limit: Duration) -> Result<Outcome> {
    run(&mut command, &bench.log(&format!("amqp-{name}")), limit)
}
