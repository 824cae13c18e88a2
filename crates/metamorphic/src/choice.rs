//! Sets of options: fixed ones, each with a name for its subject, and random ones from seeds.

use std::sync::Arc;

use drumlin::{
    ChecksumKind, Codec, CompactionStyle, Compression, DirectoryFormat, FamilyOptions, FifoOptions,
    FixedPrefix, Options, RateLimit, StringAppend, TableFormat, Tuning, UInt64Add,
    UniversalOptions,
};
use drumlin_base::KeyOrder;
use drumlin_base::rng::Rng;

use crate::generate::{KEY_BYTES_MAX, kind_of};

/// The file system that the files are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The strict file system in memory: power cuts are real.
    Strict,
    /// The system's file system in memory.
    Tmpfs,
    /// The disk.
    Disk,
}

/// A set of options.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name: `--sets` takes it.
    pub name: String,
    /// The file system that the files are on.
    pub place: Place,
    /// Whether WAL files have a directory of their own.
    pub wal_apart: bool,
    /// Length of the prefixes that tables have filters for.
    pub prefix: Option<usize>,
    /// All the rest.
    pub options: Options,
}

type Change = fn(&mut Choice);

/// The fixed sets.
const FIXED: &[(&str, Change)] = &[
    ("usual", |_| {}),
    ("one-thread", |c| threads(c, 1)),
    ("two-threads", |c| threads(c, 2)),
    ("three-threads", |c| threads(c, 3)),
    ("uncompressed", |c| codec(c, Codec::None)),
    ("snappy", |c| codec(c, Codec::Snappy)),
    ("zlib", |c| codec(c, Codec::Zlib)),
    ("zstd", |c| codec(c, Codec::Zstd)),
    ("zstd-dictionary", |c| {
        codec(c, Codec::Zstd);
        c.options.compression.dictionary_bytes = 1 << 10;
    }),
    ("lz4-dictionary", |c| {
        c.options.compression.dictionary_bytes = 512;
    }),
    ("no-filter-few-files", |c| {
        c.options.tuning.filter_bits = 0.0;
        c.options.max_open_files = Some(4);
    }),
    ("prefix", |c| c.prefix = Some(2)),
    ("prefix-only", |c| {
        c.prefix = Some(4);
        c.options.tuning.whole_key_filter = false;
    }),
    ("partitions", |c| {
        c.options.tuning.partition_above_bytes = 0;
        c.options.tuning.block_bytes = 64;
    }),
    ("restart-each", |c| c.options.tuning.restart_interval = 1),
    ("restart-rare-big-blocks", |c| {
        c.options.tuning.restart_interval = 64;
        c.options.tuning.block_bytes = 64 << 10;
    }),
    ("restart-often-no-filter", |c| {
        c.options.tuning.restart_interval = 2;
        c.options.tuning.filter_bits = 0.0;
    }),
    ("crc32c", |c| {
        c.options.tuning.checksum = ChecksumKind::Crc32c
    }),
    ("xxh64", |c| c.options.tuning.checksum = ChecksumKind::Xxh64),
    ("plain", |c| tables(c, TableFormat::Plain)),
    ("plain-prefix-threads", |c| {
        tables(c, TableFormat::Plain);
        c.prefix = Some(3);
        threads(c, 2);
    }),
    ("searchable", |c| tables(c, TableFormat::Searchable)),
    ("searchable-prefix-threads", |c| {
        tables(c, TableFormat::Searchable);
        c.prefix = Some(2);
        threads(c, 2);
    }),
    ("searchable-scopes", |c| scopes(c, 2)),
    ("searchable-scopes-threads", |c| {
        scopes(c, 1);
        threads(c, 3);
    }),
    ("searchable-tmpfs", |c| {
        tables(c, TableFormat::Searchable);
        c.place = Place::Tmpfs;
        c.options.tuning.blob_from_bytes = None;
    }),
    ("universal", |c| {
        c.options.compaction_style = universal(3, 7)
    }),
    ("universal-one-level", |c| {
        c.options.compaction_style = universal(3, 1);
        threads(c, 2);
    }),
    ("fifo", |c| c.options.compaction_style = fifo(false)),
    ("fifo-merging", |c| c.options.compaction_style = fifo(true)),
    ("manual", |c| {
        c.options.compaction_style = CompactionStyle::Manual
    }),
    ("direct-io", |c| {
        c.options.tuning.background_direct_io = Some(true);
        threads(c, 2);
    }),
    ("direct-io-disk", |c| {
        c.options.tuning.background_direct_io = Some(true);
        c.place = Place::Disk;
    }),
    ("a-table-for-each-write", |c| {
        c.options.tuning.write_buffer_bytes = Some(1);
        c.options.tuning.memtables_max = 2;
    }),
    ("never-flushed", |c| {
        c.options.tuning.write_buffer_bytes = Some(8 << 20);
        c.options.memory_budget = Some(64 << 20);
    }),
    ("no-blobs", |c| {
        c.options.tuning.blob_from_bytes = Some(usize::MAX)
    }),
    ("all-blobs", |c| c.options.tuning.blob_from_bytes = Some(1)),
    ("tiny-budget", |c| c.options.memory_budget = Some(1 << 20)),
    ("wal-apart", |c| c.wal_apart = true),
    ("aging", |c| c.options.tuning.age_max_seconds = Some(3600)),
    ("small-wal", |c| {
        c.options.tuning.wal_bytes_max = Some(8 << 10)
    }),
    ("rate-limited", |c| {
        c.options.tuning.background_rate = RateLimit::Fixed(64 << 20);
        threads(c, 1);
    }),
    ("synced", |c| c.options.sync = true),
    ("tmpfs-threads", |c| {
        c.place = Place::Tmpfs;
        threads(c, 2);
    }),
    ("leveldb", |c| c.options.format = DirectoryFormat::LevelDb),
    ("leveldb-snappy-threads", |c| {
        c.options.format = DirectoryFormat::LevelDb;
        codec(c, Codec::Snappy);
        threads(c, 2);
    }),
    ("leveldb-tmpfs", |c| {
        c.options.format = DirectoryFormat::LevelDb;
        c.place = Place::Tmpfs;
    }),
];

