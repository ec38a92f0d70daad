//! The command line. Its words are a contract: scripts and the other issues build on them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use disk::Choice;
use model::{QueueName, QueueRule, RuleKey};
use server::{AllowedHost, Side};

use crate::bench::cli::Bench;
use crate::listen::{self, ListenItem};
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
    #[command(flatten)]
    Client(Client),
    /// Look into a journal
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

/// Commands that speak to a running broker.
#[derive(Debug, Subcommand)]
pub(crate) enum Client {
    /// Send a message to a queue
    #[command(after_help = SEND_HELP)]
    Send(Send),
    /// Receive messages; each is deleted once it was written to standard output
    #[command(after_help = RECEIVE_HELP)]
    Receive(Receive),
    /// List the queues
    #[command(after_help = QUEUES_HELP)]
    Queues {
        #[command(flatten)]
        server: ServerAt,
    },
    /// Look at the messages of a queue without receiving them
    #[command(after_help = BROWSE_HELP)]
    Browse(Browse),
    /// Move messages from one queue to another
    #[command(after_help = MOVE_HELP)]
    Move(MoveMessages),
    /// Delete the messages of a queue that nobody holds
    #[command(after_help = PURGE_HELP)]
    Purge(Purge),
    /// Look at the rules of queues, or give a queue rules of its own while the broker runs
    #[command(after_help = POLICY_HELP)]
    Policy {
        #[command(subcommand)]
        policy: QueuePolicy,
    },
    /// Look at dead letters, or send them again
    #[command(after_help = DEAD_HELP)]
    Dead {
        #[command(subcommand)]
        dead: Dead,
    },
}

