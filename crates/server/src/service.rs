//! Notices to a service manager, such as systemd: the server is ready, reloads, stops, and lives.
//! The protocol is that of sd_notify(3): datagrams of `NAME=VALUE` lines.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{Logger, Remote};

/// The process that started this one, if it wants notices.
#[derive(Debug)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    log: Logger,
}

impl ServiceManager {
    /// The one that the environment names (`NOTIFY_SOCKET`), or none.
    #[must_use]
    pub fn from_environment(log: Logger) -> Self {
        Self::at(std::env::var_os("NOTIFY_SOCKET"), log)
    }

    fn at(name: Option<OsString>, log: Logger) -> Self {
        let name = name.filter(|name| !name.is_empty());
        let socket = name.and_then(|name| match open(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                let name = name.to_string_lossy();
                log.line(format_args!("cannot notify NOTIFY_SOCKET={name}: {error}"));
                None
            }
        });
        Self { socket, log }
    }

    /// Every listener accepts.
    pub fn ready(&self) {
        self.tell("READY=1\nSTATUS=serving");
    }

    /// The server stops, for this reason.
    pub fn stopping(&self, why: &str) {
        self.tell(&format!("STOPPING=1\nSTATUS={}", one_line(why)));
    }

    /// Does `work`, as the reload signal asks, and sends the notices before and after it.
    pub fn reload(&self, work: impl FnOnce()) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        work();
        self.ready();
    }

    /// It refuses to store from now on.
    pub fn draining(&self) {
        self.tell("STATUS=draining");
    }

    fn tell(&self, text: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), address) {
            let first = text.lines().next().unwrap_or_default();
            self.log.line(format_args!("cannot notify the service manager of {first}: {error}"));
        }
    }

    /// Tells that the server lives, as often as the environment asks for (`WATCHDOG_USEC`), from a
    /// thread of its own. It does so twice in that time, as long as a command could be served.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn watch(self: &std::sync::Arc<Self>, remote: Remote) -> io::Result<()> {
        let variable = |name| std::env::var(name).ok();
        let span = watchdog_span(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        let (Some(span), true) = (span, self.socket.is_some()) else { return Ok(()) };
        let manager = std::sync::Arc::clone(self);
        let watch = move || {
            loop {
                remote.take_turn();
                manager.tell("WATCHDOG=1");
                std::thread::sleep(span / 2);
            }
        };
        std::thread::Builder::new().name("watchdog".into()).spawn(watch).map(drop)
    }
}

fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::other("it is neither a path nor an abstract name with @")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok((socket, address))
}

/// How long the manager waits for a sign of life, if it asks this process for one.
fn watchdog_span(micros: Option<String>, pid: Option<String>) -> Option<Duration> {
    let is_meant = pid.is_none_or(|pid| pid.is_empty() || pid == std::process::id().to_string());
    let micros: u64 = micros?.parse().ok().filter(|micros| *micros > 0)?;
    is_meant.then_some(Duration::from_micros(micros))
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// How long a manager that does not read may hold the server up.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[test]
    fn service_managers_are_notified() {
        let path = std::env::temp_dir().join(format!("dunlin-notify-{}", std::process::id()));
        let name = format!("dunlin-notify-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&name).unwrap();
        for (listening, at) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&named).unwrap(), format!("@{name}").into()),
        ] {
            let manager = ServiceManager::at(Some(at), Logger::Quiet);
            manager.ready();
            assert!(heard(&listening).starts_with("READY=1\n"));
            manager.reload(|| {});
            assert!(heard(&listening).starts_with("RELOADING=1\nMONOTONIC_USEC="));
            assert!(heard(&listening).starts_with("READY=1\n"));
            manager.stopping("a\nb");
            assert_eq!(heard(&listening), "STOPPING=1\nSTATUS=a b");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn absent_managers_cost_nothing() {
        for name in [None, Some(""), Some("vsock:2:1"), Some("/no/such/socket")] {
            ServiceManager::at(name.map(OsString::from), Logger::Quiet).ready();
        }
    }

    #[test]
    fn watchdogs_are_of_one_process() {
        let span = |micros: &str, pid: Option<&str>| {
            watchdog_span(Some(micros.into()), pid.map(str::to_owned))
        };
        let own = std::process::id().to_string();
        assert_eq!(span("2000000", None), Some(Duration::from_secs(2)));
        assert_eq!(span("2000000", Some(&own)), Some(Duration::from_secs(2)));
        assert_eq!(span("2000000", Some("1")), None);
        assert_eq!(span("0", None), None);
        assert_eq!(span("", None), None);
        assert_eq!(watchdog_span(None, None), None);
    }
}
