//! The facts about the commands of streams.

use super::{autoclaim, groups, info, pending, range, read, readgroup, write};
use crate::command::{Command, Flags, NO_KEYS, ONE_KEY};

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = READ.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE;
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
const FAST_GROW: Flags = FAST_WRITE.and(Flags::DENYOOM);
const BLOCK: Flags = Flags::BLOCKING.and(Flags::MOVABLE_KEYS);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("xack", -4, FAST_WRITE, ONE_KEY, groups::xack),
    Command::new("xadd", -5, FAST_GROW, ONE_KEY, write::xadd),
    Command::new("xautoclaim", -6, FAST_WRITE, ONE_KEY, autoclaim::xautoclaim),
    Command::new("xclaim", -6, FAST_WRITE, ONE_KEY, pending::xclaim),
    Command::new("xdel", -3, FAST_WRITE, ONE_KEY, write::xdel),
    Command::new("xgroup", -2, Flags::FAMILY_WRITES, NO_KEYS, groups::xgroup),
    Command::new("xinfo", -2, Flags::NONE, NO_KEYS, info::xinfo),
    Command::new("xlen", 2, FAST_READ, ONE_KEY, range::xlen),
    Command::new("xpending", -3, READ, ONE_KEY, pending::xpending),
    Command::new("xrange", -4, READ, ONE_KEY, range::xrange),
    Command::new("xread", -4, READ.and(BLOCK), NO_KEYS, read::xread),
    Command::new(
        "xreadgroup",
        -7,
        WRITE.and(BLOCK),
        NO_KEYS,
        readgroup::xreadgroup,
    ),
    Command::new("xrevrange", -4, READ, ONE_KEY, range::xrevrange),
    Command::new("xsetid", -3, FAST_GROW, ONE_KEY, write::xsetid),
    Command::new("xtrim", -4, WRITE, ONE_KEY, write::xtrim),
];
