//! The draws of a seed before the run begins: sizes, options, and the parts that take part.

use std::sync::Arc;

use drumlin::{
    Codec, CompactionStyle, Compression, Env, FamilyOptions, Options, TableFormat, Tuning,
    UniversalOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::FileSystem;

use crate::model::Append;
use crate::schedule::{Order, Scheduler, Tasked};

/// The parts of a run. Each seed draws some; shrinking takes more away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// Tasks that read.
    Readers,
    /// A task that flushes, compacts and syncs.
    Chores,
    /// A task that makes and drops families.
    Families,
    /// A task that makes checkpoints and looks into them.
    Checkpoints,
    /// Failing changes of files.
    Errors,
    /// Failing or wrong reads.
    ReadErrors,
    /// A disk that is full for a while.
    FullDisk,
    /// Slow operations.
    Delays,
    /// A power cut in the middle.
    Cuts,
    /// Power cuts while recovering.
    RecoveryCuts,
    /// Range deletions.
    Ranges,
    /// Merges.
    Merges,
    /// Single deletions.
    Singles,
}

impl Part {
    /// Every part with its name on the command line.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::Delays, "delays"),
        (Self::ReadErrors, "read-errors"),
        (Self::FullDisk, "full-disk"),
        (Self::Errors, "errors"),
        (Self::RecoveryCuts, "recovery-cuts"),
        (Self::Cuts, "cuts"),
        (Self::Checkpoints, "checkpoints"),
        (Self::Families, "families"),
        (Self::Readers, "readers"),
        (Self::Chores, "chores"),
        (Self::Ranges, "ranges"),
        (Self::Singles, "singles"),
        (Self::Merges, "merges"),
    ];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The parameters of a replay: the seed, and limits on its draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Draws everything.
    pub seed: u64,
    /// Most times the database is opened.
    pub rounds: u64,
    /// Most operations of each task and round.
    pub ops: u64,
    /// Most writers.
    pub writers: u64,
    /// Power cuts imagined at each of the operations that are chosen for it, one in eight of those
    /// that change the disk.
    pub images: u64,
    /// The only operation at which cuts are imagined.
    pub at: Option<u64>,
    /// Parts that do not take part, as bits.
    pub without: u32,
}

impl Case {
    /// All that `seed` draws.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rounds: 4,
            ops: 60,
            writers: 4,
            images: 0,
            at: None,
            without: 0,
        }
    }

    /// The same without `part`.
    #[must_use]
    pub fn without(mut self, part: Part) -> Self {
        self.without |= part.bit();
        self
    }

    /// Whether `part` was taken away.
    pub fn lacks(&self, part: Part) -> bool {
        self.without & part.bit() != 0
    }

    /// The arguments that replay it.
    pub fn arguments(&self) -> String {
        let full = Self::new(self.seed);
        let mut text = format!("--seed {}", self.seed);
        let limits = [
            ("rounds", self.rounds, full.rounds),
            ("ops", self.ops, full.ops),
            ("writers", self.writers, full.writers),
            ("images", self.images, full.images),
            ("at", self.at.unwrap_or(u64::MAX), u64::MAX),
        ];
        for (name, value, usual) in limits {
            if value != usual {
                text.push_str(&format!(" --{name} {value}"));
            }
        }
        let gone = Part::ALL.iter().filter(|(part, _)| self.lacks(*part));
        let gone: Vec<&str> = gone.map(|(_, name)| *name).collect();
        if !gone.is_empty() {
            text.push_str(&format!(" --without {}", gone.join(",")));
        }
        text
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How the next task is chosen.
    pub order: Order,
    /// Writers of each round.
    pub writers: u64,
    /// Readers of each round.
    pub readers: u64,
    /// Operations of each task and round.
    pub ops: u64,
    /// How many times the database is opened.
    pub rounds: u64,
    /// One write in so many is synced.
    pub sync_one_in: u64,
    /// Whether the WAL has a directory of its own.
    wal_apart: bool,
    parts: u32,
    style: CompactionStyle,
    format: TableFormat,
    codec: Codec,
    threads: usize,
    memory: usize,
    open_files: Option<usize>,
    tuning: Tuning,
}

