//! Goal: wherever the process stops, the changes of a database make a copy that equals it: no gap, nothing twice, over
//! flushes, new WAL files, families that come and go, tables taken in, two-phase commit, crashes and recoveries that
//! crash. Method: random scripts by seed; one copy follows what is synced while the script runs and goes on after the
//! crash, another is built from the first change; both must equal the database, and do so again after more writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ChangesOptions, ColumnFamily, Db, Env, ErrorKind, KeepChanges, Locking, Options, Result,
    SstFileWriter, TransactionDb, TransactionOptions, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};
use drumlin_table::TableWriterOptions;

use crate::copy::{Copy, family_options};
use crate::support::{DIR, exhaustive, tiny};

/// Steps of a script.
const STEPS: usize = 60;
/// Steps after a crash.
const LATER_STEPS: usize = 12;

pub(crate) fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        memory_budget: Some(4 << 20),
        background_threads: Some(0),
        keep_changes: Some(KeepChanges {
            age: Some(Duration::from_secs(1 << 30)),
            bytes: None,
        }),
        family: family_options(),
        tuning: tiny(),
        env: Env::system().with_files(files).with_seed(7),
        ..Options::default()
    }
}

/// Nobody waits.
fn impatient() -> Locking {
    Locking {
        timeout: Duration::ZERO,
        ..Locking::default()
    }
}

/// A database that a script changes.
pub(crate) struct Run {
    pub(crate) db: Db,
    transactions: TransactionDb,
    files: Arc<dyn FileSystem>,
    pub(crate) rng: Rng,
    /// Transactions, tables and families made so far.
    made: u64,
}

impl Run {
    fn open(files: Arc<dyn FileSystem>, seed: u64) -> Result<Self> {
        let options = options(Arc::clone(&files));
        Self::open_with(options, seed)
    }

    /// Opens it with `options`, for the script of `seed`.
    pub(crate) fn open_with(options: Options, seed: u64) -> Result<Self> {
        let files = Arc::clone(&options.env.files);
        let db = Db::open_all_families(DIR, options)?;
        let transactions = TransactionDb::over(db.clone(), impatient())?;
        Ok(Self {
            db,
            transactions,
            files,
            rng: Rng::new(seed),
            made: seed << 32,
        })
    }

    fn family(&mut self) -> ColumnFamily {
        let mut families = self.db.families();
        let at = self.rng.below(families.len() as u64) as usize;
        families.swap_remove(at)
    }

    fn key(&mut self) -> String {
        format!("k{:02}", self.rng.below(30))
    }

    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(crate) fn step(&mut self) -> Result<()> {
        match self.rng.below(20) {
            0 => self.db.flush(),
            1 => {
                let family = self.family();
                self.db.flush_cf(&family)
            }
            2 => {
                let family = self.family();
                self.db.compact_range(&family, None, None)
            }
            3 if self.db.families().len() < 4 => {
                let name = format!("f{}", self.next());
                self.db.create_family(&name, family_options()).map(drop)
            }
            4 => {
                let family = self.family();
                match family.id() {
                    0 => Ok(()),
                    _ => match self.transactions.drop_family(&family) {
                        // What is prepared holds it.
                        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(()),
                        dropped => dropped,
                    },
                }
            }
            5 => self.ingest(),
            6 | 7 => self.prepare(),
            8 | 9 => self.end_one(),
            10 => self.db.sync_wal().map(drop),
            _ => self.write(),
        }
    }

    fn write(&mut self) -> Result<()> {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + self.rng.below(4) {
            let (id, key) = (self.family().id(), self.key());
            let value = format!("v{}", self.rng.below(1000)).repeat(1 + self.rng.below(9) as usize);
            match self.rng.below(8) {
                0 => batch.delete_cf(id, key.as_bytes())?,
                1 => batch.merge_cf(id, key.as_bytes(), value.as_bytes())?,
                2 => {
                    let end = format!("{key}~");
                    batch.delete_range_cf(id, key.as_bytes(), end.as_bytes())?;
                }
                3 => batch.put_log_data(b"for the log")?,
                _ => batch.put_cf(id, key.as_bytes(), value.as_bytes())?,
            }
        }
        let options = WriteOptions {
            sync: Some(self.rng.one_in(4)),
            ..WriteOptions::default()
        };
        self.db.write(batch, &options)
    }

    fn ingest(&mut self) -> Result<()> {
        let mut paths = Vec::new();
        for _ in 0..1 + self.rng.below(2) {
            let path = PathBuf::from(format!("/external-{}.sst", self.next()));
            let env = Env::system().with_files(Arc::clone(&self.files));
            let mut writer = SstFileWriter::create(&env, &path, TableWriterOptions::default())?;
            let from = self.rng.below(30);
            for key in from..from + 4 {
                writer.put(format!("k{key:02}").as_bytes(), b"taken in")?;
            }
            writer.finish()?;
            paths.push(path);
        }
        let family = self.family();
        self.db.ingest(&family, &paths, true)
    }

