//! Blob files worth emptying, and the tables that stand in the way.
//!
//! A blob file goes when nothing refers to it, so what is alive in it must be moved to another file
//! before the garbage beside it is given back. Moving costs one byte written for each byte alive; a
//! file that is mostly garbage gives back much for little. So files are emptied in the order of
//! their share of garbage, and only while all files together hold more than [`GARBAGE_MAX`]: then
//! until they would hold no more than [`GARBAGE_AFTER`]. The tables rewritten on the way are small
//! beside the blobs, so rounds are too: the files of a round are all freed at its end.
//!
//! Bound: with a third of garbage, the blob files hold at most half again what tables refer to. On
//! top comes what this cannot know or has not done yet: blobs that entries of upper levels hide
//! (known once those are compacted), and the blobs alive in the files being emptied, which are in
//! two files until the last of them is moved.
//!
//! Everything here is a function of a version. Moving blobs from a chosen file to a new one makes
//! the file's share of garbage higher and leaves what the other files hold as it was, so carrying a
//! choice out never chooses more files, and ends.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::FileMeta;
use super::blob_file::{BlobFile, BlobTotals};

/// The share of garbage in all blob bytes above which files are emptied.
pub const GARBAGE_MAX: (u64, u64) = (1, 3);
/// The share of garbage that is aimed for then.
pub const GARBAGE_AFTER: (u64, u64) = (3, 10);

/// The collection due for the garbage of a version.
#[derive(Debug, Default)]
pub struct Collection {
    /// The blob files to be emptied, ascending.
    pub emptied: Vec<u64>,
    /// The tables that may refer to one of them, with their levels, deepest first.
    pub tables: Vec<(usize, Arc<FileMeta>)>,
    /// Bytes alive in the files to be emptied, still to be moved.
    pub live_bytes: u64,
    /// The share of garbage over [`GARBAGE_MAX`]; more than 1.
    pub urgency: f64,
}

impl Collection {
    /// The collection due in a version of these blob files and tables; `None` while it has no more garbage than
    /// allowed.
    pub fn of<'a>(
        totals: &BlobTotals,
        blobs: &BTreeMap<u64, BlobFile>,
        files: impl Iterator<Item = (usize, &'a Arc<FileMeta>)>,
    ) -> Option<Self> {
        let (all, garbage) = (totals.blob_bytes, totals.garbage_bytes);
        if !exceeds(garbage, all, GARBAGE_MAX) {
            return None;
        }
        let chosen = choose(blobs.values(), all, garbage);
        let mut emptied: Vec<u64> = chosen.iter().map(|file| file.addition.number).collect();
        emptied.sort_unstable();
        let refers = |file: &FileMeta| emptied.iter().any(|&number| file.may_refer_to(number));
        let mut tables: Vec<_> = files
            .filter(|(_, file)| refers(file))
            .map(|(level, file)| (level, Arc::clone(file)))
            .collect();
        tables.reverse();
        let (numerator, denominator) = GARBAGE_MAX;
        let allowed = all as f64 * numerator as f64 / denominator as f64;
        Some(Self {
            live_bytes: chosen.iter().map(|file| file.live_bytes()).sum(),
            emptied,
            tables,
            urgency: garbage as f64 / allowed.max(1.0),
        })
    }
}

/// The files with the highest shares of garbage, as many as it takes.
fn choose<'a>(
    files: impl Iterator<Item = &'a BlobFile>,
    mut all: u64,
    mut garbage: u64,
) -> Vec<&'a BlobFile> {
    let mut files: Vec<_> = files.filter(|file| file.garbage_bytes > 0).collect();
    files.sort_by_key(|file| {
        let share = u128::from(file.garbage_bytes) << 32;
        let share = share / u128::from(file.addition.blob_bytes.max(1));
        (Reverse(share), file.addition.number)
    });
    let mut chosen = Vec::new();
    for file in files {
        if !exceeds(garbage, all, GARBAGE_AFTER) {
            break;
        }
        garbage = garbage.saturating_sub(file.garbage_bytes);
        all = all.saturating_sub(file.garbage_bytes);
        chosen.push(file);
    }
    chosen
}

/// Bytes of garbage past [`GARBAGE_MAX`]: the backlog of collection.
pub fn excess_garbage(totals: &BlobTotals) -> u64 {
    let (numerator, denominator) = GARBAGE_MAX;
    let allowed = u128::from(totals.blob_bytes) * u128::from(numerator) / u128::from(denominator);
    totals
        .garbage_bytes
        .saturating_sub(u64::try_from(allowed).unwrap_or(u64::MAX))
}

/// Whether `part` is more than `share` of `whole`.
fn exceeds(part: u64, whole: u64, (numerator, denominator): (u64, u64)) -> bool {
    u128::from(part) * u128::from(denominator) > u128::from(whole) * u128::from(numerator)
}

