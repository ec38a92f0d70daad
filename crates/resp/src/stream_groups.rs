//! Commands on streams that read, and those on groups of consumers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    ClaimTime, ClaimedAs, GroupName, GroupStart, Nanos, ReadPlace, StreamClaim, StreamCommand,
    StreamId, StreamRange, StreamRead, StreamReader,
};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::stream_format::{NoGroup, StreamFormat, Told};
use crate::streams::{bounds, first_bound, id, ids, integer_or, strict_id};

/// XREAD
pub(crate) fn read(arguments: Arguments<'_>) -> QueryResult {
    read_as(arguments, None)
}

/// XREADGROUP
pub(crate) fn read_group(arguments: Arguments<'_>) -> QueryResult {
    let nobody: Arc<[u8]> = Arc::from([]);
    let (group, consumer) = (Arc::clone(&nobody), nobody);
    read_as(arguments, Some(StreamReader { group, consumer, acknowledges: true }))
}

fn read_as(arguments: Arguments<'_>, mut reader: Option<StreamReader>) -> QueryResult {
    let (mut max, mut wait, mut has_group) = (None, Some(Nanos::ZERO), false);
    let mut at = 1;
    let first = loop {
        let more = arguments.len().saturating_sub(at + 1);
        match &mut reader {
            _ if arguments.is(at, "block") && more > 0 => {
                wait = timeout(arguments, at + 1)?;
                at += 1;
            }
            _ if arguments.is(at, "count") && more > 0 => {
                let count = u64::try_from(arguments.integer(at + 1)?).unwrap_or(0);
                max = Some(count).filter(|count| *count > 0);
                at += 1;
            }
            _ if arguments.is(at, "streams") && more > 0 => break at + 1,
            Some(reader) if arguments.is(at, "group") && more > 1 => {
                reader.group = arguments.element(at + 1);
                reader.consumer = arguments.element(at + 2);
                has_group = true;
                at += 2;
            }
            Some(reader) if arguments.is(at, "noack") => reader.acknowledges = false,
            None if arguments.is(at, "group") && more > 1 => return Err(only_of_groups("GROUP")),
            None if arguments.is(at, "noack") => return Err(only_of_groups("NOACK")),
            _ => return Err(Fault::SYNTAX),
        }
        at += 1;
    };
    let words = arguments.len() - first;
    if !words.is_multiple_of(2) {
        return Err(unbalanced(reader.is_some()));
    }
    if reader.is_some() && !has_group {
        return Err(Fault::of("ERR Missing GROUP option for XREADGROUP"));
    }
    let count = words / 2;
    let places = (first..first + count).map(|at| {
        let place = place(arguments.word(at + count), reader.is_some())?;
        Ok((arguments.key(at)?, place))
    });
    let places = places.collect::<Result<_, Fault>>()?;
    let group = reader.as_ref().map(|reader| Arc::clone(&reader.group));
    let command = StreamCommand::Read(StreamRead { reader, places, max, wait });
    let format = StreamFormat { told: Told::Read, group: group.map(|it| (NoGroup::InRead, it)) };
    Ok(Query::stream(command, format))
}

fn only_of_groups(option: &str) -> Fault {
    let behind = " option is only supported by XREADGROUP. You called XREAD instead.";
    Fault::about("ERR The ", option.as_bytes(), behind)
}

fn unbalanced(of_group: bool) -> Fault {
    Fault::of(if of_group {
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be \
         specified."
    } else {
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be \
         specified."
    })
}

