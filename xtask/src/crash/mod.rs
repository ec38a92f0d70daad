//! Real crashes: the binary under load of real clients, killed with -9 at random moments.
//!
//! Each round starts the server on the same data directory, and sometimes kills it while it
//! recovers. Then the round compares everything the server holds with the ledger of the clients,
//! loads it from several connections, and kills it. The server is given small segments, so that
//! rolls, snapshots and compaction are always under way. kill -9 loses nothing under any sync
//! policy: written bytes are in the hands of the operating system. Power cuts are the simulation's
//! part.
//!
//! The clients are beanstalkd's here, and JMS's in `jms`.

mod check;
mod jms;
mod ledger;
mod load;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use testkit::Rng;

use self::ledger::{Ledger, Place};
use self::load::{Client, Owned};
use crate::Result;
use crate::cli::clock_seed;
use crate::run::run;
use crate::server::{Dunlin, Program, Server};
use crate::steps::Bench;
use crate::tally::Tally;

const KILLS: u64 = 240;
const SYNCS: [&str; 3] = ["always", "25ms", "never"];

const CLIENTS: u64 = 4;
/// Above this many jobs the clients take more than they put.
const JOBS_WANTED: usize = 3000;

/// A segment holds a few hundred of the run's jobs, so that each round rolls over several.
const SEGMENT_BYTES: &str = "1048576";

/// Options of a crash run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// JMS clients instead of beanstalkd's
    #[arg(long)]
    pub(crate) jms: bool,
    /// Kills in all, shared out over the sync policies
    #[arg(long, value_name = "N", default_value_t = KILLS)]
    pub(crate) kills: u64,
    /// Repeat a run's choices; threads and timing stay real [default: the clock]
    #[arg(long, value_name = "N", default_value_t = clock_seed(), hide_default_value = true)]
    pub(crate) seed: u64,
    /// always, never or a duration; each gets a data directory and its share of the kills
    #[arg(long = "sync", value_name = "POLICY", default_values = SYNCS)]
    pub(crate) syncs: Vec<String>,
    /// The server [default: the release build]
    #[arg(long, value_name = "PATH")]
    pub(crate) binary: Option<PathBuf>,
    /// One more option of the server; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) extra: Vec<String>,
    /// Run beanstalkd instead (for JMS: Artemis), to try the test itself
    #[arg(long, conflicts_with = "binary")]
    stand_in: bool,
    /// The folder of the data directories.
    #[arg(skip)]
    scratch: PathBuf,
}

impl Options {
    /// The defaults: a seed from the clock, all three policies.
    pub(crate) fn new() -> Options {
        Options {
            jms: false,
            kills: KILLS,
            seed: clock_seed(),
            syncs: SYNCS.map(str::to_owned).to_vec(),
            binary: None,
            extra: Vec::new(),
            stand_in: false,
            scratch: PathBuf::new(),
        }
    }

    /// The same for this bench: the release build is built, unless another server is to run.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn on(mut self, bench: &Bench) -> Result<Options> {
        self.scratch.clone_from(&bench.scratch);
        if self.binary.is_none() && !self.stand_in {
            self.binary = Some(bench.dunlin()?);
        }
        Ok(self)
    }

    /// The policies, each with its share of the kills.
    fn shares(&self) -> impl Iterator<Item = (&str, u64)> {
        let policies = self.syncs.len() as u64;
        (0..).zip(&self.syncs).map(move |(index, sync)| {
            (sync.as_str(), self.kills / policies + u64::from(index < self.kills % policies))
        })
    }

    /// A folder for one run, without the data of an earlier one.
    fn fresh_data(&self, name: &str) -> Result<PathBuf> {
        let data = self.scratch.join(format!("crash-{name}"));
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir_all(data.join("journal"))?;
        Ok(data)
    }

    /// Ours for a protocol, or the original of beanstalkd.
    fn program(&self, protocol: &'static str, sync: &str, journal: &Path) -> Program {
        let journal = journal.display().to_string();
        let extra = self.extra.iter().cloned();
        let Some(binary) = &self.binary else {
            let words = ["-b".to_owned(), journal, "-f0".to_owned()];
            return Program::Original(words.into_iter().chain(extra).collect());
        };
        let words = ["--data".to_owned(), journal, "--sync".to_owned(), sync.to_owned()];
        Program::Dunlin(Dunlin {
            binary: binary.clone(),
            protocol,
            options: words.into_iter().chain(extra).collect(),
            variables: vec![("DUNLIN_SEGMENT_BYTES", SEGMENT_BYTES)],
        })
    }

    /// Prints the faults, and the command to try it again.
    fn report(&self, violations: &[String], sync: &str, data: &Path) {
        for violation in violations.iter().take(20) {
            println!("crash: {violation}");
        }
        println!("crash: data and server log are kept in {}", data.display());
        let jms = if self.jms { " --jms" } else { "" };
        let Options { seed, kills, .. } = self;
        println!("cargo xtask crash{jms} --seed {seed} --kills {kills} --sync {sync}");
    }
}

/// Runs all policies and counts each kill that was survived.
pub(crate) fn run_all(options: &Options) -> Result<Tally> {
    if options.jms {
        return jms::run_all(options);
    }
    println!("crash: seed {}", options.seed);
    let mut tally = Tally::default();
    for (sync, kills) in options.shares() {
        let begun = Instant::now();
        let mut run = Run::new(options, sync, kills)?;
        match run.rounds() {
            Ok(()) if run.violations().is_empty() => fs::remove_dir_all(&run.data)?,
            outcome => {
                tally.failed += 1;
                let error = outcome.err().map(|error| error.to_string());
                let violations: Vec<_> = error.into_iter().chain(run.violations()).collect();
                options.report(&violations, sync, &run.data);
            }
        }
        tally.passed += run.survived;
        let seconds = begun.elapsed().as_secs();
        println!("crash: --sync {sync}: {} of {kills} kills survived, {seconds} s", run.survived);
        println!("crash: {} jobs put, {} of the kills before ready", run.put(), run.early);
    }
    Ok(tally)
}

