//! Whole table files: opened, read in every way, verified. Damage is an error, never a panic.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::key::{SEQNO_MAX, seek_key, user_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::{InternalIterator, KeyOrder, MemoryBudget};
use drumlin_table::{BlockCache, KeyHint, Table, TableIter, TableReadOptions, TableReaderOptions};

use super::expect::{memory_file, or_blamed};
use super::model::Trained;
use crate::reseal;

/// Most steps of a walk: an index may name one block many times over.
const STEPS_MAX: usize = 4096;
/// How prefixes are cut, here and in the seeds.
pub(crate) const PREFIX_BYTES: usize = 5;
/// How many keys are sought.
const KEYS_MAX: usize = 12;

/// The input as it is, and with checksums that fit.
pub(crate) fn run(data: &[u8]) {
    read(data);
    let mut sealed = data.to_vec();
    reseal::table(&mut sealed);
    if sealed != data {
        read(&sealed);
    }
}

fn read(bytes: &[u8]) {
    let budget = MemoryBudget::new(8 << 20);
    let cache = BlockCache::new(Arc::clone(&budget));
    for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
        let path = PathBuf::from("/000007.sst");
        let mut options = TableReaderOptions::new(path, 7, Arc::clone(&cache), Arc::clone(&budget));
        options.order = order;
        options.models = Some(Arc::new(Trained));
        options.prefix = Some(Arc::new(FixedPrefix::new(PREFIX_BYTES)));
        let file = memory_file(bytes.to_vec());
        let read = or_blamed(Table::properties_of(Arc::clone(&file), &options.path));
        if let Some(table) = or_blamed(Table::open(file, options)) {
            let properties = read.expect("a table that opens has properties to be read");
            assert!(
                properties.is_none_or(|read| read.num_entries == table.properties().num_entries)
            );
            exercise(&table);
            return; // A table has one order; the other would be refused.
        }
    }
}

fn exercise(table: &Arc<Table>) {
    let mut iter = table.iter(TableReadOptions::default());
    let keys = walk(&mut iter);
    let mut sought: Vec<Vec<u8>> = keys.iter().map(|key| user_key(key).to_vec()).collect();
    sought.extend([Vec::new(), b"k".to_vec(), vec![0xFF; 12]]);
    for key in &sought {
        seek(&mut iter, key);
        point(table, key);
    }
    for tombstone in table.range_tombstones() {
        let _ = tombstone.begin < tombstone.end;
    }
    let _ = table.properties().index_type();
    let _ = table.resident_bytes();
    if or_blamed(table.verify()).is_some() {
        for key in &keys {
            let found = table.may_contain(user_key(key));
            assert!(
                found.is_ok_and(|found| found),
                "a verified filter denies {key:?}"
            );
        }
    }
}

/// There and back; some of the keys met.
fn walk(iter: &mut TableIter) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut steps = 0;
    iter.seek_to_first();
    while iter.valid() && steps < STEPS_MAX {
        let _ = iter.value();
        if steps % 97 == 0 && keys.len() < KEYS_MAX {
            keys.push(iter.key().to_vec());
        }
        steps += 1;
        iter.next();
    }
    let _ = or_blamed(iter.status());
    steps = 0;
    iter.seek_to_last();
    while iter.valid() && steps < STEPS_MAX {
        let _ = iter.pin_value();
        steps += 1;
        iter.prev();
    }
    let _ = or_blamed(iter.status());
    keys
}

fn seek(iter: &mut TableIter, key: &[u8]) {
    let target = seek_key(key, SEQNO_MAX);
    iter.seek(&target);
    if iter.valid() {
        iter.prev();
    }
    let _ = or_blamed(iter.status());
    iter.seek_for_prev(&target);
    if iter.valid() {
        iter.next();
    }
    let _ = or_blamed(iter.status());
    let _ = iter.approximate_offset(&target);
}

fn point(table: &Arc<Table>, key: &[u8]) {
    let mut versions = 0;
    let found = table.get(
        key,
        SEQNO_MAX,
        &TableReadOptions::default(),
        |_, _, value| {
            versions += 1;
            let _ = value.pin();
            match versions < STEPS_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        },
    );
    let _ = or_blamed(found);
    if let Table::Plain(plain) = &**table {
        let mut probe = plain.probe(KeyHint::of(key));
        probe.prefetch_index();
        plain.prefetch_guess(key);
        let there = probe.find_record();
        probe.prefetch_record();
        assert!(there || versions == 0, "a key that is there has a place");
    }
    let _ = or_blamed(table.may_contain(key));
    let _ = or_blamed(table.may_contain_prefix(key));
}
