//! Flush: full memtables become one table of L0, and blob files for their large values.
//!
//! Entries that no reader can see any more are left out on the way, so that a key overwritten a thousand
//! times in a memtable is written once. Nothing is installed here; the memtables stay what they
//! are until the caller has installed the table, and after an error the caller tries again: under
//! a new number, because a file whose sync failed can no longer be trusted.

use std::sync::Arc;

use drumlin_base::{InternalIterator, Result};
use drumlin_memtable::Memtable;

use crate::compaction::cover::{Cover, retain};
use crate::compaction::keep::{Below, Stripes};
use crate::compaction::output::{JobContext, OutputStamp, Outputs};
use crate::compaction::progress::CheckTimer;
use crate::compaction::split::Splitter;
use crate::compaction::stream::{Stream, StreamOptions};
use crate::iter::merging::MergingIterator;
use crate::iter::range_tombstone::Fragments;
use crate::version::{BlobFileAddition, NewFile};

/// The output of a flush.
#[derive(Clone, Debug)]
pub(crate) struct Flushed {
    /// The table for L0, synced with its name; its epoch is for the caller to give. `None` when
    /// nothing in the memtables is visible to anybody.
    pub file: Option<NewFile>,
    /// The blob files that hold its large values, synced with their names.
    pub blob_files: Vec<BlobFileAddition>,
    /// Bytes of the blob files.
    pub blob_bytes: u64,
    /// Bytes written, those of blob files too.
    pub bytes_written: u64,
}

/// Writes the entries of `memtables` (oldest first) into one table.
///
/// Requires: nobody adds to the memtables any more.
///
/// # Errors
/// Errors of creating, writing or syncing the table, or of the merge operator. No file is
/// left behind.
pub(crate) fn run(context: &JobContext, memtables: &[Arc<Memtable>]) -> Result<Flushed> {
    let order = &context.options.order;
    let tombstones: Vec<_> = memtables
        .iter()
        .filter(|memtable| {
            memtable.range_tombstone_count()
                > usize::from(drumlin_base::bug!("flush-loses-a-range-tombstone"))
        })
        .flat_map(|memtable| memtable.range_tombstones())
        .collect();
    let snapshots = match drumlin_base::bug!("flush-forgets-snapshots") {
        true => Vec::new(),
        false => context.snapshots.clone(),
    };
    let stripes = Stripes::new(snapshots);
    let newest = Fragments::newest(order, &tombstones, stripes.snapshots());
    let fragments = Arc::new(newest);
    let kept = retain(order, &fragments, &stripes, &Below::Anything);

    let newest_first = memtables.iter().rev().map(|memtable| memtable.iter());
    let entries: usize = memtables.iter().map(|memtable| memtable.entries()).sum();
    context.progress.expect_entries(entries as u64);
    let mut input = MergingIterator::new(order.clone(), newest_first.collect());
    input.seek_to_first();
    let options = StreamOptions {
        order: order.clone(),
        stripes,
        below: Below::Anything,
        cover: Cover::new(fragments),
        merge_operator: context.merge_operator.clone(),
        filter: None,
        may_skip: false,
        output_level: 0,
        full_history_ts_low: context.full_history_ts_low.clone(),
        blobs: None,
    };
    let stamp = OutputStamp {
        newest_key_time: context.env.clock.unix_seconds(),
        expected_bytes: memtables
            .iter()
            .map(|memtable| memtable.bytes() as u64)
            .sum(),
        ..OutputStamp::default()
    };
    let mut outputs =
        Outputs::new(context, stamp, Splitter::never()).with_tombstones(kept, None, None);
    let mut stream = Stream::new(input, options);
    let mut timer = CheckTimer::default();
    while stream.advance()? {
        outputs.add(&stream)?;
        if timer.is_due(stream.key().len() + stream.value().len()) {
            context.note(&mut timer, stream.counts().input);
        }
    }
    let counts = stream.counts();
    timer.note(&context.progress, counts.input);
    let (files, blobs) = outputs.finish()?.keep(context)?;
    debug_assert!(files.len() <= 1, "a flush never splits its output");
    let table_bytes: u64 = files.iter().map(|file| file.size).sum();
    Ok(Flushed {
        bytes_written: table_bytes + blobs.bytes_written,
        file: files.into_iter().next(),
        blob_files: blobs.additions,
        blob_bytes: blobs.bytes_written,
    })
}