/// One data directory and its kills.
struct Run {
    program: Program,
    data: PathBuf,
    ledger: Mutex<Ledger>,
    random: Rng,
    kills: u64,
    survived: u64,
    /// Kills that hit a server which was not ready yet.
    early: u64,
    /// Kills since the last check: they are counted when it has found everything in order.
    unchecked: u64,
    /// The largest id that a check has seen.
    checked: u64,
    /// How long the last start took.
    start: Duration,
    /// True once a broker has been ready on the directory.
    was_ready: bool,
}

impl Run {
    fn new(options: &Options, sync: &str, kills: u64) -> Result<Run> {
        let data = options.fresh_data(sync)?;
        Ok(Run {
            program: options.program("beanstalkd", sync, &data.join("journal")),
            data,
            ledger: Mutex::default(),
            random: Rng::new(options.seed),
            kills,
            survived: 0,
            early: 0,
            unchecked: 0,
            checked: 0,
            start: Duration::from_millis(20),
            was_ready: false,
        })
    }

    fn rounds(&mut self) -> Result<()> {
        while self.survived + self.unchecked < self.kills {
            while self.random.one_in(3) {
                self.kill_during_start()?;
            }
            // A broker that was killed during its first start has left no journal.
            if self.random.one_in(4) && self.was_ready {
                verify(&self.program, &self.data)?;
            }
            let (server, address) = self.start_and_check()?;
            if !self.violations().is_empty() {
                return Ok(());
            }
            self.load_and_kill(server, address)?;
        }
        self.finish()
    }

    /// A last check; the server ends when asked to, with everything kept, and hands out all jobs.
    fn finish(&mut self) -> Result<()> {
        let (server, _) = self.start_and_check()?;
        let status = server.terminate()?;
        if matches!(self.program, Program::Dunlin(_)) && !status.success() {
            return Err(format!("ended with {status} after SIGTERM").into());
        }
        let (_server, address) = self.start_and_check()?;
        check::drain(address, self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn kill_during_start(&mut self) -> Result<()> {
        let server = self.program.start(&self.data.join("log"))?;
        let moment = self.random.below(1 + self.start.as_micros() as u64 * 5 / 4);
        thread::sleep(Duration::from_micros(moment));
        server.kill()?;
        self.early += 1;
        self.unchecked += 1;
        Ok(())
    }

    fn start_and_check(&mut self) -> Result<(Server, SocketAddr)> {
        let begun = Instant::now();
        let mut server = self.program.start(&self.data.join("log"))?;
        let address = server.wait_ready()?;
        self.start = begun.elapsed();
        self.was_ready = true;
        let ledger = self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.checked = check::check(address, ledger, self.checked, &mut self.random)?;
        if matches!(self.program, Program::Dunlin(_)) {
            // beanstalkd does not log a `release` with delay 0, so a kill may undo the priority
            // that it set.
            check::check_places(address, ledger, &mut self.random)?;
        }
        if ledger.violations.is_empty() {
            self.survived += self.unchecked;
            self.unchecked = 0;
        }
        Ok((server, address))
    }

    fn load_and_kill(&mut self, server: Server, address: SocketAddr) -> Result<()> {
        let moment = Duration::from_millis(5 + self.random.below(300));
        let mut clients = self.clients(address)?;
        thread::scope(|scope| {
            for client in clients.drain(..) {
                scope.spawn(move || client.run());
            }
            thread::sleep(moment);
            server.kill()
        })?;
        self.unchecked += 1;
        Ok(())
    }

    fn clients(&mut self, address: SocketAddr) -> Result<Vec<Client<'_>>> {
        let ledger = self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner);
        let takes = if ledger.count_there() > JOBS_WANTED { 7 } else { 4 };
        let mut parked = ledger.places().into_iter().filter(is_parked);
        let parked: Vec<_> = parked.by_ref().map(|(number, id, _)| Owned { number, id }).collect();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let client = Client::open(address, &self.ledger, self.random.fork(), takes)?;
            clients.push(client);
        }
        for (index, job) in parked.into_iter().enumerate() {
            let client = index % clients.len();
            clients.get_mut(client).into_iter().for_each(|client| client.parked.push(job));
        }
        Ok(clients)
    }

    fn violations(&self) -> Vec<String> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).violations.clone()
    }

    fn put(&self) -> u64 {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).count_put()
    }
}

fn is_parked((_, _, place): &(u64, u64, Place)) -> bool {
    matches!(place.state, "buried" | "delayed")
}

/// Asserts that `dunlin journal verify`, which changes nothing, finds a directory sound in which a
/// broker was ready once.
pub(crate) fn verify(program: &Program, data: &Path) -> Result<()> {
    let Program::Dunlin(dunlin) = program else { return Ok(()) };
    let journal = data.join("journal");
    let mut verify = Command::new(&dunlin.binary);
    verify.args(["journal", "verify"]).arg(journal);
    match run(&mut verify, &data.join("verify"), Duration::from_secs(60))? {
        outcome if outcome.ended_well => Ok(()),
        outcome => Err(format!("journal verify: {}", outcome.tail()).into()),
    }
}
