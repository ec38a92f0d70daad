//! Stories of clients of Redis with hashes, sets, sorted sets and streams: batches, members that
//! move, a client that waits for a member. The process or the power falls at every call to the
//! disk.
//!
//! The oracle judges each answer and each recovery, as it does with lists. The hash is more than
//! one segment and more than one part of a snapshot.

use model::Nanos;
use sim::{FaultyDisk, World};

use crate::lists::{POLICIES, Story, fall_at_every_call, scenario};

/// Tells it until the process falls.
fn story(world: &mut World<FaultyDisk>) -> Option<()> {
    world.start();
    let [one, two] = [(); 2].map(|()| world.connect_redis());
    let mut it = Story(world);
    it.ask(one, &["HSET h1 a 1 b 2", "HINCRBY h1 a 5", "HSETNX h1 a x", "HGETALL h1"])?;
    for number in 0..20 {
        let other = if number % 2 == 0 { "h1" } else { "h2" };
        it.ask(one, &[&format!("HSET {other} m{number} BIG")])?;
    }
    it.ask(two, &["SADD s1 a b c", "SMOVE s1 s2 b", "SMOVE s1 s2 a", "SREM s1 c", "SCARD s1"])?;
    // An amount goes from one hash to another, and a field that is none is left alone.
    it.ask(one, &["MULTI", "HINCRBY h1 a -2", "HINCRBY h2 a 2", "HDEL h1 m2 m4 x", "EXEC"])?;
    it.waits(two, "BZPOPMIN z1 z2 0")?;
    it.ask(one, &["MULTI", "ZADD z2 2 b 1 a", "ZADD s1 1.5 c -inf d", "SPOP s2 100", "EXEC"])?;
    it.ask(two, &["ZUNIONSTORE z1 2 z2 s1", "ZRANGE z1 0 -1 WITHSCORES"])?;
    it.ask(two, &["ZINCRBY z1 -3 b", "ZADD z1 XX CH 7 c 9 x", "ZRANGESTORE z2 z1 1 -1"])?;
    it.ask(one, &["ZREMRANGEBYSCORE z1 (1.5 inf", "ZPOPMIN z2 100", "RENAME z1 s1"])?;
    it.ask(one, &["PEXPIRE h2 50", "HSET h2 n 1", "HDEL h1 a b m0 m6"])?;
    it.0.pass(Nanos::from_millis(60));
    it.ask(two, &["HSET h2 n 2", "TYPE s1", "DEL h1", "HSET h1 a again"])?;
    Some(())
}

#[test]
fn collections_are_whole_after_any_crash() {
    for policy in POLICIES {
        let mut scenario = scenario(policy);
        scenario.journal.segment_bytes = 64 * 1024;
        fall_at_every_call(story, &scenario);
    }
}

/// The same of a stream with a group: entries that are read, acknowledged, claimed, and leave.
fn stream_story(world: &mut World<FaultyDisk>) -> Option<()> {
    world.start();
    let [one, two] = [(); 2].map(|()| world.connect_redis());
    let mut it = Story(world);
    it.ask(one, &["XGROUP CREATE x1 g 0 MKSTREAM"])?;
    for number in 1..12 {
        it.ask(one, &[&format!("XADD x1 {number}-* f BIG")])?;
    }
    it.ask(two, &["XREADGROUP GROUP g c COUNT 3 STREAMS x1 >", "XACK x1 g 1-0 9-0 1-0"])?;
    it.ask(two, &["MULTI", "XADD x2 MAXLEN 5 7-* f 1", "XACK x1 g 2-0", "HSET h1 a 1", "EXEC"])?;
    it.ask(one, &["XREADGROUP GROUP g d COUNT 3 STREAMS x1 >", "XPENDING x1 g", "XLEN x1"])?;
    it.ask(one, &["XTRIM x1 MAXLEN 2", "XAUTOCLAIM x1 g d 0 0 COUNT 1 JUSTID"])?;
    it.ask(two, &["XREADGROUP GROUP g c COUNT 3 STREAMS x1 0", "RENAME x1 x2", "XPENDING x2 g"])?;
    it.ask(two, &["XGROUP DESTROY x2 g", "XADD x2 20-* f BIG", "XRANGE x2 - +", "DEL x2"])?;
    it.ask(one, &["XADD x2 1-* f again", "XGROUP CREATE x2 g 0 MKSTREAM"])?;
    it.ask(two, &["XREADGROUP GROUP g c COUNT 1 STREAMS x2 >", "XACK x2 g 1-0"])?;
    Some(())
}

#[test]
fn streams_are_whole_after_any_crash() {
    for policy in POLICIES {
        let mut scenario = scenario(policy);
        scenario.journal.segment_bytes = 64 * 1024;
        fall_at_every_call(stream_story, &scenario);
    }
}
