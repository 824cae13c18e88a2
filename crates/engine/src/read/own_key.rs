//! Blobs under orders of the user's own, in which keys of different bytes may be equal.
//!
//! A record in a blob file holds the key as it was written, and is checked against the key asked
//! for. Where that fails under such an order, the entry is sought once more for its own key.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drumlin_base::key::{SEEK_KIND, split_internal, tag_kind};
use drumlin_base::{InternalIterator, KeyOrder, PinnedSlice, Result, SeqNo, ValueKind};
use drumlin_table::TableReadOptions;
use drumlin_table::blob::BlobIndex;

use super::context::ReadContext;
use super::walk::{is_same, set_target};
use crate::family::super_version::SuperVersion;
use crate::iter::merging::MergingIterator;
use crate::iter::run::RunOptions;
use crate::iter::source::Source;

/// The blob that an entry of `user_key` visible at `seqno` refers to by `index`. `read` is what
/// reading it under `user_key` gave.
pub(super) fn or_under_own_key(
    read: Result<PinnedSlice>,
    (view, context): (&SuperVersion, &ReadContext),
    (user_key, seqno): (&[u8], SeqNo),
    index: &BlobIndex,
    options: &TableReadOptions,
) -> Result<PinnedSlice> {
    match (read, &context.order) {
        (Err(error), KeyOrder::Custom(_)) if error.is_corruption() => {
            let own_key = own_key((view, context), (user_key, seqno), index, options)?;
            match own_key {
                Some(key) if key != user_key => {
                    context.blobs.read(&view.version, &key, index, options)
                }
                _ => Err(error),
            }
        }
        (read, _) => read,
    }
}

#[cold]
fn own_key(
    (view, context): (&SuperVersion, &ReadContext),
    (user_key, seqno): (&[u8], SeqNo),
    index: &BlobIndex,
    options: &TableReadOptions,
) -> Result<Option<Vec<u8>>> {
    let run = Arc::new(RunOptions {
        order: context.order.clone(),
        tables: Arc::clone(&context.tables),
        table: *options,
        lower_bound: None,
        upper_bound: None,
        tombstones_seen: Arc::new(AtomicBool::new(false)),
    });
    let mut cursor = MergingIterator::new(context.order.clone(), Source::all(view, &run));
    let mut target = Vec::new();
    set_target(&mut target, user_key, seqno, SEEK_KIND);
    cursor.seek(&target);
    while cursor.valid()
        && let Some((key, tag)) = split_internal(cursor.key())
        && is_same(&context.order, key, user_key)
    {
        let refers = tag_kind(tag) == ValueKind::BlobIndex as u8
            && BlobIndex::decode(cursor.value()).is_ok_and(|found| found == *index);
        if refers {
            return Ok(Some(key.to_vec()));
        }
        cursor.next();
    }
    cursor.status()?;
    Ok(None)
}
