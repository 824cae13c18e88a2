//! The file system of the operating system keeps the contract of the traits.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, ErrorKind};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, PosixFileSystem, WritableFile};

const KINDS: [FileKind; 5] = [
    FileKind::Wal,
    FileKind::Manifest,
    FileKind::Table,
    FileKind::Blob,
    FileKind::Other,
];

fn files() -> PosixFileSystem {
    PosixFileSystem::new()
}

fn read(path: &Path) -> Vec<u8> {
    files().read_file(path, 1 << 30).unwrap()
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// Appends pieces of every size up to past the window and buffer sizes, and returns the bytes.
fn append_randomly(file: &mut dyn WritableFile, rng: &mut Rng, total: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let before = file.len();
    while all.len() < total {
        let max = [16, 300, 5_000, 400_000, 6 << 20][rng.below(5) as usize];
        let len = rng.below(max) as usize;
        let piece = random_bytes(rng, len);
        file.append(&piece).unwrap();
        all.extend_from_slice(&piece);
        assert_eq!(file.len(), before + all.len() as u64);
    }
    all
}

#[test]
fn every_kind_of_file_reads_back_what_was_appended() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(1);
    for kind in KINDS {
        for preallocate_bytes in [0, 1, 100_000, 5 << 20] {
            let path = dir.path().join("file");
            let options = CreateOptions {
                preallocate_bytes,
                ..CreateOptions::new(kind)
            };
            let _ = std::fs::remove_file(&path);
            let mut file = files().create(&path, options).unwrap();
            let syncer = file.syncer();
            let mut all = append_randomly(file.as_mut(), &mut rng, 3 << 20);
            syncer.sync().unwrap();
            file.sync().unwrap();
            assert_eq!(read(&path).get(..all.len()), Some(&all[..]), "{kind:?}");
            all.extend(append_randomly(file.as_mut(), &mut rng, 1 << 20));
            file.close().unwrap();
            assert!(read(&path) == all, "{kind:?} {preallocate_bytes}");
            syncer.sync().unwrap();
        }
    }
}

#[test]
fn a_log_is_visible_to_others_without_sync_and_its_tail_is_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000001.log");
    let mut file = files()
        .create(&path, CreateOptions::new(FileKind::Wal))
        .unwrap();
    file.append(b"hello").unwrap();
    let bytes = read(&path);
    assert_eq!(bytes.get(..5), Some(&b"hello"[..]));
    assert!(bytes[5..].iter().all(|&byte| byte == 0));
    file.close().unwrap();
    assert_eq!(read(&path), b"hello");
}

