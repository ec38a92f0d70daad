//! Servers of jobs that are measured beside each other: Dunlin, redis-server, beanstalkd.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::counters;
use crate::server::{Dunlin, Program, Server, listens};
use crate::steps::Bench;

/// One that runs.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// It has a queue `leased` whose elements are leased to whoever pops them.
    pub(crate) leases: bool,
    protocol: &'static str,
    server: Running,
}

enum Running {
    Dunlin {
        server: Server,
        log: PathBuf,
    },
    /// Ends with this.
    Other(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Other(child) = self {
            // Both fail only for a process that has ended already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Contender {
    /// What it speaks.
    pub(crate) fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// How often the disk was synced since the start; nothing where no one counts.
    pub(crate) fn syncs(&self) -> Result<Option<u64>> {
        match &self.server {
            Running::Dunlin { server, log } => counters::syncs(server, log),
            Running::Other(_) => Ok(None),
        }
    }
}

/// Starts those of these names, each with an empty folder.
pub(crate) fn start_all(
    bench: &Bench,
    binary: Option<&Path>,
    names: &[String],
) -> Result<Vec<Contender>> {
    names.iter().map(|name| start(bench, binary, name)).collect()
}

fn start(bench: &Bench, binary: Option<&Path>, name: &str) -> Result<Contender> {
    let folder = bench.scratch.join(format!("contender-{name}"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let folder = folder.display().to_string();
    let own = |protocol, words: &[&str]| dunlin(bench, binary, name, protocol, words);
    let always = ["--data", &folder, "--sync", "always"];
    match name {
        "dunlin-always" | "dunlin-redis" => own("redis", &always),
        "dunlin-none" => own("redis", &["--store", "none"]),
        "dunlin-beanstalkd" => own("beanstalkd", &always),
        "dunlin-http" => own("http", &always),
        "beanstalkd" => other(bench, name, "beanstalkd", &["-l", "127.0.0.1", "-p", PORT]),
        "redis-none" => redis(bench, name, &folder, &["--save", "", "--appendonly", "no"]),
        "redis-rdb" => redis(bench, name, &folder, &["--save", "1 100000 10 1000 60 10000"]),
        "redis-everysec" => redis(bench, name, &folder, &["--save", "", "--appendonly", "yes"]),
        "redis-always" => {
            let always = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
            redis(bench, name, &folder, &always)
        }
        other => Err(format!("{other}? See cargo xtask --help").into()),
    }
}

fn dunlin(
    bench: &Bench,
    binary: Option<&Path>,
    name: &str,
    protocol: &'static str,
    words: &[&str],
) -> Result<Contender> {
    let binary = binary.map_or_else(|| bench.dunlin(), |binary| Ok(binary.to_owned()))?;
    let lease = ["--queue", "leased:pop-lease=30s"];
    let words = words.iter().copied().chain(lease).map(str::to_owned).collect();
    let dunlin = Dunlin { binary, protocol, options: words, variables: Vec::new() };
    let log = bench.log(&format!("contender-{name}"));
    let mut server = Program::Dunlin(dunlin).start(&log)?;
    let address = server.wait_ready()?;
    counters::await_rest(&server, &log)?;
    let server = Running::Dunlin { server, log };
    Ok(Contender { name: name.to_owned(), address, leases: true, protocol, server })
}

fn redis(bench: &Bench, name: &str, folder: &str, words: &[&str]) -> Result<Contender> {
    let place = ["--bind", "127.0.0.1", "--port", PORT, "--dir", folder];
    other(bench, name, "redis-server", &[&place, words].concat())
}

/// A server that is given its port, [`PORT`] among the words.
fn other(bench: &Bench, name: &str, program: &'static str, words: &[&str]) -> Result<Contender> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let port = address.port().to_string();
    let log = fs::File::create(bench.log(&format!("contender-{name}")))?;
    let child = Command::new(program)
        .args(words.iter().map(|word| if *word == PORT { port.as_str() } else { word }))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{program}: {error}; apt-get install {program}"))?;
    let server = Running::Other(child);
    let protocol = program.trim_end_matches("-server");
    let end = Instant::now() + Duration::from_secs(10);
    while !listens(address) {
        if Instant::now() > end {
            return Err(format!("{name} is not ready after 10 s").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(Contender { name: name.to_owned(), address, leases: false, protocol, server })
}

/// Where a port is to be filled in.
const PORT: &str = "PORT";
