//! The process of the JMS clients, `interop/jms/crash`. It outlives every kill of the broker.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::server::java_command;

/// To start Java takes seconds; all else, less.
const WORK_MAX: Duration = Duration::from_secs(60);
/// To take everything that is left takes seconds; a request without an answer, twenty.
const FINISH_MAX: Duration = Duration::from_secs(120);

/// The running clients. Dropping them kills them.
pub(super) struct Clients {
    child: Child,
    enough: Receiver<u64>,
}

impl Clients {
    /// Starts the clients. They write to `ledger`, and their errors to `log`.
    ///
    /// # Errors
    /// When there is no Java, or nothing was compiled.
    pub(super) fn start(ledger: &Path, log: &Path, seed: u64) -> Result<Clients> {
        let mut log = OpenOptions::new().create(true).append(true).open(log)?;
        let mut child = java_command("crash")?
            .arg("dunlin.crash.Load")
            .arg(ledger)
            .arg(seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?)
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no standard output")?).lines();
        let (sender, enough) = channel();
        thread::spawn(move || {
            for line in lines.map_while(io::Result::ok) {
                // Both fail only when the run is over.
                let _ = writeln!(log, "{line}");
                if let Some(epoch) = line.strip_prefix("enough ").and_then(|n| n.parse().ok()) {
                    let _ = sender.send(epoch);
                }
            }
        });
        Ok(Clients { child, enough })
    }

    /// Lets the clients work on the broker of life `epoch` until it has confirmed `count` sends,
    /// acknowledgements or commits.
    ///
    /// # Errors
    /// When the clients have ended, or the broker confirms too slowly.
    pub(super) fn work(&mut self, epoch: u64, address: SocketAddr, count: u64) -> Result<()> {
        self.tell(&format!("broker {epoch} {address} {count}"))?;
        let end = Instant::now() + WORK_MAX;
        while let Ok(done) = self.enough.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            if done == epoch {
                return Ok(());
            }
        }
        Err(format!("life {epoch} of the broker did not confirm {count} units of work").into())
    }

    /// Lets the clients stop, take everything that is left, and end.
    ///
    /// # Errors
    /// When they do not, or not in time.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.tell("finish")?;
        // Without input they end.
        self.child.stdin = None;
        let end = Instant::now() + FINISH_MAX;
        while Instant::now() < end {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the clients ended with {status}").into()),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
        Err("the clients cannot take what is left".into())
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or("the clients have been told to finish")?;
        writeln!(stdin, "{line}").map_err(|error| format!("the clients have ended: {error}"))?;
        Ok(())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already, as intended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
