//! `rocksdb_memory_consumers_t` and `rocksdb_memory_usage_t`.

use drumlin::Db;

use crate::cache::Cache;

/// Whose memory is asked for.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    databases: Vec<Db>,
    caches: Vec<Cache>,
}

/// Bytes, as they were when it was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    memtables: u64,
    unflushed: u64,
    tables: u64,
    blocks: u64,
}

impl Consumers {
    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for db in &self.databases {
            for family in db.families() {
                let bytes = |name| {
                    db.property(&family, name)
                        .and_then(|text| text.parse().ok())
                };
                usage.memtables += bytes("rocksdb.cur-size-all-mem-tables").unwrap_or(0u64);
                usage.unflushed += bytes("rocksdb.cur-size-active-mem-table").unwrap_or(0u64);
            }
            let family = db.default_family();
            let tables = db.property(family, "rocksdb.estimate-table-readers-mem");
            usage.tables += tables.and_then(|text| text.parse().ok()).unwrap_or(0u64);
        }
        usage.blocks = self.caches.iter().map(|cache| cache.used() as u64).sum();
        usage
    }
}

pub(crate) mod calls {
    use drumlin::Result;

    use super::{Consumers, Usage};
    use crate::cache::Cache;
    use crate::database::Database;

    pub(crate) fn memory_consumers_add_db(consumers: &mut Consumers, db: &Database) {
        consumers.databases.push(db.db().clone());
    }

    pub(crate) fn memory_consumers_add_cache(consumers: &mut Consumers, cache: &Cache) {
        consumers.caches.push(cache.clone());
    }

    pub(crate) fn approximate_memory_usage_create(consumers: &mut Consumers) -> Result<Usage> {
        Ok(consumers.usage())
    }

    pub(crate) fn approximate_memory_usage_get_mem_table_total(usage: &Usage) -> u64 {
        usage.memtables
    }

    pub(crate) fn approximate_memory_usage_get_mem_table_unflushed(usage: &Usage) -> u64 {
        usage.unflushed
    }

    pub(crate) fn approximate_memory_usage_get_mem_table_readers_total(usage: &Usage) -> u64 {
        usage.tables
    }

    pub(crate) fn approximate_memory_usage_get_cache_total(usage: &Usage) -> u64 {
        usage.blocks
    }
}
