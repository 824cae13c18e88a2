//! What Kvrocks would ask of RocksDB, without Kvrocks: its encoding, its column families, and for each command the reads and the one
//! batch that the command needs there. Sockets, parsing, locks and compaction filters are left out, so that it is faster than a
//! Kvrocks can be.
//!
//! Families are `metadata`, `default` for elements of collections, and `zset_score`. A string is one entry of `metadata`; a sorted
//! set is an entry there, one in `default` for each member with its score, and an empty one in `zset_score` whose key has the score
//! in front of the member. Options are Kvrocks's defaults, where the flags name nothing else.

use std::fmt;

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, NoCursor, Session, Store};
use drumlin_fs::Env;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BottommostLevelCompaction, Cache, ColumnFamily,
    ColumnFamilyDescriptor, CompactOptions, DB, DataBlockIndexType, FlushOptions, Options,
    ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::{given, remove_store, rocksdb as plain};

const FAMILIES: [&str; 3] = ["default", METADATA, SCORES];
const METADATA: &str = "metadata";
const SCORES: &str = "zset_score";
/// The namespace of whoever named none.
const NAMESPACE: &[u8] = b"__namespace";
/// The types of a string and of a sorted set, with the bit for fields of 64 bits.
const STRING: u8 = 0x81;
const SORTED_SET: u8 = 0x85;
/// Bytes in front of a string's value: its type, and when it expires.
const STRING_HEAD_BYTES: usize = 9;
/// Of a sorted set's metadata: type, expiry, version, size.
const SORTED_SET_BYTES: usize = 25;

fn failed(error: impl fmt::Display) -> Error {
    super::failed("RocksDB", error)
}

/// The key of `metadata`.
fn namespaced(key: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(1 + NAMESPACE.len() + key.len());
    whole.push(NAMESPACE.len() as u8);
    whole.extend_from_slice(NAMESPACE);
    whole.extend_from_slice(key);
    whole
}

/// The key of an element of the collection `key`: with nothing in `parts`, what all its elements begin with.
fn element(key: &[u8], version: u64, parts: &[&[u8]]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(64 + key.len());
    whole.push(NAMESPACE.len() as u8);
    whole.extend_from_slice(NAMESPACE);
    whole.extend_from_slice(&(key.len() as u32).to_be_bytes());
    whole.extend_from_slice(key);
    whole.extend_from_slice(&version.to_be_bytes());
    for part in parts {
        whole.extend_from_slice(part);
    }
    whole
}

/// Bytes in the order of the numbers.
fn ordered(score: f64) -> [u8; 8] {
    let bits = score.to_bits();
    let turned = match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    };
    turned.to_be_bytes()
}

fn score_of(ordered: [u8; 8]) -> f64 {
    let turned = u64::from_be_bytes(ordered);
    f64::from_bits(match turned >> 63 {
        1 => turned & !(1 << 63),
        _ => !turned,
    })
}

/// The head of a sorted set.
struct SortedSet {
    version: u64,
    size: u64,
}

impl SortedSet {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![SORTED_SET];
        for field in [0, self.version, self.size] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let field = |at: usize| -> Option<u64> {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let is_whole = bytes.len() == SORTED_SET_BYTES && bytes.first() == Some(&SORTED_SET);
        let fields = field(9).zip(field(17)).filter(|_| is_whole);
        let (version, size) = fields.ok_or_else(|| failed("this is no sorted set"))?;
        Ok(Self { version, size })
    }
}

/// A database as Kvrocks makes it.
pub(crate) struct KvrocksStore {
    db: DB,
}

impl KvrocksStore {
    fn family(&self, name: &str) -> Result<&ColumnFamily> {
        let family = self.db.cf_handle(name);
        family.ok_or_else(|| failed("a family is missing"))
    }

    /// ZADD: the scores that the members have are read, and what changes is one batch.
    ///
    /// # Errors
    /// Those of the reads and of the write; the key has another type.
    pub(crate) fn add(&self, key: &[u8], members: &[(f64, Vec<u8>)]) -> Result<()> {
        let (metadata, scores) = (self.family(METADATA)?, self.family(SCORES)?);
        let name = namespaced(key);
        let head = self.db.get_pinned_cf(metadata, &name).map_err(failed)?;
        let mut head = match head {
            Some(bytes) => SortedSet::decode(&bytes)?,
            // The moment, in Kvrocks; here it shall be the same in each run.
            None => SortedSet {
                version: 1,
                size: 0,
            },
        };
        let mut batch = WriteBatch::default();
        batch.put_log_data([SORTED_SET & 0x0f]);
        let mut added = 0;
        for (score, member) in members {
            let by_member = element(key, head.version, &[member]);
            let score = ordered(*score);
            let before = match head.size {
                0 => None,
                _ => self.db.get_pinned(&by_member).map_err(failed)?,
            };
            match before {
                Some(before) if *before == score => continue,
                Some(before) => {
                    batch.delete_cf(scores, element(key, head.version, &[&before, member]));
                }
                None => added += 1,
            }
            batch.put(by_member, score);
            batch.put_cf(scores, element(key, head.version, &[&score, member]), b"");
        }
        if added > 0 {
            head.size += added;
            batch.put_cf(metadata, name, head.encode());
        }
        self.db.write(batch).map_err(failed)
    }