#[cfg(test)]
mod tests {
    use drumlin_base::key::internal_key;
    use drumlin_base::limits::LEVELS;
    use drumlin_base::rng::Rng;
    use drumlin_base::{KeyOrder, ValueKind};

    use super::super::{BlobFileAddition, NewFile, Version};
    use super::*;

    fn collection(version: Version) -> Option<Collection> {
        Collection::of(&version.blob_totals(), version.blobs(), version.files())
    }

    /// Files 10, 11, .. with as many bytes and as much garbage as given.
    fn blobs(files: &[(u64, u64)]) -> BTreeMap<u64, BlobFile> {
        let file = |(number, &(blob_bytes, garbage_bytes)): (u64, &(u64, u64))| {
            let addition = BlobFileAddition {
                number,
                blob_count: blob_bytes,
                blob_bytes,
                ..BlobFileAddition::default()
            };
            let file = BlobFile {
                addition: Arc::new(addition),
                garbage_count: garbage_bytes,
                garbage_bytes,
            };
            (number, file)
        };
        (10..).zip(files).map(file).collect()
    }

    fn table(number: u64, oldest: u64, files: Option<&[u64]>) -> Arc<FileMeta> {
        let key = internal_key(&number.to_be_bytes(), 1, ValueKind::Value);
        Arc::new(FileMeta::new(NewFile {
            number,
            smallest: key.clone(),
            largest: key,
            oldest_blob_file: oldest,
            blob_files: files.map(Arc::from),
            ..NewFile::default()
        }))
    }

    fn version(files: &[(u64, u64)], tables: Vec<(usize, Arc<FileMeta>)>) -> Version {
        let mut levels: [Vec<Arc<FileMeta>>; LEVELS] = Default::default();
        for (level, table) in tables {
            levels[level].push(table);
        }
        Version::new(&KeyOrder::Bytewise, levels).with_blobs(blobs(files))
    }

    #[test]
    fn nothing_is_emptied_while_a_third_is_garbage_or_less() {
        assert!(collection(version(&[], vec![])).is_none());
        assert!(collection(version(&[(100, 0), (100, 0)], vec![])).is_none());
        assert!(collection(version(&[(100, 99), (200, 1)], vec![])).is_none());
        assert!(collection(version(&[(100, 99), (200, 2)], vec![])).is_some());
    }

    #[test]
    fn the_files_with_most_garbage_for_their_size_are_emptied_until_little_is_left() {
        let files = [(100, 20), (1000, 600), (100, 70), (500, 60)];
        let found = collection(version(&files, vec![])).unwrap();
        // 750 of 1700: without the 70 of file 12 and the 600 of file 11, 80 of 1030 are left.
        assert_eq!(found.emptied, [11, 12]);
        assert_eq!(found.live_bytes, 400 + 30);
        assert!(found.urgency > 1.3 && found.urgency < 1.4);
    }

    #[test]
    fn tables_are_named_that_may_refer_to_a_file_being_emptied() {
        let tables = vec![
            (0, table(1, 11, None)),
            (0, table(2, 12, None)),
            (1, table(3, 10, Some(&[10, 12]))),
            (1, table(4, 10, Some(&[10, 11]))),
            (2, table(5, 10, None)),
            (3, table(6, 0, None)),
        ];
        let found = collection(version(&[(100, 0), (100, 90), (10, 0)], tables)).unwrap();
        assert_eq!(found.emptied, [11]);
        let named: Vec<_> = found.tables.iter().map(|(l, f)| (*l, f.number)).collect();
        assert_eq!(named, [(2, 5), (1, 4), (0, 1)]);
    }

    #[test]
    fn moving_blobs_chooses_no_more_files_and_ends_below_the_bound() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut files: Vec<(u64, u64)> = (0..1 + rng.below(30))
                .map(|_| {
                    let bytes = 1 + rng.below(1000);
                    (bytes, rng.below(bytes + 1))
                })
                .collect();
            let Some(first) = collection(version(&files, vec![])) else {
                continue;
            };
            // Move some of the live blobs into a new file.
            let mut moved = 0;
            for &number in &first.emptied {
                let file = &mut files[number as usize - 10];
                let step = rng.below(file.0 - file.1 + 1);
                file.1 += step;
                moved += step;
            }
            files.push((moved, 0));
            let second = collection(version(&files, vec![])).unwrap();
            let is_old = |number| first.emptied.contains(number);
            assert!(second.emptied.iter().all(is_old), "seed {seed}");
            // All of it moved, the files are gone.
            for &number in &second.emptied {
                files[number as usize - 10] = (0, 0);
            }
            files.push((second.live_bytes, 0));
            let (all, garbage) = files.iter().fold((0, 0), |(a, g), f| (a + f.0, g + f.1));
            assert!(!exceeds(garbage, all, GARBAGE_AFTER), "seed {seed}");
        }
    }
}
