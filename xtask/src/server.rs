//! Starts the servers under test, ours and the original, and ends them by their own process.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::children;
use crate::repository::root;

/// A server that needs longer than this to get ready hangs.
const READY_MAX: Duration = Duration::from_secs(30);

/// Enough for everything that is asked of a broker or client here, and less than the machine's.
const JAVA_MEMORY: &str = "2g";

/// Which server to start.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Ours.
    Dunlin(Dunlin),
    /// beanstalkd itself, and its options but for the address.
    Original(Vec<String>),
    /// Redis itself, in memory only.
    Redis,
    /// One of `interop/jms`.
    Java(Java),
}

/// Our binary and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct Dunlin {
    /// The path of the program.
    pub(crate) binary: PathBuf,
    /// Which protocol it listens for.
    pub(crate) protocol: &'static str,
    /// The arguments behind `serve`, but for the address.
    pub(crate) options: Vec<String>,
    /// Variables of its environment.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

/// A broker that comes as a class, and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct Java {
    /// The module of `interop/jms` that has it.
    pub(crate) module: &'static str,
    /// The word for it in logs and folders.
    pub(crate) name: &'static str,
    /// The class in `dunlin.interop`.
    pub(crate) class: &'static str,
    /// Which of its listeners to use.
    pub(crate) protocol: &'static str,
    /// The arguments behind the class.
    pub(crate) arguments: Vec<String>,
}

/// A running server. Dropping it kills it as `kill -9` does.
pub(crate) struct Server {
    child: Child,
    ready: Receiver<SocketAddr>,
}

impl Program {
    /// Starts the server and does not wait for it. Its log is appended to `log`.
    pub(crate) fn start(&self, log: &Path) -> Result<Server> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        match self {
            Program::Dunlin(dunlin) => start_dunlin(dunlin, log),
            Program::Original(options) => {
                start_silent("beanstalkd", ["-l", "127.0.0.1", "-p"], options, log)
            }
            Program::Redis => {
                let options = ["--save", ""].map(str::to_owned);
                start_silent("redis-server", ["--bind", "127.0.0.1", "--port"], &options, log)
            }
            Program::Java(java) => start_java(java, log),
        }
    }

    /// The word by which the foreign clients' tests know the server.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Program::Dunlin(_) => "dunlin",
            Program::Original(_) | Program::Redis => "original",
            Program::Java(java) => java.name,
        }
    }

    /// The protocol of its clients.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            Program::Dunlin(dunlin) => dunlin.protocol,
            Program::Original(_) => "beanstalkd",
            Program::Redis => "redis",
            Program::Java(java) => java.protocol,
        }
    }
}

impl Server {
    /// Waits until the server accepts connections and says where.
    ///
    /// # Errors
    /// When the server ended or took too long.
    pub(crate) fn wait_ready(&mut self) -> Result<SocketAddr> {
        match self.ready.recv_timeout(READY_MAX) {
            Ok(address) => Ok(address),
            Err(RecvTimeoutError::Timeout) => Err("not ready after 30 s".into()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(format!("ended before it was ready: {}", self.child.wait()?).into())
            }
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server for its counters (SIGHUP), which go to its log.
    pub(crate) fn ask_counters(&self) -> Result<()> {
        Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status()?;
        Ok(())
    }

    /// Ends the server with SIGKILL at once.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks the server to end (SIGTERM) and waits for it.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let end = Instant::now() + READY_MAX;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err("still running 30 s after SIGTERM".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}

fn start_dunlin(dunlin: &Dunlin, log: File) -> Result<Server> {
    let mut command = Command::new(&dunlin.binary);
    command
        .args(["serve", "--listen", &format!("{}=127.0.0.1:0", dunlin.protocol)])
        .args(&dunlin.options)
        .envs(dunlin.variables.iter().copied());
    start_announcing(command, dunlin.protocol, log)
}

fn start_java(java: &Java, log: File) -> Result<Server> {
    let mut command = java_command(java.module)?;
    command.arg(format!("dunlin.interop.{}", java.class)).args(&java.arguments);
    start_announcing(command, java.protocol, log)
}

/// Java with the classes of a module of `interop/jms`. `mvn process-classes` leaves the class
/// path beside them.
pub(crate) fn java_command(module: &str) -> Result<Command> {
    java_command_of(&[module])
}

/// The same with the classes of several.
pub(crate) fn java_command_of(modules: &[&str]) -> Result<Command> {
    let mut path = Vec::new();
    for module in modules {
        let target = root().join("interop/jms").join(module).join("target/classes");
        path.extend([target.display().to_string(), java_libraries(module)?]);
    }
    let mut command = Command::new("java");
    command.arg(format!("-Xmx{JAVA_MEMORY}")).args(["-cp", &path.join(":")]);
    Ok(command)
}

/// The class path of a module of `interop/jms`, but for its own classes.
pub(crate) fn java_libraries(module: &str) -> Result<String> {
    let path = root().join("interop/jms").join(module).join("target/classpath");
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Starts a server that prints where it listens.
fn start_announcing(mut command: Command, protocol: &'static str, log: File) -> Result<Server> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = children::spawn(&mut command)
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    let (sender, ready) = channel();
    thread::spawn(move || {
        if let Some(address) = read_address(stdout, protocol) {
            // The receiver is gone when the server was killed meanwhile.
            let _ = sender.send(address);
        }
    });
    Ok(Server { child, ready })
}

/// The address of the `listening` line, once the `ready` line has come too.
fn read_address(stdout: ChildStdout, protocol: &str) -> Option<SocketAddr> {
    let listening = format!("listening {protocol} ");
    let mut address = None;
    for line in BufReader::new(stdout).lines() {
        let line = line.ok()?;
        if let Some(found) = line.strip_prefix(&listening) {
            address = found.parse().ok();
        }
        if line == "ready" {
            return address;
        }
    }
    None
}

/// Starts a server that does not say where it listens, nor when: it is given a free port, which
/// follows `listen`, and tried.
fn start_silent(program: &str, listen: [&str; 3], options: &[String], log: File) -> Result<Server> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = Command::new(program);
    command.args(listen).arg(address.port().to_string()).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = children::spawn(&mut command).map_err(|error| format!("{program}: {error}"))?;
    let (sender, ready) = channel();
    thread::spawn(move || {
        let end = Instant::now() + READY_MAX;
        while Instant::now() < end && !listens(address) {
            thread::sleep(Duration::from_millis(5));
        }
        // The receiver is gone when the server was killed meanwhile.
        let _ = sender.send(address);
    });
    Ok(Server { child, ready })
}

/// True if a server listens. A connection to a port without a listener may come from this very
/// port, and be answered by itself: that is no server.
pub(crate) fn listens(address: SocketAddr) -> bool {
    let ends = |stream: TcpStream| Some((stream.local_addr().ok()?, stream.peer_addr().ok()?));
    let ends = TcpStream::connect(address).ok().and_then(ends);
    ends.is_some_and(|(local, peer)| local != peer)
}