/// A running broker.
#[derive(Debug, Args)]
pub(crate) struct ServerAt {
    /// URL of its HTTP listener; `host:port` will do
    #[arg(long, value_name = "URL", env = "DUNLIN_URL", default_value = "http://127.0.0.1:8422")]
    pub(crate) url: String,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Settings of `send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Where to
    pub(crate) queue: String,
    /// The message; - or nothing: what comes from standard input
    #[arg(conflicts_with = "lines")]
    pub(crate) body: Option<String>,
    /// Each line of standard input is a message
    #[arg(long)]
    pub(crate) lines: bool,
    /// How durable: persistent (as the store is set), none, written or synced
    #[arg(long, value_name = "LEVEL")]
    pub(crate) persistence: Option<String>,
    /// 0 to 9, which is the most urgent [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) priority: Option<u8>,
    /// Hide it for so long, such as 5s
    #[arg(long, value_name = "DURATION")]
    pub(crate) delay: Option<String>,
    /// After so long it is a dead letter
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Its group: one consumer at a time receives the messages of a group, in their order
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// A property that selectors and JMS clients see; numbers, true and false are such. All of them
    /// together may have some 12 KiB
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse::property)]
    pub(crate) property: Vec<(String, String)>,
    /// Your own name for it: sent again, it is stored once. With --lines that of each line is
    /// KEY#NUMBER. The broker remembers names for 5 minutes, the latest 100,000, unless told
    /// otherwise (--send-id-window, --send-ids-max)
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// What it is, such as text/plain, which JMS clients get as a text message
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `receive`.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    /// Where from
    pub(crate) queue: String,
    /// Go on until a signal comes
    #[arg(long, conflicts_with_all = ["count", "wait", "keep"])]
    pub(crate) follow: bool,
    /// With --follow: wait for the broker where it is not there, or goes, and go on once it is
    /// back; what was written and could not be acknowledged comes again
    #[arg(long, requires = "follow")]
    pub(crate) reconnect: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// How long to wait for each [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) wait: Option<Duration>,
    /// How long the broker waits for the acknowledgement [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) lease: Option<String>,
    /// Give everything back at the end instead of deleting it; what is kept for longer than its
    /// lease comes again meanwhile
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `browse`.
#[derive(Debug, Args)]
pub(crate) struct Browse {
    /// Whose messages
    pub(crate) queue: String,
    /// Only those that match, in the words of JMS: "region = 'EU' AND n > 5"
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Only those in this state: ready, leased, delayed or buried
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// The most messages
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max: usize,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `move`.
#[derive(Debug, Args)]
pub(crate) struct MoveMessages {
    /// Where from
    pub(crate) from: String,
    /// Where to
    pub(crate) to: String,
    /// Only those that match
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// The most messages [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `purge`.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Whose messages
    pub(crate) queue: String,
    /// Only those that match
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Only those in this state: ready, delayed or buried
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueuePolicy {
    /// List the queues that have rules of their own
    Ls {
        #[command(flatten)]
        server: ServerAt,
    },
    /// Show the rules of a queue, and where each is from
    Show {
        /// Whose; also of one that is not there
        queue: String,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Give a queue rules of its own, or change some of them
    Set {
        /// Whose; the subscriptions of a topic of that name have them too
        queue: String,
        /// Each as --queue of serve takes it, such as max-messages=1000; none is no bound
        #[arg(required = true, value_name = "SETTING=VALUE", value_parser = parse::rule_setting)]
        rules: Vec<QueueRule>,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Take a queue's own rules away, so that what is configured holds again
    Reset {
        /// Whose
        queue: String,
        /// Only these, such as max-messages [default: all]
        #[arg(value_name = "SETTING", value_parser = parse::rule_key)]
        rules: Vec<RuleKey>,
        #[command(flatten)]
        server: ServerAt,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List the dead letters: why each is one, and where it was
    Ls {
        /// Where they are parked
        #[arg(long, value_name = "NAME", env = "DUNLIN_DEAD_LETTER_QUEUE", default_value = "DLQ")]
        queue: String,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Show one message whole
    Show {
        /// Its number
        id: u64,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Send dead letters where they came from, as if they had never failed
    Replay(Replay),
}

/// Settings of `dead replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The number of one
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) id: Option<u64>,
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
    /// To this queue instead
    #[arg(long, value_name = "QUEUE")]
    pub(crate) to: Option<String>,
    /// Only those that match
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Where they are parked
    #[arg(long, value_name = "NAME", env = "DUNLIN_DEAD_LETTER_QUEUE", default_value = "DLQ")]
    pub(crate) queue: String,
    #[command(flatten)]
    pub(crate) server: ServerAt,
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
    /// Say what is wrong with a directory that is refused, and what going on without it would lose
    ///
    /// Mends a lost, damaged or older control file (epoch), and a log whose last file is lost or
    /// older than the others: with --accept-loss the log goes on where the files that are there
    /// end. Look for the right files first, since what is gone is gone for good then; and keep a
    /// copy.
    /// Damage inside of the log, and files that were cut, are not mended: salvage copies what is
    /// left of such a directory.
    Repair {
        /// Its directory
        dir: PathBuf,
        /// Do it; without this nothing is changed
        #[arg(long)]
        accept_loss: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Copy everything but damaged records into a new directory, and name what is lost
    ///
    /// For a directory whose log is damaged, or cut, so that neither serve nor repair takes it. DIR
    /// is only read. The new directory is complete once it has its name; start the broker with
    /// --data NEW. A message whose record is damaged is lost and named. A message whose deletion
    /// is damaged is there again, so consumers may see a message twice.
    Salvage {
        /// The damaged directory
        dir: PathBuf,
        /// The new directory: not there yet, or empty; it takes as much room as the messages
        #[arg(long, value_name = "NEW")]
        to: PathBuf,
        /// One JSON object
        #[arg(long)]
        json: bool,
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
    /// Tell what each file of the log is kept for: what lives in it, and whose oldest message
    ///
    /// Of a directory it only reads, as verify does, and it is refused while a server uses it. A
    /// running broker is asked by HTTP.
    Explain {
        /// Its directory, or the URL of a running broker
        #[arg(value_name = "DIR|URL")]
        place: String,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// Settings of `serve`. What is `None` was neither given as a flag nor as a variable.
#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// Directory of the journal [default: ./dunlin-data]
    #[arg(long, value_name = "DIR", env = "DUNLIN_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Serve PROTOCOL (amqp, beanstalkd, redis or http) at ADDRESS, which is HOST:PORT (port 0
    /// picks one) or unix:PATH, with ,mode=0660 and ,group=NAME where these are to be others
    /// [default: all on their usual ports of localhost: 127.0.0.1 and ::1]
    #[arg(
        long,
        value_name = "PROTOCOL=ADDRESS",
        env = "DUNLIN_LISTEN",
        value_delimiter = ',',
        value_parser = listen::listen
    )]
    pub(crate) listen: Option<Vec<ListenItem>>,
    /// Serve PROTOCOL at an ADDRESS where other machines reach it, or let the listener that is
    /// there: nobody is asked who they are, and everybody can read, send and delete messages
    #[arg(
        long,
        value_name = "[PROTOCOL=]ADDRESS",
        env = "DUNLIN_INSECURE_LISTEN",
        value_delimiter = ',',
        value_parser = listen::insecure_listen
    )]
    pub(crate) insecure_listen: Option<Vec<ListenItem>>,
    /// The same for all listeners
    #[arg(
        long,
        env = "DUNLIN_INSECURE",
        num_args = 0..=1,
        default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub(crate) insecure: Option<bool>,
    /// Start though the machine's clock is more than 7 days ahead of the journal and messages or
    /// keys would end by it: the clock is right
    #[arg(
        long,
        env = "DUNLIN_ACCEPT_CLOCK",
        num_args = 0..=1,
        default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub(crate) accept_clock: Option<bool>,
    /// Names by which HTTP requests may call the broker, beside addresses and localhost: a name
    /// such as broker.example, .example.com for all below it, or * for any, which lets a web page
    /// whose owner points a name here read and delete messages
    #[arg(
        long,
        value_name = "NAME",
        env = "DUNLIN_ALLOWED_HOSTS",
        value_delimiter = ',',
        value_parser = parse::allowed_host
    )]
    pub(crate) allowed_hosts: Option<Vec<AllowedHost>>,
    /// Read settings from a TOML file; flags and variables overrule it
    #[arg(long, value_name = "FILE", env = "DUNLIN_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Largest body of a message, at most 16 MiB, and a 32nd of --memory-limit [default: 65535 by
    /// beanstalkd, else as much as that]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_MESSAGE_BYTES", value_parser = parse::size)]
    pub(crate) max_message_bytes: Option<usize>,
    /// Rules of a queue, as NAME:release-order=back|front, NAME:attempts-max=N (failed deliveries
    /// until a message is a dead letter; 0: any number),
    /// NAME:dead-letters=park-persistent|park|drop (what is not persistent is deleted, is a dead
    /// letter as well, or all are deleted), NAME:pop-lease=TIME (an element popped by the Redis
    /// protocol comes back if its connection ends within that time and before its next command),
    /// NAME:max-messages=N, NAME:max-bytes=N (what it may hold, or each subscription of a topic of
    /// that name), NAME:when-full=pace|reject|drop-oldest|dead-letter|disconnect (pace: who sends
    /// waits; disconnect: a topic's subscriber that does not read is disconnected, a queue
    /// rejects), NAME:target-age=TIME (senders are paced so that messages wait no longer),
    /// NAME:redelivery-delay=TIME (a message that failed or was released is hidden for so long),
    /// NAME:redelivery-factor=N (it grows so with each failed delivery), NAME:redelivery-max=TIME
    /// (the longest delay; none: ten times the first) or NAME:redelivery-jitter=N (share of the
    /// delay, 0 to 1, by which it varies); NAME * is for all others
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
    /// Refuse what waits for a place in a full queue when nothing that waits there has gone on for
    /// so long [default: 30s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_PACE_MAX",
        value_parser = parse::duration
    )]
    pub(crate) pace_max: Option<Duration>,
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
    #[arg(long, value_name = "BYTES", env = "DUNLIN_SEGMENT_BYTES", value_parser = parse::bytes)]
    pub(crate) segment_bytes: Option<u64>,
    /// Bytes that the data directory may take on the device, such as 500M or 10G: at the limit it
    /// takes only what deletes, until there is room again [default: as many as there are]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_DISK_LIMIT", value_parser = parse::bytes)]
    pub(crate) disk_limit: Option<u64>,
    /// Bytes of memory that messages and connections may take, such as 256M or 4G, 64M at least:
    /// beyond it bodies leave memory for the data directory, and what would still not fit is
    /// refused [default: a quarter of the machine's, or of what its cgroup leaves the process]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MEMORY_LIMIT", value_parser = parse::memory)]
    pub(crate) memory_limit: Option<u64>,
    /// Connections that may be open, and ten more for HTTP from this machine. For one more, one
    /// that has sent no command gives way; where there is none it is closed [default: 10000]
    #[arg(long, value_name = "N", env = "DUNLIN_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,
    /// Bytes that a client may leave unread before its commands wait [default: 1048576]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_OUTPUT_BYTES", value_parser = parse::size)]
    pub(crate) max_output_bytes: Option<usize>,
    /// Bytes in the buffers of all clients; beyond them who holds the most is closed. And of what
    /// requests and answers of HTTP hold; beyond them who sends waits
    /// [default: 268435456]
    #[arg(
        long,
        value_name = "BYTES",
        env = "DUNLIN_MAX_BUFFERED_BYTES",
        value_parser = parse::size
    )]
    pub(crate) max_buffered_bytes: Option<usize>,
    /// Close a connection that leaves a command half sent for so long, or never [default: 60s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_HALF_SENT_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) half_sent_timeout: Option<Limit>,
    /// Close a connection that is silent for so long, or never; who waits for an answer, or has
    /// subscribed by the Redis protocol, is not silent [default: never]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_IDLE_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) idle_timeout: Option<Limit>,
    /// Close a connection of HTTP that has no request open for so long, or never: longer than a
    /// proxy or load balancer in front keeps it [default: 75s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_HTTP_IDLE_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) http_idle_timeout: Option<Limit>,
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

