//! Real tables over bytes in memory, small blocks, with and without filters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use drumlin_base::rng::Rng;
use drumlin_base::{KeyOrder, MemoryBudget, RangeTombstone, Result};
use drumlin_fs::{
    Env, FileSyncer, PosixFileSystem, RandomAccessFile, SystemClock, ThreadSpawner, WritableFile,
};
use drumlin_table::{
    BlockCache, FilterOptions, Table, TableReaderOptions, TableWriter, TableWriterOptions,
};

use crate::table_cache::{TableCache, TableCacheOptions};
use crate::version::FileMeta;

/// Writes tables and opens them.
pub(crate) struct TestTables {
    order: KeyOrder,
    rng: Rng,
    budget: Arc<MemoryBudget>,
    blocks: Arc<BlockCache>,
}

impl TestTables {
    pub(crate) fn new(order: KeyOrder, rng: Rng) -> Self {
        let budget = MemoryBudget::new(8 << 20);
        Self {
            order,
            rng,
            blocks: BlockCache::new(Arc::clone(&budget)),
            budget,
        }
    }

    /// `file`, open over a table of `entries` and `tombstones`, both in a table's order.
    pub(crate) fn write(
        &mut self,
        file: FileMeta,
        entries: &[(Vec<u8>, Vec<u8>)],
        tombstones: &[RangeTombstone],
    ) -> Arc<FileMeta> {
        let bytes = Bytes::default();
        let options = TableWriterOptions {
            order: self.order.clone(),
            block_bytes: 32 + self.rng.below(400) as usize,
            restart_interval: 1 + self.rng.below(5) as usize,
            filter: self.rng.one_in(2).then(FilterOptions::default),
            file_number: file.number,
            ..TableWriterOptions::default()
        };
        let mut writer = TableWriter::new(Box::new(bytes.clone()), options);
        for (key, value) in entries {
            writer.add(key, value).expect("entries ascend");
        }
        for tombstone in tombstones {
            writer
                .add_range_tombstone(&tombstone.begin, &tombstone.end, tombstone.seqno)
                .expect("tombstones ascend");
        }
        writer.finish().expect("memory takes writes");
        let options = TableReaderOptions {
            order: self.order.clone(),
            ..TableReaderOptions::new(
                PathBuf::from("memory"),
                file.number,
                Arc::clone(&self.blocks),
                Arc::clone(&self.budget),
            )
        };
        let table = Table::open(Arc::new(bytes), options).expect("just written");
        file.table.store(Some(table));
        Arc::new(file)
    }

    /// A table cache that never has to open anything.
    pub(crate) fn cache(&self) -> Arc<TableCache> {
        TableCache::new(TableCacheOptions {
            env: Env {
                files: Arc::new(PosixFileSystem::new()),
                clock: Arc::new(SystemClock::new()),
                spawner: Arc::new(ThreadSpawner),
                seed: 1,
            },
            dir: PathBuf::from("/nonexistent"),
            blocks: Arc::clone(&self.blocks),
            budget: Arc::clone(&self.budget),
            open_max: 1 << 10,
        })
        .for_family(self.order.clone(), None)
    }
}

/// A file that is a vector.
#[derive(Clone, Debug, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WritableFile for Bytes {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.with(|all| all.extend_from_slice(bytes));
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.with(|all| all.len() as u64)
    }
    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(self.clone())
    }
}

impl FileSyncer for Bytes {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl RandomAccessFile for Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.with(|all| {
            let rest = all.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }
    fn size(&self) -> u64 {
        self.with(|all| all.len() as u64)
    }
}
