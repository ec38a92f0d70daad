//! The command line. Its words are a contract: scripts and the other issues build on them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use disk::Choice;
use model::QueueName;
use server::{Listen, Side};

use crate::parse::{self, QueueSetting, Store, Sync};

/// A message broker: each message as durable as its sender asks.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the broker
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Look into the journal of a broker that is not running
    #[command(after_help = JOURNAL_HELP)]
    Journal {
        #[command(subcommand)]
        journal: Journal,
    },
    /// Measure a broker
    Bench {
        #[command(subcommand)]
        bench: Bench,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Journal {
    /// Recover as `serve` would, change nothing, and say what was found or what is wrong
    ///
    /// Only reads, so a copy or a read-only file system will do. Refused while a server uses the
    /// directory, since it changes the files that would be read; no server can start meanwhile.
    Verify {
        /// Its directory
        dir: PathBuf,
    },
    /// Print everything that can be read, whatever is damaged
    ///
    /// Only reads, as verify does.
    Dump {
        /// Its directory
        dir: PathBuf,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Drive a beanstalkd server, this one or another, with jobs
    #[command(after_help = BENCH_HELP)]
    Jobs(BenchJobs),
}

/// Settings of `serve`. What is `None` was neither given as a flag nor as a variable.
#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// Directory of the journal [default: ./dunlin-data]
    #[arg(long, value_name = "DIR", env = "DUNLIN_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Serve PROTOCOL (amqp, beanstalkd, redis or http) at ADDRESS; port 0 picks one [default: all,
    /// on their usual ports of 127.0.0.1]
    #[arg(
        long,
        value_name = "PROTOCOL=ADDRESS",
        env = "DUNLIN_LISTEN",
        value_delimiter = ',',
        value_parser = parse::listen
    )]
    pub(crate) listen: Option<Vec<Listen>>,
    /// Let HTTP listen on other addresses than loopback, where it asks nobody who they are
    #[arg(long, env = "DUNLIN_INSECURE", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) insecure: Option<bool>,
    /// Read settings from a TOML file; flags and variables overrule it
    #[arg(long, value_name = "FILE", env = "DUNLIN_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Largest body of a message, at most 16 MiB [default: 65535 by beanstalkd, else 16 MiB]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_MESSAGE_BYTES")]
    pub(crate) max_message_bytes: Option<usize>,
    /// Rules of a queue, as NAME:release-order=back|front, NAME:attempts-max=N (failed deliveries
    /// until a message is a dead letter; 0: any number), NAME:dead-letters=park|drop or
    /// NAME:pop-lease=TIME (an element popped by the Redis protocol comes back if its connection
    /// ends within that time and before its next command); NAME * is for all others
    #[arg(
        long,
        value_name = "NAME:SETTING",
        env = "DUNLIN_QUEUE",
        value_delimiter = ',',
        value_parser = parse::queue
    )]
    pub(crate) queue: Option<Vec<QueueSetting>>,
    /// Queue where dead letters are parked [default: DLQ]
    #[arg(
        long,
        value_name = "NAME",
        env = "DUNLIN_DEAD_LETTER_QUEUE",
        value_parser = parse::queue_name
    )]
    pub(crate) dead_letter_queue: Option<QueueName>,
    /// Side of a list by the Redis protocol that is the head of the queue, where other protocols
    /// receive: left or right [default: right, so that LPUSH sends and RPOP receives]
    #[arg(long, value_name = "SIDE", env = "DUNLIN_LIST_HEAD", value_parser = parse::list_head)]
    pub(crate) list_head: Option<Side>,
    /// Remember the names that senders give their messages for so long, so that what is sent again
    /// is stored once; never: not at all [default: 5m]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_SEND_ID_WINDOW",
        value_parser = parse::send_id_window
    )]
    pub(crate) send_id_window: Option<Duration>,
    /// Remember at most so many of these names, the latest [default: 100000]
    #[arg(
        long,
        value_name = "N",
        env = "DUNLIN_SEND_IDS_MAX",
        value_parser = parse::send_ids_max
    )]
    pub(crate) send_ids_max: Option<usize>,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