const EXIT_STATUS: &str = "\
Exit status:
  0    it went as asked; a server was stopped in good order (SIGTERM, SIGINT)
  1    it failed; the message says why and what to do
  2    wrong usage or settings
  3    there is nothing: no such queue or message, or no message came in time
  74   the journal could not be written; nothing was confirmed after that
  130  stopped at once by a second SIGINT";

const SEND_HELP: &str = "\
Prints the number of the message, with --lines how many there were. When it ends with 0 they are as
durable as was asked for.

Examples:
  dunlin send mail 'hello'
  dunlin send mail --property region=EU --priority 9 < body.bin
  seq 1000000 | dunlin send numbers --lines

Exit status: 0 it is stored, 1 it is not known to be, 2 wrong usage";

const RECEIVE_HELP: &str = "\
Each message is written with a line end, and acknowledged once that is out: with those that came
with it, up to 64, or after 0.1 s. Should it be killed before that, they come again. SIGINT and
SIGTERM end it within a second, and what was not written by then is given back, as is what cannot be
written: a full disk, a pipe that nobody reads, a descriptor that is open for reading only. Where
standard output was closed when it started (>&-) the system puts /dev/null there, which takes
everything: what is received then is gone.

Examples:
  dunlin receive mail --wait 20s
  dunlin receive mail --follow --json | jq .body
  dunlin receive mail --count 10 --keep

