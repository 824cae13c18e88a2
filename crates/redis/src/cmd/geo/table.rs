//! The facts about the commands of places.

use super::{place, search};
use crate::command::{Command, Flags, ONE_KEY, TWO_KEYS};

const READ: Flags = Flags::READONLY;
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);
const STORE_SOME: Flags = GROW.and(Flags::MOVABLE_KEYS);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("geoadd", -5, GROW, ONE_KEY, place::geoadd),
    Command::new("geodist", -4, READ, ONE_KEY, place::geodist),
    Command::new("geohash", -2, READ, ONE_KEY, place::geohash),
    Command::new("geopos", -2, READ, ONE_KEY, place::geopos),
    Command::new("georadius", -6, STORE_SOME, ONE_KEY, search::georadius),
    Command::new("georadius_ro", -6, READ, ONE_KEY, search::georadius_ro),
    Command::new(
        "georadiusbymember",
        -5,
        STORE_SOME,
        ONE_KEY,
        search::georadiusbymember,
    ),
    Command::new(
        "georadiusbymember_ro",
        -5,
        READ,
        ONE_KEY,
        search::georadiusbymember_ro,
    ),
    Command::new("geosearch", -7, READ, ONE_KEY, search::geosearch),
    Command::new("geosearchstore", -8, GROW, TWO_KEYS, search::geosearchstore),
];