fn place(word: &[u8], of_group: bool) -> Result<ReadPlace, Fault> {
    match (word, of_group) {
        (b">", true) | (b"$", false) => Ok(ReadPlace::New),
        (b"$", true) => Err(Fault::of(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The $ ID would just return an empty result set.",
        )),
        (b">", false) => Err(Fault::of(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        _ => strict_id(word).map(ReadPlace::Behind),
    }
}

/// How long to wait, in milliseconds; zero is for ever.
fn timeout(arguments: Arguments<'_>, at: usize) -> Result<Option<Nanos>, Fault> {
    let millis = integer_or(arguments, at, "ERR timeout is not an integer or out of range")?;
    let millis = u64::try_from(millis).map_err(|_| Fault::of("ERR timeout is negative"))?;
    Ok(Some(Nanos::from_millis(millis)).filter(|wait| *wait != Nanos::ZERO))
}

fn group_at(arguments: Arguments<'_>, at: usize) -> Result<GroupName, Fault> {
    Ok(GroupName { stream: arguments.key(at)?, group: arguments.element(at + 1) })
}

/// A question about a group, which has to be there.
fn of_group(command: StreamCommand, told: Told, no_group: NoGroup, of: &GroupName) -> Query {
    let group = Some((no_group, Arc::clone(&of.group)));
    Query::stream(command, StreamFormat { told, group })
}

/// XGROUP CREATE
pub(crate) fn create(arguments: Arguments<'_>) -> QueryResult {
    let (mut makes_stream, mut read, mut at) = (false, None, 5);
    while at < arguments.len() {
        match () {
            () if arguments.is(at, "mkstream") => makes_stream = true,
            () if arguments.is(at, "entriesread") && at + 1 < arguments.len() => {
                read = entries_read(arguments, at + 1)?;
                at += 1;
            }
            () => return Err(Fault::subcommand(arguments, "XGROUP")),
        }
        at += 1;
    }
    let last = match arguments.word(4) {
        b"$" => None,
        word => Some(strict_id(word)?),
    };
    let (of, start) = (group_at(arguments, 2)?, GroupStart { last, read });
    let command = StreamCommand::CreateGroup { of, start, makes_stream };
    Ok(Query::stream(command, ReplyFormat::Okay))
}

/// XGROUP SETID
pub(crate) fn set(arguments: Arguments<'_>) -> QueryResult {
    let read = match arguments.len() {
        5 => None,
        7 if arguments.is(5, "entriesread") => entries_read(arguments, 6)?,
        _ => return Err(Fault::subcommand(arguments, "XGROUP")),
    };
    let last = match arguments.word(4) {
        b"$" => None,
        word => Some(id(word, 0)?),
    };
    let of = group_at(arguments, 2)?;
    let command = StreamCommand::SetGroup { of: of.clone(), start: GroupStart { last, read } };
    Ok(of_group(command, Told::Okay, NoGroup::ForKey, &of))
}

/// How many entries a group has read; -1 says that nobody knows.
fn entries_read(arguments: Arguments<'_>, at: usize) -> Result<Option<u64>, Fault> {
    match arguments.integer(at)? {
        -1 => Ok(None),
        read => u64::try_from(read)
            .map(Some)
            .map_err(|_| Fault::of("ERR value for ENTRIESREAD must be positive or -1")),
    }
}

/// XGROUP DESTROY
pub(crate) fn destroy(arguments: Arguments<'_>) -> QueryResult {
    let command = StreamCommand::RemoveGroup { of: group_at(arguments, 2)? };
    Ok(Query::stream(command, ReplyFormat::Count))
}

/// XGROUP CREATECONSUMER
pub(crate) fn create_consumer(arguments: Arguments<'_>) -> QueryResult {
    let (of, consumer) = (group_at(arguments, 2)?, arguments.element(4));
    let command = StreamCommand::CreateConsumer { of: of.clone(), consumer };
    Ok(of_group(command, Told::Count, NoGroup::ForKey, &of))
}

/// XGROUP DELCONSUMER
pub(crate) fn remove_consumer(arguments: Arguments<'_>) -> QueryResult {
    let (of, consumer) = (group_at(arguments, 2)?, arguments.element(4));
    let group = Some((NoGroup::ForKey, Arc::clone(&of.group)));
    Ok(StreamFormat::counting(StreamCommand::RemoveConsumer { of, consumer }, group))
}

/// XACK
pub(crate) fn acknowledge(arguments: Arguments<'_>) -> QueryResult {
    let command =
        StreamCommand::Acknowledge { of: group_at(arguments, 1)?, ids: ids(arguments, 3)? };
    Ok(Query::stream(command, ReplyFormat::Count))
}

/// XPENDING
pub(crate) fn pending(arguments: Arguments<'_>) -> QueryResult {
    let of = group_at(arguments, 1)?;
    let count = arguments.len();
    if count == 3 {
        let command = StreamCommand::CountPending { of: of.clone() };
        return Ok(of_group(command, Told::PendingCounts, NoGroup::OrKey, &of));
    }
    if !(6..=9).contains(&count) {
        return Err(Fault::SYNTAX);
    }
    let (mut at, mut min_idle) = (3, Nanos::ZERO);
    if arguments.is(3, "idle") {
        let millis = u64::try_from(arguments.integer(4)?).unwrap_or(0);
        min_idle = Nanos::from_millis(millis);
        if count < 8 {
            return Err(Fault::SYNTAX);
        }
        at = 5;
    }
    let max = Some(u64::try_from(arguments.integer(at + 2)?).unwrap_or(0));
    let (first, last) = bounds(arguments, at, at + 1)?;
    let consumer = (at + 3 < count).then(|| arguments.element(at + 3));
    let range = StreamRange { first, last, max };
    let command = StreamCommand::ShowPending { of: of.clone(), range, consumer, min_idle };
    Ok(of_group(command, Told::Pending, NoGroup::OrKey, &of))
}

fn claim_at(arguments: Arguments<'_>, invalid_idle: &'static str) -> Result<StreamClaim, Fault> {
    let millis = integer_or(arguments, 4, invalid_idle)?;
    let min_idle = Nanos::from_millis(u64::try_from(millis).unwrap_or(0));
    let (of, consumer) = (group_at(arguments, 1)?, arguments.element(3));
    Ok(StreamClaim { of, consumer, min_idle, only_ids: false })
}

/// XCLAIM
pub(crate) fn claim(arguments: Arguments<'_>) -> QueryResult {
    let mut claim = claim_at(arguments, "ERR Invalid min-idle-time argument for XCLAIM")?;
    let ids: Vec<StreamId> = arguments.from(5).map_while(|word| strict_id(word).ok()).collect();
    let mut claimed = ClaimedAs::default();
    let mut at = 5 + ids.len();
    while at < arguments.len() {
        let has_more = at + 1 < arguments.len();
        match () {
            () if arguments.is(at, "force") => claimed.also_free = true,
            () if arguments.is(at, "justid") => claim.only_ids = true,
            () if !has_more => return Err(unrecognized(arguments, at)),
            () => {
                set_claimed(arguments, at, &mut claimed)?;
                at += 1;
            }
        }
        at += 1;
    }
    let told = if claim.only_ids { Told::Ids } else { Told::Entries };
    let of = claim.of.clone();
    Ok(of_group(StreamCommand::Claim { claim, ids, claimed }, told, NoGroup::OrKey, &of))
}

/// An option of XCLAIM with an argument.
fn set_claimed(arguments: Arguments<'_>, at: usize, claimed: &mut ClaimedAs) -> Result<(), Fault> {
    let millis = |fault| integer_or(arguments, at + 1, fault).map(u64::try_from);
    match () {
        () if arguments.is(at, "idle") => {
            let span = millis("ERR Invalid IDLE option argument for XCLAIM")?.ok();
            claimed.delivered = span.map(Nanos::from_millis).map(ClaimTime::Ago);
        }
        () if arguments.is(at, "time") => {
            let at = millis("ERR Invalid TIME option argument for XCLAIM")?.ok();
            claimed.delivered = at.map(Nanos::from_millis).map(ClaimTime::At);
        }
        () if arguments.is(at, "retrycount") => {
            claimed.count = millis("ERR Invalid RETRYCOUNT option argument for XCLAIM")?.ok();
        }
        () if arguments.is(at, "lastid") => claimed.last = strict_id(arguments.word(at + 1))?,
        () => return Err(unrecognized(arguments, at)),
    }
    Ok(())
}

fn unrecognized(arguments: Arguments<'_>, at: usize) -> Fault {
    let word = crate::fault::printed(arguments.word(at), usize::MAX);
    Fault::about("ERR Unrecognized XCLAIM option '", word, "'")
}

/// XAUTOCLAIM
pub(crate) fn claim_next(arguments: Arguments<'_>) -> QueryResult {
    let mut claim = claim_at(arguments, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let from = first_bound(arguments, 5)?;
    let (mut max, mut at) = (USUAL_CLAIM, 6);
    while at < arguments.len() {
        match () {
            () if arguments.is(at, "count") && at + 1 < arguments.len() => {
                let few = "ERR COUNT must be > 0";
                let count = u64::try_from(integer_or(arguments, at + 1, few)?).unwrap_or(0);
                if count == 0 || count > CLAIM_MAX {
                    return Err(Fault::of(few));
                }
                max = count;
                at += 1;
            }
            () if arguments.is(at, "justid") => claim.only_ids = true,
            () => return Err(Fault::SYNTAX),
        }
        at += 1;
    }
    let told = if claim.only_ids { Told::ClaimedIds } else { Told::Claimed };
    let of = claim.of.clone();
    Ok(of_group(StreamCommand::ClaimNext { claim, from, max }, told, NoGroup::OrKey, &of))
}

const USUAL_CLAIM: u64 = 100;

/// As in Redis.
const CLAIM_MAX: u64 = i64::MAX as u64 / 16;

/// XINFO GROUPS
pub(crate) fn describe_all(arguments: Arguments<'_>) -> QueryResult {
    let command = StreamCommand::DescribeGroups { name: arguments.key(2)? };
    Ok(Query::stream(command, Told::Groups))
}

/// XINFO CONSUMERS
pub(crate) fn describe_consumers(arguments: Arguments<'_>) -> QueryResult {
    let of = group_at(arguments, 2)?;
    let command = StreamCommand::DescribeConsumers { of: of.clone() };
    Ok(of_group(command, Told::Consumers, NoGroup::ForKey, &of))
}
