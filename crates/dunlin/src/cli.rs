//! The command line. Its words are a contract: scripts and the other issues build on them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use disk::Choice;
use model::{QueueName, QueueRule, RuleKey};
use server::{AllowedHost, Side};

use crate::bench::cli::Bench;
use crate::client::tables_cli::{TABLE_HELP, Table};
use crate::listen::{self, ListenItem};
use crate::parse::{self, QueueSetting, Store, Sync};
use crate::user::cli::{USER_HELP, UserCommand};

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
    Serve(Box<Serve>),
    #[command(flatten)]
    Client(Client),
    /// Look into a journal
    #[command(after_help = JOURNAL_HELP)]
    Journal {
        #[command(subcommand)]
        journal: Journal,
    },
    /// Check the settings of the broker without running it
    Config {
        #[command(subcommand)]
        config: ConfigCommand,
    },
    /// Change or list the users that may log in
    #[command(after_help = USER_HELP)]
    User {
        #[command(subcommand)]
        user: UserCommand,
    },
    /// Measure a broker
    Bench {
        #[command(subcommand)]
        bench: Bench,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check file, variables and flags as `serve` would, with the files of users and certificates
    #[command(after_help = CONFIG_CHECK_HELP)]
    Check(Box<Serve>),
}

/// Commands that speak to a running broker.
#[derive(Debug, Subcommand)]
pub(crate) enum Client {
    /// Send a message to a queue
    #[command(after_help = SEND_HELP)]
    Send(Send),
    /// Receive messages; each is deleted once it is written to standard output
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
    /// Delete the messages of a queue, but those that a consumer holds
    #[command(after_help = PURGE_HELP)]
    Purge(Purge),
    /// Show the rules of queues, or set rules while the broker runs
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
    /// Read and change tables: keys with values
    #[command(after_help = TABLE_HELP)]
    Table {
        #[command(subcommand)]
        table: Table,
    },
    /// Check that the broker serves, for containers and monitors
    #[command(after_help = HEALTH_HELP)]
    Health(Health),
}