Exit status: 0 as many as asked for (with --follow: a signal came), 1 it failed, 2 wrong usage,
3 fewer came in time or before a signal";

const QUEUES_HELP: &str = "\
Exit status: 0 these are all, be it none, 1 it failed, 2 wrong usage";

const BROWSE_HELP: &str = "\
Examples:
  dunlin browse mail --state leased
  dunlin browse mail --selector \"region = 'EU'\" --json | jq .body

Exit status: 0 these are all that match, be it none, 1 it failed, 2 wrong usage or selector, 3 there
is no such queue";

const MOVE_HELP: &str = "\
Only what is ready is moved. It goes in steps: should it be broken off, what was moved stays so, and
asked again it does the rest.

Exit status: 0 done, be it that nothing matched, 1 it failed, 2 wrong usage or selector, 3 there is
no such queue";

const PURGE_HELP: &str = "\
It asks first, where somebody sits at a terminal. It goes in steps: should it be broken off, what
was deleted stays so, and asked again it does the rest.

Exit status: 0 done, be it that nothing matched, 1 it failed or who was asked did not say yes, 2
wrong usage or selector, 3 there is no such queue";

const POLICY_HELP: &str = "\
What is set holds at once and over restarts, and goes before what is configured. Who waits for a
place is looked at again; a bound that becomes narrower deletes nothing before something is sent.

