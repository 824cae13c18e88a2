//! Walks over a range, as it was when the walk began.

use std::sync::{Arc, Mutex, PoisonError};

use drumlin::{ColumnFamily, Db, DbIterator, ErrorKind, ReadOptions, ReadTier, Result};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, Either};
use napi_derive::napi;

use crate::error::thrown;
use crate::frames;
use crate::job::{Job, job};

/// Bytes that end a block of entries: values that a program keeps hold the block, as Node's own pool does with 8 KiB.
const BLOCK_BYTES: usize = 16 << 10;

/// What a walk goes over, and what it gives.
pub(crate) struct Course {
    pub(crate) db: Db,
    pub(crate) family: ColumnFamily,
    /// Bounds, and a snapshot: the walk may begin in memory and go on on the disk.
    pub(crate) options: ReadOptions,
    pub(crate) backward: bool,
    pub(crate) keys: bool,
    pub(crate) values: bool,
}

struct State {
    course: Course,
    /// At the entry that was given last, if there is one.
    cursor: Option<DbIterator>,
    /// The key that was given last, or before the one at the cursor; none before the first.
    last: Option<Vec<u8>>,
    /// Where the first entry is looked for; else at the range's end.
    target: Option<Vec<u8>>,
    ended: bool,
}

/// A walk. It is used by one call at a time.
#[napi]
pub(crate) struct Walk {
    state: Arc<Mutex<State>>,
    on_disk: bool,
}

impl Walk {
    pub(crate) fn new(course: Course) -> Self {
        let state = State {
            course,
            cursor: None,
            last: None,
            target: None,
            ended: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            on_disk: false,
        }
    }
}

#[napi]
impl Walk {
    /// Up to `most` entries, and some 16 KiB; none at the end.
    #[napi]
    pub fn next(
        &mut self,
        env: Env,
        most: u32,
    ) -> napi::Result<Either<Buffer, AsyncTask<Job<Vec<u8>>>>> {
        if !self.on_disk {
            match fill(&self.state, most, ReadTier::BlockCache) {
                Ok(block) => return Ok(Either::A(block.into())),
                Err(error) if error.kind() == ErrorKind::Incomplete => self.on_disk = true,
                Err(error) => return Err(thrown(env, &error)),
            }
        }
        let state = Arc::clone(&self.state);
        Ok(Either::B(job(move || fill(&state, most, ReadTier::Disk))))
    }

    /// Moves to the first entry at or behind `target`, in the walk's direction. Outside of the range there is none.
    #[napi]
    pub fn seek(&mut self, target: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let options = &state.course.options;
        let is_below = matches!(&options.lower_bound, Some(bound) if target < bound.as_slice());
        let is_behind = matches!(&options.upper_bound, Some(bound) if target >= bound.as_slice());
        state.ended = is_below || is_behind;
        state.cursor = None;
        state.last = None;
        state.target = Some(target.to_vec());
    }

    /// Lets go of what the walk keeps.
    #[napi]
    pub fn close(&mut self) {
        // A thread that still reads lets go of it when the object goes.
        if let Ok(mut state) = self.state.try_lock() {
            state.cursor = None;
            state.course.options.snapshot = None;
            state.ended = true;
        }
    }
}

/// The next entries, packed.
///
/// # Errors
/// `Incomplete`, if the tier has not the first of them: the walk stays where it is.
fn fill(state: &Mutex<State>, most: u32, tier: ReadTier) -> Result<Vec<u8>> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let mut block = Vec::new();
    // A thread has all of the disk before it from here on.
    if tier != state.course.options.tier {
        state.course.options.tier = tier;
        state.cursor = None;
    }
    for _ in 0..most.max(1) {
        if state.ended || block.len() >= BLOCK_BYTES {
            break;
        }
        if let Err(error) = state.give_one(&mut block) {
            state.cursor = None;
            match error.kind() {
                // What there is is given, and the next call meets the same.
                ErrorKind::Incomplete if !block.is_empty() => break,
                _ => return Err(error),
            }
        }
    }
    // Where a cursor that is made anew goes on.
    if let Some(cursor) = state.cursor.as_ref().filter(|cursor| cursor.valid()) {
        state.last = Some(cursor.key().to_vec());
    }
    Ok(block)
}

impl State {
    /// Moves on, and adds the entry there to `block`.
    fn give_one(&mut self, block: &mut Vec<u8>) -> Result<()> {
        let course = &self.course;
        let backward = course.backward;
        let cursor = match &mut self.cursor {
            Some(cursor) => {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(cursor.key());
                step(cursor, backward);
                cursor
            }
            none => {
                let mut cursor = course.db.iter_cf(&course.family, course.options.clone());
                match (self.last.as_ref().or(self.target.as_ref()), backward) {
                    (None, false) => cursor.seek_to_first(),
                    (None, true) => cursor.seek_to_last(),
                    (Some(key), false) => cursor.seek(key),
                    (Some(key), true) => cursor.seek_for_prev(key),
                }
                if cursor.valid() && self.last.as_deref() == Some(cursor.key()) {
                    step(&mut cursor, backward);
                }
                none.insert(cursor)
            }
        };
        if !cursor.valid() {
            cursor.status()?;
            self.ended = true;
            self.cursor = None;
            return Ok(());
        }
        let key = if course.keys { cursor.key() } else { &[] };
        let value = if course.values {
            cursor.try_value()?
        } else {
            &[]
        };
        frames::push_entry(block, key, value)
    }
}

fn step(cursor: &mut DbIterator, backward: bool) {
    match backward {
        false => cursor.next(),
        true => cursor.prev(),
    }
}
