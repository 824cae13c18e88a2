//! Blobs under orders of the user's own, in which keys of different bytes may be equal.
//!
//! A record in a blob file holds the key as it was written, and is checked against the key of
//! the lookup. Where that fails under such an order, the entry is sought once more for its own key.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drumlin_base::key::{SEEK_KIND, split_internal, tag_kind};
use drumlin_base::{InternalIterator, KeyOrder, PinnedSlice, Result, ValueKind};
use drumlin_table::TableReadOptions;
use drumlin_table::blob::BlobIndex;

use super::context::ReadView;
use super::source::Source;
use super::walk::{is_same, set_target};
use crate::iter::merging::MergingIterator;
use crate::iter::run::RunOptions;

/// The blob that a visible entry of `user_key` refers to by `index`, where reading it under `user_key`
/// gave `blob`.
pub(super) fn or_under_own_key(
    blob: Result<PinnedSlice>,
    read: ReadView<'_>,
    user_key: &[u8],
    index: &BlobIndex,
    options: &TableReadOptions,
) -> Result<PinnedSlice> {
    let ReadView {
        super_version,
        context,
        ..
    } = read;
    match (blob, &context.order) {
        (Err(error), KeyOrder::Custom(_)) if error.is_corruption() => {
            match own_key(read, user_key, index, options)? {
                Some(key) if key != user_key => {
                    context
                        .blobs
                        .read(&super_version.version, &key, index, options)
                }
                _ => Err(error),
            }
        }
        (blob, _) => blob,
    }
}

#[cold]
fn own_key(
    read: ReadView<'_>,
    user_key: &[u8],
    index: &BlobIndex,
    options: &TableReadOptions,
) -> Result<Option<Vec<u8>>> {
    let context = read.context;
    let run = Arc::new(RunOptions {
        order: context.order.clone(),
        tables: Arc::clone(&context.tables),
        table: *options,
        lower_bound: None,
        upper_bound: None,
        tombstones_seen: Arc::new(AtomicBool::new(false)),
    });
    let mut cursor =
        MergingIterator::new(context.order.clone(), Source::all(read.super_version, &run));
    let mut target = Vec::new();
    set_target(&mut target, user_key, read.seqno, SEEK_KIND);
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
