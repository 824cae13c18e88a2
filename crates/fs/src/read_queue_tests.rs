//! Goal: reads in a queue give the results of the same reads one by one, fail each for itself, and work
//! on a thread that is ending. Method: random reads of two files beside their bytes in memory.

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::Result;
use drumlin_base::rng::Rng;

use crate::file_system::RandomAccessFile;
use crate::posix_file::PosixReader;
use crate::read_queue::ReadQueue;

/// A file whose bytes tell their place, longer than one queue reads.
fn file(dir: &Path, name: &str, len: usize) -> (PosixReader, Vec<u8>) {
    let mut bytes = vec![0; len];
    Rng::new(len as u64).fill(&mut bytes);
    let path = dir.join(name);
    std::fs::write(&path, &bytes).expect("room for a small file");
    let file = File::open(&path).expect("it was just written");
    (PosixReader::new(file, &path, len as u64), bytes)
}

#[test]
fn reads_of_many_files_give_what_reading_one_by_one_gives() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = [file(dir.path(), "a", 100_000), file(dir.path(), "b", 4097)];
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let count = rng.below(150) as usize;
        let wanted: Vec<(usize, u64, usize)> = (0..count)
            .map(|_| {
                (
                    rng.below(2) as usize,
                    rng.below(110_000),
                    rng.below(5000) as usize,
                )
            })
            .collect();
        let mut buffers: Vec<Vec<u8>> = wanted.iter().map(|want| vec![0; want.2]).collect();
        let mut queue = ReadQueue::with_capacity(count);
        for (want, buffer) in wanted.iter().zip(&mut buffers) {
            files[want.0].0.queue_read(want.1, buffer, &mut queue);
        }
        let outcomes = queue.run();
        assert_eq!(outcomes.len(), count);
        for ((want, buffer), outcome) in wanted.iter().zip(&buffers).zip(outcomes) {
            let rest = files[want.0].1.get(want.1 as usize..).unwrap_or_default();
            let expected = &rest[..rest.len().min(want.2)];
            let read = outcome.expect("the file is sound");
            assert_eq!(&buffer[..read], expected, "seed {seed}");
        }
    }
}

#[test]
fn a_read_that_fails_fails_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let (sound, bytes) = file(dir.path(), "a", 5000);
    // A descriptor of a directory opens, and cannot be read.
    let directory = File::open(dir.path()).expect("a directory opens");
    let broken = PosixReader::new(directory, dir.path(), 0);
    let mut buffers = vec![vec![0; 100]; 3];
    let mut queue = ReadQueue::default();
    for (file, buffer) in [&sound, &broken, &sound].into_iter().zip(&mut buffers) {
        file.queue_read(7, buffer, &mut queue);
    }
    let outcomes = queue.run();
    let read: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(read, [true, false, true]);
    assert_eq!(
        (&buffers[0], &buffers[2]),
        (&bytes[7..107].to_vec(), &bytes[7..107].to_vec())
    );
}

/// Reads together when it is dropped.
struct Last(PosixReader, Vec<u8>);

impl Last {
    fn read(&self) -> bool {
        let mut buffers = vec![vec![0; 100]; 2];
        let mut queue = ReadQueue::default();
        for buffer in &mut buffers {
            self.0.queue_read(7, buffer, &mut queue);
        }
        let sound = queue.run().iter().all(Result::is_ok);
        sound && buffers.iter().all(|buffer| buffer == &self.1[7..107])
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        SEEN.store(self.read(), Ordering::Relaxed);
    }
}

static SEEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[test]
fn a_thread_may_read_while_it_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let (reader, bytes) = file(dir.path(), "a", 5000);
    let thread = std::thread::spawn(move || {
        // Made before the ring, so that the ring goes first.
        let last = Last(reader, bytes);
        LAST.with_borrow_mut(|place| {
            assert!(place.insert(last).read());
        });
    });
    assert!(thread.join().is_ok());
    assert!(SEEN.load(Ordering::Relaxed));
}
