//! The facts about the commands of sorted sets.

use super::{change, combine, pop, range, read};
use crate::command::{Command, Flags, KeyPositions, NO_KEYS, ONE_KEY, TWO_KEYS};

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = READ.and(Flags::FAST);
const READ_SOME: Flags = READ.and(Flags::MOVABLE_KEYS);
const WRITE: Flags = Flags::WRITE;
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
const GROW: Flags = WRITE.and(Flags::DENYOOM);
const FAST_GROW: Flags = GROW.and(Flags::FAST);
const STORE: Flags = GROW.and(Flags::MOVABLE_KEYS);
const BLOCK: Flags = WRITE.and(Flags::BLOCKING);
const FAST_BLOCK: Flags = BLOCK.and(Flags::NOSCRIPT).and(Flags::FAST);
const BLOCK_SOME: Flags = BLOCK.and(Flags::MOVABLE_KEYS);
const ALL_BUT_LAST: KeyPositions = KeyPositions {
    first: 1,
    last: -2,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bzmpop", -5, BLOCK_SOME, NO_KEYS, pop::bzmpop),
    Command::new("bzpopmax", -3, FAST_BLOCK, ALL_BUT_LAST, pop::bzpopmax),
    Command::new("bzpopmin", -3, FAST_BLOCK, ALL_BUT_LAST, pop::bzpopmin),
    Command::new("zadd", -4, FAST_GROW, ONE_KEY, change::zadd),
    Command::new("zcard", 2, FAST_READ, ONE_KEY, read::zcard),
    Command::new("zcount", 4, FAST_READ, ONE_KEY, read::zcount),
    Command::new("zdiff", -3, READ_SOME, NO_KEYS, combine::zdiff),
    Command::new("zdiffstore", -4, STORE, ONE_KEY, combine::zdiffstore),
    Command::new("zincrby", 4, FAST_GROW, ONE_KEY, change::zincrby),
    Command::new("zinter", -3, READ_SOME, NO_KEYS, combine::zinter),
    Command::new("zintercard", -3, READ_SOME, NO_KEYS, combine::zintercard),
    Command::new("zinterstore", -4, STORE, ONE_KEY, combine::zinterstore),
    Command::new("zlexcount", 4, FAST_READ, ONE_KEY, read::zlexcount),
    Command::new(
        "zmpop",
        -4,
        WRITE.and(Flags::MOVABLE_KEYS),
        NO_KEYS,
        pop::zmpop,
    ),
    Command::new("zmscore", -3, FAST_READ, ONE_KEY, read::zmscore),
    Command::new("zpopmax", -2, FAST_WRITE, ONE_KEY, pop::zpopmax),
    Command::new("zpopmin", -2, FAST_WRITE, ONE_KEY, pop::zpopmin),
    Command::new("zrandmember", -2, READ, ONE_KEY, read::zrandmember),
    Command::new("zrange", -4, READ, ONE_KEY, range::zrange),
    Command::new("zrangebylex", -4, READ, ONE_KEY, range::zrangebylex),
    Command::new("zrangebyscore", -4, READ, ONE_KEY, range::zrangebyscore),
    Command::new("zrangestore", -5, GROW, TWO_KEYS, range::zrangestore),
    Command::new("zrank", 3, FAST_READ, ONE_KEY, read::zrank),
    Command::new("zrem", -3, FAST_WRITE, ONE_KEY, change::zrem),
    Command::new("zremrangebylex", 4, WRITE, ONE_KEY, change::zremrangebylex),
    Command::new(
        "zremrangebyrank",
        4,
        WRITE,
        ONE_KEY,
        change::zremrangebyrank,
    ),
    Command::new(
        "zremrangebyscore",
        4,
        WRITE,
        ONE_KEY,
        change::zremrangebyscore,
    ),
    Command::new("zrevrange", -4, READ, ONE_KEY, range::zrevrange),
    Command::new("zrevrangebylex", -4, READ, ONE_KEY, range::zrevrangebylex),
    Command::new(
        "zrevrangebyscore",
        -4,
        READ,
        ONE_KEY,
        range::zrevrangebyscore,
    ),
    Command::new("zrevrank", 3, FAST_READ, ONE_KEY, read::zrevrank),
    Command::new("zscan", -3, READ, ONE_KEY, read::zscan),
    Command::new("zscore", 3, FAST_READ, ONE_KEY, read::zscore),
    Command::new("zunion", -3, READ_SOME, NO_KEYS, combine::zunion),
    Command::new("zunionstore", -4, STORE, ONE_KEY, combine::zunionstore),
];
