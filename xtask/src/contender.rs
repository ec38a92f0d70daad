//! Servers of jobs that are measured beside each other: Dunlin by several protocols, beanstalkd,
//! redis-server, NATS JetStream and RabbitMQ, each with a folder and a port of its own; and
//! PostgreSQL, for its transactions.

mod postgresql;

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::children;
use crate::counters;
use crate::server::{Dunlin, Program, Server, listens};
use crate::steps::Bench;

/// RabbitMQ is the slowest to start.
const READY_MAX: Duration = Duration::from_secs(60);

/// One that runs.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// It has a queue `leased`: a client that pops an element there gets a lease of it.
    pub(crate) leases: bool,
    /// The folder of its data.
    pub(crate) folder: PathBuf,
    protocol: &'static str,
    server: Running,
}

enum Running {
    Dunlin {
        server: Server,
        log: PathBuf,
    },
    /// The first is the measured one; they end with this.
    Others(Vec<Child>),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Others(children) = self {
            children.iter_mut().for_each(children::end_group);
        }
    }
}

impl Contender {
    /// Its protocol.
    pub(crate) fn protocol(&self) -> &'static str {
        self.protocol
    }

    pub(crate) fn pid(&self) -> u32 {
        match &self.server {
            Running::Dunlin { server, .. } => server.pid(),
            Running::Others(children) => children.first().map_or(0, Child::id),
        }
    }

    /// How often the disk was synced since the start; nothing where no one counts.
    pub(crate) fn syncs(&self) -> Result<Option<u64>> {
        match &self.server {
            Running::Dunlin { server, log } => counters::syncs(server, log),
            Running::Others(_) => Ok(None),
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

/// Starts one with an empty folder, and waits until it is at rest.
///
/// # Errors
/// When it is not known, not installed, or not ready in time.
pub(crate) fn start(bench: &Bench, binary: Option<&Path>, name: &str) -> Result<Contender> {
    let folder = folder(bench, name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let contender = start_again(bench, binary, name)?;
    if let Running::Dunlin { server, log } = &contender.server {
        counters::await_rest(server, log)?;
    }
    Ok(contender)
}

fn folder(bench: &Bench, name: &str) -> PathBuf {
    bench.scratch.join(format!("contender-{name}"))
}

/// Starts one over the data that the one before left in its folder. It may still be reading them
/// when this returns.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_again(bench: &Bench, binary: Option<&Path>, name: &str) -> Result<Contender> {
    let place = folder(bench, name).display().to_string();
    let own = |protocol, words: &[&str]| dunlin(bench, binary, name, protocol, words);
    let always = ["--data", &place, "--sync", "always"];
    let log = |words: &[&str]| {
        let listen = ["-l", "127.0.0.1", "-p", PORT];
        silent(bench, name, "beanstalkd", "beanstalkd", &[&listen, words].concat())
    };
    let redis = |words: &[&str]| {
        let listen = ["--bind", "127.0.0.1", "--port", PORT, "--dir", &place];
        silent(bench, name, "redis", "redis-server", &[&listen, words].concat())
    };
    let unsaved = ["--save", "", "--appendonly", "yes"];
    match name {
        "dunlin-always" | "dunlin-redis" => own("redis", &always),
        "dunlin-none" => own("redis", &["--store", "none"]),
        "dunlin-beanstalkd" => own("beanstalkd", &always),
        "dunlin-http" => own("http", &always),
        "beanstalkd" => log(&[]),
        "beanstalkd-f50" => log(&["-b", &place, "-f", "50"]),
        "beanstalkd-f0" => log(&["-b", &place, "-f", "0"]),
        "redis-none" => redis(&["--save", "", "--appendonly", "no"]),
        "redis-rdb" => redis(&["--save", "1 100000 10 1000 60 10000"]),
        "redis-everysec" => redis(&unsaved),
        "redis-always" => redis(&[&unsaved[..], &["--appendfsync", "always"]].concat()),
        "dunlin-never" => own("redis", &["--data", &place, "--sync", "never"]),
        "redis-never" => redis(&[&unsaved[..], &["--appendfsync", "no"]].concat()),
        "postgresql-none" => postgresql::start(bench, name, &["fsync=off"], "UNLOGGED"),
        "postgresql-never" => postgresql::start(bench, name, &["fsync=off"], ""),
        "postgresql-always" => postgresql::start(bench, name, &[], ""),
        "nats" => nats(bench, name, &place, "2m"),
        "nats-always" => nats(bench, name, &place, "always"),
        "rabbitmq" => rabbitmq(bench, name),
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
    let (name, folder) = (name.to_owned(), folder(bench, name));
    let server = Running::Dunlin { server, log };
    Ok(Contender { name, address, leases: true, folder, protocol, server })
}

/// A server that is given its port, [`PORT`] among the words.
fn silent(
    bench: &Bench,
    name: &str,
    protocol: &'static str,
    program: &str,
    words: &[&str],
) -> Result<Contender> {
    let address = free_address()?;
    let port = address.port().to_string();
    let mut command = Command::new(program);
    command.args(words.iter().map(|word| if *word == PORT { port.as_str() } else { word }));
    let server = Running::Others(vec![spawn(bench, name, command)?]);
    ready(bench, name, protocol, address, server)
}

fn spawn(bench: &Bench, name: &str, mut command: Command) -> Result<Child> {
    let log = File::create(bench.log(&format!("contender-{name}")))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A process group of its own, so that its children end with it.
    command.process_group(0);
    let program = command.get_program().display().to_string();
    Ok(children::spawn(&mut command).map_err(|error| format!("{program}: {error}"))?)
}

fn ready(
    bench: &Bench,
    name: &str,
    protocol: &'static str,
    address: SocketAddr,
    server: Running,
) -> Result<Contender> {
    let end = Instant::now() + READY_MAX;
    while !listens(address) {
        if Instant::now() > end {
            return Err(format!("{name} is not ready after {} s", READY_MAX.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    let (name, folder) = (name.to_owned(), folder(bench, name));
    Ok(Contender { name, address, leases: false, folder, protocol, server })
}

/// The path at which Go installs it for us.
pub(crate) fn nats_server(bench: &Bench) -> PathBuf {
    bench.scratch.join("go/nats-server")
}

/// `sync` is its `sync_interval`; two minutes are its default.
fn nats(bench: &Bench, name: &str, place: &str, sync: &str) -> Result<Contender> {
    let address = free_address()?;
    let file = folder(bench, name).join("nats.conf");
    fs::write(
        &file,
        format!(
            "listen: \"{address}\"\njetstream {{\n  store_dir: \"{place}\"\n  \
             sync_interval: {sync}\n}}\n"
        ),
    )?;
    let mut command = Command::new(nats_server(bench));
    command.arg("-c").arg(file);
    let server = Running::Others(vec![spawn(bench, name, command)?]);
    ready(bench, name, "nats", address, server)
}

/// A node of its own name, with a port mapper of its own, so that one that serves is left alone.
fn rabbitmq(bench: &Bench, name: &str) -> Result<Contender> {
    let [address, mapper, peers] = [free_address()?, free_address()?, free_address()?];
    let place = folder(bench, name);
    let plugins = place.join("plugins");
    fs::write(&plugins, "[].")?;
    let mapper = mapper.port().to_string();
    let mut epmd = Command::new("epmd");
    epmd.args(["-port", &mapper, "-address", "127.0.0.1"]);
    let epmd = spawn(bench, "epmd", epmd)?;
    let mut command = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
    command
        .env("HOME", &place)
        .env("ERL_EPMD_PORT", mapper)
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODENAME", "bench@localhost")
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", address.port().to_string())
        .env("RABBITMQ_DIST_PORT", peers.port().to_string())
        .env("RABBITMQ_MNESIA_BASE", place.join("data"))
        .env("RABBITMQ_LOG_BASE", place.join("log"))
        .env("RABBITMQ_CONFIG_FILE", place.join("none"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins);
    let server = Running::Others(vec![spawn(bench, name, command)?, epmd]);
    ready(bench, name, "amqp", address, server)
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Placeholder for a port.
const PORT: &str = "PORT";
