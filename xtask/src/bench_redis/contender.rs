//! The servers that are measured.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::options::Options;
use crate::Result;
use crate::counters;
use crate::server::{Dunlin, Program, Server, listens};
use crate::steps::Bench;

/// One that runs.
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// It has a queue `leased` whose elements are leased to whoever pops them.
    pub(super) leases: bool,
    server: Running,
}

enum Running {
    Dunlin {
        server: Server,
        log: PathBuf,
    },
    /// Ends with this.
    Redis(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Redis(child) = self {
            // Both fail only for a process that has ended already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Contender {
    /// How often the disk was synced since the start; nothing where no one counts.
    pub(super) fn syncs(&self) -> Result<Option<u64>> {
        match &self.server {
            Running::Dunlin { server, log } => counters::syncs(server, log),
            Running::Redis(_) => Ok(None),
        }
    }
}

/// Starts those that are asked for, each with an empty folder.
pub(super) fn start_all(bench: &Bench, options: &Options) -> Result<Vec<Contender>> {
    options.servers.iter().map(|name| start(bench, options, name)).collect()
}

fn start(bench: &Bench, options: &Options, name: &str) -> Result<Contender> {
    let folder = bench.scratch.join(format!("bench-redis-{name}"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let folder = folder.display().to_string();
    match name {
        "dunlin-always" => dunlin(bench, options, name, &["--data", &folder, "--sync", "always"]),
        "dunlin-none" => dunlin(bench, options, name, &["--store", "none"]),
        "redis-none" => redis(bench, name, &folder, &["--appendonly", "no"]),
        "redis-everysec" => redis(bench, name, &folder, &["--appendonly", "yes"]),
        "redis-always" => {
            redis(bench, name, &folder, &["--appendonly", "yes", "--appendfsync", "always"])
        }
        other => Err(format!("{other}? See cargo xtask --help").into()),
    }
}

fn dunlin(bench: &Bench, options: &Options, name: &str, words: &[&str]) -> Result<Contender> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => bench.dunlin()?,
    };
    let lease = ["--queue", "leased:pop-lease=30s"];
    let words = words.iter().copied().chain(lease).map(str::to_owned).collect();
    let dunlin = Dunlin { binary, protocol: "redis", options: words, variables: Vec::new() };
    let log = bench.log(&format!("bench-redis-{name}"));
    let mut server = Program::Dunlin(dunlin).start(&log)?;
    let address = server.wait_ready()?;
    counters::await_rest(&server, &log)?;
    let server = Running::Dunlin { server, log };
    Ok(Contender { name: name.to_owned(), address, leases: true, server })
}

fn redis(bench: &Bench, name: &str, folder: &str, words: &[&str]) -> Result<Contender> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let log = fs::File::create(bench.log(&format!("bench-redis-{name}")))?;
    let child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--dir", folder, "--save", ""])
        .args(words)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("redis-server: {error}; apt-get install redis-server"))?;
    let server = Running::Redis(child);
    let end = Instant::now() + Duration::from_secs(10);
    while !listens(address) {
        if Instant::now() > end {
            return Err(format!("{name} is not ready after 10 s").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(Contender { name: name.to_owned(), address, leases: false, server })
}
