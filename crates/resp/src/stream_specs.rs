//! The commands on streams, as the table of commands has them.

use crate::catalogue;
use crate::stream_groups as groups;
use crate::streams;
use crate::table::Group::Stream;
use crate::table::{
    NO_KEYS, ONE_KEY, READ, READ_FAST, STORE, STORE_FAST, Spec, WAIT_MOVABLE, WRITE, WRITE_FAST,
    ask, container, say,
};

const READ_WAIT_MOVABLE: &[&str] = &["readonly", "blocking", "movablekeys"];
const HELP: &[&str] = &["loading", "stale"];

/// The key is behind the subcommand.
const SECOND: (i8, i8, i8) = (2, 2, 1);

/// In the order of their names.
pub(crate) static SPECS: [Spec; 25] = [
    ask("xack", -4, WRITE_FAST, ONE_KEY, Stream, groups::acknowledge),
    ask("xadd", -5, STORE_FAST, ONE_KEY, Stream, streams::add),
    ask("xautoclaim", -6, WRITE_FAST, ONE_KEY, Stream, groups::claim_next),
    ask("xclaim", -6, WRITE_FAST, ONE_KEY, Stream, groups::claim),
    ask("xdel", -3, WRITE_FAST, ONE_KEY, Stream, streams::remove),
    container("xgroup", Stream),
    ask("xgroup|create", -5, STORE, SECOND, Stream, groups::create),
    ask("xgroup|createconsumer", 5, STORE, SECOND, Stream, groups::create_consumer),
    ask("xgroup|delconsumer", 5, WRITE, SECOND, Stream, groups::remove_consumer),
    ask("xgroup|destroy", 4, WRITE, SECOND, Stream, groups::destroy),
    say("xgroup|help", 2, HELP, Stream, catalogue::help),
    ask("xgroup|setid", -5, WRITE, SECOND, Stream, groups::set),
    container("xinfo", Stream),
    ask("xinfo|consumers", 4, READ, SECOND, Stream, groups::describe_consumers),
    ask("xinfo|groups", 3, READ, SECOND, Stream, groups::describe_all),
    say("xinfo|help", 2, HELP, Stream, catalogue::help),
    ask("xinfo|stream", -3, READ, SECOND, Stream, streams::describe),
    ask("xlen", 2, READ_FAST, ONE_KEY, Stream, streams::length),
    ask("xpending", -3, READ, ONE_KEY, Stream, groups::pending),
    ask("xrange", -4, READ, ONE_KEY, Stream, |it| streams::range(it, false)),
    ask("xread", -4, READ_WAIT_MOVABLE, NO_KEYS, Stream, groups::read),
    ask("xreadgroup", -7, WAIT_MOVABLE, NO_KEYS, Stream, groups::read_group),
    ask("xrevrange", -4, READ, ONE_KEY, Stream, |it| streams::range(it, true)),
    ask("xsetid", -3, STORE_FAST, ONE_KEY, Stream, streams::set_last),
    ask("xtrim", -4, WRITE, ONE_KEY, Stream, streams::trim),
];
