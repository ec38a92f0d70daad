//! PostgreSQL with a table of keys and values, in a cluster of its own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Contender, READY_MAX, Running, folder, free_address, ready, spawn};
use crate::Result;
use crate::run::run;
use crate::steps::Bench;

/// The folder of its versions on Debian.
const VERSIONS: &str = "/usr/lib/postgresql";

const INIT_MAX: Duration = Duration::from_secs(60);

/// More than the document's clients.
const SETTINGS: [&str; 3] =
    ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=220"];

/// Starts it with `settings` beside its defaults; the table is of a `kind`.
pub(super) fn start(bench: &Bench, name: &str, settings: &[&str], kind: &str) -> Result<Contender> {
    let programs = programs()?;
    let place = folder(bench, name);
    let cluster = place.join("cluster");
    let user = user()?;
    if let Some([id, _]) = user {
        // It refuses to be root.
        std::os::unix::fs::chown(&place, Some(id), None)?;
    }
    let command = |program: &str| {
        let mut command = Command::new(programs.join(program));
        command.current_dir(&place);
        if let Some([id, group]) = user {
            command.uid(id).gid(group);
        }
        command
    };
    let mut init = command("initdb");
    init.arg("-D").arg(&cluster).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]);
    let outcome = run(&mut init, &bench.log("contender-initdb"), INIT_MAX)?;
    if !outcome.ended_well {
        return Err(format!("initdb: {}", outcome.tail()).into());
    }
    let address = free_address()?;
    let mut server = command("postgres");
    server.arg("-D").arg(&cluster).args(["-p", &address.port().to_string()]);
    for setting in SETTINGS.iter().chain(settings) {
        server.args(["-c", setting]);
    }
    let server = Running::Others(vec![spawn(bench, name, server)?]);
    let contender = ready(bench, name, "postgresql", address, server)?;
    let table = format!("CREATE {kind} TABLE abc (key bytea PRIMARY KEY, value bytea NOT NULL)");
    await_table(&programs, &contender, &table)?;
    Ok(contender)
}

/// It listens before it answers.
fn await_table(programs: &Path, contender: &Contender, statement: &str) -> Result<()> {
    let end = Instant::now() + READY_MAX;
    loop {
        let mut psql = Command::new(programs.join("psql"));
        psql.args(["-h", "127.0.0.1", "-p", &contender.address.port().to_string()])
            .args(["-U", "postgres", "-c", statement])
            .stdin(Stdio::null());
        let output = psql.output()?;
        if output.status.success() {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The newest that is installed.
fn programs() -> Result<PathBuf> {
    let missing = || format!("no PostgreSQL in {VERSIONS}; apt-get install postgresql");
    let folders = fs::read_dir(VERSIONS).map_err(|_| missing())?;
    let bin = |folder: fs::DirEntry| {
        let version: u32 = folder.file_name().to_str()?.parse().ok()?;
        let bin = folder.path().join("bin");
        bin.join("initdb").exists().then_some((version, bin))
    };
    let newest = folders.filter_map(|folder| bin(folder.ok()?)).max();
    Ok(newest.ok_or_else(missing)?.1)
}

/// Debian's user and group for it, where this one is root.
fn user() -> Result<Option<[u32; 2]>> {
    let id = |words: &[&str]| -> Result<u32> {
        let output = Command::new("id").args(words).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    };
    if id(&["-u"])? != 0 {
        return Ok(None);
    }
    Ok(Some([id(&["-u", "postgres"])?, id(&["-g", "postgres"])?]))
}
