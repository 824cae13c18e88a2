//! A bucket as a file system: what is written is read, in how many requests, and what it cannot do it says.

use std::path::{Path, PathBuf};

use drumlin::ErrorKind;
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, FileKind, FileSystem};
use object_store::memory::InMemory;

use crate::faulty::{Fault, Faulty};
use crate::support::*;

const OTHER: CreateOptions = CreateOptions {
    kind: FileKind::Other,
    preallocate_bytes: 0,
    direct: false,
    expected_bytes: 0,
};

fn path(name: &str) -> PathBuf {
    Path::new(URL).join(name)
}

fn write(files: &dyn FileSystem, name: &str, bytes: &[u8]) -> drumlin::Result<()> {
    let mut file = files.create(&path(name), OTHER)?;
    // Pieces that fit no part.
    for piece in bytes.chunks(3_000_001) {
        file.append(piece)?;
    }
    assert_eq!(file.len(), bytes.len() as u64);
    file.sync()?;
    file.close()
}

fn read(files: &dyn FileSystem, name: &str) -> drumlin::Result<Vec<u8>> {
    let file = files.open(&path(name))?;
    let mut bytes = vec![0; usize::try_from(file.size()).unwrap()];
    for (index, piece) in bytes.chunks_mut(1_000_003).enumerate() {
        let read = file.read_at(index as u64 * 1_000_003, piece)?;
        assert_eq!(read, piece.len());
    }
    assert_eq!(file.read_at(file.size(), &mut [0])?, 0);
    Ok(bytes)
}

fn bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(len as u64).fill(&mut bytes);
    bytes
}

#[test]
fn what_is_written_is_read_in_the_fewest_requests() {
    const PART: usize = 8 << 20;
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    for (len, sent, got) in [
        (0, 1, 1),
        (1, 1, 2),
        (PART, 1, 2),
        (PART + 1, 4, 3),
        (6 * PART + 5, 9, 8),
    ] {
        let bytes = bytes(len);
        write(&files, "file", &bytes).unwrap();
        let requests = bucket.take_requests();
        assert_eq!(requests.len(), sent, "{requests:?}");
        assert!(read(&files, "file").unwrap() == bytes, "{len}");
        let requests = bucket.take_requests();
        assert_eq!(requests.len(), got, "{requests:?}");
        assert_eq!(files.info(&path("file")).unwrap().size, len as u64);
        bucket.take_requests();
    }
    // Anywhere, back and forth.
    let (file, want) = (files.open(&path("file")).unwrap(), bytes(6 * PART + 5));
    let mut rng = Rng::new(7);
    for _ in 0..40 {
        let at = usize::try_from(rng.below(want.len() as u64)).unwrap();
        let mut found = vec![0; 2_000_000];
        let read = file.read_at(at as u64, &mut found).unwrap();
        assert_eq!(read, found.len().min(want.len() - at));
        assert!(found[..read] == want[at..at + read], "{at}");
    }
}

#[test]
fn a_file_that_fails_leaves_nothing_under_its_name() {
    let len = 5 * (8 << 20) + 1;
    // One that begins, six parts, one that ends; and none.
    for index in 0..=8 {
        let bucket = Faulty::new(InMemory::new());
        let files = files(&bucket);
        if index < 8 {
            bucket.fail(index, Fault::Lost);
        }
        let outcome = write(&files, "large", &bytes(len));
        let struck = bucket.struck();
        assert_eq!(outcome.is_ok(), struck.is_none(), "{index}");
        assert_eq!(files.exists(&path("large")).unwrap(), struck.is_none());
        let requests = bucket.take_requests();
        let begun = requests.iter().any(|it| it.starts_with("part"));
        let given_up = requests.iter().any(|it| it.starts_with("abort"));
        assert_eq!(given_up, begun && struck.is_some(), "{requests:?}");
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(error.file(), Some(&*path("large")));
        }
    }
    // One that its writer forgets.
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    let mut file = files.create(&path("large"), OTHER).unwrap();
    file.append(&bytes(len)).unwrap();
    drop(file);
    assert!(!files.exists(&path("large")).unwrap());
    assert!(
        bucket
            .take_requests()
            .iter()
            .any(|it| it.starts_with("abort"))
    );
}

#[test]
fn a_short_answer_is_no_damage() {
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    write(&files, "file", &bytes(1000)).unwrap();
    bucket.take_requests();
    bucket.fail(1, Fault::Short);
    let error = read(&files, "file").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(
        error.to_string().contains("999 bytes in place of 1000"),
        "{error}"
    );
    assert_eq!(error.file(), Some(&*path("file")));
    assert_eq!(read(&files, "file").unwrap().len(), 1000);
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_not_taken_for_the_old() {
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    let old = bytes(40 << 20);
    write(&files, "file", &old).unwrap();
    let file = files.open(&path("file")).unwrap();
    let mut piece = vec![0; 1000];
    file.read_at(0, &mut piece).unwrap();
    write(&files, "file", &bytes((40 << 20) + 1)).unwrap();
    let error = file.read_at(39 << 20, &mut piece).unwrap_err();
    assert!(
        error.to_string().contains("replaced while it was read"),
        "{error}"
    );
}

#[test]
fn directories_are_there_while_something_is_in_them() {
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    assert!(files.list(&path("dir")).unwrap_err().is_not_found());
    assert!(files.create_dir(&path("dir")).unwrap());
    assert_eq!(
        files.list(&path("dir")).unwrap(),
        [""; 0].map(PathBuf::from)
    );
    write(&files, "dir/a", b"1").unwrap();
    write(&files, "dir/below/b", b"22").unwrap();
    let mut found = files.list_with_infos(&path("dir")).unwrap();
    found.sort_by(|left, right| left.0.cmp(&right.0));
    let found = found
        .iter()
        .map(|(name, info)| (name.to_str().unwrap(), info.size, info.is_dir));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [("a", 1, false), ("below", 0, true)]
    );
    files.rename(&path("dir/a"), &path("dir/c")).unwrap();
    assert_eq!(files.read_file(&path("dir/c"), 1).unwrap(), b"1");
    assert!(
        files
            .read_file(&path("dir/a"), 1)
            .unwrap_err()
            .is_not_found()
    );
    let error = files.read_file(&path("dir/below/b"), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    files.remove(&path("dir/c")).unwrap();
    files.remove(&path("dir/below/b")).unwrap();
    assert!(files.list(&path("elsewhere")).unwrap_err().is_not_found());
}

#[test]
fn what_it_cannot_do_it_says() {
    let bucket = Faulty::new(InMemory::new());
    let files = files(&bucket);
    for outcome in [
        files.link(&path("a"), &path("b")),
        files.truncate(&path("a"), 0),
        files.reuse(&path("a"), &path("b"), OTHER).map(|_| ()),
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotSupported);
    }
    for elsewhere in [
        "/data/store",
        "s3://bucket/some",
        "s3://other/some/place/x",
        "s3://bucket/some/place/../x",
    ] {
        let error = files.open(Path::new(elsewhere)).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidArgument,
            "{elsewhere}: {error}"
        );
    }
    let mut file = files.create(&path("a"), OTHER).unwrap();
    file.sync().unwrap();
    assert_eq!(
        file.append(b"more").unwrap_err().kind(),
        ErrorKind::NotSupported
    );
    assert_eq!(bucket.take_requests(), [format!("put {PREFIX}/a")]);
}