Examples:
  dunlin policy set mail max-messages=1000 when-full=reject
  dunlin policy show mail
  dunlin policy reset mail when-full
  dunlin policy reset mail

Exit status: 0 done, 1 it failed, 2 wrong usage or a value that may not be";

const DEAD_HELP: &str = "\
Examples:
  dunlin dead ls
  dunlin dead show 17
  dunlin dead replay 17
  dunlin dead replay --all --selector \"region = 'EU'\"

Exit status: 0 done, 1 it failed, 2 wrong usage, 3 there is no such message";

const SERVE_HELP: &str = "\
Every setting is also a variable (shown above) and a key of the TOML file, named like the flag:
  sync = \"25ms\"
  listen = [\"beanstalkd=127.0.0.1:11300\"]
  [queues.retries]
  release-order = \"back\"
  attempts-max = 5
  dead-letters = \"park\"
  pop-lease = \"30s\"
  max-messages = 100000
  redelivery-delay = \"1s\"
  redelivery-factor = 2
  when-full = \"drop-oldest\"
Flags overrule variables, variables the file, the file the defaults.

Once all listeners accept, one line an address and then `ready` go to standard output:
  listening beanstalkd 127.0.0.1:11300
  listening beanstalkd [::1]:11300
  ready

Nobody is asked who they are. So all listeners are on loopback or Unix sockets; another address is
refused, unless --insecure-listen names it.

Signals: SIGTERM or SIGINT stops in good order, a second SIGINT at once; SIGUSR1 drains: from
then on it refuses what would be stored; SIGHUP writes the counters to the log.

Examples:
  dunlin serve
  dunlin serve --data /var/lib/dunlin --sync 25ms
  dunlin serve --store none --listen beanstalkd=localhost:11300
  dunlin serve --listen redis=unix:/run/dunlin/redis.sock,mode=0660
  dunlin serve --queue 'retries:release-order=back'
  dunlin serve --queue 'prices:max-messages=1000,when-full=drop-oldest'

Exit status: 0 stopped in good order, 1 did not start, 2 wrong settings, 74 the journal could not
be written, 130 stopped at once by a second SIGINT";

const JOURNAL_HELP: &str = "\
Examples:
  dunlin journal verify ./dunlin-data
  dunlin journal dump ./dunlin-data | less
  dunlin journal dump --json ./dunlin-data | jq 'select(.kind == \"segment\")'
  dunlin journal explain http://127.0.0.1:8422

What a file of the log is kept for:
  writing      the log goes on in it
  live         records in it still matter
  large-batch  the same, and it is too large to be compacted with the settings of today
  compaction   what matters of it is being copied forward
  reader       a message is being read from it
  snapshot     nothing in it matters, once a snapshot is past it
  spare        it is ready to be written to
  nothing      it may be used again at once

Exit status: 0 the journal is sound, 1 it is not or cannot be read";
