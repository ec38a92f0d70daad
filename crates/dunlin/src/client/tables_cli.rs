//! The arguments of `dunlin table`.

use clap::{Args, Subcommand};

use crate::cli::ServerAt;

#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// List the tables with the number of their keys
    Ls {
        #[command(flatten)]
        server: ServerAt,
    },
    /// Print the value of a key, as it is
    Get {
        #[command(flatten)]
        at: KeyAt,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Give a key a value
    Put {
        #[command(flatten)]
        at: KeyAt,
        /// The value; without it, or with -, standard input is the value
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        /// Only if there is no such key
        #[arg(long)]
        new: bool,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Add to the integer of a key and print the sum; a key that is not there has 0
    Add {
        #[command(flatten)]
        at: KeyAt,
        /// How much; a negative number is subtracted
        #[arg(value_name = "N", allow_hyphen_values = true)]
        more: i64,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Delete keys; a table goes with its last key
    Del {
        /// The table
        table: String,
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Print keys with their values, in the order of their bytes
    Scan(Scan),
    /// Write all keys and values to standard output, as JSON lines
    Export {
        /// The table
        table: String,
        #[command(flatten)]
        server: ServerAt,
    },
    /// Put the keys and values of standard input, as export writes them
    Import {
        /// The table; its other keys stay
        table: String,
        #[command(flatten)]
        server: ServerAt,
    },
}

/// A key of a table.
#[derive(Debug, Args)]
pub(crate) struct KeyAt {
    /// The table: a hash of Redis
    pub(crate) table: String,
    /// The key
    pub(crate) key: String,
}

/// Settings of `table scan`.
#[derive(Debug, Args)]
pub(crate) struct Scan {
    /// The table
    pub(crate) table: String,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    /// Only this key and those behind it
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max: usize,
    #[command(flatten)]
    pub(crate) server: ServerAt,
}

pub(crate) const TABLE_HELP: &str = "\
A table is a hash of Redis. What is no text is printed as base64, in members key_base64 and
value_base64. export writes the table as it was when it began. import puts a thousand keys at a
time, each time all or none; again it puts the same.

Examples:
  dunlin table put accounts 17 100
  dunlin table add accounts 17 -5
  dunlin table get accounts 17
  dunlin table scan accounts --prefix 1 --json
  dunlin table export accounts >accounts.jsonl
  dunlin table import accounts <accounts.jsonl

Exit status: 0 done, 1 it failed, 2 wrong usage, 3 there is no such key (or, with --new, there is)";
