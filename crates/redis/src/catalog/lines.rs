//! The lines of the catalogue, in order: each family before its subcommands.

use super::entry::Entry;

const REDIS: &str = include_str!("commands.tsv");
const OURS: &str = include_str!("ours.tsv");

/// All entries by name.
pub(super) fn entries() -> Vec<Entry> {
    let parse = |line| Entry::parse(line).unwrap_or_else(|| panic!("the catalogue has {line:?}"));
    let ours = OURS.lines().map(|line| Entry {
        is_ours: true,
        ..parse(line)
    });
    let mut entries: Vec<Entry> = REDIS.lines().map(parse).chain(ours).collect();
    entries.sort_by_key(Entry::parts);
    for index in 0..entries.len() {
        let parts = |entry: &Entry| entry.parts();
        let family = entries.get(index).map(parts);
        let rest = entries.iter().skip(index + 1);
        let of_family = |entry: &&Entry| family.is_some_and(|it| it.0 == entry.parts().0);
        let count = rest.take_while(of_family).count();
        if let Some(entry) = entries.get_mut(index) {
            entry.index = index;
            if entry.parts().1.is_none() {
                entry.children = index + 1..index + 1 + count;
            }
        }
    }
    entries
}
