//! The in-memory disk keeps synced bytes and names, and loses the rest only as its policies say.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use drumlin_base::ErrorKind;
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, CreateOptions, FileKind, FileSystem, StrictMemFileSystem, WritableFile,
};

const LIMIT: u64 = 1 << 30;

fn path(name: &str) -> std::path::PathBuf {
    Path::new("/db").join(name)
}

/// A disk on which the directory `/db` is durable.
fn disk() -> StrictMemFileSystem {
    let disk = StrictMemFileSystem::new();
    disk.create_dir_all(Path::new("/db")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn create(disk: &StrictMemFileSystem, name: &str, kind: FileKind) -> Box<dyn WritableFile> {
    disk.create(&path(name), CreateOptions::new(kind)).unwrap()
}

/// A durable, closed file.
fn put(disk: &StrictMemFileSystem, name: &str, bytes: &[u8]) {
    let mut file = create(disk, name, FileKind::Other);
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
}

fn read(disk: &StrictMemFileSystem, name: &str) -> Option<Vec<u8>> {
    disk.read_file(&path(name), LIMIT).ok()
}

#[test]
fn what_was_synced_survives_every_policy_and_seed() {
    for policy in CrashPolicy::ALL {
        for seed in 0..50 {
            let disk = disk();
            put(&disk, "a", &[1; 3000]);
            let mut file = create(&disk, "000001.log", FileKind::Wal);
            file.append(&[2; 1000]).unwrap();
            file.sync().unwrap();
            disk.sync_dir(Path::new("/db")).unwrap();
            file.append(&[3; 5000]).unwrap();
            disk.rename(&path("a"), &path("b")).unwrap();
            let after = disk.crash(seed, policy);
            let log = read(&after, "000001.log").unwrap();
            assert!(log[..1000] == [2; 1000], "{policy:?} {seed}");
            let names = (read(&after, "a"), read(&after, "b"));
            let kept = Some(vec![1; 3000]);
            assert!(names == (kept.clone(), None) || names == (None, kept));
        }
    }
}

#[test]
fn what_was_not_synced_is_lost_and_a_kill_keeps_it() {
    let disk = disk();
    put(&disk, "a", b"old");
    let mut file = create(&disk, "a", FileKind::Other);
    file.append(b"new content").unwrap();
    put(&disk, "b", b"b");
    disk.remove(&path("b")).unwrap();
    let lost = disk.crash_image(1, CrashPolicy::KeepNothing);
    assert_eq!(read(&lost, "a").unwrap(), b"old");
    assert_eq!(read(&lost, "b").unwrap(), b"b");
    let killed = disk.crash_image(1, CrashPolicy::KeepAll);
    assert_eq!(read(&killed, "a").unwrap(), b"new content");
    assert_eq!(read(&killed, "b"), None);
    // A kill makes nothing durable: the power cut after it loses as much as without the kill.
    let lost = killed.crash(2, CrashPolicy::KeepNothing);
    assert_eq!(read(&lost, "a").unwrap(), b"old");
    assert_eq!(read(&lost, "b").unwrap(), b"b");
}

#[test]
fn a_name_is_durable_only_by_its_directory() {
    let disk = disk();
    let mut file = create(&disk, "a", FileKind::Other);
    file.append(b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(
        read(&disk.crash_image(1, CrashPolicy::KeepNothing), "a"),
        None
    );
    disk.sync_dir(Path::new("/db")).unwrap();
    let after = disk.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(read(&after, "a").unwrap(), b"x");
    let fresh = StrictMemFileSystem::new();
    fresh.create_dir_all(Path::new("/x/y")).unwrap();
    let after = fresh.crash(1, CrashPolicy::KeepNothing);
    assert!(!after.exists(Path::new("/x")).unwrap());
}

#[test]
fn a_rename_is_there_as_a_whole_or_not_at_all() {
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        let disk = disk();
        put(&disk, "CURRENT", b"1");
        put(&disk, "tmp", b"2");
        disk.rename(&path("tmp"), &path("CURRENT")).unwrap();
        let after = disk.crash(seed, CrashPolicy::RandomSectors { sector: 512 });
        let state = (read(&after, "CURRENT").unwrap(), read(&after, "tmp"));
        let old = (b"1".to_vec(), Some(b"2".to_vec()));
        let new = (b"2".to_vec(), None);
        assert!(state == old || state == new);
        seen.insert(state);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_prefix_in_time_never_keeps_the_later_without_the_earlier() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let disk = disk();
        let mut one = create(&disk, "1", FileKind::Other);
        let mut two = create(&disk, "2", FileKind::Other);
        disk.sync_dir(Path::new("/db")).unwrap();
        for n in 0..6_u8 {
            let file = if n % 2 == 0 { &mut one } else { &mut two };
            file.append(&[n]).unwrap();
        }
        let after = disk.crash(seed, CrashPolicy::PrefixInTime);
        let mut all = [read(&after, "1").unwrap(), read(&after, "2").unwrap()].concat();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..all.len() as u8), "{all:?}");
        seen.insert(all.len());
    }
    assert_eq!(seen.len(), 7);
}

