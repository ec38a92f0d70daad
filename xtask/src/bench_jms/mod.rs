//! `cargo xtask bench-jms`: figures of a JMS client of Dunlin, Artemis and Classic, one after the
//! other and each by the same policies.
//!
//! Every measurement is a client process of its own: one that hangs is ended, and Dunlin's counters
//! give the syncs of each. The broker stays, and so gets warm, until one fails.

mod options;
mod row;
mod table;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::counters;
use crate::run::run;
use crate::server::{Dunlin, Java, Program, Server, java_command};
use crate::steps::Bench;
use crate::tally::Tally;

pub(crate) use options::Options;
use row::Row;

/// How messages are committed, in the matrix.
const CELLS: [&str; 3] = ["commit-each", "commit-1000", "auto"];

/// The measurement of one client.
struct Task {
    class: &'static str,
    arguments: Vec<String>,
    /// By which its results are told apart, also when it fails without one.
    labels: Vec<(&'static str, String)>,
}

/// A running broker, its URL and its log.
struct Running {
    server: Server,
    url: String,
    log: PathBuf,
}

/// Measures as `options` say and prints a table; the lines behind it are in `bench-jms.jsonl`.
///
/// # Errors
/// When the clients cannot be built or a broker not be started.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    prepare(bench)?;
    let mut rows = Vec::new();
    for policy in &options.policies {
        for broker in &options.brokers {
            println!("== {broker}, {policy}");
            rows.extend(measure(bench, options, broker, policy)?);
        }
    }
    println!("\n{}", table::render(&rows));
    println!("The lines behind it: {}", results(bench).display());
    let failed = rows.iter().filter(|row| row.failed()).count() as u64;
    Ok(Tally { passed: rows.len() as u64 - failed, failed })
}

fn prepare(bench: &Bench) -> Result<()> {
    let mut maven = crate::amqp::in_folder("jms", &["mvn", "-B", "-ntp", "process-classes"])?;
    maven.args(["-pl", "brokers,bench"]);
    let outcome = run(&mut maven, &bench.log("bench-jms-build"), Duration::from_secs(1800))?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("the clients cannot be built\n{}", outcome.tail()).into())
}

fn results(bench: &Bench) -> PathBuf {
    bench.scratch.join("bench-jms.jsonl")
}

/// All that is asked of one broker. After a failure the broker is started anew for the next task.
fn measure(bench: &Bench, options: &Options, broker: &str, policy: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut running = None;
    for task in tasks(options) {
        let ready = match running.take() {
            Some(ready) => Ok(ready),
            None => start(bench, options, broker, policy),
        };
        let row = match ready {
            Ok(ready) => {
                let row = ask(bench, options, &task, broker, &ready)?;
                // Dropping a broker ends it.
                running = (!row.failed()).then_some(ready);
                row
            }
            Err(error) => failure(&task, broker, &error.to_string()),
        };
        let row = row.with("policy", policy);
        println!("{row}");
        writeln!(OpenOptions::new().create(true).append(true).open(results(bench))?, "{row}")?;
        rows.push(row);
    }
    drop(running);
    clear(bench)?;
    Ok(rows)
}

fn tasks(options: &Options) -> Vec<Task> {
    let mut tasks = Vec::new();
    let asked = |name: &str| options.only.iter().any(|only| only == name);
    if asked("matrix") {
        for mode in ["persistent", "non-persistent"] {
            tasks.extend(CELLS.map(|cell| matrix(options, mode, cell)));
        }
    }
    if asked("travel") {
        let arguments = options.timed();
        tasks.push(Task { class: "Travel", arguments, labels: Vec::new() });
    }
    if asked("commits") {
        tasks.extend(options.sessions.iter().map(|sessions| commits(options, sessions)));
    }
    tasks
}

fn matrix(options: &Options, mode: &str, cell: &str) -> Task {
    let own = ["--cells", cell, "--modes", mode].map(str::to_owned);
    let persistent = (mode == "persistent").to_string();
    let labels = vec![("cell", cell.to_owned()), ("persistent", persistent)];
    Task { class: "Matrix", arguments: [options.matrix(), own.to_vec()].concat(), labels }
}

fn commits(options: &Options, sessions: &str) -> Task {
    let own = ["--sessions", sessions].map(str::to_owned);
    let arguments = [options.timed(), options.connections(), own.to_vec()].concat();
    Task { class: "Commits", arguments, labels: vec![("sessions", sessions.to_owned())] }
}

fn failure(task: &Task, broker: &str, why: &str) -> Row {
    let row = Row::of_failure(task.class, broker, why);
    task.labels.iter().fold(row, |row, (name, value)| row.with(name, value))
}

/// The broker's data; every start has it empty.
fn data(bench: &Bench) -> PathBuf {
    bench.scratch.join("bench-jms-data")
}

fn clear(bench: &Bench) -> Result<()> {
    let data = data(bench);
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    Ok(())
}

fn start(bench: &Bench, options: &Options, broker: &str, policy: &str) -> Result<Running> {
    clear(bench)?;
    let log = bench.log(&format!("bench-jms-{broker}"));
    let mut server = program(bench, options, broker, policy)?.start(&log)?;
    let scheme = if broker == "classic-openwire" { "tcp" } else { "amqp" };
    let url = format!("{broker}={scheme}://{}", server.wait_ready()?);
    if broker == "dunlin" {
        counters::await_rest(&server, &log)?;
    }
    Ok(Running { server, url, log })
}

fn program(bench: &Bench, options: &Options, broker: &str, policy: &str) -> Result<Program> {
    let data = data(bench).display().to_string();
    let policy = policy.to_owned();
    let java = |name, class, protocol, arguments| {
        Program::Java(Java { module: "brokers", name, class, protocol, arguments })
    };
    Ok(match broker {
        "dunlin" => dunlin(bench, options, data, policy)?,
        "artemis" => java("artemis", "Artemis", "amqp", vec![data, "0".to_owned(), policy]),
        "classic" => java("classic", "Classic", "amqp", vec![data, policy]),
        "classic-openwire" => java("classic", "Classic", "openwire", vec![data, policy]),
        other => return Err(format!("{other}? See cargo xtask --help").into()),
    })
}

fn dunlin(bench: &Bench, options: &Options, data: String, policy: String) -> Result<Program> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => bench.dunlin()?,
    };
    let kept = if policy == "none" { "--store" } else { "--sync" }.to_owned();
    let options = vec!["--data".to_owned(), data, kept, policy];
    Ok(Program::Dunlin(Dunlin { binary, protocol: "amqp", options, variables: Vec::new() }))
}

/// How often the disk was synced; nothing where no one counts.
fn syncs(broker: &str, running: &Running) -> Result<Option<u64>> {
    if broker == "dunlin" { counters::syncs(&running.server, &running.log) } else { Ok(None) }
}

/// One client process. It prints one line; if it prints none, that counts as an error too.
fn ask(
    bench: &Bench,
    options: &Options,
    task: &Task,
    broker: &str,
    running: &Running,
) -> Result<Row> {
    let before = syncs(broker, running)?;
    let mut client = java_command("bench")?;
    client.arg(format!("dunlin.bench.{}", task.class)).arg(&running.url).args(&task.arguments);
    let outcome = run(&mut client, &bench.log("bench-jms-client"), options.limit)?;
    let row = Row::read(&outcome.output).unwrap_or_else(|| failure(task, broker, &outcome.tail()));
    let after = syncs(broker, running)?;
    Ok(match (before, after) {
        (Some(before), Some(after)) => row.with_number("syncs", after.saturating_sub(before)),
        _ => row,
    })
}
