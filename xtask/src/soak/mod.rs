//! The soak: mixed load for hours, with crashes and restarts under it.
//!
//! A run is a row of lives of one server on one data directory. In each life two workers a protocol
//! send, take and settle; then it is killed with -9, or asked to end, under load. Every few lives,
//! and at the end, a life without workers gives out everything, and the ledgers say whether
//! something is missing or came back. Memory and disk are measured each second: they are flat if
//! the maximum of the last third of the run is at most that of the first third, plus a quarter,
//! plus 16 MiB. Lives grow with the run, so that a slow leak is seen in a long one.

mod amqp;
mod gauges;
mod ledger;
mod options;
mod workers;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use testkit::Rng;

use self::gauges::{Gauges, Sample, measure};
use self::ledger::Ledger;
use self::options::MINUTE;
pub(crate) use self::options::Options;
use self::workers::{VOLATILE, connect, empty, lock, return_taken, work};
use crate::Result;
use crate::crash::verify;
use crate::server::{Dunlin, Program, Server};
use crate::steps::Bench;
use crate::tally::Tally;

const PROTOCOLS: [&str; 5] = ["beanstalkd", "redis", "http", "amqp", VOLATILE];
const WORKERS_EACH: usize = 2;
/// A few hundred messages, so that each life rolls over many.
const SEGMENT_BYTES: &str = "4194304";
/// Lives of a run, about; of a long one more.
const LIVES: u32 = 36;
const LIFE_MAX: Duration = Duration::from_secs(3600);
/// Lives between two that give out everything.
const LIVES_UNCHECKED: u64 = 8;
const SAMPLE_SPAN: Duration = Duration::from_secs(1);

/// Runs for as long as was asked, or until Ctrl-C, and judges.
///
/// # Errors
/// When a server cannot be started or asked.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    let mut soak = Soak::new(bench, options)?;
    println!("soak: seed {}", options.seed);
    let outcome = soak.run();
    soak.report(outcome.err().map(|error| error.to_string()))
}

/// The run.
struct Soak {
    program: Program,
    data: PathBuf,
    /// The addresses of these protocols in every life; beanstalkd's port is a new one each time.
    redis: SocketAddr,
    http: SocketAddr,
    amqp: SocketAddr,
    shared: Arc<Shared>,
    random: Rng,
    begun: Instant,
    span: Duration,
    minutes: u32,
    json: bool,
    gauges: Gauges,
    kills: u64,
    stops: u64,
}

/// The part that workers share.
#[derive(Default)]
struct Shared {
    ledgers: [Mutex<Ledger>; PROTOCOLS.len()],
    /// Faults that are not in the ledgers.
    problems: Mutex<Vec<String>>,
    /// The server is being ended.
    is_ending: AtomicBool,
    /// By Ctrl-C, which the server hears as well.
    interrupted: Arc<AtomicBool>,
}

