//! The same with JMS: Qpid's client on queues and on a topic with two durable subscriptions,
//! transacted and not.
//!
//! The clients are a Java process of their own, which outlives the kills and writes a ledger. A
//! broker listens at another port in each life, so that a client knows of which life a connection
//! was. At the end the kills stop, everything is taken from everywhere, and the ledger is judged as
//! a whole.

mod client;
mod judge;
mod ledger;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use testkit::Rng;

use self::client::Clients;
use self::judge::{count, judge};
use self::ledger::Ledger;
use super::{Options, verify};
use crate::Result;
use crate::amqp::in_folder;
use crate::run::run;
use crate::server::{Java, Program, Server};
use crate::tally::Tally;

/// Registries can be slow.
const BUILD_MAX: Duration = Duration::from_secs(1800);
/// Sends, acknowledgements and commits that a broker confirms before it is killed.
const CONFIRMED_MAX: u64 = 400;
/// The kill comes a little later, so that it hits everything.
const DELAY_MICROS_MAX: u64 = 20_000;

/// Runs all policies and counts each kill that was survived.
///
/// # Errors
/// When the clients cannot be built.
pub(super) fn run_all(options: &Options) -> Result<Tally> {
    println!("crash: JMS, seed {}", options.seed);
    build(options)?;
    let mut tally = Tally::default();
    for (sync, kills) in options.shares() {
        let data = options.fresh_data(&format!("jms-{sync}"))?;
        let begun = Instant::now();
        let violations = match kill_and_judge(options, sync, kills, &data) {
            Ok(violations) => violations,
            Err(error) => vec![error.to_string()],
        };
        let seconds = begun.elapsed().as_secs();
        println!("crash: JMS, --sync {sync}: {kills} kills in {seconds} s");
        if violations.is_empty() {
            tally.passed += kills;
            fs::remove_dir_all(&data)?;
        } else {
            tally.failed += 1;
            options.report(&violations, sync, &data);
        }
    }
    Ok(tally)
}

fn build(options: &Options) -> Result<()> {
    let modules = ["mvn", "-B", "-ntp", "-pl", "brokers,crash", "process-classes"];
    let log = options.scratch.join("crash-build.log");
    let outcome = run(&mut in_folder("jms", &modules)?, &log, BUILD_MAX)?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("the JMS clients cannot be built\n{}", outcome.tail()).into())
}

/// One data directory, its kills, and the broken rules that the ledger shows.
fn kill_and_judge(options: &Options, sync: &str, kills: u64, data: &Path) -> Result<Vec<String>> {
    let file = data.join("ledger");
    Run {
        clients: Clients::start(&file, &data.join("clients.log"), options.seed)?,
        program: program(options, sync, &data.join("journal")),
        data: data.to_owned(),
        random: Rng::new(options.seed),
        epoch: 0,
        start: Duration::from_millis(20),
    }
    .rounds(kills)?;
    let ledger = Ledger::read(&fs::read_to_string(&file)?)?;
    println!("crash: {}", count(&ledger));
    Ok(judge(&ledger))
}

fn program(options: &Options, sync: &str, journal: &Path) -> Program {
    if options.binary.is_some() {
        return options.program("amqp", sync, journal);
    }
    let arguments = vec![journal.display().to_string(), "0".to_owned(), sync.to_owned()];
    Program::Java(Java {
        module: "brokers",
        name: "artemis",
        class: "Artemis",
        protocol: "amqp",
        arguments,
    })
}

struct Run {
    clients: Clients,
    program: Program,
    data: PathBuf,
    random: Rng,
    /// Lives of the broker so far in which it was ready.
    epoch: u64,
    /// How long the last start took.
    start: Duration,
}

impl Run {
    fn rounds(&mut self, kills: u64) -> Result<()> {
        let mut killed = 0;
        while killed < kills {
            let server = self.begin()?;
            thread::sleep(Duration::from_micros(self.random.below(DELAY_MICROS_MAX)));
            if self.random.one_in(10) {
                self.stop(server)?;
                continue;
            }
            server.kill()?;
            killed += 1;
            if self.random.one_in(4) {
                verify(&self.program, &self.data)?;
            }
            while killed < kills && self.random.one_in(4) {
                self.kill_during_start()?;
                killed += 1;
            }
        }
        let server = self.begin()?;
        self.clients.finish()?;
        self.stop(server)
    }

    /// Starts the broker and lets the clients loose on it, until it has confirmed a little.
    fn begin(&mut self) -> Result<Server> {
        let begun = Instant::now();
        let mut server = self.program.start(&self.data.join("log"))?;
        let address = server.wait_ready()?;
        self.start = begun.elapsed();
        self.epoch += 1;
        self.clients.work(self.epoch, address, 1 + self.random.below(CONFIRMED_MAX))?;
        Ok(server)
    }

    fn kill_during_start(&mut self) -> Result<()> {
        let server = self.program.start(&self.data.join("log"))?;
        let moment = self.random.below(1 + self.start.as_micros() as u64 * 5 / 4);
        thread::sleep(Duration::from_micros(moment));
        server.kill()
    }

    /// The orderly end, under load as well.
    fn stop(&self, server: Server) -> Result<()> {
        let status = server.terminate()?;
        if matches!(self.program, Program::Dunlin(_)) && !status.success() {
            return Err(format!("ended with {status} after SIGTERM").into());
        }
        Ok(())
    }
}
