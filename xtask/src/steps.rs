//! `cargo xtask test`: everything that has to hold, step by step, summed up in the last line.

use std::env;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::repository::{Repository, root};
use crate::run::{run, run_while_it_talks};
use crate::server::{Dunlin, Program};
use crate::tally::{Runner, Tally};
use crate::{Result, amqp, cases, clients, crash, docs, http, setup, tidy};

/// Random seeds of the simulation in the test command.
const SEEDS: &str = "10000";

/// Kills under JMS in the test command; the rest is for `cargo xtask crash --jms`.
const JMS_KILLS: u64 = 12;

/// How long cargo may take for a step, and how long it may print nothing meanwhile. The latter is
/// several times the longest test, so a test that hangs is named long before the step is over.
const CARGO_MAX: Duration = Duration::from_secs(3600);
const SILENCE_MAX: Duration = Duration::from_secs(900);

/// The variable that tells cargo to build incrementally or not.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// One step: its name, its description, its function.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Bench) -> Result<Tally>,
}

/// The steps by stage and lane: the lanes of a stage run beside each other, and a stage begins when
/// the one before it has ended. The first lane is busy, the second mostly waits for clients.
const STAGES: [[&[Step]; 2]; 2] = [[&CODE, &SETUP], [&TESTS, &PROGRAMS]];

const SETUP: [Step; 1] =
    [Step { name: "setup", what: "install what the other steps need", run: install }];

const CODE: [Step; 3] = [
    Step { name: "fmt", what: "the code is formatted", run: fmt },
    Step {
        name: "tidy",
        what: "the rules of the repository hold",
        run: |_| Ok(tidy::run(&Repository::read()?)),
    },
    Step { name: "clippy", what: "no warnings", run: clippy },
];

const TESTS: [Step; 2] = [
    Step { name: "test", what: "all tests of the workspace", run: test },
    Step { name: "sim", what: "simulated crashes, by seeds", run: sim },
];

const PROGRAMS: [Step; 6] = [
    Step { name: "clients", what: "foreign clients, on Dunlin and the original", run: clients },
    Step {
        name: "amqp",
        what: "AMQP and JMS clients, on Dunlin",
        run: |bench| amqp::run_all(bench, &["dunlin"]),
    },
    Step { name: "http", what: "curl and schemathesis, on Dunlin", run: http::run_all },
    Step { name: "docs", what: "the code blocks of README and docs/start", run: docs::run_all },
    Step { name: "cases", what: "what users and attackers met", run: cases::run_all },
    Step { name: "crash", what: "kill -9 under load, and a ledger", run: crash },
];

/// The folder in which steps leave their logs and data.
pub(crate) struct Bench {
    /// A folder under the build's target.
    pub(crate) scratch: PathBuf,
    target: PathBuf,
}

impl Bench {
    /// The folder beside the running tool's own build.
    pub(crate) fn new() -> Result<Bench> {
        let tool = env::current_exe()?;
        let target = tool.ancestors().nth(2).ok_or("the tool runs outside of a target folder")?;
        let bench = Bench { scratch: target.join("xtask"), target: target.to_owned() };
        fs::create_dir_all(&bench.scratch)?;
        Ok(bench)
    }

    /// Builds the release binary and says where it is.
    pub(crate) fn dunlin(&self) -> Result<PathBuf> {
        let mut build = cargo(&["build", "--release", "--package", "dunlin"]);
        let built = run(&mut build, &self.log("build"), Duration::from_secs(1800))?;
        if !built.ended_well {
            return Err(format!("the release build failed\n{}", built.tail()).into());
        }
        Ok(self.release().join("dunlin"))
    }

    /// The folder of all builds.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The folder of release builds.
    pub(crate) fn release(&self) -> PathBuf {
        self.target.join("release")
    }