/// Not a contract by itself: the body of the child process of the next test.
#[test]
fn child_appends_and_is_killed() {
    let Some(dir) = std::env::var_os("DRUMLIN_FS_CHILD_DIR") else {
        return;
    };
    let path = PathBuf::from(dir).join("000001.log");
    let mut file = files()
        .create(&path, CreateOptions::new(FileKind::Wal))
        .unwrap();
    for n in 0_u32..300_000 {
        file.append(&n.to_le_bytes()).unwrap();
        file.append(&[7; 17]).unwrap();
    }
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

#[test]
fn appends_to_a_log_outlive_a_killed_process() {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_appends_and_is_killed"])
        .env("DRUMLIN_FS_CHILD_DIR", dir.path())
        .status()
        .unwrap();
    assert!(!status.success());
    let bytes = read(&dir.path().join("000001.log"));
    for (n, record) in bytes.chunks(21).take(300_000).enumerate() {
        assert_eq!(record[..4], (n as u32).to_le_bytes());
        assert_eq!(record[4..], [7; 17]);
    }
    assert!(bytes[300_000 * 21..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_reused_log_keeps_its_old_tail_until_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("1.log"), dir.path().join("2.log"));
    for kind in KINDS {
        let mut file = files().create(&old, CreateOptions::new(kind)).unwrap();
        file.append(&[b'a'; 10_000]).unwrap();
        file.close().unwrap();
        let mut file = files().reuse(&old, &new, CreateOptions::new(kind)).unwrap();
        assert!(!files().exists(&old).unwrap());
        assert!(file.is_empty());
        file.append(b"bbb").unwrap();
        file.sync().unwrap();
        assert_eq!(read(&new)[..5], *b"bbbaa");
        file.close().unwrap();
        assert_eq!(read(&new), b"bbb");
    }
    let missing = files().reuse(&old, &new, CreateOptions::new(FileKind::Wal));
    assert!(missing.unwrap_err().is_not_found());
    assert_eq!(read(&new), b"bbb");
}

#[test]
fn a_file_with_a_second_name_is_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let memory = drumlin_fs::StrictMemFileSystem::new();
    memory.create_dir_all(dir.path()).unwrap();
    let systems: [&dyn FileSystem; 2] = [&files(), &memory];
    let names = ["1", "2", "3"].map(|name| dir.path().join(name));
    for files in systems {
        let options = CreateOptions::new(FileKind::Wal);
        let mut file = files.create(&names[0], options).unwrap();
        file.append(b"kept").unwrap();
        file.close().unwrap();
        files.link(&names[0], &names[1]).unwrap();
        let error = files.reuse(&names[0], &names[2], options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert_eq!(files.read_file(&names[1], 10).unwrap(), b"kept");
        files.remove(&names[1]).unwrap();
        files.reuse(&names[0], &names[2], options).unwrap();
    }
}

#[test]
fn a_table_that_somebody_has_open_is_not_reused() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (old, new) = (dir.path().join("1.sst"), dir.path().join("2.sst"));
    std::fs::write(&old, b"kept").unwrap();
    let options = CreateOptions::new(FileKind::Table);
    let reader = files().open(&old).unwrap();
    let error = files().reuse(&old, &new, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let mut bytes = [0; 4];
    reader.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"kept");
    drop(reader);
    files().reuse(&old, &new, options).unwrap();
    assert!(!old.exists());
}

#[test]
fn a_table_of_another_user_is_not_reused() {
    // SAFETY: a question without arguments.
    if unsafe { libc::geteuid() } != 0 {
        return; // only root can become another user
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    std::fs::write(&path, b"bytes of somebody who reads them").unwrap();
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&path, open_to_all).unwrap();
    let reader = files().open(&path).unwrap();
    let (old, new) = (path.clone(), dir.path().join("new"));
    let as_nobody = std::thread::spawn(move || {
        // SAFETY: the system call, and not the library's function, changes this thread alone.
        let status = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        assert_eq!(status, 0);
        let options = CreateOptions::new(FileKind::Table);
        files().reuse(&old, &new, options).map(drop).unwrap_err()
    });
    let error = as_nobody.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert_eq!(reader.size(), 32);
    assert_eq!(read(&path), b"bytes of somebody who reads them");
}

#[test]
fn what_a_symbolic_link_leads_to_is_neither_reused_nor_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("file"), dir.path().join("link"));
    std::fs::write(&file, b"bytes").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(files().info(&link).unwrap().is_symlink);
    assert!(!files().info(&file).unwrap().is_symlink);
    let new = dir.path().join("new");
    for kind in [FileKind::Table, FileKind::Wal] {
        let error = files().reuse(&link, &new, CreateOptions::new(kind));
        assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::NotSupported);
    }
    files().truncate(&link, 0).unwrap_err();
    assert_eq!(read(&file), b"bytes");
    // A second name is the file's, and not the link's.
    files().link(&link, &new).unwrap();
    files().remove(&file).unwrap();
    assert_eq!(read(&new), b"bytes");
}

#[test]
fn files_with_numbers_are_never_made_over_others() {
    let dir = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let path = dir.path().join(format!("{kind:?}"));
        std::fs::write(&path, b"somebody else's").unwrap();
        let made = files().create(&path, CreateOptions::new(kind)).map(drop);
        assert_eq!(made.is_err(), kind.is_made_once(), "{kind:?}");
        assert_eq!(read(&path).is_empty(), !kind.is_made_once());
    }
    assert!(!files().create_dir(dir.path()).unwrap());
    assert!(files().create_dir(&dir.path().join("new")).unwrap());
}

#[test]
fn closing_gives_reserved_blocks_back() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let path = dir.path().join("file");
        let options = CreateOptions {
            preallocate_bytes: 32 << 20,
            ..CreateOptions::new(kind)
        };
        let _ = std::fs::remove_file(&path);
        let mut file = files().create(&path, options).unwrap();
        file.append(b"x").unwrap();
        file.close().unwrap();
        let facts = std::fs::metadata(&path).unwrap();
        assert_eq!(facts.len(), 1);
        assert!(facts.blocks() * 512 <= 64 << 10, "{kind:?}: {facts:?}");
    }
}