    fn prepare(&mut self) -> Result<()> {
        let (family, key) = (self.family(), self.key());
        let plain = TransactionOptions {
            snapshot: false,
            ..TransactionOptions::default()
        };
        let name = format!("t{}", self.next());
        let mut tx = self.transactions.begin_with(plain);
        // Its own keys: nobody waits for what is prepared.
        tx.put(&family, format!("{name} {key}"), "prepared")?;
        tx.put(self.db.default_family(), format!("{name} more"), "prepared")?;
        drop(tx.prepare_with(&name, &WriteOptions::default())?);
        Ok(())
    }

    fn end_one(&mut self) -> Result<()> {
        let mut names = self.transactions.prepared_transactions();
        if names.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(names.len() as u64) as usize;
        let name = names.swap_remove(at);
        let Some(prepared) = self.transactions.prepared(&name) else {
            return Ok(());
        };
        match self.rng.one_in(4) {
            true => prepared.rollback_with(&WriteOptions::default()),
            false => prepared.commit_with(&WriteOptions::default()).map(drop),
        }
    }
}

fn follow_synced(copy: &mut Copy, db: &Db, files: &dyn FileSystem) -> Result<()> {
    let synced_only = ChangesOptions { synced_only: true };
    for batch in db.changes_with(copy.position, synced_only)? {
        copy.apply(&batch?, files)?;
    }
    Ok(())
}

/// Runs a script of `seed` up to its first error, with a copy that follows what is synced.
fn run(files: Arc<dyn FileSystem>, seed: u64, copy: &mut Copy) -> Result<()> {
    let mut run = Run::open(Arc::clone(&files), seed)?;
    for step in 0..STEPS {
        run.step()?;
        if step % 7 == 0 {
            follow_synced(copy, &run.db, &*files)?;
        }
        if step % 23 == 22 {
            let Run { db, rng, .. } = run;
            db.close()?;
            run = Run::open(Arc::clone(&files), seed + step as u64)?;
            run.rng = rng;
        }
    }
    run.db.close()
}

/// The database on `disk` equals both copies, now and after more steps.
fn check(disk: &StrictMemFileSystem, mut synced: Copy, seed: u64, place: &str) {
    let files: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let failed = |error| panic!("{place}: {error:?}");
    let mut run = Run::open(Arc::clone(&files), seed ^ 0x5eed).unwrap_or_else(failed);
    let mut whole = Copy::new();
    let mut follow = |run: &Run, place: &str| {
        for copy in [&mut synced, &mut whole] {
            if let Err(error) = copy.follow(&run.db, &*files) {
                panic!("{place}: {error:?}");
            }
            assert_eq!(copy.position, run.db.latest_seqno() + 1, "{place}");
            copy.assert_equals(&run.db, place);
        }
    };
    follow(&run, place);
    for _ in 0..LATER_STEPS {
        if let Err(error) = run.step() {
            panic!("{place}, later: {error:?}");
        }
    }
    follow(&run, &format!("{place}, later"));
    run.db
        .close()
        .unwrap_or_else(|error| panic!("{place}: {error:?}"));
}

#[test]
fn a_copy_made_of_changes_equals_the_database() {
    for seed in 0..if exhaustive() { 500 } else { 25 } {
        let memory = StrictMemFileSystem::new();
        let mut copy = Copy::new();
        run(Arc::new(memory.clone()), seed, &mut copy).unwrap();
        check(&memory, copy, seed, &format!("seed {seed}"));
    }
}

#[test]
fn changes_survive_a_stop_at_every_operation() {
    for seed in 0..if exhaustive() { 20 } else { 2 } {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        run(Arc::new(files.clone()), seed, &mut Copy::new()).expect("without faults it runs");
        let step = if exhaustive() { 1 } else { 5 };
        for index in (seed % step..files.operations()).step_by(step as usize) {
            stop_at(seed, index);
        }
    }
}

fn stop_at(seed: u64, index: u64) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    files.add_rule(FaultRule::once(index, Fault::Stop));
    let mut copy = Copy::new();
    if run(Arc::new(files), seed, &mut copy).is_ok() {
        return; // What closing left for the next open to remove.
    }
    let mut rng = Rng::new(index);
    let at = rng.below(CrashPolicy::ALL.len() as u64) as usize;
    let policy = CrashPolicy::ALL[at];
    let crash = rng.next_u64();
    let place = format!("seed {seed}, stopped at {index}, {policy:?}, crash {crash}");
    let mut disk = memory.crash_image(crash, policy);
    if rng.one_in(3) {
        // The recovery is cut off as well.
        let files = FaultFileSystem::over_memory(&disk);
        files.add_rule(FaultRule::once(rng.below(60), Fault::Stop));
        drop(Run::open(Arc::new(files), seed));
        disk = disk.crash_image(rng.next_u64(), CrashPolicy::KeepAll);
    }
    if !disk.exists(Path::new(DIR)).unwrap() {
        return;
    }
    check(&disk, copy, seed, &place);
}