    /// ZCARD.
    ///
    /// # Errors
    /// Those of the read; the key has another type.
    pub(crate) fn size(&self, key: &[u8]) -> Result<u64> {
        let head = self
            .db
            .get_pinned_cf(self.family(METADATA)?, namespaced(key));
        let head = head.map_err(failed)?;
        head.map_or(Ok(0), |bytes| Ok(SortedSet::decode(&bytes)?.size))
    }

    /// ZRANK: the member's score, then a walk from the set's least score on until the member comes.
    ///
    /// # Errors
    /// Those of the reads; the key has another type.
    pub(crate) fn rank(&self, key: &[u8], member: &[u8]) -> Result<Option<u64>> {
        let (metadata, scores) = (self.family(METADATA)?, self.family(SCORES)?);
        let snapshot = self.db.snapshot();
        let head = snapshot.get_pinned_cf(metadata, namespaced(key));
        let Some(head) = head.map_err(failed)? else {
            return Ok(None);
        };
        let version = SortedSet::decode(&head)?.version;
        let score = snapshot.get_pinned(element(key, version, &[member]));
        let Some(score) = score.map_err(failed)? else {
            return Ok(None);
        };
        let wanted = score_of(bytes_of(&score)?);
        let prefix = element(key, version, &[]);
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_iterate_lower_bound(prefix.clone());
        options.set_iterate_upper_bound(element(key, version + 1, &[]));
        let mut walk = snapshot.raw_iterator_cf_opt(scores, options);
        walk.seek(element(key, version, &[&ordered(f64::NEG_INFINITY)]));
        let mut rank = 0;
        while let Some(rest) = walk.key().and_then(|it| it.strip_prefix(&*prefix)) {
            let (score, name) = rest.split_at_checked(8).unwrap_or_default();
            if score_of(bytes_of(score)?) == wanted && name == member {
                return Ok(Some(rank));
            }
            rank += 1;
            walk.next();
        }
        walk.status().map_err(failed)?;
        Err(failed("a member has no entry by its score"))
    }
}

fn bytes_of(score: &[u8]) -> Result<[u8; 8]> {
    let bytes = score.try_into();
    bytes.map_err(|_| failed("a score has another length than 8"))
}

/// Kvrocks's defaults, and the flags that all engines are given.
fn options(flags: &Flags) -> Result<Options> {
    let mut options = plain::options(flags)?;
    options.create_missing_column_families(true);
    options.set_min_write_buffer_number_to_merge(2);
    options.set_target_file_size_base(128 << 20);
    options.set_max_total_wal_size(512 << 20);
    options.set_max_subcompactions(2);
    options.set_compaction_readahead_size(2 << 20);
    options.set_level_zero_slowdown_writes_trigger(20);
    options.set_level_zero_stop_writes_trigger(40);
    options.set_level_compaction_dynamic_level_bytes(true);
    if flags.max_write_buffer_number == 0 {
        options.set_max_write_buffer_number(4);
    }
    let mut table = BlockBasedOptions::default();
    let cache = Cache::new_lru_cache(given(flags.cache_size, 4 << 30));
    table.set_block_cache(&cache);
    table.set_block_size(16 << 10);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_bloom_filter(10.0, false);
    table.set_partition_filters(true);
    table.set_metadata_block_size(4096);
    table.set_optimize_filters_for_memory(true);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_data_block_hash_ratio(0.75);
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    options.set_block_based_table_factory(&table);
    Ok(options)
}

impl Store for KvrocksStore {
    type Session<'a> = KvrocksSession<'a>;

