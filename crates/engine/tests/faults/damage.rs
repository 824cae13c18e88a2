//! Goal: of the small database of every table format, each byte of each file may be damaged, and each file
//! be cut, swapped, renamed or stale: the error names the file, or no answer changes. Method: one harm
//! at a time to a copy of the disk, which is opened and read whole. `DRUMLIN_EXHAUSTIVE=1` does all of
//! them and prints how many; otherwise a sample of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use drumlin::TableFormat;
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

use crate::corruption::{Everything, setup, write};
use crate::support::{DIR, Demand, Model, Op, Script, Step, exhaustive, random_ops};

/// Bytes of a page that a disk may put in another's place.
const PAGE_BYTES: usize = 512;
/// Harms of a kind to a kind of file where not all are tried.
const SAMPLE: u64 = 30;

/// A change to the bytes of a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip {
        at: usize,
        bit: u8,
    },
    Zero {
        at: usize,
    },
    /// With the byte that follows.
    SwapBytes {
        at: usize,
    },
    /// With the page that follows.
    SwapPages {
        at: usize,
    },
    Cut {
        len: usize,
    },
}

/// The names of the kinds.
const KINDS: [&str; 5] = [
    "bits flipped",
    "bytes zeroed",
    "bytes swapped",
    "pages swapped",
    "files cut",
];

impl Harm {
    /// How many of kind `kind` there are for a file of `len` bytes.
    fn count(kind: usize, len: usize) -> usize {
        match kind {
            0 => len * 8,
            1 => len,
            2 => len.saturating_sub(1),
            3 => (len / PAGE_BYTES).saturating_sub(1),
            _ => len,
        }
    }

    /// Number `index` of kind `kind`.
    fn number(kind: usize, index: usize) -> Self {
        match kind {
            0 => Self::Flip {
                at: index / 8,
                bit: (index % 8) as u8,
            },
            1 => Self::Zero { at: index },
            2 => Self::SwapBytes { at: index },
            3 => Self::SwapPages {
                at: index * PAGE_BYTES,
            },
            _ => Self::Cut { len: index },
        }
    }

    /// Does it to `path`, which holds `content`; false where nothing would change.
    fn apply(self, disk: &StrictMemFileSystem, path: &Path, content: &[u8]) -> bool {
        let mut bytes = content.to_vec();
        match self {
            Self::Flip { at, bit } => bytes[at] ^= 1 << bit,
            Self::Zero { at } => bytes[at] = 0,
            Self::SwapBytes { at } => bytes.swap(at, at + 1),
            Self::SwapPages { at } => {
                let (one, other) = bytes[at..at + 2 * PAGE_BYTES].split_at_mut(PAGE_BYTES);
                one.swap_with_slice(other);
            }
            Self::Cut { len } => bytes.truncate(len),
        }
        if bytes == content {
            return false;
        }
        disk.resize(path, bytes.len() as u64).unwrap();
        disk.overwrite(path, 0, &bytes).unwrap();
        true
    }
}

/// Damage that was done.
#[derive(Default)]
struct Tally {
    tried: u64,
    told: u64,
}

impl Tally {
    fn add(&mut self, told: bool) {
        self.tried += 1;
        self.told += u64::from(told);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harmless = self.tried - self.told;
        write!(
            f,
            "{} tried, {} told, {harmless} harmless",
            self.tried, self.told
        )
    }
}

/// A database with tables of `format` in two levels and two families, blob files, range deletions, merges,
/// WAL files, and for searchable tables models; and its disk as it was half-way.
fn small(format: TableFormat) -> (Everything, StrictMemFileSystem) {
    let disk = StrictMemFileSystem::new();
    let mut options = setup(&disk);
    options.family.table_format = Some(format);
    let mut rng = Rng::new(9);
    let both = ["default", "one"];
    let writes = |rng: &mut Rng, count: u64, sync: bool| -> Vec<Step> {
        let ops = (0..count).map(|_| random_ops(rng, &both, 4));
        let ops: Vec<_> = ops.collect();
        ops.into_iter().map(|ops| write(ops, sync)).collect()
    };
    let mut steps = vec![Step::Create("one")];
    steps.extend(writes(&mut rng, 8, false));
    steps.push(Step::Flush);
    let (_, db) = Script {
        steps: steps.clone(),
    }
    .run(&options, true);
    db.unwrap().close().unwrap();
    let older = disk.crash_image(0, drumlin_fs::CrashPolicy::KeepAll);

    let disk = StrictMemFileSystem::new();
    options.env.files = std::sync::Arc::new(disk.clone());
    steps.push(Step::Compact("default"));
    steps.extend(writes(&mut rng, 6, false));
    steps.push(Step::Flush);
    steps.push(Step::Reopen);
    steps.extend(writes(&mut rng, 2, true));
    let large = vec![b'x'; 13 << 10];
    let op = Op::Put(b"k000".to_vec(), large);
    steps.push(write(vec![("one", op)], true));
    steps.extend(writes(&mut rng, 2, true));
    steps.extend(writes(&mut rng, 2, false));
    let (history, db) = Script { steps }.run(&options, true);
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    db.unwrap().close().unwrap();
    disk.sync_all();
    let mut model = Model::default();
    for (ops, _) in &history.batches {
        ops.iter().for_each(|(name, op)| model.apply(name, op));
    }
    let all = Everything {
        disk,
        history,
        model,
    };
    (all, older)
}

