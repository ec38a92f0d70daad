//! The command line of `dunlin bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::Policy;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Drive a beanstalkd server, this one or another, with jobs
    #[command(after_help = JOBS_HELP)]
    Jobs(BenchJobs),
    /// Cost of transactions and the disk for a sender: {store none, always, periodic} x
    /// {transacted, not} x {persistent, not}
    #[command(after_help = MATRIX_HELP)]
    Matrix(BenchMatrix),
    /// Group commit: transactions by 1 to 200 clients, then readers beside a writer
    #[command(after_help = TRANSACTIONS_HELP)]
    Transactions(BenchTransactions),
    /// Travel time of messages while a producer saturates the broker, by queue and topic
    #[command(after_help = TRAVEL_TIME_HELP)]
    TravelTime(BenchTravelTime),
    /// Cost of delivery mode, transactions, acknowledgement, subscriptions, selectors, sizes and
    /// kinds of bodies
    #[command(after_help = FACTORS_HELP)]
    Factors(BenchFactors),
}

/// Settings of `bench jobs`.
#[derive(Debug, Args)]
pub(crate) struct BenchJobs {
    /// The server, as beanstalkd://HOST:PORT; without it one is started in this process, on a
    /// temporary directory
    #[arg(long, value_name = "URL")]
    pub(in crate::bench) target: Option<bench::jobs::Target>,
    /// Jobs to put
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(in crate::bench) jobs: u64,
    /// Connections that share the work
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(in crate::bench) clients: usize,
    /// Length of each body
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(in crate::bench) body: usize,
    /// Commands that each connection may have unanswered
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(in crate::bench) pipeline: usize,
    /// The load: put, put-delete, release or all
    #[arg(long, value_name = "MODE", default_value = "put-delete")]
    pub(in crate::bench) mode: bench::jobs::Mode,
    /// Releases after which mode release stops [default: twice the jobs]
    #[arg(long, value_name = "N")]
    pub(in crate::bench) releases: Option<u64>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(in crate::bench) json: bool,
    /// Folder for the temporary directory of the server in this process [default: the system's]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(in crate::bench) data: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::bench) policy: Policy,
}

/// Whom to measure, for all benchmarks over AMQP 1.0.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker and output")]
pub(crate) struct Against {
    /// The broker, as amqp://[USER:PASSWORD@]HOST[:PORT], any that speaks AMQP 1.0; without it
    /// brokers are started in this process, on temporary directories
    #[arg(long, value_name = "URL")]
    pub(in crate::bench) target: Option<bench::Target>,
    /// Folder for the temporary directories of brokers in this process [default: the system's];
    /// with --target: a directory on that broker's disk, to measure the disk
    #[arg(long, value_name = "DIR")]
    pub(in crate::bench) data: Option<PathBuf>,
    /// The queue to use, which must be empty [default: new ones, emptied at the end]
    #[arg(long, value_name = "NAME")]
    pub(in crate::bench) queue: Option<String>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(in crate::bench) json: bool,
}

/// Settings of `bench matrix`.
#[derive(Debug, Args)]
pub(crate) struct BenchMatrix {
    /// Messages of each cell
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(in crate::bench) messages: u64,
    /// Length of each body
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub(in crate::bench) body: usize,
    /// Messages of a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(in crate::bench) commit_every: usize,
    /// Rounds of each cell; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(in crate::bench) rounds: usize,
    /// Clients at once in the comparison at the end
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(in crate::bench) clients: usize,
    /// Time for each half of that comparison
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(in crate::bench) seconds: Duration,
    #[command(flatten)]
    pub(in crate::bench) against: Against,
}

/// Settings of `bench transactions`.
#[derive(Debug, Args)]
pub(crate) struct BenchTransactions {
    /// Numbers of concurrent clients, one after the other
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,10,20,100,200")]
    pub(in crate::bench) clients: Vec<usize>,
    /// Messages of a transaction
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(in crate::bench) operations: usize,
    /// One in N transactions is rolled back
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(in crate::bench) roll_back_every: u64,
    /// Length of each body
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(in crate::bench) body: usize,
    /// Time for each number of clients
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(in crate::bench) seconds: Duration,
    /// Clients that look through a queue while one writes; 0: none
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(in crate::bench) readers: usize,
    #[command(flatten)]
    pub(in crate::bench) against: Against,
    #[command(flatten)]
    pub(in crate::bench) policy: Policy,
}