    /// The log of the step or program `name`.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{name}.log"))
    }

    fn cargo(&self, name: &str, arguments: &[&str], runner: Runner) -> Result<Tally> {
        let log = self.log(name);
        let mut command = cargo(arguments);
        if !self.is_built_incrementally() && env::var_os(INCREMENTAL).is_none() {
            command.env(INCREMENTAL, "0");
        }
        let outcome = run_while_it_talks(&mut command, &log, CARGO_MAX, SILENCE_MAX)?;
        Ok(outcome.tally(runner))
    }

    /// True if a developer's command has built the engine here: later builds reuse its incremental
    /// files. The steps build a clean checkout once, and would only write such files.
    fn is_built_incrementally(&self) -> bool {
        let folders = fs::read_dir(self.target.join("debug/incremental"));
        let mut names = folders.into_iter().flatten().flatten().map(|entry| entry.file_name());
        // This tool does not depend on the engine, so its own build leaves none of the engine's.
        names.any(|name| name.to_string_lossy().starts_with("engine-"))
    }
}

/// Runs the steps named in `only`, or all, and gives the sum.
pub(crate) fn run_steps(only: &[String]) -> Result<Tally> {
    let bench = Bench::new()?;
    let mut sum = Tally::default();
    let mut summary = String::from("\n");
    for lanes in STAGES {
        let done = thread::scope(|scope| {
            let lanes = lanes.map(|steps| scope.spawn(|| run_lane(steps, only, &bench)));
            lanes.map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        for (step, seconds, tally) in done.into_iter().flatten() {
            summary.push_str(&format!("{:8} {seconds:7.1} s  {tally}\n", step.name));
            sum += tally;
        }
    }
    println!("{summary}");
    Ok(sum)
}

/// Runs the chosen steps one after the other; gives the seconds and the counts of each.
fn run_lane(
    steps: &'static [Step],
    only: &[String],
    bench: &Bench,
) -> Vec<(&'static Step, f32, Tally)> {
    let chosen = |step: &&Step| only.is_empty() || only.iter().any(|name| step.name == name);
    let run = |step: &'static Step| {
        println!("== {}: {}", step.name, step.what);
        let begun = Instant::now();
        let tally = (step.run)(bench).unwrap_or_else(|error| {
            println!("{}: {error}", step.name);
            Tally::one(false)
        });
        let seconds = begun.elapsed().as_secs_f32();
        println!("== {}: {tally} in {seconds:.1} s", step.name);
        (step, seconds, tally)
    };
    steps.iter().filter(chosen).map(run).collect()
}

/// The steps' names and descriptions, for the help.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    STAGES.into_iter().flatten().flatten().map(|step| (step.name, step.what))
}

fn install(bench: &Bench) -> Result<Tally> {
    setup::install(&bench.log("setup"))?;
    let mut tally = clients::prepare(bench)?;
    tally += amqp::prepare(bench)?;
    tally += http::prepare(bench)?;
    Ok(tally)
}

fn fmt(bench: &Bench) -> Result<Tally> {
    bench.cargo("fmt", &["fmt", "--all", "--check"], Runner::Program)
}

fn clippy(bench: &Bench) -> Result<Tally> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    bench.cargo("clippy", &arguments, Runner::Program)
}

fn test(bench: &Bench) -> Result<Tally> {
    bench.cargo("test", &["test", "--workspace", "--no-fail-fast"], Runner::Cargo)
}

fn sim(bench: &Bench) -> Result<Tally> {
    let arguments = ["run", "--package", "dunlin-sim", "--bin", "sim", "--", "--seeds", SEEDS];
    bench.cargo("sim", &arguments, Runner::Simulation)
}

fn clients(bench: &Bench) -> Result<Tally> {
    let binary = bench.dunlin()?;
    let mut tally = Tally::default();
    for protocol in ["beanstalkd", "redis"] {
        let (binary, options) = (binary.clone(), ["--store", "none"].map(str::to_owned).to_vec());
        let dunlin = Dunlin { binary, protocol, options, variables: Vec::new() };
        tally += clients::run_all(&Program::Dunlin(dunlin), bench)?;
    }
    tally += clients::run_all(&Program::Original(Vec::new()), bench)?;
    tally += clients::run_all(&Program::Redis, bench)?;
    Ok(tally)
}

fn crash(bench: &Bench) -> Result<Tally> {
    let mut options = crash::Options::new().on(bench)?;
    let mut tally = crash::run_all(&options)?;
    (options.jms, options.kills) = (true, JMS_KILLS);
    tally += crash::run_all(&options)?;
    Ok(tally)
}

/// Cargo, in the project's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(root());
    cargo
}