#[test]
fn a_lock_excludes_this_process_and_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let lock = files().lock(&path).unwrap();
    let error = files().lock(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let holder = format!("held by process {}", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    drop(lock);
    drop(files().lock(&path).unwrap());
}

/// Not a contract by itself: the body of the child process of the next test. The child exits with
/// success if it is refused and told of the right holder.
#[test]
fn child_is_refused_the_lock() {
    let Some(dir) = std::env::var_os("DRUMLIN_FS_LOCK_DIR") else {
        return;
    };
    let path = PathBuf::from(dir).join("LOCK");
    let error = files().lock(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let parent = rustix::process::getppid().unwrap();
    let holder = format!("held by process {}", parent.as_raw_nonzero());
    assert!(error.to_string().contains(&holder), "{error}");
    let classic = rustix::fs::fcntl_lock(
        std::fs::File::options().write(true).open(&path).unwrap(),
        rustix::fs::FlockOperation::NonBlockingLockExclusive,
    );
    assert!(
        classic.is_err(),
        "a classic record lock must be refused too"
    );
}

#[test]
fn a_lock_excludes_other_processes_and_their_classic_locks() {
    let dir = tempfile::tempdir().unwrap();
    let lock = files().lock(&dir.path().join("LOCK")).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_is_refused_the_lock"])
        .env("DRUMLIN_FS_LOCK_DIR", dir.path())
        .status()
        .unwrap();
    assert!(status.success());
    drop(lock);
}

#[test]
fn errors_have_the_kind_a_caller_branches_on() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let kinds: Vec<Error> = vec![
        files().open(&missing).unwrap_err(),
        files().info(&missing).unwrap_err(),
        files().remove(&missing).unwrap_err(),
        files().list(&missing).unwrap_err(),
        files().sync_file(&missing).unwrap_err(),
        files().truncate(&missing, 1).unwrap_err(),
        files().rename(&missing, dir.path()).unwrap_err(),
        files().remove_dir(&missing).unwrap_err(),
    ];
    for error in kinds {
        assert!(error.is_not_found(), "{error:?}");
    }
    let error = files().open(dir.path()).unwrap_err();
    assert_eq!((error.kind(), error.os_code()), (ErrorKind::Io, Some(21)));
}

#[test]
fn a_full_disk_is_an_error_and_breaks_the_file() {
    // A full device stands for a full disk; the error comes from the write call.
    let mut file = files()
        .create(
            Path::new("/dev/full"),
            CreateOptions::new(FileKind::Manifest),
        )
        .unwrap();
    let first = file.append(b"x").unwrap_err();
    assert_eq!(first.kind(), ErrorKind::NoSpace);
    assert_eq!(file.append(b"x").unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.close().unwrap_err().kind(), ErrorKind::NoSpace);
}

#[test]
fn directories_names_and_links_work() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b");
    files().create_dir_all(&deep).unwrap();
    files().create_dir_all(&deep).unwrap();
    let (one, two) = (deep.join("one"), deep.join("two"));
    let mut file = files()
        .create(&one, CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(b"12345").unwrap();
    file.close().unwrap();
    files().link(&one, &two).unwrap();
    files().truncate(&one, 3).unwrap();
    files().sync_file(&one).unwrap();
    files().sync_dir(&deep).unwrap();
    assert_eq!(read(&two), b"123");
    assert!(files().info(&deep).unwrap().is_dir);
    assert_eq!(files().info(&two).unwrap().size, 3);
    files().rename(&one, &deep.join("three")).unwrap();
    let mut names = files().list(&deep).unwrap();
    names.sort();
    assert_eq!(names, [PathBuf::from("three"), PathBuf::from("two")]);
    files().remove(&two).unwrap();
    files().remove(&deep.join("three")).unwrap();
    files().remove_dir(&deep).unwrap();
    assert!(files().free_space(dir.path()).unwrap() > 0);
}

#[test]
fn reads_end_at_the_end_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, b"0123456789").unwrap();
    let file = files().open(&path).unwrap();
    assert_eq!(file.size(), 10);
    file.will_need(0, 10);
    let mut buffer = [b'x'; 6];
    assert_eq!(file.read_at(2, &mut buffer).unwrap(), 6);
    assert_eq!(&buffer, b"234567");
    assert_eq!(file.read_at(8, &mut buffer).unwrap(), 2);
    assert_eq!(file.read_at(10, &mut buffer).unwrap(), 0);
    assert_eq!(file.read_at(99, &mut buffer).unwrap(), 0);
    assert_eq!(file.read_at(0, &mut []).unwrap(), 0);
}

/// On a disk it is a copy, on tmpfs a mapping; neither minds that the name is removed.
/// Goal: a yes of the page cache is true. Method: bytes that are not there cannot be in it; bytes just read are, where the
/// file system tells at all.
#[test]
fn only_bytes_of_the_file_are_said_to_be_in_the_page_cache() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, vec![7; 10_000]).unwrap();
    let file = files().open(&path).unwrap();
    let mut all = vec![0; 10_000];
    assert_eq!(file.read_at(0, &mut all).unwrap(), all.len());
    assert!(!file.is_in_page_cache(9_999, 2), "past the end");
    assert!(!file.is_in_page_cache(u64::MAX - 1, 1));
    let tells = file.is_in_page_cache(0, 1);
    assert_eq!(file.is_in_page_cache(0, 10_000), tells);
    assert_eq!(file.is_in_page_cache(5_000, 1), tells);
}

