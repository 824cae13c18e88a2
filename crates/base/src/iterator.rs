//! The contract of every cursor over internal keys.

use crate::Result;
use crate::key::internal_key_prefix;

/// A value as it is stored: its code under a model of records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueCode<'a> {
    /// The id of the model.
    pub model: u64,
    /// The code.
    pub bytes: &'a [u8],
    /// Bytes of the value, about; not rounded, so that the sum over many is right.
    pub value_bytes: f64,
    /// The value has no more bytes.
    pub value_bytes_max: usize,
}

/// A cursor over internal keys and their values, in internal-key order.
///
/// Invariants every implementation keeps and every user relies on:
/// - A fresh cursor is not valid; position it first.
/// - `key` and `value` may be called only while `valid()`; the slices live until the next move.
/// - `next` and `prev` may be called only while `valid()`.
/// - An error makes the cursor invalid and is kept until the next positioning call; a cursor that
///   is not valid is at an end only if `status()` is `Ok`.
pub trait InternalIterator {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// Stands on the first entry.
    fn seek_to_first(&mut self);
    /// Stands on the last entry.
    fn seek_to_last(&mut self);
    /// Stands on the first entry at or after `target`, an internal key.
    fn seek(&mut self, target: &[u8]);
    /// Stands on the last entry at or before `target`, an internal key.
    fn seek_for_prev(&mut self, target: &[u8]);
    /// Moves to the entry after this one.
    fn next(&mut self);
    /// Moves to the entry before this one.
    fn prev(&mut self);
    /// The internal key under the cursor.
    fn key(&self) -> &[u8];
    /// [`internal_key_prefix`] of the key under the cursor. Cursors that know it without reading the key
    /// return it from there: a key that has just been put together is read only once its parts have left
    /// the processor's store buffer.
    #[inline]
    fn key_prefix(&self) -> u64 {
        internal_key_prefix(self.key())
    }
    /// The value under the cursor.
    fn value(&self) -> &[u8];
    /// The code that the value under the cursor is stored as, from cursors that were asked for it.
    /// A caller that takes it saves the decoding, which such a cursor puts off until `value` is
    /// called.
    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        None
    }
    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// Those of reading the source: `Corruption`, `Io`.
    fn status(&self) -> Result<()>;
}
