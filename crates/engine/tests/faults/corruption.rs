//! Goal: damage on disk is reported and never becomes wrong data. Method: a small database that has a
//! bit of everything; one bit flipped in its bytes, files cut, lengthened, swapped and removed; then
//! it is opened and read whole.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{
    Codec, ColumnFamily, Compression, Db, ErrorKind, FamilyOptions, Options, ReadOptions,
    TableFormat, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, FileSystem, StrictMemFileSystem};

use crate::support::{
    Append, DIR, Demand, Fate, History, Model, Op, Rows, Script, Step, check, exhaustive, options,
    random_ops, rows,
};

pub(crate) struct Everything {
    pub(crate) disk: StrictMemFileSystem,
    pub(crate) history: History,
    pub(crate) model: Model,
}

pub(crate) fn write(ops: Vec<(&'static str, Op)>, sync: bool) -> Step {
    Step::Write { ops, sync }
}

pub(crate) fn setup(disk: &StrictMemFileSystem) -> Options {
    let mut options = options(Arc::new(disk.clone()));
    options.compression = Compression::new(Codec::Zstd);
    options.tuning.write_buffer_bytes = Some(12 << 10);
    options.tuning.target_file_bytes = 2 << 10;
    options.tuning.partition_above_bytes = 1 << 10;
    options.tuning.blob_from_bytes = Some(35);
    // Places for many files take longer to make than the rest of an open.
    options.max_open_files = Some(40);
    options
}

/// Two families, tables in two levels, values in blob files, range deletions, merges, WAL files with
/// synced parts.
fn everything() -> Everything {
    everything_in(TableFormat::Block)
}

/// The same with the default family's tables of `format`.
fn everything_in(format: TableFormat) -> Everything {
    let disk = StrictMemFileSystem::new();
    let mut options = setup(&disk);
    options.family.table_format = Some(format);
    let mut rng = Rng::new(4);
    let mut steps = vec![Step::Create("one")];
    let both = ["default", "one"];
    for round in 0..4 {
        for _ in 0..10 {
            steps.push(write(random_ops(&mut rng, &both, 5), false));
        }
        steps.push(Step::Flush);
        if round == 1 {
            steps.push(Step::Compact("default"));
            steps.push(Step::Compact("one"));
        }
    }
    for index in 0..12 {
        let ops = random_ops(&mut rng, &both, 3);
        steps.push(write(ops, index % 3 == 0 && index < 9));
        if index == 5 {
            let large = vec![b'x'; 13 << 10];
            steps.push(write(
                vec![("one", Op::Put(b"k000".to_vec(), large))],
                false,
            ));
        }
    }
    let (history, db) = Script { steps }.run(&options, true);
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    let db = db.unwrap();
    let levels = |family: &ColumnFamily| db.property(family, "rocksdb.levelstats").unwrap();
    let shape: Vec<_> = db.families().iter().map(levels).collect();
    db.close().unwrap();
    disk.sync_all();
    let mut model = Model::default();
    for (ops, _) in &history.batches {
        ops.iter().for_each(|(name, op)| model.apply(name, op));
    }
    let kinds = disk.snapshot_files();
    let count = |suffix: &str| {
        let paths = kinds.keys().map(|path| path.to_string_lossy());
        paths.filter(|path| path.ends_with(suffix)).count()
    };
    assert!(
        count(".sst") >= 6 && count(".log") >= 2 && count(".blob") >= 4,
        "{shape:?} {:?}",
        kinds.keys()
    );
    Everything {
        disk,
        history,
        model,
    }
}

/// Reads everything from a database with a damaged table: right, or an error.
fn read_all(db: &Db, model: &Model) -> Result<bool, String> {
    let mut whole = true;
    for family in db.families() {
        let rows = model
            .families
            .get(family.name())
            .cloned()
            .unwrap_or_default();
        whole &= scan(db, &family, &rows, true)? & scan(db, &family, &rows, false)?;
        for key in rows.keys().map(Vec::as_slice).chain([&b"absent"[..]]) {
            match db.get_cf(&family, key, &ReadOptions::default()) {
                Ok(found) if found.as_deref() == rows.get(key).map(Vec::as_slice) => {}
                Ok(found) => {
                    let found = found.map(|value| value.len());
                    return Err(format!("get of {key:?} gave {found:?}"));
                }
                Err(error) => whole &= refused(&error)?,
            }
        }
    }
    Ok(whole)
}

/// Whether an error is one that damage may give; false, for it was told.
fn refused(error: &drumlin::Error) -> Result<bool, String> {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::NotSupported if error.file().is_some() => Ok(false),
        _ => Err(format!(
            "an error that does not tell of damage in a file: {error:?}"
        )),
    }
}

