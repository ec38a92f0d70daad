//! Foreign clients against a server: each suite of `interop/beanstalkd` and `interop/redis` on a
//! fresh one, and beside ours on a secured one.

use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::repository::root;
use crate::run::{Outcome, run};
use crate::secured::Secured;
use crate::server::Program;
use crate::steps::Bench;
use crate::tally::{Runner, Tally};

/// Registries can be slow; tests are done in seconds.
const PREPARE_MAX: Duration = Duration::from_secs(900);
const SUITE_MAX: Duration = Duration::from_secs(180);

/// A protocol: where its suites are, its name by TLS, and by which variables the suites find the
/// server and know it.
struct Protocol {
    folder: &'static str,
    secured: &'static str,
    address: &'static str,
    server: &'static str,
    prepare: &'static [(&'static str, &'static [&'static str])],
    suites: &'static [Suite],
}

/// One suite: a name, its folder, its command.
struct Suite {
    name: &'static str,
    folder: &'static str,
    command: &'static [&'static str],
    runner: Runner,
}

const BEANSTALKD: Protocol = Protocol {
    folder: "beanstalkd",
    secured: "beanstalkds",
    address: "BEANSTALKD_ADDR",
    server: "BEANSTALKD_SERVER",
    prepare: &[VENV, REQUIREMENTS, GO_MODULES, NODE_MODULES],
    suites: &BEANSTALKD_SUITES,
};

const REDIS: Protocol = Protocol {
    folder: "redis",
    secured: "rediss",
    address: "REDIS_ADDR",
    server: "REDIS_SERVER",
    prepare: &[
        VENV,
        REQUIREMENTS,
        GO_MODULES,
        NODE_MODULES,
        ("java", &["mvn", "-B", "-ntp", "test-compile"]),
        ("jobs", VENV.1),
        ("jobs", REQUIREMENTS.1),
        ("jobs-node", NODE_MODULES.1),
    ],
    suites: &REDIS_SUITES,
};

const PROTOCOLS: [Protocol; 2] = [BEANSTALKD, REDIS];

type Preparation = (&'static str, &'static [&'static str]);

const VENV: Preparation = ("python", &["python3", "-m", "venv", ".venv"]);
const REQUIREMENTS: Preparation =
    ("python", &[".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"]);
const GO_MODULES: Preparation = ("go", &["go", "mod", "download"]);
const NODE_MODULES: Preparation =
    ("node", &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]);

const BEANSTALKD_SUITES: [Suite; 5] = [
    python("greenstalk", &[".venv/bin/python", "-m", "unittest", "-v", "test_greenstalk"]),
    python("drain", &[".venv/bin/python", "-m", "unittest", "-v", "test_greenstalk_drain"]),
    python("pystalk", &[".venv/bin/python", "-m", "unittest", "-v", "test_pystalk"]),
    Suite {
        name: "go-beanstalk",
        folder: "go",
        command: &["go", "test", "-count=1", "-v", "./..."],
        runner: Runner::Go,
    },
    node(
        "fivebeans",
        &["node", "--no-deprecation", "--test", "--test-reporter=tap", "fivebeans.test.js"],
    ),
];

const REDIS_SUITES: [Suite; 7] = [
    python("redis-py", &[".venv/bin/python", "-m", "unittest", "-v", "test_redis", "test_secured"]),
    python("redis-tools", &[".venv/bin/python", "-m", "unittest", "-v", "test_tools"]),
    Suite {
        name: "go-redis",
        folder: "go",
        command: &["go", "test", "-count=1", "-v", "./..."],
        runner: Runner::Go,
    },
    node(
        "ioredis",
        &[
            "node",
            "--no-deprecation",
            "--test",
            "--test-reporter=tap",
            "ioredis.test.js",
            "secured.test.js",
        ],
    ),
    Suite {
        name: "jobs in Python",
        folder: "jobs",
        command: &[".venv/bin/python", "-m", "unittest", "-v", "test_jobs"],
        runner: Runner::Unittest,
    },
    Suite {
        name: "jobs in Node",
        folder: "jobs-node",
        command: &["node", "--no-deprecation", "--test", "--test-reporter=tap", "jobs.test.js"],
        runner: Runner::Node,
    },
    Suite {
        name: "jedis",
        folder: "java",
        command: &["mvn", "-B", "-ntp", "-Dmaven.test.failure.ignore=true", "test"],
        runner: Runner::Maven,
    },
];

const fn python(name: &'static str, command: &'static [&'static str]) -> Suite {
    Suite { name, folder: "python", command, runner: Runner::Unittest }
}

const fn node(name: &'static str, command: &'static [&'static str]) -> Suite {
    Suite { name, folder: "node", command, runner: Runner::Node }
}

/// Fetches the clients from their registries, in the versions that the lock files name.
pub(crate) fn prepare(bench: &Bench) -> Result<Tally> {
    let mut tally = Tally::default();
    for protocol in &PROTOCOLS {
        for (folder, command) in protocol.prepare {
            let command = in_folder(protocol, folder, command)?;
            tally += finish(command, bench, PREPARE_MAX)?.tally(Runner::Program);
        }
    }
    Ok(tally)
}

/// Runs every suite for a protocol against servers of `program`.
pub(crate) fn run_all(program: &Program, bench: &Bench) -> Result<Tally> {
    let protocol = if program.protocol() == "redis" { &REDIS } else { &BEANSTALKD };
    let secured = match program {
        Program::Dunlin(_) => Some(Secured::new(bench)?),
        _ => None,
    };
    let mut sum = Tally::default();
    for suite in protocol.suites {
        let tally =
            run_one(protocol, suite, program, secured.as_ref(), bench).unwrap_or_else(|error| {
                println!("{error}");
                Tally::one(false)
            });
        println!("{} on {}: {tally}", suite.name, program.name());
        sum += tally;
    }
    Ok(sum)
}

fn run_one(
    protocol: &Protocol,
    suite: &Suite,
    program: &Program,
    secured: Option<&Secured>,
    bench: &Bench,
) -> Result<Tally> {
    let mut server = program.start(&bench.log(program.name()))?;
    let mut command = in_folder(protocol, suite.folder, suite.command)?;
    let mut beside = None;
    if let Some(secured) = secured {
        let server = beside.insert(secured.start(protocol.secured, &bench.log("secured"))?);
        secured.tell(&mut command, server)?;
    }
    command.env(protocol.address, server.wait_ready()?.to_string());
    command.env(protocol.server, program.name());
    let outcome = finish(command, bench, SUITE_MAX)?;
    server.kill()?;
    Ok(outcome.tally(suite.runner))
}

fn in_folder(protocol: &Protocol, folder: &str, command: &[&str]) -> Result<Command> {
    let folder = root().join("interop").join(protocol.folder).join(folder);
    let (program, arguments) = command.split_first().ok_or("an empty command")?;
    let program = if program.contains('/') { folder.join(program) } else { program.into() };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    Ok(command)
}

fn finish(mut command: Command, bench: &Bench, limit: Duration) -> Result<Outcome> {
    run(&mut command, &bench.log("clients"), limit)
}