fn threads(choice: &mut Choice, count: usize) {
    choice.options.background_threads = Some(count);
}

fn codec(choice: &mut Choice, codec: Codec) {
    choice.options.compression = Compression::new(codec);
}

fn tables(choice: &mut Choice, format: TableFormat) {
    choice.options.family.table_format = Some(format);
}

/// Searchable tables whose prefixes of so many bytes each have a model of their own.
fn scopes(choice: &mut Choice, bytes: usize) {
    tables(choice, TableFormat::Searchable);
    choice.options.family.scope_bytes = Some(bytes);
    choice.options.tuning.shared_model_from_bytes = 256;
}

fn universal(runs_trigger: usize, levels_max: usize) -> CompactionStyle {
    CompactionStyle::Universal(UniversalOptions {
        runs_trigger,
        levels_max,
        ..UniversalOptions::default()
    })
}

/// So large that FIFO drops nothing: all rows must be present.
fn fifo(merge_small: bool) -> CompactionStyle {
    CompactionStyle::Fifo(FifoOptions {
        merge_small,
        ..FifoOptions::default()
    })
}

impl Choice {
    /// Small sizes, so that everything happens within a few hundred writes.
    fn usual(name: &str) -> Self {
        let tuning = Tuning {
            write_buffer_bytes: Some(16 << 10),
            memtables_max: 3,
            target_file_bytes: 4 << 10,
            level_base_bytes: Some(16 << 10),
            level_multiplier: 4,
            blob_from_bytes: Some(100),
            l0_trigger: 3,
            block_bytes: 512,
            restart_interval: 4,
            reuse_from_bytes: 1,
            key_bytes_max: KEY_BYTES_MAX,
            disk_reserve_bytes: Some(0),
            ..Tuning::default()
        };
        Self {
            name: name.to_owned(),
            place: Place::Strict,
            wal_apart: false,
            prefix: None,
            options: Options {
                memory_budget: Some(4 << 20),
                background_threads: Some(0),
                compaction_style: CompactionStyle::Leveled,
                tuning,
                ..Options::default()
            },
        }
    }

    /// Every fixed set.
    pub fn fixed() -> Vec<Self> {
        FIXED
            .iter()
            .filter_map(|(name, _)| Self::named(name))
            .collect()
    }

    /// The fixed set called `name`, or for `random-<seed>` the random one.
    pub fn named(name: &str) -> Option<Self> {
        if let Some(seed) = name.strip_prefix("random-") {
            return Some(Self::random(seed.parse().ok()?));
        }
        let (_, change) = FIXED.iter().find(|(known, _)| *known == name)?;
        let mut choice = Self::usual(name);
        change(&mut choice);
        Some(choice)
    }