impl Soak {
    fn new(bench: &Bench, options: &Options) -> Result<Soak> {
        let data = bench.scratch.join("soak");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir_all(data.join("journal"))?;
        let [redis, http, amqp] = [free_address()?, free_address()?, free_address()?];
        let binary = options.binary.clone().map_or_else(|| bench.dunlin(), Ok)?;
        let shared = Arc::new(Shared::default());
        // The first Ctrl-C ends the run, the second the process.
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&shared.interrupted))?;
        flag::register(SIGINT, Arc::clone(&shared.interrupted))?;
        Ok(Soak {
            program: program(binary, &data, [("redis", redis), ("http", http), ("amqp", amqp)]),
            data,
            redis,
            http,
            amqp,
            shared,
            random: Rng::new(options.seed),
            begun: Instant::now(),
            span: options.span(),
            minutes: 0,
            json: options.json,
            gauges: Gauges::default(),
            kills: 0,
            stops: 0,
        })
    }

    fn run(&mut self) -> Result<()> {
        while !self.is_over() && self.shared.violations().is_empty() {
            self.live()?;
            if (self.kills + self.stops).is_multiple_of(LIVES_UNCHECKED) {
                self.check()?;
            }
        }
        self.check()
    }

    fn is_over(&self) -> bool {
        self.shared.is_interrupted() || self.begun.elapsed() >= self.span
    }

    /// A life under load, and its end.
    fn live(&mut self) -> Result<()> {
        let (server, addresses) = self.start()?;
        let backlog = 200 + self.random.below(4_000) as usize;
        let most = (2 * self.span / LIVES).min(LIFE_MAX);
        let life = most * (1 + self.random.below(1_000) as u32) / 1_000;
        self.shared.is_ending.store(false, Ordering::Relaxed);
        let workers = self.hire(addresses, backlog);
        self.watch(&server, Instant::now() + life)?;
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if self.random.one_in(4) {
            self.stops += 1;
            terminate(server)?;
        } else {
            self.kills += 1;
            server.kill()?;
        }
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".into()))
    }

    /// Starts the server. All messages taken before are ready again, and those in memory alone are
    /// forgotten.
    fn start(&self) -> Result<(Server, [SocketAddr; PROTOCOLS.len()])> {
        let mut server = self.program.start(&self.data.join("log"))?;
        let addresses = [server.wait_ready()?, self.redis, self.http, self.amqp, self.amqp];
        for ((protocol, address), ledger) in
            PROTOCOLS.into_iter().zip(addresses).zip(&self.shared.ledgers)
        {
            return_taken(protocol, address)?;
            if protocol == VOLATILE {
                lock(ledger).forgotten();
            }
        }
        Ok((server, addresses))
    }

    fn hire(
        &mut self,
        addresses: [SocketAddr; PROTOCOLS.len()],
        backlog: usize,
    ) -> Vec<JoinHandle<()>> {
        let mut workers = Vec::new();
        for (index, address) in addresses.into_iter().enumerate() {
            for _ in 0..WORKERS_EACH {
                let (shared, random) = (Arc::clone(&self.shared), self.random.fork());
                let work = move || shared.work(index, address, random, backlog);
                workers.push(thread::spawn(work));
            }
        }
        workers
    }

    /// Measures until a moment, or until Ctrl-C.
    fn watch(&mut self, server: &Server, until: Instant) -> Result<()> {
        while !self.shared.is_interrupted() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(SAMPLE_SPAN));
            match measure(server.pid(), &self.data.join("journal")) {
                Ok(sample) => self.gauges.add(sample),
                Err(_) if self.shared.is_interrupted() => {}
                Err(error) => return Err(format!("the server is gone: {error}").into()),
            }
            if self.begun.elapsed() >= MINUTE * (self.minutes + 1) {
                self.minutes += 1;
                self.tell();
            }
        }
        Ok(())
    }

    /// Takes everything that is there, by a life without workers that ends as it is asked to.
    fn check(&self) -> Result<()> {
        let (server, addresses) = self.start()?;
        for ((protocol, address), ledger) in
            PROTOCOLS.into_iter().zip(addresses).zip(&self.shared.ledgers)
        {
            empty(&mut *connect(protocol, address)?, ledger)?;
        }
        terminate(server)?;
        verify(&self.program, &self.data)
    }

    /// The line of a minute.
    fn tell(&self) {
        let (minute, (settled, backlog)) = (self.minutes, self.shared.counts());
        let Sample { resident_bytes, disk_bytes } = self.gauges.last();
        let Soak { kills, stops, .. } = self;
        if self.json {
            println!(
                "{{\"minute\":{minute},\"messages\":{settled},\"backlog\":{backlog},\
                 \"kills\":{kills},\"stops\":{stops},\"resident_bytes\":{resident_bytes},\
                 \"disk_bytes\":{disk_bytes}}}"
            );
            return;
        }
        println!(
            "soak: minute {minute}: {settled} messages settled, {backlog} there, {kills} kills, \
             {stops} stops, {} MiB of memory, {} MiB on disk",
            resident_bytes >> 20,
            disk_bytes >> 20
        );
    }

    /// Reports the faults, and whether memory and disk were flat.
    fn report(&self, error: Option<String>) -> Result<Tally> {
        let violations: Vec<_> = error.into_iter().chain(self.shared.violations()).collect();
        for violation in violations.iter().take(20) {
            println!("soak: {violation}");
        }
        let (settled, _) = self.shared.counts();
        let (kills, stops) = (self.kills, self.stops);
        println!(
            "soak: {settled} messages settled in {} s, {kills} kills, {stops} stops, {} violations",
            self.begun.elapsed().as_secs(),
            violations.len()
        );
        let mut tally = Tally { passed: kills + stops, failed: violations.len() as u64 };
        for (what, trend) in [("memory", self.gauges.memory()), ("disk", self.gauges.disk())] {
            println!("soak: {what}: {trend}");
            *(if trend.is_flat() { &mut tally.passed } else { &mut tally.failed }) += 1;
        }
        if violations.is_empty() {
            fs::remove_dir_all(&self.data)?;
        } else {
            println!("soak: data and server log are kept in {}", self.data.display());
        }
        Ok(tally)
    }
}

impl Shared {
    /// A worker's life. It is a finding if that ends before the server is ended.
    fn work(&self, protocol: usize, address: SocketAddr, mut random: Rng, backlog: usize) {
        let (Some(name), Some(ledger)) = (PROTOCOLS.get(protocol), self.ledgers.get(protocol))
        else {
            return;
        };
        let outcome = connect(name, address)
            .and_then(|mut client| work(&mut *client, ledger, &mut random, backlog));
        let expected = self.is_ending.load(Ordering::Relaxed) || self.is_interrupted();
        if let (Err(error), false) = (outcome, expected) {
            let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
            problems.push(format!("a connection of {name} ended: {error}"));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Messages that are done, and those that may be there.
    fn counts(&self) -> (u64, usize) {
        self.ledgers.iter().fold((0, 0), |(settled, backlog), ledger| {
            let ledger = lock(ledger);
            (settled + ledger.settled, backlog + ledger.backlog())
        })
    }

    fn violations(&self) -> Vec<String> {
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let named = PROTOCOLS.iter().zip(&self.ledgers).flat_map(|(protocol, ledger)| {
            let violations = lock(ledger).violations.clone();
            violations.into_iter().map(move |violation| format!("{protocol}: {violation}"))
        });
        problems.into_iter().chain(named).collect()
    }
}

fn program(binary: PathBuf, data: &Path, listening: [(&str, SocketAddr); 3]) -> Program {
    let mut options = vec!["--data".to_owned(), data.join("journal").display().to_string()];
    for (protocol, address) in listening {
        options.extend(["--listen".to_owned(), format!("{protocol}={address}")]);
    }
    Program::Dunlin(Dunlin {
        binary,
        protocol: "beanstalkd",
        options,
        variables: vec![("DUNLIN_SEGMENT_BYTES", SEGMENT_BYTES)],
    })
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn terminate(server: Server) -> Result<()> {
    match server.terminate()? {
        status if status.success() => Ok(()),
        status => Err(format!("it ended with {status} when it was asked to").into()),
    }
}
