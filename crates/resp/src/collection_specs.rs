//! The commands on hashes, sets and sorted sets, as the table of commands has them.

use model::CollectionKind as Kind;
use model::SetOperation::{Difference, Intersection, Union};

use crate::collection_format::CollectionFormat;
use crate::collections as any;
use crate::hashes;
use crate::scored_combinations;
use crate::scored_ranges::{By, Form};
use crate::sets;
use crate::sorted_sets;
use crate::table::Group::{Hash, Set, SortedSet};
use crate::table::{
    NO_KEYS, ONE_KEY, READ, READ_FAST, STORE, STORE_FAST, Spec, TWO_KEYS, WAIT_MOVABLE, WRITE,
    WRITE_FAST, ask,
};

const READ_MOVABLE: &[&str] = &["readonly", "movablekeys"];
const STORE_MOVABLE: &[&str] = &["write", "denyoom", "movablekeys"];
const WAIT_FAST: &[&str] = &["write", "noscript", "blocking", "fast"];

/// All words behind the name are keys.
const KEYS: (i8, i8, i8) = (1, -1, 1);

/// In the order of their names.
pub(crate) static SPECS: [Spec; 68] = [
    ask("bzmpop", -5, WAIT_MOVABLE, NO_KEYS, SortedSet, sorted_sets::pop_several_waiting),
    ask("bzpopmax", -3, WAIT_FAST, (1, -2, 1), SortedSet, |it| sorted_sets::pop_waiting(it, true)),
    ask("bzpopmin", -3, WAIT_FAST, (1, -2, 1), SortedSet, |it| sorted_sets::pop_waiting(it, false)),
    ask("hdel", -3, WRITE_FAST, ONE_KEY, Hash, |it| any::remove(it, Kind::Hash)),
    ask("hexists", 3, READ_FAST, ONE_KEY, Hash, hashes::exists),
    ask("hget", 3, READ_FAST, ONE_KEY, Hash, hashes::value),
    ask("hgetall", 2, READ, ONE_KEY, Hash, |it| any::show(it, Kind::Hash, CollectionFormat::Table)),
    ask("hincrby", 4, STORE_FAST, ONE_KEY, Hash, hashes::increase),
    ask("hincrbyfloat", 4, STORE_FAST, ONE_KEY, Hash, hashes::increase_decimal),
    ask("hkeys", 2, READ, ONE_KEY, Hash, |it| any::show(it, Kind::Hash, CollectionFormat::Fields)),
    ask("hlen", 2, READ_FAST, ONE_KEY, Hash, |it| any::count(it, Kind::Hash)),
    ask("hmget", -3, READ_FAST, ONE_KEY, Hash, hashes::values),
    ask("hmset", -4, STORE_FAST, ONE_KEY, Hash, hashes::set_several),
    ask("hrandfield", -2, READ, ONE_KEY, Hash, |it| any::pick(it, Kind::Hash, "withvalues")),
    ask("hscan", -3, READ, ONE_KEY, Hash, |it| any::scan(it, Kind::Hash)),
    ask("hset", -4, STORE_FAST, ONE_KEY, Hash, hashes::set),
    ask("hsetnx", 4, STORE_FAST, ONE_KEY, Hash, hashes::set_new),
    ask("hstrlen", 3, READ_FAST, ONE_KEY, Hash, hashes::value_length),
    ask("hvals", 2, READ, ONE_KEY, Hash, |it| {
        any::show(it, Kind::Hash, CollectionFormat::FieldValues)
    }),
    ask("sadd", -3, STORE_FAST, ONE_KEY, Set, sets::add),
    ask("scard", 2, READ_FAST, ONE_KEY, Set, |it| any::count(it, Kind::Set)),
    ask("sdiff", -2, READ, KEYS, Set, |it| sets::combine(it, Difference)),
    ask("sdiffstore", -3, STORE, KEYS, Set, |it| sets::combine_into(it, Difference)),
    ask("sinter", -2, READ, KEYS, Set, |it| sets::combine(it, Intersection)),
    ask("sintercard", -3, READ_MOVABLE, NO_KEYS, Set, sets::count_common),
    ask("sinterstore", -3, STORE, KEYS, Set, |it| sets::combine_into(it, Intersection)),
    ask("sismember", 3, READ_FAST, ONE_KEY, Set, sets::contains),
    ask("smembers", 2, READ, ONE_KEY, Set, sets::members),
    ask("smismember", -3, READ_FAST, ONE_KEY, Set, sets::contains_each),
    ask("smove", 4, WRITE_FAST, TWO_KEYS, Set, sets::shift),
    ask("spop", -2, WRITE_FAST, ONE_KEY, Set, sets::pop),
    ask("srandmember", -2, READ, ONE_KEY, Set, sets::pick),
    ask("srem", -3, WRITE_FAST, ONE_KEY, Set, |it| any::remove(it, Kind::Set)),
    ask("sscan", -3, READ, ONE_KEY, Set, |it| any::scan(it, Kind::Set)),
    ask("sunion", -2, READ, KEYS, Set, |it| sets::combine(it, Union)),
    ask("sunionstore", -3, STORE, KEYS, Set, |it| sets::combine_into(it, Union)),
    ask("zadd", -4, STORE_FAST, ONE_KEY, SortedSet, sorted_sets::add),
    ask("zcard", 2, READ_FAST, ONE_KEY, SortedSet, |it| any::count(it, Kind::SortedSet)),
    ask("zcount", 4, READ_FAST, ONE_KEY, SortedSet, |it| sorted_sets::count_range(it, By::Score)),
    ask("zdiff", -3, READ_MOVABLE, NO_KEYS, SortedSet, |it| {
        scored_combinations::show(it, Difference)
    }),
    ask("zdiffstore", -4, STORE_MOVABLE, ONE_KEY, SortedSet, |it| {
        scored_combinations::store(it, Difference)
    }),
    ask("zincrby", 4, STORE_FAST, ONE_KEY, SortedSet, sorted_sets::increase),
    ask("zinter", -3, READ_MOVABLE, NO_KEYS, SortedSet, |it| {
        scored_combinations::show(it, Intersection)
    }),
    ask("zintercard", -3, READ_MOVABLE, NO_KEYS, SortedSet, scored_combinations::count),
    ask("zinterstore", -4, STORE_MOVABLE, ONE_KEY, SortedSet, |it| {
        scored_combinations::store(it, Intersection)
    }),
    ask("zlexcount", 4, READ_FAST, ONE_KEY, SortedSet, |it| {
        sorted_sets::count_range(it, By::Member)
    }),
    ask("zmpop", -4, &["write", "movablekeys"], NO_KEYS, SortedSet, sorted_sets::pop_several),
    ask("zmscore", -3, READ_FAST, ONE_KEY, SortedSet, sorted_sets::scores_of),
    ask("zpopmax", -2, WRITE_FAST, ONE_KEY, SortedSet, |it| sorted_sets::pop(it, true)),
    ask("zpopmin", -2, WRITE_FAST, ONE_KEY, SortedSet, |it| sorted_sets::pop(it, false)),
    ask("zrandmember", -2, READ, ONE_KEY, SortedSet, |it| {
        any::pick(it, Kind::SortedSet, "withscores")
    }),
    ask("zrange", -4, READ, ONE_KEY, SortedSet, |it| sorted_sets::range(it, Form::OPEN)),
    ask("zrangebylex", -4, READ, ONE_KEY, SortedSet, |it| {
        sorted_sets::range(it, Form::of(By::Member, false))
    }),
    ask("zrangebyscore", -4, READ, ONE_KEY, SortedSet, |it| {
        sorted_sets::range(it, Form::of(By::Score, false))
    }),
    ask("zrangestore", -5, STORE, TWO_KEYS, SortedSet, sorted_sets::store_range),
    ask("zrank", -3, READ_FAST, ONE_KEY, SortedSet, |it| sorted_sets::rank(it, false, "zrank")),
    ask("zrem", -3, WRITE_FAST, ONE_KEY, SortedSet, |it| any::remove(it, Kind::SortedSet)),
    ask("zremrangebylex", 4, WRITE, ONE_KEY, SortedSet, |it| {
        sorted_sets::remove_range(it, By::Member)
    }),
    ask("zremrangebyrank", 4, WRITE, ONE_KEY, SortedSet, |it| {
        sorted_sets::remove_range(it, By::Rank)
    }),
    ask("zremrangebyscore", 4, WRITE, ONE_KEY, SortedSet, |it| {
        sorted_sets::remove_range(it, By::Score)
    }),
    ask("zrevrange", -4, READ, ONE_KEY, SortedSet, |it| {
        sorted_sets::range(it, Form::of(By::Rank, true))
    }),
    ask("zrevrangebylex", -4, READ, ONE_KEY, SortedSet, |it| {
        sorted_sets::range(it, Form::of(By::Member, true))
    }),
    ask("zrevrangebyscore", -4, READ, ONE_KEY, SortedSet, |it| {
        sorted_sets::range(it, Form::of(By::Score, true))
    }),
    ask("zrevrank", -3, READ_FAST, ONE_KEY, SortedSet, |it| {
        sorted_sets::rank(it, true, "zrevrank")
    }),
    ask("zscan", -3, READ, ONE_KEY, SortedSet, |it| any::scan(it, Kind::SortedSet)),
    ask("zscore", 3, READ_FAST, ONE_KEY, SortedSet, sorted_sets::score_of),
    ask("zunion", -3, READ_MOVABLE, NO_KEYS, SortedSet, |it| scored_combinations::show(it, Union)),
    ask("zunionstore", -4, STORE_MOVABLE, ONE_KEY, SortedSet, |it| {
        scored_combinations::store(it, Union)
    }),
];
