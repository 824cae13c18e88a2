//! Goal: the promises of the commit pipeline, over any store: sequence numbers ascend in the order of
//! the log, readers see groups whole and in that order, and nothing after a failure is ever seen. Method: the
//! pipeline over a WAL in memory and an environment that keeps applied batches in a map; no database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, Result, SeqNo};
use drumlin_fs::{
    Clock, Env, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, Observer, OpKind,
    StrictMemFileSystem, SystemClock,
};

use super::commit::{CommitEnv, CommitPipeline, LogState, PendingWrite};
use super::published::Published;
use crate::files::names;
use crate::options::settings::WriteOptions;
use crate::wal::log::{Wal, WalFormat};
use crate::wal::preallocator::{FreshWal, WalPreallocator};
use crate::wal::record::RecordReader;
use crate::watch::events::Health;
use crate::watch::statistics::Statistics;
use crate::watch::waits::WaitCause;
use crate::write::batch::{BatchView, WriteBatch};
use crate::write::two_phase::TwoPhase;

/// A store that is a map.
struct MapEnv {
    published: Published,
    durable: AtomicU64,
    statistics: Statistics,
    clock: SystemClock,
    /// The applied batches: the key by its sequence number.
    applied: Mutex<BTreeMap<SeqNo, Vec<u8>>>,
    /// Whether the disk is full.
    is_full: AtomicBool,
    /// A batch with this key cannot be applied.
    bad_key: Option<&'static [u8]>,
    health: Mutex<Health>,
    /// Whether leaders stall, until this is taken back.
    stalls: AtomicBool,
}

impl CommitEnv for MapEnv {
    fn check(&self, batch: &WriteBatch) -> Result<()> {
        match batch
            .iter()
            .any(|record| record.is_ok_and(|it| it.key == b"refused"))
        {
            true => Err(Error::invalid_argument("refused")),
            false => Ok(()),
        }
    }

    fn admit(&self, log: &mut LogState, own: &PendingWrite) -> Result<()> {
        if self.stalls.load(Ordering::Acquire) {
            if own.no_stall {
                return Err(Error::new(ErrorKind::Busy, "it would wait"));
            }
            log.begin_stall(WaitCause::FullLine);
        }
        while self.stalls.load(Ordering::Acquire) {
            thread::yield_now();
        }
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::NoSpace, "the disk is full")),
            false if *self.health.lock() == Health::Poisoned => Err(self.refusal()),
            false => Ok(()),
        }
    }

    fn space_credit(&self) -> u64 {
        u64::MAX
    }

    fn spend_space(&self, _: usize) {}

    fn note_logged(&self, _: &mut LogState, _: u64) {}

    fn note_step(&self, _: &TwoPhase, _: u64) {}

    fn note_unlogged(&self) {}

    fn apply<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        for batch in batches {
            for (seqno, record) in (batch.seqno()..).zip(batch.iter()) {
                let key = record?.key;
                if Some(key) == self.bad_key {
                    return Err(Error::new(ErrorKind::Aborted, "the key is bad"));
                }
                let before = self.applied.lock().insert(seqno, key.to_vec());
                assert!(before.is_none(), "{seqno} is applied twice");
            }
        }
        Ok(())
    }

    fn degrade(&self, to: Health, _: &Error) {
        let mut health = self.health.lock();
        *health = to.max(*health);
    }

    fn refusal(&self) -> Error {
        Error::new(ErrorKind::Poisoned, "writes are refused")
    }

    fn published(&self) -> &Published {
        &self.published
    }

    fn durable(&self) -> &AtomicU64 {
        &self.durable
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn wal_synced(&self, _: Duration) {}
}

const DIR: &str = "/wal";

/// A pipeline over an empty WAL, and its file system.
fn pipeline(bad_key: Option<&'static [u8]>) -> (CommitPipeline<MapEnv>, FaultFileSystem) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    files.create_dir_all(Path::new(DIR)).unwrap();
    let env = Env::system().with_files(Arc::new(files.clone()));
    let preallocator = WalPreallocator::new(env.clone(), PathBuf::from(DIR), 0);
    let mut wal = Wal::new(env, PathBuf::from(DIR), preallocator, WalFormat::RocksDb);
    wal.switch(fresh_wal(&files, 1)).unwrap();
    let env = MapEnv {
        published: Published::new(0),
        durable: AtomicU64::new(0),
        statistics: Statistics::default(),
        clock: SystemClock::default(),
        applied: Mutex::default(),
        is_full: AtomicBool::new(false),
        bad_key,
        health: Mutex::new(Health::Healthy),
        stalls: AtomicBool::new(false),
    };
    (CommitPipeline::new(env, wal, 0, false), files)
}

