//! A server to drive, and the options of most tests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use bench::BenchError;
use bench::jobs::{Mode, Options, Report, Target, run};

/// A beanstalkd without a log on a loopback port of its own, stopped with the value.
pub(crate) struct Beanstalkd {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Beanstalkd {
    pub(crate) fn start() -> Self {
        let address = own_address();
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let child = Command::new("beanstalkd")
            .args(["-l", &ip, "-p", &port])
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need beanstalkd: apt-get install beanstalkd");
        let mut server = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !answers(address) {
            let ended = server.child.try_wait().expect("the child can be asked");
            assert!(ended.is_none(), "beanstalkd cannot listen on {address}");
            assert!(Instant::now() < deadline, "beanstalkd does not listen on {address}");
            std::thread::yield_now();
        }
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        self.child.kill().expect("the child can be stopped");
        self.child.wait().expect("the child ends");
    }
}

/// True if a server answers there. A connection alone proves nothing: to a port without a listener
/// it may come from this very port and be answered by itself. And one that was closed before it was
/// served was seen to take beanstalkd's next one with it.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let itself = stream.local_addr().ok() == Some(address);
    let asked = !itself && stream.write_all(b"list-tube-used\r\n").is_ok();
    let mut answer = [0; 64];
    asked && stream.read(&mut answer).is_ok_and(|count| answer.starts_with(b"USING") && count > 5)
}

/// A small run: ten clients, fifty outstanding commands at most.
pub(crate) fn options(address: SocketAddr, mode: Mode) -> Options {
    let mut options = Options::new(Target::beanstalkd(address));
    (options.jobs, options.clients, options.pipeline) = (1_000, 10, 5);
    options.mode = mode;
    options.reply_timeout = Duration::from_secs(30);
    options
}

pub(crate) fn quietly(options: &Options) -> Result<Report, BenchError> {
    run(options, &AtomicBool::new(false), &mut |_| {})
}

/// On a loopback host that no other server has: a port that is free now may be taken the next
/// moment, unless no other process looks for one on that host.
fn own_address() -> SocketAddr {
    static SERVERS: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, high, low, SERVERS.fetch_add(1, Ordering::Relaxed));
    let listener = TcpListener::bind((host, 0)).expect("a loopback port is free");
    listener.local_addr().expect("a listener has an address")
}