/// Settings of `bench travel-time`.
#[derive(Debug, Args)]
pub(crate) struct BenchTravelTime {
    /// Time that the producer sends in each case
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(in crate::bench) seconds: Duration,
    /// Length of each body
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub(in crate::bench) body: usize,
    /// Messages that the producer may have unanswered
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(in crate::bench) outstanding: usize,
    #[command(flatten)]
    pub(in crate::bench) against: Against,
    #[command(flatten)]
    pub(in crate::bench) policy: Policy,
}

/// Settings of `bench factors`.
#[derive(Debug, Args)]
pub(crate) struct BenchFactors {
    /// Time that the producer sends with each factor
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(in crate::bench) seconds: Duration,
    /// Length of each body, but for those that are 10 and 100 times as long
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub(in crate::bench) body: usize,
    /// Messages that the producer may have unanswered
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(in crate::bench) outstanding: usize,
    #[command(flatten)]
    pub(in crate::bench) against: Against,
    #[command(flatten)]
    pub(in crate::bench) policy: Policy,
}

/// `2`, `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    let wrong = || format!("`{text}` is no number of seconds from 0.01 to 3600");
    seconds.map(Duration::from_secs_f64).ok_or_else(wrong)
}

const JOBS_HELP: &str = "\
Examples:
  dunlin bench jobs
  dunlin bench jobs --clients 1 --body 1024 --jobs 20000 --mode put
  dunlin bench jobs --target beanstalkd://127.0.0.1:11300 --pipeline 64 --json";

const MATRIX_HELP: &str = "\
One client sends to a queue; the time ends when the broker has answered for all. It waits for each
persistent message before the next, as JMS does, and for the others at the end. A transaction that
holds nothing persistent should cost no sync. With --target there are four cells, of the store that
the broker has. At the end many clients send at once, a message each at a time: what durability
costs where commits are shared.

Some 15 seconds; SIGINT ends it early, with the figures so far.

Examples:
  dunlin bench matrix
  dunlin bench matrix --data /var/lib/dunlin --commit-every 100
  dunlin bench matrix --target amqp://artemis:artemis@127.0.0.1:5672 --json

Exit status: 0 measured, 1 it failed, was cancelled or the broker did something wrong, 2 wrong
usage, 130 stopped at once by a second SIGINT";

const TRANSACTIONS_HELP: &str = "\
Each client sends a hundred messages in a transaction, commits, and begins the next; one of ten is
rolled back. TPS counts commits. Where clients share flushes it rises with them; where each commit
has one of its own it stays as it is with one. Then readers look at the first hundred messages of a
queue, again and again, while one client writes.

Some 20 seconds; SIGINT ends it early, with the figures so far.

Examples:
  dunlin bench transactions
  dunlin bench transactions --clients 1,64 --operations 1 --sync 25ms
  dunlin bench transactions --target amqp://127.0.0.1:5672 --json

Exit status: 0 measured, 1 it failed, was cancelled or the broker did something wrong, 2 wrong
usage, 130 stopped at once by a second SIGINT";

const TRAVEL_TIME_HELP: &str = "\
One client sends as fast as it may, one takes. A consumer that starves shows as times that grow from
tenth to tenth of what was sent. Each message is acknowledged by itself. Then a consumer takes a
backlog, by itself and beside such a producer; core for core is by what a message taken costs the
processor, for producer, consumer and broker share it.

Some 20 seconds; SIGINT ends it early, with the figures so far.

Examples:
  dunlin bench travel-time
  dunlin bench travel-time --outstanding 1000 --seconds 5
  dunlin bench travel-time --target amqp://127.0.0.1:5672 --json

Exit status: 0 measured, 1 it failed, was cancelled or the broker did something wrong, 2 wrong
usage, 130 stopped at once by a second SIGINT";

const FACTORS_HELP: &str = "\
One client sends and waits for each message, one takes. Each line differs from the first in what it
names; its price is how many percent fewer messages get through, below 0 there are more. `each
acknowledged` and `a hundred acknowledged` wait for the broker's word that it is safe, `lazily` does
not: JMS's AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE and DUPS_OK_ACKNOWLEDGE.

Some 20 seconds; SIGINT ends it early, with the figures so far.

Examples:
  dunlin bench factors
  dunlin bench factors --seconds 0.3 --outstanding 10
  dunlin bench factors --target amqp://127.0.0.1:5672 --json

Exit status: 0 measured, 1 it failed, was cancelled or the broker did something wrong, 2 wrong
usage, 130 stopped at once by a second SIGINT";