fn scan(db: &Db, family: &ColumnFamily, rows: &Rows, forward: bool) -> Result<bool, String> {
    let mut iter = db.iter_cf(family, ReadOptions::default());
    let mut want: Vec<_> = rows.iter().collect();
    match forward {
        true => iter.seek_to_first(),
        false => {
            want.reverse();
            iter.seek_to_last();
        }
    }
    let mut index = 0;
    while iter.valid() {
        let value = match iter.try_value() {
            Ok(value) => value,
            Err(error) => return refused(&error),
        };
        let same = want
            .get(index)
            .is_some_and(|(key, wanted)| iter.key() == *key && value == *wanted);
        if !same {
            return Err(format!("a scan gave {:?} at {index}", iter.key()));
        }
        index += 1;
        match forward {
            true => iter.next(),
            false => iter.prev(),
        }
    }
    match iter.status() {
        Ok(()) if index == want.len() => Ok(true),
        Ok(()) => Err(format!("a scan ended at {index} of {}", want.len())),
        Err(error) => refused(&error),
    }
}

impl Everything {
    pub(crate) fn copy(&self) -> StrictMemFileSystem {
        self.disk.crash_image(0, CrashPolicy::KeepAll)
    }

    fn files(&self, part: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = self.disk.snapshot_files();
        files.retain(|path, _| path.to_string_lossy().contains(part));
        assert!(!files.is_empty(), "no file {part}");
        files
    }

    /// Opens and reads a damaged copy; whether the damage was noticed.
    fn judge(&self, place: &str, disk: &StrictMemFileSystem) -> bool {
        self.judge_as(place, disk, Demand::PowerCut)
    }

    pub(crate) fn judge_as(&self, place: &str, disk: &StrictMemFileSystem, demand: Demand) -> bool {
        let verdict = catch_unwind(AssertUnwindSafe(|| self.verdict(disk, demand)));
        match verdict {
            Ok(Ok(noticed)) => noticed,
            Ok(Err(why)) => panic!("{place}: {why}"),
            Err(_) => panic!("{place}: panicked"),
        }
    }

    fn verdict(&self, disk: &StrictMemFileSystem, demand: Demand) -> Result<bool, String> {
        let db = match Db::open_all_families(DIR, setup(disk)) {
            Ok(db) => db,
            Err(error) => return refused(&error).map(|_| true),
        };
        if demand == Demand::Prefix {
            for family in db.families() {
                if let Err(error) = rows(&db, &family) {
                    return refused(&error).map(|_| true);
                }
            }
            return check(&db, &self.history, demand).map(|()| db.recovery_report().cut.is_some());
        }
        let Some(cut) = &db.recovery_report().cut else {
            let mended = db.recovery_report().mended.is_some();
            return read_all(&db, &self.model).map(|whole| mended || !whole);
        };
        if cut.was_synced {
            return Err(format!("opened though what was synced is gone: {cut:?}"));
        }
        check(&db, &self.history, Demand::PowerCut).map(|()| true)
    }

    /// Flips bits of every file whose path contains `part`; the share that was noticed.
    fn flip(&self, part: &str, stride: usize) -> f64 {
        let (mut tried, mut noticed) = (0, 0);
        for (path, content) in self.files(part) {
            let step = if exhaustive() { 1 } else { stride };
            let mut rng = Rng::new(content.len() as u64);
            for start in (0..content.len()).step_by(step) {
                let offset = start + rng.below(step as u64) as usize;
                let bits = match exhaustive() {
                    true => 0..8,
                    false => {
                        let bit = rng.below(8) as u8;
                        bit..bit + 1
                    }
                };
                for bit in bits.filter(|_| offset < content.len()) {
                    let disk = self.copy();
                    disk.flip(&path, offset as u64, bit).unwrap();
                    let place = format!("{}: bit {bit} of byte {offset}", path.display());
                    tried += 1;
                    noticed += u32::from(self.judge(&place, &disk));
                }
            }
        }
        f64::from(noticed) / f64::from(tried)
    }