/// Settings that few will ever want to change.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits and tuning")]
pub(crate) struct Tuning {
    /// Threads that serve connections [default: 2, or 1 on fewer than four cores]
    #[arg(long, value_name = "N", env = "DUNLIN_THREADS")]
    pub(crate) threads: Option<usize>,
    /// How the journal is written: auto, direct or buffered [default: auto]
    #[arg(long, value_name = "METHOD", env = "DUNLIN_JOURNAL_IO")]
    pub(crate) journal_io: Option<Choice>,
    /// Bytes of a journal segment, the unit in which disk space comes free [default: 16777216]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_SEGMENT_BYTES")]
    pub(crate) segment_bytes: Option<u64>,
    /// Connections that may be open; more are closed at once [default: 10000]
    #[arg(long, value_name = "N", env = "DUNLIN_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,
    /// Bytes that a client may leave unread before its commands wait [default: 1048576]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_OUTPUT_BYTES")]
    pub(crate) max_output_bytes: Option<usize>,
    /// Bytes in the buffers of all clients; beyond them who holds the most is closed
    /// [default: 268435456]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_BUFFERED_BYTES")]
    pub(crate) max_buffered_bytes: Option<usize>,
    /// Close a connection that leaves a command half sent for so long, or never [default: 60s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_HALF_SENT_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) half_sent_timeout: Option<Limit>,
    /// Close a connection that is silent for so long, or never [default: never]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_IDLE_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) idle_timeout: Option<Limit>,
}

/// A timeout that may be switched off. A type of its own: to clap an `Option` is a missing flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

impl Limit {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::limit(text).map(Self)
    }
}

/// How durable a stored message is.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Policy {
    /// Keep messages in a journal, or none of them over a restart [default: journal]
    #[arg(long, value_name = "journal|none", env = "DUNLIN_STORE", value_parser = parse::store)]
    pub(crate) store: Option<Store>,
    /// When the journal is flushed: before each confirmation, at least every DURATION, or when the
    /// operating system likes [default: always]
    #[arg(
        long,
        value_name = "always|never|DURATION",
        env = "DUNLIN_SYNC",
        value_parser = parse::sync
    )]
    pub(crate) sync: Option<Sync>,
}

/// Settings of `bench jobs`.
#[derive(Debug, Args)]
pub(crate) struct BenchJobs {
    /// The server, as beanstalkd://HOST:PORT; without it one is started in this process, on a
    /// temporary directory
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<bench::jobs::Target>,
    /// Jobs to put
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) jobs: u64,
    /// Connections that share the work
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) clients: usize,
    /// Length of each body
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(crate) body: usize,
    /// Commands that each connection may have unanswered
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) pipeline: usize,
    /// What to do: put, put-delete, release or all
    #[arg(long, value_name = "MODE", default_value = "put-delete")]
    pub(crate) mode: bench::jobs::Mode,
    /// After how many releases mode release stops [default: twice the jobs]
    #[arg(long, value_name = "N")]
    pub(crate) releases: Option<u64>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the server of this process keeps its temporary directory [default: the system's]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: Policy,
}

const EXIT_STATUS: &str = "\
Exit status:
  0    it went as asked; a server was stopped in good order (SIGTERM, SIGINT)
  1    it failed; the message says why and what to do
  2    wrong usage or settings
  74   the journal could not be written; nothing was confirmed after that
  130  stopped at once by a second SIGINT";

const SERVE_HELP: &str = "\
Every setting is also a variable (shown above) and a key of the TOML file, named like the flag:
  sync = \"25ms\"
  listen = [\"beanstalkd=127.0.0.1:11300\"]
  [queues.retries]
  release-order = \"back\"
  attempts-max = 5
  dead-letters = \"park\"
  pop-lease = \"30s\"
Flags overrule variables, variables the file, the file the defaults.

Once all listeners accept, one line a listener and then `ready` go to standard output:
  listening beanstalkd 127.0.0.1:11300
  ready

Signals: SIGTERM or SIGINT stops in good order, a second SIGINT at once; SIGUSR1 refuses puts from
then on (drain mode); SIGHUP writes the counters to the log.

Examples:
  dunlin serve
  dunlin serve --data /var/lib/dunlin --sync 25ms
  dunlin serve --store none --listen beanstalkd=0.0.0.0:11300
  dunlin serve --queue 'retries:release-order=back'

Exit status: 0 stopped in good order, 1 did not start, 2 wrong settings, 74 the journal could not
be written, 130 stopped at once by a second SIGINT";

const JOURNAL_HELP: &str = "\
Examples:
  dunlin journal verify ./dunlin-data
  dunlin journal dump ./dunlin-data | less
  dunlin journal dump --json ./dunlin-data | jq 'select(.kind == \"segment\")'

Exit status: 0 the journal is sound, 1 it is not or cannot be read";

const BENCH_HELP: &str = "\
Examples:
  dunlin bench jobs
  dunlin bench jobs --clients 1 --body 1024 --jobs 20000 --mode put
  dunlin bench jobs --target beanstalkd://127.0.0.1:11300 --pipeline 64 --json";
