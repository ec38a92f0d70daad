//! HTTP's clients: curl as people use it, Chromium with pages that attack, clients that generators
//! make of the description, and schemathesis, which holds the server against it.

use std::time::Duration;

use crate::Result;
use crate::amqp::in_folder;
use crate::run::run;
use crate::secured::Secured;
use crate::server::{Dunlin, Program};
use crate::steps::Bench;
use crate::tally::{Runner, Tally};

/// Registries can be slow.
const PREPARE_MAX: Duration = Duration::from_secs(900);
const SUITE_MAX: Duration = Duration::from_secs(300);

/// Cases of each operation and phase; the seed is always the same.
const EXAMPLES: &str = "20";

/// Fetches schemathesis, the generators and the driver of Chromium, in the versions that the
/// project names.
pub(crate) fn prepare(bench: &Bench) -> Result<Tally> {
    let commands: [&[&str]; 4] = [
        &["python3", "-m", "venv", ".venv"],
        &[".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"],
        &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        &["mvn", "-B", "-ntp", "-q", "generate-resources"],
    ];
    let mut tally = Tally::default();
    for command in commands {
        let mut command = in_folder("http", command)?;
        tally += run(&mut command, &bench.log("http-prepare"), PREPARE_MAX)?.tally(Runner::Program);
    }
    Ok(tally)
}

/// All of them; Chromium's tests start brokers of their own.
pub(crate) fn run_all(bench: &Bench) -> Result<Tally> {
    // Queues that are given bounds do not keep their senders waiting for long.
    let options = ["--store", "none", "--block-timeout", "100ms"].map(str::to_owned).to_vec();
    let binary = bench.dunlin()?;
    let dunlin = Dunlin { binary, protocol: "http", options, variables: Vec::new() };
    let mut server = Program::Dunlin(dunlin).start(&bench.log("http-dunlin"))?;
    let url = format!("http://{}", server.wait_ready()?);
    let mut curl =
        in_folder("http", &["python3", "-m", "unittest", "-v", "test_curl", "test_secured"])?;
    let secured = Secured::new(bench)?;
    let mut beside = secured.start("https", &bench.log("secured"))?;
    secured.tell(&mut curl, &mut beside)?;
    curl.env("HTTP_URL", &url);
    let mut sum = run(&mut curl, &bench.log("http-curl"), SUITE_MAX)?.tally(Runner::Unittest);
    println!("curl on dunlin: {sum}");
    sum += run_browser(bench)?;
    sum += run_generated(bench, &url)?;
    let document = format!("{url}/openapi.json");
    // Events never end; curl reads them.
    let command = [
        ".venv/bin/schemathesis",
        "run",
        &document,
        "--max-examples",
        EXAMPLES,
        "--seed",
        "1",
        "--phases",
        "examples,coverage,fuzzing",
        "--exclude-path-regex",
        "events",
        "--request-timeout",
        "20",
        "--no-color",
    ];
    let mut schemathesis = in_folder("http", &command)?;
    let log = bench.log("http-schemathesis");
    let tally = run(&mut schemathesis, &log, SUITE_MAX)?.tally(Runner::Program);
    println!("schemathesis on dunlin: {tally}");
    sum += tally;
    server.kill()?;
    Ok(sum)
}

/// Clients that generators make of the description, each compiled and used.
fn run_generated(bench: &Bench, url: &str) -> Result<Tally> {
    let command = [".venv/bin/python", "-m", "unittest", "-v", "test_generated"];
    let mut clients = in_folder("http", &command)?;
    clients.env("HTTP_URL", url);
    let outcome = run(&mut clients, &bench.log("http-generated"), SUITE_MAX)?;
    let tally = outcome.tally(Runner::Unittest);
    println!("generated clients on dunlin: {tally}");
    Ok(tally)
}

/// Pages of other sites, and messages that are pages.
fn run_browser(bench: &Bench) -> Result<Tally> {
    let command = [".venv/bin/python", "-m", "unittest", "-v", "test_browser"];
    let mut browser = in_folder("http", &command)?;
    browser.env("DUNLIN", bench.dunlin()?);
    let outcome = run(&mut browser, &bench.log("http-browser"), SUITE_MAX)?;
    let tally = outcome.tally(Runner::Unittest);
    println!("Chromium on dunlin: {tally}");
    Ok(tally)
}
