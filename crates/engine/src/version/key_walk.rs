//! A walk over the keys of one sorted run, each by its newest entry there, and the sums of what it met.

use std::fmt;

use drumlin_base::key::{split_internal, tag_kind, tag_seqno};
use drumlin_base::{Error, InternalIterator, KeyOrder, Result, SeqNo, ValueKind};

/// The keys of a stretch of a sorted run, each by its newest entry there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// Those that are there, as far as the run knows.
    pub live: u64,
    /// Those that were deleted one by one.
    pub deleted: u64,
    /// Bytes of the keys and values of those that are there, as they are stored.
    pub bytes: u64,
}

impl KeyCounts {
    /// Counts `key`.
    pub fn add(&mut self, key: &NewestEntry<'_>) {
        if !key.is_covered {
            self.add_uncovered(key.is_deleted, key.bytes);
        }
    }

    /// Counts a key that no range tombstone of the run covers, with the bytes of key and value.
    pub fn add_uncovered(&mut self, is_deleted: bool, bytes: u64) {
        if is_deleted {
            self.deleted += 1;
        } else {
            self.live += 1;
            self.bytes += bytes;
        }
    }

    /// What is counted here and not in `before`, which counts a part of it.
    pub fn without(self, before: Self) -> Self {
        Self {
            live: self.live.saturating_sub(before.live),
            deleted: self.deleted.saturating_sub(before.deleted),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// The newest entry of a key in its run.
#[derive(Clone, Copy, Debug)]
pub struct NewestEntry<'a> {
    pub user_key: &'a [u8],
    /// Of key and value.
    pub bytes: u64,
    /// By this entry, or by a range tombstone of the run.
    pub is_deleted: bool,
    /// By a range tombstone of the run.
    pub is_covered: bool,
}

/// See the module. `covering` tells the newest range tombstone of the run over a key, 0 where there is none.
pub struct KeyWalk<'a, Cursor, Covering> {
    cursor: Cursor,
    order: &'a KeyOrder,
    /// What a reader at this number sees.
    seqno: SeqNo,
    covering: Covering,
    /// The key that is being left.
    left: Vec<u8>,
    /// Entries left so far.
    steps: u64,
    /// Whether no key has two entries.
    is_one_each: bool,
}

impl<'a, Cursor: InternalIterator, Covering: Fn(&[u8]) -> SeqNo> KeyWalk<'a, Cursor, Covering> {
    /// A walk on from where `cursor` stands, which is the newest entry of a key.
    pub fn new(cursor: Cursor, order: &'a KeyOrder, seqno: SeqNo, covering: Covering) -> Self {
        Self {
            cursor,
            order,
            seqno,
            covering,
            left: Vec::new(),
            steps: 0,
            is_one_each: false,
        }
    }

    /// The same over a run in which no key has two entries, if `is_one_each`.
    pub fn with_one_each(self, is_one_each: bool) -> Self {
        Self {
            is_one_each,
            ..self
        }
    }

    /// Goes to the first entry at or behind the internal key `target`, which is the newest one of a key.
    pub fn seek(&mut self, target: &[u8]) {
        self.cursor.seek(target);
    }

    /// What is walked.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Entries that were left behind.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The key it stands on; `None` at the end.
    ///
    /// # Errors
    /// Those of the cursor; `Corruption` for a key that is too short.
    pub fn here(&mut self) -> Result<Option<NewestEntry<'_>>> {
        while self.cursor.valid() && tag_seqno(parts(&self.cursor)?.1) > self.seqno {
            self.cursor.next();
            self.steps += 1;
        }
        if !self.cursor.valid() {
            return self.cursor.status().map(|()| None);
        }
        let (user_key, tag) = parts(&self.cursor)?;
        let is_covered = (self.covering)(user_key) > tag_seqno(tag)
            && !drumlin_base::bug!("covered-keys-counted");
        Ok(Some(NewestEntry {
            user_key,
            bytes: (user_key.len() + self.cursor.value().len()) as u64,
            is_deleted: is_covered || deletes(tag_kind(tag)),
            is_covered,
        }))
    }

    /// Goes on to the next key.
    ///
    /// # Errors
    /// As [`KeyWalk::here`].
    pub fn leave(&mut self) -> Result<()> {
        if !self.cursor.valid() {
            return Ok(());
        }
        if self.is_one_each {
            self.cursor.next();
            self.steps += 1;
            return Ok(());
        }
        self.left.clear();
        self.left.extend_from_slice(parts(&self.cursor)?.0);
        while self.cursor.valid()
            && self
                .order
                .compare(parts(&self.cursor)?.0, &self.left)
                .is_eq()
        {
            self.cursor.next();
            self.steps += 1;
        }
        Ok(())
    }
}

impl<Cursor, Covering> fmt::Debug for KeyWalk<'_, Cursor, Covering> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyWalk")
            .field("left", &self.left)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Whether entries of the kind with the byte `kind` delete their key.
pub(super) fn deletes(kind: u8) -> bool {
    let deletions = [ValueKind::Deletion, ValueKind::SingleDeletion];
    deletions.iter().any(|deletion| *deletion as u8 == kind)
}

fn parts(cursor: &impl InternalIterator) -> Result<(&[u8], u64)> {
    let short = || Error::corruption("an entry whose key is too short");
    split_internal(cursor.key()).ok_or_else(short)
}
