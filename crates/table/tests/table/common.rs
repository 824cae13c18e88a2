//! Files in memory, tables made of a few lines, and the naive twin they are compared with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use drumlin_base::key::{compare_internal, internal_key};
use drumlin_base::rng::Rng;
use drumlin_base::{Error, KeyOrder, MemoryBudget, Result, ValueKind};
use drumlin_fs::{FileSyncer, RandomAccessFile, WritableFile};
use drumlin_table::{
    BlockCache, Table, TableProperties, TableReaderOptions, TableWriter, TableWriterOptions,
};

/// A file that is written into memory shared with the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemFile(pub(crate) Arc<Mutex<Vec<u8>>>);

#[derive(Debug)]
struct NothingToSync;

impl FileSyncer for NothingToSync {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl WritableFile for MemFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(NothingToSync)
    }
}

/// Bytes to be read as a file; counts its reads.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) reads: std::sync::atomic::AtomicUsize,
    /// Whether the system is said to have them in memory.
    pub(crate) is_in_memory: std::sync::atomic::AtomicBool,
}

impl RandomAccessFile for Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.reads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let start = usize::try_from(offset)
            .map_err(|_| Error::invalid_argument("offset"))?
            .min(self.bytes.len());
        let len = buffer.len().min(self.bytes.len() - start);
        buffer[..len].copy_from_slice(&self.bytes[start..start + len]);
        Ok(len)
    }
    fn is_in_page_cache(&self, _offset: u64, _len: u64) -> bool {
        self.is_in_memory.load(std::sync::atomic::Ordering::Relaxed)
    }
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Internal keys and values, ascending.
pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The file made of `entries`.
pub(crate) fn write(options: TableWriterOptions, entries: &Entries) -> Vec<u8> {
    let file = MemFile::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), options);
    for (key, value) in entries {
        writer.add(key, value).unwrap();
    }
    let finished = writer.finish().unwrap();
    let bytes = file.0.lock().unwrap().clone();
    assert_eq!(finished.size, bytes.len() as u64);
    bytes
}

/// Reader options with a cache of `cache_bytes`.
pub(crate) fn reader_options(order: &KeyOrder, cache_bytes: usize) -> TableReaderOptions {
    let budget = MemoryBudget::new(cache_bytes);
    let cache = BlockCache::new(Arc::clone(&budget));
    let mut options = TableReaderOptions::new(PathBuf::from("000007.sst"), 7, cache, budget);
    options.order = order.clone();
    options
}

/// The counts that are read of a table which is not opened: entries, deletions, bytes of keys and of values.
pub(crate) fn counts(bytes: Vec<u8>) -> Result<[u64; 4]> {
    let file = Bytes {
        bytes,
        ..Bytes::default()
    };
    let read = Table::properties_of(Arc::new(file), Path::new("000007.sst"))?;
    Ok(counts_in(&read.expect("no plain table")))
}

/// The same in `properties`.
pub(crate) fn counts_in(properties: &TableProperties) -> [u64; 4] {
    [
        properties.num_entries,
        properties.num_deletions,
        properties.raw_key_size,
        properties.raw_value_size,
    ]
}

/// A table over `bytes`.
pub(crate) fn open(order: &KeyOrder, bytes: Vec<u8>) -> Result<Arc<Table>> {
    let file = Bytes {
        bytes,
        ..Bytes::default()
    };
    Table::open(Arc::new(file), reader_options(order, 64 << 20))
}

/// Sorts `entries` by internal key and drops equal ones.
pub(crate) fn sorted(order: &KeyOrder, mut entries: Entries) -> Entries {
    entries.sort_by(|a, b| compare_internal(order, &a.0, &b.0));
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

/// `count` entries with keys of a random shape: short, long, with shared prefixes, many versions.
pub(crate) fn random_entries(rng: &mut Rng, order: &KeyOrder, count: u64) -> Entries {
    let shape = rng.below(4);
    let mut made: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for _ in 0..count {
        let user_key = match shape {
            0 => format!("user{:012}", rng.below(count * 4)).into_bytes(),
            1 => {
                let len = rng.below(12) as usize;
                (0..len).map(|_| rng.below(3) as u8 * 127).collect()
            }
            2 => {
                let mut key = vec![b'p'; rng.below(300) as usize];
                key.extend_from_slice(&rng.below(count).to_be_bytes());
                key
            }
            _ => format!("{:02}", rng.below(20)).into_bytes(), // Many versions of few keys.
        };
        let kind = match rng.below(10) {
            0 => ValueKind::Deletion,
            1 => ValueKind::Merge,
            _ => ValueKind::Value,
        };
        let mut value = vec![0; rng.below(200) as usize];
        rng.fill(&mut value);
        if rng.one_in(2) {
            value.fill(7);
        }
        made.insert(internal_key(&user_key, rng.below(1 << 20), kind), value);
    }
    sorted(order, made.into_iter().collect())
}
