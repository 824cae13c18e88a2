//! Real tables over bytes in memory, small blocks, with and without filters; some of their values in
//! blob files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use drumlin_base::key::{internal_key, split_internal, tag_kind, tag_seqno};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_base::{KeyOrder, MemoryBudget, PrefixExtractor, RangeTombstone, Result, ValueKind};
use drumlin_fs::{
    CreateOptions, Env, FileKind, FileSyncer, FileSystem, PosixFileSystem, RandomAccessFile,
    StrictMemFileSystem, SystemClock, ThreadSpawner, WritableFile,
};
use drumlin_table::blob::BlobWriter;
use drumlin_table::{
    BlockCache, Codec, Compression, FilterOptions, Table, TableFormat, TableReaderOptions,
    TableWriter, TableWriterOptions,
};

use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::{TableCache, TableCacheOptions};
use crate::files::names;
use crate::version::{BlobFile, BlobFileAddition, FileMeta};

const DIR: &str = "/db";

type Entry = (Vec<u8>, Vec<u8>);

/// Writes tables and opens them.
pub(crate) struct TestTables {
    order: KeyOrder,
    rng: Rng,
    budget: Arc<MemoryBudget>,
    blocks: Arc<BlockCache>,
    /// The directory of the blob files.
    files: StrictMemFileSystem,
    blobs: BTreeMap<u64, BlobFile>,
    /// Whether all tables are plain ones, not only some.
    pub(crate) all_plain: bool,
}

impl TestTables {
    pub(crate) fn new(order: KeyOrder, rng: Rng) -> Self {
        let budget = MemoryBudget::new(8 << 20);
        let files = StrictMemFileSystem::new();
        let made = files.create_dir_all(Path::new(DIR));
        made.expect("memory takes a directory");
        Self {
            order,
            rng,
            blocks: BlockCache::new(Arc::clone(&budget)),
            budget,
            files,
            blobs: BTreeMap::new(),
            all_plain: false,
        }
    }

    /// Moves some values of `entries` to a blob file of their own.
    fn separate(&mut self, table: u64, entries: &[Entry]) -> Vec<Entry> {
        let is_value = |key: &[u8]| {
            let tag = split_internal(key).map_or(0, |(_, tag)| tag);
            tag_kind(tag) == ValueKind::Value as u8
        };
        let chosen: Vec<bool> = entries
            .iter()
            .map(|(key, _)| is_value(key) && self.rng.one_in(2))
            .collect();
        if !chosen.contains(&true) {
            return entries.to_vec();
        }
        let number = 10_000 + table;
        let codec = [Codec::None, Codec::Lz4, Codec::Zstd][self.rng.below(3) as usize];
        let path = names::blob(Path::new(DIR), number);
        let file = self
            .files
            .create(&path, CreateOptions::new(FileKind::Blob))
            .expect("memory takes a file");
        let writer = BlobWriter::new(file, number, 0, Compression::new(codec));
        let mut writer = writer.expect("memory takes writes");
        let separated = entries.iter().zip(chosen).map(|((key, value), chosen)| {
            if !chosen {
                return (key.clone(), value.clone());
            }
            let (user_key, tag) = split_internal(key).expect("an internal key");
            let index = writer.add(user_key, value).expect("memory takes writes");
            let mut reference = Vec::new();
            index.encode(&mut reference);
            let key = internal_key(user_key, tag_seqno(tag), ValueKind::BlobIndex);
            (key, reference)
        });
        let separated = separated.collect();
        let info = writer.finish().expect("memory takes writes");
        let addition = BlobFileAddition::from(info);
        let file = BlobFile {
            addition: addition.into(),
            ..BlobFile::default()
        };
        self.blobs.insert(number, file);
        separated
    }

    /// The blob files made so far, for a version.
    pub(crate) fn blobs(&self) -> BTreeMap<u64, BlobFile> {
        self.blobs.clone()
    }

    /// A cache over the blob files.
    pub(crate) fn blob_cache(&self) -> Arc<BlobCache> {
        BlobCache::new(Arc::new(self.files.clone()), PathBuf::from(DIR), 64)
    }

    /// `file`, open over a table of `entries` and `tombstones`, both in a table's order.
    pub(crate) fn write(
        &mut self,
        file: FileMeta,
        entries: &[Entry],
        tombstones: &[RangeTombstone],
    ) -> Arc<FileMeta> {
        let bytes = Bytes::default();
        let options = TableWriterOptions {
            order: self.order.clone(),
            block_bytes: 32 + self.rng.below(400) as usize,
            restart_interval: 1 + self.rng.below(5) as usize,
            filter: self.rng.one_in(2).then(|| FilterOptions {
                prefix: Some(prefix()),
                ..FilterOptions::default()
            }),
            format: if self.all_plain || self.rng.one_in(2) {
                TableFormat::Plain
            } else {
                TableFormat::Block
            },
            file_number: file.number,
            ..TableWriterOptions::default()
        };
        let entries = self.separate(file.number, entries);
        let mut writer = TableWriter::new(Box::new(bytes.clone()), options);
        for (key, value) in &entries {
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
            prefix: Some(prefix()),
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
            models: None,
            open_max: 1 << 10,
        })
        .for_family(self.order.clone(), Some(prefix()))
    }
}

/// How families of tests cut prefixes: the first byte.
pub(crate) fn prefix() -> Arc<dyn PrefixExtractor> {
    Arc::new(FixedPrefix::new(1))
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
