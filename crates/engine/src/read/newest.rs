//! How new a key is: the sequence number of its newest entry, for transactions that ask whether it changed.

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{Result, SeqNo};
use drumlin_table::{Table, TableReadOptions};

use super::context::ReadView;
use super::get::SeekKey;
use crate::version::FileMeta;

/// The sequence number of the newest entry for `user_key` that `read` sees, be it a value, an operand, a deletion or a
/// range deletion over it; `None` when there is none. 0 for an entry that a compaction found older than every snapshot.
///
/// # Errors
/// As of a get.
pub(crate) fn newest_seqno(
    read: ReadView<'_>,
    user_key: &[u8],
    options: &TableReadOptions,
) -> Result<Option<SeqNo>> {
    let ReadView {
        super_version,
        context,
        seqno,
    } = read;
    let order = &context.order;
    for (index, memtable) in super_version.memtables().enumerate() {
        let covering = super_version.covering_seqno(index, user_key, seqno);
        let mut newest = (covering > 0).then_some(covering);
        memtable.get(user_key, seqno, |found, _, _| {
            newest = newest.max(Some(found));
            ControlFlow::Break(())
        });
        if newest.is_some() {
            return Ok(newest);
        }
    }
    for file in super_version.version.level(0) {
        if file.may_hold(order, user_key) {
            let newest = newest_in(read, file, user_key, options)?;
            if newest.is_some() {
                return Ok(newest);
            }
        }
    }
    let target = SeekKey::new(user_key, seqno);
    for level in 1..LEVELS {
        let files = super_version.version.level(level);
        let first = super_version
            .version
            .find_file(order, level, target.bytes());
        let mut newest = None;
        // The key's versions may go on in the next table of the run.
        for file in first.map_or(&[][..], |first| &files[first..]) {
            if order.compare(file.smallest_user_key(), user_key).is_gt() {
                break;
            }
            newest = newest.max(newest_in(read, file, user_key, options)?);
        }
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// As [`newest_seqno`], in one table.
fn newest_in(
    read: ReadView<'_>,
    file: &Arc<FileMeta>,
    user_key: &[u8],
    options: &TableReadOptions,
) -> Result<Option<SeqNo>> {
    let search = |table: &Table| -> Result<Option<SeqNo>> {
        let order = &read.context.order;
        let covering = match table.range_tombstones().is_empty() {
            true => 0,
            false => file.fragments_of(order, table).map_or(0, |fragments| {
                fragments.max_covering_seqno(order, user_key, read.seqno)
            }),
        };
        let mut newest = (covering > 0).then_some(covering);
        table.get(user_key, read.seqno, options, |found, _, _| {
            newest = newest.max(Some(found));
            ControlFlow::Break(())
        })?;
        Ok(newest)
    };
    match file.table.load() {
        Some(table) => search(&table),
        None => {
            let table = read.context.tables.find_for(file, options)?;
            search(&table)
        }
    }
}