    /// Cuts and lengthens files. Demands are those of [`Self::demand`].
    fn cut(&self, part: &str, stride: usize) {
        let demand = Self::demand(part);
        for (path, content) in self.files(part) {
            let step = if exhaustive() { 1 } else { stride };
            let lengths = (0..content.len()).step_by(step).chain([content.len() - 1]);
            for length in lengths {
                let disk = self.copy();
                disk.resize(&path, length as u64).unwrap();
                self.judge_as(
                    &format!("{} cut to {length}", path.display()),
                    &disk,
                    demand,
                );
            }
            for more in [1, 100, 5000] {
                let disk = self.copy();
                let mut noise = vec![0; more];
                Rng::new(more as u64).fill(&mut noise);
                disk.overwrite(&path, content.len() as u64, &noise).unwrap();
                self.judge(&format!("{} with {more} bytes more", path.display()), &disk);
            }
        }
    }

    /// The state required after whole parts of a file are gone. In a WAL these may include the marks
    /// of synced data, and nothing else knows the length of the newest one: the stated limits. The
    /// rest is a prefix all the same.
    fn demand(part: &str) -> Demand {
        match part {
            ".log" => Demand::Prefix,
            _ => Demand::PowerCut,
        }
    }

    /// Makes each sector zeros, or ones.
    fn blot(&self, part: &str) {
        for (path, content) in self.files(part) {
            for start in (0..content.len()).step_by(512) {
                let len = (content.len() - start).min(512);
                for byte in [0, 0xFF] {
                    let disk = self.copy();
                    disk.overwrite(&path, start as u64, &vec![byte; len])
                        .unwrap();
                    let place = format!("{}: {byte:#x} from {start}", path.display());
                    self.judge_as(&place, &disk, Self::demand(part));
                }
            }
        }
    }
}

