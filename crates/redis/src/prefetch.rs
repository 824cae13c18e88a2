//! The keys whose records a round will ask for, from the commands as they came: so they are read together.

use drumlin_redis_store::{Keyspace, ReadFrom};
use drumlin_resp::look_ahead;

use crate::facts::Facts;
use crate::round::Round;
use crate::state::ServerState;
use crate::table::Table;

/// Fewer keys gain nothing from being read together.
const KEYS_MIN: usize = 4;
/// More would only push each other out of the processor's caches.
const KEYS_MAX: usize = 1_024;

/// Commands of a client that are looked at: as many as it may run in a round. It may have sent megabytes.
const COMMANDS_MAX: usize = 512;

/// Commands that mostly do not look at the record they write.
const BLIND: [&str; 4] = ["set", "setex", "psetex", "mset"];

/// Whether the first argument of the command is a key whose record it looks up.
pub(crate) fn looks_up_first(facts: &Facts) -> bool {
    facts.keys.first == 1 && !BLIND.contains(&facts.name)
}

/// The first keys of the commands that `clients` sent, each with its database; none if they are few.
pub(crate) fn keys<'a>(
    table: &Table,
    clients: impl Iterator<Item = (u16, &'a [u8])>,
) -> Vec<(u16, &'a [u8])> {
    let mut keys = Vec::new();
    // Pipelines are mostly of one command.
    let mut last: (&[u8], bool) = (b"", false);
    for (db, bytes) in clients {
        for (name, key) in look_ahead(bytes).take(COMMANDS_MAX) {
            if last.0 != name {
                let found = table.find(name);
                last = (name, found.is_some_and(|it| looks_up_first(&it.facts)));
            }
            // One key again and again is in memory after the first time.
            if last.1 && keys.last() != Some(&(db, key)) {
                keys.push((db, key));
            }
        }
        if keys.len() >= KEYS_MAX {
            keys.truncate(KEYS_MAX);
            break;
        }
    }
    if keys.len() < KEYS_MIN {
        keys.clear();
    }
    keys
}

/// Reads the records of `keys` for `round`, which begins now if it has not.
pub(crate) fn read(state: &ServerState, round: &mut Option<Round>, keys: &[(u16, &[u8])]) {
    if keys.is_empty() {
        return;
    }
    let round = round.get_or_insert_with(|| Round::next(state));
    let (store, view, overlay) = (&state.store, &round.view, &mut round.overlay);
    Keyspace::new(store, view, overlay, 0, round.now_ms, ReadFrom::Memory).read_ahead(keys);
}