/// A running broker.
#[derive(Debug, Args)]
pub(crate) struct ServerAt {
    /// URL of its HTTP listener; `host:port` will do
    #[arg(long, value_name = "URL", env = "DUNLIN_URL", default_value = "http://127.0.0.1:8422")]
    pub(crate) url: String,
    /// File with the roots, PEM, that sign the broker's certificate, for https [default: those of
    /// web browsers]
    #[arg(long, value_name = "FILE", env = "DUNLIN_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// Log in as this user; its password is asked for, or in --password-file
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// File with the user's password in its first line
    #[arg(long, value_name = "FILE", env = "DUNLIN_PASSWORD_FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// File with a token in its first line, in place of a user
    #[arg(long, value_name = "FILE", env = "DUNLIN_TOKEN_FILE", conflicts_with = "user")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Settings of `send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The target queue
    pub(crate) queue: String,
    /// The message; without it, or with -, standard input is the message
    #[arg(conflicts_with = "lines")]
    pub(crate) body: Option<String>,
    /// Each line of standard input is a message
    #[arg(long)]
    pub(crate) lines: bool,
    /// How durable: persistent (as the store is set), none, written or synced
    #[arg(long, value_name = "LEVEL")]
    pub(crate) persistence: Option<String>,
    /// Priority from 0 to 9; 9 is the most urgent [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) priority: Option<u8>,
    /// Hide it for this time, such as 5s
    #[arg(long, value_name = "DURATION")]
    pub(crate) delay: Option<String>,
    /// Time to live: it becomes a dead letter after this time
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Its group: one consumer at a time receives the messages of a group, in their order
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// A property that selectors and JMS clients see; numbers, true and false keep their type. All
    /// together have at most 12 KiB
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse::property)]
    pub(crate) property: Vec<(String, String)>,
    /// Deduplication id: a message that is sent again under it is stored once. With --lines each
    /// line has KEY#NUMBER. The broker remembers the latest 100,000 ids for 5 minutes by default
    /// (--dedup-window, --dedup-max-ids)
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Content type, such as text/plain, which JMS clients receive as a text message
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `receive`.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    /// The source queue
    pub(crate) queue: String,
    /// Receive until a signal comes
    #[arg(long, conflicts_with_all = ["count", "wait", "keep"])]
    pub(crate) follow: bool,
    /// With --follow: wait for an absent broker and go on once it is back; messages that were
    /// written and not acknowledged come again
    #[arg(long, requires = "follow")]
    pub(crate) reconnect: bool,
    /// Number of messages
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// Time to wait for each message [default: no wait]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) wait: Option<Duration>,
    /// Time that the broker waits for the acknowledgement [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) lease: Option<String>,
    /// Return all messages at the end instead of deleting them; a message whose lease ends before
    /// that comes again
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `browse`.
#[derive(Debug, Args)]
pub(crate) struct Browse {
    /// The queue
    pub(crate) queue: String,
    /// Only messages that match this JMS selector: "region = 'EU' AND n > 5"
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Only messages in this state: ready, leased, delayed or buried
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Number of messages at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max: usize,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `move`.
#[derive(Debug, Args)]
pub(crate) struct MoveMessages {
    /// The source queue
    pub(crate) from: String,
    /// The target queue
    pub(crate) to: String,
    /// Only messages that match this selector
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Number of messages at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `purge`.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// The queue
    pub(crate) queue: String,
    /// Only messages that match this selector
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Only messages in this state: ready, delayed or buried
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
    /// Show the rules of a queue and the origin of each
    Show {
        /// The queue; it need not exist
        queue: String,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Give a queue rules of its own, or change some of them
    Set {
        /// The queue, or the topic whose subscriptions get the rules
        queue: String,
        /// A rule as in --queue of serve, such as max-messages=1000; none removes a bound
        #[arg(required = true, value_name = "SETTING=VALUE", value_parser = parse::rule_setting)]
        rules: Vec<QueueRule>,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Remove a queue's own rules, so that the configured ones hold again
    Reset {
        /// The queue
        queue: String,
        /// A rule, such as max-messages [default: all]
        #[arg(value_name = "SETTING", value_parser = parse::rule_key)]
        rules: Vec<RuleKey>,
        #[command(flatten)]
        server: ServerAt,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List the dead letters with their reason and origin
    Ls {
        /// The queue of dead letters
        #[arg(long, value_name = "NAME", env = "DUNLIN_DEAD_LETTER_QUEUE", default_value = "DLQ")]
        queue: String,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Show one message with its body
    Show {
        /// Number of the message
        id: u64,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Return dead letters to their origin, as if they had never failed
    Replay(Replay),
}

/// Settings of `dead replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Number of one dead letter
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) id: Option<u64>,
    /// All dead letters
    #[arg(long)]
    pub(crate) all: bool,
    /// Return them to this queue instead
    #[arg(long, value_name = "QUEUE")]
    pub(crate) to: Option<String>,
    /// Only messages that match this selector
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// The queue of dead letters
    #[arg(long, value_name = "NAME", env = "DUNLIN_DEAD_LETTER_QUEUE", default_value = "DLQ")]
    pub(crate) queue: String,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

/// Settings of `health`.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Check that it takes messages too: it neither stops, nor drains, nor is full
    #[arg(long)]
    pub(crate) ready: bool,
    /// Time to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Journal {
    /// Recover as `serve` would, change nothing, and report messages or damage
    ///
    /// Only reads, so a copy or a read-only file system will do. Refused while a server uses the
    /// directory, since it changes the files that would be read; no server can start meanwhile.
    Verify {
        /// Its directory
        dir: PathBuf,
    },
    /// Report why a directory is refused, and the loss of going on without the missing part
    ///
    /// Mends a lost, damaged or older control file (epoch), and a log whose last file is lost or
    /// older than the others: with --accept-loss the log goes on where the present files end. Look
    /// for the right files first, and keep a copy. Damage inside the log and cut files are not
    /// mended: salvage copies the rest of such a directory.
    Repair {
        /// Its directory
        dir: PathBuf,
        /// Go on with that loss; without this flag nothing is changed
        #[arg(long)]
        accept_loss: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Copy everything but damaged records into a new directory, and name each loss
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
    /// Print every readable record, also of a damaged directory
    ///
    /// Only reads, as verify does.
    Dump {
        /// Its directory
        dir: PathBuf,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Report the reason why each file of the log is kept, and its oldest message
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

/// The files of TLS. They are read again on SIGHUP, and when they change.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Tls {
    /// Certificates of TLS, PEM: the server's own, behind it those that lead to a root. Of several
    /// files a client gets the one for the name that it asks for, else the first
    #[arg(long, value_name = "FILE", env = "DUNLIN_TLS_CERT", value_delimiter = ',')]
    pub(crate) tls_cert: Option<Vec<PathBuf>>,
    /// Private keys of these certificates, PEM, in the same order
    #[arg(long, value_name = "FILE", env = "DUNLIN_TLS_KEY", value_delimiter = ',')]
    pub(crate) tls_key: Option<Vec<PathBuf>>,
    /// Roots that sign the certificates of clients, PEM
    #[arg(long, value_name = "FILE", env = "DUNLIN_TLS_CLIENT_CA")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Lists of revoked certificates of clients, PEM
    #[arg(long, value_name = "FILE", env = "DUNLIN_TLS_CLIENT_CRL")]
    pub(crate) tls_client_crl: Option<PathBuf>,
    /// Certificates of clients: required, or optional [default: required if there is
    /// --tls-client-ca]
    #[arg(long, value_name = "WORD", env = "DUNLIN_TLS_CLIENTS", value_parser = parse::tls_clients)]
    pub(crate) tls_clients: Option<TlsClients>,
}

/// The need of a certificate for clients by TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsClients {
    Optional,
    Required,
}

/// Settings of `serve`. What is `None` was neither given as a flag nor as a variable.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Serve {
    /// Directory of the journal [default: ./dunlin-data]
    #[arg(long, value_name = "DIR", env = "DUNLIN_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Serve PROTOCOL (amqp, beanstalkd, redis or http; by TLS: amqps, beanstalkds, rediss or
    /// https) at ADDRESS: HOST, HOST:PORT (port 0: a free one), unix:PATH with optional ,mode=0660
    /// and ,group=NAME, or systemd:NAME, a socket that systemd passes. Behind any ADDRESS
    /// ,user=NAME makes each connection act as that user without a login; behind HOST
    /// ,from=NETWORK, such as from=10.0.0.0/24, closes those from elsewhere, and
    /// ,proxy-from=NETWORK takes the address of the client from the PROXY header, version 2, that
    /// proxies there send; both may be repeated [default: all without TLS on their usual ports of
    /// localhost: 127.0.0.1 and ::1]
    #[arg(
        long,
        value_name = "PROTOCOL=ADDRESS",
        env = "DUNLIN_LISTEN",
        value_delimiter = ',',
        value_parser = listen::listen
    )]
    pub(crate) listen: Option<Vec<ListenItem>>,
    /// Allow a listener at an ADDRESS that other machines reach although it has no TLS, or there
    /// are no users: then each client can read, send and delete messages
    #[arg(
        long,
        value_name = "[PROTOCOL=]ADDRESS",
        env = "DUNLIN_INSECURE_LISTEN",
        value_delimiter = ',',
        value_parser = listen::insecure_listen
    )]
    pub(crate) insecure_listen: Option<Vec<ListenItem>>,
    /// Allow all listeners at such addresses
    #[arg(
        long,
        env = "DUNLIN_INSECURE",
        num_args = 0..=1,
        default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub(crate) insecure: Option<bool>,
    /// File of the users: clients have to log in. `dunlin user` makes and changes it. It is read
    /// again on SIGHUP, and when it changes
    #[arg(long, value_name = "FILE", env = "DUNLIN_USERS")]
    pub(crate) users: Option<PathBuf>,
    /// Write the audit log to the end of FILE, or to standard error for -: logins, denials, and
    /// changes of users, rules and whole queues, one JSON object a line. SIGHUP opens it again
    #[arg(long, value_name = "FILE", env = "DUNLIN_AUDIT_LOG")]
    pub(crate) audit_log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: Tls,
    /// Start although the machine's clock is more than 7 days ahead of the journal and messages or
    /// keys would expire: the clock is right
    #[arg(
        long,
        env = "DUNLIN_ACCEPT_CLOCK",
        num_args = 0..=1,
        default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub(crate) accept_clock: Option<bool>,
    /// Host names that HTTP requests may use, beside addresses and localhost: broker.example,
    /// .example.com for all names below it, or * for any. With * a web page whose owner points a
    /// name here can read and delete messages
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
    /// Largest body of a message, at most 16 MiB and a 32nd of --memory-limit [default: that; 65535
    /// by beanstalkd]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_MESSAGE_BYTES", value_parser = parse::size)]
    pub(crate) max_message_bytes: Option<usize>,
    /// Rules of a queue (* for all others): NAME:release-order=back|front;
    /// NAME:max-delivery-attempts=N (failed deliveries until a message is a dead letter; 0: any
    /// number); NAME:dead-letters=park-persistent|park|drop (memory-only messages are deleted, or
    /// parked too, or all are deleted); NAME:pop-lease=TIME (an element popped over Redis returns
    /// if its connection ends within that time and before its next command); NAME:max-messages=N
    /// and NAME:max-bytes=N (bounds of the queue, or of each subscription of a topic);
    /// NAME:when-full=block|reject|drop-oldest|dead-letter|disconnect (block: a send waits;
    /// disconnect: a slow subscriber is disconnected, a queue rejects); NAME:target-age=TIME
    /// (senders wait so that messages wait no longer); NAME:redelivery-delay=TIME (a failed or
    /// released message is hidden); NAME:redelivery-factor=N (growth with each failed delivery);
    /// NAME:redelivery-max=TIME (the longest delay; none: ten times the first);
    /// NAME:redelivery-jitter=N (share of the delay, 0 to 1, by which it varies)
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
    /// Side of a Redis list that is the head of the queue, from which other protocols receive: left
    /// or right [default: right, so that LPUSH sends and RPOP receives]
    #[arg(long, value_name = "SIDE", env = "DUNLIN_LIST_HEAD", value_parser = parse::list_head)]
    pub(crate) list_head: Option<Side>,
    /// Databases that clients of Redis may select, 1 to 128 [default: 16]
    #[arg(
        long,
        value_name = "N",
        env = "DUNLIN_REDIS_DATABASES",
        value_parser = parse::redis_databases
    )]
    pub(crate) redis_databases: Option<usize>,
    /// Let clients of Redis run scripts (EVAL): on or off [default: on]
    #[arg(long, value_name = "on|off", env = "DUNLIN_SCRIPTS", value_parser = parse::on_or_off)]
    pub(crate) scripts: Option<bool>,
    /// Longest time of one script, during which nobody else is served [default: 100ms]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_SCRIPT_TIME",
        value_parser = parse::script_time
    )]
    pub(crate) script_time: Option<Duration>,
    /// Remember deduplication ids for this time, so that a repeated send is stored once; never: not
    /// at all [default: 5m]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_DEDUP_WINDOW",
        value_parser = parse::dedup_window
    )]
    pub(crate) dedup_window: Option<Duration>,
    /// Remember at most this many deduplication ids, the latest [default: 100000]
    #[arg(
        long,
        value_name = "N",
        env = "DUNLIN_DEDUP_MAX_IDS",
        value_parser = parse::dedup_max_ids
    )]
    pub(crate) dedup_max_ids: Option<usize>,
    /// Refuse blocked sends once their wait list has stood still for this time [default: 30s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_BLOCK_TIMEOUT",
        value_parser = parse::duration
    )]
    pub(crate) block_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

