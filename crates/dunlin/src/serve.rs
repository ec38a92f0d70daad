//! `dunlin serve`.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use server::{
    Config, Listening, Logger, PassedSocket, Server, ServiceManager, StartError, process, signals,
};

use crate::cli::Serve;
use crate::client::table::say;
use crate::exit::Error;
use crate::variables::Origins;
use crate::{settings, variables};

/// Checks the settings.
pub(crate) fn check(serve: Serve) -> Result<(), Error> {
    let origins = Origins::of(&serve);
    let checked = settings::config(serve).and_then(|config| {
        Server::check(&config).map_err(Error::Start)?;
        say(format!("sound: {} listeners\n", config.listen.len()).as_bytes())
    });
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for complaint in variables::complaints(names) {
        Logger::Stderr.line(format_args!("{complaint}"));
    }
    checked.map_err(|error| origins.explain(error))
}

/// Serves until a signal or a failure ends it.
pub(crate) fn run(serve: Serve) -> Result<(), Error> {
    let origins = Origins::of(&serve);
    serve_until_end(serve).map_err(|error| origins.explain(error))
}

fn serve_until_end(serve: Serve) -> Result<(), Error> {
    // First, while there is one thread: this takes the variables away.
    let passed = PassedSocket::from_environment();
    let deaf = |error| Error::Other(format!("cannot listen to signals: {error}"));
    let signals = signals::Caught::now().map_err(deaf)?;
    process::harden()
        .map_err(|error| Error::Other(format!("cannot forbid core dumps: {error}")))?;
    let passed = passed.map_err(|fault| Error::Start(StartError::Passed(fault)))?;
    let asked = serve.clone();
    let config = Config { passed, ..settings::config(serve)? };
    process::warn_of_root(Logger::Stderr);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for complaint in variables::complaints(names) {
        Logger::Stderr.line(format_args!("{complaint}"));
    }
    allocator::keep_within(config.memory_bytes());
    let remote = Arc::new(OnceLock::new());
    let manager = Arc::new(ServiceManager::from_environment(Logger::Stderr));
    let again = move || read_again(&asked);
    signals.obey(Arc::clone(&remote), Arc::clone(&manager), again).map_err(deaf)?;
    let running = Server::start(config).map_err(Error::Start)?;
    remote.get_or_init(|| running.remote());
    announce(running.addresses());
    give_back_memory().map_err(|error| Error::Other(format!("cannot start a thread: {error}")))?;
    manager.ready();
    let watched = manager.watch(running.remote());
    watched.map_err(|error| Error::Other(format!("cannot watch: {error}")))?;
    running.wait().map_err(|failure| {
        manager.stopping(&failure.to_string());
        Error::Failed(failure)
    })?;
    Logger::Stderr.line(format_args!("stopped"));
    Ok(())
}

/// The settings as they are now. The file is read again, and has to be one that can be: a pipe
/// would keep the thread that obeys signals.
fn read_again(asked: &Serve) -> Result<Config, String> {
    if let Some(file) = &asked.config
        && std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file())
    {
        return Err(format!("{} is no file that can be read twice", file.display()));
    }
    settings::config(asked.clone()).map_err(|error| error.to_string())
}

/// Once a second a small process gives back freed memory: the buffers of connections that have
/// become idle, and memory that a start used for reading. A large one keeps it longer, for a queue
/// that fills again soon: see ADR 20.
fn give_back_memory() -> std::io::Result<()> {
    let thread =
        std::thread::Builder::new().name("memory".to_owned()).stack_size(MEMORY_STACK_BYTES);
    thread.spawn(|| {
        let mut before = 0;
        loop {
            std::thread::sleep(GIVE_BACK_EVERY);
            let resident = resident_bytes().unwrap_or(u64::MAX);
            if resident != before && resident < SMALL_BYTES {
                allocator::give_back();
            }
            before = resident_bytes().unwrap_or(u64::MAX);
        }
    })?;
    Ok(())
}

/// Bytes of memory that this process has.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// How often freed memory is looked for.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);

/// A process with less memory than this gives back freed memory.
const SMALL_BYTES: u64 = 128 * 1024 * 1024;

/// Of a thread that only sleeps and asks.
const MEMORY_STACK_BYTES: usize = 64 * 1024;

/// Prints the addresses of the listeners, then `ready`, for the parent process.
fn announce(listeners: &[Listening]) {
    let mut stdout = std::io::stdout().lock();
    let lines = listeners
        .iter()
        .try_for_each(|it| writeln!(stdout, "listening {} {}", it.scheme(), it.endpoint))
        .and_then(|()| writeln!(stdout, "ready"))
        .and_then(|()| stdout.flush());
    if let Err(error) = lines {
        Logger::Stderr.line(format_args!("cannot tell that it is ready: {error}"));
    }
}