#[test]
fn flipped_bits_in_tables_are_told() {
    let share = everything().flip(".sst", 3);
    assert!(share > 0.9, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_plain_tables_are_told() {
    let share = everything_in(TableFormat::Plain).flip(".sst", 7);
    assert!(share > 0.9, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_searchable_tables_are_told() {
    let share = everything_in(TableFormat::Searchable).flip(".sst", 251);
    assert!(share > 0.5, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_models_are_told() {
    let all = everything_in(TableFormat::Searchable);
    let share = all.flip(".model", 5);
    assert!(share > 0.99, "only {share} of the flips were noticed");
    all.cut(".model", 7);
}

#[test]
fn flipped_bits_in_blob_files_are_told() {
    // Flips that go unseen are in values that were overwritten since.
    let share = everything().flip(".blob", 7);
    assert!(share > 0.5, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_wal_files_are_told() {
    let share = everything().flip(".log", 3);
    assert!(share > 0.99, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_the_manifest_are_told() {
    let share = everything().flip("MANIFEST", 1);
    assert!(share > 0.99, "only {share} of the flips were noticed");
}

#[test]
fn flipped_bits_in_current_are_told_and_others_do_no_harm() {
    let all = everything();
    assert!(all.flip("CURRENT", 1) > 0.99);
    for name in ["IDENTITY", "LOCK", "OPTIONS"] {
        if all
            .disk
            .snapshot_files()
            .keys()
            .any(|path| path.to_string_lossy().contains(name))
        {
            all.flip(name, 20);
        }
    }
}

#[test]
fn cut_and_lengthened_files_are_told() {
    let all = everything();
    all.cut(".sst", 97);
    everything_in(TableFormat::Plain).cut(".sst", 97);
    all.cut(".blob", 97);
    all.cut("CURRENT", 1);
    all.cut("MANIFEST", 3);
    all.cut(".log", 41);
}

#[test]
fn blotted_sectors_are_told() {
    let all = everything();
    for part in [".sst", ".blob", ".log", "MANIFEST", "CURRENT"] {
        all.blot(part);
    }
}

#[test]
fn lost_files_are_told() {
    let all = everything();
    let newest_wal = all.files(".log").into_keys().next_back().unwrap();
    for path in all.disk.snapshot_files().into_keys() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let harmless = ["IDENTITY", "LOCK", "OPTIONS"]
            .iter()
            .any(|n| name.starts_with(n));
        let disk = all.copy();
        disk.remove(&path).unwrap();
        if path == newest_wal {
            // Nothing that is left knows of the newest WAL: the stated limit.
            continue;
        }
        let noticed = all.judge(&format!("without {name}"), &disk);
        assert!(noticed || harmless, "{name} is gone and nothing says so");
    }
}

fn swap_each_two(all: &Everything, part: &str) {
    let files: Vec<PathBuf> = all.files(part).into_keys().collect();
    for (index, a) in files.iter().enumerate() {
        for b in &files[index + 1..] {
            let disk = all.copy();
            let spare = Path::new(DIR).join("spare");
            disk.rename(a, &spare).unwrap();
            disk.rename(b, a).unwrap();
            disk.rename(&spare, b).unwrap();
            let place = format!("{} and {} swapped", a.display(), b.display());
            assert!(all.judge(&place, &disk), "{place}: not noticed");
        }
    }
}

#[test]
fn swapped_tables_and_blob_files_are_told() {
    let all = everything();
    swap_each_two(&all, ".sst");
    swap_each_two(&everything_in(TableFormat::Plain), ".sst");
    swap_each_two(&all, ".blob");
}

/// A database with one WAL: 10 synced batches, then 5 that are not, and where each record begins.
fn one_wal() -> (StrictMemFileSystem, PathBuf, History) {
    let disk = StrictMemFileSystem::new();
    let mut steps = Vec::new();
    for index in 0..15 {
        let value = vec![b'v'; 50];
        let key = format!("k{index:02}").into_bytes();
        steps.push(write(vec![("default", Op::Put(key, value))], index < 10));
    }
    let (history, db) = Script { steps }.run(&setup(&disk), true);
    db.unwrap().close().unwrap();
    disk.sync_all();
    let mut wals = disk.snapshot_files();
    wals.retain(|path, _| path.extension().is_some_and(|e| e == "log"));
    let path = wals.into_keys().next().unwrap();
    (disk, path, history)
}

#[test]
fn a_torn_tail_opens_with_a_report() {
    let (disk, wal, history) = one_wal();
    let size = disk.info(&wal).unwrap().size;
    disk.resize(&wal, size - 3).unwrap();
    let db = Db::open(DIR, setup(&disk)).unwrap();
    let cut = db.recovery_report().cut.clone().expect("a report");
    assert!(
        !cut.was_synced && cut.dropped_bytes > 0 && cut.offset < size,
        "{cut:?}"
    );
    check(&db, &history, Demand::PowerCut).unwrap();
    assert!(db.get(b"k13").unwrap().is_some() && db.get(b"k14").unwrap().is_none());
    drop(db);
    let db = Db::open(DIR, setup(&disk)).unwrap();
    assert!(
        db.recovery_report().cut.is_none(),
        "the second open is clean"
    );
    check(&db, &history, Demand::PowerCut).unwrap();
}

#[test]
fn damage_below_the_synced_mark_refuses_to_open_unless_told_otherwise() {
    let (disk, wal, history) = one_wal();
    // Several bits, so that it is no single flipped one, in the third record or so.
    disk.overwrite(&wal, 400, &[0xA5; 16]).unwrap();
    let before = disk.snapshot_files();
    let error = Db::open(DIR, setup(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(wal.as_path()));
    assert!(error.offset().is_some_and(|at| at <= 400), "{error:?}");
    assert_eq!(
        disk.snapshot_files(),
        before,
        "a refused open changes nothing"
    );

    let options = Options {
        point_in_time_recovery: true,
        ..setup(&disk)
    };
    let db = Db::open(DIR, options).unwrap();
    let cut = db.recovery_report().cut.clone().expect("a report");
    assert!(cut.was_synced && cut.offset <= 400, "{cut:?}");
    let prefix = History {
        batches: history
            .batches
            .into_iter()
            .map(|(ops, _)| (ops, Fate::Acked))
            .collect(),
        ..history
    };
    check(&db, &prefix, Demand::PowerCut).unwrap();
    assert!(db.get(b"k00").unwrap().is_some() && db.get(b"k14").unwrap().is_none());
    let kept = format!("{}.quarantine", wal.display());
    assert_eq!(disk.snapshot_files()[Path::new(&kept)], before[&wal]);
    db.put(b"new", b"life").unwrap();
    drop(db);
    let db = Db::open(DIR, setup(&disk)).unwrap();
    assert!(db.get(b"new").unwrap().is_some());
}

#[test]
fn one_flipped_bit_in_the_last_record_loses_nothing_and_is_told() {
    let (disk, wal, _) = one_wal();
    let content = disk.snapshot_files()[&wal].clone();
    let size = content.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    for back in 1..60 {
        for point_in_time_recovery in [false, true] {
            let copy = disk.crash_image(0, CrashPolicy::KeepAll);
            copy.flip(&wal, (size - back) as u64, (back % 8) as u8)
                .unwrap();
            let options = |copy| Options {
                point_in_time_recovery,
                ..setup(copy)
            };
            let db = Db::open(DIR, options(&copy)).unwrap();
            let report = db.recovery_report().clone();
            assert!(
                report.mended.is_some() && report.cut.is_none(),
                "{report:?}"
            );
            assert_eq!(*db.get(b"k14").unwrap().unwrap(), [b'v'; 50]);
            // Recovery has written it anew: no later open has anything to mend, power cut or not.
            let cut = copy.crash_image(1, CrashPolicy::KeepNothing);
            drop(db);
            let db = Db::open(DIR, options(&cut)).unwrap();
            assert_eq!(db.recovery_report().mended, None);
            assert_eq!(*db.get(b"k14").unwrap().unwrap(), [b'v'; 50]);
        }
    }
}

#[test]
fn a_missing_wal_between_others_refuses_to_open_unless_told_otherwise() {
    let all = everything();
    let wals: Vec<PathBuf> = all.files(".log").into_keys().collect();
    let disk = all.copy();
    disk.remove(&wals[0]).unwrap();
    let error = Db::open_all_families(DIR, setup(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(wals[0].as_path()));
    let options = Options {
        point_in_time_recovery: true,
        ..setup(&disk)
    };
    let db = Db::open_all_families(DIR, options).unwrap();
    assert!(
        db.recovery_report()
            .cut
            .as_ref()
            .is_some_and(|cut| cut.was_synced)
    );
}

/// A database with several WAL files that are all needed, each of a few short records, every one synced; the rows
/// of "one" are in no table.
fn short_wals() -> Everything {
    let disk = StrictMemFileSystem::new();
    let mut steps = vec![Step::Create("one")];
    for index in 0..12_u8 {
        let put = |name: &str| {
            let key = format!("{name}{index:02}").into_bytes();
            Op::Put(key, vec![b'v'; 20 + usize::from(index)])
        };
        // Flushed writes come before those that only the WAL has, so that losing the WAL leaves a prefix.
        let ops = match index % 4 {
            0 => vec![("default", put("d"))],
            _ => vec![("one", put("k"))],
        };
        steps.push(write(ops, true));
        if index % 4 == 3 {
            steps.push(Step::FlushFamily("default")); // Begins another WAL.
        }
    }
    let (history, db) = Script { steps }.run(&setup(&disk), true);
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    drop(db.map(|db| db.close()));
    disk.sync_all();
    let mut model = Model::default();
    for (ops, _) in &history.batches {
        ops.iter().for_each(|(name, op)| model.apply(name, op));
    }
    Everything {
        disk,
        history,
        model,
    }
}

/// Goal: a hole between families is never taken for a torn tail. Method: the end of a WAL is cut off that only the
/// flush of one of two families had synced, at every length. One that ends with a record looks whole: writes
/// without a WAL have such numbers in tables, too.
#[test]
fn a_wal_that_ends_before_what_a_family_has_in_tables_is_told() {
    let disk = StrictMemFileSystem::new();
    let mut steps = vec![Step::Create("one")];
    for index in 0..10_u8 {
        let put = |name: &str| Op::Put(format!("{name}{index:02}").into_bytes(), vec![b'v'; 30]);
        steps.push(write(vec![("one", put("k"))], false));
        steps.push(write(vec![("default", put("d"))], false));
    }
    steps.push(Step::FlushFamily("default"));
    let (history, db) = Script { steps }.run(&setup(&disk), true);
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    drop(db);
    let all = disk.snapshot_files();
    let is_wal = |path: &Path| path.extension().is_some_and(|end| end == "log");
    let wals = all.iter().filter(|(path, _)| is_wal(path));
    let (wal, content) = wals.min_by_key(|(path, _)| path.as_path()).unwrap();
    let size = content.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let (mut holes, mut unseen) = (0, 0);
    for len in 0..size {
        let place = format!("{len} of {size} bytes");
        let disk = disk.crash_image(0, CrashPolicy::KeepAll);
        disk.truncate(wal, len as u64).unwrap();
        let db = Db::open_all_families(DIR, setup(&disk)).unwrap();
        let has = |family: &str, key: &str| {
            let family = db.column_family(family).unwrap();
            let options = ReadOptions::default();
            db.get_cf(&family, key, &options).unwrap().is_some()
        };
        assert!((0..10).all(|n| has("default", &format!("d{n:02}"))));
        let is_whole = (0..10).all(|n| has("one", &format!("k{n:02}")));
        let report = db.recovery_report();
        let cut = report.cut.as_ref();
        holes += usize::from(cut.is_some_and(|cut| cut.family_beyond.is_some()));
        let told = cut.and_then(|cut| cut.family_beyond.as_deref());
        let is_told = told == Some("default");
        unseen += usize::from(cut.is_none());
        assert!(is_whole || is_told || cut.is_none(), "{place}: {report:?}");
    }
    assert!(holes > size * 9 / 10, "{holes} of {size}");
    assert!(unseen <= 21, "{unseen}, and there are 20 records");
}

#[test]
fn damage_around_a_wal_switch_is_told_or_leaves_what_came_before() {
    let all = short_wals();
    let wals = all.files(".log");
    assert!(wals.len() >= 3, "{:?}", wals.keys());
    for (path, content) in wals {
        // The first records of a file, and the last of the one before.
        let ends =
            (0..content.len().min(100)).chain(content.len().saturating_sub(100)..content.len());
        for at in ends {
            let place = format!("{} at {at}", path.display());
            let disk = all.copy();
            disk.flip(&path, at as u64, (at % 8) as u8).unwrap();
            all.judge(&format!("a bit of {place}"), &disk);
            let disk = all.copy();
            let len = (content.len() - at).min(16);
            disk.overwrite(&path, at as u64, &vec![0; len]).unwrap();
            all.judge_as(&format!("zeros in {place}"), &disk, Demand::Prefix);
            let disk = all.copy();
            disk.resize(&path, at as u64).unwrap();
            all.judge_as(&format!("the end of {place}"), &disk, Demand::Prefix);
        }
    }
}

#[test]
fn a_compaction_of_damaged_tables_keeps_its_inputs() {
    let disk = StrictMemFileSystem::new();
    let db = Db::open(DIR, setup(&disk)).unwrap();
    for round in 0..2 {
        for index in 0..100 {
            let value = format!("{round}-{index}-{}", "v".repeat(40));
            db.put(format!("k{index:03}"), value).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let tables: Vec<_> = disk.snapshot_files().into_iter().collect();
    let (path, content) = tables
        .iter()
        .find(|(p, _)| p.extension().is_some_and(|e| e == "sst"))
        .unwrap();
    disk.flip(path, 10, 3).unwrap();
    let db = Db::open(DIR, setup(&disk)).unwrap();
    let error = db
        .compact_range(db.default_family(), None, None)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(path.as_path()));
    assert_eq!(disk.snapshot_files()[path].len(), content.len());
    db.put_cf(
        db.default_family(),
        b"later",
        b"write",
        &WriteOptions::synced(),
    )
    .unwrap();
    db.close().unwrap();
    disk.flip(path, 10, 3).unwrap();
    let db = Db::open(DIR, setup(&disk)).unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    for index in 0..100 {
        assert!(db.get(format!("k{index:03}")).unwrap().is_some());
    }
    let family = FamilyOptions {
        merge_operator: Some(Arc::new(Append)),
        ..FamilyOptions::default()
    };
    db.create_family("f", family).unwrap();
}