impl Setup {
    /// The draws of `case`.
    pub fn draw(case: &Case) -> Self {
        let mut rng = Rng::new(case.seed ^ 0x5E70);
        let mut parts = rng.next_u64() as u32 | rng.next_u64() as u32;
        parts &= !case.without;
        if rng.one_in(3) {
            let faults = [Part::Errors, Part::ReadErrors, Part::FullDisk];
            parts &= !faults.iter().fold(0, |bits, part| bits | part.bit());
        }
        let has = |part: Part| parts & part.bit() != 0;
        let style = match rng.below(5) {
            0 => CompactionStyle::Universal(UniversalOptions {
                runs_trigger: 2 + rng.below(4) as usize,
                ..UniversalOptions::default()
            }),
            1 => CompactionStyle::Manual,
            _ => CompactionStyle::Leveled,
        };
        let format = match rng.below(6) {
            0 => TableFormat::Plain,
            1 => TableFormat::Searchable,
            _ => TableFormat::Block,
        };
        let codecs = [Codec::None, Codec::Lz4, Codec::Snappy, Codec::Zstd];
        Self {
            order: Order::draw(&mut rng),
            writers: (1 + rng.below(4)).min(case.writers),
            readers: if has(Part::Readers) {
                1 + rng.below(2)
            } else {
                0
            },
            ops: (15 + rng.below(46)).min(case.ops),
            rounds: (1 + rng.below(4)).min(case.rounds),
            sync_one_in: 1 + rng.below(12),
            // Drawn from a generator of its own, so that the draws of seeds without images stay as
            // they were.
            wal_apart: case.images > 0 && Rng::new(case.seed ^ 0xA9A7).one_in(5),
            parts,
            style,
            format,
            codec: one_of(&mut rng, &codecs),
            threads: 1 + rng.below(3) as usize,
            memory: (1 << 20) << rng.below(3),
            open_files: rng.one_in(4).then(|| 8 + rng.below(8) as usize),
            tuning: tuning(&mut rng),
        }
    }

    /// Whether `part` takes part.
    pub fn has(&self, part: Part) -> bool {
        self.parts & part.bit() != 0
    }

    /// The options of the families.
    pub fn family(&self) -> FamilyOptions {
        FamilyOptions {
            merge_operator: Some(Arc::new(Append)),
            table_format: Some(self.format),
            ..FamilyOptions::default()
        }
    }

    /// The options to open the database on `files`, with the time and threads of `scheduler`.
    pub fn options(&self, files: Arc<dyn FileSystem>, scheduler: &Arc<Scheduler>) -> Options {
        self.options_in(Env {
            files,
            clock: Arc::clone(scheduler) as _,
            spawner: Arc::new(Tasked(Arc::clone(scheduler))),
            seed: 7,
        })
    }

    /// The same in any environment.
    pub fn options_in(&self, env: Env) -> Options {
        Options {
            wal_dir: self.wal_apart.then(|| "/wal".into()),
            memory_budget: Some(self.memory),
            background_threads: Some(self.threads),
            compression: Compression::new(self.codec),
            compaction_style: self.style,
            max_open_files: self.open_files,
            family: self.family(),
            tuning: self.tuning.clone(),
            env,
            ..Options::default()
        }
    }
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// Sizes so small that everything happens within a few hundred writes.
pub fn tuning(rng: &mut Rng) -> Tuning {
    Tuning {
        write_buffer_bytes: Some(one_of(rng, &[4 << 10, 8 << 10, 16 << 10, 64 << 10])),
        memtables_max: 2 + rng.below(3) as usize,
        target_file_bytes: 1 << (10 + rng.below(4)),
        level_base_bytes: Some(1 << (11 + rng.below(4))),
        level_multiplier: 2 + rng.below(5),
        blob_from_bytes: Some(one_of(rng, &[35, 35, 200, usize::MAX])),
        l0_trigger: 1 + rng.below(4) as usize,
        l0_slowdown: 3 + rng.below(20) as usize,
        block_bytes: 128 << rng.below(5),
        restart_interval: 1 + rng.below(16) as usize,
        filter_bits: one_of(rng, &[0.0, 5.0, 10.0, 10.0]),
        partition_above_bytes: one_of(rng, &[1, 512 << 20]),
        wal_bytes_max: one_of(rng, &[None, None, Some(8 << 10), Some(40 << 10)]),
        reuse_from_bytes: one_of(rng, &[1, u64::MAX]),
        age_max_seconds: one_of(rng, &[None, Some(20), Some(1000)]),
        ..Tuning::default()
    }
}