/// An empty WAL of that number.
fn fresh_wal(files: &FaultFileSystem, number: u64) -> FreshWal {
    let env = Env::system().with_files(Arc::new(files.clone()));
    let preallocator = WalPreallocator::new(env, PathBuf::from(DIR), 0);
    preallocator.make(number, None).unwrap()
}

fn batch(keys: &[&[u8]]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for key in keys {
        batch.put(key, b"value").unwrap();
    }
    batch
}

fn synced(sync: bool) -> WriteOptions {
    WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    }
}

/// The contents of the WAL: the key of each sequence number.
fn logged(files: &FaultFileSystem) -> BTreeMap<SeqNo, Vec<u8>> {
    let file = files.open(&names::wal(Path::new(DIR), 1)).unwrap();
    let mut reader = RecordReader::new(file, 1);
    let mut found = BTreeMap::new();
    while let Some(record) = reader.read().unwrap() {
        let view = BatchView::new(record.payload).unwrap();
        for (seqno, record) in (view.seqno()..).zip(view.iter()) {
            found.insert(seqno, record.unwrap().key.to_vec());
        }
    }
    found
}

#[test]
fn numbers_ascend_without_a_gap_and_what_is_seen_is_what_is_logged() {
    let (pipeline, files) = pipeline(None);
    thread::scope(|scope| {
        for writer in 0..4u32 {
            let pipeline = &pipeline;
            scope.spawn(move || {
                for write in 0..100u32 {
                    let key = format!("{writer}-{write}");
                    let keys: Vec<&[u8]> = vec![key.as_bytes(); 1 + (write % 3) as usize];
                    let sync = (writer + write) % 5 == 0;
                    pipeline.write(&mut batch(&keys), &synced(sync)).unwrap();
                    let seen = pipeline.env.published.load();
                    let applied = pipeline.env.applied.lock();
                    assert_eq!(applied.range(..=seen).count() as u64, seen);
                }
            });
        }
    });
    let applied = pipeline.env.applied.lock().clone();
    let last = pipeline.env.published.load();
    assert!(applied.keys().copied().eq(1..=last));
    assert_eq!(logged(&files), applied);
}

#[test]
fn nothing_logged_with_or_after_a_failed_sync_is_seen() {
    let (pipeline, files) = pipeline(None);
    pipeline.write(&mut batch(&[b"a"]), &synced(true)).unwrap();
    files.add_rule(
        FaultRule::always(Fault::Io)
            .on(OpKind::Sync)
            .of_kind(FileKind::Wal),
    );
    let error = pipeline
        .write(&mut batch(&[b"b"]), &synced(true))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(*pipeline.env.health.lock(), Health::Poisoned);
    files.clear_rules();
    let error = pipeline
        .write(&mut batch(&[b"c"]), &synced(false))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert_eq!(pipeline.env.published.load(), 1);
    assert_eq!(pipeline.env.applied.lock().len(), 1);
}

#[test]
fn a_group_that_cannot_be_applied_poisons_and_is_not_seen() {
    let (pipeline, _) = pipeline(Some(b"bad"));
    pipeline.write(&mut batch(&[b"a"]), &synced(false)).unwrap();
    let error = pipeline
        .write(&mut batch(&[b"b", b"bad"]), &synced(false))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    assert_eq!(*pipeline.env.health.lock(), Health::Poisoned);
    assert_eq!(pipeline.env.published.load(), 1);
}

#[test]
fn without_space_nothing_is_logged_and_with_space_again_writes_go_on() {
    let (pipeline, files) = pipeline(None);
    pipeline.env.is_full.store(true, Ordering::Relaxed);
    let error = pipeline
        .write(&mut batch(&[b"a"]), &synced(false))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    pipeline.env.is_full.store(false, Ordering::Relaxed);
    pipeline.write(&mut batch(&[b"b"]), &synced(false)).unwrap();
    assert_eq!(logged(&files), BTreeMap::from([(1, b"b".to_vec())]));
}

#[test]
fn a_batch_that_is_refused_takes_no_number() {
    let (pipeline, files) = pipeline(None);
    pipeline
        .write(&mut batch(&[b"refused"]), &synced(false))
        .unwrap_err();
    let no_wal = WriteOptions {
        no_wal: true,
        ..synced(true)
    };
    pipeline.write(&mut batch(&[b"a"]), &no_wal).unwrap_err();
    assert!(logged(&files).is_empty());
    assert_eq!(pipeline.run_exclusive(|log| log.last_seqno), 0);
}