/// Each byte after a crash is the old one, the new one or zero, as the policy allows, sectors stay
/// whole, and over the seeds every policy does lose and keep something.
#[test]
fn each_policy_leaves_only_what_it_names() {
    for policy in CrashPolicy::ALL {
        let (mut kept, mut lost) = (false, false);
        for seed in 0..60 {
            let disk = disk();
            let mut file = create(&disk, "f", FileKind::Other);
            file.append(&[1; 5000]).unwrap();
            file.sync().unwrap();
            disk.sync_dir(Path::new("/db")).unwrap();
            file.append(&[2; 20_000]).unwrap();
            file.append(&[3; 20_000]).unwrap();
            let after = read(&disk.crash(seed, policy), "f").unwrap();
            assert!((5000..=45_000).contains(&after.len()), "{policy:?}");
            assert!(after[..5000] == [1; 5000], "{policy:?} {seed}");
            let new = &after[5000..];
            let good = (0..new.len()).filter(|&at| new[at] == if at < 20_000 { 2 } else { 3 });
            let good = good.count();
            kept |= good > 0;
            lost |= good < 40_000;
            let zeros = new.iter().filter(|&&byte| byte == 0).count();
            match policy {
                CrashPolicy::KeepNothing | CrashPolicy::DataOnlyOldLength => {
                    assert!(new.is_empty());
                }
                CrashPolicy::KeepAll => assert_eq!(good, 40_000),
                CrashPolicy::PrefixInTime => assert_eq!(good, new.len()),
                CrashPolicy::LengthOnly => assert_eq!(zeros, 40_000),
                CrashPolicy::TornLastWrite => assert!(good >= 20_000 && good + zeros == 40_000),
                CrashPolicy::GarbageInUnsynced => {}
                CrashPolicy::RandomSectors { sector } => {
                    assert_eq!(good + zeros, new.len());
                    for part in after.chunks(sector as usize).filter(|part| part[0] != 1) {
                        assert!(part.iter().all(|&b| (b == 0) == (part[0] == 0)));
                    }
                }
            }
        }
        let keeps = !matches!(
            policy,
            CrashPolicy::KeepNothing | CrashPolicy::LengthOnly | CrashPolicy::DataOnlyOldLength
        );
        let loses = policy != CrashPolicy::KeepAll;
        assert_eq!((kept, lost), (keeps, loses), "{policy:?}");
    }
}

#[test]
fn the_same_seed_leaves_the_same() {
    for policy in CrashPolicy::ALL {
        let run = || {
            let disk = disk();
            for name in ["a", "b", "c"] {
                let mut file = create(&disk, name, FileKind::Table);
                file.append(&[7; 100_000]).unwrap();
            }
            disk.crash(99, policy).snapshot_files()
        };
        assert!(run() == run(), "{policy:?}");
    }
}

#[test]
fn a_log_shows_zeros_behind_it_until_it_is_closed() {
    let disk = disk();
    let options = CreateOptions {
        preallocate_bytes: 1 << 20,
        ..CreateOptions::new(FileKind::Wal)
    };
    let mut file = disk.create(&path("1.log"), options).unwrap();
    file.append(b"abc").unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    let after = disk.crash_image(1, CrashPolicy::KeepNothing);
    let bytes = read(&after, "1.log").unwrap();
    assert_eq!((bytes.len(), &bytes[..4]), (1 << 20, &b"abc\0"[..]));
    file.close().unwrap();
    assert_eq!(read(&disk, "1.log").unwrap(), b"abc");
    let mut file = disk.reuse(&path("1.log"), &path("2.log"), options).unwrap();
    file.append(b"z").unwrap();
    assert_eq!(read(&disk, "2.log").unwrap()[..4], *b"zbc\0");
    file.close().unwrap();
    assert_eq!(read(&disk, "2.log").unwrap(), b"z");
}

#[test]
fn a_failed_sync_marks_pages_clean() {
    let disk = disk();
    let mut file = create(&disk, "f", FileKind::Other);
    disk.sync_dir(Path::new("/db")).unwrap();
    file.append(b"lost").unwrap();
    disk.forget_unsynced(&path("f")).unwrap();
    file.append(b"kept").unwrap();
    file.sync().unwrap();
    disk.sync_file(&path("f")).unwrap();
    assert_eq!(read(&disk, "f").unwrap(), b"lostkept");
    let after = disk.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(read(&after, "f").unwrap(), b"\0\0\0\0kept");
}

