//! The binary as a child process.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use testkit::patience::within;
pub(crate) use testkit::{Directory, LineClient as Client, patience};

/// `dunlin`, in a directory, without the variables of the test process.
pub(crate) fn dunlin(directory: &Directory) -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_dunlin")), directory)
}

/// The same through a shell, which sets up something first: `SETUP; exec dunlin ARGUMENTS`.
pub(crate) fn dunlin_after(directory: &Directory, setup: &str) -> Command {
    let mut command = clean(Command::new("sh"), directory);
    let script = format!("{setup}; exec {} \"$@\"", env!("CARGO_BIN_EXE_dunlin"));
    command.args(["-c", &script, "sh"]);
    command
}

fn clean(mut command: Command, directory: &Directory) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DUNLIN_") {
            command.env_remove(name);
        }
    }
    command.current_dir(&directory.0);
    command
}

/// Standard outputs that take nothing: one for reading only, a full disk, a pipe without a reader.
pub(crate) fn unwritable() -> [Stdio; 3] {
    let read_only = File::open("/dev/null").unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (reader, nobody_reads) = std::io::pipe().unwrap();
    drop(reader);
    [Stdio::from(read_only), Stdio::from(full), Stdio::from(nobody_reads)]
}

/// A server that is ready.
pub(crate) struct Server {
    child: Child,
    /// From when it is ready until it ends.
    stdout: Option<BufReader<ChildStdout>>,
    pub(crate) lines: Vec<String>,
}

/// Listens on a free port.
pub(crate) const ANY: [&str; 2] = ["--listen", "beanstalkd=127.0.0.1:0"];

impl Server {
    /// Starts `serve` and reads until it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, stdout: None, lines: Vec::new() };
        let (lines, stdout) =
            within("it is ready", move || (lines_until_ready(&mut stdout), stdout));
        if lines.last().is_none_or(|line| line != "ready") {
            panic!("it did not start: {}", read_all(server.child.stderr.take().unwrap()));
        }
        (server.lines, server.stdout) = (lines, Some(stdout));
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let line = self.lines[0].strip_prefix("listening beanstalkd ").unwrap();
        line.parse().unwrap()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(self.address())
    }

    /// Connects until the server accepts no more; gives the last connection.
    pub(crate) fn connect_until_refused(&self) -> Option<Client> {
        let mut last = None;
        while let Ok(socket) = TcpStream::connect(self.address()) {
            last = Some(Client { socket: BufReader::new(socket) });
        }
        last
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> &Self {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        self
    }

    /// Bytes of its log that wait to be read.
    pub(crate) fn unread_log(&self) -> u64 {
        rustix::io::ioctl_fionread(self.child.stderr.as_ref().unwrap()).unwrap()
    }

    /// Waits for its end: the exit status, and the text of standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let (stderr, stdout) = (self.child.stderr.take().unwrap(), self.stdout.take().unwrap());
        let (stderr, rest) = within("it ends", move || (read_all(stderr), read_all(stdout)));
        assert_eq!(rest, "", "standard output ends with `ready`");
        (self.child.wait().unwrap(), stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only where a test failed before its end.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The lines that it prints until it is ready, or ends.
fn lines_until_ready(stdout: &mut impl BufRead) -> Vec<String> {
    let mut lines = Vec::new();
    for line in stdout.lines() {
        lines.push(line.unwrap());
        if lines.last().is_some_and(|line| line == "ready") {
            break;
        }
    }
    lines
}

fn read_all(mut source: impl std::io::Read) -> String {
    let mut text = String::new();
    source.read_to_string(&mut text).unwrap();
    text
}

/// Runs to the end: exit code, standard output, standard error.
pub(crate) fn run(mut command: Command) -> (Option<i32>, String, String) {
    let output = within(&format!("{command:?} ends"), move || command.output().unwrap());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