/// Settings that few will ever want to change.
#[derive(Clone, Debug, Default, Args)]
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
    /// Bytes that the data directory may take on the device, such as 500M or 10G: at the limit only
    /// settling and deleting go on [default: no limit]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_DISK_LIMIT", value_parser = parse::bytes)]
    pub(crate) disk_limit: Option<u64>,
    /// Bytes of memory for messages and connections, such as 256M or 4G, 64M at least: beyond it
    /// bodies page out to the data directory, then sends wait and are refused [default: a quarter
    /// of the machine's memory, or of its control group's]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MEMORY_LIMIT", value_parser = parse::memory)]
    pub(crate) memory_limit: Option<u64>,
    /// Connections that may be open, and ten more for HTTP from this machine. Beyond, the oldest
    /// that has sent no command closes; if there is none, the new one does [default: 10000]
    #[arg(long, value_name = "N", env = "DUNLIN_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,
    /// Bytes that a client may leave unread before its commands wait [default: 1048576]
    #[arg(long, value_name = "BYTES", env = "DUNLIN_MAX_OUTPUT_BYTES", value_parser = parse::size)]
    pub(crate) max_output_bytes: Option<usize>,
    /// Bytes in the buffers of all clients; beyond, the connection that holds the most is closed.
    /// As many for requests and answers of HTTP; beyond, senders wait [default: 268435456]
    #[arg(
        long,
        value_name = "BYTES",
        env = "DUNLIN_MAX_BUFFERED_BYTES",
        value_parser = parse::size
    )]
    pub(crate) max_buffered_bytes: Option<usize>,
    /// Close a connection that leaves a command half sent for this time; or never [default: 60s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_HALF_SENT_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) half_sent_timeout: Option<Limit>,
    /// Close a connection that is silent for this time; or never. A connection that waits for an
    /// answer, or has subscribed over Redis, is not silent [default: never]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DUNLIN_IDLE_TIMEOUT",
        value_parser = Limit::parse
    )]
    pub(crate) idle_timeout: Option<Limit>,
    /// Close an HTTP connection without an open request after this time; or never. It must exceed
    /// the keep-alive of a proxy in front [default: 75s]
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
    /// Keep messages in a journal, or in memory only [default: journal]
    #[arg(long, value_name = "journal|none", env = "DUNLIN_STORE", value_parser = parse::store)]
    pub(crate) store: Option<Store>,
    /// When the journal is synced: before each confirmation, at least every DURATION, or by the
    /// operating system alone [default: always]
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
  0    done; a server stopped in good order (SIGTERM, SIGINT)
  1    failed; the message names cause and remedy
  2    wrong usage or settings
  3    no such queue or message, or no message came in time
  74   the journal could not be written; later commands were not confirmed
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
Each message is written with a line end, and acknowledged after that: with those that came with
it, up to 64, or after 0.1 s. If it is killed before, they come again. SIGINT and SIGTERM end it
within a second; unwritten messages are returned, also if standard output takes nothing (a full
disk, a closed pipe). A standard output that was closed at the start (>&-) is /dev/null, so
received messages are lost.

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
Only ready messages are moved, in steps: if it is interrupted, run it again for the rest.