#[test]
fn old_handles_fail_after_a_crash_and_locks_die() {
    let disk = disk();
    put(&disk, "a", b"a");
    let lock = disk.lock(&path("LOCK")).unwrap();
    assert_eq!(
        disk.lock(&path("LOCK")).unwrap_err().kind(),
        ErrorKind::Locked
    );
    let reader = disk.open(&path("a")).unwrap();
    let mut file = create(&disk, "b", FileKind::Wal);
    let syncer = file.syncer();
    let after = disk.crash(1, CrashPolicy::KeepAll);
    assert!(disk.open(&path("a")).is_err());
    assert!(disk.list(Path::new("/db")).is_err());
    assert!(reader.read_at(0, &mut [0]).is_err());
    assert!(file.append(b"x").is_err());
    assert!(file.sync().is_err());
    assert!(syncer.sync().is_err());
    assert!(file.close().is_err());
    let held = after.lock(&path("LOCK")).unwrap();
    drop(lock);
    assert!(after.lock(&path("LOCK")).is_err());
    drop(held);
    drop(after.lock(&path("LOCK")).unwrap());
}

#[test]
fn a_quota_is_a_full_disk_until_space_is_given_back() {
    let disk = disk();
    put(&disk, "a", &[0; 1000]);
    disk.set_quota(1500);
    assert_eq!(disk.free_space(Path::new("/db")).unwrap(), 500);
    let mut file = create(&disk, "b", FileKind::Other);
    file.append(&[0; 500]).unwrap();
    assert_eq!(file.append(&[0; 1]).unwrap_err().kind(), ErrorKind::NoSpace);
    disk.remove(&path("a")).unwrap();
    assert_eq!(disk.used_bytes(), 500);
    // The file is broken for good, the disk is not.
    assert_eq!(file.append(&[0; 1]).unwrap_err().kind(), ErrorKind::NoSpace);
    let mut file = create(&disk, "1.log", FileKind::Wal);
    file.append(&[0; 900]).unwrap();
    file.close().unwrap();
    assert_eq!(disk.used_bytes(), 1400);
}

#[test]
fn links_share_a_file_and_survive_as_one() {
    let disk = disk();
    put(&disk, "a", b"abc");
    disk.link(&path("a"), &path("b")).unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    assert_eq!(disk.used_bytes(), 3);
    let after = disk.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(after.used_bytes(), 3);
    after.truncate(&path("a"), 1).unwrap();
    assert_eq!(read(&after, "b").unwrap(), b"a");
    after.remove(&path("a")).unwrap();
    assert_eq!(after.used_bytes(), 1);
    after.remove(&path("b")).unwrap();
    assert_eq!(after.used_bytes(), 0);
}

#[test]
fn damage_reaches_memory_and_disk() {
    let disk = disk();
    put(&disk, "a", b"abcdef");
    disk.flip(&path("a"), 0, 1).unwrap();
    disk.overwrite(&path("a"), 2, b"XY").unwrap();
    disk.resize(&path("a"), 5).unwrap();
    assert_eq!(read(&disk, "a").unwrap(), b"cbXYe");
    let kind = disk.flip(&path("a"), 5, 0).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::InvalidArgument);
    let after = disk.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(read(&after, "a").unwrap(), b"cbXYe");
}

/// The tree against a flat map of paths, through random renames, removals and kills.
#[test]
fn names_behave_as_a_map_of_paths() {
    let mut rng = Rng::new(7);
    let mut disk = disk();
    let mut twin = std::collections::BTreeMap::new();
    for step in 0..2000_u32 {
        let one = rng.below(12).to_string();
        let two = rng.below(12).to_string();
        match rng.below(8) {
            0..3 => {
                put(&disk, &one, &step.to_le_bytes());
                twin.insert(path(&one), step.to_le_bytes().to_vec());
            }
            3..5 => {
                let moved = twin.remove(&path(&one));
                let done = disk.rename(&path(&one), &path(&two));
                assert_eq!(done.is_ok(), moved.is_some());
                twin.extend(moved.map(|bytes| (path(&two), bytes)));
            }
            5..7 => {
                let gone = twin.remove(&path(&one));
                assert_eq!(disk.remove(&path(&one)).is_ok(), gone.is_some());
            }
            _ => disk = disk.crash(u64::from(step), CrashPolicy::KeepAll),
        }
        assert_eq!(disk.snapshot_files(), twin);
        let bytes: usize = twin.values().map(Vec::len).sum();
        assert_eq!(disk.used_bytes(), bytes as u64);
    }
}