    /// A random set.
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut choice = Self::usual(&format!("random-{seed}"));
        choice.place = match rng.below(12) {
            0 => Place::Tmpfs,
            1 => Place::Disk,
            _ => Place::Strict,
        };
        choice.wal_apart = rng.one_in(5);
        choice.draw(&mut rng);
        if rng.one_in(8) {
            choice.options.format = DirectoryFormat::LevelDb;
            choice.stay_within_format();
        }
        choice
    }

    /// LevelDB's directories do not keep the order of tables that were merged within L0.
    fn stay_within_format(&mut self) {
        if self.is_plain() {
            self.options.compaction_style = CompactionStyle::Leveled;
        }
    }

    /// The same place and format with all else drawn anew: options under which a directory may be
    /// opened next.
    pub(crate) fn redrawn(&self, seed: u64) -> Self {
        let mut choice = self.clone();
        choice.draw(&mut Rng::new(seed));
        choice.stay_within_format();
        choice
    }

    fn draw(&mut self, rng: &mut Rng) {
        let pick = |rng: &mut Rng, from: &[u64]| from[rng.below(from.len() as u64) as usize];
        self.prefix = rng.one_in(3).then(|| 1 + rng.below(6) as usize);
        let options = &mut self.options;
        options.memory_budget = Some(pick(rng, &[1 << 20, 2 << 20, 4 << 20, 64 << 20]) as usize);
        options.compression = Compression::new(match rng.below(6) {
            0 => Codec::None,
            1 => Codec::Snappy,
            2 => Codec::Zlib,
            3 => Codec::Zstd,
            _ => Codec::Lz4,
        });
        options.compression.dictionary_bytes = pick(rng, &[0, 0, 0, 700]) as u32;
        options.sync = rng.one_in(8);
        options.background_threads = Some(rng.below(4) as usize);
        options.max_open_files = Some(pick(rng, &[4, 20, 50_000]) as usize);
        options.compaction_style = match rng.below(8) {
            0 => universal(2 + rng.below(5) as usize, 7),
            1 => universal(2 + rng.below(5) as usize, 1 + rng.below(7) as usize),
            2 => fifo(rng.one_in(2)),
            3 => CompactionStyle::Manual,
            _ => CompactionStyle::Leveled,
        };
        options.family.table_format = Some(match rng.below(5) {
            0 => TableFormat::Plain,
            1 => TableFormat::Searchable,
            _ => TableFormat::Block,
        });
        options.family.scope_bytes = Some(pick(rng, &[0, 0, 1, 3]) as usize);
        let tuning = &mut options.tuning;
        tuning.shared_model_from_bytes = pick(rng, &[0, 512, 1 << 20]);
        tuning.write_buffer_bytes =
            Some(pick(rng, &[1, 4 << 10, 16 << 10, 64 << 10, 512 << 10]) as usize);
        tuning.memtables_max = 2 + rng.below(3) as usize;
        tuning.target_file_bytes = pick(rng, &[1 << 10, 4 << 10, 32 << 10]);
        tuning.level_base_bytes = Some(pick(rng, &[4 << 10, 16 << 10, 128 << 10]));
        tuning.level_multiplier = 2 + rng.below(9);
        tuning.blob_from_bytes =
            Some(pick(rng, &[1, 35, 100, 1000, u64::MAX]).min(usize::MAX as u64) as usize);
        tuning.l0_trigger = 1 + rng.below(6) as usize;
        tuning.age_max_seconds = rng.one_in(2).then(|| 1 + rng.below(30 * 24 * 3600));
        tuning.block_bytes = pick(rng, &[64, 300, 512, 4 << 10, 64 << 10]) as usize;
        tuning.restart_interval = pick(rng, &[1, 2, 4, 16, 100]) as usize;
        tuning.filter_bits = [0.0, 2.0, 10.0, 20.0][rng.below(4) as usize];
        tuning.whole_key_filter = !rng.one_in(4);
        tuning.partition_above_bytes = pick(rng, &[0, 1 << 10, 512 << 20]);
        tuning.checksum = match rng.below(4) {
            0 => ChecksumKind::Crc32c,
            1 => ChecksumKind::Xxh64,
            2 => ChecksumKind::Xxh32,
            _ => ChecksumKind::Xxh3,
        };
        tuning.wal_bytes_max = rng.one_in(3).then(|| 4096 << rng.below(6));
        tuning.background_direct_io = Some(rng.one_in(4));
        tuning.reuse_from_bytes = pick(rng, &[1, 8 << 10, u64::MAX]);
    }

    /// Whether only puts and deletions in one family work under this.
    pub fn is_plain(&self) -> bool {
        self.options.format == DirectoryFormat::LevelDb
    }

    /// Whether a manual compaction leaves one table over another.
    pub(crate) fn keeps_tables(&self) -> bool {
        matches!(self.options.compaction_style, CompactionStyle::Fifo(_))
    }

    /// The options of the family called `name`.
    pub(crate) fn family(&self, name: &str) -> FamilyOptions {
        let mut family = self.options.family.clone();
        let kind = kind_of(name);
        if kind == 'r' {
            family.order = KeyOrder::ReverseBytewise;
        }
        family.merge_operator = match kind {
            _ if self.is_plain() => None,
            'n' => None,
            'u' => Some(Arc::new(UInt64Add)),
            _ => Some(Arc::new(StringAppend::default())),
        };
        if let Some(len) = self.prefix {
            family.prefix_extractor = Some(Arc::new(FixedPrefix::new(len)));
        }
        family
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_more_than_two_dozen_fixed_sets_and_all_are_valid() {
        let fixed = Choice::fixed();
        assert!(fixed.len() >= 24);
        let random = (0..300).map(Choice::random);
        for choice in fixed.into_iter().chain(random) {
            choice.options.validate().unwrap();
            assert!(Choice::named(&choice.name).is_some());
        }
    }
}
