//! The command line of `dunlin user`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The file that is read or changed.
#[derive(Debug, Args)]
pub(crate) struct UsersAt {
    /// The users file, which only its owner may read
    #[arg(long = "users", value_name = "FILE", env = "DUNLIN_USERS")]
    pub(crate) path: PathBuf,
}

/// The source of a password; without a flag it is asked for at the terminal.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Source {
    /// Read the password from standard input: one line
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Make a password of 160 random bits and print it, once: the recommended way
    #[arg(long)]
    pub(crate) generate: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user, and make the users file if it is missing
    Add(Add),
    /// Set another password for a user
    Passwd {
        /// The name of the user
        name: String,
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Remove a user and its tokens
    Rm {
        /// The name of the user
        name: String,
        #[command(flatten)]
        users: UsersAt,
    },
    /// List the users
    Ls {
        #[command(flatten)]
        users: UsersAt,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Disable a user: it keeps its password and cannot log in
    Disable {
        /// The name of the user
        name: String,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Enable a user that was disabled
    Enable {
        /// The name of the user
        name: String,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Allow a user or a group something, or deny it
    Grant(Change),
    /// Take rules of a user or a group back
    Revoke(Change),
    /// Put a user into groups, whose rules it has besides its own
    Join {
        /// The name of the user
        name: String,
        /// The groups
        #[arg(required = true, value_name = "GROUP")]
        groups: Vec<String>,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Take a user out of groups
    Leave {
        /// The name of the user
        name: String,
        /// The groups
        #[arg(required = true, value_name = "GROUP")]
        groups: Vec<String>,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Tell what a user may do, with all rules of its groups, or its rights on one name
    Rights {
        /// The name of the user
        name: String,
        /// A queue, topic or key
        on: Option<String>,
        #[command(flatten)]
        users: UsersAt,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set limits of a user, or of all users that have no other; without any, show the user's
    Limit(Limit),
    /// Check the users file as the broker does, and name each fault with its line
    Check {
        #[command(flatten)]
        users: UsersAt,
    },
    /// Add, remove or list bearer tokens, by which clients of HTTP log in
    Token {
        #[command(subcommand)]
        token: TokenCommand,
    },
}

/// Settings of `user add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name of the user
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Add no password: the user logs in by a certificate, a process or a token, or is the
    /// anonymous one or that of a listener
    #[arg(long, conflicts_with_all = ["stdin", "generate"])]
    pub(crate) no_password: bool,
    /// A client certificate of the user, by a name in it, such as CN=orders or
    /// SAN:DNS:orders.example.org; several are possible
    #[arg(long, value_name = "NAME")]
    pub(crate) certificate: Vec<String>,
    /// A user of the system, by name or number: its processes are this user on Unix sockets;
    /// several are possible
    #[arg(long, value_name = "NAME")]
    pub(crate) unix_user: Vec<String>,
    /// The day from which on the user can do nothing, such as 2027-01-01, or a moment in UTC
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// Something that the user may do, such as 'send,look orders.*'; several are possible
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Something that it may not do whatever else is allowed; several are possible
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// A group that the user is in; several are possible
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    #[command(flatten)]
    pub(crate) users: UsersAt,
}

/// Rules that are added or taken back.
#[derive(Debug, Args)]
pub(crate) struct Change {
    /// The name of the user, or of the group
    pub(crate) name: String,
    /// Rights and a pattern of names, such as 'send,look orders.*', or 'operate'
    #[arg(required = true, value_name = "RULE")]
    pub(crate) rules: Vec<String>,
    /// They are rules that deny, which win over all that allow
    #[arg(long)]
    pub(crate) deny: bool,
    /// The name is that of a group
    #[arg(long)]
    pub(crate) group: bool,
    #[command(flatten)]
    pub(crate) users: UsersAt,
}

/// Limits that are set, taken away or shown.
#[derive(Debug, Args)]
pub(crate) struct Limit {
    /// The name of the user, unless it is for all, and limits such as bytes=2G or links=none
    #[arg(required = true, value_name = "NAME|LIMIT=AMOUNT")]
    pub(crate) words: Vec<String>,
    /// The limits are those of all users that have no other
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) users: UsersAt,
    /// Print JSON, where limits are shown
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Add a token and print it, once; the file keeps its SHA-256 only
    Add {
        /// The name of the token
        name: String,
        /// The user that its clients are
        #[arg(long, value_name = "NAME")]
        user: String,
        /// The day from which on it is worth nothing, such as 2027-01-01, or a moment in UTC
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
        #[command(flatten)]
        users: UsersAt,
    },
    /// Remove a token
    Rm {
        /// The name of the token
        name: String,
        #[command(flatten)]
        users: UsersAt,
    },
    /// List the tokens, without their secrets
    Ls {
        #[command(flatten)]
        users: UsersAt,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
    },
}

pub(crate) const USER_HELP: &str = "\
The file keeps verifiers, from which no password can be read back. It must belong to the user that
changes it and have mode 0600. Each change replaces it at once and keeps its comments. A password is
never an argument or a variable, where other processes could read it.

A user may do what a rule allows and none denies: a new user may do nothing. A rule is rights with
commas between them, and a pattern of names. The rights are send, receive, look, manage, and
operate, which has no pattern. In a pattern * is any text, {user} the name of the user, {client} the
client id that a connection of JMS has. A running broker reads a changed file within ten seconds. It
ends the connections of a user that has lost a right.

A user may take as much as there is, but for its limits. connections (of HTTP, requests at a time),
queues (that it made), subscriptions (durable ones), messages and bytes (that it stored in queues
and that are there) count together; sessions and links count for each connection, and
transaction-messages and transaction-bytes for each transaction. byte-rate and command-rate are for
a second. Bytes may end in K, M, G or T.

Examples:
  dunlin user add orders --generate --users /etc/dunlin/users.toml
  pass show dunlin/orders | dunlin user passwd orders --stdin
  dunlin user add gateway --no-password --certificate CN=gateway
  dunlin user add web --no-password --unix-user www-data
  dunlin user grant orders 'send,look orders.*' 'receive {user}.replies'
  dunlin user grant --group workers 'receive jobs.*'
  dunlin user join orders workers
  dunlin user rights orders jobs.mail
  dunlin user limit orders connections=50 bytes=2G byte-rate=20M
  dunlin user limit --all queues=1000 command-rate=none
  dunlin user token add ci --user orders --expires 2027-01-01
  dunlin user ls --json | jq .name

Exit status: 0 done, 1 it failed or the file has faults, 2 wrong usage or a value that may not be,
3 there is no such user, token, group, rule or limit";