/// The kind of a file, by its name.
fn kind_of(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let kind = match name.split_once('.') {
        Some((_, extension)) => extension,
        None => name.split('-').next().unwrap_or_default(),
    };
    kind.to_owned()
}

/// The state required after damage to `path`. In a WAL the marks of synced data may be gone, and nothing else
/// tells of the end of the newest one: the stated limits. One flipped bit is reported.
fn demand(path: &Path, harm: Option<Harm>) -> Demand {
    match kind_of(path).as_str() {
        "log" if !matches!(harm, Some(Harm::Flip { .. })) => Demand::Prefix,
        _ => Demand::PowerCut,
    }
}

/// The harms, of `count`, that are tried.
fn chosen(count: usize, seed: u64) -> BTreeSet<usize> {
    if exhaustive() || count as u64 <= SAMPLE {
        return (0..count).collect();
    }
    let mut rng = Rng::new(seed);
    (0..SAMPLE)
        .map(|_| rng.below(count as u64) as usize)
        .collect()
}

fn harm_every_byte(format: TableFormat) {
    let (all, _) = small(format);
    let mut files: BTreeMap<String, Vec<(PathBuf, Vec<u8>)>> = BTreeMap::new();
    for (path, content) in all.disk.snapshot_files() {
        files
            .entry(kind_of(&path))
            .or_default()
            .push((path, content));
    }
    for (file_kind, files) in files {
        for (kind, name) in KINDS.iter().enumerate() {
            let counts = files
                .iter()
                .map(|(_, content)| Harm::count(kind, content.len()));
            let count = counts.sum();
            let mut tally = Tally::default();
            for mut index in chosen(count, (kind * 31 + file_kind.len()) as u64) {
                let mut files = files.iter();
                let (path, content) = loop {
                    let file = files.next().expect("the index is below the sum");
                    let own = Harm::count(kind, file.1.len());
                    if index < own {
                        break file;
                    }
                    index -= own;
                };
                let harm = Harm::number(kind, index);
                let disk = all.copy();
                if harm.apply(&disk, path, content) {
                    let place = format!("{format:?}, {}: {harm:?}", path.display());
                    tally.add(all.judge_as(&place, &disk, demand(path, Some(harm))));
                }
            }
            println!("{format:?} {file_kind}, {name}: {tally}");
            if ["CURRENT", "MANIFEST"].contains(&file_kind.as_str()) && kind == 0 {
                assert!(tally.told * 100 > tally.tried * 95, "{file_kind}: {tally}");
            }
        }
    }
}

fn exchange_files(format: TableFormat) {
    let (all, _) = small(format);
    let paths: Vec<PathBuf> = all.disk.snapshot_files().into_keys().collect();
    let mut tally = Tally::default();
    for (index, one) in paths.iter().enumerate() {
        for other in &paths[index + 1..] {
            let disk = all.copy();
            let spare = Path::new(DIR).join("spare");
            disk.rename(one, &spare).unwrap();
            disk.rename(other, one).unwrap();
            disk.rename(&spare, other).unwrap();
            let place = format!("{format:?}: {} and {}", one.display(), other.display());
            let demands = [demand(one, None), demand(other, None)];
            let least = demands.contains(&Demand::Prefix);
            let demand = if least {
                Demand::Prefix
            } else {
                Demand::PowerCut
            };
            tally.add(all.judge_as(&place, &disk, demand));
        }
        // Under the name of a file that does not exist, and under one of no meaning.
        for name in ["000999.sst", "000998.log", "000997.blob", "else"] {
            let disk = all.copy();
            disk.rename(one, &Path::new(DIR).join(name)).unwrap();
            let place = format!("{format:?}: {} is called {name}", one.display());
            tally.add(all.judge_as(&place, &disk, demand(one, None)));
        }
    }
    println!("{format:?}, files swapped and renamed: {tally}");
}

fn put_back_stale_files(format: TableFormat) {
    let (all, older) = small(format);
    let mut tally = Tally::default();
    for (path, content) in older.snapshot_files() {
        let disk = all.copy();
        if disk.snapshot_files().get(&path) == Some(&content) {
            continue;
        }
        match disk.exists(&path).unwrap() {
            true => disk.resize(&path, 0).unwrap(),
            false => drop(
                disk.create(&path, CreateOptions::new(FileKind::Other))
                    .unwrap(),
            ),
        }
        disk.overwrite(&path, 0, &content).unwrap();
        let place = format!("{format:?}: {} is an older one", path.display());
        tally.add(all.judge_as(&place, &disk, demand(&path, None)));
    }
    println!("{format:?}, stale files: {tally}");
}

#[test]
fn every_byte_of_a_database_of_blocks_is_told_or_does_no_harm() {
    harm_every_byte(TableFormat::Block);
}

#[test]
fn every_byte_of_a_database_of_plain_tables_is_told_or_does_no_harm() {
    harm_every_byte(TableFormat::Plain);
}

#[test]
fn every_byte_of_a_database_of_searchable_tables_is_told_or_does_no_harm() {
    harm_every_byte(TableFormat::Searchable);
}

#[test]
fn files_in_each_others_place_are_told_or_do_no_harm() {
    for format in [
        TableFormat::Block,
        TableFormat::Plain,
        TableFormat::Searchable,
    ] {
        exchange_files(format);
    }
}

#[test]
fn files_of_an_earlier_day_are_told_or_do_no_harm() {
    for format in [
        TableFormat::Block,
        TableFormat::Plain,
        TableFormat::Searchable,
    ] {
        put_back_stale_files(format);
    }
}
