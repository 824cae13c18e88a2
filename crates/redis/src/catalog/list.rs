//! The catalogue by name and by place. It is read when the first server of the process starts.

use std::collections::HashMap;
use std::sync::LazyLock;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use super::entry::Entry;
use super::lines::entries;

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(entries);
static BY_NAME: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let named = ENTRIES.iter().map(|entry| (entry.name, entry.index));
    named.collect()
});

/// All commands and subcommands by name, each family before its subcommands.
pub(crate) fn all() -> &'static [Entry] {
    &ENTRIES
}

/// The one at `index`.
///
/// # Panics
/// Where there is none: places come from here.
pub(crate) fn get(index: usize) -> &'static Entry {
    ENTRIES.get(index).expect("places come from the catalogue")
}

/// The one called `name`, in any case, with `|` before a subcommand.
pub(crate) fn find(name: &[u8]) -> Option<&'static Entry> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    BY_NAME.get(name.as_str()).map(|index| get(*index))
}

/// The subcommands of a family.
pub(crate) fn children(entry: &Entry) -> &'static [Entry] {
    ENTRIES.get(entry.children.clone()).unwrap_or_default()
}

/// The subcommand of a family that is called `name`, in any case.
pub(crate) fn child(entry: &Entry, name: &[u8]) -> Option<&'static Entry> {
    let mut children = children(entry).iter();
    children.find(|it| {
        let (_, own) = it.parts();
        own.is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(name))
    })
}

/// What the arguments ask for of a command, however many they are: itself or a subcommand, if that is known.
pub(crate) fn lookup(entry: &'static Entry, args: Args<'_>) -> Option<&'static Entry> {
    match args.get(1) {
        Some(asked) if entry.is_family() => child(entry, asked),
        _ => Some(entry),
    }
}

/// What the arguments ask for of a command: itself or a subcommand.
///
/// # Errors
/// As Redis words them: for a subcommand that is not known, or has another number of arguments.
pub(crate) fn resolve(entry: &'static Entry, args: Args<'_>) -> Outcome<&'static Entry> {
    let (true, Some(asked)) = (entry.is_family(), args.get(1)) else {
        return Ok(entry);
    };
    let Some(found) = child(entry, asked) else {
        let asked: String = String::from_utf8_lossy(asked).chars().take(128).collect();
        let family = entry.name.to_ascii_uppercase();
        return Err(Failure::because(format!(
            "ERR unknown subcommand '{asked}'. Try {family} HELP."
        )));
    };
    match found.takes(args.len()) {
        true => Ok(found),
        false => Err(Failure::because(format!(
            "ERR wrong number of arguments for '{}' command",
            found.name
        ))),
    }
}