Exit status: 0 done, be it that nothing matched, 1 it failed, 2 wrong usage or selector, 3 there is
no such queue";

const PURGE_HELP: &str = "\
It asks first at a terminal. It deletes in steps: if it is interrupted, run it again for the rest.

Exit status: 0 done, be it that nothing matched, 1 it failed or was declined, 2
wrong usage or selector, 3 there is no such queue";

const POLICY_HELP: &str = "\
Rules hold at once and over restarts, and override configured ones. Blocked sends are checked again;
a narrower bound deletes nothing before the next send.

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

const HEALTH_HELP: &str = "\
Examples:
  dunlin health
  dunlin health --ready --timeout 2s --url http://127.0.0.1:8422

Exit status: 0 it serves (with --ready: it takes messages), 1 it does not, 2 wrong usage";

const CONFIG_CHECK_HELP: &str = "\
It takes the options of `serve`. It opens no listener and no data directory, so it runs beside the
broker. On SIGHUP a running broker reads its settings by the same rules: those that can change at
once do, and the log names the others.

Example:
  dunlin config check --config /etc/dunlin/dunlin.toml && systemctl reload dunlin

Exit status: 0 the broker could start with these settings, 1 a file cannot be used, 2 a setting is
wrong";

const SERVE_HELP: &str = "\
Every setting is also a variable (shown above) and a key of the TOML file, named like the flag:
  sync = \"25ms\"
  listen = [\"beanstalkd=127.0.0.1:11300\"]
  [queues.retries]
  release-order = \"back\"
  max-delivery-attempts = 5
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

Without --users each client may do everything. So listeners are on loopback or Unix sockets. Another
address needs TLS (amqps=, beanstalkds=, rediss=, https=) and users, or --insecure-listen names it.

Signals: SIGTERM or SIGINT stops in good order, a second SIGINT at once; SIGUSR1 drains: from
then on it refuses new messages; SIGHUP writes the counters to the log, and reads certificates and
users again.

Examples:
  dunlin serve
  dunlin serve --data /var/lib/dunlin --sync 25ms
  dunlin serve --store none --listen beanstalkd=localhost:11300
  dunlin serve --listen redis=unix:/run/dunlin/redis.sock,mode=0660
  dunlin serve --users users.toml --listen beanstalkd=127.0.0.1:11300,user=jobs
  dunlin serve --users users.toml --tls-cert a.pem --tls-key a.key \\
    --listen rediss=192.0.2.5:6380,from=192.0.2.0/24,from=198.51.100.7
  dunlin serve --listen amqp=127.0.0.1:5672,proxy-from=127.0.0.1
  dunlin serve --listen redis=systemd:redis
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

Reasons why a file of the log is kept:
  writing      the log goes on in it
  live         records in it still matter
  large-batch  the same, and it is too large to be compacted with the settings of today
  compaction   what matters of it is being copied forward
  reader       a message is being read from it
  snapshot     nothing in it matters, once a snapshot is past it
  spare        it is ready to be written to
  nothing      it may be used again at once

Exit status: 0 the journal is sound, 1 it is not or cannot be read";