#[test]
fn a_resident_file_outlives_its_name() {
    let mut rng = Rng::new(7);
    let on_disk = tempfile::tempdir().unwrap();
    let in_memory = tempfile::tempdir_in("/dev/shm").ok();
    for dir in [Some(&on_disk), in_memory.as_ref()].into_iter().flatten() {
        for len in [0, 1, 4096, 100_000, (4 << 20) + 5] {
            let path = dir.path().join("file");
            let mut file = files()
                .create(&path, CreateOptions::new(FileKind::Table))
                .unwrap();
            let bytes = random_bytes(&mut rng, len);
            file.append(&bytes).unwrap();
            file.sync().unwrap();
            file.close().unwrap();
            let resident = files().open(&path).unwrap().resident().unwrap();
            files().remove(&path).unwrap();
            assert!(resident.bytes() == bytes, "{len} bytes");
            let pin = resident.pin(len / 2..len).unwrap();
            drop(resident);
            assert!(*pin == bytes[len / 2..], "{len} bytes");
        }
    }
}

/// Bytes of `path` that are in the page cache, as the kernel counts them.
fn cached_bytes(path: &Path) -> usize {
    let file = std::fs::File::open(path).unwrap();
    let size = file.metadata().unwrap().len() as usize;
    // SAFETY: the file is this test's own and is not cut while the mapping lives.
    let map = unsafe { memmap2::Mmap::map(&file) };
    let map = map.unwrap();
    let mut pages = vec![0_u8; size.div_ceil(4096)];
    let (begin, out) = (map.as_ptr().cast_mut().cast(), pages.as_mut_ptr());
    // SAFETY: the range is mapped, and the vector has a byte for each of its pages.
    let status = unsafe { libc::mincore(begin, size, out) };
    assert_eq!(status, 0);
    pages.iter().filter(|page| **page & 1 == 1).count() * 4096
}

#[test]
fn direct_files_hold_what_was_written_and_stay_out_of_the_page_cache() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("000001.sst");
    let mut rng = Rng::new(5);
    for len in [0, 1, 4095, 4096, 4097, 1 << 20, 3_333_333, (4 << 20) + 8192] {
        let options = CreateOptions {
            direct: true,
            ..CreateOptions::new(FileKind::Table)
        };
        let _ = std::fs::remove_file(&path);
        let mut file = files().create(&path, options).unwrap();
        let takes_direct = files().takes_direct(&path).unwrap();
        let mut all = vec![0; len];
        rng.fill(&mut all);
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(rng.below(400_000) as usize));
            file.append(now).unwrap();
            rest = later;
        }
        assert_eq!(file.len(), len as u64);
        file.sync().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), len as u64);
        // Bytes after a sync are written too, though not past the cache any more.
        file.append(b"more").unwrap();
        all.extend(b"more");
        file.close().unwrap();

        let direct = files().open_direct(&path).unwrap();
        assert_eq!(direct.size(), all.len() as u64);
        for _ in 0..50 {
            let at = rng.below(all.len() as u64 + 10) as usize;
            let mut out = vec![0; rng.below(2 << 20) as usize];
            let n = direct.read_at(at as u64, &mut out).unwrap();
            let expected = all.get(at..).unwrap_or_default();
            let expected = &expected[..expected.len().min(out.len())];
            assert!(out[..n] == *expected, "{len} at {at}");
        }
        if takes_direct && len >= 1 << 20 {
            let cached = cached_bytes(&path);
            assert!(cached <= 8192, "{cached} of {len} bytes are cached");
        }
        assert!(read(&path) == all, "{len}");
    }
}

#[test]
fn a_recycled_file_written_directly_ends_where_its_new_content_does() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (old, new) = (dir.path().join("1.sst"), dir.path().join("2.sst"));
    std::fs::write(&old, vec![1; 3 << 20]).unwrap();
    let options = CreateOptions {
        direct: true,
        ..CreateOptions::new(FileKind::Table)
    };
    let mut file = files().reuse(&old, &new, options).unwrap();
    file.append(&vec![2; (1 << 20) + 5000]).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    assert!(!old.exists());
    assert!(read(&new) == vec![2; (1 << 20) + 5000]);
}