    fn open(flags: &Flags, _: &Env) -> Result<Self> {
        let common = options(flags)?;
        let families = FAMILIES.map(|name| {
            let mut options = common.clone();
            if name == METADATA {
                options.set_memtable_whole_key_filtering(true);
                options.set_memtable_prefix_bloom_ratio(0.1);
            }
            ColumnFamilyDescriptor::new(name, options)
        });
        let db = DB::open_cf_descriptors(&common, &flags.db, families).map_err(failed)?;
        Ok(Self { db })
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["CURRENT", "LOCK"])
    }

    fn close(self) -> Result<()> {
        self.db.cancel_all_background_work(true);
        Ok(())
    }

    fn session(&self, flags: &Flags) -> KvrocksSession<'_> {
        let mut write = WriteOptions::default();
        write.set_sync(flags.sync);
        write.disable_wal(flags.disable_wal);
        KvrocksSession { store: self, write }
    }

    fn flush(&self) -> Result<()> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        FAMILIES.iter().try_for_each(|name| {
            let flushed = self.db.flush_cf_opt(self.family(name)?, &options);
            flushed.map_err(failed)
        })
    }

    fn compact(&self) -> Result<()> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        for name in FAMILIES {
            let (family, all) = (self.family(name)?, None::<&[u8]>);
            self.db.compact_range_cf_opt(family, all, all, &options);
        }
        Ok(())
    }

    fn wait_for_background(&self) -> Result<()> {
        let options = WaitForCompactOptions::default();
        self.db.wait_for_compact(&options).map_err(failed)
    }

    fn version() -> String {
        "Kvrocks's way, replayed: RocksDB 11.8.1".to_owned()
    }
}

/// One client.
pub(crate) struct KvrocksSession<'s> {
    store: &'s KvrocksStore,
    write: WriteOptions,
}

impl Session for KvrocksSession<'_> {
    type Cursor<'a>
        = NoCursor
    where
        Self: 'a;

    /// SET.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut record = Vec::with_capacity(STRING_HEAD_BYTES + value.len());
        record.push(STRING);
        record.extend_from_slice(&[0; STRING_HEAD_BYTES - 1]);
        record.extend_from_slice(value);
        let mut batch = WriteBatch::default();
        batch.put_log_data([STRING & 0x0f]);
        batch.put_cf(self.store.family(METADATA)?, namespaced(key), record);
        self.store.db.write_opt(batch, &self.write).map_err(failed)
    }

    /// GET.
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let family = self.store.family(METADATA)?;
        let record = self.store.db.get_pinned_cf(family, namespaced(key));
        let Some(record) = record.map_err(failed)? else {
            return Ok(false);
        };
        let value = record
            .strip_prefix(&[STRING])
            .and_then(|rest| rest.get(STRING_HEAD_BYTES - 1..));
        on_value(value.ok_or_else(|| failed("this is no string"))?);
        Ok(true)
    }

    fn cursor(&mut self, _lower: Option<&[u8]>, _upper: Option<&[u8]>) -> Result<NoCursor> {
        Err(Error::not_supported("walking the keys of a Redis in order"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is measured is what Kvrocks's commands would do. Method: strings and members of few scores beside a map and a
    /// sorted list, reopened and compacted.
    #[test]
    fn strings_and_ranks_are_those_that_were_written() {
        let name = format!("drumlin-peers-{}-kvrocks", std::process::id());
        let flags = Flags {
            db: std::env::temp_dir().join(name).display().to_string(),
            compression_type: "none".to_owned(),
            ..Flags::default()
        };
        let env = Env::system();
        KvrocksStore::destroy(&flags, &env).expect("nothing of others is there");
        let store = KvrocksStore::open(&flags, &env).expect("opens");
        let mut session = store.session(&flags);
        session.put(b"s", b"value").expect("is written");
        let mut members: Vec<(f64, Vec<u8>)> = (0..300_u32)
            .map(|number| {
                let score = f64::from(number * 7919 % 40) - 20.0;
                (score, format!("m{number}").into_bytes())
            })
            .collect();
        store.add(b"z", &members).expect("is written");
        // Some get another score.
        for (score, _) in members.iter_mut().step_by(3) {
            *score = -*score * 1.5;
        }
        store.add(b"z", &members).expect("is written");
        store.close().expect("closes");
        let store = KvrocksStore::open(&flags, &env).expect("opens again");
        store.compact().expect("compacts");
        members.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        assert_eq!(store.size(b"z").expect("reads"), 300);
        for (rank, (_, member)) in (0_u64..).zip(&members) {
            assert_eq!(store.rank(b"z", member).expect("reads"), Some(rank));
        }
        assert_eq!(store.rank(b"z", b"none").expect("reads"), None);
        assert_eq!(store.rank(b"none", b"m1").expect("reads"), None);
        let mut seen = Vec::new();
        let mut session = store.session(&flags);
        let found = session.get(b"s", |value| seen.extend_from_slice(value));
        assert!(found.expect("reads") && seen == b"value");
        assert!(store.rank(b"s", b"m1").is_err(), "a string has no ranks");
        store.close().expect("closes");
        KvrocksStore::destroy(&flags, &env).expect("it is ours");
    }
}