#[test]
fn an_append_that_finds_no_space_stops_writes_and_loses_nothing_before_it() {
    let (pipeline, files) = pipeline(None);
    pipeline.write(&mut batch(&[b"a"]), &synced(false)).unwrap();
    files.add_rule(
        FaultRule::always(Fault::NoSpace)
            .on(OpKind::Append)
            .of_kind(FileKind::Wal),
    );
    let large = vec![b'k'; 1 << 20];
    let outcome = pipeline.write(&mut batch(&[&large]), &synced(false));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(*pipeline.env.health.lock(), Health::WriteStopped);
    assert_eq!(logged(&files), BTreeMap::from([(1, b"a".to_vec())]));
    assert_eq!(pipeline.env.published.load(), 1);
}

#[test]
fn a_writer_that_may_not_stall_is_refused_behind_a_leader_that_does() {
    let (pipeline, files) = pipeline(None);
    let pipeline = &pipeline;
    let no_stall = WriteOptions {
        no_stall: true,
        ..synced(false)
    };
    pipeline.env.stalls.store(true, Ordering::Release);
    thread::scope(|scope| {
        let leader = scope.spawn(|| pipeline.write(&mut batch(&[b"leader"]), &synced(false)));
        let impatient = [(); 3]
            .map(|()| scope.spawn(|| pipeline.write(&mut batch(&[b"impatient"]), &no_stall)));
        let patient = scope.spawn(|| pipeline.write(&mut batch(&[b"patient"]), &synced(false)));
        for _ in 0..10_000 {
            if impatient.iter().all(|writer| writer.is_finished()) {
                break;
            }
            pipeline.env.clock.sleep(Duration::from_millis(1));
        }
        pipeline.env.stalls.store(false, Ordering::Release);
        for writer in impatient {
            assert_eq!(writer.join().unwrap().unwrap_err().kind(), ErrorKind::Busy);
        }
        leader.join().unwrap().unwrap();
        patient.join().unwrap().unwrap();
    });
    pipeline.write(&mut batch(&[b"after"]), &no_stall).unwrap();
    let mut keys: Vec<Vec<u8>> = logged(&files).into_values().collect();
    keys.sort();
    assert_eq!(keys, [&b"after"[..], b"leader", b"patient"]);
}

/// Holds back the first sync until it is released.
#[derive(Debug, Default)]
struct FirstSyncWaits {
    begun: AtomicBool,
    released: AtomicBool,
}

impl Observer for FirstSyncWaits {
    fn before(&self, op: OpKind, _: &Path) {
        if op == OpKind::Sync && !self.begun.swap(true, Ordering::AcqRel) {
            while !self.released.load(Ordering::Acquire) {
                thread::yield_now();
            }
        }
    }
}

#[test]
fn log_data_is_synced_in_the_wal_that_it_is_in_though_its_number_is_that_of_others() {
    let (pipeline, files) = pipeline(None);
    let (pipeline, gate) = (&pipeline, Arc::new(FirstSyncWaits::default()));
    files.set_observer(Some(Arc::clone(&gate) as _));
    let pause = || pipeline.env.clock.sleep(Duration::from_millis(1));
    let wal_bytes = || pipeline.env.statistics.wal_bytes.get();
    thread::scope(|scope| {
        let write = || {
            let mut batch = WriteBatch::new();
            batch.put_log_data(b"a note").unwrap();
            pipeline.write(&mut batch, &synced(true))
        };
        let first = scope.spawn(write);
        while !gate.begun.load(Ordering::Acquire) {
            pause();
        }
        let logged_before = wal_bytes();
        let second = scope.spawn(write);
        while wal_bytes() == logged_before {
            pause();
        }
        // Long enough to be in line for the next sync; it decides nothing but what the test can see.
        pipeline.env.clock.sleep(Duration::from_millis(20));
        let fresh = pipeline.run_exclusive(|log| log.wal.switch(fresh_wal(&files, 2)));
        fresh.unwrap();
        let logged_before = wal_bytes();
        let third = scope.spawn(write);
        while wal_bytes() == logged_before {
            pause();
        }
        pipeline.env.clock.sleep(Duration::from_millis(20));
        files.record_history();
        gate.released.store(true, Ordering::Release);
        for writer in [first, second, third] {
            writer.join().unwrap().unwrap();
        }
    });
    files.set_observer(None);
    let second_wal = (OpKind::Sync, names::wal(Path::new(DIR), 2));
    assert!(files.history().contains(&second_wal));
}
